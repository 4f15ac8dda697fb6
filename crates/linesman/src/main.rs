//! The program: command line, configuration, wiring, shutdown.

mod backup;
mod cli;
mod clock;
mod cluster;
mod config;
mod control;
mod folder;
mod identify;
mod identities;
mod logging;
mod mail;
mod migrate;
mod operators;
mod program;
mod record;
mod replay;
mod reserve;
mod task;
mod verbs;
mod worlds;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use domain::Catalogue;
use rustix::fs::Mode;
use rustix::process::umask;

use crate::cli::{Cli, ConfigArgs, Stop, Verb, output};
use crate::config::{Config, Flags};

fn main() -> ExitCode {
    // Whatever is written, by SQLite too, is for its owner alone: digests of keys, secrets of second factors.
    umask(Mode::RWXG | Mode::RWXO);
    let outcome = match Cli::parse(env::args_os()) {
        Ok(cli) => run(&cli),
        Err(Stop::Shown(text)) => output::print_line(&text).map_err(Into::into),
        Err(Stop::Misuse(sentence)) => {
            output::print_trouble(&sentence);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_trouble(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let flags = if let Verb::Serve(args) = &cli.verb {
        Flags { listen: args.listen }
    } else {
        Flags::default()
    };
    if let Verb::Openapi = &cli.verb {
        return Ok(output::print_line(&serve::openapi_document())?);
    }
    if let Verb::Config(ConfigArgs { explain: Some(path), .. }) = &cli.verb {
        let explained = config::explain(path).map_err(anyhow::Error::msg)?;
        return Ok(output::print_line(&explained)?);
    }
    let config = Config::load(cli.config.as_deref(), &flags)?;
    match &cli.verb {
        Verb::Config(args) if args.check => {
            config.check_files()?;
            load_catalogue(&config)?;
            output::print_line("configuration OK")?;
        }
        Verb::Config(_) => output::print_line(&config.to_toml())?,
        Verb::Serve(args) => {
            config.check_files()?;
            logging::start(&config.log)?;
            program::serve(&config, &cli.data, args)?;
        }
        Verb::Keys(verb) => verbs::keys(&config, &cli.data, verb)?,
        Verb::Feeds(verb) => verbs::feeds(&config, &cli.data, verb)?,
        Verb::Operators(verb) => operators::run(&config, &cli.data, verb)?,
        Verb::Maintenance(verb) => verbs::maintenance(&config, &cli.data, verb)?,
        Verb::Match(args) => identify::run(&load_catalogue(&config)?, args)?,
        Verb::Events(verb) => identities::events(&config, &cli.data, verb)?,
        Verb::Aliases(verb) => identities::aliases(&config, &cli.data, verb)?,
        Verb::Replay(args) => replay::run(args)?,
        Verb::Record(_) if config.cluster.is_some() => anyhow::bail!(
            "`record` reads a log in a data folder, and `cluster.nats_url` says that it is on servers, where checkpoints of the past are not kept to begin from; \
             record a single node (--config names its configuration, --data its folder), or keep what feeds send and `replay` it"
        ),
        Verb::Record(args) => record::run(&load_catalogue(&config)?, &cli.data, args)?,
        Verb::Migrate(args) => migrate::run(&config, args)?,
        Verb::Backup(args) => backup::run(&config, &cli.data, args)?,
        Verb::Openapi => {}
    }
    Ok(())
}

/// The embedded catalogue with the operator's file laid over it.
fn load_catalogue(config: &Config) -> anyhow::Result<Arc<Catalogue>> {
    let file = match &config.catalogue.file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("the catalogue file {} cannot be read", path.display()))?;
            Some((path, text))
        }
        None => None,
    };
    let loaded = Catalogue::load(file.as_ref().map(|(_, text)| text.as_str()));
    let catalogue = match (loaded, &file) {
        (Ok(catalogue), _) => catalogue,
        (Err(error), Some((path, _))) => {
            return Err(error)
                .with_context(|| format!("the catalogue file {} is not right", path.display()));
        }
        (Err(error), None) => return Err(error).context("the embedded catalogue is not right"),
    };
    Ok(Arc::new(catalogue))
}

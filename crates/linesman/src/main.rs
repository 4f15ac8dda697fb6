//! The program: command line, configuration, wiring, shutdown.

mod catalogue;
mod cli;
mod clock;
mod cluster;
mod commands;
mod config;
mod control;
mod folder;
mod logging;
mod mail;
mod open;
mod reserve;
mod task;
mod upstream;
mod worlds;

use std::env;
use std::process::ExitCode;

use rustix::fs::Mode;
use rustix::process::umask;

use crate::cli::{Cli, ConfigArgs, Stop, Verb, output};
use crate::config::{Config, Flags};

fn main() -> ExitCode {
    // All files, including those of SQLite, are readable by their owner only: they contain digests of keys and second
    // factors.
    umask(Mode::RWXG | Mode::RWXO);
    let outcome = match Cli::parse(env::args_os()) {
        Ok(cli) => run(&cli),
        Err(Stop::Shown(text)) => output::print_line(&text),
        Err(Stop::Misuse(sentence)) => {
            output::print_error(&sentence);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&format!("{error:#}"));
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
    if let Verb::Completions(args) = &cli.verb {
        return output::print_line(&cli::completions(args.shell));
    }
    if let Verb::Man = &cli.verb {
        return output::print_line(&cli::man_page()?);
    }
    if let Verb::Config(ConfigArgs { explain: Some(path), .. }) = &cli.verb {
        let explained = config::explain(path).map_err(anyhow::Error::msg)?;
        return output::print_line(&explained);
    }
    // These commands concern some server, not this machine's.
    if let Verb::Get(args) = &cli.verb {
        return commands::get::run(args);
    }
    if let Verb::Why(args) = &cli.verb {
        return commands::get::why(args);
    }
    if let Verb::Mcp(server) = &cli.verb {
        return commands::mcp::run(server);
    }
    run_configured(cli, &Config::load(cli.config.as_deref(), &flags)?)
}

fn run_configured(cli: &Cli, config: &Config) -> anyhow::Result<()> {
    match &cli.verb {
        Verb::Config(args) if args.check => {
            config.check_files()?;
            config.build_adapters(&catalogue::load(config)?)?;
            output::print_line("configuration OK")?;
        }
        Verb::Config(_) => output::print_line(&config.to_toml())?,
        Verb::Serve(args) => {
            config.check_files()?;
            logging::start(&config.log)?;
            commands::serve::run(config, &cli.data, args)?;
        }
        Verb::Keys(verb) => commands::keys::run(config, &cli.data, verb)?,
        Verb::Feeds(verb) => commands::feeds::run(config, &cli.data, verb)?,
        Verb::Operators(verb) => commands::operators::run(config, &cli.data, verb)?,
        Verb::Maintenance(verb) => commands::maintenance::run(config, &cli.data, verb)?,
        Verb::Match(args) => commands::r#match::run(&catalogue::load(config)?, args)?,
        Verb::Events(verb) => commands::events::run(config, &cli.data, verb)?,
        Verb::Aliases(verb) => commands::aliases::run(config, &cli.data, verb)?,
        Verb::Replay(args) => commands::replay::run(args)?,
        Verb::Record(_) if config.cluster.is_some() => anyhow::bail!(
            "`record` reads the log in a data folder, but `cluster.nats_url` is set: the log is on NATS, which keeps no old \
             checkpoints to start from. Record a single node (--config, --data), or save what feeds send and `replay` it"
        ),
        Verb::Record(args) => {
            commands::record::run(&catalogue::load(config)?, &cli.data, args)?;
        }
        Verb::History(verb) => commands::history::run(config, &cli.data, verb)?,
        Verb::Export(args) => {
            commands::export::run(config, &*catalogue::load(config)?, &cli.data, args)?;
        }
        Verb::Migrate(args) => commands::migrate::run(config, args)?,
        Verb::Backup(args) => commands::backup::run(config, &cli.data, args)?,
        Verb::Openapi(args) => {
            let catalogue = catalogue::load(config)?;
            let document = if args.v4 {
                api::openapi::v4::text(&catalogue)
            } else {
                api::openapi::text(&catalogue)
            };
            output::print_line(&document)?;
        }
        Verb::Init => commands::init::run(config, &cli.data)?,
        Verb::Completions(_) | Verb::Man | Verb::Get(_) | Verb::Why(_) | Verb::Mcp(_) => {}
    }
    Ok(())
}

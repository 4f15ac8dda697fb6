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

use crate::cli::{Cli, Command, ConfigArgs, Stop, output};
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
    let flags = if let Command::Serve(args) = &cli.command {
        Flags { listen: args.listen }
    } else {
        Flags::default()
    };
    if let Command::Completions(args) = &cli.command {
        return output::print_line(&cli::completions(args.shell));
    }
    if let Command::Man = &cli.command {
        return output::print_line(&cli::man_page()?);
    }
    if let Command::Config(ConfigArgs { explain: Some(path), .. }) = &cli.command {
        let explained = config::explain(path).map_err(anyhow::Error::msg)?;
        return output::print_line(&explained);
    }
    // These commands concern some server, not this machine's.
    if let Command::Get(args) = &cli.command {
        return commands::get::run(args);
    }
    if let Command::Why(args) = &cli.command {
        return commands::get::why(args);
    }
    if let Command::Mcp(server) = &cli.command {
        return commands::mcp::run(server);
    }
    run_configured(cli, &Config::load(cli.config.as_deref(), &flags)?)
}

fn run_configured(cli: &Cli, config: &Config) -> anyhow::Result<()> {
    match &cli.command {
        Command::Config(args) if args.check => {
            config.check_service()?;
            config.build_adapters(&catalogue::load(config)?)?;
            output::print_line("configuration OK")?;
        }
        Command::Config(_) => output::print_line(&config.to_toml())?,
        Command::Serve(args) => {
            config.check_service()?;
            logging::start(&config.log)?;
            commands::serve::run(config, &cli.data, args)?;
        }
        Command::Keys(command) => commands::keys::run(config, &cli.data, command)?,
        Command::Feeds(command) => commands::feeds::run(config, &cli.data, command)?,
        Command::Operators(command) => commands::operators::run(config, &cli.data, command)?,
        Command::Maintenance(command) => commands::maintenance::run(config, &cli.data, command)?,
        Command::Match(args) => commands::r#match::run(&catalogue::load(config)?, args)?,
        Command::Events(command) => commands::events::run(config, &cli.data, command)?,
        Command::Aliases(command) => commands::aliases::run(config, &cli.data, command)?,
        Command::Replay(args) => commands::replay::run(args)?,
        Command::Record(_) if config.cluster.is_some() => anyhow::bail!(
            "`record` reads the log in a data folder, but `cluster.nats_url` is set: the log is on NATS, which keeps no old \
             checkpoints to start from. Record a single node (--config, --data), or save what feeds send and `replay` it"
        ),
        Command::Record(args) => {
            commands::record::run(&catalogue::load(config)?, &cli.data, args)?;
        }
        Command::History(command) => {
            config.check_bucket()?;
            commands::history::run(config, &cli.data, command)?;
        }
        Command::Export(args) => {
            config.check_bucket()?;
            commands::export::run(config, &*catalogue::load(config)?, &cli.data, args)?;
        }
        Command::Migrate(args) => commands::migrate::run(config, args)?,
        Command::Backup(args) => {
            config.check_bucket()?;
            commands::backup::run(config, &cli.data, args)?;
        }
        Command::Openapi(args) => {
            let catalogue = catalogue::load(config)?;
            let document = if args.v4 {
                api::openapi::v4::text(&catalogue)
            } else {
                api::openapi::text(&catalogue)
            };
            output::print_line(&document)?;
        }
        Command::Init => commands::init::run(config, &cli.data)?,
        Command::Completions(_)
        | Command::Man
        | Command::Get(_)
        | Command::Why(_)
        | Command::Mcp(_) => {}
    }
    Ok(())
}

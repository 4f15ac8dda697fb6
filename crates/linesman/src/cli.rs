//! The command line: every command with its arguments. Only parsing; `commands/` executes them.
//!
//! Wrong use becomes one sentence ([`Stop::Misuse`]) without keys or tokens. The names of commands and flags are a
//! contract with the scripts that call them.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use domain::{Timestamp, World};

use crate::config::{Secret, duration::parse_duration, parse_address};

mod export;
mod feeds;
mod get;
mod history;
mod identity;
mod manual;
mod misuse;
pub(crate) mod output;
mod replay;

pub(crate) use export::ExportArgs;
pub(crate) use feeds::{FeedsCheckArgs, FeedsCommand, FeedsCreateArgs, FeedsTranslateArgs};
pub(crate) use get::{GetArgs, Server, What, WhyArgs};
pub(crate) use history::HistoryCommand;
pub(crate) use identity::{AliasesCommand, EventsCommand, ListerRef};
pub(crate) use manual::{completions, man_page};
pub(crate) use replay::{ReplayArgs, Speed};

/// Maximum overlap of a rotated key (D18).
const OVERLAP_MAX: Duration = Duration::from_secs(7 * 86_400);

/// A valid command line.
#[derive(Debug)]
pub(crate) struct Cli {
    pub(crate) data: PathBuf,
    pub(crate) config: Option<PathBuf>,
    pub(crate) command: Command,
}

/// Why the program ends before it runs a command.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The help or the version, for stdout; exit 0.
    Shown(String),
    /// Wrong use, in one sentence for stderr; exit 2.
    Misuse(String),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service (the default command)
    #[command(
        after_help = "Example:\n  linesman serve --listen 0.0.0.0:8080 --data /var/lib/linesman\n  linesman serve --role api --config cluster.toml"
    )]
    Serve(ServeArgs),
    /// Create a data folder without starting the service
    #[command(after_help = "Example:\n  linesman init --data /var/lib/linesman\n\n\
                            `linesman serve` creates the folder, too; the other commands need one that exists.")]
    Init,
    /// Create, list, revoke and rotate API keys
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman keys create --kind production --name \"Acme\" --groups combat,golf"
    )]
    Keys(KeysCommand),
    /// Create, list, revoke, pause and resume feeds that push odds
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman feeds create pinnacle --bookmaker pinnacle"
    )]
    Feeds(FeedsCommand),
    /// List operators, and print a sign-in link for an operator without access
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman operators list\n  linesman operators link olive@example.com"
    )]
    Operators(OperatorsCommand),
    /// Switch the service status `maintenance` on or off
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman maintenance on --retry-after 10m\n  linesman maintenance off"
    )]
    Maintenance(MaintenanceCommand),
    /// Match the events of several recordings, without a server: test how a new feed would be matched
    #[command(after_help = "Example:\n  linesman match pinnacle.ndjson fanduel.ndjson --json")]
    Match(MatchArgs),
    /// Inspect events; merge or split them
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman events unsure\n  linesman events merge evt_8ZDGX3VOhGx evt_9Tw66sLET2w"
    )]
    Events(EventsCommand),
    /// Export or import learned name aliases
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman aliases export > aliases.ndjson\n  linesman aliases import aliases.ndjson --data other"
    )]
    Aliases(AliasesCommand),
    /// Push recordings into a running service
    #[command(
        after_help = "Example:\n  linesman replay saturday.ndjson --to http://127.0.0.1:8080 --token-file feed.token --speed 10x"
    )]
    Replay(ReplayArgs),
    /// Print a world's log as a recording for `linesman replay`; a server may run meanwhile
    #[command(
        after_help = "Example:\n  linesman record --world live --from 2026-11-14T18:00:00Z --to 2026-11-14T23:00:00Z > saturday.ndjson\n\n\
                      The recording begins with the state at --from, followed by each change up to --to. Replayed into an empty \
                      service, with one feed token, it gives the same events, prices and scores, with new ids.\n\
                      Messages keep their ts. Prices of an old recording are therefore stale where they are replayed, \
                      and events that ended longer ago than market.final_retention are removed again."
    )]
    Record(RecordArgs),
    /// Inspect, verify or update the archive of history
    #[command(subcommand, arg_required_else_help = false, after_help = history::EXAMPLE)]
    History(HistoryCommand),
    /// Export rows of the archive of history by publication time, for other programs
    #[command(
        after_help = "Example:\n  linesman export --table odds --sport mma --from 2026-11-14T00:00:00Z --to 2026-11-15T00:00:00Z --out odds.parquet\n\n\
                      It only reads. A server that runs on the folder first archives its latest publications."
    )]
    Export(ExportArgs),
    /// Back up the data folder to a new folder; a server may run meanwhile
    #[command(
        after_help = "Example:\n  linesman backup --data /var/lib/linesman /backup/2026-11-15\n\n\
                            To restore, stop the server, replace the data folder with the copy, and start."
    )]
    Backup(BackupArgs),
    /// Move a data folder to a cluster: an empty PostgreSQL database, and NATS
    #[command(
        after_help = "Example:\n  linesman migrate --from ./data --to postgres://linesman@db.example.com/linesman --nats nats://bus.example.com:4222\n\n\
                      Keys, ids and limits stay the same. The folder is not changed; do not start a server on it again."
    )]
    Migrate(MigrateArgs),
    /// Print the effective configuration as TOML, with the source of each value
    #[command(
        after_help = "Example:\n  linesman config > linesman.toml\n  linesman config --check --config new.toml\n  \
                      linesman config --explain server.listen"
    )]
    Config(ConfigArgs),
    /// Query a server: a table on a terminal, CSV into a pipe
    #[command(
        after_help = "Example:\n  linesman get odds mma --market moneyline\n  linesman get best mma --market moneyline --watch\n  \
                      linesman get events tennis --name open --json\n  linesman get event mma evt_8ZDGX3VOhGx\n\n\
                      The server is --url or LINESMAN_URL, the key is in --key-file or LINESMAN_KEY. Without --limit all pages are read."
    )]
    Get(Box<GetArgs>),
    /// Show why each price of an event is present or missing
    #[command(after_help = "Example:\n  linesman why evt_8ZDGX3VOhGx --market moneyline\n\n\
                      The server is --url or LINESMAN_URL, the key is in --key-file or LINESMAN_KEY.")]
    Why(Box<WhyArgs>),
    /// Serve the API to agents: tools of the Model Context Protocol over stdin and stdout
    #[command(
        after_help = "Example, as the configuration of an agent:\n  {\"mcpServers\": {\"linesman\": {\"command\": \"linesman\", \"args\": [\"mcp\"],\n    \
                      \"env\": {\"LINESMAN_URL\": \"http://127.0.0.1:8080\", \"LINESMAN_KEY\": \"sk_test_…\"}}}}\n\n\
                      The server is --url or LINESMAN_URL, the key is in --key-file or LINESMAN_KEY. It reads and changes nothing."
    )]
    Mcp(Server),
    /// Print the OpenAPI 3.1 document
    #[command(
        after_help = "Example:\n  linesman openapi > openapi.json\n  linesman openapi --v4 > openapi-v4.json"
    )]
    Openapi(OpenapiArgs),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  linesman completions bash > /etc/bash_completion.d/linesman\n  \
                      linesman completions zsh > /usr/local/share/zsh/site-functions/_linesman\n  \
                      linesman completions fish > ~/.config/fish/completions/linesman.fish"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_help = "Example:\n  linesman man > /usr/local/share/man/man1/linesman.1")]
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct OpenapiArgs {
    /// The document of /v4, the prior interface
    #[arg(long)]
    pub(crate) v4: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address of the API; port 0 picks a free port and prints it [default: server.listen]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The role of this node in a cluster (nodes that share `database.url` and `cluster.nats_url`)
    #[arg(long, value_name = "ROLE", default_value = "all")]
    pub(crate) role: Role,
    /// Start without keys, feed tokens and accounts if accounts.db is missing from a used data folder
    #[arg(long)]
    pub(crate) new_accounts: bool,
}

/// The role of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything
    #[default]
    All,
    /// Accepts pushes and writes the log (one leader at a time); no API
    Ingest,
    /// Serves the API from the log; forwards pushes to the leader
    Api,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key; prints the key, which is shown only once
    #[command(
        after_help = "Example:\n  linesman keys create --kind sandbox --name ci --requests-per-day 1000"
    )]
    Create(KeysCreateArgs),
    /// List keys, without their secrets
    #[command(after_help = "Example:\n  linesman keys list --json")]
    List(ListArgs),
    /// Revoke a key: after this returns, no request with it succeeds
    #[command(after_help = "Example:\n  linesman keys revoke ID_OR_KEY")]
    Revoke(KeysRevokeArgs),
    /// Replace a key; prints the new key, which is shown only once
    #[command(after_help = "Example:\n  linesman keys rotate ID_OR_KEY --overlap 24h")]
    Rotate(KeysRotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeysCreateArgs {
    /// The world the key reads: the simulated market or the real one
    #[arg(long)]
    pub(crate) kind: KeyKind,
    /// The key's name in lists
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// The sport groups the key may read, separated by commas [default: all]
    #[arg(long, value_name = "GROUP,…", value_delimiter = ',', value_parser = parse_name)]
    pub(crate) groups: Vec<String>,
    /// Requests per minute, UTC [default: 60]
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) burst_per_minute: Option<u32>,
    /// Responses per day, UTC [default: 10000]
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) requests_per_day: Option<u32>,
    /// Responses per month, UTC [default: no monthly limit]
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) requests_per_month: Option<u32>,
    /// Streams open at the same time [default: `stream.per_key_max`]
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) streams: Option<u32>,
    /// What the key may read in addition to sports, books and status
    ///
    /// `odds:read` is for odds, events and scores; `export:read` for whole files of the archive; `none` for neither.
    /// Several are separated by commas.
    #[arg(long, value_name = "PERMISSION,…", default_value = "odds:read", value_delimiter = ',')]
    pub(crate) permissions: Vec<Permission>,
    /// Create N identical keys, one per line
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    /// Print the record as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyKind {
    Sandbox,
    Production,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Permission {
    #[value(name = "odds:read")]
    OddsRead,
    #[value(name = "export:read")]
    ExportRead,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeysRevokeArgs {
    /// The key's id, or the key itself
    #[arg(value_name = "ID_OR_KEY")]
    pub(crate) key: Secret,
}

#[derive(Debug, Args)]
pub(crate) struct KeysRotateArgs {
    /// The key's id, or the key itself
    #[arg(value_name = "ID_OR_KEY")]
    pub(crate) key: Secret,
    /// How long the old key still works, up to 7d [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = parse_overlap)]
    pub(crate) overlap: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorsCommand {
    /// List the operators
    #[command(after_help = "Example:\n  linesman operators list")]
    List,
    /// Print a one-time link with which an operator sets a new password, valid for a day
    #[command(
        after_help = "Example:\n  linesman operators link olive@example.com\n  linesman operators link olive@example.com --without-second-factor\n  \
                      linesman operators link --new\n\nWithout an address the link is for the only operator; if there is none, it creates the first one."
    )]
    Link(OperatorsLinkArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OperatorsLinkArgs {
    /// The operator's email address [default: the only operator's]
    #[arg(value_name = "EMAIL", value_parser = parse_name, conflicts_with = "new")]
    pub(crate) email: Option<String>,
    /// Print a link that creates another operator instead
    #[arg(long)]
    pub(crate) new: bool,
    /// Also turn off the operator's second factor (phone and recovery codes are lost)
    #[arg(long, conflicts_with = "new")]
    pub(crate) without_second_factor: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MaintenanceCommand {
    /// Answer 503 on every endpoint except status, also after a restart
    #[command(after_help = "Example:\n  linesman maintenance on --retry-after 10m")]
    On(MaintenanceOnArgs),
    /// Serve again
    #[command(after_help = "Example:\n  linesman maintenance off")]
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct MaintenanceOnArgs {
    /// The Retry-After that clients get
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub(crate) retry_after: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    /// Recordings (NDJSON of ingest messages); the file's stem is the feed's name
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The log to read: of the real market or the simulated one
    #[arg(long)]
    pub(crate) world: WorldName,
    /// The start, for example `2026-11-14T18:00:00Z` [default: the beginning of the log]
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub(crate) from: Option<Timestamp>,
    /// The end [default: now]
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub(crate) to: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The new folder; it appears under this name once it is complete
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The data folder; no server may run on it meanwhile, and it is not changed
    #[arg(long, value_name = "DATA_DIR")]
    pub(crate) from: PathBuf,
    /// An empty database
    #[arg(long, value_name = "postgres://…")]
    pub(crate) to: Secret,
    /// The NATS servers for the live market's log [default: `cluster.nats_url`]
    #[arg(long, value_name = "nats://…")]
    pub(crate) nats: Option<Secret>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorldName {
    Live,
    Sandbox,
}

impl From<WorldName> for World {
    fn from(name: WorldName) -> Self {
        match name {
            WorldName::Live => Self::Live,
            WorldName::Sandbox => Self::Sandbox,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Print only faults; exit 1 if there is one
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the meaning, values and default of one setting
    #[arg(long, value_name = "KEY", conflicts_with = "check")]
    pub(crate) explain: Option<String>,
}

impl Cli {
    /// Reads a command line; the first argument is the program's own name.
    ///
    /// # Errors
    /// The help is to be printed, or the command line is wrong.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Stop> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let help = misuse::help_of(&Given::command(), &arguments);
        let given =
            Given::try_parse_from(arguments).map_err(|error| misuse::explain(&error, &help))?;
        let command = match (given.command, given.listen) {
            (None, listen) => {
                Command::Serve(ServeArgs { listen, role: Role::All, new_accounts: false })
            }
            (Some(Command::Serve(args)), listen) => {
                Command::Serve(ServeArgs { listen: args.listen.or(listen), ..args })
            }
            (Some(_), Some(_)) => {
                return Err(misuse::sentence("--listen is only for `linesman serve`", &help));
            }
            (Some(command), None) => command,
        };
        if let Command::Replay(args) = &command {
            args.check_token().map_err(|why| misuse::sentence(&why, &help))?;
        }
        if let Command::Get(args) = &command {
            args.path().map_err(|why| misuse::sentence(&why, &help))?;
        }
        if let Command::Record(RecordArgs { from: Some(from), to: Some(to), .. }) = &command
            && from > to
        {
            return Err(misuse::sentence("--from is later than --to", &help));
        }
        Ok(Self { data: given.data, config: given.config, command })
    }
}

/// The command line for clap: the command may be omitted; `--listen` is then given without one.
#[derive(Debug, Parser)]
#[command(
    name = "linesman",
    version,
    about = "A sports odds service that anyone can run",
    after_help = "Examples:\n  linesman\n  linesman keys create --kind production --name \"Acme\"\n  \
                  linesman keys --help\n\nConfiguration: linesman.toml, then LINESMAN_<SECTION>__<KEY>, \
                  then flags; see `linesman config`."
)]
struct Given {
    /// The data folder; `serve` and `init` create it
    #[arg(long, global = true, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// The configuration file [default: linesman.toml in the current folder, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the API (with serve or without a command) [default: server.listen]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    #[command(subcommand)]
    command: Option<Command>,
}

fn parse_name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        Err("a name is required".to_owned())
    } else if text.chars().any(char::is_control) {
        Err("a name may not contain control characters".to_owned())
    } else if text.len() > 100 {
        Err("a name may have at most 100 bytes".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn parse_limit(text: &str) -> Result<u32, String> {
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| format!("must be a whole number from 1 to {}", u32::MAX))
}

fn parse_overlap(text: &str) -> Result<Duration, String> {
    let overlap = parse_duration(text)?;
    if overlap > OVERLAP_MAX { Err("longer than 7d".to_owned()) } else { Ok(overlap) }
}

#[cfg(test)]
mod tests;

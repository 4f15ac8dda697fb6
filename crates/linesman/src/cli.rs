//! The command line: every verb, its arguments and what they mean. Only reading; the verbs themselves are
//! carried out elsewhere.
//!
//! Wrong use becomes one sentence ([`Stop::Misuse`]) in which no key or token is repeated. The names of
//! verbs and flags are a contract with the scripts that call them.

use std::{
    ffi::OsString,
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{Timestamp, World};

use crate::config::{Secret, duration::parse_duration, parse_address};

mod identity;
mod misuse;
pub(crate) mod output;

pub(crate) use identity::{AliasesVerb, EventsVerb, ListerRef};

/// A rotated key may work beside its successor for this long at most (decision D18).
const OVERLAP_MAX: Duration = Duration::from_secs(7 * 86_400);

/// A command line that makes sense.
#[derive(Debug)]
pub(crate) struct Cli {
    pub(crate) data: PathBuf,
    pub(crate) config: Option<PathBuf>,
    pub(crate) verb: Verb,
}

/// Why the program ends before it has begun.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Help or the version was asked for: text for stdout, exit 0.
    Shown(String),
    /// Wrong use: one sentence for stderr, exit 2.
    Misuse(String),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the service (what `linesman` alone does too)
    #[command(
        after_help = "Example:\n  linesman serve --listen 0.0.0.0:8080 --data /var/lib/linesman\n  linesman serve --role api --config cluster.toml"
    )]
    Serve(ServeArgs),
    /// Issue, list, revoke and rotate API keys
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman keys create --kind production --name \"Acme\" --groups combat,golf"
    )]
    Keys(KeysVerb),
    /// Issue, list, revoke, pause and resume the feeds that push prices
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman feeds create pinnacle --bookmaker pinnacle"
    )]
    Feeds(FeedsVerb),
    /// See who runs the service, and let a locked-out operator in again
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman operators list\n  linesman operators link olive@example.com"
    )]
    Operators(OperatorsVerb),
    /// Switch the service status `maintenance` on or off
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman maintenance on --retry-after 10m\n  linesman maintenance off"
    )]
    Maintenance(MaintenanceVerb),
    /// Match the events of several recordings, without a server: what a new feed would be joined to
    #[command(after_help = "Example:\n  linesman match pinnacle.ndjson fanduel.ndjson --json")]
    Match(MatchArgs),
    /// Inspect events; merge or split them
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman events unsure\n  linesman events merge evt_8ZDGX3VOhGx evt_9Tw66sLET2w"
    )]
    Events(EventsVerb),
    /// Export or import learned name aliases
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  linesman aliases export > aliases.ndjson\n  linesman aliases import aliases.ndjson --data other"
    )]
    Aliases(AliasesVerb),
    /// Push recordings into a running service
    #[command(
        after_help = "Example:\n  linesman replay saturday.ndjson --to http://127.0.0.1:8080 --token fk_… --speed 10x"
    )]
    Replay(ReplayArgs),
    /// Print what a world's log holds as a recording for `linesman replay`; a server may run meanwhile
    #[command(
        after_help = "Example:\n  linesman record --world live --from 2026-11-14T18:00:00Z --to 2026-11-14T23:00:00Z > saturday.ndjson\n\n\
                      The recording begins with all that stood at --from, then tells each change up to --to. Replayed into an empty \
                      service, under one feed's token, it shows the same events, prices and scores; ids are new.\n\
                      Every message keeps its own ts. Prices of an old recording are therefore stale in the service they are \
                      replayed into, and events that ended longer ago than market.final_retention leave it again."
    )]
    Record(RecordArgs),
    /// Copy the data folder into a new one that can take its place; a server may run meanwhile
    #[command(
        after_help = "Example:\n  linesman backup --data /var/lib/linesman /backup/2026-11-15\n\n\
                            To restore, stop the server, put the copy where the data folder was, and start."
    )]
    Backup(BackupArgs),
    /// Move a data folder to the servers that many nodes share: an empty PostgreSQL database, and NATS
    #[command(
        after_help = "Example:\n  linesman migrate --from ./data --to postgres://linesman@db.example.com/linesman --nats nats://bus.example.com:4222\n\n\
                      Keys, ids and limits go on as if nothing had happened. The folder is left as it is; start no server on it again."
    )]
    Migrate(MigrateArgs),
    /// Print the effective configuration as TOML, each value with where it came from
    #[command(
        after_help = "Example:\n  linesman config > linesman.toml\n  linesman config --check --config new.toml\n  \
                      linesman config --explain server.listen"
    )]
    Config(ConfigArgs),
    /// Print the OpenAPI 3.1 document
    #[command(after_help = "Example:\n  linesman openapi > openapi.json")]
    Openapi,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where the API is served; port 0 picks a free port and prints it [default: server.listen]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// What this node does among many that share `database.url` and `cluster.nats_url`
    #[arg(long, value_name = "ROLE", default_value = "all")]
    pub(crate) role: Role,
    /// Begin without any key, feed token or account where accounts.db is gone from a folder that was used before
    #[arg(long)]
    pub(crate) new_accounts: bool,
}

/// What a node does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything
    #[default]
    All,
    /// Takes pushes and writes the log, one node at a time; no API
    Ingest,
    /// Serves the API from the log; hands pushes to the node that writes
    Api,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysVerb {
    /// Issue a key; prints the key alone, this once
    #[command(
        after_help = "Example:\n  linesman keys create --kind sandbox --name ci --requests-per-day 1000"
    )]
    Create(KeysCreateArgs),
    /// List the keys, without their secrets
    #[command(after_help = "Example:\n  linesman keys list --json")]
    List(KeysListArgs),
    /// Revoke a key: once this returns, no request with it succeeds
    #[command(after_help = "Example:\n  linesman keys revoke ID_OR_KEY")]
    Revoke(KeysRevokeArgs),
    /// Replace a key; prints the new key alone, this once
    #[command(after_help = "Example:\n  linesman keys rotate ID_OR_KEY --overlap 24h")]
    Rotate(KeysRotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeysCreateArgs {
    /// Which world the key sees: the simulated market or the real one
    #[arg(long)]
    pub(crate) kind: KeyKind,
    /// What the key is called in lists
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Only these sport groups, separated by commas [default: all]
    #[arg(long, value_name = "GROUP,…", value_delimiter = ',', value_parser = parse_name)]
    pub(crate) groups: Vec<String>,
    /// Requests in one minute, UTC [default: 60]
    #[arg(long, value_name = "N")]
    pub(crate) burst_per_minute: Option<NonZeroU32>,
    /// Answers in one day, UTC [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_day: Option<NonZeroU64>,
    /// Answers in one month, UTC [default: no monthly limit]
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_month: Option<NonZeroU64>,
    /// What the key may read beyond sports, books and status
    #[arg(long, default_value = "odds:read")]
    pub(crate) permissions: Permissions,
    /// Create N identical keys, one per line
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    /// Print the whole record as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyKind {
    Sandbox,
    Production,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Permissions {
    #[value(name = "odds:read")]
    OddsRead,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct KeysListArgs {
    /// Print the records as JSON
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
pub(crate) enum FeedsVerb {
    /// Issue a feed's token; prints the token alone, this once
    #[command(
        after_help = "Example:\n  linesman feeds create pinnacle --bookmaker pinnacle\n  linesman feeds create official --bookmaker fanduel --scores"
    )]
    Create(FeedsCreateArgs),
    /// List the feeds, without their tokens
    #[command(after_help = "Example:\n  linesman feeds list")]
    List(FeedsListArgs),
    /// Revoke a feed's token
    #[command(after_help = "Example:\n  linesman feeds revoke pinnacle")]
    Revoke(FeedNameArgs),
    /// Refuse a feed's pushes until it is resumed, also after a restart; its token stays good
    #[command(after_help = "Example:\n  linesman feeds pause pinnacle")]
    Pause(FeedNameArgs),
    /// Take a paused feed's pushes again
    #[command(after_help = "Example:\n  linesman feeds resume pinnacle")]
    Resume(FeedNameArgs),
    /// Take away all that a feed listed: its listings and prices, and the events that no other feed lists
    #[command(
        after_help = "Example:\n  linesman feeds drop pinnacle\n\nWorks while the service runs and while it does not, also for a feed whose token was revoked. \
                      It does not revoke the token: a feed that goes on pushing lists everything anew (linesman feeds revoke, linesman feeds pause)."
    )]
    Drop(FeedNameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FeedsCreateArgs {
    /// The feed's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// The one bookmaker this feed may speak for [default: any]
    #[arg(long, value_name = "KEY", value_parser = parse_name)]
    pub(crate) bookmaker: Option<String>,
    /// Let a feed that speaks for one bookmaker report scores too; one that speaks for any always may
    #[arg(long)]
    pub(crate) scores: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedsListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedNameArgs {
    /// The feed's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorsVerb {
    /// List the operators
    #[command(after_help = "Example:\n  linesman operators list")]
    List,
    /// Print a one-time link with which an operator sets a new password, good for a day
    #[command(
        after_help = "Example:\n  linesman operators link olive@example.com\n  linesman operators link olive@example.com --without-second-factor\n  \
                      linesman operators link --new\n\nWithout an address it is for the only operator; where there is none, it makes the first one."
    )]
    Link(OperatorsLinkArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OperatorsLinkArgs {
    /// The operator's mail address [default: the only operator's]
    #[arg(value_name = "EMAIL", value_parser = parse_name, conflicts_with = "new")]
    pub(crate) email: Option<String>,
    /// A link that makes one more operator instead
    #[arg(long)]
    pub(crate) new: bool,
    /// Turn the operator's second factor off too: phone and recovery codes are lost
    #[arg(long, conflicts_with = "new")]
    pub(crate) without_second_factor: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MaintenanceVerb {
    /// Answer 503 on every endpoint but status, also after a restart
    #[command(after_help = "Example:\n  linesman maintenance on --retry-after 10m")]
    On(MaintenanceOnArgs),
    /// Serve again
    #[command(after_help = "Example:\n  linesman maintenance off")]
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct MaintenanceOnArgs {
    /// When clients are told to come back
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub(crate) retry_after: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    /// Recordings (NDJSON of ingest messages); a feed is named by its file's stem
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recordings (NDJSON of ingest messages)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The service, for example `http://127.0.0.1:8080`
    #[arg(long, value_name = "URL", value_parser = parse_service_url)]
    pub(crate) to: String,
    /// The feed's token
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Secret,
    /// How many times faster than it was recorded, or max: as fast as it goes
    #[arg(long, value_name = "10x|max", default_value = "1x", value_parser = parse_speed)]
    pub(crate) speed: Speed,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Whose log: the real market's or the simulated one's
    #[arg(long)]
    pub(crate) world: WorldName,
    /// The beginning, for example `2026-11-14T18:00:00Z` [default: as far back as the log reaches]
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub(crate) from: Option<Timestamp>,
    /// The end [default: now]
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub(crate) to: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The new folder; it is there under this name once it is whole
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The data folder; no server may run on it meanwhile, and it is left as it is
    #[arg(long, value_name = "DATA_DIR")]
    pub(crate) from: PathBuf,
    /// An empty database
    #[arg(long, value_name = "postgres://…")]
    pub(crate) to: Secret,
    /// Where the live market's log goes [default: `cluster.nats_url`]
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

/// The pace of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    Times(NonZeroU32),
    Max,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Print nothing but what is wrong; exit 1 if anything is
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the meaning of one setting, the values it takes and its default
    #[arg(long, value_name = "KEY", conflicts_with = "check")]
    pub(crate) explain: Option<String>,
}

impl Cli {
    /// Reads a command line; the first argument is the program's own name.
    ///
    /// # Errors
    /// Help was asked for, or the program was used wrongly.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Stop> {
        let given = Given::try_parse_from(arguments).map_err(|error| misuse::explain(&error))?;
        let verb = match (given.verb, given.listen) {
            (None, listen) => {
                Verb::Serve(ServeArgs { listen, role: Role::All, new_accounts: false })
            }
            (Some(Verb::Serve(args)), listen) => {
                Verb::Serve(ServeArgs { listen: args.listen.or(listen), ..args })
            }
            (Some(_), Some(_)) => {
                return Err(misuse::sentence("--listen belongs to `linesman serve`; leave it out"));
            }
            (Some(verb), None) => verb,
        };
        if let Verb::Replay(args) = &verb
            && !args.token.reveal().starts_with("fk_")
        {
            return Err(misuse::sentence(
                "--token takes a feed token, which begins with fk_; make one with `linesman feeds create NAME`",
            ));
        }
        if let Verb::Record(RecordArgs { from: Some(from), to: Some(to), .. }) = &verb
            && from > to
        {
            return Err(misuse::sentence("--from is later than --to"));
        }
        Ok(Self { data: given.data, config: given.config, verb })
    }
}

/// The command line as clap sees it: the verb may be left out, and `--listen` then stands alone.
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
    /// The data folder; made at the first start
    #[arg(long, global = true, value_name = "DIR", default_value = "./data")]
    data: PathBuf,
    /// The configuration file [default: linesman.toml in the current folder, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the API is served (with serve or no verb at all) [default: server.listen]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

fn parse_name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        Err("a name is needed here".to_owned())
    } else if text.chars().any(char::is_control) {
        Err("a name has no control characters".to_owned())
    } else if text.len() > 100 {
        Err("a name has at most 100 bytes".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn parse_overlap(text: &str) -> Result<Duration, String> {
    let overlap = parse_duration(text)?;
    if overlap > OVERLAP_MAX { Err("longer than 7d".to_owned()) } else { Ok(overlap) }
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    text.strip_suffix('x')
        .filter(|times| !times.starts_with('+'))
        .and_then(|times| times.parse().ok())
        .map(Speed::Times)
        .ok_or_else(|| "not a speed such as 1x, 10x or max".to_owned())
}

/// The address without its last slash, so that paths can be put behind it.
fn parse_service_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host.map(|host| host.trim_end_matches('/')) {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        Some(_) | None => Err("not an address such as http://127.0.0.1:8080".to_owned()),
    }
}

#[cfg(test)]
mod tests;

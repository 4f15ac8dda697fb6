//! Arguments of `linesman feeds`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::{ListArgs, parse_name};
use crate::config::duration::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum FeedsCommand {
    /// Create a feed; prints its token for pushing odds, which is shown only once
    #[command(
        after_help = "Example:\n  linesman feeds create pinnacle --bookmaker pinnacle\n  linesman feeds create official --bookmaker fanduel --scores"
    )]
    Create(FeedsCreateArgs),
    /// List feeds, without their tokens
    #[command(after_help = "Example:\n  linesman feeds list")]
    List(ListArgs),
    /// Revoke a feed's token
    #[command(after_help = "Example:\n  linesman feeds revoke pinnacle")]
    Revoke(FeedNameArgs),
    /// Refuse a feed's pushes until it is resumed, also after a restart; its token stays valid
    #[command(after_help = "Example:\n  linesman feeds pause pinnacle")]
    Pause(FeedNameArgs),
    /// Accept a paused feed's pushes again
    #[command(after_help = "Example:\n  linesman feeds resume pinnacle")]
    Resume(FeedNameArgs),
    /// Remove everything a feed listed: its listings and prices, and events that no other feed lists
    #[command(
        after_help = "Example:\n  linesman feeds drop pinnacle\n\nWorks with and without a running service, also for a revoked feed. It does not revoke the token: \
                      a feed that keeps pushing lists everything again (see linesman feeds revoke, linesman feeds pause)."
    )]
    Drop(FeedNameArgs),
    /// Read an adapter's upstream once and report what would be accepted; accepts nothing
    #[command(
        after_help = "Example:\n  linesman feeds check toa\n  linesman feeds check betway --input today.json --json\n\n\
                      Exits with 1 if nothing was read or the input is not in the expected format."
    )]
    Check(FeedsCheckArgs),
    /// Print the messages that an adapter derives from recorded answers or tapes, for `match` and `replay`
    #[command(
        after_help = "Example:\n  linesman feeds translate betway today.json > betway.ndjson"
    )]
    Translate(FeedsTranslateArgs),
    /// List the kinds of adapters with their keys and terms
    #[command(after_help = "Example:\n  linesman feeds kinds")]
    Kinds(ListArgs),
    /// Show the state of the adapters
    #[command(after_help = "Example:\n  linesman feeds status\n  linesman feeds status toa --json")]
    Status(FeedsStatusArgs),
    /// Make an adapter read its upstream now
    #[command(after_help = "Example:\n  linesman feeds read toa")]
    Read(FeedNameArgs),
    /// Show the input that an adapter could not read
    #[command(after_help = "Example:\n  linesman feeds quarantine toa")]
    Quarantine(FeedsSamplesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FeedsCheckArgs {
    /// The adapter's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// How long to listen to a stream or a program, and the time limit of other reads
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) time: Duration,
    /// Recorded answers to read instead of upstream
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "tape")]
    pub(crate) input: Vec<PathBuf>,
    /// A tape to play instead of upstream
    #[arg(long, value_name = "FILE")]
    pub(crate) tape: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedsTranslateArgs {
    /// The adapter's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// Recorded answers, or tapes (`*.tape`, `*.tape.zst`)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FeedsStatusArgs {
    /// The adapter's name [default: all]
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedsSamplesArgs {
    /// The adapter's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedsCreateArgs {
    /// The feed's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// The only bookmaker whose prices this feed may send [default: any]
    #[arg(long, value_name = "KEY", value_parser = parse_name)]
    pub(crate) bookmaker: Option<String>,
    /// Allow scores from a feed with a bookmaker; a feed without one may always send them
    #[arg(long)]
    pub(crate) scores: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedNameArgs {
    /// The feed's name
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
}

//! Arguments of `linesman events` and `linesman aliases`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::EventId;

use crate::cli::ListArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Show an event with each feed's ref, its names and the reason for the match
    #[command(after_help = "Example:\n  linesman events show evt_8ZDGX3VOhGx")]
    Show(ShowArgs),
    /// List possible duplicates, with the reason
    #[command(after_help = "Example:\n  linesman events unsure --json")]
    Unsure(ListArgs),
    /// Merge two events: the newer id becomes an alias of the older, and their names are remembered
    #[command(after_help = "Example:\n  linesman events merge evt_8ZDGX3VOhGx evt_9Tw66sLET2w")]
    Merge(PairArgs),
    /// Split a feed's ref from an event: it gets its former id, or a new one, and is not matched there again
    #[command(after_help = "Example:\n  linesman events split evt_8ZDGX3VOhGx pinnacle:b-991")]
    Split(SplitArgs),
    /// Keep two events separate: they leave the list of possible duplicates and are never merged automatically
    #[command(after_help = "Example:\n  linesman events apart evt_8ZDGX3VOhGx evt_9Tw66sLET2w")]
    Apart(PairArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The event's id, or an id that was merged into it
    #[arg(value_name = "ID", value_parser = parse_event)]
    pub(crate) event: EventId,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PairArgs {
    /// An event
    #[arg(value_name = "A", value_parser = parse_event)]
    pub(crate) one: EventId,
    /// The other event
    #[arg(value_name = "B", value_parser = parse_event)]
    pub(crate) other: EventId,
}

#[derive(Debug, Args)]
pub(crate) struct SplitArgs {
    /// The event
    #[arg(value_name = "ID", value_parser = parse_event)]
    pub(crate) event: EventId,
    /// The ref to split off, with its feed's name
    #[arg(value_name = "FEED:REF", value_parser = parse_lister)]
    pub(crate) lister: ListerRef,
}

/// A feed and its ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListerRef {
    pub(crate) feed: Box<str>,
    pub(crate) reference: Box<str>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AliasesCommand {
    /// Print all learned name aliases, one JSON object per line
    #[command(after_help = "Example:\n  linesman aliases export > aliases.ndjson")]
    Export,
    /// Import aliases of another installation, or your own
    #[command(after_help = "Example:\n  linesman aliases import aliases.ndjson\n\n\
                            A line is {\"sport\":\"mma\",\"name\":\"Kaos Wendt\",\"is\":\"Kalle Wendt\"}; with \"is_not\" instead of \"is\", \
                            they are different people; with \"feed\":\"pinnacle\" it holds for that feed only.")]
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file, as `aliases export` prints it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

fn parse_event(text: &str) -> Result<EventId, String> {
    EventId::parse(text).ok_or_else(|| "not an event id such as evt_8ZDGX3VOhGx".to_owned())
}

fn parse_lister(text: &str) -> Result<ListerRef, String> {
    match text.split_once(':') {
        Some((feed, reference)) if !feed.is_empty() && !reference.is_empty() => {
            Ok(ListerRef { feed: feed.into(), reference: reference.into() })
        }
        _ => Err("not a feed and its ref such as pinnacle:b-991".to_owned()),
    }
}

//! Arguments of the verbs about identities: which events are the same, and what names mean.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::EventId;

#[derive(Debug, Subcommand)]
pub(crate) enum EventsVerb {
    /// Show an event with every feed's ref, names and the reason
    #[command(after_help = "Example:\n  linesman events show evt_8ZDGX3VOhGx")]
    Show(ShowArgs),
    /// List pairs of events that may be one, with the reason
    #[command(after_help = "Example:\n  linesman events unsure --json")]
    Unsure(UnsureArgs),
    /// Two events are one: the younger's id stands for the elder from now on, and their names are remembered
    #[command(after_help = "Example:\n  linesman events merge evt_8ZDGX3VOhGx evt_9Tw66sLET2w")]
    Merge(PairArgs),
    /// A feed's ref is another event: it gets its former id back, or a new one, and is not put there again
    #[command(after_help = "Example:\n  linesman events split evt_8ZDGX3VOhGx pinnacle:b-991")]
    Split(SplitArgs),
    /// Two events are two, however alike: they leave the list of unsure pairs and are never merged by themselves
    #[command(after_help = "Example:\n  linesman events apart evt_8ZDGX3VOhGx evt_9Tw66sLET2w")]
    Apart(PairArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The event's id, or one that stands for it since a merge
    #[arg(value_name = "ID", value_parser = parse_event)]
    pub(crate) event: EventId,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UnsureArgs {
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PairArgs {
    /// One event
    #[arg(value_name = "A", value_parser = parse_event)]
    pub(crate) one: EventId,
    /// The other
    #[arg(value_name = "B", value_parser = parse_event)]
    pub(crate) other: EventId,
}

#[derive(Debug, Args)]
pub(crate) struct SplitArgs {
    /// The event
    #[arg(value_name = "ID", value_parser = parse_event)]
    pub(crate) event: EventId,
    /// The ref that does not belong there, behind its feed's name
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
pub(crate) enum AliasesVerb {
    /// Print everything learnt about names, one JSON object a line
    #[command(after_help = "Example:\n  linesman aliases export > aliases.ndjson")]
    Export,
    /// Take in what another installation has learnt, or what you wrote yourself
    #[command(after_help = "Example:\n  linesman aliases import aliases.ndjson\n\n\
                            A line is {\"sport\":\"mma\",\"name\":\"Kaos Wendt\",\"is\":\"Kalle Wendt\"}; with \"is_not\" instead of \"is\", the \
                            two are two people; with \"feed\":\"pinnacle\" it holds for that feed's spelling only.")]
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

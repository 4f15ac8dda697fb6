//! `linesman events`: shows events and possible duplicates; merges, splits and separates events.
//!
//! Reads from the running server, or from the live world's log if none runs.

use std::path::Path;

use anyhow::Context;
use domain::{Clock, EventId};
use market::{Operation, Snapshot};

use crate::cli::{EventsCommand, ListerRef, output};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::control::{self, ControlCommand, EventView, PairView};
use crate::folder::Folder;
use crate::open;

pub(crate) fn run(config: &Config, data: &Path, command: &EventsCommand) -> anyhow::Result<()> {
    let operation = match command {
        EventsCommand::Show(args) => {
            let shown = show(config, data, args.event)?;
            let text = if args.json { serde_json::to_string(&shown)? } else { shown.to_text() };
            return output::print_line(&text);
        }
        EventsCommand::Unsure(args) => return list_unsure(&unsure(config, data)?, args.json),
        EventsCommand::Merge(args) => Operation::Merge { one: args.one, other: args.other },
        EventsCommand::Apart(args) => Operation::Part { one: args.one, other: args.other },
        EventsCommand::Split(args) => {
            let ListerRef { feed, reference } = args.lister.clone();
            Operation::Split { event: args.event, feed, reference }
        }
    };
    open::operate(config, data, &[operation])
}

/// An event, from the running server or the log.
fn show(config: &Config, data: &Path, event: EventId) -> anyhow::Result<EventView> {
    if let Some(shown) = ask_server(data, &ControlCommand::Show(event))? {
        return Ok(serde_json::from_str(&shown)?);
    }
    let book = open::read_book(config, data)?;
    let profile = book.profile(event).with_context(|| format!("there is no event {event}"))?;
    let snapshot = Snapshot::cut(&book, 0, SystemClock.now(), config.market.stale_after, &[]);
    Ok(EventView::of(&profile, &book, &snapshot))
}

/// The possible duplicates, from the running server or the log.
fn unsure(config: &Config, data: &Path) -> anyhow::Result<Vec<PairView>> {
    if let Some(shown) = ask_server(data, &ControlCommand::Unsure)? {
        return Ok(serde_json::from_str(&shown)?);
    }
    let book = open::read_book(config, data)?;
    Ok(book.unsure().map(|pair| PairView::of(&pair, &book)).collect())
}

/// `None`: no server runs on the folder, or it does not exist.
fn ask_server(data: &Path, command: &ControlCommand) -> anyhow::Result<Option<String>> {
    let folder = Folder::at(data);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(control::ask_server(&folder, command))
}

fn list_unsure(pairs: &[PairView], json: bool) -> anyhow::Result<()> {
    for pair in pairs {
        let line = if json { serde_json::to_string(pair)? } else { pair.to_text() };
        output::print_line(&line)?;
    }
    if pairs.is_empty() && !json {
        output::print_line("no possible duplicates")?;
    }
    Ok(())
}

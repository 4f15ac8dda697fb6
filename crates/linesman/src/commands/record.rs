//! `linesman record`: prints a world's log between two instants as messages for `linesman replay`.
//!
//! It only reads, so a server may run on the folder meanwhile. [`Recorder`] builds the messages; this file finds the
//! start in the log. A line is an ingest message with one additional field, which ingest ignores: `recorded_at`, the
//! time at which the service accepted it, if that differs from `ts`. A replay follows it.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use change_log::{Entry, LogError, LogView};
use domain::{Catalogue, Clock, Timestamp, World};
use engine::{Logged, Replay};
use feeds::push;
use market::{Book, Change, Ids, Recorded, Recorder};

use crate::cli::{RecordArgs, output};
use crate::clock::SystemClock;
use crate::folder::Folder;
use crate::open;

/// Replaced by the ids in the log before any is printed.
const NO_IDS: Ids = Ids::Minted { salt: 0 };

/// The two instants; `from: None` is the beginning of the log.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Option<Timestamp>,
    to: Timestamp,
}

/// A point from which the log can be replayed: the book after an entry.
struct StartPoint {
    after: u64,
    book: Book,
    /// The time of the first entry after it.
    reaches: Timestamp,
}

pub(crate) fn run(
    catalogue: &Arc<Catalogue>,
    data: &Path,
    args: &RecordArgs,
) -> anyhow::Result<()> {
    let world = World::from(args.world);
    let span = Span { from: args.from, to: args.to.unwrap_or_else(|| SystemClock.now()) };
    open::check_folder(data)?;
    let mut out = output::stream();
    let folder = Folder::at(data).log(world);
    let done = record(catalogue, &folder, span, &mut out);
    match done.and_then(|deviations| Ok((deviations, out.flush()?))) {
        Ok((Deviations { inexact, lost }, ())) => {
            if inexact > 0 {
                output::print_error(&format!(
                    "{inexact} events were not recorded exactly, for example because the catalogue no longer has their markets"
                ));
            }
            if lost > 0 {
                let entries = if lost == 1 { "1 entry is" } else { &format!("{lost} entries are") };
                output::print_error(&format!("the log is damaged: {entries} lost"));
            }
            Ok(())
        }
        // For example with `linesman record … | head`.
        Err(error) if is_closed_pipe(&error) => Ok(()),
        Err(error) => Err(error.context(format!("cannot record the log of the {world} world"))),
    }
}

/// How the recording differs from the log.
#[derive(Debug, PartialEq, Eq)]
struct Deviations {
    /// Events that could not be recorded exactly.
    inexact: usize,
    /// Entries of the log that are lost.
    lost: u64,
}

/// Writes the recording; returns its deviations.
fn record(
    catalogue: &Arc<Catalogue>,
    folder: &Path,
    span: Span,
    out: &mut impl Write,
) -> anyhow::Result<Deviations> {
    let view = match LogView::open(folder) {
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            bail!("there is no log at {} yet; a server writes it", folder.display())
        }
        opened => opened?,
    };
    // The reader below registers itself; this holds the position until it has begun.
    let position = view.register()?;
    let start = find_start(&view, catalogue, span.from)?;
    let mut recorder = Recorder::new(start.book, span.from.unwrap_or(start.reaches));
    let mut line = String::new();
    let mut write = |said: Vec<Recorded>| -> io::Result<()> {
        for recorded in said {
            line.clear();
            write_recorded(&recorded, catalogue, &mut line);
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    };
    let mut replay = Replay::from(&view, start.after + 1)?;
    drop(position);
    for logged in replay.by_ref() {
        let Logged { at, change, .. } = logged?;
        if at > span.to {
            break;
        }
        write(recorder.take(&change, at))?;
    }
    write(recorder.finish())?;
    Ok(Deviations { inexact: recorder.inexact_events(), lost: replay.losses().entries })
}

/// The latest point from which everything since `from` can be replayed.
fn find_start(
    view: &LogView,
    catalogue: &Arc<Catalogue>,
    from: Option<Timestamp>,
) -> anyhow::Result<StartPoint> {
    let first = first_entry(view, view.first_seq())?.context("the log is empty")?;
    let mut oldest: Option<StartPoint> = None;
    for seq in view.checkpoints().iter().rev() {
        let Some(start) = start_at_checkpoint(view, catalogue, *seq)? else { continue };
        if from.is_some_and(|from| start.reaches <= from) {
            return Ok(start);
        }
        oldest = Some(start);
    }
    let empty = || Book::new(Arc::clone(catalogue), NO_IDS);
    if view.first_seq() == 1 {
        // The log is complete.
        let reaches = Timestamp::from_millis(first.at_ms);
        return Ok(StartPoint { after: 0, book: empty(), reaches });
    }
    // The book before the first kept entry is unknown, but a new book (`Founded`) depends on nothing before it.
    if let Some((seq, reaches)) = first_founding(view)? {
        let start = StartPoint { after: seq - 1, book: empty(), reaches };
        if from.is_some_and(|from| reaches <= from) {
            return Ok(start);
        }
        oldest = [oldest, Some(start)].into_iter().flatten().min_by_key(|start| start.after);
    }
    let oldest = oldest.context("the log has no beginning and no checkpoint")?;
    match from {
        None => Ok(oldest),
        Some(from) => {
            let reaches = millis_text(oldest.reaches);
            bail!("the log begins at {reaches}, not {from}; use --from {reaches} or later")
        }
    }
}

/// The book of a checkpoint; `None` if it is damaged or gone, or has no entry after it.
fn start_at_checkpoint(
    view: &LogView,
    catalogue: &Arc<Catalogue>,
    seq: u64,
) -> anyhow::Result<Option<StartPoint>> {
    let checkpoint = match view.checkpoint(seq) {
        Err(LogError::Corrupt { .. }) => return Ok(None),
        read => read?,
    };
    let Some(next) = first_entry(view, seq + 1)? else { return Ok(None) };
    let book = Book::from_image(checkpoint.version, &checkpoint.payload, Arc::clone(catalogue))?;
    Ok(Some(StartPoint { after: seq, book, reaches: Timestamp::from_millis(next.at_ms) }))
}

fn first_entry(view: &LogView, from: u64) -> anyhow::Result<Option<Entry>> {
    match view.read_from(from) {
        Err(LogError::NotKept { .. }) => Ok(None),
        reader => Ok(reader?.next().transpose()?),
    }
}

fn first_founding(view: &LogView) -> anyhow::Result<Option<(u64, Timestamp)>> {
    for logged in Replay::from(view, view.first_seq())? {
        if let Logged { seq, at, change: Change::Founded { .. }, .. } = logged? {
            return Ok(Some((seq, at)));
        }
    }
    Ok(None)
}

fn write_recorded(recorded: &Recorded, catalogue: &Catalogue, line: &mut String) {
    push::write_line(&recorded.message, catalogue, line);
    if recorded.message.ts != Some(recorded.at)
        && let Some(open) = line.strip_suffix("}\n").map(str::len)
    {
        line.truncate(open);
        line.push_str(",\"recorded_at\":\"");
        line.push_str(&millis_text(recorded.at));
        line.push_str("\"}\n");
    }
}

fn millis_text(instant: Timestamp) -> String {
    instant.millis_text().map(char::from).iter().collect()
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests;

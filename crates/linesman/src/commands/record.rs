//! `linesman record`: what a world's log holds between two instants, as messages that `linesman replay` takes.
//!
//! It only reads, so a server may run on the folder meanwhile. What the messages are is decided by [`Recorder`];
//! here it is found out from where on the log can be followed. A line is a message of the door with one field more
//! that the door ignores: `recorded_at`, when the service took it, where `ts` says something else. It gives
//! a replay the pace of the time, whatever age the prices had.

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

/// Replaced by what the log says before anybody could see one.
const NO_IDS: Ids = Ids::Minted { salt: 0 };

/// The two instants; without the first, as far back as the log reaches.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Option<Timestamp>,
    to: Timestamp,
}

/// From where the log can be followed: the book as it was after an entry.
struct StartPoint {
    after: u64,
    book: Book,
    /// When the first entry after it was written.
    reaches: Timestamp,
}

pub(crate) fn run(
    catalogue: &Arc<Catalogue>,
    data: &Path,
    args: &RecordArgs,
) -> anyhow::Result<()> {
    let world = World::from(args.world);
    let span = Span { from: args.from, to: args.to.unwrap_or_else(|| SystemClock.now()) };
    let mut out = output::stream();
    let folder = Folder::at(data).log(world);
    let done = record(catalogue, &folder, span, &mut out);
    match done.and_then(|deviations| Ok((deviations, out.flush()?))) {
        Ok((Deviations { inexact, lost }, ())) => {
            if inexact > 0 {
                output::print_error(&format!(
                    "{inexact} events could not be recorded exactly, as where the catalogue no longer has their markets"
                ));
            }
            if lost > 0 {
                let entries = if lost == 1 { "1 entry is" } else { &format!("{lost} entries are") };
                output::print_error(&format!("the log is damaged: {entries} lost"));
            }
            Ok(())
        }
        // `linesman record … | head` has seen what it wanted.
        Err(error) if is_closed_pipe(&error) => Ok(()),
        Err(error) => {
            Err(error.context(format!("the log of the {world} world cannot be recorded")))
        }
    }
}

/// What is not as it was.
#[derive(Debug, PartialEq, Eq)]
struct Deviations {
    /// Events that could not be recorded exactly.
    inexact: usize,
    /// Entries of the log that are lost.
    lost: u64,
}

/// Writes the recording, and says what in it is not as it was.
fn record(
    catalogue: &Arc<Catalogue>,
    folder: &Path,
    span: Span,
    out: &mut impl Write,
) -> anyhow::Result<Deviations> {
    let view = match LogView::open(folder) {
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            bail!("there is none at {}; --data names the data folder", folder.display())
        }
        opened => opened?,
    };
    // The reader below registers itself; this holds until it has begun.
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

/// The latest place from which the log can be followed through all that was accepted from `from` on.
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
        // All there ever was: before it the world was empty.
        let reaches = Timestamp::from_millis(first.at_ms);
        return Ok(StartPoint { after: 0, book: empty(), reaches });
    }
    // What the book was before the first entry kept is not known, but a book that is founded anew needs nothing.
    if let Some((seq, reaches)) = first_founding(view)? {
        let start = StartPoint { after: seq - 1, book: empty(), reaches };
        if from.is_some_and(|from| reaches <= from) {
            return Ok(start);
        }
        oldest = [oldest, Some(start)].into_iter().flatten().min_by_key(|start| start.after);
    }
    let oldest = oldest.context("the log has lost its beginning, and has no checkpoint")?;
    match from {
        None => Ok(oldest),
        Some(from) => {
            let reaches = millis_text(oldest.reaches);
            bail!("it reaches back to {reaches}, not to {from}; use --from {reaches} or later")
        }
    }
}

/// The book of a checkpoint; `None` where that is damaged, or gone, or nothing was logged after it.
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

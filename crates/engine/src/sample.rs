//! A check that publications rebuilt from the archive equal those rebuilt from the log.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use archive::{Archive, Commit, Publication};
use domain::{Catalogue, Timestamp};
use market::book::ImagePart;
use market::{Book, Change};

use crate::archiver::{book_at, continues};
use crate::catalogues::{Catalogues, version_of};
use crate::error::WorldError;
use crate::options::WorldOptions;
use crate::replay::{self, Logged, Replay};

/// The result of checking a publication of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// Rebuilding it from the log gives the same.
    Same,
    Differs,
    /// The archive has it; the log does not reach back to it.
    NotInLog,
}

/// Rebuilds a publication from the archive and, if the log has it, from the log, and compares the results.
///
/// # Errors
/// It cannot be rebuilt from the archive, or the log cannot be read.
pub fn sample(
    options: &WorldOptions,
    archive: &Archive,
    commit: &Commit,
    publication: &Publication,
) -> Result<Sampled, WorldError> {
    let then = publication.catalogue.as_deref();
    let then =
        then.map(|version| Catalogues::new(options).get(Some(archive), version)).transpose()?;
    let catalogue = then.flatten().unwrap_or_else(|| Arc::clone(&options.catalogue));
    let with = (options, Arc::clone(&catalogue));
    let archived = book_at(archive, commit, (publication.lineage, publication.seq), with)?;
    let shown = |book: &Book| shown(options, book, publication);
    Ok(match logged_book(options, &catalogue, publication)? {
        None => Sampled::NotInLog,
        Some(logged) if shown(&logged) == shown(&archived) => Sampled::Same,
        Some(_) => Sampled::Differs,
    })
}

/// The times of the publications that the log has and the archive does not, in the order of their entries.
///
/// # Errors
/// The log cannot be read.
pub fn not_archived(options: &WorldOptions, commit: &Commit) -> Result<Vec<Timestamp>, WorldError> {
    let Some(log) = options.log.view()? else { return Ok(Vec::new()) };
    // Keeps the entries from being deleted while they are read.
    let _position = log.register()?;
    let archived = match commit.lineages.last() {
        Some(last) if continues(&*log, last)? => last.last_seq,
        // Another log, of which the archive has nothing yet.
        Some(_) | None => 0,
    };
    let mut times = Vec::new();
    for logged in Replay::from(&*log, archived.max(log.first_seq()))? {
        let Logged { seq, change, .. } = logged?;
        if let Change::Cut { at } = change
            && seq > archived
        {
            times.push(at);
        }
    }
    Ok(times)
}

/// A hash of everything that clients are sent.
fn shown(options: &WorldOptions, book: &Book, publication: &Publication) -> u64 {
    let published = options.publication(book, publication.seq, publication.published_at);
    let snapshot = &published.snapshot;
    let catalogue = snapshot.catalogue();
    let mut hasher = DefaultHasher::new();
    for (sport, _) in catalogue.sports() {
        let view = snapshot.sport(sport);
        (view.active, view.events_open, view.bookmakers).hash(&mut hasher);
        for source in &view.sources {
            (source.bookmaker, source.stale).hash(&mut hasher);
        }
        for event in &view.events {
            for wire in options.wires {
                wire.render_event(catalogue, event).bytes.hash(&mut hasher);
            }
            let records = event.records.clone().filter_map(|at| view.record(at));
            for record in records {
                record.last_update.hash(&mut hasher);
                for wire in options.wires {
                    wire.render_record(catalogue, event, record).bytes.hash(&mut hasher);
                }
            }
        }
    }
    hasher.finish()
}

/// The book of a publication according to the log.
fn logged_book(
    options: &WorldOptions,
    catalogue: &Arc<Catalogue>,
    publication: &Publication,
) -> Result<Option<Book>, WorldError> {
    let Some(mut log) = options.log.view()? else { return Ok(None) };
    // Keeps the entries from being deleted while they are read.
    let _position = log.register()?;
    let version = catalogue.version();
    let checkpoint = log.checkpoint_up_to(publication.seq.saturating_sub(1))?;
    if checkpoint.is_none() && log.first_seq() != 1 {
        return Ok(None);
    }
    let limited = (options.limits, Arc::clone(catalogue));
    let (mut book, base) = replay::begin(checkpoint.as_ref(), ImagePart::All, limited)?;
    let mut last = version_of(&book).map(str::to_owned);
    let mut replay = Replay::from(&*log, base + 1)?;
    for logged in replay.by_ref() {
        let logged = logged?;
        if let Change::Configured(next) = &logged.change {
            // The state after a time with another catalogue is only in the checkpoints of that time.
            let other = last.replace(next.catalogue.to_string());
            if *next.catalogue != *version && other.is_some_and(|other| other != *next.catalogue) {
                return Ok(None);
            }
        }
        book.absorb(&logged.change, logged.at);
        if logged.seq < publication.seq {
            continue;
        }
        // Another log has another entry with that number; one that lost entries may show something else.
        let same = logged.seq == publication.seq
            && logged.at == publication.at
            && matches!(logged.change, Change::Cut { at } if at == publication.published_at)
            && replay.losses().entries == 0;
        return Ok(same.then_some(book));
    }
    Ok(None)
}

//! The book according to a log: the newest checkpoint, and the entries after it.

use std::sync::Arc;

use change_log::{BatchLimit, Batches, Checkpoint, Entries, Entry, Losses, Position, ReadLog};
use domain::{Catalogue, Timestamp};
use market::book::ImagePart;
use market::{Book, Change, Ids, Limits};

use crate::error::WorldError;

/// An entry of the log, decoded.
#[derive(Debug)]
pub struct Logged {
    pub seq: u64,
    /// Distinguishes this entry from another one that was written with the same number.
    pub checksum: u32,
    pub at: Timestamp,
    pub change: Change,
    /// The length of the encoded change.
    pub bytes: usize,
}

impl Logged {
    /// # Errors
    /// A newer program wrote it.
    pub fn decode(entry: &Entry) -> Result<Self, WorldError> {
        let change = Change::decode(entry.version, &entry.payload)?;
        let at = Timestamp::from_millis(entry.at_ms);
        let (checksum, bytes) = (entry.checksum(), entry.payload.len());
        Ok(Self { seq: entry.seq, checksum, at, change, bytes })
    }
}

/// A book as of an entry of the log, and the position to continue reading the log from.
#[derive(Debug)]
pub struct Base {
    pub book: Book,
    /// The last entry that is in the book; 0 without a checkpoint.
    pub seq: u64,
    /// Number of entries missing between the checkpoint and the first entry of the log.
    pub missing: u64,
    /// Keeps the entries after it from being deleted until they are read.
    pub position: Position,
}

impl Base {
    /// The book of the newest whole checkpoint, or an empty one.
    ///
    /// # Errors
    /// The log cannot be read, or a newer program wrote it.
    pub fn newest<L: ReadLog + ?Sized>(
        log: &mut L,
        catalogue: &Arc<Catalogue>,
    ) -> Result<Self, WorldError> {
        let catalogue = Arc::clone(catalogue);
        let position = log.register()?;
        let (book, seq) = match log.latest_checkpoint()? {
            Some(held) => (Book::from_image(held.version, &held.payload, catalogue)?, held.seq),
            // The log's first entry determines the ids.
            None => (Book::new(catalogue, Ids::Minted { salt: 0 }), 0),
        };
        let missing = log.first_seq().saturating_sub(seq + 1);
        Ok(Self { book, seq, missing, position })
    }
}

/// The entries of a log from one number on, decoded one at a time.
#[derive(Debug)]
pub struct Replay(Entries);

impl Replay {
    /// The entries after a base.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn after<L: ReadLog + ?Sized>(log: &L, base: &Base) -> Result<Self, WorldError> {
        Self::from(log, base.seq + base.missing + 1)
    }

    /// Entries from `seq` on, up to the present end.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn from<L: ReadLog + ?Sized>(log: &L, seq: u64) -> Result<Self, WorldError> {
        Ok(Self(log.read_from(seq)?))
    }

    /// The same in batches of bounded size.
    pub fn batches(self, limit: BatchLimit) -> Batches<Self, Logged, WorldError> {
        Batches::new(self, limit, |logged| logged.bytes)
    }

    /// Entries lost to damage among those read so far.
    pub fn losses(&self) -> Losses {
        self.0.losses()
    }
}

impl Iterator for Replay {
    type Item = Result<Logged, WorldError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.map_err(WorldError::from).and_then(|entry| Logged::decode(&entry)))
    }
}

/// The book of a checkpoint or, without one, the book that a log begins with; and the last entry that is in it.
///
/// # Errors
/// A newer program wrote the checkpoint.
pub(crate) fn begin(
    checkpoint: Option<&Checkpoint>,
    part: ImagePart<'_>,
    (limits, catalogue): (Limits, Arc<Catalogue>),
) -> Result<(Book, u64), WorldError> {
    let (mut book, seq) = match checkpoint {
        Some(Checkpoint { seq, version, payload }) => {
            (Book::from_image_of(*version, payload, catalogue, part)?, *seq)
        }
        // The first entry determines the ids.
        None => (Book::new(catalogue, Ids::Minted { salt: 0 }), 0),
    };
    book.set_limits(limits);
    Ok((book, seq))
}

/// The book of a checkpoint, or the one that a log begins with, rolled forward to entry `last`, and whether no entry
/// before that is lost.
///
/// # Errors
/// The log cannot be read, or a newer program wrote it.
pub(crate) fn book_to(
    log: &dyn ReadLog,
    (checkpoint, last): (Option<&Checkpoint>, u64),
    (limits, catalogue): (Limits, Arc<Catalogue>),
) -> Result<(Book, bool), WorldError> {
    let (mut book, base) = begin(checkpoint, ImagePart::All, (limits, catalogue))?;
    if base == last {
        return Ok((book, true));
    }
    let mut replay = Replay::from(log, base + 1)?;
    for logged in replay.by_ref() {
        let logged = logged?;
        if logged.seq > last {
            break;
        }
        book.absorb(&logged.change, logged.at);
    }
    Ok((book, replay.losses().entries == 0))
}

/// The book according to the present log.
///
/// # Errors
/// The log cannot be read, or a newer program wrote it.
pub fn replay_book<L: ReadLog + ?Sized>(
    log: &mut L,
    catalogue: &Arc<Catalogue>,
) -> Result<Book, WorldError> {
    let mut base = Base::newest(log, catalogue)?;
    for logged in Replay::after(log, &base)? {
        let logged = logged?;
        base.book.absorb(&logged.change, logged.at);
    }
    Ok(base.book)
}

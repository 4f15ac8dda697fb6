//! Reading entries in order across segments.
//!
//! A reader sees the log as it was when the reader was created; one created by the owner never sees bytes that are
//! not yet durable. After damage it continues with the next intact entry and reports its losses: [`Losses`].

use std::{fs::File, ops::RangeInclusive, path::PathBuf, vec};

use crate::{
    error::{Damage, LogError},
    files::{self, name_of},
    frame::{Frame, count_lost},
    position::lock_for_reading,
    segment::{Frames, Header, Segment, Skip},
};

/// Maximum number of gaps listed; a failing disk can have any number.
const GAPS_LISTED_MAX: usize = 100;

/// A place where entries are missing or bytes are damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The segment file and the offset in it.
    pub path: PathBuf,
    pub offset: u64,
    /// Number of unreadable bytes; 0 if the missing entries are not in the file.
    pub bytes: u64,
    /// The numbers of the lost entries; empty if only a file's header is damaged.
    pub seqs: RangeInclusive<u64>,
    pub reason: Damage,
}

impl Gap {
    /// Saves a copy of the bytes next to the log as `*.damaged`, unless it exists already: retention deletes the
    /// segment.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn save_aside(&self) -> Result<(), LogError> {
        let Some(dir) = self.path.parent().filter(|_| self.bytes > 0) else { return Ok(()) };
        let mut damaged = files::read_remainder(&self.path, self.offset)?;
        damaged.truncate(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        let name = format!("{}.at-{}", name_of(&self.path), self.offset);
        files::save_once(dir, &name, &damaged)
    }
}

/// The entries that a reader could not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of lost entries; an upper bound if the damage does not show their number.
    pub entries: u64,
    /// The first gaps, in the order of the log.
    pub gaps: Vec<Gap>,
}

impl Losses {
    fn add(&mut self, gap: Gap) {
        let (first, last) = (*gap.seqs.start(), *gap.seqs.end());
        self.entries += (last + 1).saturating_sub(first);
        if self.gaps.len() < GAPS_LISTED_MAX {
            self.gaps.push(gap);
        }
    }
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub at_ms: i64,
    pub version: u8,
    pub payload: Vec<u8>,
}

impl Entry {
    /// Distinguishes this entry from another one written with the same number.
    pub fn checksum(&self) -> u32 {
        checksum(self.at_ms, self.version, &self.payload)
    }
}

impl From<Frame<'_>> for Entry {
    fn from(frame: Frame<'_>) -> Self {
        let Frame { seq, at_ms, version, payload } = frame;
        Self { seq, at_ms, version, payload: payload.to_vec() }
    }
}

/// As [`Entry::checksum`], for an entry that is being written.
pub(crate) fn checksum(at_ms: i64, version: u8, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&at_ms.to_le_bytes());
    sum.update(&[version]);
    sum.update(payload);
    sum.finalize()
}

/// An iterator over the entries from a given number on. It ends after its first error.
#[derive(Debug)]
pub struct Reader {
    from: u64,
    segments: vec::IntoIter<Segment>,
    current: Option<Frames>,
    /// The current or last read segment, locked: retention deletes neither it nor those after it.
    registered: Option<File>,
    /// The last number that was read or is known to be lost, once a segment was opened.
    last: Option<u64>,
    tail: Tail,
    losses: Losses,
}

/// What the end of the last segment may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Only complete entries: the reader was created by the log's owner.
    Durable,
    /// An unfinished write, in progress or interrupted by a crash.
    Unfinished,
}

impl Reader {
    /// Reads from entry `seq` on; `segments` are all existing ones, oldest first.
    pub(crate) fn over(segments: &[Segment], seq: u64, tail: Tail) -> Result<Self, LogError> {
        let from = seq.max(1);
        if let Some(oldest) = segments.first().filter(|oldest| from <= oldest.follows) {
            let follows = oldest.follows;
            return Err(LogError::NotKept { seq: from, follows });
        }
        let begin = segments.iter().rposition(|s| s.follows < from).unwrap_or(0);
        let segments = segments.get(begin..).unwrap_or_default();
        let registered = segments.first().map(|first| lock_for_reading(&first.path)).transpose()?;
        let (segments, losses) = (Vec::from(segments).into_iter(), Losses::default());
        Ok(Self { from, segments, current: None, registered, last: None, tail, losses })
    }

    /// Losses found so far, from the requested entry on.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    fn read(&mut self) -> Result<Option<Entry>, LogError> {
        loop {
            let Some(frames) = &mut self.current else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            let Some(frame) = frames.next_frame()? else {
                self.finish_segment()?;
                continue;
            };
            let seq = frame.seq;
            let entry = (seq >= self.from).then(|| Entry::from(frame));
            if let Some(skipped) = frames.take_skipped() {
                let path = frames.path().to_owned();
                self.miss(path, skipped, seq - 1);
            }
            self.last = Some(seq);
            if entry.is_some() {
                return Ok(entry);
            }
        }
    }

    /// Opens the next segment, and records the gap before it.
    fn open_next(&mut self) -> Result<bool, LogError> {
        let Some(segment) = self.segments.next() else {
            return Ok(false);
        };
        let last = *self.last.get_or_insert(segment.follows);
        let at_head = |reason| Skip { offset: 0, bytes: 0, reason };
        if segment.header == Header::Damaged {
            self.miss(segment.path.clone(), at_head(Damage::Header), last);
        }
        if last < segment.first - 1 {
            let missing = Damage::Missing { last, next: segment.first };
            self.miss(segment.path.clone(), at_head(missing), segment.first - 1);
        }
        let seq_max = self.segments.as_slice().first().map(|next| next.follows);
        // The next lock is taken before the previous one is released.
        self.registered = Some(lock_for_reading(&segment.path)?);
        self.current = Some(Frames::open(&segment, seq_max)?);
        Ok(true)
    }

    /// Records the unreadable rest after the last intact entry of a segment.
    fn finish_segment(&mut self) -> Result<(), LogError> {
        let Some(frames) = self.current.take() else { return Ok(()) };
        let next = self.segments.as_slice().first();
        // Bytes before a recorded gap were cut off there, or are about to be.
        let is_cut = next.is_some_and(|next| next.has_gap() && frames.due() > next.follows);
        let Some(rest) = frames.rest().filter(|_| !is_cut) else { return Ok(()) };
        let is_last = next.is_none();
        if is_last && self.tail == Tail::Unfinished && frames.is_torn()? {
            return Ok(());
        }
        let last = match next {
            Some(next) => next.follows,
            None => {
                let bytes = files::read_remainder(frames.path(), rest.offset)?;
                frames.due() - 1 + count_lost(&bytes)
            }
        };
        self.miss(frames.path().to_owned(), rest, last);
        Ok(())
    }

    /// Records a gap up to entry `last`.
    fn miss(&mut self, path: PathBuf, skip: Skip, last: u64) {
        let first = self.last.map_or(1, |last| last + 1).max(self.from);
        self.last = self.last.max(Some(last));
        // Entries before the requested one are not losses.
        if first <= last || matches!(skip.reason, Damage::Header | Damage::Trailing) {
            let Skip { offset, bytes, reason } = skip;
            self.losses.add(Gap { path, offset, bytes, seqs: first..=last, reason });
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Entry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.read();
        if entry.is_err() {
            self.segments = Vec::new().into_iter();
            (self.current, self.registered) = (None, None);
        }
        entry.transpose()
    }
}

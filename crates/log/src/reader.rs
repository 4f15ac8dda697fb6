//! Reading entries in order across segments.
//!
//! A reader sees the log as it was when the reader was made; one made by the owner never sees bytes that are
//! not yet durable. Damage ends it with an error that names the file and the byte: nothing is skipped.

use std::{io, vec};

use crate::{
    error::{Damage, LogError},
    files,
    frame::{Frame, is_torn_write},
    segment::{Frames, Header, Segment},
};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub at_ms: i64,
    pub version: u8,
    pub payload: Vec<u8>,
}

impl Entry {
    /// Tells this entry from another one that was written with the same number.
    pub fn mark(&self) -> u32 {
        mark(self.at_ms, self.version, &self.payload)
    }
}

/// As [`Entry::mark`], of an entry that is being written.
pub(crate) fn mark(at_ms: i64, version: u8, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&at_ms.to_le_bytes());
    sum.update(&[version]);
    sum.update(payload);
    sum.finalize()
}

/// An iterator over the entries from one number on. It ends after its first error.
#[derive(Debug)]
pub struct Reader {
    from: u64,
    segments: vec::IntoIter<Segment>,
    current: Option<Current>,
    /// The last entry read, once a segment was opened.
    last: Option<u64>,
    tail: Tail,
}

/// What may stand at the end of the last segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Whole entries: the reader was made by the log's owner.
    Durable,
    /// A write that is under way, or that a crash has interrupted.
    Unfinished,
}

/// The segment being read.
#[derive(Debug)]
struct Current {
    frames: Frames,
    /// The header that comes next, which says where this segment ends.
    next: Option<Segment>,
}

impl Reader {
    /// Reads from entry `seq` on; `segments` are all that are kept, oldest first.
    pub(crate) fn over(segments: &[Segment], seq: u64, tail: Tail) -> Result<Self, LogError> {
        let from = seq.max(1);
        if let Some(oldest) = segments.first().filter(|oldest| from <= oldest.follows) {
            let follows = oldest.follows;
            return Err(LogError::NotKept { seq: from, follows });
        }
        let begin = segments.iter().rposition(|s| s.follows < from).unwrap_or(0);
        let needed = segments.get(begin..).unwrap_or_default().to_vec();
        Ok(Self { from, segments: needed.into_iter(), current: None, last: None, tail })
    }

    fn read(&mut self) -> Result<Option<Entry>, LogError> {
        while self.current.is_some() || self.open_next()? {
            let Some(frame) = (match &mut self.current {
                Some(current) => current.read_after(self.last)?,
                None => None,
            }) else {
                self.current = None;
                continue;
            };
            self.last = Some(frame.seq);
            if frame.seq >= self.from {
                return Ok(Some(Entry {
                    seq: frame.seq,
                    at_ms: frame.at_ms,
                    version: frame.version,
                    payload: frame.payload.to_vec(),
                }));
            }
        }
        Ok(None)
    }

    /// Opens the next segment, and checks that it goes on where the last one ended.
    fn open_next(&mut self) -> Result<bool, LogError> {
        let Some(segment) = self.segments.next() else {
            return Ok(false);
        };
        if segment.header == Header::Damaged {
            return Err(segment.corrupt(0, Damage::Header));
        }
        let follows = segment.follows;
        let last = *self.last.get_or_insert(follows);
        if last != follows {
            return Err(segment.corrupt(0, Damage::Missing { last, follows }));
        }
        let frames = match Frames::open(&segment) {
            Err(LogError::Io { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(LogError::Deleted { path });
            }
            opened => opened?,
        };
        self.current = Some(Current { frames, next: self.segments.as_slice().first().cloned() });
        Ok(true)
    }

    /// Whether what stopped the reader is only the end of what was written by then.
    fn is_torn_end(&self, error: &LogError) -> bool {
        let (LogError::Corrupt { path, offset, .. }, Tail::Unfinished) = (error, self.tail) else {
            return false;
        };
        let Some(Current { frames, next: None }) = &self.current else {
            return false;
        };
        // Bytes that came since would make it look whole.
        let left = usize::try_from(frames.bytes().saturating_sub(*offset)).unwrap_or(usize::MAX);
        files::read_remainder(path, *offset).is_ok_and(|mut tail| {
            tail.truncate(left);
            is_torn_write(&tail, self.last.unwrap_or_default())
        })
    }
}

impl Current {
    /// The frame after entry `last`, or `None` where the segment ends.
    fn read_after(&mut self, last: Option<u64>) -> Result<Option<Frame<'_>>, LogError> {
        let Some(next) = self.next.as_ref().filter(|next| Some(next.follows) == last) else {
            return self.frames.next_frame();
        };
        // Before a gap, what still stands here was overruled by a cut that a crash interrupted.
        if next.has_gap() {
            return Ok(None);
        }
        self.frames.expect_end().map(|()| None)
    }
}

impl Iterator for Reader {
    type Item = Result<Entry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut entry = self.read();
        if let Err(error) = &entry {
            if self.is_torn_end(error) {
                entry = Ok(None);
            }
            self.segments = Vec::new().into_iter();
            self.current = None;
        }
        entry.transpose()
    }
}

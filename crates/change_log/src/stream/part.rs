//! The content of one message of a stream: a part of a longer run of bytes, with its position.
//!
//! `format u8 | writer u64 | part u32 | parts u32 | first u64 | last u64 | tag i64 | bytes`, little-endian. A run is
//! split into parts because servers limit the size of a message. It counts once its last part is stored; parts of an
//! unfinished run are skipped, so that a run is in the stream completely or not at all.

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::{
    bytes::{take, take_u32, take_u64},
    error::Damage,
};

const PART_FORMAT: u8 = 1;
pub(crate) const PART_HEAD_BYTES: usize = 41;
/// Maximum size of a run in bytes: more than any batch of the writer, and a limit on the memory of a reader.
pub(crate) const RUN_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The writer of a run and the entries in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunHead {
    /// Random, chosen by each writer: parts of two writers are never combined into one run.
    pub(crate) writer: u64,
    /// The numbers of the first and last entry in it; `last` is `first - 1` if there is none.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The time of a batch of entries.
    pub(crate) tag: i64,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) head: RunHead,
    /// Counted from 0.
    pub(crate) part: u32,
    pub(crate) parts: u32,
    pub(crate) bytes: Bytes,
}

impl Part {
    pub(crate) fn is_last(&self) -> bool {
        self.part + 1 == self.parts
    }

    /// The last entry that is in the log once this part is stored.
    pub(crate) fn reaches(&self) -> u64 {
        if self.is_last() { self.head.last } else { self.head.first.saturating_sub(1) }
    }

    /// Distinguishes this message from another one written with the same number.
    pub(crate) fn checksum(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.head.writer.to_le_bytes());
        sum.update(&self.bytes);
        sum.finalize()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// It is too short, its counts are inconsistent, or it is of an unknown format.
    pub(crate) fn decode(message: &Bytes) -> Result<Self, Damage> {
        let mut rest: &[u8] = message;
        let format = take(&mut rest).map(u8::from_le_bytes).ok_or(Damage::Header)?;
        if format != PART_FORMAT {
            return Err(Damage::Format(u32::from(format)));
        }
        let fields = (
            take_u64(&mut rest),
            take_u32(&mut rest),
            take_u32(&mut rest),
            take_u64(&mut rest),
            take_u64(&mut rest),
            take(&mut rest).map(i64::from_le_bytes),
        );
        let (Some(writer), Some(part), Some(parts), Some(first), Some(last), Some(tag)) = fields
        else {
            return Err(Damage::Header);
        };
        // An empty batch ends before it begins.
        if part >= parts || first > last.saturating_add(1) {
            return Err(Damage::Header);
        }
        let head = RunHead { writer, first, last, tag };
        Ok(Self { head, part, parts, bytes: message.slice(PART_HEAD_BYTES..) })
    }
}

/// Splits a run into messages whose bodies have at most `part_bytes` bytes.
pub(crate) fn cut(head: RunHead, run: &[u8], part_bytes: usize) -> Vec<Bytes> {
    let bodies: Vec<&[u8]> =
        if run.is_empty() { vec![run] } else { run.chunks(part_bytes.max(1)).collect() };
    let parts = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
    let message = |(part, body): (u32, &&[u8])| {
        let mut message = BytesMut::with_capacity(PART_HEAD_BYTES + body.len());
        message.put_u8(PART_FORMAT);
        message.put_u64_le(head.writer);
        message.put_u32_le(part);
        message.put_u32_le(parts);
        message.put_u64_le(head.first);
        message.put_u64_le(head.last);
        message.put_i64_le(head.tag);
        message.put_slice(body);
        message.freeze()
    };
    (0..).zip(&bodies).map(message).collect()
}

/// Assembles parts into runs.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    head: RunHead,
    parts: u32,
    next: u32,
    bytes: BytesMut,
}

impl Assembler {
    /// Adds the next part of the stream, and returns the run that it completes.
    pub(crate) fn take(&mut self, part: &Part) -> Option<(RunHead, Bytes)> {
        if part.part == 0 {
            self.begun =
                Some(Begun { head: part.head, parts: part.parts, next: 0, bytes: BytesMut::new() });
        }
        let begun = self.begun.as_mut().filter(|begun| {
            begun.head == part.head
                && begun.parts == part.parts
                && begun.next == part.part
                && begun.bytes.len() + part.bytes.len() <= RUN_BYTES_MAX
        });
        // A reader that starts in the middle of a run, or finds an abandoned one, waits for the next.
        let Some(begun) = begun else {
            self.begun = None;
            return None;
        };
        begun.next += 1;
        begun.bytes.extend_from_slice(&part.bytes);
        if begun.next < begun.parts {
            return None;
        }
        self.begun.take().map(|whole| (whole.head, whole.bytes.freeze()))
    }
}

#[cfg(test)]
mod tests;

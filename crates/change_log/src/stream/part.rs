//! What one message of a stream holds: a part of a longer run of bytes, and which one.
//!
//! `format u8 | writer u64 | part u32 | parts u32 | first u64 | last u64 | tag i64 | bytes`, little-endian. A run is
//! cut into parts because servers bound the size of a message. It counts once its last part is there; parts that
//! nobody finished are passed over, so that a run is in the stream whole or not at all. Pure.

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::{
    bytes::{take, take_u32, take_u64},
    error::Damage,
};

const PART_FORMAT: u8 = 1;
pub(crate) const PART_HEAD_BYTES: usize = 41;
/// The most bytes of one run: more than any batch of the writer, and a bound on what a reader gathers.
pub(crate) const RUN_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Whose run it is, and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunHead {
    /// Made at random by each writer: parts of two writers are never taken for one run.
    pub(crate) writer: u64,
    /// The numbers of the first and last entry in it; `last` is `first - 1` where there is none.
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

    /// The last entry that is in the log once this part is.
    pub(crate) fn reaches(&self) -> u64 {
        if self.is_last() { self.head.last } else { self.head.first.saturating_sub(1) }
    }

    /// Tells this message from another one that was written with the same number.
    pub(crate) fn checksum(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.head.writer.to_le_bytes());
        sum.update(&self.bytes);
        sum.finalize()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is too short, counts wrongly, or is of an unknown format.
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
        // A batch of nothing ends before it begins.
        if part >= parts || first > last.saturating_add(1) {
            return Err(Damage::Header);
        }
        let head = RunHead { writer, first, last, tag };
        Ok(Self { head, part, parts, bytes: message.slice(PART_HEAD_BYTES..) })
    }
}

/// Cuts a run into messages whose bodies have at most `part_bytes` bytes.
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

/// Puts parts together as they come.
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
    /// Takes the next part of the stream, and gives the run that it finishes.
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
        // Whoever begins to read in the midst of a run, or finds one that was given up, waits for the next.
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
mod tests {
    use super::*;

    fn head(writer: u64, first: u64) -> RunHead {
        RunHead { writer, first, last: first + 9, tag: -3 }
    }

    fn gather(messages: impl IntoIterator<Item = Bytes>) -> Vec<(RunHead, Vec<u8>)> {
        let mut assembler = Assembler::default();
        let whole = messages.into_iter().filter_map(|m| assembler.take(&Part::decode(&m).unwrap()));
        whole.map(|(head, bytes)| (head, bytes.to_vec())).collect()
    }

    #[test]
    fn a_run_is_the_same_after_it_was_cut_and_gathered() {
        for length in [0, 1, 9, 10, 11, 100] {
            let run: Vec<u8> = (0..length).collect();
            let messages = cut(head(7, 1), &run, 10);
            assert_eq!(messages.len(), usize::from(length).div_ceil(10).max(1));
            assert_eq!(gather(messages), [(head(7, 1), run)]);
        }
    }

    #[test]
    fn a_run_that_was_given_up_is_passed_over() {
        let run = vec![1; 35];
        let given_up = cut(head(1, 5), &run, 10);
        let whole = cut(head(2, 5), &run, 10);
        for end in 0..given_up.len() {
            let stream = given_up.iter().take(end).chain(&whole).cloned();
            assert_eq!(gather(stream), [(head(2, 5), run.clone())], "after {end}");
            let begun_within = given_up.iter().skip(end + 1).chain(&whole).cloned();
            assert_eq!(gather(begun_within).len(), 1);
        }
        let mixed = [given_up[0].clone(), whole[1].clone(), given_up[2].clone()];
        assert_eq!(gather(mixed), []);
    }

    #[test]
    fn what_is_no_part_is_told() {
        let message = cut(head(1, 1), b"x", 10).remove(0);
        for end in 0..PART_HEAD_BYTES {
            assert!(Part::decode(&message.slice(..end)).is_err());
        }
        let mut newer = message.to_vec();
        newer[0] = 9;
        assert_eq!(Part::decode(&Bytes::from(newer)), Err(Damage::Format(9)));
        let empty = RunHead { last: 0, ..head(1, 1) };
        assert!(Part::decode(&cut(empty, b"", 10).remove(0)).is_ok(), "a batch of nothing");
        let backwards = RunHead { last: 3, ..head(1, 5) };
        assert!(Part::decode(&cut(backwards, b"x", 10).remove(0)).is_err());
        let mut wrong = message.to_vec();
        wrong[9] = 1;
        assert_eq!(Part::decode(&Bytes::from(wrong)), Err(Damage::Header), "part 1 of 1");
    }
}

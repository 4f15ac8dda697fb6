//! A segment file: its name, its header, and reading its frames in order.
//!
//! The header contains the number of the segment's first entry and of the last entry before it. They differ by more
//! than one only if numbers were skipped after damage at the log's end.
//!
//! Every frame has its own checksum and number. After a damaged frame, the reader searches for the next intact frame
//! whose number can follow, so that damage loses only the entries it affects.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use crate::{
    bytes::{take, take_u32, take_u64},
    error::{Damage, LogError},
    files::{self, file_bytes, io_at},
    frame::{FRAME_HEAD_BYTES, Frame, decode_frame, frame_bytes, frame_seq},
};

/// `magic 8 | format u32 | first seq u64 | follows seq u64 | crc32 u32`.
pub(crate) const SEGMENT_HEAD_BYTES: u64 = 32;

/// Numbers in file names beyond this are not ours; it leaves room for increments without overflow.
const SEQ_MAX: u64 = u64::MAX / 2;

const SEGMENT_MAGIC: [u8; 8] = *b"LNSM.LOG";
const SEGMENT_FORMAT: u32 = 1;

/// Bytes read at a time: large enough that the cost of system calls is negligible compared with the checksums.
const READ_BYTES: usize = 256 * 1024;

/// How far numbers may jump over damage: more than the entries of a whole segment.
const JUMP_MAX: u64 = 1 << 22;

/// Candidate frames are checksummed over at most this many times the bytes of the segment. Bytes crafted to look like
/// many long frames cost no more; the entries after them are then lost too.
const RESYNC_PASSES: u64 = 4;

/// Properties of a segment file that are known without reading its entries.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) first: u64,
    /// The last entry before this segment; estimated from the name if the header is damaged.
    pub(crate) follows: u64,
    pub(crate) header: Header,
    /// Number of durable bytes: readers stop there.
    pub(crate) bytes: u64,
    /// The latest time of its entries, if known.
    pub(crate) newest_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Whole,
    Damaged,
}

impl Segment {
    /// Reads the header of the segment file named for `first`.
    pub(crate) fn read(dir: &Path, first: u64) -> Result<Self, LogError> {
        let path = dir.join(segment_name(first));
        let mut head = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(SEGMENT_HEAD_BYTES).read_to_end(&mut head))
            .map_err(io_at(&path))?;
        let follows = match decode_header(&head) {
            Some((SEGMENT_FORMAT, named, follows)) if named == first && follows < first => {
                Some(follows)
            }
            Some((format, ..)) if format > SEGMENT_FORMAT => {
                return Err(LogError::UnknownFormat { path, format, known: SEGMENT_FORMAT });
            }
            _ => None,
        };
        Ok(Self {
            first,
            follows: follows.unwrap_or(first.saturating_sub(1)),
            header: follows.map_or(Header::Damaged, |_| Header::Whole),
            bytes: file_bytes(&path)?,
            newest_ms: None,
            path,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes <= SEGMENT_HEAD_BYTES
    }

    /// Whether numbers were skipped just before this segment.
    pub(crate) fn has_gap(&self) -> bool {
        self.follows + 1 < self.first
    }

    /// Whether entries can be searched for. The name gives the first number if the header does not.
    pub(crate) fn is_readable(&self) -> bool {
        self.header == Header::Whole || !self.is_empty()
    }
}

pub(crate) fn segment_name(first: u64) -> String {
    format!("segment-{first:020}.log")
}

pub(crate) fn parse_segment_name(name: &str) -> Option<u64> {
    parse_numbered(name, "segment-", ".log").filter(|first| *first > 0)
}

/// Parses the number in a name like `segment-00000000000000000001.log`.
pub(crate) fn parse_numbered(name: &str, prefix: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let seq = digits.parse().ok().filter(|_| plain)?;
    (seq <= SEQ_MAX).then_some(seq)
}

pub(crate) fn encode_header(first: u64, follows: u64) -> Vec<u8> {
    let mut head = SEGMENT_MAGIC.to_vec();
    head.extend_from_slice(&SEGMENT_FORMAT.to_le_bytes());
    head.extend_from_slice(&first.to_le_bytes());
    head.extend_from_slice(&follows.to_le_bytes());
    let crc = crc32fast::hash(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    head
}

/// Format, first and follows of an intact header.
fn decode_header(head: &[u8]) -> Option<(u32, u64, u64)> {
    let (covered, crc) = head.split_last_chunk::<4>()?;
    let mut rest = covered;
    let ours = take::<8>(&mut rest)? == SEGMENT_MAGIC
        && crc32fast::hash(covered) == u32::from_le_bytes(*crc);
    let fields = (take_u32(&mut rest)?, take_u64(&mut rest)?, take_u64(&mut rest)?);
    ours.then_some(fields)
}

/// The result of scanning a segment's frames.
#[derive(Debug)]
pub(crate) struct Scan {
    /// End of the last intact entry.
    pub(crate) end: u64,
    /// The last intact entry, or the entry before the segment if it has none.
    pub(crate) last: u64,
    pub(crate) newest_ms: Option<i64>,
    /// Why the rest cannot be read, if there is a rest.
    pub(crate) damage: Option<Damage>,
    /// The rest is the result of a crash during a write.
    pub(crate) is_torn: bool,
}

/// Scans all intact frames of a segment.
pub(crate) fn scan(segment: &Segment) -> Result<Scan, LogError> {
    let mut frames = Frames::open(segment, None)?;
    let (mut last, mut newest_ms) = (segment.follows, None);
    while let Some(frame) = frames.next_frame()? {
        last = frame.seq;
        newest_ms = newest_ms.max(Some(frame.at_ms));
    }
    let (end, is_torn) = (frames.offset(), frames.is_torn()?);
    Ok(Scan { end, last, newest_ms, damage: frames.ended.take(), is_torn })
}

/// Unreadable bytes between two intact frames.
#[derive(Debug)]
pub(crate) struct Skip {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) reason: Damage,
}

/// Iterates over the intact frames of one segment in the order of their numbers, skipping damage.
#[derive(Debug)]
pub(crate) struct Frames {
    file: File,
    segment: Segment,
    /// The bytes read ahead are `buffer[start..end]`; `buffer[start]` is at `offset` in the file.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    due: u64,
    /// The highest number possible here, if another segment follows.
    seq_max: Option<u64>,
    /// The bytes skipped before the last returned frame.
    skipped: Option<Skip>,
    /// The damage at `offset` if nothing after it can be read.
    ended: Option<Damage>,
    /// Remaining number of bytes that may be checksummed in search of a frame.
    effort_left: u64,
}

/// A frame at the front of the bytes read ahead.
struct Checked {
    at_ms: i64,
    version: u8,
    used: usize,
}

impl Frames {
    pub(crate) fn open(segment: &Segment, seq_max: Option<u64>) -> Result<Self, LogError> {
        let mut file = File::open(&segment.path).map_err(io_at(&segment.path))?;
        file.seek(SeekFrom::Start(SEGMENT_HEAD_BYTES)).map_err(io_at(&segment.path))?;
        Ok(Self {
            file,
            segment: segment.clone(),
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            offset: SEGMENT_HEAD_BYTES,
            due: segment.first,
            seq_max,
            skipped: None,
            ended: None,
            effort_left: segment.bytes.saturating_mul(RESYNC_PASSES),
        })
    }

    /// Offset of the next frame; at the end, the end of the last intact frame.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn path(&self) -> &Path {
        &self.segment.path
    }

    /// The next expected number.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    pub(crate) fn take_skipped(&mut self) -> Option<Skip> {
        self.skipped.take()
    }

    /// The bytes after the last intact frame, once there are no more frames.
    pub(crate) fn rest(&self) -> Option<Skip> {
        let reason = self.ended.clone()?;
        let bytes = self.segment.bytes.saturating_sub(self.offset);
        Some(Skip { offset: self.offset, bytes, reason })
    }

    /// The next intact frame, or `None` if there are no more.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LogError> {
        if self.offset >= self.segment.bytes || self.ended.is_some() {
            return Ok(None);
        }
        if self.seq_max.is_some_and(|seq_max| self.due > seq_max) {
            self.ended = Some(Damage::Trailing);
            return Ok(None);
        }
        let mut checked = self.check()?;
        if let Err(reason) = checked {
            let offset = self.offset;
            if !self.resync()? {
                self.offset = offset;
                self.ended = Some(reason);
                return Ok(None);
            }
            self.skipped = Some(Skip { offset, bytes: self.offset - offset, reason });
            checked = self.check()?;
        }
        let Ok(Checked { at_ms, version, used }) = checked else { return Ok(None) };
        let (seq, payload) = (self.due, self.start + FRAME_HEAD_BYTES..self.start + used);
        self.consume(used);
        self.due += 1;
        let payload = self.buffer.get(payload).unwrap_or_default();
        Ok(Some(Frame { seq, at_ms, version, payload }))
    }

    /// Whether the bytes after the last intact frame are the result of a crash during a write: one unfinished frame,
    /// or blocks that were never filled. Anything else may have been acknowledged.
    pub(crate) fn is_torn(&self) -> Result<bool, LogError> {
        if self.ended.is_none() || self.effort_left == 0 {
            return Ok(self.ended.is_none());
        }
        let mut rest = files::read_remainder(&self.segment.path, self.offset)?;
        // Bytes written since are ignored.
        let left = self.segment.bytes.saturating_sub(self.offset);
        rest.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let unfinished = frame_bytes(&rest).is_none_or(|claimed| claimed > left);
        Ok(unfinished || rest.iter().all(|byte| *byte == 0))
    }

    /// The frame at this position, if it is intact and has the expected number.
    fn check(&mut self) -> Result<Result<Checked, Damage>, LogError> {
        let expected = self.due;
        if !self.fill(FRAME_HEAD_BYTES as u64)? {
            return Ok(Err(self.overrun(FRAME_HEAD_BYTES as u64)));
        }
        let claimed = frame_bytes(self.ahead()).unwrap_or_default();
        if !self.fill(claimed)? {
            return Ok(Err(self.overrun(claimed)));
        }
        Ok(match decode_frame(self.ahead()) {
            Ok(Some((frame, used))) if frame.seq == expected => {
                Ok(Checked { at_ms: frame.at_ms, version: frame.version, used })
            }
            Ok(Some((Frame { seq: found, .. }, _))) => Err(Damage::Order { found, expected }),
            Ok(None) => Err(self.overrun(claimed)),
            Err(reason) => Err(reason),
        })
    }

    /// Advances to the next intact frame with a number that can follow, and expects that number. `false`: there is
    /// none.
    ///
    /// The number is checked before the checksum, so that noise costs almost nothing. Text from feeds contains no
    /// NUL, and a number contains at least two.
    fn resync(&mut self) -> Result<bool, LogError> {
        let seq_max = self.due.saturating_add(JUMP_MAX).min(self.seq_max.unwrap_or(u64::MAX));
        let due = self.due;
        let follows = |bytes: &[u8]| frame_seq(bytes).is_some_and(|n| n >= due && n <= seq_max);
        while self.fill(FRAME_HEAD_BYTES as u64)? {
            let candidate = self.ahead().windows(FRAME_HEAD_BYTES).position(follows);
            let Some(candidate) = candidate else {
                self.consume(self.ahead().len() + 1 - FRAME_HEAD_BYTES);
                continue;
            };
            self.consume(candidate);
            let claimed = frame_bytes(self.ahead()).unwrap_or(u64::MAX);
            if claimed <= self.segment.bytes.saturating_sub(self.offset) {
                if claimed > self.effort_left {
                    self.effort_left = 0;
                    return Ok(false);
                }
                if self.fill(claimed)?
                    && let Ok(Some((frame, _))) = decode_frame(self.ahead())
                {
                    self.due = frame.seq;
                    return Ok(true);
                }
                self.effort_left -= claimed;
            }
            self.consume(1);
        }
        Ok(false)
    }

    fn ahead(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    fn consume(&mut self, used: usize) {
        self.start += used;
        self.offset += used as u64;
    }

    fn overrun(&self, claimed: u64) -> Damage {
        Damage::Overrun { claimed, left: self.segment.bytes.saturating_sub(self.offset) }
    }

    /// Reads ahead until `wanted` bytes are buffered. `false`: the file does not have them; nothing is allocated
    /// then.
    fn fill(&mut self, wanted: u64) -> Result<bool, LogError> {
        let left = self.segment.bytes.saturating_sub(self.offset);
        let Some(wanted) = usize::try_from(wanted).ok().filter(|_| wanted <= left) else {
            return Ok(false);
        };
        if self.end - self.start >= wanted {
            return Ok(true);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted {
            let free = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.file.read(free) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_at(&self.segment.path)(error)),
            }
        }
        Ok(true)
    }
}

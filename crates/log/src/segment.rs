//! A segment file: its name, its header, and the reading of its frames in order.
//!
//! The header names the first entry of the segment and the last entry before it. The two differ
//! by more than one only where numbers were given up after damage: that is the written-down gap, and
//! the only jump that readers accept.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use crate::{
    bytes::{take, take_u32, take_u64},
    error::{Damage, LogError},
    files::{file_bytes, io_at},
    frame::{FRAME_HEAD_BYTES, Frame, decode_frame, frame_bytes},
};

/// `magic 8 | format u32 | first seq u64 | follows seq u64 | crc32 u32`.
pub(crate) const SEGMENT_HEAD_BYTES: u64 = 32;

/// Numbers in file names beyond this are not ours; it leaves room to count on without overflow.
const SEQ_MAX: u64 = u64::MAX / 2;

const SEGMENT_MAGIC: [u8; 8] = *b"LNSM.LOG";
const SEGMENT_FORMAT: u32 = 1;

/// Bytes read at a time: large enough that system calls vanish beside the checksums.
const READ_BYTES: usize = 256 * 1024;

/// What is known of one segment file without reading its entries.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) first: u64,
    /// The last entry before this segment; a guess from the name where the header is damaged.
    pub(crate) follows: u64,
    pub(crate) header: Header,
    /// The durable bytes: readers stop here.
    pub(crate) bytes: u64,
    /// The latest time of its entries, where it is known already.
    pub(crate) newest_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Whole,
    Damaged,
}

impl Segment {
    /// Reads the header of the segment file that is named for `first`.
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

    /// Whether numbers were given up just before this segment.
    pub(crate) fn has_gap(&self) -> bool {
        self.follows + 1 < self.first
    }

    /// The error for damage at `offset` of this file.
    pub(crate) fn corrupt(&self, offset: u64, reason: Damage) -> LogError {
        LogError::Corrupt { path: self.path.clone(), offset, reason }
    }
}

pub(crate) fn segment_name(first: u64) -> String {
    format!("segment-{first:020}.log")
}

pub(crate) fn parse_segment_name(name: &str) -> Option<u64> {
    parse_numbered(name, "segment-", ".log").filter(|first| *first > 0)
}

/// Reads the number of a name like `segment-00000000000000000001.log`.
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

/// Format, first and follows of a header that is whole.
fn decode_header(head: &[u8]) -> Option<(u32, u64, u64)> {
    let (covered, crc) = head.split_last_chunk::<4>()?;
    let mut rest = covered;
    let ours = take::<8>(&mut rest)? == SEGMENT_MAGIC
        && crc32fast::hash(covered) == u32::from_le_bytes(*crc);
    let fields = (take_u32(&mut rest)?, take_u64(&mut rest)?, take_u64(&mut rest)?);
    ours.then_some(fields)
}

/// What a walk over a segment's frames found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Where the last whole entry ends.
    pub(crate) end: u64,
    /// The last whole entry, or the one the segment follows when it has none.
    pub(crate) last: u64,
    pub(crate) newest_ms: Option<i64>,
    pub(crate) damage: Option<Damage>,
}

/// Walks the whole frames of a segment up to entry `seq_max`, or to the first damage.
pub(crate) fn scan(segment: &Segment, seq_max: u64) -> Result<Scan, LogError> {
    let mut found =
        Scan { end: SEGMENT_HEAD_BYTES, last: segment.follows, newest_ms: None, damage: None };
    if segment.header == Header::Damaged {
        found.damage = Some(Damage::Header);
        return Ok(found);
    }
    let mut frames = Frames::open(segment)?;
    while found.last < seq_max {
        match frames.next_frame() {
            Ok(Some(frame)) if frame.seq <= seq_max => {
                found.last = frame.seq;
                found.newest_ms = found.newest_ms.max(Some(frame.at_ms));
                found.end = frames.offset();
            }
            Ok(_) => break,
            Err(LogError::Corrupt { reason, .. }) => {
                found.damage = Some(reason);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Streams the frames of one segment, checking checksums and that numbers follow one another.
#[derive(Debug)]
pub(crate) struct Frames {
    file: File,
    segment: Segment,
    /// The bytes read ahead are `buffer[start..end]`; `buffer[start]` stands at `offset` in the file.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    due: u64,
}

impl Frames {
    pub(crate) fn open(segment: &Segment) -> Result<Self, LogError> {
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
        })
    }

    /// How long the segment was when it was looked at.
    pub(crate) fn bytes(&self) -> u64 {
        self.segment.bytes
    }

    /// Where the next frame begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next frame, or `None` at the clean end of the segment.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LogError> {
        if self.offset >= self.segment.bytes {
            return Ok(None);
        }
        self.fill(FRAME_HEAD_BYTES as u64)?;
        let claimed = frame_bytes(self.ahead()).unwrap_or_default();
        self.fill(claimed)?;
        let expected = self.due;
        let checked = match decode_frame(self.ahead()) {
            Ok(Some((frame, used))) if frame.seq == expected => {
                Ok((frame.at_ms, frame.version, used))
            }
            Ok(Some((Frame { seq: found, .. }, _))) => Err(Damage::Order { found, expected }),
            Ok(None) => Err(self.overrun(claimed)),
            Err(reason) => Err(reason),
        };
        let (at_ms, version, used) =
            checked.map_err(|reason| self.segment.corrupt(self.offset, reason))?;
        let payload = self.start + FRAME_HEAD_BYTES..self.start + used;
        self.consume(used);
        self.due += 1;
        Ok(Some(Frame {
            seq: expected,
            at_ms,
            version,
            payload: self.buffer.get(payload).unwrap_or_default(),
        }))
    }

    /// Checks that nothing follows the frames read so far.
    pub(crate) fn expect_end(&self) -> Result<(), LogError> {
        if self.offset < self.segment.bytes {
            return Err(self.segment.corrupt(self.offset, Damage::Trailing));
        }
        Ok(())
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

    /// Reads ahead until `wanted` bytes are there. What the file cannot hold is never allocated.
    fn fill(&mut self, wanted: u64) -> Result<(), LogError> {
        let left = self.segment.bytes.saturating_sub(self.offset);
        let Some(wanted) = usize::try_from(wanted).ok().filter(|_| wanted <= left) else {
            return Err(self.segment.corrupt(self.offset, self.overrun(wanted)));
        };
        if self.end - self.start >= wanted {
            return Ok(());
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
                Ok(0) => {
                    let reason = self.overrun(wanted as u64);
                    return Err(self.segment.corrupt(self.offset, reason));
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_at(&self.segment.path)(error)),
            }
        }
        Ok(())
    }
}

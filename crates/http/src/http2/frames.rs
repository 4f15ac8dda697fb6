//! The frames that a client sends, as far as time limits need them: the time since when one is incomplete.
//!
//! Hyper waits for the rest of a frame, and for the rest of a head in several frames, for as long as the connection
//! lives, and does not report it.

use tokio::time::Instant;

/// Length of the connection preface, before the first frame.
const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The position of a connection within its frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Bytes of the preface received.
    preface: usize,
    header: [u8; HEADER_BYTES],
    /// Bytes of the frame's header received.
    header_bytes: usize,
    /// Bytes of the frame's payload still missing.
    left: usize,
    /// True if a head has begun and its last frame did not end it.
    in_head: bool,
    since: Option<Instant>,
}

impl Frames {
    /// Notes bytes that were read.
    pub(super) fn note(&mut self, mut bytes: &[u8], now: Instant) {
        let preface = bytes.len().min(PREFACE_BYTES - self.preface);
        self.preface += preface;
        bytes = bytes.get(preface..).unwrap_or_default();
        while !bytes.is_empty() {
            let taken = if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.left -= taken;
                taken
            } else {
                self.note_header(bytes, now)
            };
            bytes = bytes.get(taken..).unwrap_or_default();
            if self.left == 0 && self.header_bytes == HEADER_BYTES {
                self.header_bytes = 0;
                if !self.in_head {
                    self.since = None;
                }
            }
        }
    }

    /// Time since when hyper waits for the rest of something before it can process it. A body may take its time; its
    /// reader measures that.
    pub(super) fn incomplete_since(&self) -> Option<Instant> {
        self.since
    }

    /// Consumes bytes of a frame's header, and returns their number.
    fn note_header(&mut self, bytes: &[u8], now: Instant) -> usize {
        self.since.get_or_insert(now);
        let mut taken = 0;
        for (own, byte) in self.header.iter_mut().skip(self.header_bytes).zip(bytes) {
            *own = *byte;
            taken += 1;
        }
        self.header_bytes += taken;
        if self.header_bytes == HEADER_BYTES {
            let [a, b, c, kind, flags, ..] = self.header;
            self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            match kind {
                DATA => self.since = None,
                HEADERS | CONTINUATION => self.in_head = flags & END_HEADERS == 0,
                _ => {}
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = u8::try_from(payload).unwrap();
        [vec![0, 0, length, kind, flags, 0, 0, 0, 1], vec![7; payload]].concat()
    }

    /// True if something is incomplete after these bytes, however they arrive.
    fn is_incomplete(frames: &[Vec<u8>]) -> bool {
        let bytes = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frames.concat()].concat();
        let now = Instant::now();
        let found: Vec<bool> = (1..=bytes.len())
            .map(|step| {
                let mut frames = Frames::default();
                bytes.chunks(step).for_each(|part| frames.note(part, now));
                frames.incomplete_since().is_some()
            })
            .collect();
        assert!(found.iter().all(|one| *one == found[0]));
        found[0]
    }

    #[test]
    fn a_head_is_whole_with_its_last_frame() {
        let settings = frame(4, 0, 12);
        assert!(!is_incomplete(&[]));
        assert!(!is_incomplete(&[settings.clone(), frame(HEADERS, END_HEADERS, 20)]));
        assert!(is_incomplete(&[settings.clone(), frame(HEADERS, 0, 20)]));
        assert!(is_incomplete(&[frame(HEADERS, 0, 20), frame(CONTINUATION, 0, 5)]));
        assert!(!is_incomplete(&[frame(HEADERS, 0, 0), frame(CONTINUATION, END_HEADERS, 5)]));
        assert!(is_incomplete(&[settings, frame(HEADERS, END_HEADERS, 20)[..12].to_vec()]));
        assert!(is_incomplete(&[vec![0]]));
    }

    #[test]
    fn a_body_may_take_its_time() {
        let head = frame(HEADERS, END_HEADERS, 20);
        assert!(!is_incomplete(&[head.clone(), frame(DATA, 0, 50)[..20].to_vec()]));
        assert!(is_incomplete(&[head, frame(DATA, 0, 50), vec![0, 0]]));
    }
}

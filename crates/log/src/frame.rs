//! One entry as bytes: `crc32 | payload length u32 | seq u64 | at_ms i64 | version u8 | payload`.
//!
//! All numbers are little-endian. The checksum covers everything after itself, the length too, so that
//! a changed length cannot pass for a shorter entry. Decoding is a pure function over a slice and
//! allocates nothing: it is a fuzz target.

use crate::{
    bytes::{take, take_u32, take_u64},
    error::Damage,
};

/// Bytes of a frame before its payload: the size of the smallest frame.
pub const FRAME_HEAD_BYTES: usize = 25;

/// One entry, borrowed from the bytes it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub seq: u64,
    pub at_ms: i64,
    pub version: u8,
    pub payload: &'a [u8],
}

/// Decodes the frame at the front of `bytes`, and says how many bytes it took.
///
/// `Ok(None)` means that the bytes end before the frame does.
///
/// # Errors
/// When the frame is all there and its checksum does not match.
pub fn decode_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Damage> {
    let Some(whole) = frame_bytes(bytes)
        .and_then(|claimed| usize::try_from(claimed).ok())
        .and_then(|claimed| bytes.get(..claimed))
    else {
        return Ok(None);
    };
    Ok(decode_whole(whole)?.map(|frame| (frame, whole.len())))
}

/// Appends one frame to `out`. The caller has checked that the payload's length fits.
pub(crate) fn encode_frame(out: &mut Vec<u8>, frame: Frame<'_>, payload_bytes: u32) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&payload_bytes.to_le_bytes());
    out.extend_from_slice(&frame.seq.to_le_bytes());
    out.extend_from_slice(&frame.at_ms.to_le_bytes());
    out.push(frame.version);
    out.extend_from_slice(frame.payload);
    if let Some((crc, covered)) =
        out.get_mut(start..).and_then(|frame| frame.split_first_chunk_mut::<4>())
    {
        *crc = crc32fast::hash(covered).to_le_bytes();
    }
}

/// The whole length that the frame at the front claims, once enough of it is there to say so.
pub(crate) fn frame_bytes(mut bytes: &[u8]) -> Option<u64> {
    let _crc = take_u32(&mut bytes)?;
    let payload_bytes = take_u32(&mut bytes)?;
    Some(FRAME_HEAD_BYTES as u64 + u64::from(payload_bytes))
}

/// Whether `tail`, what is left after entry `last`, is what a crash in the middle of a write leaves.
///
/// That is one unfinished frame, or blocks that were never filled. Anything else (a whole frame
/// that fails its checksum, or whole frames behind a bad one) may have been acknowledged.
pub(crate) fn is_torn_write(tail: &[u8], last: u64) -> bool {
    let unfinished = frame_bytes(tail).is_none_or(|claimed| claimed > tail.len() as u64);
    tail.iter().all(|byte| *byte == 0) || (unfinished && !holds_whole_frame(tail, last))
}

/// The most frames that `bytes` bytes can hold.
pub(crate) fn frames_max(bytes: u64) -> u64 {
    bytes / FRAME_HEAD_BYTES as u64
}

fn decode_whole(whole: &[u8]) -> Result<Option<Frame<'_>>, Damage> {
    let mut rest = whole;
    let Some(crc) = take_u32(&mut rest) else {
        return Ok(None);
    };
    if crc32fast::hash(rest) != crc {
        return Err(Damage::Checksum);
    }
    Ok(decode_fields(rest))
}

fn decode_fields(mut rest: &[u8]) -> Option<Frame<'_>> {
    let _payload_bytes = take_u32(&mut rest)?;
    Some(Frame {
        seq: take_u64(&mut rest)?,
        at_ms: take(&mut rest).map(i64::from_le_bytes)?,
        version: take(&mut rest).map(u8::from_le_bytes)?,
        payload: rest,
    })
}

/// Looks for a whole frame at every byte after the first.
///
/// The number is looked at before the checksum: only numbers that could be due within
/// so many bytes count, so that a long run of noise costs no checksums over long claims.
fn holds_whole_frame(tail: &[u8], last: u64) -> bool {
    let seq_max = last.saturating_add(frames_max(tail.len() as u64) + 1);
    (1..tail.len()).any(|start| {
        let candidate = tail.get(start..).unwrap_or_default();
        candidate
            .get(8..)
            .and_then(|mut fields| take_u64(&mut fields))
            .is_some_and(|seq| seq > last && seq <= seq_max)
            && matches!(decode_frame(candidate), Ok(Some(_)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(seq: u64, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let frame = Frame { seq, at_ms: -5, version: 3, payload };
        encode_frame(&mut out, frame, u32::try_from(payload.len()).unwrap());
        out
    }

    #[test]
    fn a_frame_comes_back_and_every_prefix_is_unfinished() {
        let bytes = encoded(7, b"hello");
        let (frame, used) = decode_frame(&bytes).unwrap().unwrap();
        assert_eq!((frame.seq, frame.at_ms, frame.version), (7, -5, 3));
        assert_eq!((frame.payload, used), (&b"hello"[..], bytes.len()));
        for end in 0..bytes.len() {
            assert_eq!(decode_frame(&bytes[..end]), Ok(None));
            assert!(is_torn_write(&bytes[..end], 6));
        }
    }

    #[test]
    fn a_bad_frame_with_a_whole_one_behind_it_is_not_a_torn_write() {
        let mut bytes = encoded(7, b"hello");
        bytes[6] = 0xff;
        assert!(is_torn_write(&bytes, 6), "claims more than is there");
        bytes.extend(encoded(8, b"after"));
        assert!(!is_torn_write(&bytes, 6));
        assert!(is_torn_write(&[0; 100], 6));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some((frame, used))) = decode_frame(&bytes) {
                prop_assert_eq!(encoded(frame.seq, frame.payload).len(), used);
            }
        }
    }
}

//! One entry as bytes: `crc32 | payload length u32 | seq u64 | at_ms i64 | version u8 | payload`.
//!
//! All numbers are little-endian. The checksum covers everything after itself, including the length, so that a
//! changed length cannot make an entry look shorter. Decoding is a pure function of a slice and allocates nothing; a
//! fuzz target covers it.

use crate::{
    bytes::{take, take_u32, take_u64},
    error::{Damage, LogError},
};

/// Bytes of a frame before its payload: the size of the smallest frame.
pub const FRAME_HEAD_BYTES: usize = 25;

/// One entry, borrowed from the bytes that it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub seq: u64,
    pub at_ms: i64,
    pub version: u8,
    pub payload: &'a [u8],
}

/// Decodes the frame at the front of `bytes`, and returns its length.
///
/// `Ok(None)` means that the bytes end before the frame does.
///
/// # Errors
/// When the frame is complete and its checksum does not match.
pub fn decode_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Damage> {
    let Some(whole) = frame_bytes(bytes)
        .and_then(|claimed| usize::try_from(claimed).ok())
        .and_then(|claimed| bytes.get(..claimed))
    else {
        return Ok(None);
    };
    Ok(decode_whole(whole)?.map(|frame| (frame, whole.len())))
}

/// Appends entries with their times and versions to `out` as frames, numbered after `last`. Returns the last number.
pub(crate) fn encode_batch<'a>(
    out: &mut Vec<u8>,
    mut last: u64,
    payload_bytes_max: u32,
    entries: impl IntoIterator<Item = (i64, u8, &'a [u8])>,
) -> Result<u64, LogError> {
    for (at_ms, version, payload) in entries {
        let payload_bytes = u32::try_from(payload.len()).ok().filter(|n| *n <= payload_bytes_max);
        let payload_bytes = payload_bytes.ok_or(LogError::TooLarge {
            bytes: payload.len() as u64,
            bytes_max: u64::from(payload_bytes_max),
        })?;
        last += 1;
        encode_frame(out, Frame { seq: last, at_ms, version, payload }, payload_bytes);
    }
    Ok(last)
}

fn encode_frame(out: &mut Vec<u8>, frame: Frame<'_>, payload_bytes: u32) {
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

/// The total length that the frame at the front claims, if enough of it is present.
pub(crate) fn frame_bytes(mut bytes: &[u8]) -> Option<u64> {
    let _crc = take_u32(&mut bytes)?;
    let payload_bytes = take_u32(&mut bytes)?;
    Some(FRAME_HEAD_BYTES as u64 + u64::from(payload_bytes))
}

/// The number of the frame at the front, complete or not.
pub(crate) fn frame_seq(bytes: &[u8]) -> Option<u64> {
    take_u64(&mut bytes.get(8..)?)
}

/// Maximum number of entries that `bytes` can have held, none of which can be read. If the claimed lengths add up
/// exactly, only contents are damaged, and the frames can be counted.
pub(crate) fn count_lost(bytes: &[u8]) -> u64 {
    let (mut rest, mut count) = (bytes, 0);
    while !rest.is_empty() {
        let claimed = frame_bytes(rest).and_then(|claimed| usize::try_from(claimed).ok());
        match claimed.and_then(|claimed| rest.get(claimed..)) {
            Some(behind) => rest = behind,
            None => return (bytes.len() / FRAME_HEAD_BYTES).max(1) as u64,
        }
        count += 1;
    }
    count
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

#[cfg(test)]
mod tests;

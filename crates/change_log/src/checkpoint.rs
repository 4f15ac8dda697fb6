//! A checkpoint file: the owner's state as of one entry, in one piece.
//!
//! `magic 8 | format u32 | seq u64 | version u8 | payload length u64 | crc32 u32 | payload`; the checksum covers
//! everything but the magic and itself. A file is written whole or not at all, so damage means a fault of the disk.

use std::{fs, io, path::Path};

use crate::{
    bytes::{take, take_u32, take_u64},
    error::{Damage, LogError},
    files::{io_at, write_whole},
    segment::parse_numbered,
};

const CHECKPOINT_MAGIC: [u8; 8] = *b"LNSM.CKP";
const CHECKPOINT_FORMAT: u32 = 1;

/// The owner's state after the entry `seq` and all before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: u64,
    pub version: u8,
    pub payload: Vec<u8>,
}

/// Decodes the bytes of a checkpoint file.
///
/// # Errors
/// When the file is damaged or truncated, has trailing bytes, or is of an unknown format.
pub fn decode_checkpoint(bytes: &[u8]) -> Result<Checkpoint, Damage> {
    let (covered, crc, payload) = split(bytes).ok_or(Damage::Header)?;
    let mut rest = covered;
    let fields = (
        take_u32(&mut rest),
        take_u64(&mut rest),
        take(&mut rest).map(u8::from_le_bytes),
        take_u64(&mut rest),
    );
    let (Some(format), Some(seq), Some(version), Some(claimed)) = fields else {
        return Err(Damage::Header);
    };
    let left = payload.len() as u64;
    if claimed != left {
        return Err(Damage::Overrun { claimed, left });
    }
    if checksum(covered, payload) != crc {
        return Err(Damage::Checksum);
    }
    if format != CHECKPOINT_FORMAT {
        return Err(Damage::Format(format));
    }
    Ok(Checkpoint { seq, version, payload: payload.to_vec() })
}

pub(crate) fn checkpoint_name(seq: u64) -> String {
    format!("checkpoint-{seq:020}.ckp")
}

pub(crate) fn parse_checkpoint_name(name: &str) -> Option<u64> {
    parse_numbered(name, "checkpoint-", ".ckp")
}

pub(crate) fn write(dir: &Path, seq: u64, version: u8, payload: &[u8]) -> Result<(), LogError> {
    write_whole(dir, &checkpoint_name(seq), &[&encode_head(seq, version, payload), payload])
}

/// Everything before the payload of a checkpoint.
pub(crate) fn encode_head(seq: u64, version: u8, payload: &[u8]) -> Vec<u8> {
    let mut covered = CHECKPOINT_FORMAT.to_le_bytes().to_vec();
    covered.extend_from_slice(&seq.to_le_bytes());
    covered.push(version);
    covered.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let crc = checksum(&covered, payload).to_le_bytes();
    [&CHECKPOINT_MAGIC, covered.as_slice(), &crc].concat()
}

/// Reads the checkpoint at `seq`; a missing one counts as damaged.
pub(crate) fn read(dir: &Path, seq: u64) -> Result<Checkpoint, LogError> {
    let path = dir.join(checkpoint_name(seq));
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(io_at(&path)),
    }?;
    let reason = match decode_checkpoint(&bytes) {
        Ok(checkpoint) if checkpoint.seq == seq => return Ok(checkpoint),
        Ok(_) => Damage::Header,
        Err(Damage::Format(format)) => {
            let known = CHECKPOINT_FORMAT;
            return Err(LogError::UnknownFormat { path, format, known });
        }
        Err(reason) => reason,
    };
    Err(LogError::Corrupt { path, offset: 0, reason })
}

/// The covered fields, the checksum and the payload of a file that begins with our magic.
fn split(bytes: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (covered, mut rest) = rest.split_first_chunk::<21>()?;
    let crc = take_u32(&mut rest)?;
    (*magic == CHECKPOINT_MAGIC).then_some((covered.as_slice(), crc, rest))
}

fn checksum(covered: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(covered);
    hasher.update(payload);
    hasher.finalize()
}

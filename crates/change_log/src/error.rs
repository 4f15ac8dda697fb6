//! The errors of a log.

use std::{io, path::PathBuf};

/// Why bytes on disk differ from those that were written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file's header is too short, not one of ours, or fails its checksum.
    #[error("the file header is not whole")]
    Header,
    /// The checksum does not match the bytes.
    #[error("the checksum does not match")]
    Checksum,
    /// A frame or payload claims more bytes than the file has left.
    #[error("{claimed} bytes expected, {left} present")]
    Overrun { claimed: u64, left: u64 },
    /// An intact entry has another number than the expected one.
    #[error("entry {found} found in place of entry {expected}")]
    Order { found: u64, expected: u64 },
    /// Entries before a segment are missing: a file is gone, or damage at the end of the log was cut off.
    #[error("entry {next} comes after entry {last}")]
    Missing { last: u64, next: u64 },
    /// A finished segment has bytes after its last entry.
    #[error("bytes after the last entry of a finished segment")]
    Trailing,
    /// The bytes are intact, but in a format that this program does not read.
    #[error("unknown format {0}")]
    Format(u32),
}

/// Why an operation on the log failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system refused.
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A whole file on disk, or data on the servers, is damaged; damaged entries in files are skipped instead.
    #[error("{} is damaged at byte {offset}: {reason}", path.display())]
    Corrupt { path: PathBuf, offset: u64, reason: Damage },
    /// A newer program wrote this file.
    #[error("{} has format {format}, and this program reads format {known}", path.display())]
    UnknownFormat { path: PathBuf, format: u32, known: u32 },
    /// An entry exceeds the configured limit; nothing of its batch was written.
    #[error("an entry of {bytes} bytes exceeds the maximum of {bytes_max}")]
    TooLarge { bytes: u64, bytes_max: u64 },
    /// The requested entry was deleted by retention.
    #[error("entry {seq} is no longer kept; the log begins after entry {follows}")]
    NotKept { seq: u64, follows: u64 },
    /// Retention deleted entries before the reader read them: the reader lagged for longer than retention waits.
    #[error("retention deleted {} before it was read; read again from the newest checkpoint", path.display())]
    CannotCatchUp { path: PathBuf },
    /// A checkpoint must not be older than the newest one, nor beyond the log.
    #[error("a checkpoint at {seq} is outside {newest}..={last}")]
    CheckpointOutOfRange { seq: u64, newest: u64, last: u64 },
    /// The servers that hold the log do not answer. Open the log again and retry.
    #[error("the change log's servers do not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The servers answer, but have no such log.
    #[error("the servers have no stream {name}; restore it: a lost log is not created again")]
    Missing { name: String },
    /// Another writer has written since this log was opened; nothing was written by this call.
    #[error("another writer has written to the change log; open it again")]
    Overtaken,
    /// An earlier failure could not be undone on disk.
    #[error("the log refuses writes after a failed write that could not be undone; reopen it")]
    Poisoned,
}

//! A log in a folder or on servers, behind one interface.

use std::{ops::RangeInclusive, path::PathBuf};

use tokio::runtime::Handle;

use crate::{
    checkpoint::Checkpoint,
    error::LogError,
    log::{ChangeLog, Options},
    reader::{Entry, Losses, Reader},
    stream::{StreamLocation, StreamLog, StreamReader},
};

/// Where a log is stored.
#[derive(Debug, Clone)]
pub enum LogLocation {
    /// In a folder that only this process uses.
    Folder { dir: PathBuf, options: Options },
    /// On servers, accessed by the runtime's tasks.
    Stream { runtime: Handle, location: StreamLocation },
    /// Nowhere: numbers are assigned and nothing is stored.
    Nowhere,
}

/// An open log; [`ChangeLog`] and [`StreamLog`] document each call.
#[derive(Debug)]
pub enum Log {
    Folder(ChangeLog),
    Stream(Box<StreamLog>),
    Nowhere { last_seq: u64 },
}

/// The entries from a given number on, in order; the iterator ends after its first error.
#[derive(Debug)]
pub enum Entries {
    Folder(Box<Reader>),
    Stream(Box<StreamReader>),
    None,
}

/// Makes the same call on either kind of log.
macro_rules! on_log {
    ($self:ident, $log:ident => $call:expr, $last_seq:pat => $nowhere:expr) => {
        match $self {
            Self::Folder($log) => $call,
            Self::Stream($log) => $call,
            Self::Nowhere { last_seq: $last_seq } => $nowhere,
        }
    };
}

impl Log {
    /// Opens the log; creates it if it does not exist.
    ///
    /// # Errors
    /// The file system refuses, the servers do not answer, or a newer program wrote the log.
    pub fn open(location: &LogLocation) -> Result<Self, LogError> {
        match location {
            LogLocation::Folder { dir, options } => {
                ChangeLog::open(dir, *options).map(|(log, _)| Self::Folder(log))
            }
            LogLocation::Stream { runtime, location } => {
                Ok(Self::Stream(Box::new(StreamLog::open(runtime, location)?)))
            }
            LogLocation::Nowhere => Ok(Self::Nowhere { last_seq: 0 }),
        }
    }

    /// Appends a batch, and returns the numbers of its entries once it is durable.
    ///
    /// # Errors
    /// An entry is too large, the batch could not be made durable, or the log must be opened again after an
    /// earlier failure.
    pub fn append<'a>(
        &mut self,
        at_ms: i64,
        entries: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<RangeInclusive<u64>, LogError> {
        match self {
            Self::Folder(log) => log.append(at_ms, entries),
            Self::Stream(log) => log.append(at_ms, entries),
            Self::Nowhere { last_seq } => {
                let first = *last_seq + 1;
                *last_seq += u64::try_from(entries.into_iter().count()).unwrap_or(0);
                Ok(first..=*last_seq)
            }
        }
    }

    /// Makes sure that no other writer has written since this log was opened. A folder has no other writer.
    ///
    /// # Errors
    /// Another writer has written, or this cannot be determined.
    pub fn fence(&mut self, at_ms: i64) -> Result<(), LogError> {
        match self {
            Self::Stream(log) => log.fence(at_ms),
            Self::Folder(_) | Self::Nowhere { .. } => Ok(()),
        }
    }

    /// Reads from entry `seq` on, up to the last entry at the time of the call.
    ///
    /// # Errors
    /// Retention has deleted that entry, or the log cannot be reached.
    pub fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        match self {
            Self::Folder(log) => Ok(Entries::Folder(Box::new(log.read_from(seq)?))),
            Self::Stream(log) => Ok(Entries::Stream(Box::new(log.read_from(seq)?))),
            Self::Nowhere { .. } => Ok(Entries::None),
        }
    }

    /// Writes the owner's state after entry `seq`, and keeps the newest two checkpoints.
    ///
    /// # Errors
    /// `seq` is beyond the log or before the newest checkpoint, or it cannot be written.
    pub fn write_checkpoint(
        &mut self,
        seq: u64,
        version: u8,
        payload: &[u8],
    ) -> Result<(), LogError> {
        on_log!(self, log => log.write_checkpoint(seq, version, payload), _ => Ok(()))
    }

    /// Reads the newest intact checkpoint.
    ///
    /// # Errors
    /// It cannot be read, or a newer program wrote it.
    pub fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        on_log!(self, log => log.latest_checkpoint(), _ => Ok(None))
    }

    /// Deletes old entries that the older of two checkpoints covers, and returns the number of segments or messages
    /// deleted.
    ///
    /// # Errors
    /// The log cannot be reached.
    pub fn retain(&mut self, before_ms: i64, keep_from: u64) -> Result<u64, LogError> {
        on_log!(self, log => log.retain(before_ms, keep_from), _ => Ok(0))
    }

    /// The lowest number that can be in the log; the next number to be assigned if it is empty.
    pub fn first_seq(&self) -> u64 {
        on_log!(self, log => log.first_seq(), last_seq => last_seq + 1)
    }

    /// The last number assigned, 0 at first; the next append starts one after it.
    pub fn last_seq(&self) -> u64 {
        on_log!(self, log => log.last_seq(), last_seq => *last_seq)
    }

    /// The checksum that identifies the last entry if it may be replaced by another one
    /// ([`StreamLog::last_checksum`]).
    pub fn last_checksum(&self) -> Option<u32> {
        match self {
            Self::Stream(log) => log.last_checksum(),
            Self::Folder(_) | Self::Nowhere { .. } => None,
        }
    }

    /// Total size of the entries in bytes.
    pub fn bytes(&self) -> u64 {
        on_log!(self, log => log.bytes(), _ => 0)
    }
}

impl Entries {
    /// Losses found so far. Servers repair their own storage.
    pub fn losses(&self) -> Losses {
        match self {
            Self::Folder(reader) => reader.losses().clone(),
            Self::Stream(_) | Self::None => Losses::default(),
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Folder(reader) => reader.next(),
            Self::Stream(reader) => reader.next(),
            Self::None => None,
        }
    }
}

//! Positions of readers: retention deletes nothing that a registered reader has not read yet.
//!
//! A reader of a folder holds a shared lock on the segment file that it reads, a reader of servers a consumer. Both
//! work across processes, follow the reader, and end with it, even if it crashes. Every reader registers itself; a
//! [`Position`] registers one in advance, while a checkpoint is loaded.
//!
//! A stuck reader delays retention by at most [`READER_DELAY_MAX`]. It then fails with [`LogError::CannotCatchUp`]
//! and starts again from the newest checkpoint.

use std::{
    fmt,
    fs::{File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

use crate::{error::LogError, files::io_at};

/// Maximum time that an expired entry is kept for a reader. Reading a whole log takes minutes.
pub const READER_DELAY_MAX: Duration = Duration::from_secs(3600);

/// Keeps the entries that a log had when this was created from being deleted, for at most [`READER_DELAY_MAX`].
/// Dropping it unregisters the reader.
#[derive(Debug)]
pub struct Position {
    /// A locked segment file or a consumer; both end when they are dropped.
    _held: Option<Box<dyn fmt::Debug + Send + Sync>>,
}

impl Position {
    /// A position in a log that deletes nothing.
    pub(crate) fn none() -> Self {
        Self { _held: None }
    }

    pub(crate) fn at_segment(path: &Path) -> Result<Self, LogError> {
        Ok(Self { _held: Some(Box::new(lock_for_reading(path)?)) })
    }

    pub(crate) fn at_consumer(consumer: impl fmt::Debug + Send + Sync + 'static) -> Self {
        Self { _held: Some(Box::new(consumer)) }
    }
}

/// Entries from before this time are deleted even if a reader needs them.
pub(crate) fn before_forced_ms(before_ms: i64) -> i64 {
    before_ms.saturating_sub(i64::try_from(READER_DELAY_MAX.as_millis()).unwrap_or(i64::MAX))
}

/// Registers a reader of a segment file until the file is dropped.
pub(crate) fn lock_for_reading(path: &Path) -> Result<File, LogError> {
    let deleted = || LogError::CannotCatchUp { path: path.to_owned() };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(deleted()),
        opened => opened.map_err(io_at(path))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(deleted()),
        Err(TryLockError::Error(error)) => Err(io_at(path)(error)),
    }
}

/// Locks a segment file for deletion; `None` while readers use it.
pub(crate) fn lock_for_deletion(path: &Path) -> Result<Option<File>, LogError> {
    let file = File::open(path).map_err(io_at(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(io_at(path)(error)),
    }
}

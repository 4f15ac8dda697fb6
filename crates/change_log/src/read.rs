//! One interface for reading logs: in a folder, by the owner or concurrently with it, and on servers.

use crate::{
    any::{Entries, Log, LogLocation},
    batch::{BatchLimit, Batches},
    checkpoint::Checkpoint,
    error::LogError,
    position::Position,
    reader::Entry,
    stream::StreamLog,
    view::LogView,
};

/// A log that can be read.
pub trait ReadLog {
    /// The lowest number that can be in the log.
    fn first_seq(&self) -> u64;

    /// The newest intact checkpoint; damaged ones are skipped.
    ///
    /// # Errors
    /// It cannot be read, or a newer program wrote it.
    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError>;

    /// The newest intact checkpoint that covers nothing after entry `seq`.
    ///
    /// # Errors
    /// It cannot be read, or a newer program wrote it.
    fn checkpoint_up_to(&mut self, seq: u64) -> Result<Option<Checkpoint>, LogError>;

    /// The entry of the oldest readable checkpoint.
    fn oldest_checkpoint(&self) -> Option<u64>;

    /// Reads from entry `seq` on, up to the last entry at the time of the call.
    ///
    /// # Errors
    /// Retention has deleted that entry, or the log cannot be reached.
    fn read_from(&self, seq: u64) -> Result<Entries, LogError>;

    /// As [`Self::read_from`], in batches, so that a caller that collects entries holds no more than `limit` allows.
    ///
    /// # Errors
    /// As for [`Self::read_from`].
    fn read_batches(
        &self,
        seq: u64,
        limit: BatchLimit,
    ) -> Result<Batches<Entries, Entry, LogError>, LogError> {
        Ok(Batches::new(self.read_from(seq)?, limit, |entry| entry.payload.len()))
    }

    /// Registers a reader that has not begun to read: retention deletes none of the present entries. Readers register
    /// themselves.
    ///
    /// # Errors
    /// The log cannot be reached, or was deleted.
    fn register(&self) -> Result<Position, LogError>;
}

impl ReadLog for Log {
    fn first_seq(&self) -> u64 {
        self.first_seq()
    }

    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        self.latest_checkpoint()
    }

    fn checkpoint_up_to(&mut self, seq: u64) -> Result<Option<Checkpoint>, LogError> {
        Ok(self.latest_checkpoint()?.filter(|held| held.seq <= seq))
    }

    fn oldest_checkpoint(&self) -> Option<u64> {
        match self {
            Self::Folder(log) => log.oldest_checkpoint(),
            Self::Stream(log) => log.oldest_checkpoint(),
            Self::Nowhere { .. } => None,
        }
    }

    fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        self.read_from(seq)
    }

    fn register(&self) -> Result<Position, LogError> {
        match self {
            Self::Folder(log) => log.register(),
            Self::Stream(log) => log.register(),
            Self::Nowhere { .. } => Ok(Position::none()),
        }
    }
}

impl ReadLog for LogView {
    fn first_seq(&self) -> u64 {
        self.first_seq()
    }

    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        self.checkpoint_up_to(u64::MAX)
    }

    fn checkpoint_up_to(&mut self, seq: u64) -> Result<Option<Checkpoint>, LogError> {
        for seq in self.checkpoints().iter().rev().filter(|held| **held <= seq) {
            match self.checkpoint(*seq) {
                Err(LogError::Corrupt { .. }) => {}
                read => return read.map(Some),
            }
        }
        Ok(None)
    }

    fn oldest_checkpoint(&self) -> Option<u64> {
        self.checkpoints().first().copied()
    }

    fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        Ok(Entries::Folder(Box::new(self.read_from(seq)?)))
    }

    fn register(&self) -> Result<Position, LogError> {
        self.register()
    }
}

impl ReadLog for StreamLog {
    fn first_seq(&self) -> u64 {
        self.first_seq()
    }

    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        self.latest_checkpoint()
    }

    fn checkpoint_up_to(&mut self, seq: u64) -> Result<Option<Checkpoint>, LogError> {
        Ok(self.latest_checkpoint()?.filter(|held| held.seq <= seq))
    }

    fn oldest_checkpoint(&self) -> Option<u64> {
        self.oldest_checkpoint()
    }

    fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        Ok(Entries::Stream(Box::new(self.read_from(seq)?)))
    }

    fn register(&self) -> Result<Position, LogError> {
        self.register()
    }
}

impl LogLocation {
    /// Opens a log for reading while its writer uses it. `None`: nothing is stored.
    ///
    /// # Errors
    /// The log does not exist, or it cannot be reached.
    pub fn view(&self) -> Result<Option<Box<dyn ReadLog>>, LogError> {
        Ok(match self {
            Self::Folder { dir, .. } => Some(Box::new(LogView::open(dir)?)),
            Self::Stream { runtime, location } => {
                Some(Box::new(StreamLog::find(runtime, location)?))
            }
            Self::Nowhere => None,
        })
    }
}

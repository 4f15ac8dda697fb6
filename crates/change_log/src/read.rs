//! One face for everybody who reads a log from a checkpoint on: a log in a folder, seen by its owner or from outside,
//! and a log on servers.

use crate::{
    any::{Entries, Log, LogLocation},
    checkpoint::Checkpoint,
    error::LogError,
    stream::StreamLog,
    view::LogView,
};

/// A log that can be read.
pub trait ReadLog {
    /// The first number that can be in the log.
    fn first_seq(&self) -> u64;

    /// The newest whole checkpoint; damaged ones are passed over.
    ///
    /// # Errors
    /// It cannot be read, or a newer program wrote it.
    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError>;

    /// Reads from entry `seq` on, up to the last entry of this moment.
    ///
    /// # Errors
    /// Retention has deleted that entry, or the log cannot be reached.
    fn read_from(&self, seq: u64) -> Result<Entries, LogError>;
}

impl ReadLog for Log {
    fn first_seq(&self) -> u64 {
        self.first_seq()
    }

    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        self.latest_checkpoint()
    }

    fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        self.read_from(seq)
    }
}

impl ReadLog for LogView {
    fn first_seq(&self) -> u64 {
        self.first_seq()
    }

    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        for seq in self.checkpoints().iter().rev() {
            match self.checkpoint(*seq) {
                Err(LogError::Corrupt { .. }) => {}
                read => return read.map(Some),
            }
        }
        Ok(None)
    }

    fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        Ok(Entries::Folder(Box::new(self.read_from(seq)?)))
    }
}

impl ReadLog for StreamLog {
    fn first_seq(&self) -> u64 {
        self.first_seq()
    }

    fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        self.latest_checkpoint()
    }

    fn read_from(&self, seq: u64) -> Result<Entries, LogError> {
        Ok(Entries::Stream(Box::new(self.read_from(seq)?)))
    }
}

impl LogLocation {
    /// Opens a log to read it, beside whoever writes it. `None`: nothing is kept.
    ///
    /// # Errors
    /// There is none, or it cannot be reached.
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

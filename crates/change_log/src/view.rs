//! A read-only view of a log in a folder, also while its owner writes to it.
//!
//! It repairs nothing: data that [`crate::ChangeLog::open`] would cut is left out. Reading ends at an unfinished
//! write at the end of the log; other damage is skipped and reported, as for the owner. Entries may be read before
//! they are synced.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    checkpoint::{self, Checkpoint, parse_checkpoint_name},
    error::LogError,
    files::{io_at, name_of},
    folder::take_superseded,
    position::Position,
    reader::{Losses, Reader, Tail},
    segment::{Segment, parse_segment_name},
};

/// The entries and checkpoints that a folder held at one moment.
#[derive(Debug)]
pub struct LogView {
    dir: PathBuf,
    segments: Vec<Segment>,
    checkpoints: Vec<u64>,
}

impl LogView {
    /// Lists the log in `dir`.
    ///
    /// # Errors
    /// When the file system refuses, the folder does not exist, or a newer program wrote it.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        let (mut firsts, mut checkpoints) = (Vec::new(), Vec::new());
        for item in fs::read_dir(dir).map_err(io_at(dir))? {
            let name = name_of(&item.map_err(io_at(dir))?.path());
            firsts.extend(parse_segment_name(&name));
            checkpoints.extend(parse_checkpoint_name(&name));
        }
        firsts.sort_unstable();
        checkpoints.sort_unstable();
        // Lengths are read after the names: a segment with a successor gets no more entries.
        let mut segments = Vec::with_capacity(firsts.len());
        for first in firsts {
            match Segment::read(dir, first) {
                // Deleted by retention since the folder was listed.
                Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                read => segments.push(read?),
            }
        }
        take_superseded(&mut segments);
        Ok(Self { dir: dir.to_owned(), segments, checkpoints })
    }

    /// The lowest number that can be in the log; 1 if it is empty.
    pub fn first_seq(&self) -> u64 {
        self.segments.first().map_or(1, |oldest| oldest.first)
    }

    /// Reads from entry `seq` on, up to the last intact entry when the view was opened.
    ///
    /// # Errors
    /// When retention has deleted that entry. The reader reports a segment that retention deletes before it is
    /// reached.
    pub fn read_from(&self, seq: u64) -> Result<Reader, LogError> {
        Reader::over(&self.segments, seq, Tail::Unfinished)
    }

    /// The losses among the entries up to `seq`.
    ///
    /// # Errors
    /// When the file system refuses, or retention deletes a segment before it is reached.
    pub fn losses_until(&self, seq: u64) -> Result<Losses, LogError> {
        let mut entries = self.read_from(self.first_seq())?;
        for entry in entries.by_ref() {
            if entry?.seq > seq {
                break;
            }
        }
        Ok(entries.losses().clone())
    }

    /// Keeps the entries of this view from being deleted ([`Position`]).
    ///
    /// # Errors
    /// The oldest segment was deleted after the view was opened, or the file system refuses.
    pub fn register(&self) -> Result<Position, LogError> {
        self.segments
            .first()
            .map_or_else(|| Ok(Position::none()), |oldest| Position::at_segment(&oldest.path))
    }

    /// The numbers of the checkpoints, oldest first.
    pub fn checkpoints(&self) -> &[u64] {
        &self.checkpoints
    }

    /// Reads one of [`Self::checkpoints`].
    ///
    /// # Errors
    /// When it is damaged or was deleted meanwhile, the file system refuses, or a newer program wrote it.
    pub fn checkpoint(&self, seq: u64) -> Result<Checkpoint, LogError> {
        checkpoint::read(&self.dir, seq)
    }
}

//! The log itself: append, read, checkpoint, retain.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    ops::RangeInclusive,
    path::Path,
};

use tracing::{debug, error, warn};

use crate::{
    checkpoint::{self, Checkpoint, checkpoint_name},
    error::LogError,
    files::{self, io_at, name_of},
    folder::{Folder, Recovery},
    frame::encode_batch,
    position::{self, Position},
    reader::{Reader, Tail},
    segment::{Segment, scan, segment_name},
};

/// A second checkpoint is kept, so that damage to the newest only costs a longer replay.
const CHECKPOINTS_KEPT: usize = 2;

/// Above this size the batch buffer is freed, so that one huge batch does not hold memory forever.
const BUFFER_KEPT_BYTES: usize = 1024 * 1024;

/// Bounds of a log.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// A new segment is begun before a batch would make the current one longer than this.
    pub segment_bytes: u64,
    /// Maximum payload of one entry.
    pub entry_bytes_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Scanned once at every opening: some 50 ms from a warm disk.
            segment_bytes: 64 * 1024 * 1024,
            entry_bytes_max: 16 * 1024 * 1024,
        }
    }
}

/// An open log. It has one owner; its readers are independent of it.
#[derive(Debug)]
pub struct ChangeLog {
    folder: Folder,
    options: Options,
    /// The last segment of the folder, open for writing.
    active: File,
    /// Numbers of the kept checkpoints, oldest first.
    checkpoints: Vec<u64>,
    last_seq: u64,
    /// Time of the last append, if there was one.
    last_ms: Option<i64>,
    health: Health,
    buffer: Vec<u8>,
    disk: Disk,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    Poisoned,
}

/// The three calls with which a disk can fail an append; tests replace them with failing ones.
#[derive(Debug, Clone, Copy)]
struct Disk {
    write: fn(&mut File, &[u8]) -> io::Result<()>,
    sync: fn(&File) -> io::Result<()>,
    truncate: fn(&File, u64) -> io::Result<()>,
}

const REAL_DISK: Disk = Disk {
    write: |file, bytes| file.write_all(bytes),
    sync: File::sync_data,
    truncate: File::set_len,
};

impl ChangeLog {
    /// Opens the log in `dir`, which is created if it is missing, and cuts off a torn or damaged end.
    ///
    /// Only the last segment is read completely; earlier ones are verified when they are read.
    ///
    /// # Errors
    /// When the file system refuses, or a newer program wrote the folder. Never for damaged entries.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovery), LogError> {
        files::create_folder(dir)?;
        let (mut folder, checkpoints) = Folder::list(dir)?;
        let newest = checkpoints.last().copied().unwrap_or_default();
        let (last_seq, recovery) = folder.recover(newest)?;
        let log = Self {
            active: open_active(&folder)?,
            folder,
            options,
            checkpoints,
            last_seq,
            last_ms: None,
            health: Health::Good,
            buffer: Vec::new(),
            disk: REAL_DISK,
        };
        Ok((log, recovery))
    }

    /// Appends a batch with one write and one sync, and returns the numbers of its entries.
    ///
    /// An empty batch writes nothing and returns an empty range.
    ///
    /// # Errors
    /// When an entry is too large, the disk refuses (nothing of the batch is then in the log, and a
    /// later append may succeed), or the log is poisoned.
    pub fn append<'a>(
        &mut self,
        at_ms: i64,
        entries: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<RangeInclusive<u64>, LogError> {
        if self.health == Health::Poisoned {
            return Err(LogError::Poisoned);
        }
        let first = self.last_seq + 1;
        self.buffer.clear();
        let entries = entries.into_iter().map(|(version, payload)| (at_ms, version, payload));
        let bytes_max = self.options.entry_bytes_max;
        let last = encode_batch(&mut self.buffer, self.last_seq, bytes_max, entries)?;
        if last >= first {
            self.roll_when_full()?;
            self.write_batch(at_ms)?;
            (self.last_seq, self.last_ms) = (last, Some(at_ms));
        }
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_KEPT_BYTES);
        Ok(first..=last)
    }

    /// Reads from entry `seq` on, up to the last entry at the time of the call.
    ///
    /// # Errors
    /// When retention has deleted that entry. The reader continues after damage and reports its losses.
    pub fn read_from(&self, seq: u64) -> Result<Reader, LogError> {
        Reader::over(&self.folder.segments, seq, Tail::Durable)
    }

    /// Writes the owner's state after entry `seq`, and keeps the newest two checkpoints.
    ///
    /// # Errors
    /// When `seq` is beyond the log or before the newest checkpoint, or the file system refuses.
    pub fn write_checkpoint(
        &mut self,
        seq: u64,
        version: u8,
        payload: &[u8],
    ) -> Result<(), LogError> {
        let (newest, last) = (self.checkpoints.last().copied().unwrap_or(0), self.last_seq);
        if seq < newest || seq > last {
            return Err(LogError::CheckpointOutOfRange { seq, newest, last });
        }
        checkpoint::write(&self.folder.dir, seq, version, payload)?;
        if self.checkpoints.last() != Some(&seq) {
            self.checkpoints.push(seq);
        }
        while self.checkpoints.len() > CHECKPOINTS_KEPT {
            let oldest = self.checkpoints.remove(0);
            files::remove(&self.folder.dir.join(checkpoint_name(oldest)))?;
        }
        Ok(())
    }

    /// The entry of the oldest checkpoint.
    pub(crate) fn oldest_checkpoint(&self) -> Option<u64> {
        self.checkpoints.first().copied()
    }

    /// Reads the newest intact checkpoint. Damaged ones are set aside, which is logged as an error.
    ///
    /// # Errors
    /// When the file system refuses, or a newer program wrote the checkpoint.
    pub fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        while let Some(seq) = self.checkpoints.last().copied() {
            match checkpoint::read(&self.folder.dir, seq) {
                Err(LogError::Corrupt { path, reason, .. }) => {
                    let saved_as = path
                        .exists()
                        .then(|| files::set_aside(&self.folder.dir, &name_of(&path)))
                        .transpose()?;
                    let path = path.display();
                    error!(event = "checkpoint.damaged", %path, %reason, saved_as, "checkpoint damaged, the one before it is used");
                    self.checkpoints.pop();
                }
                other => return other.map(Some),
            }
        }
        Ok(None)
    }

    /// Deletes old segments, and returns how many.
    ///
    /// A segment is deleted only if all its readable entries are from before `before_ms` (if the clock was ahead, those
    /// of the first segment after it that is not), all its numbers are below `keep_from`, the older of two checkpoints
    /// covers it, and no reader still has to read it (for at most [`crate::READER_DELAY_MAX`]). The last segment
    /// always stays.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn retain(&mut self, before_ms: i64, keep_from: u64) -> Result<u64, LogError> {
        let covered = match self.checkpoints.as_slice() {
            [.., older, _newest] => *older,
            _ => 0,
        };
        let seq_max = covered.min(keep_from.saturating_sub(1));
        let mut deleted = 0;
        while let segments @ [_, _, ..] = self.folder.segments.as_mut_slice() {
            let newest_ms = complete_ms(segments, self.last_ms)?;
            let [oldest, next, ..] = segments else { break };
            if next.follows > seq_max || newest_ms >= before_ms {
                break;
            }
            let locked = position::lock_for_deletion(&oldest.path)?;
            if locked.is_none() {
                let path = oldest.path.display();
                if newest_ms >= position::before_forced_ms(before_ms) {
                    debug!(event = "retention.delayed", %path, "log segment is kept for a reader");
                    break;
                }
                warn!(event = "retention.forced", %path, "log segment is deleted before a reader has read it");
            }
            files::remove(&oldest.path)?;
            self.folder.segments.remove(0);
            deleted += 1;
        }
        if deleted > 0 {
            files::sync_folder(&self.folder.dir)?;
        }
        Ok(deleted)
    }

    /// Keeps the present entries of the log from being deleted ([`Position`]).
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn register(&self) -> Result<Position, LogError> {
        let oldest = self.folder.segments.first();
        oldest.map_or_else(|| Ok(Position::none()), |oldest| Position::at_segment(&oldest.path))
    }

    /// The lowest number that can be in the log; the next number to be assigned if it is empty.
    pub fn first_seq(&self) -> u64 {
        self.folder.segments.first().map_or(1, |oldest| oldest.first)
    }

    /// The last number assigned, 0 at first; the next append starts one after it.
    ///
    /// After damage it can be beyond the last readable entry.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Total size of all segments in bytes, without checkpoints and files set aside.
    pub fn bytes(&self) -> u64 {
        self.folder.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Begins a new segment if the batch in the buffer would make this one too long.
    fn roll_when_full(&mut self) -> Result<(), LogError> {
        let batch = self.buffer.len() as u64;
        let full = |s: &Segment| !s.is_empty() && s.bytes + batch > self.options.segment_bytes;
        if !self.folder.segments.last().is_some_and(full) {
            return Ok(());
        }
        let first = self.last_seq + 1;
        let rolled = self
            .folder
            .start_segment(first, self.last_seq)
            .and_then(|()| open_active(&self.folder));
        match rolled {
            Ok(active) => self.active = active,
            Err(error) => {
                // If the new file may exist, entries appended to the old segment would not be read.
                let path = self.folder.dir.join(segment_name(first));
                if path.try_exists().unwrap_or(true) {
                    self.poison();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes and syncs the buffer, or restores the file.
    fn write_batch(&mut self, at_ms: i64) -> Result<(), LogError> {
        let Some(segment) = self.folder.segments.last_mut() else {
            return Err(LogError::Poisoned);
        };
        let written = self
            .active
            .seek(SeekFrom::Start(segment.bytes))
            .and_then(|_| (self.disk.write)(&mut self.active, &self.buffer))
            .and_then(|()| (self.disk.sync)(&self.active));
        if let Err(source) = written {
            let failed = io_at(&segment.path)(source);
            // The sync makes the shorter length durable: unacknowledged entries must not reappear.
            let undone = (self.disk.truncate)(&self.active, segment.bytes)
                .and_then(|()| (self.disk.sync)(&self.active));
            if undone.is_err() {
                self.poison();
            }
            return Err(failed);
        }
        segment.bytes += self.buffer.len() as u64;
        segment.newest_ms = segment.newest_ms.max(Some(at_ms));
        Ok(())
    }

    fn poison(&mut self) {
        let dir = self.folder.dir.display();
        error!(event = "log.poisoned", %dir, "failed write could not be undone; the change log refuses writes until it is reopened");
        self.health = Health::Poisoned;
    }
}

fn open_active(folder: &Folder) -> Result<File, LogError> {
    let path = folder.segments.last().map_or(&folder.dir, |s| &s.path);
    File::options().write(true).open(path).map_err(io_at(path))
}

/// The time by which the oldest segment was complete. If it is later than the last append, the clock was ahead: then
/// it is known of a later segment, and all of them are kept until one is over that has no such time.
fn complete_ms(segments: &mut [Segment], last_ms: Option<i64>) -> Result<i64, LogError> {
    for segment in segments {
        let newest_ms = newest_ms(segment)?;
        if last_ms.is_none_or(|last_ms| newest_ms <= last_ms) {
            return Ok(newest_ms);
        }
    }
    Ok(i64::MAX)
}

/// The latest time of a segment's readable entries, determined once. Damaged entries are lost to readers anyway, and
/// must not keep the disk from being freed.
fn newest_ms(segment: &mut Segment) -> Result<i64, LogError> {
    if segment.newest_ms.is_none() {
        segment.newest_ms = Some(scan(segment)?.newest_ms.unwrap_or(i64::MIN));
    }
    Ok(segment.newest_ms.unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;

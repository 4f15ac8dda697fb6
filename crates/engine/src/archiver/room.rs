//! Space for the archive: what is left on its disk, and what is removed to make room.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use archive::{Archive, ArchiveError, Commit, Outcome};
use rustix::fs::statvfs;

use super::Archiver;
use crate::error::{Chain, WorldError};

/// Space left free for the log and everything else: this fraction of the disk, up to a maximum.
const KEPT_PART: u64 = 20;
const KEPT_BYTES_MAX: u64 = 1 << 30;
const NO_ROOM: &str = "the disk is nearly full; what is left is for the log";

impl Archiver {
    /// Refuses to write more to a disk that is nearly full: what is left is for the log.
    pub(super) fn room(&self) -> Result<(), ArchiveError> {
        let place = self.options.history.archive();
        let Some(folder) = place.as_ref().and_then(|place| place.folder()) else { return Ok(()) };
        let source = if self.handle.is_disk_full() && !self.is_on_own_disk(folder) {
            io::ErrorKind::StorageFull.into()
        } else if has_room(folder) {
            return Ok(());
        } else {
            io::Error::new(io::ErrorKind::StorageFull, NO_ROOM)
        };
        Err(ArchiveError::Io { path: folder.to_owned(), source })
    }

    /// True if a folder is on another disk than the data folder.
    fn is_on_own_disk(&self, folder: &Path) -> bool {
        let disk = |path: &Path| path.metadata().ok().map(|found| found.dev());
        let own = self.options.notes.as_deref().and_then(disk);
        own.zip(disk(folder)).is_some_and(|(own, other)| own != other)
    }

    /// Removes what is past retention, and deletes files that are not used any more. It needs next to no space.
    pub(super) fn retire(&mut self) -> Result<(), WorldError> {
        let Some(archive) = self.writable()? else { return Ok(()) };
        let mut commit = archive.newest()?;
        if let Some(end) = commit.settled_end() {
            let oldest = end.minus(self.options.history.retention);
            if let Some((retired, Outcome::Committed)) = archive.retire(&commit, oldest)? {
                // Whether the log goes on from its end is not known here.
                self.note_size(&retired);
                commit = retired;
            }
        }
        self.clean(&archive, &commit);
        Ok(())
    }

    /// Deletes files that are not used any more. If that fails, they stay until the next time.
    pub(super) fn clean(&mut self, archive: &Archive, commit: &Commit) {
        let cleaned = archive.clean(commit);
        if let Err(error) = &cleaned
            && self.cleans
        {
            tracing::warn!(event = "archive.not_cleaned", error = %Chain(error), "unused files of the archive are not deleted; it is tried again");
        }
        self.cleans = cleaned.is_ok();
    }
}

/// True if the disk has more free space than the log needs. If that is unknown, the space is assumed to suffice.
pub(super) fn has_room(root: &Path) -> bool {
    statvfs(root).map_or(true, |disk| {
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        leaves_room(bytes(disk.f_bavail), bytes(disk.f_blocks))
    })
}

pub(super) fn leaves_room(free: u64, disk: u64) -> bool {
    free > (disk / KEPT_PART).min(KEPT_BYTES_MAX)
}

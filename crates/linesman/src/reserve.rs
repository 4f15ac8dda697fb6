//! Room that is kept for a full disk.
//!
//! Requests are counted on the disk before they are answered, so a full disk would stop the API with everything else. A
//! file of a few megabytes is kept in the data folder; when the disk is full it is deleted, pushes are refused, and
//! what it took is enough to count requests and publish snapshots for days. It is made again when there is room.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::WorldHandle;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use crate::folder::{Folder, create_private};

/// The reserve's size. SQLite's write-ahead log stays under four megabytes, and a day of snapshots takes about five.
const BYTES_MAX: u64 = 16 << 20;
/// On a small disk it is this part of what is free.
const PART_OF_FREE: u64 = 8;
/// A disk with less than this part of the reserve left is full.
const FULL_PART: u64 = 8;
/// Without this much, a service does not start.
const ROOM_BYTES_MIN: u64 = 4096;
/// How often the disk is looked at. That takes microseconds, and requests fail from the moment it is full.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// How long after the last failed write the disk counts as full, whatever it says of its room: quotas are not in it.
const RECOVERY: Duration = Duration::from_secs(5);

/// The reserve of a data folder.
#[derive(Debug)]
pub(crate) struct Reserve {
    dir: PathBuf,
    path: PathBuf,
    bytes: u64,
    is_full: bool,
    failures: u64,
    failed: Option<Instant>,
}

impl Reserve {
    /// Deletes the reserve file where the disk is full, so that a service can start on it; else makes sure that it is
    /// there.
    ///
    /// # Errors
    /// There is no room for anything: no request could be counted.
    pub(crate) fn open(folder: &Folder) -> anyhow::Result<Self> {
        let path = folder.reserve();
        let held = fs::metadata(&path).map_or(0, |held| held.len());
        let part =
            free_bytes(folder.path()).unwrap_or(u64::MAX).saturating_add(held) / PART_OF_FREE;
        let bytes = if held > 0 { held } else { part.clamp(ROOM_BYTES_MIN, BYTES_MAX) };
        let dir = folder.path().to_owned();
        let mut reserve = Self { dir, path, bytes, is_full: false, failures: 0, failed: None };
        if reserve.is_out_of_room() {
            reserve.release();
            let tried = create_private(&reserve.path).and_then(|file| fill(file, ROOM_BYTES_MIN));
            fs::remove_file(&reserve.path).ok();
            tried
                .with_context(|| format!("nothing can be written to {}", reserve.dir.display()))?;
        } else if held == 0 {
            reserve.is_full = !reserve.make();
        }
        Ok(reserve)
    }

    /// Watches the disk for as long as the service runs.
    pub(crate) async fn keep(mut self, worlds: [Arc<WorldHandle>; 2]) {
        loop {
            self.check(worlds.iter().map(|world| world.log_failures()).sum());
            worlds.iter().for_each(|world| world.set_disk_full(self.is_full));
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    fn check(&mut self, failures: u64) {
        if failures > self.failures {
            (self.failures, self.failed) = (failures, Some(Instant::now()));
        }
        let failing = self.failed.is_some_and(|failed| failed.elapsed() < RECOVERY);
        if !self.is_full {
            if failing || self.is_out_of_room() {
                self.release();
            }
        } else if !failing && self.has_room_again() && self.make() {
            self.is_full = false;
            tracing::info!(bytes = self.bytes, "the disk has room again; pushes are taken");
        }
    }

    fn is_out_of_room(&self) -> bool {
        free_bytes(&self.dir).is_some_and(|free| free < self.bytes / FULL_PART)
    }

    /// Room for the reserve, and as much again as would make the disk full.
    fn has_room_again(&self) -> bool {
        let needed = self.bytes + 2 * (self.bytes / FULL_PART);
        free_bytes(&self.dir).is_none_or(|free| free >= needed)
    }

    fn release(&mut self) {
        self.is_full = true;
        let freed = fs::remove_file(&self.path).is_ok();
        tracing::error!(dir = %self.dir.display(), freed, bytes = self.bytes, "the disk is full; the reserve is given up and pushes are refused until there is room");
    }

    fn make(&mut self) -> bool {
        let written = create_private(&self.path).and_then(|file| fill(file, self.bytes));
        if let Err(error) = &written {
            tracing::warn!(path = %self.path.display(), %error, "no room is kept for a full disk");
            fs::remove_file(&self.path).ok();
        }
        written.is_ok()
    }
}

/// Takes room for a file: by saying so, which costs next to nothing, or where the file system does not know that, with
/// zeroes.
fn fill(mut file: File, bytes: u64) -> io::Result<()> {
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        taken => return Ok(taken?),
    }
    static BLOCK: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(BLOCK.len()).min(BLOCK.len());
        file.write_all(BLOCK.get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    Ok(())
}

/// What this process may still write there; `None` where the system does not say.
fn free_bytes(dir: &Path) -> Option<u64> {
    let held = statvfs(dir).ok()?;
    Some(held.f_bavail.saturating_mul(held.f_frsize))
}

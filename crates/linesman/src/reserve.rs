//! Disk space reserved for the case of a full disk.
//!
//! Requests are counted on disk before they are answered, so a full disk would stop the API. A file of a few
//! megabytes is kept in the data folder. When the disk is full, the file is deleted and pushes are refused; its space
//! is enough to count requests and publish snapshots for days. It is created again when there is space.

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
/// On a small disk, the reserve is this part of the free space.
const PART_OF_FREE: u64 = 8;
/// The disk is full when less than this part of the reserve is free.
const FULL_PART: u64 = 8;
/// With less free space, a service does not start.
const ROOM_BYTES_MIN: u64 = 4096;
/// How often the disk is checked. That takes microseconds, and requests fail as soon as it is full.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// How long the disk counts as full after a failed write, regardless of its free space, which ignores quotas.
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
    /// Deletes the reserve if the disk is full, so that a service can start on it; creates it otherwise.
    ///
    /// # Errors
    /// Nothing can be written, so no request could be counted.
    pub(crate) fn open(folder: &Folder) -> anyhow::Result<Self> {
        let path = folder.reserve();
        let held = fs::metadata(&path).map_or(0, |held| held.len());
        let part =
            free_bytes(folder.path()).unwrap_or(u64::MAX).saturating_add(held) / PART_OF_FREE;
        let bytes = if held > 0 { held } else { part.clamp(ROOM_BYTES_MIN, BYTES_MAX) };
        let dir = folder.path().to_owned();
        let mut reserve = Self { dir, path, bytes, is_full: false, failures: 0, failed: None };
        if reserve.is_out_of_room() {
            reserve.release(&[]);
            let tried = create_private(&reserve.path).and_then(|file| fill(file, ROOM_BYTES_MIN));
            fs::remove_file(&reserve.path).ok();
            tried
                .with_context(|| format!("cannot write to {}: no space", reserve.dir.display()))?;
        } else if held == 0 {
            reserve.is_full = !reserve.make();
        }
        Ok(reserve)
    }

    /// Checks the disk while the service runs.
    pub(crate) async fn keep(mut self, worlds: [Arc<WorldHandle>; 2]) {
        loop {
            self.check(worlds.iter().map(|world| world.log_failures()).sum(), &worlds);
            worlds.iter().for_each(|world| world.set_disk_full(self.is_full));
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    fn check(&mut self, failures: u64, worlds: &[Arc<WorldHandle>]) {
        if failures > self.failures {
            (self.failures, self.failed) = (failures, Some(Instant::now()));
        }
        let failing = self.failed.is_some_and(|failed| failed.elapsed() < RECOVERY);
        if !self.is_full {
            if failing || self.is_out_of_room() {
                self.release(worlds);
            }
        } else if !failing && self.has_room_again() && self.make() {
            self.is_full = false;
            tracing::info!(
                event = "disk.recovered",
                bytes = self.bytes,
                "disk has space again; pushes are accepted"
            );
        }
    }

    fn is_out_of_room(&self) -> bool {
        free_bytes(&self.dir).is_some_and(|free| free < self.bytes / FULL_PART)
    }

    /// Whether there is space for the reserve and twice the threshold of a full disk.
    fn has_room_again(&self) -> bool {
        let needed = self.bytes + 2 * (self.bytes / FULL_PART);
        free_bytes(&self.dir).is_none_or(|free| free >= needed)
    }

    /// Deletes the reserve, once no push can use its space.
    fn release(&mut self, worlds: &[Arc<WorldHandle>]) {
        self.is_full = true;
        worlds.iter().for_each(|world| world.set_disk_full(true));
        let freed = fs::remove_file(&self.path).is_ok();
        tracing::error!(event = "disk.full", dir = %self.dir.display(), freed, bytes = self.bytes, "disk full; reserve deleted, pushes are refused");
    }

    fn make(&mut self) -> bool {
        let written = create_private(&self.path).and_then(|file| fill(file, self.bytes));
        if let Err(error) = &written {
            tracing::warn!(event = "disk.reserve_failed", path = %self.path.display(), %error, "disk reserve not created");
            fs::remove_file(&self.path).ok();
        }
        written.is_ok()
    }
}

/// Allocates space for a file: with `fallocate`, or with zeroes if the file system does not support it.
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

/// The free space for this process; `None` if the system does not report it.
fn free_bytes(dir: &Path) -> Option<u64> {
    let held = statvfs(dir).ok()?;
    Some(held.f_bavail.saturating_mul(held.f_frsize))
}

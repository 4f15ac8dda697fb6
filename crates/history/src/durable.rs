//! Files and folders, durably.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::error::{ArchiveError, io_at};

pub(crate) fn modified(path: &Path) -> Result<SystemTime, ArchiveError> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(io_at(path))
}

pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(source) = written {
        fs::remove_file(path).ok();
        return Err(ArchiveError::Io { path: path.to_owned(), source });
    }
    Ok(())
}

/// Creates a folder and its parents, durably.
pub(crate) fn create_folder(dir: &Path) -> Result<(), ArchiveError> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_folder(parent)?;
    }
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_at(dir)(error)),
        _ => parent.map_or(Ok(()), sync_folder),
    }
}

/// Makes created names durable.
pub(crate) fn sync_folder(dir: &Path) -> Result<(), ArchiveError> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(io_at(dir))
}

/// A number that no other writer uses.
pub(crate) fn nonce() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

pub(crate) fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

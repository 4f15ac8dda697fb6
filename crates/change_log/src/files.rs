//! Durable file-system operations whose errors contain the path.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::error::LogError;

/// Suffix of files that are still being written; such files are removed at the next opening.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// Suffix of files that were set aside for an operator to examine.
const DAMAGED_SUFFIX: &str = ".damaged";

pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> LogError + '_ {
    move |source| LogError::Io { path: path.to_owned(), source }
}

/// Creates the folder if it is missing, and makes its name durable.
pub(crate) fn create_folder(dir: &Path) -> Result<(), LogError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(io_at(dir))?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => Ok(()),
    }
}

/// Makes created, renamed and removed names durable.
pub(crate) fn sync_folder(dir: &Path) -> Result<(), LogError> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(io_at(dir))
}

/// Writes a file atomically: after a crash it is complete, absent, or as it was before.
pub(crate) fn write_whole(dir: &Path, name: &str, parts: &[&[u8]]) -> Result<(), LogError> {
    let path = dir.join(name);
    let temporary = dir.join(format!("{name}{TEMPORARY_SUFFIX}"));
    let written = File::create(&temporary).and_then(|mut file| {
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()
    });
    if let Err(source) = written.and_then(|()| fs::rename(&temporary, &path)) {
        // Frees the space on a full disk; a file that remains is removed at the next opening.
        fs::remove_file(&temporary).ok();
        return Err(LogError::Io { path, source });
    }
    sync_folder(dir)
}

/// Reads everything from `offset` to the end of the file.
pub(crate) fn read_remainder(path: &Path, offset: u64) -> Result<Vec<u8>, LogError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_to_end(&mut bytes)
        })
        .map_err(io_at(path))?;
    Ok(bytes)
}

/// Shortens a file, durably.
pub(crate) fn truncate(path: &Path, bytes: u64) -> Result<(), LogError> {
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| {
            file.set_len(bytes)?;
            file.sync_all()
        })
        .map_err(io_at(path))
}

/// Renames a file so that it no longer belongs to the log, and returns its new name.
pub(crate) fn set_aside(dir: &Path, name: &str) -> Result<String, LogError> {
    let spare = spare_name(dir, name);
    let path = dir.join(name);
    fs::rename(&path, dir.join(&spare)).map_err(io_at(&path))?;
    sync_folder(dir)?;
    Ok(spare)
}

/// Saves a copy of bytes that are about to be cut off, and returns the name of the copy.
pub(crate) fn save_aside(dir: &Path, name: &str, bytes: &[u8]) -> Result<String, LogError> {
    let spare = spare_name(dir, name);
    write_whole(dir, &spare, &[bytes])?;
    Ok(spare)
}

/// As [`save_aside`], unless these bytes are already saved under that name.
pub(crate) fn save_once(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), LogError> {
    match fs::read(dir.join(format!("{name}{DAMAGED_SUFFIX}"))) {
        Ok(held) if held == bytes => Ok(()),
        _ => save_aside(dir, name, bytes).map(drop),
    }
}

pub(crate) fn remove(path: &Path) -> Result<(), LogError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(path)(error)),
        _ => Ok(()),
    }
}

/// The current size of a file in bytes.
pub(crate) fn file_bytes(path: &Path) -> Result<u64, LogError> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(io_at(path))
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A free name, since the same number can be damaged more than once in the life of a log.
fn spare_name(dir: &Path, name: &str) -> String {
    let mut spare = format!("{name}{DAMAGED_SUFFIX}");
    let mut attempt = 1_u32;
    while PathBuf::from(dir).join(&spare).exists() {
        attempt += 1;
        spare = format!("{name}.{attempt}{DAMAGED_SUFFIX}");
    }
    spare
}

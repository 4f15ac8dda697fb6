//! The files of an archive in a folder.
//!
//! A file is synced before it counts. Exclusive creation uses a link: the writer that creates it wins.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::durable::{create_folder, modified, nonce, sync_folder, write_synced};
use crate::error::{ArchiveError, io_at};
use crate::object::Object;

pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";
/// `EPERM`, the same on every Unix.
const NOT_PERMITTED: i32 = 1;

#[derive(Clone, Debug)]
pub(crate) struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Creates the folder, and checks that a link can be created only once.
    pub(crate) fn prepare(&self, folder: &str) -> Result<(), ArchiveError> {
        let dir = self.path(folder);
        create_folder(&dir)?;
        let probe = dir.join(format!("probe-{}{TEMPORARY_SUFFIX}", nonce()));
        let link = probe.with_extension("link.tmp");
        File::create_new(&probe).map_err(io_at(&probe))?;
        let first = fs::hard_link(&probe, &link);
        let second = fs::hard_link(&probe, &link);
        let removed = fs::remove_file(&link).and(fs::remove_file(&probe));
        match first {
            Err(error) if has_no_links(&error) => {
                return Err(ArchiveError::NotExclusive(self.root.clone()));
            }
            first => first.map_err(io_at(&link))?,
        }
        removed.map_err(io_at(&probe))?;
        match second {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(_) | Ok(()) => Err(ArchiveError::NotExclusive(self.root.clone())),
        }
    }

    pub(crate) fn read(&self, name: &str) -> Result<Bytes, ArchiveError> {
        let path = self.path(name);
        fs::read(&path).map(Bytes::from).map_err(io_at(&path))
    }

    pub(crate) fn read_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, ArchiveError> {
        let path = self.path(name);
        let mut file = File::open(&path).map_err(io_at(&path))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(range.start))
            .and_then(|_| file.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes))
            .map_err(io_at(&path))?;
        Ok(bytes.into())
    }

    pub(crate) fn open(&self, name: &str) -> Result<File, ArchiveError> {
        let path = self.path(name);
        File::open(&path).map_err(io_at(&path))
    }

    pub(crate) fn create_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ArchiveError> {
        let path = self.path(name);
        let dir = path.parent().unwrap_or(&self.root);
        let temporary = path.with_extension(format!("{}{TEMPORARY_SUFFIX}", nonce()));
        write_synced(&temporary, bytes)?;
        let linked = fs::hard_link(&temporary, &path);
        fs::remove_file(&temporary).map_err(io_at(&temporary))?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            linked => linked.map_err(io_at(&path))?,
        }
        sync_folder(dir)?;
        Ok(true)
    }

    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let path = self.path(name);
        let temporary = path.with_extension(format!("{}{TEMPORARY_SUFFIX}", nonce()));
        write_synced(&temporary, bytes)?;
        fs::rename(&temporary, &path).map_err(io_at(&path))?;
        sync_folder(path.parent().unwrap_or(&self.root))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(io_at(&path))?;
        // Removes the folder if it is empty now. A folder with content is not removed.
        path.parent().map(fs::remove_dir);
        Ok(())
    }

    /// Sets the modification times of files to the present. The system refuses this for files of another user.
    pub(crate) fn touch<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), ArchiveError> {
        let now = self.now()?;
        for name in names {
            let path = self.path(name);
            let file = File::options().append(true).open(&path);
            match file.and_then(|file| file.set_modified(now)) {
                // There is nothing to keep.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                touched => touched.map_err(io_at(&path))?,
            }
        }
        Ok(())
    }

    /// The time by the clock of the file system, which may be another machine's.
    fn now(&self) -> Result<SystemTime, ArchiveError> {
        let path = self.path(&format!("now-{}{TEMPORARY_SUFFIX}", nonce()));
        write_synced(&path, &[])?;
        let now = modified(&path)?;
        fs::remove_file(&path).map_err(io_at(&path))?;
        Ok(now)
    }

    /// The same in milliseconds, if it can be found out.
    pub(crate) fn now_ms(&self) -> Option<i64> {
        self.now().ok().map(millis)
    }

    pub(crate) fn may_have(&self, folder: &str) -> bool {
        self.path(folder).try_exists().unwrap_or(true)
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Object>, ArchiveError> {
        let mut objects = Vec::new();
        let dir = if folder.is_empty() { self.root.clone() } else { self.path(folder) };
        self.list_into(&dir, folder, &mut objects)?;
        Ok(objects)
    }

    fn list_into(
        &self,
        dir: &Path,
        name: &str,
        objects: &mut Vec<Object>,
    ) -> Result<(), ArchiveError> {
        for item in fs::read_dir(dir).map_err(io_at(dir))? {
            let item = item.map_err(io_at(dir))?;
            let path = item.path();
            // A name that is not Unicode is not one of ours.
            let Some(own) = item.file_name().to_str().map(str::to_owned) else { continue };
            let name = if name.is_empty() { own } else { format!("{name}/{own}") };
            if item.file_type().map_err(io_at(&path))?.is_dir() {
                self.list_into(&path, &name, objects)?;
                continue;
            }
            let modified = match modified(&path) {
                // Another process deleted it meanwhile.
                Err(ArchiveError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    continue;
                }
                modified => modified?,
            };
            objects.push(Object { name, modified_ms: millis(modified) });
        }
        Ok(())
    }
}

fn millis(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// True if a link to a new file was refused because the file system has no links. exFAT answers that it is not
/// permitted (missing access rights would give `EACCES`); CIFS and FUSE answer that it is not supported.
fn has_no_links(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(NOT_PERMITTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_system_without_links_is_known_by_its_errors() {
        let [eperm, enosys, eopnotsupp] = [1, 38, 95].map(io::Error::from_raw_os_error);
        assert!(has_no_links(&eperm) && has_no_links(&enosys) && has_no_links(&eopnotsupp));
        // Access rights, a full disk, a read-only file system, an unreachable share.
        for other in [13, 28, 30, 5, 116] {
            assert!(!has_no_links(&io::Error::from_raw_os_error(other)), "{other}");
        }
    }
}

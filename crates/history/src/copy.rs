//! Copies of an archive.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use crate::archive::Archive;
use crate::commit::Commit;
use crate::durable::{count, create_folder};
use crate::error::{ArchiveError, io_at};

/// Bytes copied at a time.
const PIECE_BYTES: u64 = 4 << 20;

/// The result of a copy.
#[derive(Debug)]
pub struct Copied {
    /// Number of files in the copy.
    pub files: usize,
    /// Files that are damaged, which are in the copy as they are, and files that cannot be read, which are not.
    pub faults: Vec<ArchiveError>,
}

/// The files that were tried, each with its fault.
type Tried = BTreeMap<String, Option<ArchiveError>>;

impl Archive {
    /// Copies the archive as of its newest commit to a new folder. If that commit cannot be read, nothing is copied.
    ///
    /// # Errors
    /// The copy cannot be written, or the archive cannot be reached any more.
    pub fn copy_to(&self, root: &Path) -> Result<Copied, ArchiveError> {
        let mut commit = match self.newest() {
            Ok(commit) => commit,
            Err(fault) => return Ok(Copied { files: 0, faults: vec![fault] }),
        };
        let target = Self::create(root)?;
        let mut tried = Tried::new();
        loop {
            self.copy_files(&commit, root, &mut tried)?;
            let is_intact = |path: &str| matches!(tried.get(path), Some(None));
            // The copy may have taken so long that a file was replaced and deleted meanwhile.
            if commit.paths().all(is_intact) || self.newest_number()? == commit.commit {
                break;
            }
            let newest = self.newest()?;
            let named: HashSet<&str> = newest.paths().collect();
            if commit.paths().all(|path| is_intact(path) || named.contains(path)) {
                // What is not intact is damaged.
                break;
            }
            commit = newest;
        }
        let named: HashSet<&str> = commit.paths().collect();
        for path in tried.keys().filter(|path| !named.contains(path.as_str())) {
            let path = root.join(path);
            remove_if_there(&path).map_err(io_at(&path))?;
        }
        if commit.commit > 0 {
            target.commit(&commit)?;
        }
        let files = named.iter().filter(|path| root.join(path).is_file()).count();
        let faults = tried.into_iter().filter(|(path, _)| named.contains(path.as_str()));
        Ok(Copied { files, faults: faults.filter_map(|(_, fault)| fault).collect() })
    }

    fn copy_files(
        &self,
        commit: &Commit,
        root: &Path,
        tried: &mut Tried,
    ) -> Result<(), ArchiveError> {
        for file in commit.checksums() {
            let (name, _, _) = file;
            if !matches!(tried.get(name), Some(None)) {
                let fault = self.copy_file(file, &root.join(name))?;
                tried.insert(name.to_owned(), fault);
            }
        }
        Ok(())
    }

    /// Copies a file, also a damaged one, and returns its fault.
    fn copy_file(
        &self,
        (name, sha256, length): (&str, &str, u64),
        to: &Path,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let fault = self.check(name, sha256, length).err();
        if !matches!(fault, None | Some(ArchiveError::Damaged { .. })) {
            return Ok(fault);
        }
        create_folder(to.parent().unwrap_or(to))?;
        let mut file = File::create(to).map_err(io_at(to))?;
        let mut at = 0;
        while at < length {
            let end = (at + PIECE_BYTES).min(length);
            let piece = match self.store.read_range(name, at..end, length) {
                Ok(piece) => piece,
                Err(fault) => {
                    remove_if_there(to).map_err(io_at(to))?;
                    return Ok(Some(fault));
                }
            };
            // A damaged file may be shorter.
            if piece.is_empty() {
                break;
            }
            file.write_all(&piece).map_err(io_at(to))?;
            at += count(piece.len());
        }
        file.sync_all().map_err(io_at(to))?;
        Ok(fault)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

//! Copies of an archive.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use crate::archive::Archive;
use crate::commit::Commit;
use crate::durable::{count, create_folder};
use crate::error::{ArchiveError, io_at};

/// Bytes copied at a time.
const PIECE_BYTES: u64 = 4 << 20;

impl Archive {
    /// Copies the archive as of its newest commit to a new folder, and returns the number of files.
    ///
    /// # Errors
    /// A file cannot be read or written, or differs from what was committed.
    pub fn copy_to(&self, root: &Path) -> Result<usize, ArchiveError> {
        let target = Self::create(root)?;
        let mut copied: HashSet<String> = HashSet::new();
        let commit = loop {
            let commit = self.newest()?;
            match self.copy_files(&commit, root, &mut copied) {
                Ok(()) => break commit,
                // The copy took so long that a file was replaced and deleted meanwhile.
                Err(error) if self.newest_number()? == commit.commit => return Err(error),
                Err(_) => {}
            }
        };
        let named: HashSet<&str> = commit.paths().collect();
        for path in copied.iter().filter(|path| !named.contains(path.as_str())) {
            let path = root.join(path);
            fs::remove_file(&path).map_err(io_at(&path))?;
        }
        if commit.commit > 0 {
            target.commit(&commit)?;
        }
        Ok(named.len())
    }

    fn copy_files(
        &self,
        commit: &Commit,
        root: &Path,
        copied: &mut HashSet<String>,
    ) -> Result<(), ArchiveError> {
        for (name, sha256, length) in commit.checksums() {
            if copied.contains(name) {
                continue;
            }
            self.check(name, sha256, length)?;
            let to = root.join(name);
            create_folder(to.parent().unwrap_or(root))?;
            let mut file = File::create(&to).map_err(io_at(&to))?;
            let mut at = 0;
            while at < length {
                let end = (at + PIECE_BYTES).min(length);
                let piece = self.store.read_range(name, at..end, length)?;
                file.write_all(&piece).map_err(io_at(&to))?;
                at += count(piece.len()).max(1);
            }
            file.sync_all().map_err(io_at(&to))?;
            copied.insert(name.to_owned());
        }
        Ok(())
    }
}

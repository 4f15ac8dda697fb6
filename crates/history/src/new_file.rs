//! A file on its way into the archive.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::commit::Blob;
use crate::durable::{count, create_folder, nonce, sync_folder};
use crate::error::{ArchiveError, io_at};

/// A file that no commit names yet. Unless it is finished, it is deleted again.
#[derive(Debug)]
pub(crate) struct NewFile {
    name: String,
    path: PathBuf,
    file: File,
    sha256: Sha256,
    bytes: u64,
    finished: bool,
}

impl NewFile {
    /// `name` is its path up to what makes it unique.
    pub(crate) fn create(root: &Path, name: &str, suffix: &str) -> Result<Self, ArchiveError> {
        let name = format!("{name}-{}{suffix}", nonce());
        let path = root.join(&name);
        create_folder(path.parent().unwrap_or(root))?;
        let file = File::create_new(&path).map_err(io_at(&path))?;
        Ok(Self { name, path, file, sha256: Sha256::new(), bytes: 0, finished: false })
    }

    /// Makes it durable.
    pub(crate) fn finish(mut self) -> Result<Blob, ArchiveError> {
        self.file.sync_all().map_err(io_at(&self.path))?;
        sync_folder(self.path.parent().unwrap_or(&self.path))?;
        self.finished = true;
        let sha256 = hex(&std::mem::take(&mut self.sha256).finalize());
        Ok(Blob { path: std::mem::take(&mut self.name), bytes: self.bytes, sha256 })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sha256.update(bytes.get(..written).unwrap_or(bytes));
        self.bytes += count(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.finished {
            // Gives the space back on a full disk. What stays is no part of the archive, and goes later.
            fs::remove_file(&self.path).ok();
        }
    }
}

pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! A file on its way into the archive.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::bucket::{Bucket, Spooled};
use crate::commit::Blob;
use crate::durable::{count, create_folder, hex, nonce, sync_folder};
use crate::error::{ArchiveError, io_at};
use crate::folder::{FolderStore, TEMPORARY_SUFFIX};

/// What is held in memory of a file for a bucket; a larger one goes through a file.
const HELD_MAX: usize = 8 << 20;

/// A file that no commit names yet. Unless it is finished, it is deleted again.
#[derive(Debug)]
pub(crate) struct NewFile {
    name: String,
    place: Place,
    sha256: Sha256,
    bytes: u64,
}

#[derive(Debug)]
enum Place {
    Folder(InFolder),
    Bucket(Bucket, Spooled),
}

#[derive(Debug)]
struct InFolder {
    path: PathBuf,
    file: File,
    finished: bool,
}

impl NewFile {
    /// `name` is its path up to what makes it unique.
    pub(crate) fn in_folder(
        store: &FolderStore,
        name: &str,
        suffix: &str,
    ) -> Result<Self, ArchiveError> {
        let name = unique(name, suffix);
        let path = store.path(&name);
        create_folder(path.parent().unwrap_or(store.root()))?;
        let file = File::create_new(&path).map_err(io_at(&path))?;
        Ok(Self::new(name, Place::Folder(InFolder { path, file, finished: false })))
    }

    /// The same in a bucket, which has it once it is finished.
    pub(crate) fn in_bucket(bucket: &Bucket, name: &str, suffix: &str) -> Self {
        let spooled = Spooled::Memory(Vec::new());
        Self::new(unique(name, suffix), Place::Bucket(bucket.clone(), spooled))
    }

    fn new(name: String, place: Place) -> Self {
        Self { name, place, sha256: Sha256::new(), bytes: 0 }
    }

    /// Makes it durable.
    pub(crate) fn finish(self) -> Result<Blob, ArchiveError> {
        let Self { name, place, sha256, bytes } = self;
        let sha256 = hex(&sha256.finalize());
        match place {
            Place::Folder(mut place) => {
                place.file.sync_all().map_err(io_at(&place.path))?;
                sync_folder(place.path.parent().unwrap_or(&place.path))?;
                place.finished = true;
            }
            Place::Bucket(bucket, spooled) => {
                bucket.put_spooled(&name, spooled, (bytes, &sha256))?;
            }
        }
        Ok(Blob { path: name, bytes, sha256 })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.place {
            Place::Folder(place) => place.file.write(bytes)?,
            Place::Bucket(bucket, spooled) => spooled.write(bytes, bucket)?,
        };
        self.sha256.update(bytes.get(..written).unwrap_or(bytes));
        self.bytes += count(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Folder(place) => place.file.flush(),
            Place::Bucket(_, _) => Ok(()),
        }
    }
}

impl Drop for InFolder {
    fn drop(&mut self) {
        if !self.finished {
            // Gives the space back on a full disk. What stays is no part of the archive, and goes later.
            fs::remove_file(&self.path).ok();
        }
    }
}

impl Spooled {
    fn write(&mut self, bytes: &[u8], bucket: &Bucket) -> io::Result<usize> {
        if let Self::Memory(held) = self
            && held.len() + bytes.len() > HELD_MAX
        {
            let path = bucket.options().spool.join(unique("bucket", TEMPORARY_SUFFIX));
            let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
            // It has no name, and goes with this process.
            fs::remove_file(&path)?;
            file.write_all(held)?;
            *self = Self::File(file);
        }
        match self {
            Self::Memory(held) => held.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }
}

fn unique(name: &str, suffix: &str) -> String {
    format!("{name}-{}{suffix}", nonce())
}

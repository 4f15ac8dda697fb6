//! A file that is being written to the archive.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::bucket::{Bucket, Upload};
use crate::commit::Blob;
use crate::durable::{count, create_folder, hex, nonce, sync_folder};
use crate::error::{ArchiveError, io_at};
use crate::folder::FolderStore;

/// A file that no commit names yet. It is deleted unless it is finished.
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
    Bucket(Upload),
}

#[derive(Debug)]
struct InFolder {
    path: PathBuf,
    file: File,
    finished: bool,
}

impl NewFile {
    /// `name` is its path without the unique part.
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

    /// The same in a bucket, where it appears once it is finished.
    pub(crate) fn in_bucket(bucket: &Bucket, name: &str, suffix: &str) -> Self {
        let name = unique(name, suffix);
        let upload = Upload::new(bucket, &name);
        Self::new(name, Place::Bucket(upload))
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
            Place::Bucket(upload) => upload.finish()?,
        }
        Ok(Blob { path: name, bytes, sha256 })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.place {
            Place::Folder(place) => place.file.write(bytes)?,
            Place::Bucket(upload) => upload.write(bytes)?,
        };
        self.sha256.update(bytes.get(..written).unwrap_or(bytes));
        self.bytes += count(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Folder(place) => place.file.flush(),
            Place::Bucket(upload) => upload.flush(),
        }
    }
}

impl Drop for InFolder {
    fn drop(&mut self) {
        if !self.finished {
            // Frees the space on a full disk. A file that cannot be removed is not part of the archive, and is deleted
            // later.
            fs::remove_file(&self.path).ok();
        }
    }
}

fn unique(name: &str, suffix: &str) -> String {
    format!("{name}-{}{suffix}", nonce())
}

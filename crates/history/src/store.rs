//! The location of an archive's files: a folder or a bucket. Both have the same layout.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::bucket::{Bucket, BucketOptions};
use crate::error::ArchiveError;
use crate::folder::FolderStore;
use crate::new_file::NewFile;
use crate::object::Object;
use crate::source::Source;

/// The location of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Folder(PathBuf),
    Bucket(Box<BucketOptions>),
}

impl Location {
    /// A location within it.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Folder(path) => Self::Folder(path.join(name)),
            Self::Bucket(options) => Self::Bucket(Box::new(options.join(name))),
        }
    }

    /// The folder; `None` for a bucket.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) => Some(path),
            Self::Bucket(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Bucket(options) => write!(f, "{options}"),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::Folder(path)
    }
}

/// Reads and writes files. Names are relative, with slashes.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    Folder(FolderStore),
    Bucket(Bucket),
}

impl Store {
    pub(crate) fn at(location: &Location) -> Self {
        match location {
            Location::Folder(path) => Self::Folder(FolderStore::at(path)),
            Location::Bucket(options) => Self::Bucket(Bucket::new((**options).clone())),
        }
    }

    /// True if there may be a folder of this name; false only if it is known to be missing.
    pub(crate) fn may_have(&self, folder: &str) -> bool {
        match self {
            Self::Folder(store) => store.may_have(folder),
            Self::Bucket(_) => true,
        }
    }

    /// Creates what is missing, and checks that a second writer in this folder is excluded.
    pub(crate) fn prepare(&self, folder: &str) -> Result<(), ArchiveError> {
        match self {
            Self::Folder(store) => store.prepare(folder),
            Self::Bucket(store) => store.prepare(folder),
        }
    }

    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Result<Bytes, ArchiveError> {
        match self {
            Self::Folder(store) => store.read(name),
            Self::Bucket(store) => store.read(name, bytes_max),
        }
    }

    /// A part of a file that has `length` bytes.
    pub(crate) fn read_range(
        &self,
        name: &str,
        range: Range<u64>,
        length: u64,
    ) -> Result<Bytes, ArchiveError> {
        match self {
            Self::Folder(store) => store.read_range(name, range),
            Self::Bucket(store) => store.read_range(name, range, length),
        }
    }

    /// Creates a file as a whole, unless it exists, and returns whether it did so.
    pub(crate) fn create_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ArchiveError> {
        match self {
            Self::Folder(store) => store.create_new(name, bytes),
            Self::Bucket(store) => store.create_new(name, bytes),
        }
    }

    /// Replaces a file as a whole.
    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        match self {
            Self::Folder(store) => store.overwrite(name, bytes),
            Self::Bucket(store) => store.overwrite(name, bytes),
        }
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        match self {
            Self::Folder(store) => store.remove(name),
            Self::Bucket(store) => store.remove(name),
        }
    }

    /// The files of a folder, or all files if the name is empty.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Object>, ArchiveError> {
        match self {
            Self::Folder(store) => store.list(folder),
            Self::Bucket(store) if folder.is_empty() => store.list(""),
            Self::Bucket(store) => store.list(&format!("{folder}/")),
        }
    }

    /// A new file, whose name has this beginning and end.
    pub(crate) fn new_file(&self, name: &str, suffix: &str) -> Result<NewFile, ArchiveError> {
        match self {
            Self::Folder(store) => NewFile::in_folder(store, name, suffix),
            Self::Bucket(store) => Ok(NewFile::in_bucket(store, name, suffix)),
        }
    }

    /// Opens a file of `length` bytes, to be read in pieces.
    pub(crate) fn open(&self, name: &str, length: u64) -> Result<Source, ArchiveError> {
        match self {
            Self::Folder(store) => Ok(Source::File(store.open(name)?.into())),
            Self::Bucket(store) => Ok(Source::remote(store.clone(), name, length)),
        }
    }

    /// The time by the clock of a folder, if it can be found out.
    pub(crate) fn now_ms(&self) -> Option<i64> {
        match self {
            Self::Folder(store) => store.now_ms(),
            Self::Bucket(_) => None,
        }
    }

    /// True if it is time to look for files to delete, given the time for which they are kept.
    pub(crate) fn is_clean_due(&self, kept: Duration) -> bool {
        match self {
            Self::Folder(_) => true,
            Self::Bucket(store) => store.is_clean_due(kept / 4),
        }
    }
}

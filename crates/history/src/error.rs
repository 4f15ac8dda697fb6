//! The errors of an archive.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// The archive could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A file differs from what was committed.
    #[error("`{path}` of the archive is damaged: {reason}")]
    Damaged { path: String, reason: &'static str },
    /// A bucket does not have a committed file.
    #[error("`{path}` of the archive is missing")]
    Absent { path: String },
    #[error("`{path}` of the archive cannot be read as Parquet")]
    Unreadable { path: String, source: ParquetError },
    #[error("rows of `{table}` cannot be written as Parquet")]
    Unwritable { table: &'static str, source: ParquetError },
    #[error("the rows cannot be written")]
    Output(#[source] io::Error),
    #[error("entry {seq} is incomplete or duplicated in the archive")]
    Entry { seq: u64 },
    #[error("the archive was written by a newer program: its schema is {0}, this program knows {known}", known = crate::SCHEMA)]
    Newer(u32),
    #[error(
        "the folder `{}` cannot hold an archive: its file system has no hard links, or makes one that exists already",
        .0.display()
    )]
    NotExclusive(PathBuf),
    #[error(
        "the archive that was begun in `{}` is not there; if its disk or share is not mounted, mount it, and to begin a \
         new one, delete `{}`",
        path.display(),
        noted.display()
    )]
    Missing { path: PathBuf, noted: PathBuf },
    #[error("the bucket `{bucket}` cannot be used: {reason}")]
    Bucket { bucket: String, reason: String },
    #[error(
        "the bucket `{0}` cannot hold an archive: it does not refuse to create an object that exists already, \
         and only that (conditional writes with `If-None-Match: *`)"
    )]
    BucketNotExclusive(String),
}

impl ArchiveError {
    /// True if the place can never hold an archive, because it cannot exclude a second writer.
    pub fn is_not_exclusive(&self) -> bool {
        matches!(self, Self::NotExclusive(_) | Self::BucketNotExclusive(_))
    }

    /// True if a file is damaged or missing: a retry does not help, and other files may be intact.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Unreadable { source, .. } => of_store(source).is_none_or(Self::is_damage),
            Self::Damaged { .. } | Self::Absent { .. } | Self::Entry { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Unwritable { .. }
            | Self::Output(_)
            | Self::Newer(_)
            | Self::NotExclusive(_)
            | Self::Missing { .. }
            | Self::Bucket { .. }
            | Self::BucketNotExclusive(_) => false,
        }
    }

    /// True if the system refuses access to a file, for example to one that another user owns.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// The error of a bucket while a file was read, which is wrapped in errors of reading and of Parquet.
fn of_store<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a ArchiveError> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_store(error.get_ref()?);
    }
    match error.downcast_ref::<ParquetError>() {
        Some(ParquetError::External(inner)) => of_store(&**inner),
        _ => error.downcast_ref::<ArchiveError>(),
    }
}

pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError + '_ {
    move |source| ArchiveError::Io { path: path.to_owned(), source }
}

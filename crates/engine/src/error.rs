//! The reasons why a world cannot be opened or followed.

use archive::ArchiveError;
use change_log::LogError;
use market::book::ImageError;
use market::{ChangeError, NotDone};

/// A world could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error("the change log cannot be used")]
    Log(#[from] LogError),
    #[error("the change log was written by a newer program")]
    Change(#[from] ChangeError),
    #[error("the checkpoint was written by a newer program")]
    Image(#[from] ImageError),
    #[error(
        "the log is empty but was not before: data loss. Restore it, or reinitialise it (docs/operations/failures.md)"
    )]
    LogEmptied,
    #[error(
        "the log begins with entry {first}, and no checkpoint holds all that was before it: restore the stream of checkpoints (docs/operations/failures.md)"
    )]
    MissingPrefix { first: u64 },
    #[error("the log does not deliver its newest entries")]
    Stalled,
    #[error("entry {read} was read, but the log has other entries now and ends with {last}")]
    LogRewritten { last: u64, read: u64 },
    #[error("other nodes write the log faster than it can be read")]
    CannotCatchUp,
    #[error("a world that several nodes share needs its log on servers")]
    NotShared,
    #[error("the archive cannot be used")]
    Archive(#[from] ArchiveError),
}

impl WorldError {
    /// True if the content of the log cannot be read, however often it is retried.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Change(_) | Self::Image(_) | Self::NotShared => true,
            Self::Log(LogError::Corrupt { .. } | LogError::UnknownFormat { .. }) => true,
            Self::Log(_)
            | Self::LogEmptied
            | Self::MissingPrefix { .. }
            | Self::Stalled
            | Self::LogRewritten { .. }
            | Self::CannotCatchUp
            | Self::Archive(_) => false,
        }
    }

    /// True if the reason is that a newer program wrote it. Entries and checkpoints have checksums of their own:
    /// content that is whole and cannot be decoded is not damaged, but has a version or a variant that this program
    /// does not know.
    pub(crate) fn is_of_newer_program(&self) -> bool {
        matches!(self, Self::Change(_) | Self::Image(_) | Self::Log(LogError::UnknownFormat { .. }))
    }
}

/// A batch was not made durable as a whole. Some of it may be stored; sending it again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    LogFailed,
    Stopped,
    /// Another node is the leader now.
    Overtaken,
    /// No leader was reached, or it did not answer.
    NoWriter,
    /// It was forwarded and arrived too late.
    Overdue,
    /// The feed's right to push was withdrawn.
    Withdrawn,
}

/// An operation could not be carried out; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperateError {
    #[error(transparent)]
    NotDone(#[from] NotDone),
    #[error("it could not be made durable; try again")]
    LogFailed,
    #[error("the service is busy or stopping; try again shortly")]
    Busy,
    /// Another node has written since; the operation is retried there.
    #[error("another node is the leader now; try again")]
    Overtaken,
    #[error(
        "the leader was not reached, so it is not known whether the operation was done; check, and try again shortly"
    )]
    NoWriter,
}

/// An error with its causes, for a log line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use market::{Book, CHANGE_VERSION, Change};

    use super::*;

    #[test]
    fn what_is_whole_and_not_understood_is_a_newer_programs() {
        let version = Change::decode(CHANGE_VERSION + 1, &[]).unwrap_err();
        // Variants are added at the end, without a new version.
        let variant = Change::decode(CHANGE_VERSION, &[100]).unwrap_err();
        let image = Book::from_image(99, &[], Arc::new(domain::Catalogue::load(None).unwrap()));
        let errors = [version.into(), variant.into(), WorldError::Image(image.unwrap_err())];
        assert!(errors.iter().all(|error| error.is_lasting() && error.is_of_newer_program()));
        assert!(!WorldError::Stalled.is_lasting() && !WorldError::Stalled.is_of_newer_program());
    }
}

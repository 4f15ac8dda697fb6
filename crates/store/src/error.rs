//! What can go wrong with the store, without saying which database it is.

use sqlx::migrate::MigrateError;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Locked for too long, disk full, not reachable, not readable. Worth another try.
    #[error("the account store cannot be reached")]
    Unavailable(#[source] Cause),
    /// Something with that name or identity is there already.
    #[error("the account store already holds such an entry")]
    Conflict(#[source] Cause),
    /// The file is damaged, no database, or from a newer version. Another try will not help.
    #[error("the account store cannot be read: damaged, or written by a newer version")]
    Corrupt(#[source] Cause),
}

impl StoreError {
    pub(crate) fn corrupt(what: &'static str) -> Self {
        Self::Corrupt(what.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Database(cause) = &error {
            if cause.is_unique_violation() {
                return Self::Conflict(Box::new(error));
            }
            // SQLITE_CORRUPT and SQLITE_NOTADB; the low byte is the primary result code.
            let primary = cause.code().and_then(|code| code.parse::<i32>().ok()).map(|c| c & 0xff);
            if matches!(primary, Some(11 | 26)) {
                return Self::Corrupt(Box::new(error));
            }
        }
        let undecodable = matches!(
            error,
            sqlx::Error::ColumnDecode { .. }
                | sqlx::Error::ColumnNotFound(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::TypeNotFound { .. }
        );
        if undecodable {
            Self::Corrupt(Box::new(error))
        } else {
            Self::Unavailable(Box::new(error))
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        if let MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) = error {
            return cause.into();
        }
        Self::Corrupt(Box::new(error))
    }
}

//! Errors of the store, independent of the database.

use sqlx::{error::DatabaseError, migrate::MigrateError, postgres::PgDatabaseError};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Locked for too long, disk full, not reachable, not readable. A retry may succeed.
    #[error("the account store cannot be reached")]
    Unavailable(#[source] Cause),
    /// An entry with that name or identity exists already.
    #[error("the account store already holds such an entry")]
    Conflict(#[source] Cause),
    /// The database is damaged, not one of ours, or from a newer version. A retry will not help.
    #[error("the account store cannot be read: damaged, or written by a newer version")]
    Corrupt(#[source] Cause),
    /// The target of a transfer holds data already.
    #[error("the database already holds data (table `{table}`); move into an empty one")]
    NotEmpty { table: String },
    /// The database's address is malformed. It is not repeated in the message, since it may hold a password.
    #[error(
        "the address of the account store is not understood; it is of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Address,
}

impl StoreError {
    pub(crate) fn corrupt(what: &'static str) -> Self {
        Self::Corrupt(what.into())
    }

    pub(crate) fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Database(cause) = &error {
            if cause.is_unique_violation() {
                return Self::Conflict(Box::new(error));
            }
            if is_damage(&**cause) {
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

/// Whether the database reports that it is damaged, or that it does not have the tables this program knows.
fn is_damage(cause: &(dyn DatabaseError + 'static)) -> bool {
    if let Some(postgres) = cause.try_downcast_ref::<PgDatabaseError>() {
        // Class 42: a missing table or column (42501 is a missing permission). XX001 and XX002: damaged data, a
        // damaged index.
        let code = postgres.code();
        return (code.starts_with("42") && code != "42501") || matches!(code, "XX001" | "XX002");
    }
    // SQLITE_CORRUPT and SQLITE_NOTADB; the low byte is the primary result code.
    let primary = cause.code().and_then(|code| code.parse::<i32>().ok()).map(|code| code & 0xff);
    matches!(primary, Some(11 | 26))
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        if let MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) = error {
            return cause.into();
        }
        Self::Corrupt(Box::new(error))
    }
}

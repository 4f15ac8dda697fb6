//! The migrations of both databases, embedded by `build.rs`.

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// Version, description and SQL.
pub(crate) type Embedded = (i64, &'static str, &'static str);

/// Builds the migrator of `sqlx`.
pub(crate) fn of(embedded: &[Embedded]) -> Migrator {
    let migration = |(version, description, sql): &Embedded| {
        let (kind, sql) = (MigrationType::Simple, SqlStr::from_static(sql));
        Migration::new(*version, (*description).into(), kind, sql, false)
    };
    Migrator::with_migrations(embedded.iter().map(migration).collect())
}

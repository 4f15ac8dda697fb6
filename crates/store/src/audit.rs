//! The audit log. Rows are added and read; the database refuses to change or delete them.

use crate::{
    Store, StoreError,
    database::{Table, Tx, columns, from_row, query, select},
    like_pattern,
};

/// A new line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at_ms: i64,
    pub account_id: Option<String>,
    /// The actor: an email address, or a word such as `command line`.
    pub who: String,
    pub action: String,
    /// The object of the action.
    pub subject: String,
    pub detail: String,
    pub address: String,
}

columns!(AuditEntry, [at_ms, account_id, who, action, subject, detail, address], []);

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: i64,
    pub entry: AuditEntry,
}

from_row!(AuditRow, |row| Self { seq: row.try_get("seq")?, entry: sqlx::FromRow::from_row(row)? });

/// Selects entries; each `None` matches everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditFilter<'a> {
    pub account_id: Option<&'a str>,
    pub action: Option<&'a str>,
    /// Text contained in who, subject, detail or address.
    pub text: Option<&'a str>,
    /// Only entries with a smaller number.
    pub before: Option<i64>,
}

impl Table for AuditRow {
    const NAME: &'static str = "audit";
    const COLUMNS: &'static str = "seq, at_ms, account_id, who, action, subject, detail, address";
}

impl Tx {
    /// Adds an entry, in this transaction.
    pub(crate) async fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        query(
            "INSERT INTO audit (at_ms, account_id, who, action, subject, detail, address) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(entry.at_ms)
        .bind(&entry.account_id)
        .bind(&entry.who)
        .bind(&entry.action)
        .bind(&entry.subject)
        .bind(&entry.detail)
        .bind(&entry.address)
        .execute(self)
        .await?;
        Ok(())
    }

    /// Commits together with an entry, if there is one.
    pub(crate) async fn commit_with(
        mut self,
        audit: impl Into<Option<&AuditEntry>>,
    ) -> Result<(), StoreError> {
        if let Some(entry) = audit.into() {
            self.audit(entry).await?;
        }
        self.commit().await
    }

    /// Commits with an entry if something was changed; otherwise rolls back.
    pub(crate) async fn commit_if(
        self,
        changed: bool,
        audit: impl Into<Option<&AuditEntry>>,
    ) -> Result<bool, StoreError> {
        if changed {
            self.commit_with(audit).await?;
        }
        Ok(changed)
    }

    /// As [`Tx::commit_change`] if a row was changed; otherwise rolls back.
    pub(crate) async fn commit_changed<R>(
        self,
        row: Option<R>,
        audit: &AuditEntry,
    ) -> Result<Option<R>, StoreError> {
        if row.is_some() {
            self.commit_change(audit).await?;
        }
        Ok(row)
    }

    /// Commits a change of state that nodes hold in memory, with its entry.
    pub(crate) async fn commit_change(mut self, audit: &AuditEntry) -> Result<(), StoreError> {
        self.audit(audit).await?;
        self.number_change().await?;
        self.commit().await
    }
}

impl Store {
    /// Adds entries about actions outside this store; changes of the store are committed with their entries. All or
    /// none.
    pub async fn append_audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin_write().await?;
        for entry in entries {
            tx.audit(entry).await?;
        }
        tx.commit().await
    }

    /// Entries of one account or of all, newest first; older than `before` if it is given.
    pub async fn audit(
        &self,
        account_id: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let filter = AuditFilter { account_id, before, ..AuditFilter::default() };
        self.find_audit(&filter, limit).await
    }

    /// Entries that match, newest first.
    pub async fn find_audit(
        &self,
        filter: &AuditFilter<'_>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        select::<AuditRow>(
            "WHERE ($1 IS NULL OR account_id = $1) AND ($2 IS NULL OR seq < $2) \
             AND ($3 IS NULL OR action = $3) \
             AND ($4 IS NULL OR LOWER(who) LIKE $4 ESCAPE '!' OR LOWER(subject) LIKE $4 ESCAPE '!' \
             OR LOWER(detail) LIKE $4 ESCAPE '!' OR LOWER(address) LIKE $4 ESCAPE '!') \
             ORDER BY seq DESC LIMIT $5",
        )
        .bind(filter.account_id)
        .bind(filter.before)
        .bind(filter.action)
        .bind(filter.text.map(like_pattern))
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }
}

//! Who did what, when and from where. Rows are added and read, never changed; the database refuses it too.

use crate::{Store, StoreError, database::query};

/// Something to be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at_ms: i64,
    pub account_id: Option<String>,
    /// As whom they are known: an address, or a word such as `command line`.
    pub who: String,
    pub action: String,
    /// What it was done to.
    pub subject: String,
    pub detail: String,
    pub address: String,
}

/// Something written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: i64,
    pub entry: AuditEntry,
}

/// Named one by one, here and in every statement: a newer version of the program may add columns while this one runs.
macro_rules! columns {
    () => {
        "seq, at_ms, account_id, who, action, subject, detail, address"
    };
}

#[derive(sqlx::FromRow)]
struct RawAudit {
    seq: i64,
    at_ms: i64,
    account_id: Option<String>,
    who: String,
    action: String,
    subject: String,
    detail: String,
    address: String,
}

impl From<RawAudit> for AuditRow {
    fn from(raw: RawAudit) -> Self {
        Self {
            seq: raw.seq,
            entry: AuditEntry {
                at_ms: raw.at_ms,
                account_id: raw.account_id,
                who: raw.who,
                action: raw.action,
                subject: raw.subject,
                detail: raw.detail,
                address: raw.address,
            },
        }
    }
}

impl Store {
    /// Writes an entry down.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query(
            "INSERT INTO audit (at_ms, account_id, who, action, subject, detail, address) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(entry.at_ms)
        .bind(entry.account_id.as_deref())
        .bind(&entry.who)
        .bind(&entry.action)
        .bind(&entry.subject)
        .bind(&entry.detail)
        .bind(&entry.address)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// Entries, newest first, older than `before` where it is given; of one account, or of all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn audit(
        &self,
        account_id: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let rows: Vec<RawAudit> = query(concat!(
            "SELECT ",
            columns!(),
            " FROM audit WHERE ($1 IS NULL OR account_id = $1) \
             AND ($2 IS NULL OR seq < $2) ORDER BY seq DESC LIMIT $3"
        ))
        .bind(account_id)
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await?;
        Ok(rows.into_iter().map(AuditRow::from).collect())
    }
}

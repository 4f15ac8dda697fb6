//! One-time links. The token of a link is never stored, only its digest.

use crate::{
    AccountRow, AuditEntry, Digest, Store, StoreError,
    database::{Lock, Table, Tx, columns, query, select, text_column},
};

/// The purpose of a link, which its holder can use once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPurpose {
    /// Create an operator's account.
    FirstOperator,
    /// Create a developer's account when sign-up is not open.
    Invitation,
    /// Set an account's password.
    PasswordReset,
    /// Confirm that email reaches the account.
    Confirmation,
}

text_column!(
    LinkPurpose,
    "link purpose",
    [
        FirstOperator = "first_operator",
        Invitation = "invitation",
        PasswordReset = "password_reset",
        Confirmation = "confirmation"
    ]
);

/// One link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    pub digest: Digest,
    pub purpose: LinkPurpose,
    /// The account whose password is set or whose address is confirmed.
    pub account_id: Option<String>,
    /// The only address for which an invitation is valid.
    pub email: Option<String>,
    pub created_ms: i64,
    pub expires_ms: i64,
    pub used_ms: Option<i64>,
}

columns!(
    LinkRow,
    [account_id, email, created_ms, expires_ms, used_ms],
    [digest: Vec<u8>, purpose: String]
);

impl Table for LinkRow {
    const NAME: &'static str = "link";
    const COLUMNS: &'static str =
        "digest, purpose, account_id, email, created_ms, expires_ms, used_ms";
}

impl Store {
    /// Stores a new link. Earlier unused links for the same account, or for an operator, are deleted: only the newest
    /// works.
    pub async fn insert_link(
        &self,
        link: &LinkRow,
        audit: Option<&AuditEntry>,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        if link.purpose != LinkPurpose::Invitation {
            tx.lock(Lock::Links).await?;
            query(
                "DELETE FROM link WHERE purpose = $1 AND account_id IS NOT DISTINCT FROM $2 AND used_ms IS NULL",
            )
            .bind(link.purpose.as_str())
            .bind(&link.account_id)
            .execute(&mut tx)
            .await?;
        }
        query(
            "INSERT INTO link (digest, purpose, account_id, email, created_ms, expires_ms) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(link.digest.as_slice())
        .bind(link.purpose.as_str())
        .bind(&link.account_id)
        .bind(&link.email)
        .bind(link.created_ms)
        .bind(link.expires_ms)
        .execute(&mut tx)
        .await?;
        tx.commit_with(audit).await
    }

    pub async fn link(&self, digest: &Digest) -> Result<Option<LinkRow>, StoreError> {
        select::<LinkRow>("WHERE digest = $1")
            .bind(digest.as_slice())
            .fetch_optional(&self.database)
            .await
    }

    /// Uses a link and stores its new account, both or neither. `false`: the link is no longer valid, or the address
    /// has an account.
    pub async fn insert_account_by_link(
        &self,
        (link, now_ms): (&Digest, i64),
        account: &AccountRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let done = tx.use_link(link, now_ms).await? && tx.insert_account(account).await?;
        tx.commit_if(done, audit).await
    }

    /// Uses a link, sets its account's password, ends the sessions and confirms the address, all or nothing. `false`:
    /// the link is no longer valid.
    pub async fn set_password_by_link(
        &self,
        (link, now_ms): (&Digest, i64),
        account_id: &str,
        password: &str,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        if !tx.use_link(link, now_ms).await? {
            return Ok(false);
        }
        tx.set_password(account_id, password, None).await?;
        tx.confirm_account(account_id, now_ms).await?;
        tx.commit_with(audit).await?;
        Ok(true)
    }

    /// Uses a link and confirms its account's address, both or neither. `false`: the link is no longer valid.
    pub async fn confirm_account_by_link(
        &self,
        (link, now_ms): (&Digest, i64),
        account_id: &str,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        if !tx.use_link(link, now_ms).await? {
            return Ok(false);
        }
        tx.confirm_account(account_id, now_ms).await?;
        tx.commit_with(audit).await?;
        Ok(true)
    }
}

impl Tx {
    /// Uses a link. `false`: it does not exist, was used before or has expired.
    pub(crate) async fn use_link(
        &mut self,
        digest: &Digest,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let used = query(
            "UPDATE link SET used_ms = $2 WHERE digest = $1 AND used_ms IS NULL AND expires_ms > $2",
        )
        .bind(digest.as_slice())
        .bind(now_ms)
        .execute(self)
        .await?;
        Ok(used == 1)
    }
}

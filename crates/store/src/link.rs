//! One-time links as rows. The link's token is never here, only its digest.

use crate::{
    AccountRow, AuditEntry, Digest, Store, StoreError,
    database::{Lock, Tx, query, text_column},
};

/// What a link lets its holder do, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPurpose {
    /// Make the first operator's account.
    FirstOperator,
    /// Make a developer's account where sign-up is not open.
    Invitation,
    /// Set an account's password.
    PasswordReset,
    /// Show that mail reaches the account's address.
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
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct LinkRow {
    #[sqlx(try_from = "Vec<u8>")]
    pub digest: Digest,
    #[sqlx(try_from = "String")]
    pub purpose: LinkPurpose,
    /// Whose password is set anew, or whose address is confirmed.
    pub account_id: Option<String>,
    /// The only address an invitation is for.
    pub email: Option<String>,
    pub created_ms: i64,
    pub expires_ms: i64,
    pub used_ms: Option<i64>,
}

/// Named one by one, here and in every statement: a newer version of the program may add columns while this one runs.
macro_rules! columns {
    () => {
        "digest, purpose, account_id, email, created_ms, expires_ms, used_ms"
    };
}

impl Store {
    /// Keeps a new link. Earlier unused ones for the same account, or for the first operator, end with
    /// it: only the newest works.
    ///
    /// # Errors
    /// The store cannot be written.
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
            .bind(link.account_id.as_deref())
            .execute(&mut tx)
            .await?;
        }
        query(
            "INSERT INTO link (digest, purpose, account_id, email, created_ms, expires_ms) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(link.digest.as_slice())
        .bind(link.purpose.as_str())
        .bind(link.account_id.as_deref())
        .bind(link.email.as_deref())
        .bind(link.created_ms)
        .bind(link.expires_ms)
        .execute(&mut tx)
        .await?;
        tx.commit_with(audit).await
    }

    /// The link with this digest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn link(&self, digest: &Digest) -> Result<Option<LinkRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM link WHERE digest = $1"))
            .bind(digest.as_slice())
            .fetch_optional(&self.database)
            .await
    }

    /// Uses a link up and keeps the account that it is for, both or neither. `false`: the link is not good any more, or
    /// the address has an account.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn insert_account_by_link(
        &self,
        (link, now_ms): (&Digest, i64),
        account: &AccountRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        if !tx.use_link(link, now_ms).await? || !tx.insert_account(account).await? {
            return Ok(false);
        }
        tx.commit_with(audit).await?;
        Ok(true)
    }

    /// Uses a link up, gives the account that it is for a password, ends its sessions and takes its address for
    /// confirmed, all or nothing. `false`: the link is not good any more.
    ///
    /// # Errors
    /// The store cannot be written.
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

    /// Uses a link up and notes that mail reaches the account that it is for, both or neither. `false`: the link is not
    /// good any more.
    ///
    /// # Errors
    /// The store cannot be written.
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
    /// Uses a link up. `false`: it is none, was used before or has expired.
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

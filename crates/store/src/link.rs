//! One-time links as rows. The link's token is never here, only its digest.

use crate::{
    AccountRow, AuditEntry, Digest, Store, StoreError,
    database::{Alone, Tx, query},
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

impl LinkPurpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::FirstOperator => "first_operator",
            Self::Invitation => "invitation",
            Self::PasswordReset => "password_reset",
            Self::Confirmation => "confirmation",
        }
    }

    fn parse(text: &str) -> Result<Self, StoreError> {
        [Self::FirstOperator, Self::Invitation, Self::PasswordReset, Self::Confirmation]
            .into_iter()
            .find(|purpose| purpose.as_str() == text)
            .ok_or_else(|| StoreError::corrupt("unknown link purpose"))
    }
}

/// One link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    pub digest: Digest,
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

#[derive(sqlx::FromRow)]
struct RawLink {
    digest: Vec<u8>,
    purpose: String,
    account_id: Option<String>,
    email: Option<String>,
    created_ms: i64,
    expires_ms: i64,
    used_ms: Option<i64>,
}

impl TryFrom<RawLink> for LinkRow {
    type Error = StoreError;

    fn try_from(raw: RawLink) -> Result<Self, StoreError> {
        Ok(Self {
            digest: Digest::try_from_column(&raw.digest)?,
            purpose: LinkPurpose::parse(&raw.purpose)?,
            account_id: raw.account_id,
            email: raw.email,
            created_ms: raw.created_ms,
            expires_ms: raw.expires_ms,
            used_ms: raw.used_ms,
        })
    }
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
            tx.be_alone(Alone::Links).await?;
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
        if let Some(entry) = audit {
            tx.audit(entry).await?;
        }
        tx.commit().await
    }

    /// The link with this digest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn link(&self, digest: &Digest) -> Result<Option<LinkRow>, StoreError> {
        let row: Option<RawLink> =
            query(concat!("SELECT ", columns!(), " FROM link WHERE digest = $1"))
                .bind(digest.as_slice())
                .fetch_optional(&self.database)
                .await?;
        row.map(LinkRow::try_from).transpose()
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
        tx.audit(audit).await?;
        tx.commit().await?;
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
        tx.audit(audit).await?;
        tx.commit().await?;
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
        tx.audit(audit).await?;
        tx.commit().await?;
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

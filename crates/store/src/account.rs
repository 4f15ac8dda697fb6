//! Accounts of developers and operators.

use std::fmt;

use crate::{
    AuditEntry, Digest, Store, StoreError,
    database::{Lock, Table, Tx, built_query, from_row, query, select, text_column, to_count},
    like_pattern,
};

/// The rights of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Has API keys.
    Developer,
    /// Runs the service.
    Operator,
}

text_column!(Role, "role", [Developer = "developer", Operator = "operator"]);

/// The state of an account's time-based codes. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Totp {
    pub secret: Vec<u8>,
    /// `None`: offered, but not required until a code is entered.
    pub confirmed_ms: Option<i64>,
    /// The newest step whose code was accepted.
    pub step: Option<i64>,
}

impl fmt::Debug for Totp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Totp").field("confirmed_ms", &self.confirmed_ms).finish_non_exhaustive()
    }
}

/// Limits that an operator sets for an account; `None`: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Maximum number of active keys.
    pub keys_max: Option<u32>,
    pub burst_per_minute: Option<u32>,
    pub requests_per_day: Option<u32>,
    pub requests_per_month: Option<u32>,
}

/// One account. `Debug` does not show the password's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountRow {
    pub id: String,
    pub email: String,
    pub name: String,
    pub role: Role,
    /// A PHC string.
    pub password: Option<String>,
    pub created_ms: i64,
    pub suspended_ms: Option<i64>,
    pub production_ms: Option<i64>,
    /// When the address was confirmed, by email or by an operator's link.
    pub confirmed_ms: Option<i64>,
    pub totp: Option<Totp>,
    pub allowance: Allowance,
}

impl fmt::Debug for AccountRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountRow")
            .field("id", &self.id)
            .field("email", &self.email)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Table for AccountRow {
    const NAME: &'static str = "account";
    const COLUMNS: &'static str = "id, email, name, role, password, created_ms, suspended_ms, production_ms, confirmed_ms, \
         totp_secret, totp_confirmed_ms, totp_step, keys_max, burst_per_minute, \
         requests_per_day, requests_per_month";
}

from_row!(AccountRow, |row| {
    let count = |column: Option<i64>| column.map(to_count).transpose();
    let (confirmed_ms, step) = (row.try_get("totp_confirmed_ms")?, row.try_get("totp_step")?);
    let secret: Option<Vec<u8>> = row.try_get("totp_secret")?;
    let role: String = row.try_get("role")?;
    Self {
        id: row.try_get("id")?,
        email: row.try_get("email")?,
        name: row.try_get("name")?,
        role: role.try_into().map_err(|error: StoreError| sqlx::Error::Decode(error.into()))?,
        password: row.try_get("password")?,
        created_ms: row.try_get("created_ms")?,
        suspended_ms: row.try_get("suspended_ms")?,
        production_ms: row.try_get("production_ms")?,
        confirmed_ms: row.try_get("confirmed_ms")?,
        totp: secret.map(|secret| Totp { secret, confirmed_ms, step }),
        allowance: Allowance {
            keys_max: count(row.try_get("keys_max")?)?,
            burst_per_minute: count(row.try_get("burst_per_minute")?)?,
            requests_per_day: count(row.try_get("requests_per_day")?)?,
            requests_per_month: count(row.try_get("requests_per_month")?)?,
        },
    }
});

impl Store {
    /// Stores a new account. `false`: the address has an account already, and nothing was changed.
    pub async fn insert_account(
        &self,
        account: &AccountRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let inserted = tx.insert_account(account).await?;
        tx.commit_if(inserted, audit).await
    }

    /// Accounts, newest first.
    pub async fn accounts(&self, limit: u32) -> Result<Vec<AccountRow>, StoreError> {
        select::<AccountRow>("ORDER BY created_ms DESC, id LIMIT $1")
            .bind(i64::from(limit))
            .fetch_all(&self.database)
            .await
    }

    /// Accounts whose name, address or id contains a text, newest first.
    pub async fn find_accounts(
        &self,
        text: &str,
        limit: u32,
    ) -> Result<Vec<AccountRow>, StoreError> {
        select::<AccountRow>(
            "WHERE LOWER(email) LIKE $1 ESCAPE '!' OR LOWER(name) LIKE $1 ESCAPE '!' \
             OR LOWER(id) LIKE $1 ESCAPE '!' ORDER BY created_ms DESC, id LIMIT $2",
        )
        .bind(like_pattern(text))
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    /// Accounts of a role, oldest first.
    pub async fn accounts_of(&self, role: Role, limit: u32) -> Result<Vec<AccountRow>, StoreError> {
        select::<AccountRow>("WHERE role = $1 ORDER BY created_ms, id LIMIT $2")
            .bind(role.as_str())
            .bind(i64::from(limit))
            .fetch_all(&self.database)
            .await
    }

    /// The number of accounts of a role that are not suspended.
    pub async fn count_accounts(&self, role: Role) -> Result<i64, StoreError> {
        query("SELECT COUNT(*) FROM account WHERE role = $1 AND suspended_ms IS NULL")
            .bind(role.as_str())
            .fetch_number(&self.database)
            .await
    }

    pub async fn account(&self, id: &str) -> Result<Option<AccountRow>, StoreError> {
        select::<AccountRow>("WHERE id = $1").bind(id).fetch_optional(&self.database).await
    }

    /// The account with this address, which must be in lower case.
    pub async fn account_by_email(&self, email: &str) -> Result<Option<AccountRow>, StoreError> {
        select::<AccountRow>("WHERE email = $1").bind(email).fetch_optional(&self.database).await
    }

    /// Sets an account's password and ends all its sessions but one, all or nothing.
    pub async fn set_password(
        &self,
        account_id: &str,
        password: &str,
        kept: Option<&Digest>,
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        tx.set_password(account_id, password, kept).await?;
        tx.commit_with(audit).await
    }

    /// Deletes developers' accounts that were created by this instant, whose address was never confirmed and that
    /// have neither keys nor requests. Only for services that confirm addresses: nobody can sign in to such accounts.
    pub async fn delete_unconfirmed(&self, created_ms: i64) -> Result<u64, StoreError> {
        let mut tx = self.begin_write().await?;
        let mut deleted = 0;
        for rows in [
            "link WHERE account_id",
            "session WHERE account_id",
            "recovery_code WHERE account_id",
            "account WHERE id",
        ] {
            deleted = built_query(format!(
                "DELETE FROM {rows} IN (SELECT id FROM account \
                 WHERE confirmed_ms IS NULL AND role = 'developer' AND created_ms <= $1 \
                 AND NOT EXISTS (SELECT 1 FROM api_key WHERE account_id = account.id) \
                 AND NOT EXISTS (SELECT 1 FROM access_request WHERE account_id = account.id))"
            ))
            .bind(created_ms)
            .execute(&mut tx)
            .await?;
        }
        tx.commit().await?;
        Ok(deleted)
    }

    /// Suspends an account with all its sessions and keys, or resumes it and its keys. `false`: it is the last active
    /// operator, and nothing was changed.
    pub async fn suspend_account(
        &self,
        account_id: &str,
        suspended_ms: Option<i64>,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        tx.lock(Lock::Operators).await?;
        tx.lock(Lock::Keys { account_id }).await?;
        if suspended_ms.is_some() && !tx.leaves_an_operator(account_id).await? {
            return Ok(false);
        }
        query("UPDATE account SET suspended_ms = $2 WHERE id = $1")
            .bind(account_id)
            .bind(suspended_ms)
            .execute(&mut tx)
            .await?;
        query("UPDATE api_key SET suspended_ms = $2, change_number = NULL WHERE account_id = $1")
            .bind(account_id)
            .bind(suspended_ms)
            .execute(&mut tx)
            .await?;
        if suspended_ms.is_some() {
            tx.end_sessions(account_id, None).await?;
        }
        tx.commit_change(audit).await?;
        Ok(true)
    }

    /// Sets the allowance of an account and the resulting limits of its live production keys, all or nothing.
    pub async fn allow_account(
        &self,
        account_id: &str,
        allowance: &Allowance,
        (burst_per_minute, requests_per_day): (u32, u32),
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query(
            "UPDATE account SET keys_max = $2, burst_per_minute = $3, requests_per_day = $4, \
             requests_per_month = $5 WHERE id = $1",
        )
        .bind(account_id)
        .bind(allowance.keys_max.map(i64::from))
        .bind(allowance.burst_per_minute.map(i64::from))
        .bind(allowance.requests_per_day.map(i64::from))
        .bind(allowance.requests_per_month.map(i64::from))
        .execute(&mut tx)
        .await?;
        query(
            "UPDATE api_key SET burst_per_minute = $2, requests_per_day = $3, requests_per_month = $4, \
             change_number = NULL WHERE account_id = $1 AND kind = 'production' AND revoked_ms IS NULL",
        )
        .bind(account_id)
        .bind(i64::from(burst_per_minute))
        .bind(i64::from(requests_per_day))
        .bind(allowance.requests_per_month.map(i64::from))
        .execute(&mut tx)
        .await?;
        tx.commit_change(audit).await
    }

    /// Sets or, with `None`, removes the time-based codes, and replaces the recovery codes. `audit` is `None` for
    /// codes that are only offered.
    pub async fn set_totp(
        &self,
        account_id: &str,
        totp: Option<&Totp>,
        recovery: &[Digest],
        audit: Option<&AuditEntry>,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query(
            "UPDATE account SET totp_secret = $2, totp_confirmed_ms = $3, totp_step = $4 \
             WHERE id = $1",
        )
        .bind(account_id)
        .bind(totp.map(|totp| totp.secret.as_slice()))
        .bind(totp.and_then(|totp| totp.confirmed_ms))
        .bind(totp.and_then(|totp| totp.step))
        .execute(&mut tx)
        .await?;
        query("DELETE FROM recovery_code WHERE account_id = $1")
            .bind(account_id)
            .execute(&mut tx)
            .await?;
        for code in recovery {
            query("INSERT INTO recovery_code (account_id, digest) VALUES ($1, $2)")
                .bind(account_id)
                .bind(code.as_slice())
                .execute(&mut tx)
                .await?;
        }
        tx.commit_with(audit).await
    }

    /// Records that the code of a step was used. `false`: that step or a later one was used before.
    pub async fn use_totp_step(&self, account_id: &str, step: i64) -> Result<bool, StoreError> {
        let use_step = query(
            "UPDATE account SET totp_step = $2 WHERE id = $1 AND (totp_step IS NULL OR totp_step < $2)",
        );
        Ok(self.database.write(use_step.bind(account_id).bind(step)).await? == 1)
    }

    /// Uses a recovery code. `false`: it does not exist, or was used before.
    pub async fn use_recovery_code(
        &self,
        account_id: &str,
        code: &Digest,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let used = query("DELETE FROM recovery_code WHERE account_id = $1 AND digest = $2")
            .bind(account_id)
            .bind(code.as_slice())
            .execute(&mut tx)
            .await?;
        tx.commit_if(used > 0, audit).await
    }

    /// The number of unused recovery codes.
    pub async fn count_recovery_codes(&self, account_id: &str) -> Result<i64, StoreError> {
        query("SELECT COUNT(*) FROM recovery_code WHERE account_id = $1")
            .bind(account_id)
            .fetch_number(&self.database)
            .await
    }
}

impl Tx {
    pub(crate) async fn insert_account(
        &mut self,
        account: &AccountRow,
    ) -> Result<bool, StoreError> {
        let inserted = query(
            "INSERT INTO account (id, email, name, role, password, created_ms, confirmed_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (email) DO NOTHING",
        )
        .bind(&account.id)
        .bind(&account.email)
        .bind(&account.name)
        .bind(account.role.as_str())
        .bind(&account.password)
        .bind(account.created_ms)
        .bind(account.confirmed_ms)
        .execute(self)
        .await?;
        Ok(inserted == 1)
    }

    pub(crate) async fn set_password(
        &mut self,
        account_id: &str,
        password: &str,
        kept: Option<&Digest>,
    ) -> Result<(), StoreError> {
        query("UPDATE account SET password = $2 WHERE id = $1")
            .bind(account_id)
            .bind(password)
            .execute(&mut *self)
            .await?;
        self.end_sessions(account_id, kept).await.map(drop)
    }

    /// Records that the address is confirmed; the first time is kept.
    pub(crate) async fn confirm_account(
        &mut self,
        account_id: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        query("UPDATE account SET confirmed_ms = COALESCE(confirmed_ms, $2) WHERE id = $1")
            .bind(account_id)
            .bind(now_ms)
            .execute(self)
            .await?;
        Ok(())
    }

    /// Whether another operator can sign in, or this account is no operator.
    async fn leaves_an_operator(&mut self, account_id: &str) -> Result<bool, StoreError> {
        let (own, others): (i64, i64) = query(
            "SELECT COALESCE(SUM(CASE WHEN id = $1 THEN 1 ELSE 0 END), 0), \
             COALESCE(SUM(CASE WHEN id <> $1 THEN 1 ELSE 0 END), 0) \
             FROM account WHERE role = 'operator' AND suspended_ms IS NULL",
        )
        .bind(account_id)
        .fetch_one(self)
        .await?;
        Ok(own == 0 || others > 0)
    }
}

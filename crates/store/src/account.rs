//! People as rows.

use std::fmt;

use crate::{
    AuditEntry, Digest, Store, StoreError,
    database::{Lock, Tx, decode_from, query, text_column},
    like_pattern,
};

/// What an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Has keys of their own.
    Developer,
    /// Runs the service.
    Operator,
}

text_column!(Role, "role", [Developer = "developer", Operator = "operator"]);

/// The state of an account's time-based codes. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Totp {
    pub secret: Vec<u8>,
    /// `None`: offered, but no code was entered yet, so it guards nothing.
    pub confirmed_ms: Option<i64>,
    /// The newest step whose code was accepted.
    pub step: Option<i64>,
}

impl fmt::Debug for Totp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Totp").field("confirmed_ms", &self.confirmed_ms).finish_non_exhaustive()
    }
}

/// What an operator allows an account beyond, or short of, what every account has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Keys in force at the same time.
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
    /// When mail was known to reach the address, or an operator vouched for it.
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

/// Named one by one, here and in every statement: a newer version of the program may add columns while this one runs.
macro_rules! columns {
    () => {
        "id, email, name, role, password, created_ms, suspended_ms, production_ms, confirmed_ms, \
         totp_secret, totp_confirmed_ms, totp_step, keys_max, burst_per_minute, \
         requests_per_day, requests_per_month"
    };
}

#[derive(sqlx::FromRow)]
struct RawAccount {
    id: String,
    email: String,
    name: String,
    #[sqlx(try_from = "String")]
    role: Role,
    password: Option<String>,
    created_ms: i64,
    suspended_ms: Option<i64>,
    production_ms: Option<i64>,
    confirmed_ms: Option<i64>,
    totp_secret: Option<Vec<u8>>,
    totp_confirmed_ms: Option<i64>,
    totp_step: Option<i64>,
    keys_max: Option<i64>,
    burst_per_minute: Option<i64>,
    requests_per_day: Option<i64>,
    requests_per_month: Option<i64>,
}

decode_from!(AccountRow, RawAccount);

impl TryFrom<RawAccount> for AccountRow {
    type Error = StoreError;

    fn try_from(raw: RawAccount) -> Result<Self, StoreError> {
        let (confirmed_ms, step) = (raw.totp_confirmed_ms, raw.totp_step);
        let count = |column: Option<i64>| {
            let count = column.map(u32::try_from).transpose();
            count.map_err(|_| StoreError::corrupt("limit out of range"))
        };
        Ok(Self {
            id: raw.id,
            email: raw.email,
            name: raw.name,
            role: raw.role,
            password: raw.password,
            created_ms: raw.created_ms,
            suspended_ms: raw.suspended_ms,
            production_ms: raw.production_ms,
            confirmed_ms: raw.confirmed_ms,
            totp: raw.totp_secret.map(|secret| Totp { secret, confirmed_ms, step }),
            allowance: Allowance {
                keys_max: count(raw.keys_max)?,
                burst_per_minute: count(raw.burst_per_minute)?,
                requests_per_day: count(raw.requests_per_day)?,
                requests_per_month: count(raw.requests_per_month)?,
            },
        })
    }
}

impl Store {
    /// Keeps a new account. `false`: the address has one, and nothing was changed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn insert_account(
        &self,
        account: &AccountRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        if !tx.insert_account(account).await? {
            return Ok(false);
        }
        tx.commit_with(audit).await?;
        Ok(true)
    }

    /// Accounts, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn accounts(&self, limit: u32) -> Result<Vec<AccountRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM account ORDER BY created_ms DESC, id LIMIT $1"))
            .bind(i64::from(limit))
            .fetch_all(&self.database)
            .await
    }

    /// Accounts with a text in their name, address or id, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_accounts(
        &self,
        text: &str,
        limit: u32,
    ) -> Result<Vec<AccountRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM account WHERE LOWER(email) LIKE $1 ESCAPE '!' OR LOWER(name) LIKE $1 ESCAPE '!' \
             OR LOWER(id) LIKE $1 ESCAPE '!' ORDER BY created_ms DESC, id LIMIT $2"
        ))
        .bind(like_pattern(text))
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    /// Every account of a role, the eldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn accounts_of(&self, role: Role, limit: u32) -> Result<Vec<AccountRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM account WHERE role = $1 ORDER BY created_ms, id LIMIT $2"
        ))
        .bind(role.as_str())
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    /// How many accounts there are of a role, suspended ones apart.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_accounts(&self, role: Role) -> Result<i64, StoreError> {
        query("SELECT COUNT(*) FROM account WHERE role = $1 AND suspended_ms IS NULL")
            .bind(role.as_str())
            .fetch_number(&self.database)
            .await
    }

    /// The account with this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn account(&self, id: &str) -> Result<Option<AccountRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM account WHERE id = $1"))
            .bind(id)
            .fetch_optional(&self.database)
            .await
    }

    /// The account with this address, which has to be in lower case.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn account_by_email(&self, email: &str) -> Result<Option<AccountRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM account WHERE email = $1"))
            .bind(email)
            .fetch_optional(&self.database)
            .await
    }

    /// Gives an account a password and ends all its sessions but one, all or nothing.
    ///
    /// # Errors
    /// The store cannot be written.
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

    /// Forgets developers' accounts that were made by this instant, whose address was never confirmed and that have
    /// neither keys nor requests. Only for where addresses are confirmed: nobody can sign in to them.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn delete_unconfirmed(&self, created_ms: i64) -> Result<u64, StoreError> {
        macro_rules! unconfirmed {
            ($what:literal) => {
                concat!(
                    $what,
                    " IN (SELECT id FROM account WHERE confirmed_ms IS NULL AND role = 'developer' \
                     AND created_ms <= $1 \
                     AND NOT EXISTS (SELECT 1 FROM api_key WHERE account_id = account.id) \
                     AND NOT EXISTS (SELECT 1 FROM access_request WHERE account_id = account.id))"
                )
            };
        }
        let mut tx = self.begin_write().await?;
        let mut forgotten = 0;
        for statement in [
            unconfirmed!("DELETE FROM link WHERE account_id"),
            unconfirmed!("DELETE FROM session WHERE account_id"),
            unconfirmed!("DELETE FROM recovery_code WHERE account_id"),
            unconfirmed!("DELETE FROM account WHERE id"),
        ] {
            forgotten = query(statement).bind(created_ms).execute(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(forgotten)
    }

    /// Shuts an account out, with all its sessions and keys, or lets it and its keys in again. `false`: it is the last
    /// operator that could come in, and nothing was changed.
    ///
    /// # Errors
    /// The store cannot be written.
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
            query("DELETE FROM session WHERE account_id = $1")
                .bind(account_id)
                .execute(&mut tx)
                .await?;
        }
        tx.commit_change(audit).await?;
        Ok(true)
    }

    /// Sets what an account is allowed, and gives its live production keys the limits that follow from it, all or
    /// nothing. What they share follows from the account's own row.
    ///
    /// # Errors
    /// The store cannot be written.
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

    /// Sets or, with `None`, removes the time-based codes, and replaces the recovery codes. `audit` is `None` for codes
    /// that are offered and guard nothing yet.
    ///
    /// # Errors
    /// The store cannot be written.
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

    /// Takes note that the code of a step was used. `false`: that step or a later one was used before.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn use_totp_step(&self, account_id: &str, step: i64) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let used = query(
            "UPDATE account SET totp_step = $2 WHERE id = $1 AND (totp_step IS NULL OR totp_step < $2)",
        )
        .bind(account_id)
        .bind(step)
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(used == 1)
    }

    /// Uses up a recovery code. `false`: it is none, or was used before.
    ///
    /// # Errors
    /// The store cannot be written.
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
        if used == 0 {
            return Ok(false);
        }
        tx.commit_with(audit).await?;
        Ok(true)
    }

    /// How many recovery codes are left.
    ///
    /// # Errors
    /// The store cannot be read.
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
        let kept = query(
            "INSERT INTO account (id, email, name, role, password, created_ms, confirmed_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (email) DO NOTHING",
        )
        .bind(&account.id)
        .bind(&account.email)
        .bind(&account.name)
        .bind(account.role.as_str())
        .bind(account.password.as_deref())
        .bind(account.created_ms)
        .bind(account.confirmed_ms)
        .execute(self)
        .await?;
        Ok(kept == 1)
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
            .execute(self)
            .await?;
        query("DELETE FROM session WHERE account_id = $1 AND digest IS DISTINCT FROM $2")
            .bind(account_id)
            .bind(kept.map(Digest::as_slice))
            .execute(self)
            .await?;
        Ok(())
    }

    /// A first note stays.
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

    /// Whether somebody who can come in runs the service without this account, or it never did.
    async fn leaves_an_operator(&mut self, account_id: &str) -> Result<bool, StoreError> {
        let held = query(
            "SELECT COUNT(*) FROM account WHERE id = $1 AND role = 'operator' AND suspended_ms IS NULL",
        )
        .bind(account_id)
        .fetch_number(&mut *self)
        .await?;
        let others = query(
            "SELECT COUNT(*) FROM account WHERE id <> $1 AND role = 'operator' AND suspended_ms IS NULL",
        )
        .bind(account_id)
        .fetch_number(self)
        .await?;
        Ok(held == 0 || others > 0)
    }
}

//! Operators' decisions: production access, suspensions and limits.

use store::{AccessRow, AccessState, Allowance, Role};

use crate::key::secret::public_id;
use crate::people::{KEYS_MAX_MAX, access_record, limits_of, record};
use crate::registry::KEYS_MAX;
use crate::{
    AccessDecision, AccessRecord, AccountRecord, Actor, AuditAction, Limits, Origin, People,
    PeopleError, Session,
};

const PURPOSE_CHARS_MIN: usize = 20;
const PURPOSE_CHARS_MAX: usize = 2000;
const NOTE_CHARS_MAX: usize = 500;
/// Rows on a page.
const ROWS_MAX: u32 = 200;

impl People {
    /// Requests production access.
    ///
    /// # Errors
    /// The purpose is too short or too long, or a request is pending.
    pub async fn request_access(
        &self,
        of: &Session,
        purpose: &str,
        from: &Origin,
    ) -> Result<(), PeopleError> {
        let purpose = purpose.trim();
        let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if !(PURPOSE_CHARS_MIN..=PURPOSE_CHARS_MAX).contains(&purpose.chars().count())
            || purpose.contains(control)
        {
            return Err(PeopleError::BadPurpose);
        }
        let row = AccessRow {
            id: public_id("req_")?,
            account_id: of.account.id.clone(),
            purpose: purpose.to_owned(),
            created_ms: self.clock.now().as_millis(),
            state: AccessState::Pending,
            decided_ms: None,
            decided_by: None,
            note: None,
        };
        let audit = self.own_entry(&of.account, from, (AuditAction::AccessRequested, &row.id, ""));
        if self.store.insert_access(&row, &audit).await? {
            Ok(())
        } else {
            Err(PeopleError::AlreadyRequested)
        }
    }

    /// The requests of one account, or of all: pending ones first, then the newest.
    pub async fn access_requests(
        &self,
        account_id: Option<&str>,
    ) -> Result<Vec<AccessRecord>, PeopleError> {
        let rows = self.store.access_requests(account_id, ROWS_MAX).await?;
        Ok(rows.into_iter().map(access_record).collect())
    }

    /// The number of pending requests.
    pub async fn pending_requests(&self) -> Result<i64, PeopleError> {
        Ok(self.store.count_pending_access().await?)
    }

    /// Decides a request; approval allows its account production keys.
    ///
    /// # Errors
    /// There is no such pending request.
    pub async fn decide_access(
        &self,
        id: &str,
        decision: AccessDecision,
        note: &str,
        actor: &Actor,
    ) -> Result<AccessRecord, PeopleError> {
        let note: String =
            note.trim().chars().filter(|c| !c.is_control()).take(NOTE_CHARS_MAX).collect();
        let (state, action) = match decision {
            AccessDecision::Approve => (AccessState::Approved, AuditAction::AccessApproved),
            AccessDecision::Refuse => (AccessState::Refused, AuditAction::AccessRefused),
        };
        let decided = AccessRow {
            id: id.to_owned(),
            account_id: String::new(),
            purpose: String::new(),
            created_ms: 0,
            state,
            decided_ms: Some(self.clock.now().as_millis()),
            decided_by: actor.account_id.clone(),
            note: (!note.is_empty()).then_some(note),
        };
        let note = decided.note.as_deref().unwrap_or_default();
        // The store fills in the account of the request.
        let audit = self.entry(actor, action, "", note);
        let row = self.store.decide_access(&decided, audit).await?;
        let row = row.ok_or(PeopleError::UnknownRequest)?;
        self.mail_decision(&row.account_id, row.state == AccessState::Approved).await?;
        Ok(access_record(row))
    }

    /// The newest accounts.
    pub async fn accounts(&self) -> Result<Vec<AccountRecord>, PeopleError> {
        Ok(self.store.accounts(ROWS_MAX).await?.iter().map(record).collect())
    }

    /// The newest accounts whose name, address or id contains a text; all if it is empty.
    pub async fn find_accounts(&self, text: &str) -> Result<Vec<AccountRecord>, PeopleError> {
        Ok(self.store.find_accounts(text, ROWS_MAX).await?.iter().map(record).collect())
    }

    /// One account.
    ///
    /// # Errors
    /// There is no account with that id.
    pub async fn account(&self, id: &str) -> Result<AccountRecord, PeopleError> {
        let row = self.store.account(id).await?.ok_or(PeopleError::UnknownAccount)?;
        Ok(record(&row))
    }

    /// Suspends an account, its sessions and keys. The caller then has the key ring read the store again.
    ///
    /// # Errors
    /// There is no such account, or it is the last operator.
    pub async fn suspend(&self, id: &str, actor: &Actor) -> Result<(), PeopleError> {
        let account = self.account(id).await?;
        let audit = self.entry(actor, AuditAction::AccountSuspended, id, &account.email);
        let now_ms = self.clock.now().as_millis();
        if self.store.suspend_account(id, Some(now_ms), &audit).await? {
            Ok(())
        } else {
            Err(PeopleError::LastOperator)
        }
    }

    /// Resumes a suspended account and its keys. The caller then has the key ring read the store again.
    ///
    /// # Errors
    /// There is no such account.
    pub async fn resume(&self, id: &str, actor: &Actor) -> Result<(), PeopleError> {
        let account = self.account(id).await?;
        let audit = self.entry(actor, AuditAction::AccountResumed, id, &account.email);
        self.store.suspend_account(id, None, &audit).await?;
        Ok(())
    }

    /// Sets the allowance of an account, and the resulting limits of its live production keys. The caller then has
    /// the key ring read the store again.
    ///
    /// # Errors
    /// There is no such account, or a limit is out of its bounds.
    pub async fn limit(
        &self,
        id: &str,
        allowance: Allowance,
        actor: &Actor,
    ) -> Result<(), PeopleError> {
        let account = self.account(id).await?;
        let limits =
            [allowance.burst_per_minute, allowance.requests_per_day, allowance.requests_per_month];
        if limits.contains(&Some(0)) || allowance.keys_max.is_some_and(|max| max > KEYS_MAX_MAX) {
            return Err(PeopleError::BadAllowance);
        }
        let Limits { burst_per_minute, requests_per_day, requests_per_month } =
            limits_of(&allowance);
        let month = requests_per_month.map_or("any number".to_owned(), |n| n.to_string());
        let detail = format!(
            "{}: {} keys; {burst_per_minute} a minute, {requests_per_day} a day, {month} a month",
            account.email,
            allowance.keys_max.unwrap_or(KEYS_MAX)
        );
        let audit = self.entry(actor, AuditAction::AccountLimited, id, &detail);
        let limits = (burst_per_minute, requests_per_day);
        Ok(self.store.allow_account(id, &allowance, limits, &audit).await?)
    }

    /// Every operator, oldest first.
    pub async fn operators(&self) -> Result<Vec<AccountRecord>, PeopleError> {
        Ok(self.store.accounts_of(Role::Operator, ROWS_MAX).await?.iter().map(record).collect())
    }
}

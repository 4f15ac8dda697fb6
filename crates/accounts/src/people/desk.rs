//! What operators decide: accounts, access, and reading the audit log.

use domain::Timestamp;
use store::{AccessRow, AccessState, Role};

use crate::people::{access_record, record};
use crate::secret::public_id;
use crate::{
    AccessDecision, AccessRecord, AccountRecord, Actor, AuditRecord, Deed, Origin, People,
    PeopleError, Session,
};

/// What a developer says the data is for.
const PURPOSE_CHARS_MIN: usize = 20;
const PURPOSE_CHARS_MAX: usize = 2000;
/// What an operator answers.
const NOTE_CHARS_MAX: usize = 500;
/// Rows on one page of the console.
const ROWS_MAX: u32 = 200;

impl People {
    /// Asks for production access.
    ///
    /// # Errors
    /// The purpose is too short or too long, a request is pending, or the store cannot be written.
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
        if !self.store.insert_access(&row).await? {
            return Err(PeopleError::AlreadyRequested);
        }
        self.note(&Actor::account(&of.account, from), Deed::AccessRequested, &row.id, "").await
    }

    /// The requests of one account, or of all: pending ones first, then the newest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn access_requests(
        &self,
        account_id: Option<&str>,
    ) -> Result<Vec<AccessRecord>, PeopleError> {
        let rows = self.store.access_requests(account_id, ROWS_MAX).await?;
        Ok(rows.into_iter().map(access_record).collect())
    }

    /// How many requests wait for an answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn pending_requests(&self) -> Result<i64, PeopleError> {
        Ok(self.store.count_pending_access().await?)
    }

    /// Answers a request; approval opens the live world to its account.
    ///
    /// # Errors
    /// There is no such pending request, or the store cannot be written.
    pub async fn decide_access(
        &self,
        id: &str,
        decision: AccessDecision,
        note: &str,
        actor: &Actor,
    ) -> Result<AccessRecord, PeopleError> {
        let note: String =
            note.trim().chars().filter(|c| !c.is_control()).take(NOTE_CHARS_MAX).collect();
        let (state, deed) = match decision {
            AccessDecision::Approve => (AccessState::Approved, Deed::AccessApproved),
            AccessDecision::Refuse => (AccessState::Refused, Deed::AccessRefused),
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
        let row = self.store.decide_access(&decided).await?.ok_or(PeopleError::UnknownRequest)?;
        self.note(actor, deed, &row.account_id, row.note.as_deref().unwrap_or_default()).await?;
        self.mail_decision(&row.account_id, row.state == AccessState::Approved).await?;
        Ok(access_record(row))
    }

    /// The newest accounts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn accounts(&self) -> Result<Vec<AccountRecord>, PeopleError> {
        Ok(self.store.accounts(ROWS_MAX).await?.iter().map(record).collect())
    }

    /// One account.
    ///
    /// # Errors
    /// There is none with that id, or the store cannot be read.
    pub async fn account(&self, id: &str) -> Result<AccountRecord, PeopleError> {
        let row = self.store.account(id).await?.ok_or(PeopleError::UnknownAccount)?;
        Ok(record(&row))
    }

    /// Shuts an account out, its sessions and keys too. The keys' ring has to follow the store afterwards.
    ///
    /// # Errors
    /// There is no such account, it is the last operator, or the store cannot be written.
    pub async fn suspend(&self, id: &str, actor: &Actor) -> Result<(), PeopleError> {
        let account = self.account(id).await?;
        if account.role == Role::Operator
            && account.suspended_at.is_none()
            && self.store.count_accounts(Role::Operator).await? <= 1
        {
            return Err(PeopleError::LastOperator);
        }
        self.store.suspend_account(id, Some(self.clock.now().as_millis())).await?;
        self.note(actor, Deed::AccountSuspended, id, &account.email).await
    }

    /// Lets a suspended account and its keys in again. The keys' ring has to follow the store afterwards.
    ///
    /// # Errors
    /// There is no such account, or the store cannot be written.
    pub async fn resume(&self, id: &str, actor: &Actor) -> Result<(), PeopleError> {
        let account = self.account(id).await?;
        self.store.suspend_account(id, None).await?;
        self.note(actor, Deed::AccountResumed, id, &account.email).await
    }

    /// The audit log, newest first, older than `before` where it is given; of one account, or of all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn audit(
        &self,
        account_id: Option<&str>,
        before: Option<i64>,
    ) -> Result<Vec<AuditRecord>, PeopleError> {
        let rows = self.store.audit(account_id, before, ROWS_MAX).await?;
        Ok(rows
            .into_iter()
            .map(|row| AuditRecord {
                seq: row.seq,
                at: Timestamp::from_millis(row.entry.at_ms),
                who: row.entry.who,
                action: row.entry.action,
                subject: row.entry.subject,
                detail: row.entry.detail,
                address: row.entry.address,
            })
            .collect())
    }
}

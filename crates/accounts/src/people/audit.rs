//! The audit log: who did what, when and from where. It is appended to and read, never changed.

use domain::Timestamp;
use store::{AuditEntry, AuditFilter, AuditRow};

use crate::{AccountRecord, Origin, People, PeopleError};

/// Lines that are read at once: when there are so many, there may be more.
pub const AUDIT_ROWS_MAX: usize = 200;
const ROWS_MAX: u32 = 200;
/// What is kept of a detail.
const DETAIL_CHARS_MAX: usize = 500;

/// Who does something, for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub account_id: Option<String>,
    /// An address, or a word such as `command line`.
    pub who: String,
    pub address: String,
}

impl Actor {
    /// Somebody at the machine itself.
    pub fn command_line() -> Self {
        Self { account_id: None, who: "command line".to_owned(), address: String::new() }
    }

    /// The program itself, at its start.
    pub fn service() -> Self {
        Self { account_id: None, who: "the service".to_owned(), address: String::new() }
    }

    /// Somebody of whom nothing is known but where they are.
    pub fn stranger(from: &Origin) -> Self {
        let who = "somebody not signed in".to_owned();
        Self { account_id: None, who, address: from.address_text() }
    }

    /// What is written down of something that they do.
    pub(crate) fn entry(
        &self,
        at: Timestamp,
        action: AuditAction,
        subject: &str,
        detail: &str,
    ) -> AuditEntry {
        let cut = |text: &str| text.chars().take(DETAIL_CHARS_MAX).collect::<String>();
        AuditEntry {
            at_ms: at.as_millis(),
            account_id: self.account_id.clone(),
            who: self.who.clone(),
            action: action.as_str().to_owned(),
            subject: cut(subject),
            detail: cut(detail),
            address: self.address.clone(),
        }
    }

    /// Somebody signed in.
    pub fn account(account: &AccountRecord, from: &Origin) -> Self {
        Self {
            account_id: Some(account.id.clone()),
            who: account.email.clone(),
            address: from.address_text(),
        }
    }
}

/// Everything that is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuditAction {
    AccountCreated,
    AccountConfirmed,
    AccountSuspended,
    AccountResumed,
    AccountLimited,
    SignedIn,
    SignInRefused,
    SignedOut,
    SessionEnded,
    SessionsEnded,
    PasswordChanged,
    PasswordReset,
    SecondFactorOn,
    SecondFactorOff,
    SecondFactorRefused,
    RecoveryCodeUsed,
    LinkIssued,
    AccessRequested,
    AccessApproved,
    AccessRefused,
    KeyCreated,
    KeyRotated,
    KeyRevoked,
    FeedCreated,
    FeedRevoked,
    FeedPaused,
    FeedResumed,
    FeedDropped,
    EventsMerged,
    EventSplit,
    EventsParted,
    AliasesTaught,
    MaintenanceOn,
    MaintenanceOff,
}

impl AuditAction {
    pub const ALL: [Self; 34] = [
        Self::AccountCreated,
        Self::AccountConfirmed,
        Self::AccountSuspended,
        Self::AccountResumed,
        Self::AccountLimited,
        Self::SignedIn,
        Self::SignInRefused,
        Self::SignedOut,
        Self::SessionEnded,
        Self::SessionsEnded,
        Self::PasswordChanged,
        Self::PasswordReset,
        Self::SecondFactorOn,
        Self::SecondFactorOff,
        Self::SecondFactorRefused,
        Self::RecoveryCodeUsed,
        Self::LinkIssued,
        Self::AccessRequested,
        Self::AccessApproved,
        Self::AccessRefused,
        Self::KeyCreated,
        Self::KeyRotated,
        Self::KeyRevoked,
        Self::FeedCreated,
        Self::FeedRevoked,
        Self::FeedPaused,
        Self::FeedResumed,
        Self::FeedDropped,
        Self::EventsMerged,
        Self::EventSplit,
        Self::EventsParted,
        Self::AliasesTaught,
        Self::MaintenanceOn,
        Self::MaintenanceOff,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccountCreated => "account.created",
            Self::AccountConfirmed => "account.confirmed",
            Self::AccountSuspended => "account.suspended",
            Self::AccountResumed => "account.resumed",
            Self::AccountLimited => "account.limited",
            Self::SignedIn => "session.started",
            Self::SignInRefused => "session.refused",
            Self::SignedOut => "session.signed_out",
            Self::SessionEnded => "session.ended",
            Self::SessionsEnded => "session.all_ended",
            Self::PasswordChanged => "password.changed",
            Self::PasswordReset => "password.reset",
            Self::SecondFactorOn => "second_factor.on",
            Self::SecondFactorOff => "second_factor.off",
            Self::SecondFactorRefused => "second_factor.refused",
            Self::RecoveryCodeUsed => "second_factor.recovery_code_used",
            Self::LinkIssued => "link.issued",
            Self::AccessRequested => "access.requested",
            Self::AccessApproved => "access.approved",
            Self::AccessRefused => "access.refused",
            Self::KeyCreated => "key.created",
            Self::KeyRotated => "key.rotated",
            Self::KeyRevoked => "key.revoked",
            Self::FeedCreated => "feed.created",
            Self::FeedRevoked => "feed.revoked",
            Self::FeedPaused => "feed.paused",
            Self::FeedResumed => "feed.resumed",
            Self::FeedDropped => "feed.dropped",
            Self::EventsMerged => "events.merged",
            Self::EventSplit => "events.split",
            Self::EventsParted => "events.parted",
            Self::AliasesTaught => "aliases.taught",
            Self::MaintenanceOn => "maintenance.on",
            Self::MaintenanceOff => "maintenance.off",
        }
    }
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    pub seq: i64,
    pub at: Timestamp,
    pub who: String,
    pub action: String,
    pub subject: String,
    pub detail: String,
    pub address: String,
}

impl People {
    /// Writes down who did what, where it was not done in the store: what is done there is written down with it.
    pub async fn note(
        &self,
        actor: &Actor,
        action: AuditAction,
        subject: &str,
        detail: &str,
    ) -> Result<(), PeopleError> {
        Ok(self.store.append_audit(&[self.entry(actor, action, subject, detail)]).await?)
    }

    pub(super) fn entry(
        &self,
        actor: &Actor,
        action: AuditAction,
        subject: &str,
        detail: &str,
    ) -> AuditEntry {
        actor.entry(self.clock.now(), action, subject, detail)
    }

    /// Lines of the audit log that pass, newest first.
    pub async fn find_audit(
        &self,
        filter: &AuditFilter<'_>,
    ) -> Result<Vec<AuditRecord>, PeopleError> {
        let rows = self.store.find_audit(filter, ROWS_MAX).await?;
        Ok(rows.into_iter().map(audit_record).collect())
    }

    /// The audit log, newest first, older than `before` where it is given; of one account, or of all.
    pub async fn audit(
        &self,
        account_id: Option<&str>,
        before: Option<i64>,
    ) -> Result<Vec<AuditRecord>, PeopleError> {
        let filter = AuditFilter { account_id, before, ..AuditFilter::default() };
        self.find_audit(&filter).await
    }
}

fn audit_record(row: AuditRow) -> AuditRecord {
    AuditRecord {
        seq: row.seq,
        at: Timestamp::from_millis(row.entry.at_ms),
        who: row.entry.who,
        action: row.entry.action,
        subject: row.entry.subject,
        detail: row.entry.detail,
        address: row.entry.address,
    }
}

//! The audit log: the actor, action, time and origin of each change. It is append-only.

use domain::Timestamp;
use store::{AuditEntry, AuditFilter, AuditRow};

use crate::{AccountRecord, Origin, People, PeopleError};

/// Maximum number of lines read at once; if there are as many, there may be more.
pub const AUDIT_ROWS_MAX: usize = 200;
const ROWS_MAX: u32 = 200;
/// Maximum length of subjects and details; longer ones are cut.
const DETAIL_CHARS_MAX: usize = 500;

/// The actor of a change, for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub account_id: Option<String>,
    /// An email address, or a word such as `command line`.
    pub who: String,
    pub address: String,
}

impl Actor {
    /// A person with access to the machine itself.
    pub fn command_line() -> Self {
        Self { account_id: None, who: "command line".to_owned(), address: String::new() }
    }

    /// The program itself, at its start.
    pub fn service() -> Self {
        Self { account_id: None, who: "the service".to_owned(), address: String::new() }
    }

    /// A client that is not signed in.
    pub fn stranger(from: &Origin) -> Self {
        let who = "somebody not signed in".to_owned();
        Self { account_id: None, who, address: from.address_text() }
    }

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

    /// A person who is signed in.
    pub fn account(account: &AccountRecord, from: &Origin) -> Self {
        Self {
            account_id: Some(account.id.clone()),
            who: account.email.clone(),
            address: from.address_text(),
        }
    }
}

/// Declares each action of the audit log once, with the text that is stored.
macro_rules! audit_actions {
    ($($action:ident = $text:literal,)+) => {
        /// An action in the audit log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AuditAction {
            $($action,)+
        }

        impl AuditAction {
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$action),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $text,)+
                }
            }
        }
    };
}

audit_actions! {
    AccountCreated = "account.created",
    AccountConfirmed = "account.confirmed",
    AccountSuspended = "account.suspended",
    AccountResumed = "account.resumed",
    AccountLimited = "account.limited",
    SignedIn = "session.started",
    SignInRefused = "session.refused",
    SignedOut = "session.signed_out",
    SessionEnded = "session.ended",
    SessionsEnded = "session.all_ended",
    PasswordChanged = "password.changed",
    PasswordReset = "password.reset",
    SecondFactorOn = "second_factor.on",
    SecondFactorOff = "second_factor.off",
    SecondFactorRefused = "second_factor.refused",
    RecoveryCodeUsed = "second_factor.recovery_code_used",
    LinkIssued = "link.issued",
    AccessRequested = "access.requested",
    AccessApproved = "access.approved",
    AccessRefused = "access.refused",
    KeyCreated = "key.created",
    KeyRotated = "key.rotated",
    KeyRevoked = "key.revoked",
    KeyLimited = "key.limited",
    FeedCreated = "feed.created",
    FeedRevoked = "feed.revoked",
    FeedPaused = "feed.paused",
    FeedResumed = "feed.resumed",
    FeedDropped = "feed.dropped",
    AdapterStarted = "adapter.started",
    AdapterReadAsked = "adapter.read_asked",
    EventsMerged = "events.merged",
    EventSplit = "events.split",
    EventsParted = "events.parted",
    AliasesTaught = "aliases.taught",
    MaintenanceOn = "maintenance.on",
    MaintenanceOff = "maintenance.off",
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
    /// Logs an action that did not change the store; changes of the store are logged together with the change.
    pub async fn note(
        &self,
        actor: &Actor,
        action: AuditAction,
        subject: &str,
        detail: &str,
    ) -> Result<(), PeopleError> {
        Ok(self.store.append_audit(&[self.entry(actor, action, subject, detail)]).await?)
    }

    /// An entry about an action of a signed-in person.
    pub(super) fn own_entry(
        &self,
        account: &AccountRecord,
        from: &Origin,
        (action, subject, detail): (AuditAction, &str, &str),
    ) -> AuditEntry {
        self.entry(&Actor::account(account, from), action, subject, detail)
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

    /// Lines that match, newest first.
    pub async fn find_audit(
        &self,
        filter: &AuditFilter<'_>,
    ) -> Result<Vec<AuditRecord>, PeopleError> {
        let rows = self.store.find_audit(filter, ROWS_MAX).await?;
        Ok(rows.into_iter().map(audit_record).collect())
    }

    /// Lines of one account or of all, newest first, older than `before` if it is given.
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

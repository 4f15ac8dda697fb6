//! People: developers and operators, their sign-in, their requests and their decisions.
//!
//! Rules that depend on time are applied here; the rows are in the store. Refusals that occur in normal use are
//! values ([`Attempt`], [`SignIn`]), not errors.

mod access_review;
mod audit;
mod credentials;
mod email;
mod hash;
mod link;
mod login_attempts;
mod refusals;
mod second_factor;
mod session;
mod sign_in;
mod throttle;
mod token;
mod totp;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{Clock, Timestamp};
use store::{AccessRow, AccessState, AccountRow, Allowance, Role, Stage, Store};

use crate::people::hash::Hasher;
use crate::people::refusals::Refusals;
use crate::people::throttle::{Limit, Throttle};
pub use crate::people::{
    audit::{AUDIT_ROWS_MAX, Actor, AuditAction, AuditRecord},
    credentials::{EmailAddress, Password, PasswordFault},
    email::{Email, EmailQueue, MailStats, Outbox, outbox},
    token::{DeviceToken, LinkToken, RecoveryCode, SessionToken},
    totp::TotpSecret,
};
use crate::{AccountError, Limits, registry::KEYS_MAX};

/// Maximum length of a person's name.
const NAME_CHARS_MAX: usize = 100;
/// Maximum length of a stored `User-Agent`; a longer one is cut.
const AGENT_CHARS_MAX: usize = 200;
/// The highest number of keys that an operator can allow an account.
const KEYS_MAX_MAX: u32 = 1000;

/// Wrong passwords for one account from one source, or from one known browser: enough for a person who has forgotten
/// it, too few for a program (120 an hour).
const PAIR_LIMIT: Limit = Limit { burst: 10, every: Duration::from_secs(30) };
/// Wrong passwords for one account from all sources. Looser than the limit per source, or one attacker could lock the
/// owner out.
const ACCOUNT_LIMIT: Limit = Limit { burst: 40, every: Duration::from_secs(15) };
/// Wrong passwords from one source for any account.
const SOURCE_LIMIT: Limit = Limit { burst: 30, every: Duration::from_secs(10) };
/// Wrong codes for one account: three codes of a million are valid at any time.
const CODE_LIMIT: Limit = Limit { burst: 5, every: Duration::from_secs(60) };
/// New accounts from one source.
const SIGN_UP_LIMIT: Limit = Limit { burst: 5, every: Duration::from_secs(600) };
/// New accounts from all sources: each is a row, a line of the audit log and an email. Existing accounts are not
/// affected.
const SIGN_UPS_LIMIT: Limit = Limit { burst: 200, every: Duration::from_secs(10) };

/// Requests for a password reset from one source.
const RESET_LIMIT: Limit = Limit { burst: 5, every: Duration::from_secs(300) };
/// Emails to one address that other people may have caused.
const EMAIL_LIMIT: Limit = Limit { burst: 3, every: Duration::from_secs(600) };
/// Requests of the API explorer for one account.
const EXPLORE_LIMIT: Limit = Limit { burst: 20, every: Duration::from_secs(2) };

/// Policy for new accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUp {
    Open,
    /// Only with an operator's link.
    Invitation,
    Closed,
}

/// The operator's settings about people.
#[derive(Clone, Copy, Debug)]
pub struct PeopleRules {
    pub sign_up: SignUp,
    /// Time without use after which a session ends.
    pub session_idle: Duration,
    /// Time after sign-in at which a session ends, used or not.
    pub session_max: Duration,
}

impl Default for PeopleRules {
    fn default() -> Self {
        Self {
            sign_up: SignUp::Open,
            session_idle: Duration::from_secs(24 * 3600),
            session_max: Duration::from_secs(30 * 86_400),
        }
    }
}

/// The client's address and browser.
#[derive(Clone, Debug)]
pub struct Origin {
    pub address: Option<IpAddr>,
    /// The `User-Agent` of the browser.
    pub agent: String,
    /// The token of a browser with which a person signed in before.
    pub device: Option<DeviceToken>,
}

impl Origin {
    fn address_text(&self) -> String {
        self.address.map_or_else(String::new, |address| address.to_string())
    }

    /// The source to which attempts are counted.
    fn source(&self) -> Option<IpAddr> {
        self.address.map(source_of)
    }

    fn agent_text(&self) -> String {
        self.agent.chars().filter(|c| !c.is_control()).take(AGENT_CHARS_MAX).collect()
    }
}

/// The source to which an address is counted: itself, or for IPv6 the /64 network that one customer has.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// An account as shown to its holder and to operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRecord {
    pub id: String,
    pub email: String,
    pub name: String,
    pub role: Role,
    pub created_at: Timestamp,
    pub suspended_at: Option<Timestamp>,
    /// Time from which it may have production keys.
    pub production_since: Option<Timestamp>,
    pub second_factor: bool,
    /// The limits that an operator allows it.
    pub allowance: Allowance,
}

impl AccountRecord {
    /// Maximum number of active keys.
    pub fn keys_max(&self) -> u32 {
        self.allowance.keys_max.unwrap_or(KEYS_MAX)
    }

    /// Requests of each production key per minute, and of all of them together per day and month.
    pub fn limits(&self) -> Limits {
        limits_of(&self.allowance)
    }
}

fn limits_of(allowance: &Allowance) -> Limits {
    Limits {
        burst_per_minute: allowance.burst_per_minute.unwrap_or(Limits::DEFAULT.burst_per_minute),
        requests_per_day: allowance.requests_per_day.unwrap_or(Limits::DEFAULT.requests_per_day),
        requests_per_month: allowance.requests_per_month,
    }
}

/// A live session.
#[derive(Clone, Debug)]
pub struct Session {
    pub account: AccountRecord,
    pub id: String,
    pub stage: Stage,
}

/// A session in the list of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: String,
    pub created_at: Timestamp,
    pub seen_at: Timestamp,
    pub address: String,
    pub agent: String,
    /// Whether this session requested the list.
    pub current: bool,
}

/// A request for production access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    pub id: String,
    pub account_id: String,
    pub purpose: String,
    pub created_at: Timestamp,
    pub state: AccessState,
    pub decided_at: Option<Timestamp>,
    pub note: Option<String>,
}

/// An operator's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    Approve,
    Refuse,
}

/// An account to create.
#[derive(Debug)]
pub struct NewAccount {
    pub profile: Profile,
    pub password: Password,
}

/// A validated address and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub email: EmailAddress,
    name: String,
}

impl Profile {
    /// `None`: the name is empty, too long or contains control characters.
    pub fn try_new(email: EmailAddress, name: &str) -> Option<Self> {
        let name = name.trim();
        let good = (1..=NAME_CHARS_MAX).contains(&name.chars().count())
            && !name.chars().any(char::is_control);
        good.then(|| Self { email, name: name.to_owned() })
    }
}

/// The result of an attempt that may be refused or throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Done,
    /// Wrong, unknown, used, expired or not allowed; the reason is not disclosed.
    Refused,
    /// Too many attempts.
    Throttled {
        retry_after_s: u64,
    },
    /// Too many concurrent attempts; retry shortly.
    Busy,
}

/// The result of signing in.
#[derive(Debug)]
pub enum SignIn {
    Complete(SessionToken),
    /// The password is correct; the second factor is missing.
    NeedsCode(SessionToken),
    /// The password is correct; the address has to be confirmed first. An email contains the link.
    Unconfirmed,
    Failed(Attempt),
}

/// Why an operation on people failed.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    #[error("there is no such account")]
    UnknownAccount,
    #[error("there is no such request, or it was decided already")]
    UnknownRequest,
    #[error("a request is pending already")]
    AlreadyRequested,
    #[error("say in 20 to 2000 characters what the data is for")]
    BadPurpose,
    #[error("an account can be allowed at most {KEYS_MAX_MAX} keys, and limits of at least 1")]
    BadAllowance,
    #[error("the last operator cannot be suspended; make another operator first")]
    LastOperator,
    #[error(transparent)]
    Account(#[from] AccountError),
}

impl From<store::StoreError> for PeopleError {
    fn from(error: store::StoreError) -> Self {
        Self::Account(AccountError::Store(error))
    }
}

/// Accounts of people.
#[derive(Debug)]
pub struct People {
    store: Store,
    clock: Arc<dyn Clock>,
    rules: PeopleRules,
    hasher: Hasher,
    throttles: Mutex<Throttles>,
    refusals: Mutex<Refusals>,
    /// `None`: no email is sent, and operators give people links instead.
    mail: Option<Outbox>,
    /// Time between hashing the password and answering a sign-up.
    sign_up_time: Duration,
}

#[derive(Debug)]
struct Throttles {
    known: Throttle,
    pair: Throttle,
    account: Throttle,
    source: Throttle,
    code: Throttle,
    sign_up: Throttle,
    sign_ups: Throttle,
    explore: Throttle,
    reset: Throttle,
    emails: Throttle,
}

impl Throttles {
    /// Counts a new account to its source and to the total.
    fn admit_sign_up(&mut self, source: Option<IpAddr>, now: Timestamp) -> Result<(), Duration> {
        self.sign_up.admit(&source, now).and_then(|()| self.sign_ups.admit(&(), now))
    }
}

impl People {
    /// # Errors
    /// The operating system gave no random numbers.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        rules: PeopleRules,
    ) -> Result<Self, AccountError> {
        let throttles = Throttles {
            known: Throttle::new(PAIR_LIMIT),
            pair: Throttle::new(PAIR_LIMIT),
            account: Throttle::new(ACCOUNT_LIMIT),
            source: Throttle::new(SOURCE_LIMIT),
            code: Throttle::new(CODE_LIMIT),
            sign_up: Throttle::new(SIGN_UP_LIMIT),
            sign_ups: Throttle::new(SIGN_UPS_LIMIT),
            explore: Throttle::new(EXPLORE_LIMIT),
            reset: Throttle::new(RESET_LIMIT),
            emails: Throttle::new(EMAIL_LIMIT),
        };
        let hasher = Hasher::new()?;
        Ok(Self {
            store,
            clock,
            rules,
            hasher,
            throttles: Mutex::new(throttles),
            refusals: Mutex::default(),
            mail: None,
            sign_up_time: sign_in::SIGN_UP_TIME,
        })
    }

    /// Enables emails: addresses are confirmed and passwords reset by email.
    #[must_use]
    pub fn with_mail(mut self, mail: Option<Outbox>) -> Self {
        self.mail = mail;
        self
    }

    pub fn rules(&self) -> PeopleRules {
        self.rules
    }

    /// Counts a request of the API explorer.
    pub fn admit_explorer(&self, of: &Session) -> Attempt {
        match self.throttles().explore.admit(&of.account.id, self.clock.now()) {
            Ok(()) => Attempt::Done,
            Err(wait) => throttled(wait),
        }
    }

    fn throttles(&self) -> MutexGuard<'_, Throttles> {
        // One number for each key: no state can be left half-changed.
        self.throttles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        // Independent counts: no state can be left half-changed.
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record(row: &AccountRow) -> AccountRecord {
    AccountRecord {
        id: row.id.clone(),
        email: row.email.clone(),
        name: row.name.clone(),
        role: row.role,
        created_at: Timestamp::from_millis(row.created_ms),
        suspended_at: row.suspended_ms.map(Timestamp::from_millis),
        production_since: row.production_ms.map(Timestamp::from_millis),
        second_factor: row.totp.as_ref().is_some_and(|totp| totp.confirmed_ms.is_some()),
        allowance: row.allowance,
    }
}

fn access_record(row: AccessRow) -> AccessRecord {
    AccessRecord {
        id: row.id,
        account_id: row.account_id,
        purpose: row.purpose,
        created_at: Timestamp::from_millis(row.created_ms),
        state: row.state,
        decided_at: row.decided_ms.map(Timestamp::from_millis),
        note: row.note,
    }
}

fn throttled(wait: Duration) -> Attempt {
    // Rounded up, so that a client that waits this long succeeds.
    Attempt::Throttled { retry_after_s: wait.as_secs() + 1 }
}

//! Emails to people: their texts, and the events that cause them. An email goes into a bounded queue or is dropped
//! and counted; the program sends them separately from requests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use store::{AccountRow, LinkPurpose, Role, Window};
use tokio::sync::mpsc;

use crate::people::{link::RESET_TIME, sign_in::CONFIRM_TIME, throttled};
use crate::{
    Actor, Attempt, AuditAction, EmailAddress, LinkToken, Origin, Owner, People, PeopleError,
    QuotaAlert,
};

/// Maximum number of emails that wait for the mail server.
const QUEUE_MAX: usize = 1000;

/// An email in plain text. `Debug` does not show its content: its links give access.
pub struct Email {
    pub to: EmailAddress,
    pub subject: String,
    pub body: String,
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(..)")
    }
}

/// Counts of emails, for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailStats {
    pub queued: u64,
    pub sent: u64,
    /// Given up after all tries, or refused by the mail server.
    pub failed: u64,
    /// Not queued: too many emails were waiting.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Counters {
    taken: AtomicU64,
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

/// The sending end of the queue of emails.
#[derive(Debug)]
pub struct Outbox {
    queue: mpsc::Sender<Email>,
    counters: Arc<Counters>,
    /// The address of the service; never taken from a request, whose sender could choose it.
    base: String,
}

/// The receiving end, for the task that sends the emails.
#[derive(Debug)]
pub struct EmailQueue {
    queue: mpsc::Receiver<Email>,
    counters: Arc<Counters>,
}

/// Creates a queue of emails. `base` is the address of the service.
pub fn outbox(base: &str) -> (Outbox, EmailQueue) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let counters = Arc::<Counters>::default();
    let base = base.trim_end_matches('/').to_owned();
    let outbox = Outbox { queue: sender, counters: Arc::clone(&counters), base };
    (outbox, EmailQueue { queue: receiver, counters })
}

impl EmailQueue {
    /// Waits for the next email; `None` when the queue is closed.
    pub async fn next(&mut self) -> Option<Email> {
        self.queue.recv().await
    }

    /// Counts the result of sending an email.
    pub fn note(&self, sent: bool) {
        let counter = if sent { &self.counters.sent } else { &self.counters.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Outbox {
    fn post(&self, email: Email) {
        let counter = match self.queue.try_send(email) {
            Ok(()) => &self.counters.taken,
            Err(_) => {
                tracing::warn!(
                    event = "email.dropped",
                    "email dropped: too many wait for the mail server"
                );
                &self.counters.dropped
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn figures(&self) -> MailStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (sent, failed) = (read(&self.counters.sent), read(&self.counters.failed));
        let queued = read(&self.counters.taken).saturating_sub(sent + failed);
        MailStats { queued, sent, failed, dropped: read(&self.counters.dropped) }
    }

    fn link(&self, token: &LinkToken) -> String {
        format!("{}/link/{}", self.base, token.expose())
    }
}

impl People {
    /// Whether emails are sent at all.
    pub fn sends_mail(&self) -> bool {
        self.mail.is_some()
    }

    pub fn mail_stats(&self) -> MailStats {
        self.mail.as_ref().map(Outbox::figures).unwrap_or_default()
    }

    /// Counts a request for a password reset to its source.
    pub fn admit_reset(&self, from: &Origin) -> Attempt {
        if self.mail.is_none() {
            return Attempt::Refused;
        }
        match self.throttles().reset.admit(&from.source(), self.clock.now()) {
            Ok(()) => Attempt::Done,
            Err(wait) => throttled(wait),
        }
    }

    /// Sends a link for a new password if the address has an account. The answer does not await this, since its time
    /// must not show whether there is an account.
    pub async fn mail_reset(&self, email: &EmailAddress, from: &Origin) -> Result<(), PeopleError> {
        let Some(mail) = self.mail_for(email) else {
            return Ok(());
        };
        let row = self.store.account_by_email(email.as_str()).await?;
        let Some(row) = row.filter(|row| row.suspended_ms.is_none()) else {
            return Ok(());
        };
        let asked = "password reset, by mail";
        let audit = self.entry(&Actor::stranger(from), AuditAction::LinkIssued, &row.id, asked);
        let link = self.issue_link(
            LinkPurpose::PasswordReset,
            (Some(&row.id), None),
            RESET_TIME,
            Some(&audit),
        );
        let link = link.await?;
        mail.post(Email {
            to: email.clone(),
            subject: "Set a new password for Linesman".to_owned(),
            body: format!(
                "Somebody, hopefully you, asked to set a new password for this address.\n\n\
                 This link does it, once, within a day:\n{}\n\n\
                 If it was not you, do nothing: the password stays as it is.\n",
                mail.link(&link)
            ),
        });
        Ok(())
    }

    /// Whether an account still has to confirm its address. Operators signed up by a link issued on the machine
    /// itself.
    pub(super) fn needs_confirmation(&self, row: &AccountRow) -> bool {
        self.mail.is_some() && row.confirmed_ms.is_none() && row.role == Role::Developer
    }

    /// Sends a new account the link that confirms its address.
    pub(super) async fn mail_confirmation(&self, row: &AccountRow) -> Result<(), PeopleError> {
        let Some((mail, to)) = self.mail_to(row) else {
            return Ok(());
        };
        // Not logged separately: it is part of creating the account, which is logged.
        let purpose = LinkPurpose::Confirmation;
        let link = self.issue_link(purpose, (Some(&row.id), None), CONFIRM_TIME, None).await?;
        mail.post(Email {
            to,
            subject: "Confirm your address for Linesman".to_owned(),
            body: format!(
                "An account was made with this address.\n\n\
                 This link confirms that mail reaches you, once, within a week:\n{}\n\n\
                 If it was not you, do nothing: without it nobody can sign in.\n",
                mail.link(&link)
            ),
        });
        Ok(())
    }

    /// Informs the holder of an account that its address was used to sign up.
    pub(super) fn mail_account_exists(&self, email: &EmailAddress) {
        if let Some(mail) = self.mail_for(email) {
            mail.post(Email {
                to: email.clone(),
                subject: "You have an account for Linesman".to_owned(),
                body: format!(
                    "Somebody, hopefully you, tried to make an account with this address, which has one.\n\n\
                     Sign in: {0}/signin\nForgotten the password: {0}/forgot\n",
                    mail.base
                ),
            });
        }
    }

    /// Informs an account of the decision about its request for production access.
    pub(super) async fn mail_decision(
        &self,
        account_id: &str,
        approved: bool,
    ) -> Result<(), PeopleError> {
        let Some(row) = self.store.account(account_id).await? else {
            return Ok(());
        };
        if let Some((mail, to)) = self.mail_to(&row) {
            let what = if approved { "approved" } else { "refused" };
            let (subject, base) = (format!("Production access: {what}"), &mail.base);
            let body = format!(
                "Your request was {what}. What the operator says: {base}/dashboard/access\n"
            );
            mail.post(Email { to, subject, body });
        }
        Ok(())
    }

    /// Informs the owners of keys that their quotas run low. Returns the alerts that failed, for a retry; they do not
    /// stop the others.
    pub async fn mail_alerts(&self, alerts: Vec<QuotaAlert>) -> Vec<QuotaAlert> {
        let mut failed = Vec::new();
        for alert in alerts {
            if let Err(error) = self.mail_alert(&alert).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(event = "quota_alert.failed", key_id = %alert.key.id, error, "quota alert not sent; retrying");
                failed.push(alert);
            }
        }
        failed
    }

    async fn mail_alert(&self, alert: &QuotaAlert) -> Result<(), PeopleError> {
        let Some(account_id) = &alert.key.account_id else {
            return Ok(());
        };
        let Some(row) = self.store.account(account_id).await? else {
            return Ok(());
        };
        let Some((mail, to)) = self.reachable(&row) else {
            return Ok(());
        };
        let QuotaAlert { key, percent, standing } = alert;
        let window = match standing.window {
            Window::Minute => "minute",
            Window::Day => "day",
            Window::Month => "month",
        };
        let name = if key.name.is_empty() { &key.hint } else { &key.name };
        let who = match standing.owner {
            Owner::Key => format!("Key {name} ({}) has used {} of its", key.hint, standing.used),
            Owner::Account => format!("Your keys have together used {} of your", standing.used),
        };
        mail.post(Email {
            to,
            subject: format!("{percent} % of the {window}'s requests used: {name}"),
            body: format!(
                "{who} {} requests for the {window}; {} are left until {}.\n\
                 When none are left, requests are answered 429.\n\n{}/dashboard/usage?key={}\n",
                standing.limit, standing.remaining, standing.resets_at, mail.base, key.id
            ),
        });
        Ok(())
    }

    /// The outbox for an account whose address is confirmed.
    fn reachable(&self, row: &AccountRow) -> Option<(&Outbox, EmailAddress)> {
        let known = row.confirmed_ms.is_some() && row.suspended_ms.is_none();
        Some((self.mail.as_ref().filter(|_| known)?, EmailAddress::parse(&row.email)?))
    }

    fn mail_to(&self, row: &AccountRow) -> Option<(&Outbox, EmailAddress)> {
        let email = EmailAddress::parse(&row.email)?;
        Some((self.mail_for(&email)?, email))
    }

    /// The outbox, unless the address has received too many emails.
    fn mail_for(&self, email: &EmailAddress) -> Option<&Outbox> {
        let mail = self.mail.as_ref()?;
        let now: Timestamp = self.clock.now();
        self.throttles().emails.admit(email, now).is_ok().then_some(mail)
    }
}

//! Sends emails: a few at a time, each with a limited number of tries. Nothing waits for this, and no email waits for
//! another one that cannot be delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use accounts::{Email, EmailQueue};
use anyhow::Context;
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::Error as SmtpError;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::config::Mail;

pub(crate) type Transport = AsyncSmtpTransport<Tokio1Executor>;

/// Timeout of one step of SMTP.
const STEP_TIME_MAX: Duration = Duration::from_secs(15);
/// Pauses after failed tries; there is one try more than there are pauses.
const WAITS: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// Maximum number of emails sent at the same time: one slow mailbox takes a quarter of the capacity.
const SENDING_MAX: usize = 4;
/// Maximum number of emails that wait for a retry. Beyond it, an email that fails is given up.
const WAITING_MAX: usize = 1000;

/// A transport to the mail server, not yet connected.
///
/// # Errors
/// The URL is invalid.
pub(crate) fn transport(url: &str) -> Result<Transport, SmtpError> {
    Ok(Transport::from_url(url)?.timeout(Some(STEP_TIME_MAX)).build())
}

/// Sends the emails of the queue.
///
/// # Errors
/// `mail.url` or `mail.from` is invalid.
pub(crate) fn deliver(
    config: &Mail,
    queue: EmailQueue,
) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
    let transport = transport(config.url.reveal()).context("`mail.url` is invalid")?;
    let from: Mailbox = config.from.parse().context("`mail.from` is invalid")?;
    let sender = Sender { transport, from, waits: WAITS.to_vec(), waiting_max: WAITING_MAX };
    Ok(sender.run(queue))
}

/// An email with its failed tries.
struct Mailing {
    message: Message,
    failed: usize,
}

/// Sends emails and retries each by itself.
struct Sender {
    transport: Transport,
    from: Mailbox,
    /// How long to wait after each try that failed.
    waits: Vec<Duration>,
    waiting_max: usize,
}

impl Sender {
    async fn run(self, mut queue: EmailQueue) {
        let mut sending: JoinSet<Result<(), (Mailing, SmtpError)>> = JoinSet::new();
        // By due time; the number distinguishes emails of the same instant.
        let mut waiting: BTreeMap<(Instant, u64), Mailing> = BTreeMap::new();
        let (mut put_off, mut open) = (0, true);
        loop {
            let room = sending.len() < SENDING_MAX;
            let due = waiting.first_key_value().map(|((at, _), _)| *at);
            // Cancel safe: an email stays in its queue, a result in its set.
            tokio::select! {
                email = queue.next(), if room && open => match email {
                    Some(email) => match write(&self.from, &email) {
                        Ok(message) => self.send(&mut sending, Mailing { message, failed: 0 }),
                        Err(error) => {
                            let error = &*error as &dyn std::error::Error;
                            tracing::warn!(event = "email.invalid", error, "email not built");
                            queue.note(false);
                        }
                    },
                    None => open = false,
                },
                () = sleep_until(due), if room && due.is_some() => {
                    if let Some((_, mailing)) = waiting.pop_first() {
                        self.send(&mut sending, mailing);
                    }
                }
                Some(done) = sending.join_next() => match done {
                    Ok(Ok(())) => queue.note(true),
                    Ok(Err((mailing, error))) => {
                        match self.wait_after(&mailing, &error, waiting.len()) {
                            Some(wait) => {
                                put_off += 1;
                                waiting.insert((Instant::now() + wait, put_off), mailing);
                            }
                            None => queue.note(false),
                        }
                    }
                    Err(error) => {
                        tracing::error!(event = "email.lost", %error, "email lost");
                        queue.note(false);
                    }
                },
                else => return,
            }
        }
    }

    fn send(&self, sending: &mut JoinSet<Result<(), (Mailing, SmtpError)>>, mut mailing: Mailing) {
        let transport = self.transport.clone();
        sending.spawn(async move {
            let sent = transport.send(mailing.message.clone()).await;
            sent.map(drop).map_err(|error| {
                mailing.failed += 1;
                (mailing, error)
            })
        });
    }

    /// The pause before the next try; `None`: the email is given up.
    fn wait_after(&self, mailing: &Mailing, error: &SmtpError, waiting: usize) -> Option<Duration> {
        let error_shown = error as &dyn std::error::Error;
        let next = self.waits.get(mailing.failed.saturating_sub(1));
        let Some(wait) = next.filter(|_| !error.is_permanent()) else {
            tracing::warn!(event = "email.given_up", error = error_shown, "email given up");
            return None;
        };
        if waiting >= self.waiting_max {
            tracing::warn!(
                event = "email.given_up",
                error = error_shown,
                waiting,
                "email given up: too many wait for another try"
            );
            return None;
        }
        tracing::info!(
            event = "email.deferred",
            error = error_shown,
            ?wait,
            "email deferred; retrying"
        );
        Some(*wait)
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The email as a message; its address is parsed again by the mail library.
fn write(
    from: &Mailbox,
    email: &Email,
) -> Result<Message, Box<dyn std::error::Error + Send + Sync>> {
    let to: Address = email.to.as_str().parse()?;
    Ok(Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(&email.subject)
        .header(ContentType::TEXT_PLAIN)
        .body(email.body.clone())?)
}

#[cfg(test)]
mod tests;

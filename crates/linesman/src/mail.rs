//! Letters to the mail server: a few at a time, each with patience and an end to it. Nobody waits for this, and no
//! letter for another that cannot be delivered.

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

/// How long the mail server may take for one step.
const STEP_TIME_MAX: Duration = Duration::from_secs(15);
/// How long to wait after each try that failed; there is one try more than there are waits.
const WAITS: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// Letters that are handed over at the same time: a mailbox that answers slowly holds up a quarter of the way.
const SENDING_MAX: usize = 4;
/// Letters put off that are remembered. One more that fails is given up, so that what can be delivered goes on.
const WAITING_MAX: usize = 1000;

/// A way to the mail server; nothing is opened yet.
///
/// # Errors
/// It is no such address.
pub(crate) fn transport(url: &str) -> Result<Transport, SmtpError> {
    Ok(Transport::from_url(url)?.timeout(Some(STEP_TIME_MAX)).build())
}

/// Sends letters for as long as there are people to write them.
///
/// # Errors
/// The configuration's address or sender cannot be read, which its check would have told.
pub(crate) fn deliver(
    config: &Mail,
    queue: EmailQueue,
) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
    let transport = transport(config.url.reveal()).context("`mail.url` cannot be read")?;
    let from: Mailbox = config.from.parse().context("`mail.from` cannot be read")?;
    let office = Office { transport, from, waits: WAITS.to_vec(), waiting_max: WAITING_MAX };
    Ok(office.run(queue))
}

/// A letter on its way.
struct Mailing {
    message: Message,
    /// Tries that failed.
    failed: usize,
}

/// Whoever takes letters to the mail server. Each has its own tries: one that is put off waits by itself while the
/// others go on.
struct Office {
    transport: Transport,
    from: Mailbox,
    /// How long to wait after each try that failed.
    waits: Vec<Duration>,
    waiting_max: usize,
}

impl Office {
    async fn run(self, mut queue: EmailQueue) {
        let mut sending: JoinSet<Result<(), (Mailing, SmtpError)>> = JoinSet::new();
        // By when they are due; the number tells letters of the same instant apart.
        let mut waiting: BTreeMap<(Instant, u64), Mailing> = BTreeMap::new();
        let (mut put_off, mut open) = (0, true);
        loop {
            let room = sending.len() < SENDING_MAX;
            let due = waiting.first_key_value().map(|((at, _), _)| *at);
            // Nothing is lost where another arm is quicker: a letter stays in its queue, a result in its set.
            tokio::select! {
                email = queue.next(), if room && open => match email {
                    Some(email) => match write(&self.from, &email) {
                        Ok(message) => self.send(&mut sending, Mailing { message, failed: 0 }),
                        Err(error) => {
                            let error = &*error as &dyn std::error::Error;
                            tracing::warn!(error, "an email cannot be written");
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
                        tracing::error!(%error, "an email was lost");
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

    /// How long to wait before the next try; `None` where there is none.
    fn wait_after(&self, mailing: &Mailing, error: &SmtpError, waiting: usize) -> Option<Duration> {
        let error_shown = error as &dyn std::error::Error;
        let next = self.waits.get(mailing.failed.saturating_sub(1));
        let Some(wait) = next.filter(|_| !error.is_permanent()) else {
            tracing::warn!(error = error_shown, "an email was given up");
            return None;
        };
        if waiting >= self.waiting_max {
            tracing::warn!(
                error = error_shown,
                waiting,
                "an email was given up: too many wait for another try"
            );
            return None;
        }
        tracing::info!(error = error_shown, ?wait, "an email is tried again");
        Some(*wait)
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The letter as mail. Its address was typed by somebody, and is read once more by who knows what mail takes.
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

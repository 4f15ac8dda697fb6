//! Letters to the mail server: a few at a time, each with patience and an end to it. Nobody waits for this, and no
//! letter for another that cannot be delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use accounts::{Letter, Postbag};
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
    postbag: Postbag,
) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
    let transport = transport(config.url.reveal()).context("`mail.url` cannot be read")?;
    let from: Mailbox = config.from.parse().context("`mail.from` cannot be read")?;
    let office = Office { transport, from, waits: WAITS.to_vec(), waiting_max: WAITING_MAX };
    Ok(office.run(postbag))
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
    async fn run(self, mut postbag: Postbag) {
        let mut sending: JoinSet<Result<(), (Mailing, SmtpError)>> = JoinSet::new();
        // By when they are due; the number tells letters of the same instant apart.
        let mut waiting: BTreeMap<(Instant, u64), Mailing> = BTreeMap::new();
        let (mut put_off, mut open) = (0, true);
        loop {
            let room = sending.len() < SENDING_MAX;
            let due = waiting.first_key_value().map(|((at, _), _)| *at);
            // Nothing is lost where another arm is quicker: a letter stays in its queue, a result in its set.
            tokio::select! {
                letter = postbag.next(), if room && open => match letter {
                    Some(letter) => match write(&self.from, &letter) {
                        Ok(message) => self.send(&mut sending, Mailing { message, failed: 0 }),
                        Err(error) => {
                            let error = &*error as &dyn std::error::Error;
                            tracing::warn!(error, "a letter cannot be written");
                            postbag.note(false);
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
                    Ok(Ok(())) => postbag.note(true),
                    Ok(Err((mailing, error))) => {
                        match self.wait_after(&mailing, &error, waiting.len()) {
                            Some(wait) => {
                                put_off += 1;
                                waiting.insert((Instant::now() + wait, put_off), mailing);
                            }
                            None => postbag.note(false),
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, "a letter was lost");
                        postbag.note(false);
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
            tracing::warn!(error = error_shown, "a letter was given up");
            return None;
        };
        if waiting >= self.waiting_max {
            tracing::warn!(
                error = error_shown,
                waiting,
                "a letter was given up: too many wait for another try"
            );
            return None;
        }
        tracing::info!(error = error_shown, ?wait, "a letter is tried again");
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
    letter: &Letter,
) -> Result<Message, Box<dyn std::error::Error + Send + Sync>> {
    let to: Address = letter.to.as_str().parse()?;
    Ok(Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(&letter.subject)
        .header(ContentType::TEXT_PLAIN)
        .body(letter.body.clone())?)
}

#[cfg(test)]
mod tests;

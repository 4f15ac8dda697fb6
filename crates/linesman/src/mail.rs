//! Letters to the mail server: one after the other, with patience and an end to it. Nobody waits for this.

use std::time::Duration;

use accounts::{Letter, Postbag};
use anyhow::Context;
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::Error as SmtpError;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

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
    let transport = transport(&config.url).context("`mail.url` cannot be read")?;
    let from: Mailbox = config.from.parse().context("`mail.from` cannot be read")?;
    Ok(work(transport, from, postbag, WAITS.to_vec()))
}

async fn work(transport: Transport, from: Mailbox, mut postbag: Postbag, waits: Vec<Duration>) {
    while let Some(letter) = postbag.next().await {
        let sent = match write(&from, &letter) {
            Ok(message) => send(&transport, &message, &waits).await,
            Err(error) => {
                tracing::warn!(
                    error = &*error as &dyn std::error::Error,
                    "a letter cannot be written"
                );
                false
            }
        };
        postbag.note(sent);
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

/// Tries until it is sent, refused for good, or has failed often enough.
async fn send(transport: &Transport, message: &Message, waits: &[Duration]) -> bool {
    let mut waits = waits.iter();
    loop {
        let Err(error) = transport.send(message.clone()).await else {
            return true;
        };
        let next = waits.next().filter(|_| !error.is_permanent());
        let Some(wait) = next else {
            tracing::warn!(error = &error as &dyn std::error::Error, "a letter was given up");
            return false;
        };
        tracing::info!(error = &error as &dyn std::error::Error, ?wait, "a letter is tried again");
        tokio::time::sleep(*wait).await;
    }
}

#[cfg(test)]
mod tests;

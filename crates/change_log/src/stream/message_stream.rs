//! One JetStream stream: messages in with a fence and without doubles, messages out in order.

use std::{fmt, sync::Arc, time::Duration};

use async_nats::jetstream::{
    Context, ErrorCode,
    consumer::{DeliverPolicy, pull::OrderedConfig},
    context::{CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind},
    message::PublishMessage,
    stream::{Config, DiscardPolicy, RawMessageErrorKind, RetentionPolicy, StorageType, Stream},
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use crate::{
    error::{Damage, LogError},
    stream::part::Part,
};

/// How long a publication may take with all its repetitions: longer than the servers need to elect another leader.
const PUBLISH_TIME_MAX: Duration = Duration::from_secs(10);
/// How long one attempt waits for its acknowledgement.
pub(crate) const ACK_TIME_MAX: Duration = Duration::from_secs(2);
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// How long a question may take with all its repetitions.
const ASK_TIME_MAX: Duration = Duration::from_secs(10);
/// How often either is tried at least, however long that takes.
const TRIES_MIN: u32 = 3;
/// How long a reader hears nothing before it doubts its consumer. One that was asked over a connection that is gone
/// never answers, and the client's own way to find out takes two heartbeats of 15 s. Servers that are reached send what
/// they have within milliseconds, and within a second where the machine is busy: two are not exceeded for nothing, and
/// another consumer costs one question where they are.
const QUIET_TIME_MAX: Duration = Duration::from_secs(2);
/// Consumers in a row that may stay silent though there is something to send: as long as a question may take.
const SILENT_MAX: u32 = 5;
/// How long the servers remember which messages they have: a repetition comes much sooner. One of a process that was
/// held still for longer is refused for its place in the stream, and counts as overtaken.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// On how many servers a log lies where nobody has said: one may then fail without anybody noticing.
const REPLICAS_USUAL: usize = 3;
/// Messages on their way at once.
const WINDOW_PARTS: usize = 32;
/// Messages read ahead of whoever takes them.
const READ_AHEAD: usize = 16;

/// A message with its number in the stream.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) at: u64,
    pub(crate) part: Part,
}

/// Whom to tell of every answer of the servers.
#[derive(Clone)]
pub(crate) struct AnswerListener(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for AnswerListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerListener")
    }
}

/// A stream and how to reach it.
#[derive(Debug, Clone)]
pub(crate) struct MessageStream {
    context: Context,
    stream: Stream,
    name: String,
    subject: String,
    pub(crate) on_answer: Option<AnswerListener>,
}

/// How far a stream reaches; `last` is `first - 1` where it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) bytes: u64,
}

impl MessageStream {
    /// Finds the stream.
    pub(crate) async fn find(
        context: &Context,
        name: String,
        subject: String,
    ) -> Result<Self, LogError> {
        let mut limit = RetryLimit::of(ASK_TIME_MAX);
        let stream = loop {
            match context.get_stream(&name).await {
                Ok(stream) => break stream,
                Err(error)
                    if matches!(error.kind(), GetStreamErrorKind::JetStream(error)
                        if error.error_code() == ErrorCode::STREAM_NOT_FOUND) =>
                {
                    return Err(LogError::Missing { name });
                }
                Err(error) if limit.is_exhausted() => {
                    return Err(LogError::Unavailable(Box::new(error)));
                }
                Err(_) => sleep(RETRY_DELAY).await,
            }
        };
        Ok(Self { context: context.clone(), stream, name, subject, on_answer: None })
    }

    /// Finds the stream, or makes it.
    pub(crate) async fn find_or_create(
        context: &Context,
        name: String,
        subject: String,
        replicas: Option<usize>,
    ) -> Result<Self, LogError> {
        let mut config = Config {
            name: name.clone(),
            subjects: vec![subject.clone()],
            retention: RetentionPolicy::Limits,
            // What does not fit is refused; nothing that was acknowledged is dropped for it.
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: replicas.unwrap_or(REPLICAS_USUAL),
            duplicate_window: DUPLICATE_WINDOW,
            deny_delete: true,
            ..Config::default()
        };
        let mut limit = RetryLimit::of(ASK_TIME_MAX);
        let stream = loop {
            match context.get_or_create_stream(config.clone()).await {
                Ok(stream) => break stream,
                // Not "too few are up": this server says that it has no others.
                Err(error)
                    if replicas.is_none()
                        && config.num_replicas > 1
                        && matches!(error.kind(), CreateStreamErrorKind::JetStream(error)
                            if error.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED) =>
                {
                    tracing::warn!(stream = %config.name, "a single NATS server: the log is not replicated");
                    config.num_replicas = 1;
                }
                Err(error) if limit.is_exhausted() => {
                    return Err(LogError::Unavailable(Box::new(error)));
                }
                Err(_) => sleep(RETRY_DELAY).await,
            }
        };
        Ok(Self { context: context.clone(), stream, name, subject, on_answer: None })
    }

    /// Notes that the servers have answered. Something long consists of many answers: who looks for the next one finds
    /// out that they are gone as soon as in something short.
    fn tell(&self) {
        if let Some(AnswerListener(on_answer)) = &self.on_answer {
            on_answer();
        }
    }

    /// How far the stream reaches, as its leader says.
    pub(crate) async fn extent(&self) -> Result<Extent, LogError> {
        retry(|| self.extent_now()).await
    }

    /// The same, asked once.
    pub(crate) async fn extent_now(&self) -> Result<Extent, LogError> {
        let info = self.stream.get_info().await;
        let state = info.map_err(|error| LogError::Unavailable(Box::new(error)))?.state;
        self.tell();
        Ok(Extent {
            first: state.first_sequence.max(1),
            last: state.last_sequence,
            bytes: state.bytes,
        })
    }

    /// One message.
    pub(crate) async fn get(&self, at: u64) -> Result<Numbered, LogError> {
        retry(|| self.get_now(at)).await
    }

    /// The same, asked once.
    pub(crate) async fn get_now(&self, at: u64) -> Result<Numbered, LogError> {
        let found = self.find_now(at).await?;
        found.ok_or_else(|| LogError::Unavailable("there is no such message".into()))
    }

    /// The same where there may be none.
    pub(crate) async fn find_now(&self, at: u64) -> Result<Option<Numbered>, LogError> {
        let message = match self.stream.get_raw_message(at).await {
            Ok(message) => message,
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(None),
            Err(error) => return Err(LogError::Unavailable(Box::new(error))),
        };
        self.tell();
        self.decode(at, &message.payload).map(Some)
    }

    /// Publishes messages in order, right after message `last`, each of them once; gives the number of the last.
    ///
    /// `id` names them: a repetition whose first attempt arrived after all is told from a new message.
    pub(crate) async fn publish(
        &self,
        id: &str,
        messages: &[Bytes],
        mut last: u64,
    ) -> Result<u64, LogError> {
        for (window, some) in messages.chunks(WINDOW_PARTS).enumerate() {
            let mut limit = RetryLimit::of(PUBLISH_TIME_MAX);
            loop {
                match self.attempt(&format!("{id}-{window}"), some, last).await {
                    Ok(published) => break last = published,
                    Err(Failed::Overtaken) => return Err(LogError::Overtaken),
                    Err(Failed::NotYet(error)) if limit.is_exhausted() => {
                        return Err(LogError::Unavailable(error));
                    }
                    Err(Failed::NotYet(_)) => sleep(RETRY_DELAY).await,
                }
            }
        }
        Ok(last)
    }

    async fn attempt(&self, id: &str, messages: &[Bytes], last: u64) -> Result<u64, Failed> {
        let mut acknowledgements = Vec::with_capacity(messages.len());
        for (expected, (n, message)) in (last..).zip(messages.iter().enumerate()) {
            let message = PublishMessage::build()
                .payload(message.clone())
                .message_id(format!("{id}-{n}"))
                .expected_stream(&self.name)
                .expected_last_sequence(expected);
            let sent = self.context.send_publish(self.subject.clone(), message).await;
            acknowledgements
                .push((expected, sent.map_err(|error| Failed::NotYet(Box::new(error)))?));
        }
        let mut published = last;
        // In order: behind one that did not arrive, all others are refused, which says nothing about the fence.
        for (expected, acknowledged) in acknowledgements {
            match acknowledged.await {
                Ok(acknowledged) if acknowledged.sequence == expected + 1 => {
                    published = acknowledged.sequence;
                    self.tell();
                }
                Ok(_) => return Err(Failed::Overtaken),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    return Err(Failed::Overtaken);
                }
                Err(error) => return Err(Failed::NotYet(Box::new(error))),
            }
        }
        Ok(published)
    }

    /// Deletes all messages before one.
    pub(crate) async fn purge_before(&self, at: u64) -> Result<(), LogError> {
        // Nothing comes before the first, and servers (seen with 2.9) take "before 1" for "everything".
        if at <= 1 {
            return Ok(());
        }
        let purged = timeout(ASK_TIME_MAX, async { self.stream.purge().sequence(at).await }).await;
        match purged {
            Ok(Ok(_)) => {
                self.tell();
                Ok(())
            }
            Ok(Err(error)) => Err(LogError::Unavailable(Box::new(error))),
            Err(elapsed) => Err(LogError::Unavailable(Box::new(elapsed))),
        }
    }

    /// Reads messages from one on, to another or for ever, into a channel that ends after an error.
    pub(crate) fn read(
        &self,
        from: u64,
        to: Option<u64>,
    ) -> mpsc::Receiver<Result<Numbered, LogError>> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let stream = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                // Whoever reads may stop at any time; a consumer that waits must not outlive them.
                () = sender.closed() => {}
                read = stream.pump(from, to, &sender) => {
                    if let Err(error) = read && sender.send(Err(error)).await.is_err() {
                        tracing::debug!("a reader of the log is gone");
                    }
                }
            }
        });
        receiver
    }

    async fn pump(
        &self,
        from: u64,
        to: Option<u64>,
        sender: &mpsc::Sender<Result<Numbered, LogError>>,
    ) -> Result<(), LogError> {
        if to.is_some_and(|to| from > to) {
            return Ok(());
        }
        let (mut next, mut silent) = (from, 0);
        let mut messages = self.consume(next).await?;
        loop {
            let message = match timeout(QUIET_TIME_MAX, messages.next()).await {
                Ok(Some(Ok(message))) => message,
                // Nothing is there to be sent, or nobody can say so.
                Err(_) if to.is_none() && !self.reaches(next).await => continue,
                Err(elapsed) if silent >= SILENT_MAX => {
                    return Err(LogError::Unavailable(Box::new(elapsed)));
                }
                Err(_) => {
                    silent += 1;
                    messages = self.consume(next).await?;
                    continue;
                }
                Ok(_) => {
                    // The consumer is gone with its server; another one goes on where this one stopped.
                    messages = self.consume(next).await?;
                    continue;
                }
            };
            silent = 0;
            let at = message.info().map_err(LogError::Unavailable)?.stream_sequence;
            if at != next {
                return Err(LogError::NotKept { seq: next, follows: at - 1 });
            }
            next = at + 1;
            let numbered = self.decode(at, &message.payload)?;
            if sender.send(Ok(numbered)).await.is_err() || to == Some(at) {
                return Ok(());
            }
        }
    }

    /// Whether a message is known to be there.
    async fn reaches(&self, at: u64) -> bool {
        self.extent_now().await.is_ok_and(|extent| extent.last >= at)
    }

    async fn consume(
        &self,
        from: u64,
    ) -> Result<async_nats::jetstream::consumer::pull::Ordered, LogError> {
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ..OrderedConfig::default()
        };
        let mut limit = RetryLimit::of(ASK_TIME_MAX);
        loop {
            let made = async {
                let consumer =
                    self.stream.create_consumer(config.clone()).await.map_err(Box::new)?;
                let messages = consumer.messages().await.map_err(Box::new)?;
                Ok::<_, async_nats::Error>(messages)
            };
            match made.await {
                Ok(messages) => return Ok(messages),
                Err(error) if limit.is_exhausted() => {
                    return Err(LogError::Unavailable(error));
                }
                Err(_) => sleep(RETRY_DELAY).await,
            }
        }
    }

    fn decode(&self, at: u64, payload: &Bytes) -> Result<Numbered, LogError> {
        match Part::decode(payload) {
            Ok(part) => Ok(Numbered { at, part }),
            Err(reason) => Err(self.corrupt(at, reason)),
        }
    }

    pub(crate) fn corrupt(&self, at: u64, reason: Damage) -> LogError {
        let path = self.name.clone().into();
        if let Damage::Format(format) = reason {
            return LogError::UnknownFormat { path, format, known: 1 };
        }
        LogError::Corrupt { path, offset: at, reason }
    }
}

/// Asks again and again while the servers do not answer, for as long as a question may take.
async fn retry<T>(mut ask: impl AsyncFnMut() -> Result<T, LogError>) -> Result<T, LogError> {
    let mut limit = RetryLimit::of(ASK_TIME_MAX);
    loop {
        match ask().await {
            Err(LogError::Unavailable(_)) if !limit.is_exhausted() => sleep(RETRY_DELAY).await,
            answered => return answered,
        }
    }
}

/// For how long something that fails is tried: for a time, and a few times. A process that was held still has lost the
/// time and tried nothing.
#[derive(Debug)]
struct RetryLimit {
    begun: Instant,
    time_max: Duration,
    tries_left: u32,
}

impl RetryLimit {
    fn of(time_max: Duration) -> Self {
        Self { begun: Instant::now(), time_max, tries_left: TRIES_MIN }
    }

    /// Counts something that failed, and says whether that was the last time.
    fn is_exhausted(&mut self) -> bool {
        self.tries_left = self.tries_left.saturating_sub(1);
        self.tries_left == 0 && self.begun.elapsed() >= self.time_max
    }
}

enum Failed {
    /// Somebody else has written.
    Overtaken,
    /// It is not known to be there; worth a repetition.
    NotYet(async_nats::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_a_few_times_however_long_that_takes() {
        let tries = |time_max| {
            let mut limit = RetryLimit::of(time_max);
            (1..100).find(|_| limit.is_exhausted())
        };
        assert_eq!(tries(Duration::ZERO), Some(TRIES_MIN));
        assert_eq!(tries(Duration::from_secs(3600)), None, "and as often as there is time for");
    }
}

//! One JetStream stream: fenced and deduplicated writes, ordered reads.

use std::{fmt, sync::Arc, time::Duration};

use async_nats::jetstream::{
    Context, ErrorCode,
    consumer::{
        AckPolicy, DeliverPolicy,
        pull::{Config as PullConfig, OrderedConfig},
    },
    context::{CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind},
    message::PublishMessage,
    stream::{Config, DiscardPolicy, RawMessageErrorKind, RetentionPolicy, StorageType, Stream},
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tracing::{debug, warn};

use crate::{
    error::{Damage, LogError},
    stream::part::Part,
};

/// Maximum time of a publication with all its retries: longer than the servers need to elect another leader.
const PUBLISH_TIME_MAX: Duration = Duration::from_secs(10);
/// How long one attempt waits for its acknowledgement.
pub(crate) const ACK_TIME_MAX: Duration = Duration::from_secs(2);
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum time of a request with all its retries.
const ASK_TIME_MAX: Duration = Duration::from_secs(10);
/// Minimum number of attempts, however long they take.
const TRIES_MIN: u32 = 3;
/// How long a reader waits before it replaces its consumer. One created over a lost connection never answers, and the
/// client notices after two heartbeats of 15 s. Servers send available messages within milliseconds, or within a
/// second on a busy machine; another consumer costs one request.
const QUIET_TIME_MAX: Duration = Duration::from_secs(2);
/// Maximum number of consecutive consumers that stay silent although there are messages: as long as a request may
/// take.
const SILENT_MAX: u32 = 5;
/// How long the servers recognise retries, which come much sooner. A later retry, by a process that was paused, is
/// refused by its position in the stream.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Default number of replicas: one server may fail.
const REPLICAS_USUAL: usize = 3;
/// Maximum number of unacknowledged messages.
const WINDOW_PARTS: usize = 32;
/// Number of messages read ahead.
const READ_AHEAD: usize = 16;

/// Maximum number of messages that a consumer may have delivered and that were not read: two requests of the client,
/// and [`READ_AHEAD`].
const DELIVERED_AHEAD_MAX: u64 = 512;
/// How long a reader that has not begun to read stays registered: longer than loading a checkpoint takes.
const REGISTERED_TIME_MAX: Duration = Duration::from_secs(600);

/// A message with its number in the stream.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) at: u64,
    pub(crate) part: Part,
}

/// A callback for every answer of the servers.
#[derive(Clone)]
pub(crate) struct AnswerListener(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for AnswerListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerListener")
    }
}

/// A stream and its connection.
#[derive(Debug, Clone)]
pub(crate) struct MessageStream {
    context: Context,
    stream: Stream,
    name: String,
    subject: String,
    pub(crate) on_answer: Option<AnswerListener>,
}

/// A consumer that only registers a position; it is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct RegisteredConsumer {
    runtime: Handle,
    stream: Stream,
    consumer: String,
}

impl Drop for RegisteredConsumer {
    fn drop(&mut self) {
        let (stream, consumer) = (self.stream.clone(), std::mem::take(&mut self.consumer));
        self.runtime.spawn(async move {
            if let Err(error) = stream.delete_consumer(&consumer).await {
                // The servers delete it themselves after a while.
                debug!(event = "reader.unregister_failed", %consumer, %error, "position is still registered");
            }
        });
    }
}

/// The range of messages in a stream; `last` is `first - 1` if it is empty.
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
        let stream = retry(async || match context.get_stream(&name).await {
            Err(error)
                if matches!(error.kind(), GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NOT_FOUND) =>
            {
                Err(LogError::Missing { name: name.clone() })
            }
            found => found.map_err(unavailable),
        });
        let stream = stream.await?;
        Ok(Self { context: context.clone(), stream, name, subject, on_answer: None })
    }

    /// Finds the stream, or creates it.
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
            // A message that does not fit is refused; no acknowledged message is dropped for it.
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: replicas.unwrap_or(REPLICAS_USUAL),
            duplicate_window: DUPLICATE_WINDOW,
            deny_delete: true,
            ..Config::default()
        };
        let stream = retry(async || match context.get_or_create_stream(config.clone()).await {
            // Not "too few are up": this server reports that there are no others.
            Err(error)
                if replicas.is_none()
                    && matches!(error.kind(), CreateStreamErrorKind::JetStream(error)
                        if error.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED) =>
            {
                warn!(event = "log.not_replicated", stream = %config.name, "a single NATS server: the log is not replicated");
                config.num_replicas = 1;
                context.get_or_create_stream(config.clone()).await.map_err(unavailable)
            }
            created => created.map_err(unavailable),
        });
        let stream = stream.await?;
        Ok(Self { context: context.clone(), stream, name, subject, on_answer: None })
    }

    /// Reports an answer of the servers. A long operation reports many, so that a loss of the servers is noticed as
    /// soon as in a short one.
    fn tell(&self) {
        if let Some(AnswerListener(on_answer)) = &self.on_answer {
            on_answer();
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The range of messages in the stream, as its leader reports it.
    pub(crate) async fn extent(&self) -> Result<Extent, LogError> {
        retry(|| self.extent_now()).await
    }

    /// As [`Self::extent`], without retries.
    pub(crate) async fn extent_now(&self) -> Result<Extent, LogError> {
        let info = self.stream.get_info().await;
        let state = info.map_err(unavailable)?.state;
        self.tell();
        Ok(Extent {
            first: state.first_sequence.max(1),
            last: state.last_sequence,
            bytes: state.bytes,
        })
    }

    /// Reads one message.
    pub(crate) async fn get(&self, at: u64) -> Result<Numbered, LogError> {
        retry(|| self.get_now(at)).await
    }

    /// As [`Self::get`], without retries.
    pub(crate) async fn get_now(&self, at: u64) -> Result<Numbered, LogError> {
        let found = self.find_now(at).await?;
        found.ok_or_else(|| LogError::Unavailable("there is no such message".into()))
    }

    /// As [`Self::get_now`], for a message that may not exist.
    pub(crate) async fn find_now(&self, at: u64) -> Result<Option<Numbered>, LogError> {
        let message = match self.stream.get_raw_message(at).await {
            Ok(message) => message,
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(None),
            Err(error) => return Err(unavailable(error)),
        };
        self.tell();
        self.decode(at, &message.payload).map(Some)
    }

    /// Publishes messages in order, directly after message `last`, each once; returns the number of the last.
    ///
    /// `id` names them, so that the servers recognise a retry whose first attempt arrived.
    pub(crate) async fn publish(
        &self,
        id: &str,
        messages: &[Bytes],
        mut last: u64,
    ) -> Result<u64, LogError> {
        for (window, some) in messages.chunks(WINDOW_PARTS).enumerate() {
            let id = format!("{id}-{window}");
            last = retry_for(PUBLISH_TIME_MAX, || self.attempt(&id, some, last)).await?;
        }
        Ok(last)
    }

    async fn attempt(&self, id: &str, messages: &[Bytes], last: u64) -> Result<u64, LogError> {
        let mut acknowledgements = Vec::with_capacity(messages.len());
        for (expected, (n, message)) in (last..).zip(messages.iter().enumerate()) {
            let message = PublishMessage::build()
                .payload(message.clone())
                .message_id(format!("{id}-{n}"))
                .expected_stream(&self.name)
                .expected_last_sequence(expected);
            let sent = self.context.send_publish(self.subject.clone(), message).await;
            acknowledgements.push((expected, sent.map_err(unavailable)?));
        }
        let mut published = last;
        // In order: after a message that did not arrive all others are refused, which says nothing about the fence.
        for (expected, acknowledged) in acknowledgements {
            match acknowledged.await {
                Ok(acknowledged) if acknowledged.sequence == expected + 1 => {
                    published = acknowledged.sequence;
                    self.tell();
                }
                Err(error) if error.kind() != PublishErrorKind::WrongLastSequence => {
                    return Err(unavailable(error));
                }
                Ok(_) | Err(_) => return Err(LogError::Overtaken),
            }
        }
        Ok(published)
    }

    /// Deletes all messages before one.
    pub(crate) async fn purge_before(&self, at: u64) -> Result<(), LogError> {
        // No message precedes the first, and servers (observed with 2.9) treat "before 1" as "everything".
        if at <= 1 {
            return Ok(());
        }
        let purged = timeout(ASK_TIME_MAX, async { self.stream.purge().sequence(at).await }).await;
        purged.map_err(unavailable)?.map_err(unavailable)?;
        self.tell();
        Ok(())
    }

    /// Registers a reader that starts with a message.
    pub(crate) async fn register(&self, from: u64) -> Result<RegisteredConsumer, LogError> {
        let config = PullConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            inactive_threshold: REGISTERED_TIME_MAX,
            memory_storage: true,
            ..PullConfig::default()
        };
        let consumer = retry(async || {
            let created = self.stream.create_consumer(config.clone()).await;
            created.map_err(unavailable)
        });
        let consumer = consumer.await?.cached_info().name.clone();
        Ok(RegisteredConsumer { runtime: Handle::current(), stream: self.stream.clone(), consumer })
    }

    /// The first message that any reader on any node may still need.
    pub(crate) async fn lowest_position(&self) -> Result<Option<u64>, LogError> {
        let mut consumers = self.stream.consumers();
        let mut lowest = None;
        while let Some(consumer) = consumers.next().await {
            let consumer = consumer.map_err(unavailable)?;
            let delivered = consumer.delivered.stream_sequence;
            // Delivered messages are requested again if the connection is lost before they were read.
            let position = (delivered + 1).saturating_sub(DELIVERED_AHEAD_MAX);
            lowest = Some(lowest.map_or(position, |lowest: u64| lowest.min(position)));
        }
        self.tell();
        Ok(lowest)
    }

    /// Reads messages from a given one on, up to another or indefinitely, into a channel that ends after an error.
    pub(crate) fn read(
        &self,
        from: u64,
        to: Option<u64>,
    ) -> mpsc::Receiver<Result<Numbered, LogError>> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let stream = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                // The reader may stop at any time; a waiting consumer must not outlive it.
                () = sender.closed() => {}
                read = stream.pump(from, to, &sender) => {
                    if let Err(error) = read && sender.send(Err(error)).await.is_err() {
                        debug!(event = "reader.gone", "a reader of the log is gone");
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
                // There is nothing to send, or this cannot be determined.
                Err(_) if to.is_none() && !self.reaches(next).await => continue,
                Err(elapsed) if silent >= SILENT_MAX => {
                    return Err(unavailable(elapsed));
                }
                Err(_) => {
                    silent += 1;
                    messages = self.consume(next).await?;
                    continue;
                }
                Ok(_) => {
                    // The consumer disappeared with its server; another one continues from here.
                    messages = self.consume(next).await?;
                    continue;
                }
            };
            silent = 0;
            let at = message.info().map_err(LogError::Unavailable)?.stream_sequence;
            if at != next {
                return Err(LogError::CannotCatchUp { path: self.name.clone().into() });
            }
            next = at + 1;
            let numbered = self.decode(at, &message.payload)?;
            if sender.send(Ok(numbered)).await.is_err() || to == Some(at) {
                return Ok(());
            }
        }
    }

    /// Whether a message is known to exist.
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
        // Not `retry`: the compiler does not see that its future is `Send`.
        loop {
            let created = async {
                let consumer = self.stream.create_consumer(config.clone()).await;
                consumer.map_err(unavailable)?.messages().await.map_err(unavailable)
            };
            match created.await {
                Err(_) if !limit.is_exhausted() => sleep(RETRY_DELAY).await,
                created => return created,
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

/// Retries a request while the servers do not answer, for as long as a request may take.
async fn retry<T>(ask: impl AsyncFnMut() -> Result<T, LogError>) -> Result<T, LogError> {
    retry_for(ASK_TIME_MAX, ask).await
}

async fn retry_for<T>(
    time_max: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, LogError>,
) -> Result<T, LogError> {
    let mut limit = RetryLimit::of(time_max);
    loop {
        match ask().await {
            Err(LogError::Unavailable(_)) if !limit.is_exhausted() => sleep(RETRY_DELAY).await,
            answered => return answered,
        }
    }
}

fn unavailable(error: impl Into<async_nats::Error>) -> LogError {
    LogError::Unavailable(error.into())
}

/// How long a failing request is retried: for a time, and at least a few times. A process that was paused has used up
/// the time without trying.
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

    /// Counts a failure; `true` if no attempt is left.
    fn is_exhausted(&mut self) -> bool {
        self.tries_left = self.tries_left.saturating_sub(1);
        self.tries_left == 0 && self.begun.elapsed() >= self.time_max
    }
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

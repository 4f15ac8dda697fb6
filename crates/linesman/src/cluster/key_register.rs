//! The register of key changes on JetStream: the greatest announced number, stored on a majority of the servers.
//!
//! A read alone proves nothing: a server that was cut off or paused may still believe that it is the leader, and
//! return old data. So each register is a stream in which every message holds the greatest number so far and the
//! position of its predecessor. To confirm that a number is still the greatest, a node writes it again after the
//! message that it read; acceptance by a majority is the proof.
//!
//! A register accepts one write at a time, so there are several: a node asks one, while a change is announced to all.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use accounts::{
    Authorities, Cluster, MonotonicClock, Need, RegisterError, RegisterFuture, RevocationRegister,
};
use async_nats::{
    Client, ConnectOptions, ServerAddr,
    jetstream::{
        Context, ErrorCode,
        context::{ContextBuilder, CreateStreamErrorKind, PublishErrorKind},
        message::PublishMessage,
        stream::{Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream},
    },
};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use store::Store;
use tokio::{
    sync::{Notify, OnceCell},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// Number of registers. Each accepts a few hundred writes a second; a thousand nodes ask every few seconds, and only
/// while the database is unreachable.
const REGISTERS: usize = 4;
/// Subject of hints, which are not stored: they only wake nodes.
const HINT_SUBJECT: &str = "linesman.keys.news";
/// How long the servers may take for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a node waits for a confirmation; it asks again anyway.
const CONFIRM_TIME_MAX: Duration = Duration::from_secs(2);
/// How long an announcement is retried: longer than the servers need to elect a leader.
const ANNOUNCE_TIME_MAX: Duration = Duration::from_secs(8);
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Number of replicas of a register, unless configured.
const REPLICAS_USUAL: usize = 3;
/// Only the last message counts; the others are for diagnosis.
const KEPT_MESSAGES: i64 = 64;

/// Prepares the input of [`accounts::Accounts::load_node`]; the node then runs [`accounts::Accounts::follow`].
pub(crate) async fn open_cluster(
    nats_url: &str,
    replicas: Option<usize>,
    lease: Duration,
) -> anyhow::Result<Cluster> {
    let register = Arc::new(KeyRegister::open(nats_url, replicas).await?);
    Ok(Cluster { register, steady: Arc::new(MonotonicClock::default()), lease })
}

/// Waits until a change that a command line stored is effective on every node.
pub(crate) async fn confirm_everywhere(
    store: Store,
    among: Cluster,
    need: Need,
) -> anyhow::Result<()> {
    let Cluster { register, steady, lease } = among;
    Ok(Authorities { store, register, steady, lease }.confirm(need).await?)
}

/// A message of a register.
#[derive(Debug, Serialize, Deserialize)]
struct RegisterEntry {
    number: i64,
}

/// A client of all registers.
#[derive(Debug)]
pub(crate) struct KeyRegister {
    client: Client,
    registers: [Register; REGISTERS],
    /// The register that this process asks.
    own: usize,
    hint: Arc<Notify>,
    listening: JoinHandle<()>,
}

impl KeyRegister {
    /// Connects to the servers (`nats://host:port`, separated by commas) in the background.
    pub(crate) async fn open(nats_url: &str, replicas: Option<usize>) -> anyhow::Result<Self> {
        let addresses = nats_url
            .split(',')
            .map(|address| address.trim().parse())
            .collect::<Result<Vec<ServerAddr>, _>>()?;
        let client = change_log::with_login(ConnectOptions::new(), &addresses)
            .name("linesman keys")
            .connection_timeout(CONFIRM_TIME_MAX)
            .retry_on_initial_connect()
            .connect(addresses)
            .await?;
        let context = ContextBuilder::new()
            .timeout(ANSWER_TIME_MAX)
            .ack_timeout(ANSWER_TIME_MAX)
            .build(client.clone());
        let hint = Arc::new(Notify::new());
        let listening = tokio::spawn(listen(client.clone(), Arc::clone(&hint)));
        let registers = std::array::from_fn(|n| Register::new(context.clone(), n, replicas));
        // Random, to spread processes over the registers.
        let own = rand::random_range(0..REGISTERS);
        Ok(Self { client, registers, own, hint, listening })
    }

    async fn raise_all(&self, number: i64) -> Result<i64, RegisterError> {
        let [one, two, three, four] = &self.registers;
        let raised = tokio::try_join!(
            one.raise(number),
            two.raise(number),
            three.raise(number),
            four.raise(number)
        )?;
        let raised = <[Raised; REGISTERS]>::from(raised);
        // A number that was known already wakes no node.
        if raised.iter().any(|raised| raised.is_new) {
            self.wake().await;
        }
        Ok(raised.iter().map(|raised| raised.greatest).max().unwrap_or(number))
    }

    async fn wake(&self) {
        if let Err(error) = self.client.publish(HINT_SUBJECT, bytes::Bytes::new()).await {
            tracing::debug!(event = "keys.hint_failed", %error, "nodes see the change a second later");
        }
    }
}

impl RevocationRegister for KeyRegister {
    fn announce(&self, number: i64) -> RegisterFuture<'_, Result<i64, RegisterError>> {
        let raised = Box::pin(self.raise_all(number));
        Box::pin(async move { timeout(ANNOUNCE_TIME_MAX, raised).await? })
    }

    fn known(&self) -> RegisterFuture<'_, Result<Option<i64>, RegisterError>> {
        Box::pin(async move {
            let register = self.registers.get(self.own).ok_or("there is no such register")?;
            Ok(timeout(ANSWER_TIME_MAX, register.last()).await??.number)
        })
    }

    fn hint(&self) -> RegisterFuture<'_, ()> {
        Box::pin(self.wake())
    }

    fn confirm(&self, held: i64) -> RegisterFuture<'_, Result<i64, RegisterError>> {
        Box::pin(async move {
            let register = self.registers.get(self.own).ok_or("there is no such register")?;
            timeout(CONFIRM_TIME_MAX, register.confirm(held)).await?
        })
    }

    fn wait_for_hint(&self) -> RegisterFuture<'_, ()> {
        Box::pin(self.hint.notified())
    }
}

impl Drop for KeyRegister {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Notifies waiting tasks of each hint. A node that misses a hint asks a second later anyway.
async fn listen(client: Client, hint: Arc<Notify>) {
    loop {
        if let Ok(mut hints) = client.subscribe(HINT_SUBJECT).await {
            while hints.next().await.is_some() {
                hint.notify_one();
            }
        }
        sleep(ANSWER_TIME_MAX).await;
    }
}

/// A stream of numbers that never decrease.
#[derive(Debug)]
struct Register {
    context: Context,
    name: String,
    subject: String,
    /// `None`: three, or one if there is a single server.
    replicas: Option<usize>,
    stream: OnceCell<Stream>,
    /// The greatest number seen in it.
    greatest: AtomicI64,
}

/// The last message: its sequence number, and its content if it has one.
#[derive(Debug)]
struct Last {
    at: u64,
    number: Option<i64>,
}

/// The result of an announcement at one register.
#[derive(Debug)]
struct Raised {
    greatest: i64,
    is_new: bool,
}

#[derive(Debug)]
enum Put {
    Done,
    /// Another process wrote first.
    Overtaken,
}

impl Register {
    fn new(context: Context, n: usize, replicas: Option<usize>) -> Self {
        Self {
            context,
            name: format!("linesman-keys-{n}"),
            subject: format!("linesman.keys.register.{n}"),
            replicas,
            stream: OnceCell::new(),
            greatest: AtomicI64::new(i64::MIN),
        }
    }

    /// Writes the number if it is greater; retries until that succeeds.
    async fn raise(&self, number: i64) -> Result<Raised, RegisterError> {
        loop {
            match self.try_raise(number).await {
                Ok(Some(raised)) => return Ok(raised),
                Ok(None) => {}
                // The caller limits the total time.
                Err(error) => {
                    tracing::debug!(
                        event = "keys.announce_retried",
                        error = &*error,
                        register = self.name,
                        "not announced yet"
                    );
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn try_raise(&self, number: i64) -> Result<Option<Raised>, RegisterError> {
        let last = self.last().await?;
        // Numbers only grow: a number that was read remains valid, however old the read.
        if let Some(greatest) = last.number.filter(|held| *held >= number) {
            return Ok(Some(Raised { greatest, is_new: false }));
        }
        Ok(match self.put(number, last.at).await? {
            Put::Done => Some(Raised { greatest: number, is_new: true }),
            Put::Overtaken => None,
        })
    }

    /// The current greatest number, confirmed by a majority of the servers.
    async fn confirm(&self, held: i64) -> Result<i64, RegisterError> {
        loop {
            let last = self.last().await?;
            let Some(number) = last.number else {
                return Err("nothing was ever announced".into());
            };
            if number < self.greatest.fetch_max(number, Ordering::SeqCst) {
                // A stale read, or servers that lost data: neither confirms anything.
                return Err("the register holds less than was announced".into());
            }
            if number > held {
                return Ok(number);
            }
            if let Put::Done = self.put(held, last.at).await? {
                return Ok(held);
            }
        }
    }

    /// The last message that a server returns; it may be outdated.
    async fn last(&self) -> Result<Last, RegisterError> {
        let stream = self.stream().await?;
        match stream.get_last_raw_message_by_subject(&self.subject).await {
            Ok(message) => {
                let entry: RegisterEntry = serde_json::from_slice(&message.payload)?;
                Ok(Last { at: message.sequence, number: Some(entry.number) })
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                let at = stream.get_info().await?.state.last_sequence;
                Ok(Last { at, number: None })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a number directly after a message.
    async fn put(&self, number: i64, after: u64) -> Result<Put, RegisterError> {
        let message = PublishMessage::build()
            .payload(serde_json::to_vec(&RegisterEntry { number })?.into())
            .expected_stream(&self.name)
            .expected_last_sequence(after);
        let sent = self.context.send_publish(self.subject.clone(), message).await?;
        match sent.await {
            Ok(_) => {
                self.greatest.fetch_max(number, Ordering::SeqCst);
                Ok(Put::Done)
            }
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(Put::Overtaken),
            Err(error) => Err(error.into()),
        }
    }

    async fn stream(&self) -> Result<&Stream, RegisterError> {
        let made = || async {
            let mut config = Config {
                name: self.name.clone(),
                subjects: vec![self.subject.clone()],
                max_messages: KEPT_MESSAGES,
                discard: DiscardPolicy::Old,
                storage: StorageType::File,
                num_replicas: self.replicas.unwrap_or(REPLICAS_USUAL),
                deny_delete: true,
                deny_purge: true,
                ..Config::default()
            };
            match self.context.get_or_create_stream(config.clone()).await {
                // Not "too few are up": this server has no peers.
                Err(error)
                    if self.replicas.is_none()
                        && matches!(error.kind(), CreateStreamErrorKind::JetStream(error)
                            if error.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED) =>
                {
                    config.num_replicas = 1;
                    Ok::<_, RegisterError>(self.context.get_or_create_stream(config).await?)
                }
                made => Ok(made?),
            }
        };
        self.stream.get_or_try_init(made).await
    }
}

#[cfg(test)]
mod tests;

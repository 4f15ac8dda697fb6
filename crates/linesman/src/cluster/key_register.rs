//! The herald of key changes on JetStream: the greatest number that was announced, kept by a majority of the servers.
//!
//! A reading alone proves nothing: a server that was cut off or stopped may still take itself for the leader and tell
//! what it last knew. So nothing is believed that was only read. Each register is a stream whose every message holds
//! the greatest number so far and names the message that it comes after. Who wants to know whether a number is still
//! the greatest writes it again, right behind the message that it read; that a majority took it there is the answer.
//!
//! A register takes one such entry at a time, so there are a few of them: a node asks one, a change is told to all.

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

/// Each takes a few hundred words a second; a thousand nodes ask every few seconds, and only while the database is
/// away.
const REGISTERS: usize = 4;
/// Not kept by anybody: it only wakes nodes up.
const HINT_SUBJECT: &str = "linesman.keys.news";
/// How long the servers have for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a node waits for the right to let keys in; it is asked for again anyway.
const CONFIRM_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a change is tried to be announced: longer than the servers need to elect another leader.
const ANNOUNCE_TIME_MAX: Duration = Duration::from_secs(8);
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// On how many servers a number lies, unless the operator says otherwise.
const REPLICAS_USUAL: usize = 3;
/// The last message is all that counts; the others are for people who look.
const KEPT_MESSAGES: i64 = 64;

/// What a node needs for [`accounts::Accounts::load_node`]; the node then runs [`accounts::Accounts::follow`].
pub(crate) async fn open_cluster(
    nats_url: &str,
    replicas: Option<usize>,
    lease: Duration,
) -> anyhow::Result<Cluster> {
    let register = Arc::new(KeyRegister::open(nats_url, replicas).await?);
    Ok(Cluster { register, steady: Arc::new(MonotonicClock::default()), lease })
}

/// Waits until what a command line has written to the store is in force on every node.
pub(crate) async fn confirm_everywhere(
    store: Store,
    among: Cluster,
    need: Need,
) -> anyhow::Result<()> {
    let Cluster { register, steady, lease } = among;
    Ok(Authorities { store, register, steady, lease }.confirm(need).await?)
}

/// What a message of a register says.
#[derive(Debug, Serialize, Deserialize)]
struct RegisterEntry {
    number: i64,
}

/// The herald as one process reaches it.
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
    /// Gets ready to reach the servers (`nats://host:port`, with commas between), whether they answer yet or not.
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
        // Any will do; different ones for different processes.
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
        // Nodes that tell what everybody knows wake nobody up.
        if raised.iter().any(|raised| raised.is_new) {
            self.wake().await;
        }
        Ok(raised.iter().map(|raised| raised.greatest).max().unwrap_or(number))
    }

    async fn wake(&self) {
        if let Err(error) = self.client.publish(HINT_SUBJECT, bytes::Bytes::new()).await {
            tracing::debug!(%error, "nodes hear of a change of keys a second later");
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

/// Tells whenever somebody says that there are register. Whoever misses it asks a second later anyway.
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

/// One stream that only ever holds greater numbers.
#[derive(Debug)]
struct Register {
    context: Context,
    name: String,
    subject: String,
    /// `None`: three, or one where there is a single server.
    replicas: Option<usize>,
    stream: OnceCell<Stream>,
    /// The greatest number that was ever seen in it.
    greatest: AtomicI64,
}

/// The last message: its place, and its number where there is one.
#[derive(Debug)]
struct Last {
    at: u64,
    number: Option<i64>,
}

/// What a register holds once a number was made known.
#[derive(Debug)]
struct Raised {
    greatest: i64,
    is_new: bool,
}

#[derive(Debug)]
enum Put {
    Done,
    /// Somebody else was quicker.
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

    /// Makes the number known where it is greater, for as long as it takes.
    async fn raise(&self, number: i64) -> Result<Raised, RegisterError> {
        loop {
            match self.try_raise(number).await {
                Ok(Some(raised)) => return Ok(raised),
                Ok(None) => {}
                // The caller has a bound on the whole.
                Err(error) => {
                    tracing::debug!(error = &*error, register = self.name, "not announced yet");
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn try_raise(&self, number: i64) -> Result<Option<Raised>, RegisterError> {
        let last = self.last().await?;
        // Numbers in here only grow: one that was read is there for ever, however old the reading.
        if let Some(greatest) = last.number.filter(|held| *held >= number) {
            return Ok(Some(Raised { greatest, is_new: false }));
        }
        Ok(match self.put(number, last.at).await? {
            Put::Done => Some(Raised { greatest: number, is_new: true }),
            Put::Overtaken => None,
        })
    }

    /// The greatest number by now, as a majority of the servers has it.
    async fn confirm(&self, held: i64) -> Result<i64, RegisterError> {
        loop {
            let last = self.last().await?;
            let Some(number) = last.number else {
                return Err("nothing was ever announced".into());
            };
            if number < self.greatest.fetch_max(number, Ordering::SeqCst) {
                // An old reading, or servers that lost what they had: neither can vouch.
                return Err("less is known than was announced".into());
            }
            if number > held {
                return Ok(number);
            }
            if let Put::Done = self.put(held, last.at).await? {
                return Ok(held);
            }
        }
    }

    /// The last message that a server knows of, which may be too few.
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

    /// Writes a number right behind a message.
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
                // Not "too few are up": this server says that it has no others.
                Err(error)
                    if self.replicas.is_none()
                        && matches!(error.kind(), CreateStreamErrorKind::JetStream(told)
                            if told.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED) =>
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

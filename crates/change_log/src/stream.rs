//! The change log on NATS JetStream: the same entries and numbers as in files, replicated by the servers.
//!
//! A batch is one run of frames, split into messages ([`part`]). Every message names its expected predecessor, so
//! that one of two writers is refused and has to reopen the log. Every message has an id, so that a retry after a
//! lost acknowledgement does not add a second message. Entries have their own numbers; the stream's numbers count
//! messages.
//!
//! Checkpoints are runs in another stream. Calls block until the servers answer or time out: call them on a dedicated
//! thread, never in a task.

mod checkpoints;
mod connection;
mod message_stream;
mod part;
mod reader;
mod request;
mod retention;

use std::{
    collections::hash_map::RandomState, hash::BuildHasher as _, ops::RangeInclusive, sync::Arc,
};

use async_nats::{ConnectOptions, jetstream::context::ContextBuilder};
use tokio::runtime::Handle;
use tracing::warn;

use crate::{
    checkpoint::Checkpoint,
    error::LogError,
    frame::encode_batch,
    reader::{Entry, checksum},
    stream::{
        checkpoints::Checkpoints,
        connection::connect,
        message_stream::{ACK_TIME_MAX, AnswerListener, MessageStream},
        part::{PART_HEAD_BYTES, RUN_BYTES_MAX, RunHead},
    },
};

pub use crate::stream::{
    connection::{check_addresses, with_login},
    reader::{Follower, StreamReader},
    request::{LeaderClient, LeaderServer, NoAnswer, Request},
};

/// Size of a message's body. Servers accept a mebibyte by default.
const PART_BYTES: usize = 512 * 1024;
/// Bytes of a message besides its body: our head, and the names and numbers sent with it.
const OVERHEAD_BYTES: usize = PART_HEAD_BYTES + 1024;

/// The location of a log on servers.
#[derive(Debug, Clone)]
pub struct StreamLocation {
    /// Addresses of the servers, separated by commas: `nats://host:port`.
    pub url: String,
    /// The log's name, of letters, digits, `_` and `-`.
    pub name: String,
    /// Number of servers that store everything before it is acknowledged, if this call creates the log. `None`:
    /// three, or one if there is only a single server.
    pub replicas: Option<usize>,
    /// Maximum payload of one entry.
    pub entry_bytes_max: u32,
}

/// An open log. It has one owner; a second one is detected by writing.
#[derive(Debug)]
pub struct StreamLog {
    runtime: Handle,
    stream: MessageStream,
    checkpoints: Checkpoints,
    part_bytes: usize,
    entry_bytes_max: u32,
    writer: u64,
    /// Number of batches written; names the next one.
    batches: u64,
    first_seq: u64,
    last_seq: u64,
    /// Checksum of the last entry, if it was written or read here.
    last_checksum: Option<u32>,
    /// Number of the last message in the stream, as far as known.
    last_message: u64,
    bytes: u64,
    health: Health,
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// The last number assigned.
    pub last_seq: u64,
    /// Another writer has written since this log was opened or refreshed.
    pub overtaken: bool,
}

/// Whether to create a log that the servers do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Create,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    /// Uncounted data may have been written.
    Unknown,
}

impl StreamLog {
    /// Connects, and creates the log if it does not exist.
    ///
    /// # Errors
    /// The servers do not answer, or a newer program wrote the log.
    pub fn open(runtime: &Handle, location: &StreamLocation) -> Result<Self, LogError> {
        runtime.block_on(Self::connect(runtime, location, Absent::Create))
    }

    /// As [`Self::open`], for a log that exists. A log that existed before must not be created again: the empty log
    /// would pass for the complete one.
    ///
    /// # Errors
    /// The servers have no such log, do not answer, or a newer program wrote it.
    pub fn find(runtime: &Handle, location: &StreamLocation) -> Result<Self, LogError> {
        runtime.block_on(Self::connect(runtime, location, Absent::Fail))
    }

    async fn connect(
        runtime: &Handle,
        location: &StreamLocation,
        absent: Absent,
    ) -> Result<Self, LogError> {
        let client = connect(location, ConnectOptions::new()).await?;
        let allowed = client.server_info().max_payload.saturating_sub(OVERHEAD_BYTES);
        let part_bytes = PART_BYTES.min(allowed).max(1);
        let context =
            ContextBuilder::new().timeout(ACK_TIME_MAX).ack_timeout(ACK_TIME_MAX).build(client);
        let StreamLocation { name, replicas, .. } = location;
        let open = async |name: String, subject: String| match absent {
            Absent::Create => {
                MessageStream::find_or_create(&context, name, subject, *replicas).await
            }
            Absent::Fail => MessageStream::find(&context, name, subject).await,
        };
        let stream = open(format!("linesman-{name}"), format!("linesman.{name}.log")).await?;
        let checkpoints =
            (format!("linesman-{name}-checkpoint"), format!("linesman.{name}.checkpoint"));
        let checkpoints = open(checkpoints.0, checkpoints.1).await?;
        let mut log = Self {
            runtime: runtime.clone(),
            stream,
            checkpoints: Checkpoints::open(checkpoints).await?,
            part_bytes,
            entry_bytes_max: location.entry_bytes_max,
            // It need not be secret, only different for each writer.
            writer: RandomState::new().hash_one(name),
            batches: 0,
            first_seq: 1,
            last_seq: 0,
            last_checksum: None,
            last_message: 0,
            bytes: 0,
            health: Health::Good,
        };
        log.look().await?;
        Ok(log)
    }

    /// Calls `on_answer` for every later answer of the servers. A checkpoint takes many answers.
    pub fn on_answer(&mut self, on_answer: impl Fn() + Send + Sync + 'static) {
        let on_answer = AnswerListener(Arc::new(on_answer));
        self.checkpoints.set_on_answer(on_answer.clone());
        self.stream.on_answer = Some(on_answer);
    }

    /// Reads the end of the log again: after a failure, or if another writer may have written.
    ///
    /// # Errors
    /// The servers do not answer, or a newer program has written meanwhile.
    pub fn refresh(&mut self) -> Result<(), LogError> {
        self.runtime.clone().block_on(async {
            self.look().await?;
            self.checkpoints.look().await
        })
    }

    async fn look(&mut self) -> Result<(), LogError> {
        let extent = self.stream.extent().await?;
        (self.last_message, self.bytes) = (extent.last, extent.bytes);
        // The last complete batch may be followed by parts of an abandoned one.
        let mut at = extent.last;
        let written = (self.last_seq, self.last_checksum.take());
        self.last_seq = 0;
        while at >= extent.first {
            let found = self.stream.get(at).await?.part;
            if found.is_last() {
                self.last_seq = found.head.last;
                break;
            }
            at = at.saturating_sub(u64::from(found.part) + 1);
        }
        // If the end is unchanged, the entry written here should be the last one.
        self.last_checksum = written.1.filter(|_| written.0 == self.last_seq);
        self.first_seq = if extent.first <= extent.last && self.last_seq > 0 {
            self.stream.get(extent.first).await?.part.head.first
        } else {
            self.last_seq + 1
        };
        self.health = Health::Good;
        Ok(())
    }

    /// Appends a batch, completely or not at all, and returns the numbers of its entries once the servers have it.
    ///
    /// # Errors
    /// An entry or the batch is too large, another writer has written, or the servers do not answer: then it is
    /// unknown whether the batch is in the log, and the end of the log has to be read again ([`Self::refresh`])
    /// first.
    pub fn append<'a>(
        &mut self,
        at_ms: i64,
        entries: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<RangeInclusive<u64>, LogError> {
        let first = self.last_seq + 1;
        let mut newest = None;
        let entries = entries.into_iter().inspect(|entry| newest = Some(*entry));
        self.append_at(entries.map(|(version, payload)| (at_ms, version, payload)), at_ms)?;
        if let Some((version, payload)) = newest {
            self.last_checksum = Some(checksum(at_ms, version, payload));
        }
        Ok(first..=self.last_seq)
    }

    /// Appends entries with their own times in one batch, which has the time `tag`.
    fn append_at<'a>(
        &mut self,
        entries: impl IntoIterator<Item = (i64, u8, &'a [u8])>,
        tag: i64,
    ) -> Result<(), LogError> {
        let mut run = Vec::new();
        let first = self.last_seq + 1;
        let last = encode_batch(&mut run, self.last_seq, self.entry_bytes_max, entries)?;
        if run.len() > RUN_BYTES_MAX {
            let (bytes, bytes_max) = (run.len() as u64, RUN_BYTES_MAX as u64);
            return Err(LogError::TooLarge { bytes, bytes_max });
        }
        if last < first {
            return self.check_health();
        }
        self.publish(RunHead { writer: self.writer, first, last, tag }, &run)
    }

    fn check_health(&self) -> Result<(), LogError> {
        if self.health == Health::Unknown { Err(LogError::Poisoned) } else { Ok(()) }
    }

    /// Lets the numbers of an empty log start after `seq`, to continue another log.
    ///
    /// # Errors
    /// The log is not empty.
    pub fn begin_after(&mut self, seq: u64) -> Result<(), LogError> {
        // Parts of an abandoned batch do not count.
        if self.last_seq > 0 {
            return Err(LogError::Overtaken);
        }
        (self.first_seq, self.last_seq) = (seq + 1, seq);
        Ok(())
    }

    /// Appends entries of another log in one batch, with their original times and versions. They are renumbered.
    ///
    /// # Errors
    /// As for [`Self::append`].
    pub fn copy(&mut self, entries: &[Entry]) -> Result<(), LogError> {
        let tag = entries.last().map_or(0, |last| last.at_ms);
        let entries = entries.iter().map(|entry| (entry.at_ms, entry.version, &*entry.payload));
        self.append_at(entries, tag)?;
        self.last_checksum = None;
        Ok(())
    }

    /// Makes sure that no other writer has written, by writing an empty batch: from then on, a writer that has not
    /// read it is refused. Uses no number.
    ///
    /// # Errors
    /// As for [`Self::append`].
    pub fn fence(&mut self, at_ms: i64) -> Result<(), LogError> {
        let (first, last) = (self.last_seq + 1, self.last_seq);
        self.publish(RunHead { writer: self.writer, first, last, tag: at_ms }, &[])
    }

    fn publish(&mut self, head: RunHead, run: &[u8]) -> Result<(), LogError> {
        self.check_health()?;
        let messages = part::cut(head, run, self.part_bytes);
        self.batches += 1;
        let id = format!("{:016x}-{}", self.writer, self.batches);
        self.health = Health::Unknown;
        let published = self.stream.publish(&id, &messages, self.last_message);
        self.last_message = self.runtime.block_on(published)?;
        self.health = Health::Good;
        self.last_seq = head.last;
        self.bytes += run.len() as u64;
        Ok(())
    }

    /// The current end of the log, whichever node wrote it. Asks once, without retries.
    ///
    /// # Errors
    /// The servers do not answer at once.
    pub fn tip(&self) -> Result<Tip, LogError> {
        self.runtime.block_on(async {
            let extent = self.stream.extent_now().await?;
            if extent.last == self.last_message {
                return Ok(Tip { last_seq: self.last_seq, overtaken: false });
            }
            let last_seq = match extent.last >= extent.first {
                true => self.stream.get_now(extent.last).await?.part.reaches(),
                false => 0,
            };
            Ok(Tip { last_seq, overtaken: true })
        })
    }

    /// Reads from entry `seq` on, up to the last entry at the time of the call.
    ///
    /// # Errors
    /// Retention has deleted that entry, or the servers do not answer.
    pub fn read_from(&self, seq: u64) -> Result<StreamReader, LogError> {
        let seq = seq.max(1);
        let (from, to) = self.runtime.block_on(self.locate(seq))?;
        Ok(StreamReader::new(&self.runtime, &self.stream, seq, from..=to))
    }

    /// Reads from entry `seq` on, including entries that any writer adds later.
    ///
    /// # Errors
    /// Retention has deleted that entry, or the servers do not answer.
    pub fn follow_from(&self, seq: u64) -> Result<Follower, LogError> {
        let seq = seq.max(1);
        let (from, _) = self.runtime.block_on(self.locate(seq))?;
        Ok(Follower::new(&self.runtime, &self.stream, seq, from))
    }

    /// The message at which reading of entry `seq` starts, and the last message.
    async fn locate(&self, seq: u64) -> Result<(u64, u64), LogError> {
        let extent = self.stream.extent().await?;
        if extent.first > extent.last {
            return Ok((extent.first, extent.last));
        }
        let oldest = self.stream.get(extent.first).await?.part.head.first;
        if seq < oldest {
            return Err(LogError::NotKept { seq, follows: oldest - 1 });
        }
        // Parts of abandoned batches have numbers that are assigned again; the order is still correct.
        let found = self.last_where(extent.first, extent.last, |head| head.first <= seq).await?;
        Ok((found.unwrap_or(extent.first), extent.last))
    }

    /// Writes the owner's state after entry `seq`, and keeps the newest two checkpoints.
    ///
    /// # Errors
    /// `seq` is beyond the log or before the newest checkpoint, another writer wrote one meanwhile, or the servers do
    /// not answer.
    pub fn write_checkpoint(
        &mut self,
        seq: u64,
        version: u8,
        payload: &[u8],
    ) -> Result<(), LogError> {
        let (newest, last) = (self.checkpoints.newest(), self.last_seq);
        if seq < newest || seq > last {
            return Err(LogError::CheckpointOutOfRange { seq, newest, last });
        }
        // The entry after the checkpoint, if known, shows later whether the log is still the one of this checkpoint.
        let next_checksum = self.last_checksum.filter(|_| seq.checked_add(1) == Some(last));
        let tag = next_checksum.map_or(0, |checksum| i64::from(checksum) + 1);
        let head = RunHead { writer: self.writer, first: seq, last: seq, tag };
        let runtime = self.runtime.clone();
        runtime.block_on(self.checkpoints.write(head, version, payload, self.part_bytes))
    }

    /// Reads the newest intact checkpoint.
    ///
    /// # Errors
    /// The servers do not answer, or a newer program wrote the checkpoint.
    pub fn latest_checkpoint(&mut self) -> Result<Option<Checkpoint>, LogError> {
        let runtime = self.runtime.clone();
        while let Some((checkpoint, tag)) =
            runtime.block_on(self.checkpoints.latest(self.last_seq))?
        {
            let is_of_log = match u32::try_from(tag - 1) {
                Ok(next_checksum) => self.holds(checkpoint.seq + 1, next_checksum)?,
                Err(_) => true,
            };
            if is_of_log {
                return Ok(Some(checkpoint));
            }
            warn!(
                event = "checkpoint.skipped",
                seq = checkpoint.seq,
                "the log no longer has the entries of a checkpoint; the one before it is used"
            );
            self.checkpoints.skip_newest();
        }
        Ok(None)
    }

    /// The entry of the oldest readable checkpoint: of several, only the newest is considered.
    pub(crate) fn oldest_checkpoint(&self) -> Option<u64> {
        Some(self.checkpoint_seq()).filter(|seq| *seq > 0)
    }

    /// The entry that the newest checkpoint covers, 0 if there is none.
    pub fn checkpoint_seq(&self) -> u64 {
        self.checkpoints.newest()
    }

    /// The lowest number that can be in the log; the next number to be assigned if it is empty.
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// The last number assigned, 0 at first.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Sets the checksum of the last entry, which the owner has read.
    pub fn set_last_checksum(&mut self, checksum: Option<u32>) {
        self.last_checksum = checksum;
    }

    /// [`Entry::checksum`] of the last entry, if this owner knows it.
    pub fn last_checksum(&self) -> Option<u32> {
        self.last_checksum
    }

    /// Whether the log still has the entry with this checksum; `false` also if the log ends before that entry or
    /// begins after it.
    ///
    /// # Errors
    /// The servers do not answer, or their data is damaged.
    pub fn holds(&self, seq: u64, checksum: u32) -> Result<bool, LogError> {
        if !(self.first_seq..=self.last_seq).contains(&seq) {
            return Ok(false);
        }
        let found = self.read_from(seq)?.next().transpose()?;
        Ok(found.is_some_and(|entry| entry.seq == seq && entry.checksum() == checksum))
    }

    /// Approximate size of all entries in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

//! Checkpoints as runs in a separate stream; each has the content of a checkpoint file.

use bytes::BytesMut;

use crate::{
    checkpoint::{Checkpoint, decode_checkpoint, encode_head},
    error::{Damage, LogError},
    stream::{
        message_stream::{AnswerListener, MessageStream},
        part::{self, Assembler, RunHead},
    },
};

/// A second checkpoint is kept, so that damage to the newest only costs a longer replay.
const CHECKPOINTS_KEPT: usize = 2;

/// The stream of checkpoints.
#[derive(Debug)]
pub(super) struct Checkpoints {
    stream: MessageStream,
    /// The complete checkpoints that are kept, newest first.
    whole: Vec<Whole>,
    last_message: u64,
    written: u64,
}

/// Position of a checkpoint in the stream.
#[derive(Debug, Clone, Copy)]
struct Whole {
    seq: u64,
    first_message: u64,
    last_message: u64,
}

impl Checkpoints {
    pub(super) async fn open(stream: MessageStream) -> Result<Self, LogError> {
        let mut checkpoints = Self { stream, whole: Vec::new(), last_message: 0, written: 0 };
        checkpoints.look().await?;
        Ok(checkpoints)
    }

    /// Finds the newest complete checkpoints, searching backwards from the end.
    pub(super) async fn look(&mut self) -> Result<(), LogError> {
        let extent = self.stream.extent().await?;
        self.last_message = extent.last;
        self.whole.clear();
        let mut at = extent.last;
        while at >= extent.first && at > 0 && self.whole.len() < CHECKPOINTS_KEPT {
            let found = self.stream.get(at).await?.part;
            let Some(first_message) = at.checked_sub(u64::from(found.part)) else {
                break;
            };
            if found.is_last() && first_message >= extent.first {
                let seq = found.head.last;
                self.whole.push(Whole { seq, first_message, last_message: at });
            }
            at = first_message.saturating_sub(1);
        }
        Ok(())
    }

    /// Sets the callback for every answer of the servers.
    pub(super) fn set_on_answer(&mut self, on_answer: AnswerListener) {
        self.stream.on_answer = Some(on_answer);
    }

    /// The number of the newest checkpoint, 0 if there is none.
    pub(super) fn newest(&self) -> u64 {
        self.whole.first().map_or(0, |newest| newest.seq)
    }

    /// The entry up to which two checkpoints make the log dispensable.
    pub(super) fn covered(&self) -> u64 {
        self.whole.get(1).map_or(0, |older| older.seq)
    }

    pub(super) async fn write(
        &mut self,
        head: RunHead,
        version: u8,
        payload: &[u8],
        part_bytes: usize,
    ) -> Result<(), LogError> {
        let mut run = BytesMut::from(encode_head(head.last, version, payload).as_slice());
        run.extend_from_slice(payload);
        let messages = part::cut(head, &run, part_bytes);
        self.written += 1;
        let id = format!("{:016x}-{}", head.writer, self.written);
        let published = self.stream.publish(&id, &messages, self.last_message).await;
        let last_message = match published {
            Ok(last_message) => last_message,
            Err(error) => {
                // Parts that were stored are skipped; the next checkpoint has to follow them.
                self.look().await?;
                return Err(error);
            }
        };
        let first_message = self.last_message + 1;
        self.last_message = last_message;
        // A checkpoint for the same entry replaces the previous one.
        self.whole.retain(|held| held.seq != head.last);
        self.whole.insert(0, Whole { seq: head.last, first_message, last_message });
        self.whole.truncate(CHECKPOINTS_KEPT);
        match self.whole.as_slice() {
            [.., oldest] if self.whole.len() == CHECKPOINTS_KEPT => {
                self.stream.purge_before(oldest.first_message).await
            }
            _ => Ok(()),
        }
    }

    /// The newest checkpoint that is readable and within the log, with the tag that it was written with.
    pub(super) async fn latest(
        &mut self,
        last_seq: u64,
    ) -> Result<Option<(Checkpoint, i64)>, LogError> {
        for whole in self.whole.clone() {
            let Whole { seq, first_message, last_message } = whole;
            match self.read(whole).await {
                Ok(read) if read.0.seq <= last_seq => return Ok(Some(read)),
                Ok(_) => tracing::warn!(
                    event = "checkpoint.skipped",
                    seq,
                    last_seq,
                    "a checkpoint is beyond the log; the one before it is used"
                ),
                Err(LogError::Corrupt { reason, .. }) => {
                    tracing::error!(event = "checkpoint.damaged", seq, first_message, last_message, %reason, "checkpoint damaged, the one before it is used");
                }
                Err(error) => return Err(error),
            }
            self.whole.retain(|held| held.first_message != first_message);
        }
        Ok(None)
    }

    /// Ignores the newest checkpoint.
    pub(super) fn skip_newest(&mut self) {
        self.whole = self.whole.split_off(self.whole.len().min(1));
    }

    async fn read(&self, whole: Whole) -> Result<(Checkpoint, i64), LogError> {
        let mut messages = self.stream.read(whole.first_message, Some(whole.last_message));
        let mut assembler = Assembler::default();
        while let Some(message) = messages.recv().await {
            let Some((head, run)) = assembler.take(&message?.part) else {
                continue;
            };
            let decoded = decode_checkpoint(&run);
            return decoded
                .map(|checkpoint| (checkpoint, head.tag))
                .map_err(|reason| self.stream.corrupt(whole.last_message, reason));
        }
        Err(self.stream.corrupt(whole.last_message, Damage::Header))
    }
}

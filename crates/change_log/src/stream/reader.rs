//! Entries out of messages, in order.

use std::{collections::VecDeque, ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};

use crate::{
    error::{Damage, LogError},
    frame::decode_frame,
    reader::Entry,
    stream::{
        message_stream::{MessageStream, Numbered},
        part::{Assembler, RunHead},
    },
};

/// Entries that messages hold, from one number on.
#[derive(Debug)]
struct Entries {
    stream: MessageStream,
    assembler: Assembler,
    /// The first entry that is wanted.
    from: u64,
    /// The last entry seen, wanted or not.
    last: Option<u64>,
    /// The number of the last message that was read, and what it is known by.
    read: Option<(u64, u32)>,
    ready: VecDeque<Entry>,
}

impl Entries {
    fn has_read(&self, message: u64) -> bool {
        self.read.is_some_and(|(at, _)| at >= message)
    }

    fn take(&mut self, Numbered { at, part }: Numbered) -> Result<(), LogError> {
        self.read = Some((at, part.checksum()));
        if let Some((head, run)) = self.assembler.take(&part) {
            self.take_run(at, head, &run)?;
        }
        Ok(())
    }

    fn take_run(&mut self, at: u64, head: RunHead, run: &Bytes) -> Result<(), LogError> {
        let mut rest: &[u8] = run;
        let mut due = self.last.map_or(head.first, |last| last + 1);
        while !rest.is_empty() {
            let decoded = decode_frame(rest).map_err(|reason| self.stream.corrupt(at, reason))?;
            let Some((frame, bytes)) = decoded else {
                return Err(self.stream.corrupt(at, Damage::Header));
            };
            if frame.seq != due {
                let order = Damage::Order { found: frame.seq, expected: due };
                return Err(self.stream.corrupt(at, order));
            }
            self.last = Some(due);
            due += 1;
            if frame.seq >= self.from {
                self.ready.push_back(Entry {
                    seq: frame.seq,
                    at_ms: frame.at_ms,
                    version: frame.version,
                    payload: frame.payload.to_vec(),
                });
            }
            rest = rest.get(bytes..).unwrap_or_default();
        }
        Ok(())
    }
}

/// An iterator over the entries from one number on. It ends after its first error.
#[derive(Debug)]
pub struct StreamReader {
    entries: Entries,
    messages: mpsc::Receiver<Result<Numbered, LogError>>,
    /// The message to end with; `None` where there is none to read, or reading has ended.
    last: Option<u64>,
}

impl StreamReader {
    pub(super) fn new(
        runtime: &Handle,
        stream: &MessageStream,
        seq: u64,
        messages: RangeInclusive<u64>,
    ) -> Self {
        let _entered = runtime.enter();
        let last = (!messages.is_empty()).then_some(*messages.end());
        let messages = stream.read(*messages.start(), Some(*messages.end()));
        Self { entries: entries(stream, seq), messages, last }
    }
}

impl Iterator for StreamReader {
    type Item = Result<Entry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.ready.pop_front() {
                return Some(Ok(entry));
            }
            let Some(message) = self.messages.blocking_recv() else {
                // Whoever takes this for the end of the log would go on without the rest.
                let is_short = self.last.take().is_some_and(|last| !self.entries.has_read(last));
                return is_short
                    .then(|| Err(LogError::Unavailable("reading has ended early".into())));
            };
            let taken = message.and_then(|message| self.entries.take(message));
            if let Err(error) = taken {
                self.last = None;
                self.messages.close();
                while self.messages.try_recv().is_ok() {}
                return Some(Err(error));
            }
        }
    }
}

/// Entries as they are written, for whoever serves what another node writes.
#[derive(Debug)]
pub struct Follower {
    runtime: Handle,
    entries: Entries,
    messages: mpsc::Receiver<Result<Numbered, LogError>>,
}

impl Follower {
    pub(super) fn new(runtime: &Handle, stream: &MessageStream, seq: u64, from: u64) -> Self {
        let _entered = runtime.enter();
        let messages = stream.read(from, None);
        Self { runtime: runtime.clone(), entries: entries(stream, seq), messages }
    }

    /// The next entry; `None` where none came within `wait`.
    ///
    /// # Errors
    /// The servers did not answer for long, or what they hold is damaged or from a newer program. The follower is of no
    /// use then; another one goes on after the last entry.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Entry>, LogError> {
        loop {
            if let Some(entry) = self.entries.ready.pop_front() {
                return Ok(Some(entry));
            }
            let receiving = self.messages.recv();
            match self.runtime.block_on(async { timeout(wait, receiving).await }) {
                Err(_) => return Ok(None),
                Ok(Some(message)) => self.entries.take(message?)?,
                Ok(None) => return Err(LogError::Unavailable("the reader has ended".into())),
            }
        }
    }

    /// Asks once whether the last message that was read is still the one of that number. Servers that took messages
    /// back and were given others go on with those as if nothing had been. `true` also where they have none of that
    /// number.
    ///
    /// # Errors
    /// The servers do not answer, or what they hold is damaged.
    pub fn is_unchanged(&self) -> Result<bool, LogError> {
        let Some((at, checksum)) = self.entries.read else { return Ok(true) };
        let found = self.runtime.block_on(self.entries.stream.find_now(at))?;
        Ok(found.is_none_or(|found| found.part.checksum() == checksum))
    }
}

fn entries(stream: &MessageStream, from: u64) -> Entries {
    Entries {
        stream: stream.clone(),
        assembler: Assembler::default(),
        from,
        last: None,
        read: None,
        ready: VecDeque::new(),
    }
}

//! Decodes the entries of messages in order.

use std::{ops::RangeInclusive, time::Duration};

use bytes::{Buf as _, Bytes};
use tokio::{runtime::Handle, sync::mpsc, time::timeout};

use crate::{
    error::{Damage, LogError},
    frame::decode_frame,
    reader::Entry,
    stream::{
        message_stream::{MessageStream, Numbered},
        part::Assembler,
    },
};

/// Entries of messages from a given number on, decoded one at a time.
#[derive(Debug)]
struct Entries {
    stream: MessageStream,
    assembler: Assembler,
    /// The first requested entry.
    from: u64,
    /// The expected number of the next entry, once a batch was read.
    due: Option<u64>,
    /// The number of the last message read, and its checksum.
    read: Option<(u64, u32)>,
    /// The part of the last batch that is not decoded yet.
    run: Bytes,
}

impl Entries {
    fn new(stream: &MessageStream, from: u64) -> Self {
        Self {
            stream: stream.clone(),
            assembler: Assembler::default(),
            from,
            due: None,
            read: None,
            run: Bytes::new(),
        }
    }

    fn has_read(&self, message: u64) -> bool {
        self.read.is_some_and(|(at, _)| at >= message)
    }

    /// Adds the next message; all entries of the previous one have been decoded.
    fn take(&mut self, Numbered { at, part }: Numbered) {
        self.read = Some((at, part.checksum()));
        if let Some((head, run)) = self.assembler.take(&part) {
            self.due.get_or_insert(head.first);
            self.run = run;
        }
    }

    /// The next entry of the messages added so far.
    fn next(&mut self) -> Result<Option<Entry>, LogError> {
        let (at, _) = self.read.unwrap_or_default();
        let corrupt = |reason| self.stream.corrupt(at, reason);
        while !self.run.is_empty() {
            let decoded = decode_frame(&self.run).map_err(corrupt)?;
            let (frame, bytes) = decoded.ok_or_else(|| corrupt(Damage::Header))?;
            let expected = self.due.unwrap_or_default();
            if frame.seq != expected {
                return Err(corrupt(Damage::Order { found: frame.seq, expected }));
            }
            let entry = (frame.seq >= self.from).then(|| Entry::from(frame));
            self.due = Some(expected + 1);
            self.run.advance(bytes);
            if entry.is_some() {
                return Ok(entry);
            }
        }
        Ok(None)
    }
}

/// An iterator over the entries from a given number on. It ends after its first error.
#[derive(Debug)]
pub struct StreamReader {
    entries: Entries,
    messages: mpsc::Receiver<Result<Numbered, LogError>>,
    /// The last message to read; `None` if there is none, or reading has ended.
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
        Self { entries: Entries::new(stream, seq), messages, last }
    }

    /// Ends reading with an error.
    fn fail(&mut self, error: LogError) -> Option<Result<Entry, LogError>> {
        self.last = None;
        self.entries.run.clear();
        self.messages.close();
        while self.messages.try_recv().is_ok() {}
        Some(Err(error))
    }
}

impl Iterator for StreamReader {
    type Item = Result<Entry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next() {
                Ok(Some(entry)) => return Some(Ok(entry)),
                Ok(None) => {}
                Err(error) => return self.fail(error),
            }
            let Some(message) = self.messages.blocking_recv() else {
                // This is not the end of the log: the remaining entries would be missed.
                let is_short = self.last.take().is_some_and(|last| !self.entries.has_read(last));
                return is_short.then(|| Err(LogError::Unavailable("reading ended early".into())));
            };
            match message {
                Ok(message) => self.entries.take(message),
                Err(error) => return self.fail(error),
            }
        }
    }
}

/// Entries as another node writes them.
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
        Self { runtime: runtime.clone(), entries: Entries::new(stream, seq), messages }
    }

    /// The next entry; `None` if none arrived within `wait`.
    ///
    /// # Errors
    /// The servers did not answer for a long time, or their data is damaged or from a newer program. The follower
    /// cannot be used then; another one can continue after the last entry.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Entry>, LogError> {
        loop {
            if let Some(entry) = self.entries.next()? {
                return Ok(Some(entry));
            }
            let receiving = self.messages.recv();
            match self.runtime.block_on(async { timeout(wait, receiving).await }) {
                Err(_) => return Ok(None),
                Ok(Some(message)) => self.entries.take(message?),
                Ok(None) => return Err(LogError::Unavailable("the reader has ended".into())),
            }
        }
    }

    /// Whether the last message read is still the one with that number: servers may lose messages and then accept
    /// others. `true` also if they have no message with that number. Asks once.
    ///
    /// # Errors
    /// The servers do not answer, or their data is damaged.
    pub fn is_unchanged(&self) -> Result<bool, LogError> {
        let Some((at, checksum)) = self.entries.read else { return Ok(true) };
        let found = self.runtime.block_on(self.entries.stream.find_now(at))?;
        Ok(found.is_none_or(|found| found.part.checksum() == checksum))
    }
}

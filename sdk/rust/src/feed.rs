//! Pushes the messages of a feed.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::{Compression, write::GzEncoder};
use reqwest::Method;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::http::{Http, Request, Response, Secret, Settings};
use crate::types::{PushReceipt, RejectedCode, RejectedLine};

const LINES_MAX: usize = 5_000;
const BYTES_MAX: usize = 4 << 20;
/// Maximum number of rejected lines in one receipt of the API.
const REJECTED_MAX: usize = 1_000;
/// Pushes may be repeated: messages that are already stored change nothing.
const RETRIED: [u16; 1] = [503];

/// Pushes the messages of a feed with its token (`linesman feeds create NAME`).
pub struct Feed {
    http: Http,
}

/// Settings of a feed.
#[derive(Clone)]
#[must_use]
pub struct FeedBuilder {
    url: String,
    token: String,
    settings: Settings,
}

impl fmt::Debug for FeedBuilder {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        text.debug_struct("FeedBuilder").field("url", &self.url).finish_non_exhaustive()
    }
}

impl FeedBuilder {
    /// Maximum wait before a retry. Default: one minute.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.settings.max_wait = max_wait;
        self
    }

    /// Timeout of each step of a request. Default: 30 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Uses another clock, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Builds the feed.
    ///
    /// # Errors
    /// The address is invalid, or the token has characters that a token cannot have.
    pub fn build(self) -> Result<Feed> {
        Ok(Feed { http: Http::new(&self.url, Secret::token(&self.token)?, self.settings)? })
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "Feed({:?})", self.http.url)
    }
}

impl Feed {
    /// A feed of the service at this address.
    ///
    /// # Errors
    /// As [`FeedBuilder::build`].
    pub fn new(url: impl Into<String>, token: impl Into<String>) -> Result<Self> {
        Self::builder(url, token).build()
    }

    /// A feed with other settings.
    pub fn builder(url: impl Into<String>, token: impl Into<String>) -> FeedBuilder {
        FeedBuilder { url: url.into(), token: token.into(), settings: Settings::default() }
    }

    /// Sends messages in as many bodies as needed, one after the other; returns once all of them are stored.
    ///
    /// Line numbers in the receipt count the messages from 1. A rejected message does not stop the others: check
    /// `rejected_total`. An error contains the receipt of the bodies before it; sending everything again is safe.
    ///
    /// # Errors
    /// A body was refused or could not be sent; a message cannot be written as JSON.
    pub async fn push<M: Serialize>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<PushReceipt> {
        let mut batch = Batch::new();
        match self.push_all(messages, &mut batch).await {
            Ok(()) => Ok(batch.receipt),
            Err(error) => Err(error.with_receipt(batch.receipt)),
        }
    }

    /// Sends lines of a recording unchanged, with the bodies, the receipt and the errors of [`Feed::push`]. A line
    /// that is not a message is rejected by the server.
    ///
    /// # Errors
    /// As [`Feed::push`]; a line has a line break within.
    pub async fn push_lines(
        &self,
        lines: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<PushReceipt> {
        let mut batch = Batch::new();
        match self.push_each(lines, &mut batch).await {
            Ok(()) => Ok(batch.receipt),
            Err(error) => Err(error.with_receipt(batch.receipt)),
        }
    }

    async fn push_each(
        &self,
        lines: impl IntoIterator<Item = impl AsRef<[u8]>>,
        batch: &mut Batch,
    ) -> Result<()> {
        for line in lines {
            let line = line.as_ref();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if line.contains(&b'\n') {
                return Err(Error::configuration("a line has a line break within"));
            }
            if batch.is_full(line.len() + 1) {
                self.send(batch).await?;
            }
            batch.add(line);
        }
        self.send(batch).await
    }

    async fn push_all<M: Serialize>(
        &self,
        messages: impl IntoIterator<Item = M>,
        batch: &mut Batch,
    ) -> Result<()> {
        for message in messages {
            let line = serde_json::to_vec(&message);
            let line = line.map_err(|error| {
                Error::configuration(format!("a message cannot be written as JSON: {error}"))
            })?;
            if batch.is_full(line.len() + 1) {
                self.send(batch).await?;
            }
            batch.add(&line);
        }
        self.send(batch).await
    }

    async fn send(&self, batch: &mut Batch) -> Result<()> {
        if batch.body.is_empty() {
            batch.skip();
            return Ok(());
        }
        let body = pack(&batch.body)?;
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
            (CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        ]);
        let request = Request {
            method: &Method::POST,
            target: "/ingest/v1/messages",
            headers: &headers,
            body: &body,
            retried: &RETRIED,
        };
        let response = self.http.exchange(request).await?;
        batch.confirm(&response)
    }
}

fn pack(body: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let written = packed.write_all(body).and_then(|()| packed.finish());
    written.map_err(|error| Error::configuration(format!("a body cannot be packed: {error}")))
}

/// Collects messages into a body, and merges the receipts of the bodies.
struct Batch {
    receipt: PushReceipt,
    body: Vec<u8>,
    lines: usize,
    /// Number of messages before this body.
    before: u64,
}

impl Batch {
    fn new() -> Self {
        let receipt = PushReceipt {
            accepted: 0,
            unchanged: 0,
            superseded: 0,
            rejected_total: 0,
            rejected: Vec::new(),
            other: serde_json::Map::new(),
        };
        Self { receipt, body: Vec::new(), lines: 0, before: 0 }
    }

    fn is_full(&self, more: usize) -> bool {
        self.lines == LINES_MAX || self.body.len() + more > BYTES_MAX
    }

    fn add(&mut self, line: &[u8]) {
        let bytes = line.len() + 1;
        if bytes > BYTES_MAX {
            // All earlier messages have been sent: a body with this one would have been too large.
            let message = format!("the message has {bytes} bytes, at most {BYTES_MAX} can be sent");
            let code = RejectedCode::TooLarge;
            let other = serde_json::Map::new();
            self.reject(vec![RejectedLine { line: 1, code, message, other }], 1);
            self.before += 1;
            return;
        }
        self.body.extend_from_slice(line);
        self.body.push(b'\n');
        self.lines += 1;
    }

    fn confirm(&mut self, response: &Response) -> Result<()> {
        let receipt: PushReceipt = response.parse()?;
        self.receipt.accepted += receipt.accepted;
        self.receipt.unchanged += receipt.unchanged;
        self.receipt.superseded += receipt.superseded;
        self.reject(receipt.rejected, receipt.rejected_total);
        self.skip();
        Ok(())
    }

    /// Starts the next body.
    fn skip(&mut self) {
        self.before += u64::try_from(self.lines).unwrap_or(u64::MAX);
        self.body.clear();
        self.lines = 0;
    }

    fn reject(&mut self, lines: Vec<RejectedLine>, total: u64) {
        self.receipt.rejected_total += total;
        let room = REJECTED_MAX.saturating_sub(self.receipt.rejected.len());
        let before = self.before;
        let moved = lines.into_iter().take(room).map(|mut line| {
            line.line += before;
            line
        });
        self.receipt.rejected.extend(moved);
    }
}

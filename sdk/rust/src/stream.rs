//! Changes as they are published, and the resulting state; after a lost connection the stream continues where it was.

mod sse;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};

use crate::error::{Error, ErrorCode, Result};
use crate::http::{RETRIED, Request, backoff};
use crate::macros::parameters;
use crate::query::add;
use crate::reader::Reader;
use crate::types::{
    Channel, EndCode, Event, OddsRecord, ResetReason, ScoreRecord, StreamCut, StreamDelta,
    StreamEnd, StreamFresh, StreamHello, StreamRecord, StreamReset, StreamSnapshot,
};

use self::sse::{Block, Connection};

/// The server's default, if the request does not set one.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Maximum number of consecutive lost connections without a cut before an error is reported.
const LOST_MAX: u32 = 3;
/// Maximum size of the events between two cuts: far more than a whole sport.
const PENDING_BYTES_MAX: usize = 256 << 20;

/// A stream that is opened when it is read.
#[must_use = "nothing is requested before it is opened and read"]
pub struct StreamRequest {
    reader: Arc<Reader>,
    query: String,
    heartbeat: Duration,
}

impl fmt::Debug for StreamRequest {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "StreamRequest({}/v1/stream{})", self.reader.http.url, self.query)
    }
}

impl StreamRequest {
    pub(crate) fn new(reader: &Arc<Reader>) -> Self {
        Self { reader: Arc::clone(reader), query: String::new(), heartbeat: HEARTBEAT }
    }

    parameters! {
        [sports] [channels] market bookmaker [regions] odds_format [event_ids] status mode since until
        replay freshness
    }

    /// Seconds without an event before the server sends a heartbeat.
    pub fn heartbeat(mut self, seconds: u16) -> Self {
        self.heartbeat = Duration::from_secs(u64::from(seconds));
        self.param("heartbeat", seconds)
    }

    /// Any parameter, by its name in the API.
    pub fn param(mut self, name: &str, value: impl Display) -> Self {
        add(&mut self.query, name, &value);
        self
    }

    /// The stream; it connects when it is read.
    pub fn open(self) -> Changes {
        Changes {
            target: format!("/v1/stream{}", self.query),
            // A heartbeat may be late.
            silence_max: self.heartbeat * 2 + self.reader.http.settings.timeout,
            reader: self.reader,
            connection: None,
            pending: Vec::new(),
            pending_bytes: 0,
            cursor: None,
            state: State::default(),
            lost: 0,
            wait: None,
            ended: false,
        }
    }
}

/// The state of a stream: after each update it equals the lists of the same selection, except for `last_update`; with
/// `freshness("records")` including it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct State {
    /// By the record's id.
    pub odds: BTreeMap<String, OddsRecord>,
    /// By the event's id.
    pub scores: BTreeMap<String, ScoreRecord>,
    /// By the event's id.
    pub events: BTreeMap<String, Event>,
}

impl State {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn apply(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Hello(hello) if !hello.resumed => self.clear(),
            StreamEvent::Reset(_) => self.clear(),
            StreamEvent::Snapshot(snapshot) => self.put(&snapshot.records),
            StreamEvent::Delta(delta) => {
                self.put(&delta.upserts);
                for removed in &delta.removed {
                    self.remove(&delta.channel, &removed.id);
                }
            }
            StreamEvent::Fresh(fresh) => {
                for (last_update, ids) in fresh.touched.iter().flatten() {
                    self.touch(ids, last_update);
                }
            }
            StreamEvent::Hello(_) | StreamEvent::Other(..) => {}
        }
    }

    fn touch(&mut self, ids: &[String], last_update: &str) {
        for id in ids {
            if let Some(record) = self.odds.get_mut(id) {
                last_update.clone_into(&mut record.last_update);
            }
        }
    }

    fn put(&mut self, records: &[StreamRecord]) {
        for record in records {
            let id = record.id().to_owned();
            match record {
                StreamRecord::Odds(record) => drop(self.odds.insert(id, record.clone())),
                StreamRecord::Score(record) => drop(self.scores.insert(id, record.clone())),
                StreamRecord::Event(event) => drop(self.events.insert(id, event.clone())),
                StreamRecord::Other(_) => {}
            }
        }
    }

    fn remove(&mut self, channel: &Channel, id: &str) {
        match channel {
            Channel::Odds => drop(self.odds.remove(id)),
            Channel::Scores => drop(self.scores.remove(id)),
            Channel::Events => drop(self.events.remove(id)),
            Channel::Other(_) => {}
        }
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    Hello(StreamHello),
    Snapshot(StreamSnapshot),
    Delta(StreamDelta),
    Fresh(StreamFresh),
    Reset(StreamReset),
    /// An event that this version of the client does not know, with its data.
    Other(String, String),
}

/// The events up to a cut, which belong together.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Update {
    /// The events since the previous cut.
    pub events: Vec<StreamEvent>,
    /// The new position of the stream.
    pub cut: StreamCut,
    /// The server could not continue from the last cursor: the previous state is discarded, and this update is
    /// complete.
    pub reset: Option<ResetReason>,
}

/// The updates of a stream. It reconnects by itself and continues from the last cut.
pub struct Changes {
    reader: Arc<Reader>,
    target: String,
    silence_max: Duration,
    connection: Option<Connection>,
    /// Events after the last cut. They are sent again if the connection is lost.
    pending: Vec<StreamEvent>,
    pending_bytes: usize,
    cursor: Option<String>,
    state: State,
    lost: u32,
    /// Wait before the next connection.
    wait: Option<Duration>,
    ended: bool,
}

impl fmt::Debug for Changes {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("{}{}", self.reader.http.url, self.target);
        text.debug_struct("Changes").field("url", &url).finish_non_exhaustive()
    }
}

impl Changes {
    /// The state of the stream as of the last update.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The cursor of the last update: pass it as `since` of a later stream to continue from here.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Waits for the next update; `None` if the stream has ended. After an error it may be called again: a stream
    /// that can be continued does so from the last update.
    pub async fn next(&mut self) -> Option<Result<Update>> {
        while !self.ended {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(update)) => return Some(Ok(update)),
                Err(error) => {
                    self.disconnect();
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Reads one event, or opens one connection.
    async fn step(&mut self) -> Result<Option<Update>> {
        let http = &self.reader.http;
        let Some(connection) = &mut self.connection else {
            if let Some(wait) = self.wait {
                http.settings.clock.sleep(wait).await;
                self.wait = None;
            }
            self.connection = self.connect().await?;
            self.ended = self.connection.is_none();
            return Ok(None);
        };
        let error = match connection.next(http, self.silence_max).await {
            Ok(Some(block)) => return self.take(block),
            Ok(None) => {
                Error::new(ErrorCode::ConnectionFailed, "the stream ended without an event `end`")
            }
            Err(error) if *error.code() == ErrorCode::ConnectionFailed => error,
            Err(error) => return Err(error),
        };
        let spread = 0.75 + http.settings.clock.random() / 2.0;
        self.wait = Some(connection.retry.unwrap_or(backoff(self.lost)).mul_f64(spread));
        self.lose(error)
    }

    /// Counts a connection that ended without a cut; too many in a row are an error.
    fn lose(&mut self, error: Error) -> Result<Option<Update>> {
        self.disconnect();
        self.lost += 1;
        if self.lost < LOST_MAX {
            return Ok(None);
        }
        self.lost = 0;
        Err(error)
    }

    /// `None` where there is nothing to come after the last cut but the end.
    async fn connect(&self) -> Result<Option<Connection>> {
        let mut headers =
            HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        let cursor = self.cursor.as_deref().and_then(|cursor| HeaderValue::from_str(cursor).ok());
        headers.extend(cursor.map(|cursor| (HeaderName::from_static("last-event-id"), cursor)));
        let request = Request {
            method: &Method::GET,
            target: &self.target,
            headers: &headers,
            body: &[],
            retried: &RETRIED,
        };
        let response = self.reader.http.open(request).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Ok(Some(Connection::new(response)));
        }
        let message = "the response is no stream of events: is the URL that of a Linesman server?";
        Err(Error::new(ErrorCode::UnexpectedResponse, message))
    }

    fn disconnect(&mut self) {
        self.connection = None;
        self.pending.clear();
        self.pending_bytes = 0;
    }

    fn take(&mut self, block: Block) -> Result<Option<Update>> {
        self.pending_bytes += block.data.len();
        if self.pending_bytes > PENDING_BYTES_MAX {
            let message = format!("a stream has more than {PENDING_BYTES_MAX} bytes without a cut");
            return Err(Error::new(ErrorCode::UnexpectedResponse, message));
        }
        self.pending.push(match block.event.as_str() {
            "hello" => StreamEvent::Hello(block.parse()?),
            "snapshot" => StreamEvent::Snapshot(block.parse()?),
            "delta" => StreamEvent::Delta(block.parse()?),
            "fresh" => StreamEvent::Fresh(block.parse()?),
            "reset" => StreamEvent::Reset(block.parse()?),
            "cut" => return Ok(Some(self.cut(block.parse()?))),
            "end" => return self.end(&block.parse()?),
            _ => StreamEvent::Other(block.event, block.data),
        });
        Ok(None)
    }

    fn cut(&mut self, cut: StreamCut) -> Update {
        let events = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        self.lost = 0;
        events.iter().for_each(|event| self.state.apply(event));
        self.cursor = Some(cut.cursor.clone());
        let reset = events.iter().rev().find_map(|event| match event {
            StreamEvent::Reset(reset) => Some(reset.reason.clone()),
            StreamEvent::Hello(_)
            | StreamEvent::Snapshot(_)
            | StreamEvent::Delta(_)
            | StreamEvent::Fresh(_)
            | StreamEvent::Other(..) => None,
        });
        Update { events, cut, reset }
    }

    fn end(&mut self, end: &StreamEnd) -> Result<Option<Update>> {
        let retry_after = Duration::from_secs(end.retry_after_s);
        self.disconnect();
        // If the server asks for no wait, the client still backs off.
        self.wait = Some(retry_after.max(backoff(self.lost)));
        let is_temporary =
            matches!(end.code, EndCode::Unavailable | EndCode::Maintenance | EndCode::Slow);
        self.ended = !is_temporary;
        if end.code == EndCode::Done {
            return Ok(None);
        }
        let error = Error::new(ErrorCode::from(end.code.as_str()), end.message.clone())
            .with_retry_after(Some(retry_after.as_secs_f64()));
        if is_temporary && retry_after <= self.reader.http.settings.max_wait {
            return self.lose(error);
        }
        Err(error)
    }
}

//! A stream over a WebSocket (S16): the same events as text messages, and the few messages a client may send.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::websocket::{
    BadFrame, FrameReader, Received, close_code, close_frame, is_ping, pong_frame,
};
use http::{DirectSocket, Request, StreamBody};
use tokio::time::{Sleep, sleep};

use super::event_stream::EventStream;
use crate::error::{ApiError, ErrorCode};

/// Maximum time for a client to answer a ping.
const PONG_TIME_MAX: Duration = Duration::from_secs(60);

/// The handshake's accept key if the request asks for a WebSocket; otherwise `None`.
pub(super) fn accept(request: &Request<'_>) -> Result<Option<String>, ApiError> {
    let asked = &request.page.websocket;
    if !asked.is_asked_for() {
        return Ok(None);
    }
    if asked.version.once() != Some(http::websocket::VERSION.as_bytes()) {
        let text = "this service speaks version 13 of the WebSocket protocol only";
        return Err(ApiError::new(ErrorCode::UpgradeRequired, text));
    }
    let accept = asked.key.once().and_then(http::websocket::accept_key);
    accept.map(Some).ok_or_else(|| {
        let text = "the header Sec-WebSocket-Key must be sent once, with 16 bytes in base64";
        ApiError::new(ErrorCode::InvalidParameter, text)
    })
}

/// A stream, with the control frames to send in addition to its events.
#[derive(Debug)]
pub(super) struct WebSocket {
    events: EventStream,
    reader: FrameReader,
    /// Sent before the next event.
    answer: Option<Bytes>,
    /// True if the answer is the last frame.
    closes: bool,
    /// Deadline of the answer to a ping.
    pong_until: Option<Pin<Box<Sleep>>>,
}

impl WebSocket {
    pub(super) fn new(events: EventStream) -> Self {
        let (reader, answer, pong_until) = Default::default();
        Self { events, reader, answer, closes: false, pong_until }
    }

    fn close(&mut self, code: Option<u16>, reason: &str) {
        self.answer = Some(close_frame(code, reason).into());
        self.closes = true;
    }

    fn note(&mut self, received: Result<Received, BadFrame>) {
        match received {
            // Of several pings, answering the last is enough.
            Ok(Received::Ping(payload)) => self.answer = Some(pong_frame(&payload)),
            Ok(Received::Pong) => self.pong_until = None,
            Ok(Received::Close(code)) => self.close(code, ""),
            Ok(Received::Message) => {
                let reason = "a stream takes no messages; connect again for another selection";
                self.close(Some(close_code::POLICY), reason);
            }
            Err(BadFrame { code, reason }) => self.close(Some(code), reason),
        }
    }
}

impl StreamBody for WebSocket {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Not in the middle of a frame.
        if (self.closes || self.answer.is_some()) && self.events.try_pause() {
            return Poll::Ready(self.answer.take());
        }
        if let Some(until) = &mut self.pong_until
            && until.as_mut().poll(context).is_ready()
        {
            self.pong_until = None;
            self.events.note_slow();
        }
        let next = ready!(self.events.poll_next(context));
        if self.pong_until.is_none() && next.as_deref().is_some_and(is_ping) {
            self.pong_until = Some(Box::pin(sleep(PONG_TIME_MAX)));
        }
        Poll::Ready(next)
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        while !self.closes {
            match self.reader.read(&mut bytes).transpose() {
                Some(received) => self.note(received),
                None => return,
            }
        }
    }

    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.events.poll_overdue(context)
    }

    fn note_slow(&mut self) {
        self.events.note_slow();
    }

    fn take_socket(&mut self, socket: DirectSocket) {
        self.events.take_socket(socket);
    }
}

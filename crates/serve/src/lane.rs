//! The hot path: a connection of HTTP/1.1, from its first byte to the last of its answers.
//!
//! Nearly every request is a GET without a body on a connection kept alive, and should cost what a file server
//! needs to send the same bytes. Most of that is the kernel's. What is ours stays small because
//!
//! - a head is read into the stack of one poll and parsed once, by `httparse`, where it lies ([`head`]); what it asks
//!   ([`crate::request::Asked`]) borrows from it. Between two requests a connection holds no buffer;
//! - a connection has one timer ([`crate::patience`]), which is moved when it goes off and not with every request;
//! - status line, header lines and a body that is kept ready for the epoch leave in one write ([`wire`]), and a larger
//!   body that is asked for again is sent by the kernel from where it lies ([`crate::spool`]). Nothing is encoded on
//!   the way to the socket.
//!
//! There is no second contract here: keys, limits, parameters, errors and header names are [`service::answer`]'s, and
//! every refusal, of malformed and oversized heads too, is ours (D1). A request with a body is read here as well
//! ([`body`]), so that every head of a connection is looked at in the same way. HTTP/2 is handed over with the bytes
//! read so far to hyper ([`http2`]), which ends in the same [`service::answer`].

mod body;
mod head;
mod wire;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use domain::Timestamp;
use hyper::body::Body;
use tokio::sync::watch;
use tokio::time::Instant;

use self::body::{Framing, Incoming};
use self::head::{Reading, Request, examine};
use self::wire::{Outgoing, Wire};
use crate::app::App;
use crate::dashboard;
use crate::error::ErrorCode;
use crate::http2::{self, Begun};
use crate::ingest::{Delivery, Token};
use crate::metrics::Metrics;
use crate::peer::Peer;
use crate::reply::Reply;
use crate::request::{Asked, Method, Visitor};
use crate::server::Phase;
use crate::service::{self, Doors};
use crate::spool::Socket;

pub(crate) use self::wire::{FIRST_TIME_AT_CLOSE, LINGER_TIME_MAX, Unsent};

/// From the first byte of a head to its last (D32).
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two requests (D32).
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// How much of a body that nobody needs is read so that the connection can go on.
const DISCARDED_BYTES_MAX: u64 = 256 << 10;

/// Serves a connection until it ends or the service stops.
pub(crate) async fn serve<S>(
    app: Arc<App>,
    doors: Doors,
    stream: S,
    peer: Peer,
    phase: watch::Receiver<Phase>,
) where
    S: Socket,
{
    let mut wire = Wire::new(stream, phase.clone());
    let mut held = Vec::new();
    let mut head_since = None;
    let mut visitor = Visitor::new(&*app.clock, peer);
    visitor.takes_spooled = S::SENDS_SPOOLED;
    loop {
        let answered = match examine(&held) {
            Reading::More => {
                if !held.is_empty() && head_since.is_none() {
                    let now = Instant::now();
                    head_since = Some(now);
                    wire.patience.allow_from(now, HEAD_TIME_MAX);
                }
                if !wire.fill(&mut held, &app.metrics).await {
                    return;
                }
                continue;
            }
            Reading::Request(Request { asked, head_bytes, close, framing, .. })
                if is_plain(&asked, framing) =>
            {
                visitor.ask_again(&*app.clock);
                app.pressure.note_asker(&mut visitor.beat);
                let reply = service::answer(&app, doors, &asked, &mut visitor).await;
                let close = close || wire.is_stopping();
                let answer = Outgoing { reply, method: asked.method, close, at: visitor.now };
                if !wire.send(answer, &app.metrics).await {
                    return;
                }
                if close {
                    return wire.finish().await;
                }
                head_bytes
            }
            Reading::Request(_) => {
                visitor.ask_again(&*app.clock);
                app.pressure.note_asker(&mut visitor.beat);
                // Boxed, or every connection would be as large as one with a body.
                let serving = Unusual { app: &app, doors, visitor: &mut visitor };
                match Box::pin(serving.answer(wire, held)).await {
                    Some((same, rest)) => (wire, held) = (same, rest),
                    None => return,
                }
                // The body may have taken its time.
                visitor.begun = Instant::now();
                0
            }
            Reading::Refused(code, message) => {
                let reply = service::refuse(&app, code, message);
                let answer = Outgoing::last(reply, app.clock.now());
                if wire.send(answer, &app.metrics).await {
                    wire.finish().await;
                }
                return;
            }
            Reading::Http2 => {
                let at = head_since.unwrap_or_else(Instant::now);
                let begun = Begun { first: held.into(), stream: wire.stream, at };
                // Boxed, or every connection would be as large as one of hyper's.
                return Box::pin(http2::serve(app, doors, begun, peer, phase)).await;
            }
        };
        held.drain(..answered);
        head_since = None;
        wire.was_asked = true;
        wire.patience.allow_from(visitor.begun, IDLE_TIME_MAX);
    }
}

/// Whether the head is all there is to a request, and the answer has an end.
fn is_plain(asked: &Asked<'_>, framing: Framing) -> bool {
    framing.is_done() && asked.method != Method::Post && !dashboard::is_watched(asked.path)
}

/// Answers a client that has not asked yet, and lets it go.
pub(crate) async fn turn_away<S>(
    metrics: &Metrics,
    stream: S,
    reply: Reply,
    at: Timestamp,
    phase: watch::Receiver<Phase>,
) where
    S: Socket,
{
    let mut wire = Wire::new(stream, phase);
    if wire.send(Outgoing::last(reply, at), metrics).await {
        wire.finish().await;
    }
}

/// Answers one request and closes. Gives the connection back where it is of HTTP/2, with what was read.
pub(crate) async fn answer_once<S: Socket>(
    metrics: &Metrics,
    stream: S,
    at: Timestamp,
    phase: watch::Receiver<Phase>,
    answer: impl Fn(Result<&Asked<'_>, (ErrorCode, &'static str)>) -> Reply,
) -> Option<(Vec<u8>, S)> {
    let mut wire = Wire::new(stream, phase);
    let mut held = Vec::new();
    let (reply, method) = loop {
        match examine(&held) {
            Reading::More => {
                if !wire.fill(&mut held, metrics).await {
                    return None;
                }
            }
            Reading::Request(request) => break (answer(Ok(&request.asked)), request.asked.method),
            Reading::Refused(code, message) => break (answer(Err((code, message))), Method::Get),
            Reading::Http2 => return Some((held, wire.stream)),
        }
    };
    if wire.send(Outgoing { reply, method, close: true, at }, metrics).await {
        wire.finish().await;
    }
    None
}

/// A request that is more than a head: it has a body, or its answer has no end.
struct Unusual<'a> {
    app: &'a Arc<App>,
    doors: Doors,
    visitor: &'a mut Visitor,
}

impl Unusual<'_> {
    /// Answers; gives the connection back where it goes on, with what was read beyond the request. What was begun is
    /// carried to its end when the client hangs up meanwhile: nobody listens for that.
    async fn answer<S: Socket>(
        self,
        mut wire: Wire<S>,
        mut head: Vec<u8>,
    ) -> Option<(Wire<S>, Vec<u8>)> {
        let Reading::Request(Request { head_bytes, .. }) = examine(&head) else { return None };
        let rest = head.split_off(head_bytes);
        let Reading::Request(request) = examine(&head) else { return None };
        let Request { asked, close, framing, expects, .. } = request;
        let Self { app, doors, visitor } = self;
        let (peer, at) = (visitor.peer, visitor.now);
        if asked.method == Method::Get && service::is_watched(app, doors, asked.path) {
            let reply = match peer.serve(service::answer_watcher(app, &asked)).await {
                Ok((head, watch)) => {
                    wire.send_watched(head, at, watch, &app.metrics).await;
                    return None;
                }
                Err(reply) => reply,
            };
            let last = Outgoing::last(reply, at);
            if wire.send(last, &app.metrics).await {
                wire.finish().await;
            }
            return None;
        }
        let mut body = Incoming::new(&mut wire, rest, framing, expects);
        let reply = if asked.method == Method::Post && service::takes_pushes(app, doors, asked.path)
        {
            service::answer_push(app, delivery(&head), &mut body).await
        } else if asked.method == Method::Post && service::takes_forms(app, doors, asked.path) {
            peer.serve(service::answer_form(app, &asked, &mut body)).await
        } else {
            service::answer(app, doors, &asked, visitor).await
        };
        let left = body.framing().left().unwrap_or(0);
        let close = close
            || (!body.framing().is_done() && (body.is_uninvited() || left > DISCARDED_BYTES_MAX))
            || body.wire().is_stopping();
        let answer = Outgoing { reply, method: asked.method, close, at };
        let sent = body.wire().send(answer, &app.metrics).await;
        if !sent {
            return None;
        }
        if close || !discard(&mut body).await {
            wire.finish().await;
            return None;
        }
        let rest = body.into_rest();
        Some((wire, rest))
    }
}

/// What the headers of a push say.
fn delivery(head: &[u8]) -> Delivery {
    let only = |name: &str| head::only(head, name);
    Delivery {
        authorization: only("authorization").map(|value| Token(value.to_vec())),
        packing: only("content-encoding").map(|value| String::from_utf8_lossy(value).into_owned()),
    }
}

/// Reads what is left of a body, if it is little and comes soon.
async fn discard<S: Socket>(body: &mut Incoming<'_, S>) -> bool {
    if body.framing().is_done() {
        return true;
    }
    body.wire().wait_for_rest();
    let mut left = DISCARDED_BYTES_MAX;
    loop {
        let frame = poll_fn(|context| {
            let frame = Pin::new(&mut *body).poll_frame(context);
            match frame {
                Poll::Pending if body.wire().patience.is_over(context) => Poll::Ready(None),
                frame @ (Poll::Ready(_) | Poll::Pending) => frame,
            }
        });
        let Some(Ok(frame)) = frame.await else { return body.framing().is_done() };
        let bytes =
            frame.data_ref().map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
        match left.checked_sub(bytes) {
            Some(fewer) => left = fewer,
            None => return false,
        }
    }
}

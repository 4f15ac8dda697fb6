//! The hot path: a connection of HTTP/1.1, from its first byte to the last of its answers.
//!
//! Nearly every request is a GET without a body on a connection that is kept alive, and should cost as much as a file
//! server needs to send the same bytes. Most of that is the kernel's. Our part stays small because
//!
//! - a head is read onto the stack of one poll and parsed once in place, by `httparse` ([`head`]); the parsed request
//!   ([`crate::request::Request`]) borrows from it. Between two requests a connection holds no buffer;
//! - a connection has one timer ([`crate::timeout`]), which is moved when it fires and not with every request;
//! - status line, header lines and a body that is ready for the epoch are sent in one write ([`wire`]), and a larger
//!   body that is requested again is sent by the kernel from a file in memory ([`crate::sendfile`]). Nothing is
//!   encoded on the way to the socket.
//!
//! There is no second contract here: keys, limits, parameters, errors and header names are those of
//! [`Service::answer`], and every refusal, also of malformed and oversized heads, is ours (D1). A request with a body
//! is read here as well ([`body`]), so that all heads of a connection are parsed in the same way. HTTP/2 is passed to
//! hyper with the bytes read so far ([`http2`]), and ends in the same [`Service::answer`].

mod body;
mod head;
mod wire;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use domain::Timestamp;
use hyper::body::Body;
use tokio::sync::watch;
use tokio::time::Instant;

use self::body::{Framing, Incoming};
use self::head::{ParsedHead, Reading, examine};
use self::wire::{Outgoing, Wire};
use crate::http2::{self, Begun};
use crate::peer::Peer;
use crate::reply::Reply;
use crate::request::Request;
use crate::sendfile::Socket;
use crate::server::{Counters, Phase};
use crate::service::{ConnectionState, Service};
use crate::timeout::{HEAD_TIME_MAX, IDLE_TIME_MAX};

/// Maximum length of an unneeded rest of a body that is read so that the connection can continue.
const DISCARDED_BYTES_MAX: u64 = 256 << 10;

/// Serves a connection until it ends or the service stops.
pub(crate) async fn serve<S, T>(
    service: Arc<T>,
    stream: S,
    peer: Peer,
    phase: watch::Receiver<Phase>,
) where
    S: Socket,
    T: Service,
{
    let server = Arc::clone(service.server());
    let counters = &server.counters;
    let mut wire = Wire::new(stream, phase.clone());
    let mut held = Vec::new();
    let mut head_since = None;
    let mut connection = ConnectionState::new(&*server.clock, peer);
    connection.sends_files = S::SENDS_FILES;
    loop {
        let answered = match examine(&held, T::traits) {
            Reading::More => {
                if !held.is_empty() && head_since.is_none() {
                    let now = Instant::now();
                    head_since = Some(now);
                    wire.timeout.allow_from(now, HEAD_TIME_MAX);
                }
                if !wire.fill(&mut held, counters).await {
                    return;
                }
                continue;
            }
            Reading::Request(ParsedHead { request, head_bytes, close, framing, .. })
                if is_plain(&*service, &request, framing) =>
            {
                connection.begin_request(&server);
                let reply = service.answer(&request, &mut connection).await;
                let close = close || wire.is_stopping();
                let answer = Outgoing { reply, method: request.method, close, at: connection.now };
                if !wire.send(answer, counters).await {
                    return;
                }
                if close {
                    return wire.finish().await;
                }
                head_bytes
            }
            Reading::Request(_) => {
                connection.begin_request(&server);
                // Boxed, or every connection would be as large as one with a body.
                match Box::pin(answer_unusual(&*service, &mut connection, wire, held)).await {
                    Some((same, rest)) => (wire, held) = (same, rest),
                    None => return,
                }
                // Reading the body may have taken time.
                connection.begun = Instant::now();
                0
            }
            Reading::Refused(refusal, message) => {
                let reply = service.refuse(refusal, message, path_of(&held));
                if wire.send(Outgoing::last(reply, server.clock.now()), counters).await {
                    wire.finish().await;
                }
                return;
            }
            Reading::Http2 => {
                let at = head_since.unwrap_or_else(Instant::now);
                let begun = Begun { first: held.into(), stream: wire.stream, at };
                // Boxed, or every connection would be as large as one of hyper's.
                return Box::pin(http2::serve(service, begun, peer, phase)).await;
            }
        };
        held.drain(..answered);
        head_since = None;
        wire.was_asked = true;
        wire.timeout.allow_from(connection.begun, IDLE_TIME_MAX);
    }
}

/// True if the request consists of its head, and the answer has an end.
fn is_plain<T: Service>(service: &T, request: &Request<'_>, framing: Framing) -> bool {
    framing.is_done() && service.is_plain(request)
}

/// The path of a head that cannot be read as a whole, as far as it has arrived.
fn path_of(head: &[u8]) -> &str {
    let target = head.split(|byte| matches!(byte, b' ' | b'\r' | b'\n')).nth(1).unwrap_or_default();
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    std::str::from_utf8(path).unwrap_or_default()
}

/// Answers a client that has not sent a request yet, and closes the connection.
pub(crate) async fn refuse_connection<S: Socket>(
    counters: &Counters,
    stream: S,
    reply: Reply,
    at: Timestamp,
    phase: watch::Receiver<Phase>,
) {
    let mut wire = Wire::new(stream, phase);
    if wire.send(Outgoing::last(reply, at), counters).await {
        wire.finish().await;
    }
}

/// Answers a request that has a body, or whose answer has no end. Returns the connection if it continues, with the
/// bytes read beyond the request. A request that was begun is completed even if the client hangs up, because a hang-up
/// is not watched for.
async fn answer_unusual<S: Socket, T: Service>(
    service: &T,
    connection: &mut ConnectionState<T::Memory>,
    mut wire: Wire<S>,
    mut head: Vec<u8>,
) -> Option<(Wire<S>, Vec<u8>)> {
    let read = examine(&head, T::traits);
    let Reading::Request(ParsedHead { head_bytes, .. }) = read else { return None };
    let rest = head.split_off(head_bytes);
    let Reading::Request(parsed) = examine(&head, T::traits) else { return None };
    let ParsedHead { request, close, framing, expects, .. } = parsed;
    let (peer, at, counters) = (connection.peer, connection.now, &service.server().counters);
    let mut body = Incoming::new(&mut wire, rest, framing, expects);
    // Boxed, or every stream would be as large as the future that started it.
    let answering = Box::pin(peer.serve(service.answer_with_body(&request, connection, &mut body)));
    let mut reply = answering.await;
    if let Some(mut stream) = reply.stream.take() {
        stream.receive(&body.into_rest());
        Box::pin(wire.send_stream(reply, at, stream, counters)).await;
        return None;
    }
    let left = body.framing().left().unwrap_or(0);
    let close = close
        || (!body.framing().is_done() && (body.is_uninvited() || left > DISCARDED_BYTES_MAX))
        || body.wire().is_stopping();
    let answer = Outgoing { reply, method: request.method, close, at };
    if !body.wire().send(answer, counters).await {
        return None;
    }
    if close || !discard(&mut body).await {
        wire.finish().await;
        return None;
    }
    let rest = body.into_rest();
    Some((wire, rest))
}

/// Reads the rest of a body, if it is short and arrives soon.
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
                Poll::Pending if body.wire().timeout.is_over(context) => Poll::Ready(None),
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

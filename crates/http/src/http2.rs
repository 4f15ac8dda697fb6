//! HTTP/2, implemented by hyper.

mod body;
mod frames;
mod prefixed_stream;
mod waits;
mod watched_stream;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use domain::Timestamp;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, DATE, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio::time::Instant;

use self::body::Body;
use self::prefixed_stream::PrefixedStream;
use self::waits::{Late, Waits};
use crate::date::http_date_bytes;
use crate::peer::Peer;
use crate::reply::{BodyStream, Reply};
use crate::request::{self, HEAD_BYTES_MAX, HEADERS_MAX, Method};
use crate::sendfile::Socket;
use crate::server::{self, Phase};
use crate::service::{ConnectionState, Refusal, Service};
use crate::timeout::{IDLE_TIME_MAX, Timeout};

/// Time of silence, while requests are answered, after which a client is sent a ping.
const PING_AFTER: Duration = Duration::from_secs(75);
/// Maximum number of concurrent requests of one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

/// A connection with the bytes already read, and the time of its first byte.
#[derive(Debug)]
pub(crate) struct Begun<S> {
    pub(crate) first: Bytes,
    pub(crate) stream: S,
    pub(crate) at: Instant,
}

/// Serves a connection until it ends or the service stops.
pub(crate) async fn serve<S, T>(
    own: Arc<T>,
    begun: Begun<S>,
    peer: Peer,
    mut phase: watch::Receiver<Phase>,
) where
    S: Socket,
    T: Service,
{
    let server = Arc::clone(own.server());
    let waits = Waits::new(&server, begun.at);
    let stream = PrefixedStream::new(begun.first, begun.stream, Arc::clone(&waits));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    // hyper accepts heads four times as large as we do, so that oversized ones get our refusal, with our body (D1).
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_AFTER)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(4 * HEAD_BYTES_MAX).unwrap_or(u32::MAX));
    let answering = Arc::clone(&waits);
    // Requests are answered on their own tasks.
    let service = service_fn(move |request| {
        let (own, waits) = (Arc::clone(&own), Arc::clone(&answering));
        let changes = request.method() == hyper::Method::POST;
        let responding = peer.serve(respond(Arc::clone(&own), request, Arc::clone(&waits)));
        async move {
            if !changes {
                return Ok::<_, Infallible>(responding.await);
            }
            // A request that changes something completes even if the client disconnects: the store, the effective
            // state and the audit log stay consistent.
            let done = tokio::spawn(responding).await;
            Ok(done.unwrap_or_else(|_| {
                let reply = own.refuse(Refusal::Internal, "this was not done", "");
                into_response(&reply, own.server().clock.now(), Method::Post, &waits)
            }))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let cut = match drive(connection, http2::Connection::graceful_shutdown, &waits, &mut phase)
        .await
    {
        Ok(Ok(())) | Err(Late::Idle) => return,
        Ok(Err(error)) => {
            return tracing::debug!(event = "connection.ended_early", %error, "a connection ended early");
        }
        Err(Late::Head) => &server.counters.cut_slow_head,
        Err(Late::Reader) => &server.counters.cut_slow_reader,
    };
    cut.fetch_add(1, Ordering::Relaxed);
}

/// Drives a connection to its end, and shuts it down gracefully if it is idle or the service stops.
///
/// # Errors
/// The deadline that the client missed.
async fn drive<C: Future>(
    connection: C,
    end: impl Fn(Pin<&mut C>),
    waits: &Waits,
    phase: &mut watch::Receiver<Phase>,
) -> Result<C::Output, Late> {
    let mut connection = pin!(connection);
    let mut timeout = Timeout::new(IDLE_TIME_MAX);
    let mut stop = pin!(server::reached(phase, Phase::Draining));
    let (mut stops, mut leaves) = (false, false);
    poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Ok(ended));
            }
            if !stops && stop.as_mut().poll(context).is_ready() {
                stops = true;
                waits.shorten_waits();
            }
            let late = waits.deadline().and_then(|(until, late)| {
                timeout.allow_until(until);
                timeout.is_over(context).then_some(late)
            });
            match late {
                None if leaves || !(stops && waits.was_asked()) => return Poll::Pending,
                Some(late) if leaves || late != Late::Idle => {
                    waits.note_late(late);
                    return Poll::Ready(Err(late));
                }
                // Requests in progress and those that still arrive are answered before hyper closes.
                None | Some(_) => {
                    leaves = true;
                    waits.leave();
                    end(connection.as_mut());
                }
            }
        }
    })
    .await
}

async fn respond<T: Service>(
    service: Arc<T>,
    incoming: Request<Incoming>,
    waits: Arc<Waits>,
) -> Response<Body> {
    let _answering = waits.begin_answer();
    let at = service.server().clock.now();
    let (parts, body) = incoming.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = request::Request::new(parts.method.as_str(), target);
    request.traits = T::traits(request.path);
    if let Some(text) = too_heavy(target, &parts.headers) {
        let reply = service.refuse(Refusal::HeadTooLarge, text, request.path);
        return into_response(&reply, at, request.method, &waits);
    }
    for (name, value) in &parts.headers {
        request.header(name.as_str(), value.as_bytes());
    }
    if let Some(authority) = parts.uri.authority() {
        request.host = Some(authority.as_str().as_bytes());
    }
    let mut connection = ConnectionState::new(&*service.server().clock, Peer::current());
    let mut reply = if service.is_plain(&request) {
        service.answer(&request, &mut connection).await
    } else {
        Box::pin(service.answer_with_body(&request, &mut connection, body)).await
    };
    if let Some(stream) = reply.stream.take() {
        return into_stream(&reply, at, stream, &waits);
    }
    let mut response = into_response(&reply, at, request.method, &waits);
    if let Some(long) = reply.long.filter(|_| request.method != Method::Head) {
        *response.body_mut() = Body::long(long, &waits);
    }
    response
}

/// The error for a head larger than HTTP/1.1 may have here.
fn too_heavy(target: &str, headers: &HeaderMap) -> Option<&'static str> {
    let lines = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if headers.len() > HEADERS_MAX {
        Some("the request has more than 64 headers")
    } else if target.len() + lines.sum::<usize>() > HEAD_BYTES_MAX {
        Some("the request's headers are larger than 16 KiB")
    } else {
        None
    }
}

/// The body of an answer that continues while the client listens.
fn into_stream(
    head: &Reply,
    at: Timestamp,
    stream: BodyStream,
    waits: &Arc<Waits>,
) -> Response<Body> {
    let mut response = into_response(head, at, Method::Get, waits);
    response.headers_mut().remove(CONTENT_LENGTH);
    *response.body_mut() = Body::stream(stream, waits);
    response
}

fn into_response(
    reply: &Reply,
    at: Timestamp,
    method: Method,
    waits: &Arc<Waits>,
) -> Response<Body> {
    let body = if method == Method::Head { Body::empty() } else { Body::of(&reply.body, waits) };
    let mut response = reply.with_body(body);
    // hyper would use the machine's clock, which may differ from the clock that limits use.
    if let Ok(date) = HeaderValue::from_bytes(&http_date_bytes(at)) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

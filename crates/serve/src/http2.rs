//! HTTP/2, which hyper speaks.

mod body;
mod frames;
mod rewound;
mod waits;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use domain::Timestamp;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, DATE, HeaderValue};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;

use self::body::Body;
use self::waits::{Late, Waits};
use crate::app::App;
use crate::dashboard::BoardWatch;
use crate::date::http_date_bytes;
use crate::error::ErrorCode;
use crate::ingest::{Delivery, Token};
use crate::lane::IDLE_TIME_MAX;
use crate::patience::Patience;
use crate::peer::Peer;
use crate::reply::Reply;
use crate::request::{Asked, HEAD_BYTES_MAX, HEADERS_MAX, Method, Visitor};
use crate::server::{self, Phase};
use crate::service::{self, Doors};

pub(crate) use self::rewound::Rewound;

/// How long a client may be silent while its requests are answered before it is asked for a sign of life.
const PING_AFTER: Duration = Duration::from_secs(75);
/// Requests one HTTP/2 connection may have under way.
const STREAMS_MAX: u32 = 128;

/// A connection of which something was read, and when its first byte came.
#[derive(Debug)]
pub(crate) struct Begun<S> {
    pub(crate) first: Bytes,
    pub(crate) stream: S,
    pub(crate) at: Instant,
}

/// Serves a connection until it ends or the service stops.
pub(crate) async fn serve<S>(
    app: Arc<App>,
    doors: Doors,
    begun: Begun<S>,
    peer: Peer,
    mut phase: watch::Receiver<Phase>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let waits = Waits::new(&app, begun.at);
    let stream = Rewound::new(begun.first, begun.stream, Arc::clone(&waits));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    // Hyper takes heads four times as large as we do, so that refusing them is ours, with our body (D1).
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_AFTER)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(4 * HEAD_BYTES_MAX).unwrap_or(u32::MAX));
    let (answering, metrics) = (Arc::clone(&waits), Arc::clone(&app));
    // Requests are answered on tasks of their own.
    let service = service_fn(move |request| {
        let (app, waits) = (Arc::clone(&app), Arc::clone(&answering));
        let changes = request.method() == http::Method::POST;
        let responding = respond(Arc::clone(&app), doors, request, Arc::clone(&waits));
        let responding = Box::pin(peer.serve(responding));
        async move {
            if !changes {
                return Ok::<_, Infallible>(responding.await);
            }
            // What changes something goes on to its end when the client hangs up half-way: the store, what is in
            // force and what is written down about it stay together.
            let done = tokio::spawn(responding).await;
            Ok(done.unwrap_or_else(|_| {
                let reply = service::refuse(&app, ErrorCode::Internal, "this was not done");
                into_response(&reply, app.clock.now(), Method::Post, &waits)
            }))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let cut =
        match drive(connection, http2::Connection::graceful_shutdown, &waits, &mut phase).await {
            Ok(Ok(())) | Err(Late::Idle) => return,
            Ok(Err(error)) => return tracing::debug!(%error, "a connection ended early"),
            Err(Late::Head) => &metrics.metrics.cut_slow_head,
            Err(Late::Reader) => &metrics.metrics.cut_slow_reader,
        };
    cut.fetch_add(1, Ordering::Relaxed);
}

/// Drives a connection to its end, telling it to come to one where nothing more is expected.
///
/// # Errors
/// What the client was waited for in vain.
async fn drive<C: Future>(
    connection: C,
    end: impl Fn(Pin<&mut C>),
    waits: &Waits,
    phase: &mut watch::Receiver<Phase>,
) -> Result<C::Output, Late> {
    let mut connection = pin!(connection);
    let mut patience = Patience::new(IDLE_TIME_MAX);
    let mut stop = pin!(server::reached(phase, Phase::Draining));
    let (mut stops, mut leaves) = (false, false);
    poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Ok(ended));
            }
            if !stops && stop.as_mut().poll(context).is_ready() {
                stops = true;
                waits.hurry();
            }
            let late = waits.deadline().and_then(|(until, late)| {
                patience.allow_until(until);
                patience.is_over(context).then_some(late)
            });
            match late {
                None if leaves || !(stops && waits.was_asked()) => return Poll::Pending,
                Some(late) if leaves || late != Late::Idle => return Poll::Ready(Err(late)),
                // What is under way ends, and what comes meanwhile is answered, before hyper closes.
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

async fn respond(
    app: Arc<App>,
    doors: Doors,
    request: Request<Incoming>,
    waits: Arc<Waits>,
) -> Response<Body> {
    let _answering = waits.begin_answer();
    let at = app.clock.now();
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut asked = Asked::new(parts.method.as_str(), target);
    let pushing = asked.method == Method::Post && service::takes_pushes(&app, doors, asked.path);
    let reply = if let Some(text) = too_heavy(target, &parts.headers) {
        service::refuse(&app, ErrorCode::HeadTooLarge, text)
    } else if pushing {
        let packing = parts.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let delivery = Delivery {
            authorization: parts.headers.get(AUTHORIZATION).map(|v| Token(v.as_bytes().to_vec())),
            packing: packing.map(|value| String::from_utf8_lossy(value).into_owned()),
        };
        service::answer_push(&app, delivery, body).await
    } else {
        for (name, value) in &parts.headers {
            asked.header(name.as_str(), value.as_bytes());
        }
        if let Some(authority) = parts.uri.authority() {
            asked.browser.host = Some(authority.as_str().as_bytes());
        }
        if asked.method == Method::Get && service::is_watched(&app, doors, asked.path) {
            match service::answer_watcher(&app, &asked).await {
                Ok((head, watch)) => return into_watched(&head, at, watch, &waits),
                Err(reply) => reply,
            }
        } else if asked.method == Method::Post && service::takes_forms(&app, doors, asked.path) {
            service::answer_form(&app, &asked, body).await
        } else {
            service::answer(&app, doors, &asked, &mut Visitor::new(&*app.clock, Peer::current()))
                .await
        }
    };
    into_response(&reply, at, asked.method, &waits)
}

/// What is wrong with a head larger than the lane would take.
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

/// An answer that goes on for as long as somebody watches.
fn into_watched(
    head: &Reply,
    at: Timestamp,
    watch: BoardWatch,
    waits: &Arc<Waits>,
) -> Response<Body> {
    let mut response = into_response(head, at, Method::Get, waits);
    response.headers_mut().remove(CONTENT_LENGTH);
    *response.body_mut() = Body::watched(watch, waits);
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
    // hyper would take it from the machine's clock, which may be another one than limits are counted by.
    if let Ok(date) = HeaderValue::from_bytes(&http_date_bytes(at)) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

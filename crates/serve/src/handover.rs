//! Connections that hyper serves: HTTP/2, and HTTP/1.1 with bodies or other unusual needs.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::app::App;
use crate::error::ErrorCode;
use crate::ingest::{Delivery, Token};
use crate::reply::Reply;
use crate::request::{Asked, HEAD_BYTES_MAX, HEADERS_MAX, Method, Visitor};
use crate::server;
use crate::service::{self, Doors};

/// Between two requests (D32). Hyper counts a slow head from the end of the request before it, so a head may take
/// as long; the first one, which the lane has read, may not.
const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// How long a silent HTTP/2 connection is kept before it is asked for a sign of life.
const PING_AFTER: Duration = Duration::from_secs(75);
/// Requests one HTTP/2 connection may have under way.
const STREAMS_MAX: u32 = 128;
/// How long requests under way may take once the service stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(20);

pub(crate) async fn serve<S>(
    app: Arc<App>,
    doors: Doors,
    stream: Rewound<S>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Hyper takes heads four times as large as we do, so that refusing them is ours, with our body (D1).
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIME_MAX)
        .max_headers(4 * HEADERS_MAX)
        .max_buf_size(4 * HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_AFTER)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(4 * HEAD_BYTES_MAX).unwrap_or(u32::MAX));
    let service = service_fn(move |request| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(respond(app, doors, request).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = server::stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(DRAIN_TIME_MAX, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn respond(app: Arc<App>, doors: Doors, request: Request<Incoming>) -> Response<Full<Bytes>> {
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
        service::answer(&app, doors, &asked, &mut Visitor::new(&*app.clock)).await
    };
    into_response(reply, asked.method)
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

fn into_response(reply: Reply, method: Method) -> Response<Full<Bytes>> {
    let length = reply.body.len();
    let body = if method == Method::Head { Bytes::new() } else { reply.body };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in reply.head.iter() {
        let (name, value) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    if reply.status != 304 {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// A stream whose first bytes were already read.
#[derive(Debug)]
pub(crate) struct Rewound<S> {
    first: Bytes,
    stream: S,
}

impl<S> Rewound<S> {
    pub(crate) fn new(first: Bytes, stream: S) -> Self {
        Self { first, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let taken = self.first.len().min(buffer.remaining());
        buffer.put_slice(self.first.get(..taken).unwrap_or_default());
        self.first.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

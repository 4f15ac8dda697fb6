//! A service that cannot begin yet: it listens, and says so.
//!
//! A node waits for the database for as long as that takes. Meanwhile whoever runs it sees a process that lives and is not
//! ready, and a client is asked to come again; a closed port would tell either that there is nothing to wait for.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::error::{ApiError, ErrorCode};
use crate::ops;
use crate::reply::Reply;
use crate::request_id::RequestIds;
use crate::server::{ACCEPT_PAUSE, Door, Tls};

/// Visitors at once; further ones find the connection closed.
const VISITORS_MAX: usize = 256;
/// How long one may take to ask and to be told.
const VISIT_TIME_MAX: Duration = Duration::from_secs(10);

/// Tells everybody who comes to these doors why they have to wait, until something is there; gives that.
pub async fn wait_at<T>(doors: &[Door], why: &'static str, until: impl Future<Output = T>) -> T {
    let mut visits = JoinSet::new();
    let ids = Arc::new(RequestIds::default());
    let mut until = pin!(until);
    loop {
        let mut accepting = pin!(poll_fn(|context| {
            for door in doors {
                if let Poll::Ready(accepted) = door.listener.poll_accept(context) {
                    return Poll::Ready((door, accepted));
                }
            }
            Poll::Pending
        }));
        // Nothing is lost by being dropped half-way: whoever was not accepted is by the next.
        tokio::select! {
            done = &mut until => {
                // Who was let in is told to the end.
                visits.detach_all();
                return done;
            }
            Some(_) = visits.join_next() => {}
            (door, accepted) = &mut accepting => match accepted {
                Ok((stream, _)) if visits.len() < VISITORS_MAX => {
                    let visit = visit(stream, door.tls.clone(), Arc::clone(&ids), why);
                    visits.spawn(tokio::time::timeout(VISIT_TIME_MAX, visit));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn visit(stream: TcpStream, tls: Option<Tls>, ids: Arc<RequestIds>, why: &'static str) {
    match tls {
        None => tell(stream, ids, why).await,
        Some(Tls(acceptor)) => match acceptor.accept(stream).await {
            Ok(stream) => tell(stream, ids, why).await,
            Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
        },
    }
}

async fn tell<S>(stream: S, ids: Arc<RequestIds>, why: &'static str)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The next request may find the service there.
    builder.http1().timer(TokioTimer::new()).keep_alive(false);
    let service = service_fn(move |request: Request<Incoming>| {
        let reply = answer(request.method().as_str(), request.uri().path(), &ids, why);
        async move { Ok::<_, Infallible>(reply.with_body(Full::new(reply.body.whole()))) }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(error = &*error, "a connection ended early");
    }
}

fn answer(method: &str, path: &str, ids: &RequestIds, why: &'static str) -> Reply {
    if path == "/healthz" && matches!(method, "GET" | "HEAD") {
        return ops::healthy();
    }
    let request_id = ids.next();
    let error = ApiError::new(ErrorCode::Unavailable, why).retry_after(1);
    let mut reply = error.into_reply(request_id);
    request_id.put(&mut reply.head);
    reply
}

//! A service that cannot begin yet: it listens, and says so.
//!
//! A node waits for the database for as long as that takes. Meanwhile whoever runs it sees a process that lives and
//! is not ready, and a client is asked to come again; a closed port would tell either that there is nothing to wait
//! for.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use domain::Clock;
use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::{ApiError, ErrorCode};
use crate::http2::Rewound;
use crate::metrics::Metrics;
use crate::reply::Reply;
use crate::request::{Asked, Method};
use crate::request_id::RequestIds;
use crate::server::{ACCEPT_PAUSE, Door, Phase, Tls};
use crate::spool::Socket;
use crate::{lane, ops};

/// Visitors at once; further ones find the connection closed.
const VISITORS_MAX: usize = 256;
/// How long one may take to ask and to be told.
const VISIT_TIME_MAX: Duration = Duration::from_secs(10);

/// Tells everybody who comes to these doors why they have to wait, until something is there; gives that.
pub async fn wait_at<T>(
    doors: &[Door],
    clock: Arc<dyn Clock>,
    why: &'static str,
    until: impl Future<Output = T>,
) -> T {
    let mut visits = JoinSet::new();
    let (_serving, phase) = watch::channel(Phase::Serving);
    let (ids, metrics) = (RequestIds::default(), Metrics::default());
    let not_ready = Arc::new(NotReady { clock, ids, metrics, phase, why });
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
                    let visit = Arc::clone(&not_ready).visit(stream, door.tls.clone());
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

/// What every visitor is told with.
struct NotReady {
    clock: Arc<dyn Clock>,
    ids: RequestIds,
    metrics: Metrics,
    phase: watch::Receiver<Phase>,
    why: &'static str,
}

impl NotReady {
    async fn visit(self: Arc<Self>, stream: TcpStream, tls: Option<Tls>) {
        match tls {
            None => self.tell(stream).await,
            Some(Tls(acceptor)) => match acceptor.accept(stream).await {
                Ok(stream) => self.tell(stream).await,
                Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
            },
        }
    }

    async fn tell<S: Socket>(self: Arc<Self>, stream: S) {
        let (at, phase) = (self.clock.now(), self.phase.clone());
        let answer = |asked: Result<&Asked<'_>, (ErrorCode, &'static str)>| match asked {
            Ok(asked) => self.answer(asked.method, asked.path),
            Err((code, message)) => self.refuse(ApiError::new(code, message)),
        };
        // The next request may find the service there, so no connection is kept.
        let http2 = lane::answer_once(&self.metrics, stream, at, phase, answer).await;
        let Some((first, stream)) = http2 else { return };
        let own = Arc::clone(&self);
        let service = service_fn(move |request: Request<Incoming>| {
            let method = Method::parse(request.method().as_str());
            let reply = own.answer(method, request.uri().path());
            async move { Ok::<_, Infallible>(reply.with_body(Full::new(reply.body.whole()))) }
        });
        let stream = TokioIo::new(Rewound::unwatched(first.into(), stream));
        let serving =
            http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
        if let Err(error) = serving {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    fn answer(&self, method: Method, path: &str) -> Reply {
        if path == "/healthz" && method.reads() {
            return ops::healthy();
        }
        self.refuse(ApiError::new(ErrorCode::Unavailable, self.why).retry_after(1))
    }

    fn refuse(&self, error: ApiError) -> Reply {
        let request_id = self.ids.next();
        let mut reply = error.into_reply(request_id);
        request_id.put(&mut reply.head);
        reply
    }
}

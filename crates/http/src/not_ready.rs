//! Listeners of a service that is not ready yet: every client gets this answer at once, and can distinguish it from a
//! service that is down.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::listener::{ACCEPT_PAUSE, Listener, connection};
use crate::peer::Peer;
use crate::reply::Reply;
use crate::request::{PathTraits, Request};
use crate::server::{Phase, Server};
use crate::service::{ConnectionState, Refusal, RequestBody, Service};

/// Maximum number of clients at once; further ones find the connection closed.
const CLIENTS_MAX: usize = 256;
/// Maximum time for a client to send a request and read the answer.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(10);

/// Answers every request with the same function.
pub struct NotReady<F> {
    pub server: Arc<Server>,
    /// The answer to a request, or to an unreadable one.
    pub answer: F,
}

impl<F> std::fmt::Debug for NotReady<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NotReady")
    }
}

impl<F> Service for NotReady<F>
where
    F: Fn(Result<&Request<'_>, (Refusal, &'static str)>) -> Reply + Send + Sync + 'static,
{
    type Memory = ();

    fn server(&self) -> &Arc<Server> {
        &self.server
    }

    fn limits_connections(&self) -> bool {
        false
    }

    fn traits(_path: &str) -> PathTraits {
        PathTraits::default()
    }

    fn is_plain(&self, _request: &Request<'_>) -> bool {
        true
    }

    async fn answer(&self, request: &Request<'_>, _connection: &mut ConnectionState<()>) -> Reply {
        (self.answer)(Ok(request))
    }

    async fn answer_with_body<B: RequestBody>(
        &self,
        request: &Request<'_>,
        _connection: &mut ConnectionState<()>,
        _body: B,
    ) -> Reply {
        (self.answer)(Ok(request))
    }

    fn refuse(&self, refusal: Refusal, message: &'static str, _path: &str) -> Reply {
        (self.answer)(Err((refusal, message)))
    }
}

/// Answers all clients until `until` completes, and returns its result. The listeners stay open.
pub async fn answer_until<S: Service, T>(
    service: &Arc<S>,
    listeners: &[Listener],
    until: impl Future<Output = T>,
) -> T {
    // The next request may find the service ready, so every answer is its connection's last.
    let (_phase, draining) = watch::channel(Phase::Draining);
    let mut clients = JoinSet::new();
    let mut until = pin!(until);
    loop {
        let mut accepting = pin!(poll_fn(|context| {
            for listener in listeners {
                if let Poll::Ready(accepted) = listener.socket.poll_accept(context) {
                    return Poll::Ready((listener, accepted));
                }
            }
            Poll::Pending
        }));
        // Nothing is lost by being dropped half-way: a connection that was not accepted is accepted by the next loop.
        tokio::select! {
            done = &mut until => {
                // Accepted clients still get their answer.
                clients.detach_all();
                return done;
            }
            Some(_) = clients.join_next() => {}
            (listener, accepted) = &mut accepting => match accepted {
                Ok((stream, address)) if clients.len() < CLIENTS_MAX => {
                    let tls = listener.tls.clone();
                    let peer = Peer { address: Some(address.ip()), encrypted: tls.is_some() };
                    let serving =
                        connection(Arc::clone(service), tls, stream, peer, draining.clone());
                    clients.spawn(tokio::time::timeout(CLIENT_TIME_MAX, serving));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(event = "connection.accept_failed", %error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

//! Listeners: accept, encrypt where asked, serve, and stop without breaking anything under way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::error::ApiError;
use crate::lane;
use crate::peer::Peer;
use crate::pressure::PULSE_EVERY;
use crate::service::Doors;

/// A TLS handshake that takes longer is given up.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long connections may take to finish once the service stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(25);
/// After an accept that failed for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections beyond the cap that are being told so, on one listener.
const TURNED_AWAY_MAX: usize = 256;

/// A listener and what it opens to.
#[derive(Debug)]
pub struct Door {
    pub listener: TcpListener,
    pub doors: Doors,
    pub tls: Option<Tls>,
}

/// Encryption for a listener.
#[derive(Clone)]
pub struct Tls(pub TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Comes back when the service stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender going away means the same.
    drop(stopping.wait_for(|stop| *stop).await);
}

/// Serves a listener until the service stops, then waits for what is under way.
pub async fn run(app: Arc<App>, door: Door, mut stopping: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let mut pulse = tokio::time::interval(PULSE_EVERY);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // All of these lose nothing when dropped half-way. Which comes first when several are ready is left to chance, so
        // that none waits for another for long: not new clients for those that leave, nor the pulse for either.
        let accepted = tokio::select! {
            accepted = door.listener.accept() => accepted,
            () = stopped(&mut stopping) => break,
            Some(_) = connections.join_next() => continue,
            due = pulse.tick(), if door.doors == Doors::Main => {
                app.pressure.note_pulse(due, Instant::now());
                continue;
            }
        };
        match accepted {
            Ok((stream, address)) => {
                let guard = Guard::enter(&app);
                // Whoever runs the service sees it also when it is full.
                if guard.is_over() && door.doors != Doors::Operator {
                    app.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
                    // What is encrypted would have to be agreed on first. And those who wait to be told are not more
                    // than a few: the others find the connection closed.
                    let place = Arc::clone(&turned_away).try_acquire_owned();
                    if let (None, Ok(place)) = (&door.tls, place) {
                        connections.spawn(turn_away(guard, stream, place, stopping.clone()));
                    }
                    continue;
                }
                let peer = Peer { address: Some(address.ip()), encrypted: door.tls.is_some() };
                let serving =
                    connection(guard, door.doors, door.tls.clone(), stream, peer, stopping.clone());
                connections.spawn(serving);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(door.listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIME_MAX, drained).await.is_err() {
        tracing::warn!("some connections were cut off: they did not end in time");
    }
}

async fn connection(
    guard: Guard,
    doors: Doors,
    tls: Option<Tls>,
    stream: TcpStream,
    peer: Peer,
    stopping: watch::Receiver<bool>,
) {
    // Answers are written whole: waiting to fill a packet only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket does not take TCP_NODELAY");
    }
    let app = Arc::clone(&guard.0);
    match tls {
        None => lane::serve(app, doors, stream, peer, stopping).await,
        Some(Tls(acceptor)) => {
            match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
                // Boxed, or every connection would be as large as an encrypted one.
                Ok(Ok(stream)) => Box::pin(lane::serve(app, doors, stream, peer, stopping)).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        }
    }
}

/// Counts a connection while it is open.
struct Guard(Arc<App>);

impl Guard {
    fn enter(app: &Arc<App>) -> Self {
        app.metrics.connections_open.fetch_add(1, Ordering::Relaxed);
        app.metrics.connections_total.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(app))
    }

    fn is_over(&self) -> bool {
        let open = self.0.metrics.connections_open.load(Ordering::Relaxed);
        usize::try_from(open).unwrap_or(0) > self.0.settings.connections_max
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.metrics.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection too many gets a clear answer instead of a queue.
async fn turn_away(
    guard: Guard,
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    stopping: watch::Receiver<bool>,
) {
    let app = Arc::clone(&guard.0);
    // Its place is free for others while it reads the answer.
    drop(guard);
    let text = "too many connections are open; try again shortly";
    let request_id = app.next_request_id();
    let mut reply = ApiError::unavailable(text).into_reply(request_id);
    request_id.put(&mut reply.head);
    lane::turn_away(&app, stream, reply, stopping).await;
}

//! Listeners: accept, encrypt if configured, serve, and stop without breaking requests under way.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::fast_path;
use crate::load_shedding::TICK_EVERY;
use crate::peer::Peer;
use crate::server::{Phase, Server};
use crate::service::{Refusal, Service};
use crate::slots::{Slot, SlotLimits};

/// Maximum time of a TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum time for all connections to finish once the service stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(25);
/// Pause after an accept that failed for lack of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Size of the system's send buffer for a client that does not read; twice that with its own overhead. It exceeds
/// nearly every answer, and allows a few megabytes a second over the longest distance.
const SEND_BUFFER_BYTES: usize = 256 << 10;

/// Maximum number of waiting connections that are accepted when the service stops: more than a backlog holds.
const WAITING_MAX: usize = 4_096;

/// Maximum number of connections beyond the limit that are being refused with an answer, on one listener.
const TURNED_AWAY_MAX: usize = 256;

/// A socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    pub socket: TcpListener,
    pub tls: Option<Tls>,
    /// True if this one measures how late the service is; one of a service's listeners does.
    pub measures_load: bool,
}

/// Encryption for a listener.
#[derive(Clone)]
pub struct Tls(pub TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Serves a listener until the service stops, keeps accepting connections for the drain time, and waits for what is
/// under way.
pub async fn run<T: Service>(service: Arc<T>, listener: Listener, stopping: CancellationToken) {
    let Listener { socket, tls, measures_load } = listener;
    bound_send_buffers(&socket);
    let (phase, watched) = watch::channel(Phase::Serving);
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let connections = JoinSet::new();
    let server = Arc::clone(service.server());
    let mut gate = Acceptor { service, tls, phase: watched, turned_away, connections };
    let mut tick = tokio::time::interval(TICK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut end = None;
    loop {
        // All of these can be dropped half-way without loss. If several are ready, one is chosen at random, so that
        // none waits for another for long: neither new clients for those that leave, nor the tick for either.
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, address)) => gate.take(stream, address),
                Err(error) => {
                    tracing::warn!(event = "connection.accept_failed", %error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = stopping.cancelled(), if end.is_none() => {
                server.note_stop();
                phase.send_replace(Phase::Draining);
                end = Some(Instant::now());
            }
            () = elapsed(end, server.settings.drain) => break,
            Some(_) = gate.connections.join_next() => {}
            due = tick.tick(), if measures_load => server.load.note_tick(due, Instant::now()),
        }
    }
    if let Err(error) = gate.take_waiting(socket) {
        let event = "connection.accept_failed";
        tracing::warn!(event, %error, "connections that waited could not be accepted");
    }
    phase.send_replace(Phase::Closing);
    let drained = async { while gate.connections.join_next().await.is_some() {} };
    let until = end.unwrap_or_else(Instant::now) + STOP_TIME_MAX;
    if tokio::time::timeout_at(until, drained).await.is_err() {
        let event = "connection.cut_at_stop";
        tracing::warn!(event, "some connections were cut off: they did not end in time");
    }
}

/// Returns some time after a moment; never if there was none.
async fn elapsed(since: Option<Instant>, time: Duration) {
    match since {
        Some(since) => tokio::time::sleep_until(since + time).await,
        None => std::future::pending().await,
    }
}

/// Connections inherit it. By default, the system keeps up to megabytes for every client that does not read.
fn bound_send_buffers(listener: &TcpListener) {
    let set = rustix::net::sockopt::set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES);
    if let Err(error) = set {
        tracing::debug!(event = "listener.option_failed", %error, "a listener does not take SO_SNDBUF");
    }
}

/// The handling of new connections.
struct Acceptor<T> {
    service: Arc<T>,
    tls: Option<Tls>,
    phase: watch::Receiver<Phase>,
    turned_away: Arc<Semaphore>,
    connections: JoinSet<()>,
}

impl<T: Service> Acceptor<T> {
    fn take(&mut self, stream: TcpStream, address: SocketAddr) {
        let Self { service, tls, phase, turned_away, connections } = self;
        let peer = Peer { address: Some(address.ip()), encrypted: tls.is_some() };
        match OpenConnection::enter(service.server(), service.limits_connections(), address.ip()) {
            Ok(guard) => {
                let (service, tls, phase) = (Arc::clone(service), tls.clone(), phase.clone());
                // Created where it is awaited: a future that is moved in would be stored twice.
                connections.spawn(async move {
                    let _guard = guard;
                    connection(service, tls, stream, peer, phase).await;
                });
            }
            Err(why) => {
                // Encryption would have to be negotiated first. And only a few refused clients wait for the answer:
                // the others find the connection closed.
                let place = Arc::clone(turned_away).try_acquire_owned();
                if let (None, Ok(place)) = (tls, place) {
                    let service = Arc::clone(service);
                    connections.spawn(refuse_connection(
                        service,
                        stream,
                        why,
                        place,
                        phase.clone(),
                    ));
                }
            }
        }
    }

    /// Accepts the connections that wait already. The runtime may not have been notified of them yet, so the system is
    /// asked.
    fn take_waiting(&mut self, listener: TcpListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        for _ in 0..WAITING_MAX {
            match listener.accept() {
                Ok((stream, address)) => {
                    stream.set_nonblocking(true)?;
                    self.take(TcpStream::from_std(stream)?, address);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // This client has gone; others wait.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Serves one connection, encrypted or not.
pub(crate) async fn connection<T: Service>(
    service: Arc<T>,
    tls: Option<Tls>,
    stream: TcpStream,
    peer: Peer,
    phase: watch::Receiver<Phase>,
) {
    // Answers are written as a whole: waiting to fill a packet only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(event = "connection.option_failed", %error, "a socket does not take TCP_NODELAY");
    }
    match tls {
        None => fast_path::serve(service, stream, peer, phase).await,
        Some(Tls(acceptor)) => {
            match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
                // Boxed, or every connection would be as large as an encrypted one.
                Ok(Ok(stream)) => {
                    Box::pin(fast_path::serve(service, stream, peer, phase)).await;
                }
                Ok(Err(error)) => {
                    tracing::debug!(event = "tls.handshake_failed", %error, "a TLS handshake failed");
                }
                Err(_) => tracing::debug!(
                    event = "tls.handshake_timed_out",
                    "a TLS handshake took too long"
                ),
            }
        }
    }
}

/// Counts a connection while it is open.
struct OpenConnection {
    server: Arc<Server>,
    /// The place of its source. A proxy stands for many clients, and the operators' listener accepts them even if the
    /// others are full.
    _slot: Option<Slot>,
}

impl OpenConnection {
    /// A slot for a connection.
    ///
    /// # Errors
    /// The message for a client that gets no slot.
    fn enter(server: &Arc<Server>, limited: bool, address: IpAddr) -> Result<Self, &'static str> {
        let Server { counters, settings, .. } = &**server;
        counters.total.fetch_add(1, Ordering::Relaxed);
        counters.open.fetch_add(1, Ordering::Relaxed);
        let mut guard = Self { server: Arc::clone(server), _slot: None };
        if !limited {
            return Ok(guard);
        }
        let open = usize::try_from(counters.open.load(Ordering::Relaxed)).unwrap_or(0);
        if open > settings.connections_max {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err("too many connections are open; try again shortly");
        }
        if !settings.proxies.trusts(address.to_canonical()) {
            let max = SlotLimits { all: usize::MAX, source: settings.connections_per_source_max };
            guard._slot = Some(server.sources.take(Some(address), max).ok_or_else(|| {
                counters.refused_source.fetch_add(1, Ordering::Relaxed);
                "too many connections are open from your address; use those you have, or try again shortly"
            })?);
        }
        Ok(guard)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.server.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a connection beyond the limit instead of queueing it. Its slot is free for others while it reads that.
async fn refuse_connection<T: Service>(
    service: Arc<T>,
    stream: TcpStream,
    why: &'static str,
    _place: OwnedSemaphorePermit,
    phase: watch::Receiver<Phase>,
) {
    let reply = service.refuse(Refusal::TooManyConnections, why, "");
    let server = service.server();
    fast_path::refuse_connection(&server.counters, stream, reply, server.clock.now(), phase).await;
}

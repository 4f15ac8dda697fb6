//! Listeners: accept, encrypt where asked, serve, and stop without breaking anything under way.

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

use crate::app::App;
use crate::error::ApiError;
use crate::lane;
use crate::peer::Peer;
use crate::places::{Place, PlaceLimits};
use crate::pressure::PULSE_EVERY;
use crate::service::Doors;

/// A TLS handshake that takes longer is given up.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long all connections may take to finish once the service stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(25);
/// After an accept that failed for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the system keeps for a client that does not read; twice that with its own overhead. More than nearly every
/// answer, and a few megabytes a second over the widest ocean.
const SEND_BUFFER_BYTES: usize = 256 << 10;

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

/// How far the end of the service has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// New connections are still taken; every answer is its connection's last.
    Draining,
    /// Connections without a request under way end.
    Closing,
}

/// Comes back when the end has come so far.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The sender going away means the same.
    drop(phase.wait_for(|phase| *phase >= wanted).await);
}

/// Serves a listener until the service stops, goes on taking connections for the drain time, and waits for what is
/// under way.
pub async fn run(app: Arc<App>, door: Door, stopping: CancellationToken) {
    let Door { listener, doors, tls } = door;
    bound_send_buffers(&listener);
    let (phase, watched) = watch::channel(Phase::Serving);
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let connections = JoinSet::new();
    let mut gate = Gate { app, doors, tls, phase: watched, turned_away, connections };
    let mut pulse = tokio::time::interval(PULSE_EVERY);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut end = None;
    loop {
        // All of these lose nothing when dropped half-way. Which comes first when several are ready is left to
        // chance, so that none waits for another for long: not new clients for those that leave, nor the pulse for
        // either.
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => gate.take(stream, address),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = stopping.cancelled(), if end.is_none() => {
                gate.app.note_stop();
                phase.send_replace(Phase::Draining);
                end = Some(Instant::now());
            }
            () = elapsed(end, gate.app.settings.drain) => break,
            Some(_) = gate.connections.join_next() => {}
            due = pulse.tick(), if doors == Doors::Main => {
                gate.app.pressure.note_pulse(due, Instant::now());
            }
        }
    }
    if let Err(error) = gate.take_waiting(listener) {
        tracing::warn!(%error, "connections that waited could not be accepted");
    }
    phase.send_replace(Phase::Closing);
    let drained = async { while gate.connections.join_next().await.is_some() {} };
    let until = end.unwrap_or_else(Instant::now) + STOP_TIME_MAX;
    if tokio::time::timeout_at(until, drained).await.is_err() {
        tracing::warn!("some connections were cut off: they did not end in time");
    }
}

/// Comes back some time after a moment; never while there was none.
async fn elapsed(since: Option<Instant>, time: Duration) {
    match since {
        Some(since) => tokio::time::sleep_until(since + time).await,
        None => std::future::pending().await,
    }
}

/// Connections inherit it. Left to itself, the system keeps up to megabytes for every client that does not read.
fn bound_send_buffers(listener: &TcpListener) {
    let set = rustix::net::sockopt::set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES);
    if let Err(error) = set {
        tracing::debug!(%error, "a listener does not take SO_SNDBUF");
    }
}

/// What a listener does with connections.
struct Gate {
    app: Arc<App>,
    doors: Doors,
    tls: Option<Tls>,
    phase: watch::Receiver<Phase>,
    turned_away: Arc<Semaphore>,
    connections: JoinSet<()>,
}

impl Gate {
    fn take(&mut self, stream: TcpStream, address: SocketAddr) {
        let Self { app, doors, tls, phase, turned_away, connections } = self;
        let peer = Peer { address: Some(address.ip()), encrypted: tls.is_some() };
        match Guard::enter(app, *doors, address.ip()) {
            Ok(guard) => {
                let serving = connection(guard, *doors, tls.clone(), stream, peer, phase.clone());
                connections.spawn(serving);
            }
            Err(why) => {
                // What is encrypted would have to be agreed on first. And those who wait to be told are not more
                // than a few: the others find the connection closed.
                let place = Arc::clone(turned_away).try_acquire_owned();
                if let (None, Ok(place)) = (tls, place) {
                    let app = Arc::clone(app);
                    connections.spawn(turn_away(app, stream, why, place, phase.clone()));
                }
            }
        }
    }

    /// Takes everybody who has connected by now, and nobody else. The runtime may not have heard of them yet, so the
    /// system is asked.
    fn take_waiting(&mut self, listener: TcpListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        loop {
            match listener.accept() {
                Ok((stream, address)) => {
                    stream.set_nonblocking(true)?;
                    self.take(TcpStream::from_std(stream)?, address);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

async fn connection(
    guard: Guard,
    doors: Doors,
    tls: Option<Tls>,
    stream: TcpStream,
    peer: Peer,
    phase: watch::Receiver<Phase>,
) {
    // Answers are written whole: waiting to fill a packet only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket does not take TCP_NODELAY");
    }
    let app = Arc::clone(&guard.app);
    match tls {
        None => lane::serve(app, doors, stream, peer, phase).await,
        Some(Tls(acceptor)) => {
            match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
                // Boxed, or every connection would be as large as an encrypted one.
                Ok(Ok(stream)) => Box::pin(lane::serve(app, doors, stream, peer, phase)).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        }
    }
}

/// Counts a connection while it is open.
struct Guard {
    app: Arc<App>,
    /// Its source's; a proxy stands for many, and whoever runs the service sees it also when it is full.
    place: Option<Place>,
}

impl Guard {
    /// A place for a connection.
    ///
    /// # Errors
    /// What to tell a client for whom there is none.
    fn enter(app: &Arc<App>, doors: Doors, address: IpAddr) -> Result<Self, &'static str> {
        let (metrics, settings) = (&app.metrics, &app.settings);
        metrics.connections_total.fetch_add(1, Ordering::Relaxed);
        metrics.connections_open.fetch_add(1, Ordering::Relaxed);
        let mut guard = Self { app: Arc::clone(app), place: None };
        if doors == Doors::Operator {
            return Ok(guard);
        }
        let open = usize::try_from(metrics.connections_open.load(Ordering::Relaxed)).unwrap_or(0);
        if open > settings.connections_max {
            metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            return Err("too many connections are open; try again shortly");
        }
        if !settings.proxies.trusts(address.to_canonical()) {
            let max = PlaceLimits { all: usize::MAX, source: settings.connections_per_source_max };
            let place = app.sources.take(Some(accounts::source_of(address)), max);
            guard.place = Some(place.ok_or_else(|| {
                metrics.connections_refused_source.fetch_add(1, Ordering::Relaxed);
                "too many connections are open from your address; use those you have, or try again shortly"
            })?);
        }
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.app.metrics.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection too many gets a clear answer instead of a queue. Its place is free for others while it reads that.
async fn turn_away(
    app: Arc<App>,
    stream: TcpStream,
    why: &'static str,
    _place: OwnedSemaphorePermit,
    phase: watch::Receiver<Phase>,
) {
    let request_id = app.next_request_id();
    let mut reply = ApiError::unavailable(why).into_reply(request_id);
    request_id.put(&mut reply.head);
    lane::turn_away(&app.metrics, stream, reply, app.clock.now(), phase).await;
}

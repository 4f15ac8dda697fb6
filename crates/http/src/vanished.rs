//! Detection of vanished clients: the machine or the network in between failed, without any notification.
//!
//! A stream may have nothing to send for a minute, and the system retransmits unacknowledged bytes for a quarter of an
//! hour. So keep-alive probes the client's system while nothing is sent, and bytes sent have to be acknowledged within
//! [`ACK_TIME_MAX`]: together at most 40 s pass (S11). A client that does not read is a different case: its system
//! answers, only its window is closed, and it gets a longer timeout ([`crate::timeout`]). The kernel would treat both
//! alike, so its timeout is disabled while everything sent is acknowledged and the window is closed. Unsent bytes,
//! which a socket option makes visible, are a sign of that, so the system is queried ([`SockDiag`]); a vanished client
//! can have them too, since nothing is acknowledged. A system that does not answer such queries causes one warning;
//! there, the timeout is disabled while bytes are unsent, and a vanished client is dropped after the same time without
//! progress as one that does not read.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::Context;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::sock_diag::SockDiag;

/// Maximum time for a client's system to acknowledge. Twice this is within 40 s: a byte may be sent just before the
/// preceding silence was long enough.
const ACK_TIME_MAX: Duration = Duration::from_secs(18);
/// Time of silence before the client's system is probed, and interval of probes.
const ASK_AFTER: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_secs(4);
/// The number of probes only matters while the timeout is disabled.
const ASKS_MAX: u32 = 3;
/// Interval of checks while bytes are unsent. The first one is early enough before the timeout.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Number of unsent bytes below which the socket counts as writable: it must have none.
const UNSENT_BYTES_MAX: u32 = 1;

/// Monitors the client of a connection.
#[derive(Debug, Default)]
pub(crate) struct PeerWatch {
    /// True if bytes were unsent at the last check.
    behind: AtomicBool,
    /// True if the timeout is disabled because the client's window is closed. Locked while the option is set: two
    /// checks may run at once, and the option has to match this value.
    waits: Mutex<bool>,
}

impl PeerWatch {
    /// Starts monitoring. If the system refuses the options, vanished clients are noticed late.
    pub(crate) fn begin(stream: &TcpStream) -> Self {
        if let Err(error) = set_options(stream) {
            tracing::debug!(event = "connection.option_failed", %error, "a socket does not take options of keep-alive");
        }
        Self::default()
    }

    /// Checks many connections with one system call, and queries the reason for unsent bytes. To be called a few
    /// seconds after a write, and again while any connection is behind.
    pub(crate) fn look_at_all(watched: &[(&Self, &TcpStream)]) {
        let unsent = are_unsent(watched.iter().map(|(_, stream)| *stream));
        let mut diag = None;
        for ((watch, stream), behind) in watched.iter().zip(unsent) {
            watch.behind.store(behind, Ordering::Relaxed);
            let asked = behind.then(|| diag.get_or_insert_with(SockDiag::open));
            watch.set_waits(stream, asked.is_some_and(|diag| waits_for_window(diag, stream)));
        }
    }

    /// True if bytes were unsent at the last check.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    fn set_waits(&self, stream: &TcpStream, waits: bool) {
        let mut waited = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits == std::mem::replace(&mut *waited, waits) {
            return;
        }
        let time = if waits { Duration::ZERO } else { ACK_TIME_MAX };
        if let Err(error) = set_tcp_user_timeout(stream, millis(time)) {
            tracing::debug!(event = "connection.option_failed", %error, "a socket does not take TCP_USER_TIMEOUT");
        }
    }
}

/// Checks by a connection's own task.
#[derive(Debug)]
pub(crate) struct Looks {
    watch: Arc<PeerWatch>,
    /// Time of the next check, if bytes were unsent.
    again: Option<Pin<Box<Sleep>>>,
}

impl Looks {
    pub(crate) fn new(watch: Arc<PeerWatch>) -> Self {
        Self { watch, again: None }
    }

    /// To be called after a write, or after a failed attempt.
    pub(crate) fn note_write(&mut self, stream: &TcpStream, context: &mut Context<'_>) {
        if self.again.is_none() && are_unsent([stream].into_iter()) == [true] {
            self.again = Some(Box::pin(sleep(LOOK_EVERY)));
        }
        self.poll(stream, context);
    }

    /// Checks if it is time to, and schedules the next check.
    pub(crate) fn poll(&mut self, stream: &TcpStream, context: &mut Context<'_>) {
        while let Some(again) = &mut self.again {
            if again.as_mut().poll(context).is_pending() {
                return;
            }
            PeerWatch::look_at_all(&[(&self.watch, stream)]);
            self.again = self.watch.is_behind().then(|| Box::pin(sleep(LOOK_EVERY)));
        }
    }
}

/// For each connection, true if bytes were written and not sent.
fn are_unsent<'a>(streams: impl Iterator<Item = &'a TcpStream>) -> Vec<bool> {
    let mut sockets: Vec<PollFd<'_>> =
        streams.map(|stream| PollFd::new(stream, PollFlags::OUT)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Without a result, connections count as not behind.
    let looked = poll(&mut sockets, Some(&now)).is_ok();
    sockets.iter().map(|socket| looked && socket.revents().is_empty()).collect()
}

/// True if bytes are unsent because of the client's window. If the system does not answer, they may be.
fn waits_for_window(diag: &io::Result<SockDiag>, stream: &TcpStream) -> bool {
    let asked = diag.as_ref().map_err(io::Error::to_string);
    let asked =
        asked.and_then(|diag| diag.waits_for_window(stream).map_err(|error| error.to_string()));
    asked.unwrap_or_else(|error| {
        // A broken connection is no reason for a warning.
        if stream.peer_addr().is_ok() {
            warn_once(&error);
        }
        true
    })
}

/// Warns once per process that the system does not report why connections wait.
fn warn_once(error: &str) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            event = "connection.diag_refused",
            error,
            "the system does not say what connections wait for (netlink's sock_diag), so the stream of a client that \
             has vanished may be held for longer than 40 s"
        );
    });
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, ASK_AFTER)?;
    set_tcp_keepintvl(stream, ASK_EVERY)?;
    set_tcp_keepcnt(stream, ASKS_MAX)?;
    set_tcp_user_timeout(stream, millis(ACK_TIME_MAX))?;
    SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle, tcp_user_timeout};
    use socket2::SockFilter;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    /// Returns from a packet filter with nothing of the packet left.
    const DROP_ALL: SockFilter = SockFilter::new(6, 0, 0, 0);

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        (server, client)
    }

    fn ack_time(server: &TcpStream) -> u32 {
        tcp_user_timeout(server).unwrap()
    }

    /// Checks a connection repeatedly until a condition holds.
    async fn look_until(watch: &PeerWatch, server: &TcpStream, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        loop {
            PeerWatch::look_at_all(&[(watch, server)]);
            if holds() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "never");
            sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_not_taken_for_one_that_has_vanished() {
        let (mut server, client) = connected().await;
        let watch = PeerWatch::begin(&server);
        assert!(socket_keepalive(&server).unwrap());
        assert_eq!(tcp_keepidle(&server).unwrap(), ASK_AFTER);
        server.write_all(b"hello").await.unwrap();
        look_until(&watch, &server, || !watch.is_behind()).await;
        assert_eq!(ack_time(&server), millis(ACK_TIME_MAX), "it was sent");
        // Fills the client's window.
        let piece = vec![0; 1 << 16];
        while timeout(Duration::from_millis(200), server.write_all(&piece)).await.is_ok() {}
        look_until(&watch, &server, || ack_time(&server) == 0).await;
        assert!(watch.is_behind(), "it is looked at again");
        let (mut reader, _writer) = client.into_split();
        let reading = tokio::spawn(async move {
            let mut read = vec![0; 1 << 16];
            while reader.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {}
        });
        look_until(&watch, &server, || !watch.is_behind()).await;
        assert_eq!(ack_time(&server), millis(ACK_TIME_MAX));
        drop(server);
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn one_that_has_vanished_is_not_waited_for_though_bytes_are_unsent() {
        let (mut server, client) = connected().await;
        let watch = PeerWatch::begin(&server);
        server.write_all(b"hello").await.unwrap();
        look_until(&watch, &server, || !watch.is_behind()).await;
        // From here on nothing reaches the client, and nothing is acknowledged.
        SockRef::from(&client).attach_filter(&[DROP_ALL]).unwrap();
        let begun = Instant::now();
        while !watch.is_behind() {
            assert!(begun.elapsed() < Duration::from_secs(60), "all was sent");
            server.write_all(b"more").await.unwrap();
            sleep(Duration::from_millis(50)).await;
            PeerWatch::look_at_all(&[(&watch, &server)]);
        }
        assert_eq!(ack_time(&server), millis(ACK_TIME_MAX), "the time counts");
    }

    #[tokio::test]
    async fn a_task_looks_again_while_bytes_are_unsent() {
        let (mut server, _client) = connected().await;
        let watch = Arc::new(PeerWatch::begin(&server));
        let mut looks = Looks::new(Arc::clone(&watch));
        let piece = vec![0; 1 << 16];
        while timeout(Duration::from_millis(200), server.write_all(&piece)).await.is_ok() {}
        // As a task that nothing else wakes.
        let mut writes = true;
        let watched = std::future::poll_fn(|context| {
            if std::mem::take(&mut writes) {
                looks.note_write(&server, context);
            } else {
                looks.poll(&server, context);
            }
            match ack_time(&server) {
                0 => std::task::Poll::Ready(()),
                _ => std::task::Poll::Pending,
            }
        });
        timeout(Duration::from_secs(60), watched).await.unwrap();
    }
}

//! Noticing a client that has vanished: its machine or the network between is gone, and nothing says so.
//!
//! A stream may have nothing to send for a minute, and what is sent to nobody is sent again by the system for a quarter
//! of an hour. So the client's system is asked for a sign of life while nothing is sent, and what it was sent has to be
//! acknowledged within [`ACK_TIME_MAX`]: together at most 40 s pass (S11). A client that does not read is another
//! matter: its system answers, only its window is closed, and it is waited for longer ([`crate::timeout`]). The kernel
//! would count both alike, so the time does not count while all that was sent is acknowledged and the window is closed.
//! Where bytes are unsent, which an option makes visible, that may be so, and the system is asked ([`SockDiag`]); to
//! one that has vanished little is sent as well, since nothing is acknowledged. A system that does not answer is warned
//! of once; there, the time does not count while bytes are unsent, and a client that has vanished is given up when it
//! has taken nothing for as long as one that does not read.

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

/// How long a client's system may take to acknowledge. Twice this is within 40 s: a byte may leave just before the
/// silence before it was long enough.
const ACK_TIME_MAX: Duration = Duration::from_secs(18);
/// How long nothing is heard before the client's system is asked, and how often it is.
const ASK_AFTER: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_secs(4);
/// The number of questions counts only where the time does not.
const ASKS_MAX: u32 = 3;
/// How often a client is looked at that bytes are unsent to. The first time is soon enough before the time is over.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Bytes that may be unsent while the socket counts as writable: none.
const UNSENT_BYTES_MAX: u32 = 1;

/// Watches the client of a connection.
#[derive(Debug, Default)]
pub(crate) struct PeerWatch {
    /// Whether bytes were unsent when it was last looked.
    behind: AtomicBool,
    /// Whether the client is waited for, as its window is closed. Held while the option is set: two may look at once,
    /// and the option has to be as this says.
    waits: Mutex<bool>,
}

impl PeerWatch {
    /// Begins to watch. Where the system refuses, clients that vanish are noticed late.
    pub(crate) fn begin(stream: &TcpStream) -> Self {
        if let Err(error) = set_options(stream) {
            tracing::debug!(event = "connection.option_failed", %error, "a socket does not take options of keep-alive");
        }
        Self::default()
    }

    /// To be called a few seconds after something was written, and again for as long as one is behind: looks at many
    /// connections with one call of the system, and asks what those wait for that bytes are unsent to.
    pub(crate) fn look_at_all(watched: &[(&Self, &TcpStream)]) {
        let unsent = are_unsent(watched.iter().map(|(_, stream)| *stream));
        let mut diag = None;
        for ((watch, stream), behind) in watched.iter().zip(unsent) {
            watch.behind.store(behind, Ordering::Relaxed);
            let asked = behind.then(|| diag.get_or_insert_with(SockDiag::open));
            watch.set_waits(stream, asked.is_some_and(|diag| waits_for_window(diag, stream)));
        }
    }

    /// Whether bytes were unsent when it was last looked.
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

/// The looks of a connection's own task.
#[derive(Debug)]
pub(crate) struct Looks {
    watch: Arc<PeerWatch>,
    /// When it is looked again: bytes were unsent.
    again: Option<Pin<Box<Sleep>>>,
}

impl Looks {
    pub(crate) fn new(watch: Arc<PeerWatch>) -> Self {
        Self { watch, again: None }
    }

    /// To be called after something was written, or could not be.
    pub(crate) fn note_write(&mut self, stream: &TcpStream, context: &mut Context<'_>) {
        if self.again.is_none() && are_unsent([stream].into_iter()) == [true] {
            self.again = Some(Box::pin(sleep(LOOK_EVERY)));
        }
        self.poll(stream, context);
    }

    /// Looks when it is time to, and has the task woken for the next time.
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

/// Whether there are bytes for each that were written and not sent.
fn are_unsent<'a>(streams: impl Iterator<Item = &'a TcpStream>) -> Vec<bool> {
    let mut sockets: Vec<PollFd<'_>> =
        streams.map(|stream| PollFd::new(stream, PollFlags::OUT)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What cannot be looked at is not waited for.
    let looked = poll(&mut sockets, Some(&now)).is_ok();
    sockets.iter().map(|socket| looked && socket.revents().is_empty()).collect()
}

/// Whether bytes are unsent for the client's window. Where the system does not say, they may be.
fn waits_for_window(diag: &io::Result<SockDiag>, stream: &TcpStream) -> bool {
    let asked = diag.as_ref().map_err(io::Error::to_string);
    let asked =
        asked.and_then(|diag| diag.waits_for_window(stream).map_err(|error| error.to_string()));
    asked.unwrap_or_else(|error| {
        // Of a connection that is broken there is nothing to say.
        if stream.peer_addr().is_ok() {
            warn_once(&error);
        }
        true
    })
}

/// Says once for the whole process that the system does not say what connections wait for.
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

    /// Looks at a connection until something holds.
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
        // Until its window is closed.
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
        // From here on nothing reaches it, and nothing is acknowledged.
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

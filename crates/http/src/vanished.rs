//! Noticing a client that has vanished: its machine or the network between is gone, and nothing says so.
//!
//! A stream may have nothing to send for a minute, and what is sent to nobody is sent again by the system for a quarter
//! of an hour. So the client's system is asked for a sign of life while nothing is sent, and what it was sent has to be
//! acknowledged within [`ACK_TIME_MAX`]: together at most 40 s pass (S11). A client that does not read is another
//! matter: its system answers, only its window is closed, and it is waited for longer ([`crate::timeout`]). The kernel
//! would count both alike, so the time counts only while all that was written has left this machine, which the option
//! for unsent bytes makes visible.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};
use socket2::SockRef;
use tokio::net::TcpStream;

/// How long a client's system may take to acknowledge. Twice this is within 40 s: a byte may leave just before the
/// silence before it was long enough.
const ACK_TIME_MAX: Duration = Duration::from_secs(18);
/// How long nothing is heard before the client's system is asked, and how often it is.
const ASK_AFTER: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_secs(4);
/// The number of questions counts only where the time does not.
const ASKS_MAX: u32 = 3;
/// Bytes that may be unsent while the socket counts as writable: none.
const UNSENT_BYTES_MAX: u32 = 1;

/// Watches the client of a connection.
#[derive(Debug, Default)]
pub(crate) struct PeerWatch {
    /// Whether bytes were unsent when it was last looked. Held while the option is set: two may look at once, and the
    /// option has to be as this says.
    behind: Mutex<bool>,
}

impl PeerWatch {
    /// Begins to watch. Where the system refuses, clients that vanish are noticed late.
    pub(crate) fn begin(stream: &TcpStream) -> Self {
        if let Err(error) = set_options(stream) {
            tracing::debug!(event = "connection.option_failed", %error, "a socket does not take options of keep-alive");
        }
        Self::default()
    }

    /// To be called after something was written, or could not be.
    pub(crate) fn look(&self, stream: &TcpStream) {
        Self::look_at_all(&[(self, stream)]);
    }

    /// The same for many connections, with one call of the system.
    pub(crate) fn look_at_all(watched: &[(&Self, &TcpStream)]) {
        let mut sockets: Vec<PollFd<'_>> =
            watched.iter().map(|(_, stream)| PollFd::new(*stream, PollFlags::OUT)).collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let looked = poll(&mut sockets, Some(&now)).is_ok();
        for ((watch, stream), socket) in watched.iter().zip(&sockets) {
            // What cannot be looked at is not waited for.
            watch.note(stream, looked && socket.revents().is_empty());
        }
    }

    /// Notes whether bytes are unsent.
    fn note(&self, stream: &TcpStream, behind: bool) {
        let mut was_behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if behind == std::mem::replace(&mut *was_behind, behind) {
            return;
        }
        let time = if behind { Duration::ZERO } else { ACK_TIME_MAX };
        if let Err(error) = set_tcp_user_timeout(stream, millis(time)) {
            tracing::debug!(event = "connection.option_failed", %error, "a socket does not take TCP_USER_TIMEOUT");
        }
    }
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
    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle, tcp_user_timeout};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_not_taken_for_one_that_has_vanished() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let watch = PeerWatch::begin(&server);
        assert!(socket_keepalive(&server).unwrap());
        assert_eq!(tcp_keepidle(&server).unwrap(), ASK_AFTER);
        let ack_time = |server: &TcpStream| tcp_user_timeout(server).unwrap();
        server.write_all(b"hello").await.unwrap();
        watch.look(&server);
        assert_eq!(ack_time(&server), millis(ACK_TIME_MAX), "it was sent");
        // Until its window is closed.
        let piece = vec![0; 1 << 16];
        while timeout(Duration::from_millis(200), server.write_all(&piece)).await.is_ok() {}
        watch.look(&server);
        assert_eq!(ack_time(&server), 0, "it is waited for");
        let (mut reader, _writer) = client.into_split();
        let reading = tokio::spawn(async move {
            let mut read = vec![0; 1 << 16];
            while reader.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {}
        });
        let begun = std::time::Instant::now();
        while ack_time(&server) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "never sent");
            sleep(Duration::from_millis(10)).await;
            watch.look(&server);
        }
        drop(server);
        reading.await.unwrap();
    }
}

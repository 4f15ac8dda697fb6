//! A connection with two writers: its own task, and a task that sends to many connections at the same time.
//!
//! Waking a task for every few hundred bytes costs about as much as sending them. So an endless answer may hand its
//! socket to the producer of its bytes ([`DirectSocket`]), which writes them while the task waits for something to
//! send. The producer ensures that the two never write at the same time, and leaves to the task the bytes that the
//! socket does not accept.

use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::sendfile;
use crate::vanished::PeerWatch;

/// The socket of a connection whose task waits for something to send.
#[derive(Clone, Debug)]
pub struct DirectSocket {
    stream: Arc<TcpStream>,
    watch: Arc<PeerWatch>,
}

impl DirectSocket {
    pub(crate) fn new(stream: Arc<TcpStream>, watch: Arc<PeerWatch>) -> Self {
        Self { stream, watch }
    }

    /// Writes as many bytes as the socket accepts now, and returns their number. A broken connection accepts none,
    /// which its task finds out.
    ///
    /// [`DirectSocket::look_at_all`] has to follow, within a few seconds.
    pub fn send_now(&self, bytes: &[u8]) -> usize {
        sendfile::send_now(&self.stream, bytes).unwrap_or(0)
    }

    /// The file descriptor.
    pub fn number(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// True if bytes were unsent at the last check: another check has to follow.
    pub fn is_behind(&self) -> bool {
        self.watch.is_behind()
    }

    /// Checks which of these clients do not read, so that they are not taken for vanished ones. A check after each
    /// write would take a tenth of the time of the writes.
    pub fn look_at_all<'a>(sockets: impl Iterator<Item = &'a Self>) {
        let watched: Vec<_> = sockets.map(|socket| (&*socket.watch, &*socket.stream)).collect();
        PeerWatch::look_at_all(&watched);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::{Duration, Instant};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::sendfile::Socket as _;

    #[tokio::test]
    async fn what_a_socket_does_not_take_at_once_is_left_to_its_task() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let watch = Arc::new(PeerWatch::begin(&server));
        let (mut own, shared) = server.share();
        let direct = DirectSocket::new(shared.unwrap(), watch);
        let bytes: Vec<u8> = (0..1 << 20).map(|n| u8::try_from(n % 251).unwrap()).collect();
        // Fills the client's window.
        let mut sent = 0;
        loop {
            let some = direct.send_now(&bytes[sent % bytes.len()..]);
            sent += some;
            if some == 0 {
                break;
            }
        }
        assert!(sent > 0);
        let ack_time = || rustix::net::sockopt::tcp_user_timeout(&*direct.stream).unwrap();
        assert_ne!(ack_time(), 0);
        let begun = Instant::now();
        while ack_time() != 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not waited for");
            sleep(Duration::from_millis(10)).await;
            DirectSocket::look_at_all([&direct].into_iter());
        }
        assert!(direct.is_behind());
        let writing = tokio::spawn(async move {
            own.write_all(b"the rest").await.unwrap();
            own.shutdown().await.unwrap();
            own
        });
        let mut read = Vec::new();
        let reading = client.read_to_end(&mut read);
        timeout(Duration::from_secs(60), reading).await.unwrap().unwrap();
        let mut own = writing.await.unwrap();
        assert_eq!(read.len(), sent + b"the rest".len());
        assert!(read.ends_with(b"the rest"));
        assert!(read[..sent].iter().zip(bytes.iter().cycle()).all(|(one, other)| one == other));
        // Both see the client's end.
        drop(client);
        let mut held = Vec::new();
        let end = poll_fn(|context| own.poll_receive::<16>(&mut held, context));
        assert!(timeout(Duration::from_secs(60), end).await.unwrap().is_ok_and(|read| read == 0));
        assert_eq!(direct.send_now(b"more"), 0);
    }
}

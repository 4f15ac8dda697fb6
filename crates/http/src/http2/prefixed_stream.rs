//! A stream whose first bytes were already read, and which reports its waits. From its first answer without an end on,
//! its client is watched, because it may vanish while there is nothing to send (S11).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::waits::Waits;
use crate::sendfile::Socket;
use crate::vanished::{Looks, PeerWatch};

#[derive(Debug)]
pub(crate) struct PrefixedStream<S> {
    first: Bytes,
    stream: S,
    /// Notified of reads and writes.
    waits: Arc<Waits>,
    /// Set once the client is watched.
    looks: Option<Looks>,
}

impl<S: Socket> PrefixedStream<S> {
    /// A stream that records its waits in `waits`.
    pub(crate) fn new(first: Bytes, stream: S, waits: Arc<Waits>) -> Self {
        Self { first, stream, waits, looks: None }
    }

    fn note_write(&mut self, done: bool, context: &mut Context<'_>) {
        self.waits.note_write(done);
        if self.waits.has_streamed() {
            let tcp = self.stream.tcp();
            let begin = || Looks::new(Arc::new(PeerWatch::begin(tcp)));
            self.looks.get_or_insert_with(begin).note_write(tcp, context);
        }
    }

    /// Checks the client if that is due. The connection's task is woken then, and reads or flushes in any case.
    fn look(&mut self, context: &mut Context<'_>) {
        if let Some(looks) = &mut self.looks {
            looks.poll(self.stream.tcp(), context);
        }
    }
}

impl<S: Socket> AsyncRead for PrefixedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = if self.first.is_empty() {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        } else {
            let taken = self.first.len().min(buffer.remaining());
            buffer.put_slice(self.first.get(..taken).unwrap_or_default());
            self.first.advance(taken);
            Poll::Ready(Ok(()))
        };
        let new = buffer.filled().get(before..).unwrap_or_default();
        if !new.is_empty() {
            self.waits.note_read(new);
        }
        self.look(context);
        read
    }
}

impl<S: Socket> AsyncWrite for PrefixedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(written.is_ready(), context);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note_write(written.is_ready(), context);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.waits.note_write(flushed.is_ready());
        self.look(context);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::net::sockopt::{socket_keepalive, tcp_user_timeout};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;
    use crate::http2::waits::tests::waits;

    #[tokio::test]
    async fn the_client_of_a_stream_is_watched_and_waited_for_while_it_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let waits = waits();
        let mut stream = PrefixedStream::new(Bytes::new(), server, Arc::clone(&waits));
        stream.write_all(b"hello").await.unwrap();
        assert!(!socket_keepalive(&stream.stream).unwrap(), "nothing goes on for long");
        waits.begin_stream();
        stream.write_all(b"hello").await.unwrap();
        assert!(socket_keepalive(&stream.stream).unwrap());
        assert_ne!(tcp_user_timeout(&stream.stream).unwrap(), 0);
        // Its window is closed, and it is checked again though nothing is received or sent.
        let piece = vec![0; 1 << 16];
        while timeout(Duration::from_millis(200), stream.write_all(&piece)).await.is_ok() {}
        let reading = std::future::poll_fn(|context| {
            let mut byte = [0];
            let read = Pin::new(&mut stream).poll_read(context, &mut ReadBuf::new(&mut byte));
            assert!(read.is_pending());
            match tcp_user_timeout(&stream.stream).unwrap() {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        });
        timeout(Duration::from_secs(60), reading).await.unwrap();
        drop(client);
    }
}

//! Ready bodies in memory that the kernel can send by itself.
//!
//! A body that is written to a socket is copied into the kernel, which for 28 KB costs a third of the whole request
//! and for 143 KB more than half. Sent from a file in memory (`memfd`, `sendfile`) it is not copied: the socket takes
//! the file's pages. One such file holds the larger bodies of an epoch, each written once, at a place of its own that
//! is never written again, so bytes on their way to a slow client cannot change. The file is freed as a whole, with
//! its epoch and its last reader: freeing parts of it earlier could zero pages that a socket still holds.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::writev;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Minimum size of such a body: below it, two calls cost more than the copy they save.
pub const FILE_BODY_BYTES_MIN: usize = 12 << 10;
/// Bodies start at page boundaries, so that no two share a page.
const PAGE_BYTES: u64 = 4 << 10;
/// Maximum size of a file: more than the bodies of all answers that are kept at the same time. Evicted answers stay in
/// the file until its epoch is over; if it is full, further bodies are copied.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The file with an epoch's bodies.
#[derive(Debug)]
pub struct BodyFile {
    file: File,
    end: AtomicU64,
}

/// A body in the file.
#[derive(Debug)]
pub struct FileBody {
    file: Arc<BodyFile>,
    from: u64,
    length: u64,
}

impl BodyFile {
    /// An empty file. `None` if the system provides none: then bodies are copied.
    pub fn open() -> Option<Arc<Self>> {
        let file = memfd_create("linesman answers", MemfdFlags::CLOEXEC).ok()?;
        Some(Arc::new(Self { file: File::from(file), end: AtomicU64::new(0) }))
    }

    /// Writes a body to a place of its own.
    pub fn put(self: &Arc<Self>, pieces: &[Bytes]) -> Option<Arc<FileBody>> {
        let length = u64::try_from(pieces.iter().map(Bytes::len).sum::<usize>()).ok()?;
        let bytes = length.next_multiple_of(PAGE_BYTES);
        let from = self.end.fetch_add(bytes, Ordering::Relaxed);
        if from + bytes > FILE_BYTES_MAX {
            self.end.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let mut at = from;
        for piece in pieces {
            self.file.write_all_at(piece, at).ok()?;
            at += u64::try_from(piece.len()).ok()?;
        }
        Some(Arc::new(FileBody { file: Arc::clone(self), from, length }))
    }
}

/// A stream that may be able to send a file body.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    const SENDS_FILES: bool = false;

    /// The type of the same socket if others may write to it, too.
    type Shared: Socket;

    /// The same socket for an answer without an end, and a second handle for writing to it, if supported.
    fn share(self) -> (Self::Shared, Option<Arc<TcpStream>>);

    /// True if something has arrived that was not read, even if the runtime was not notified of it yet.
    fn has_unread(&self) -> bool;

    /// Reads the bytes that have arrived onto the stack, and from there to the end of `held`.
    fn poll_receive<const BYTES: usize>(
        &mut self,
        held: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut space = [MaybeUninit::uninit(); BYTES];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(self).poll_read(context, &mut read))?;
        held.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Writes as much of `bytes` as the socket takes.
    fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write(context, bytes)
    }

    /// The same for bytes in several pieces.
    fn poll_send_pieces(
        &mut self,
        pieces: &[IoSlice<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write_vectored(context, pieces)
    }

    /// The underlying TCP stream.
    fn tcp(&self) -> &TcpStream;

    /// Sends `lines` and then the body from `sent` on. Both are advanced by the number of bytes sent.
    fn poll_send_file(
        &mut self,
        _lines: &mut &[u8],
        _body: &FileBody,
        _sent: &mut u64,
        _context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// An encrypted body has to be copied anyway.
impl Socket for TlsStream<TcpStream> {
    type Shared = Self;

    fn share(self) -> (Self, Option<Arc<TcpStream>>) {
        (self, None)
    }

    fn has_unread(&self) -> bool {
        self.get_ref().0.has_unread()
    }

    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

impl Socket for TcpStream {
    const SENDS_FILES: bool = true;

    type Shared = SharedTcp;

    fn share(self) -> (SharedTcp, Option<Arc<TcpStream>>) {
        let shared = Arc::new(self);
        (SharedTcp(Arc::clone(&shared)), Some(shared))
    }

    fn tcp(&self) -> &TcpStream {
        self
    }

    fn has_unread(&self) -> bool {
        has_unread(self)
    }

    fn poll_receive<const BYTES: usize>(
        &mut self,
        held: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        poll_receive::<BYTES>(self, held, context)
    }

    fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        poll_send(self, bytes, context)
    }

    fn poll_send_pieces(
        &mut self,
        pieces: &[IoSlice<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let all = pieces.iter().map(|piece| piece.len()).sum();
        loop {
            ready!(self.poll_write_ready(context))?;
            let call = || Ok(writev(&*self, pieces)?);
            if let Some(sent) = call_once(self, Interest::WRITABLE, all, call) {
                return Poll::Ready(sent);
            }
        }
    }

    fn poll_send_file(
        &mut self,
        lines: &mut &[u8],
        body: &FileBody,
        sent: &mut u64,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let left = body.length.saturating_sub(*sent);
            if left == 0 && !lines.has_remaining() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_write_ready(context))?;
            let moved = self.try_io(Interest::WRITABLE, || {
                if lines.has_remaining() {
                    let written = send_lines(self, lines)?;
                    lines.advance(written);
                    Ok(written)
                } else {
                    let mut from = body.from + *sent;
                    let left = usize::try_from(left).unwrap_or(usize::MAX);
                    let written = sendfile(&*self, &body.file.file, Some(&mut from), left)?;
                    *sent = from - body.from;
                    Ok(written)
                }
            });
            match moved {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// A socket that others can write to as well, in its task's hands ([`crate::shared_socket`]).
#[derive(Debug)]
pub(crate) struct SharedTcp(Arc<TcpStream>);

impl Socket for SharedTcp {
    type Shared = Self;

    fn share(self) -> (Self, Option<Arc<TcpStream>>) {
        let other = Arc::clone(&self.0);
        (self, Some(other))
    }

    fn has_unread(&self) -> bool {
        has_unread(&self.0)
    }

    fn poll_receive<const BYTES: usize>(
        &mut self,
        held: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        poll_receive::<BYTES>(&self.0, held, context)
    }

    fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        poll_send(&self.0, bytes, context)
    }

    fn tcp(&self) -> &TcpStream {
        &self.0
    }
}

impl AsyncRead for SharedTcp {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for SharedTcp {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        poll_send(&self.0, bytes, context)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.0).shutdown(Shutdown::Write))
    }
}

/// True if something has arrived that was not read.
fn has_unread(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(stream, &mut byte[..], flags).is_ok_and(|(_, bytes)| bytes > 0)
}

/// Reads the bytes that have arrived, at most `BYTES`.
fn poll_receive<const BYTES: usize>(
    stream: &TcpStream,
    held: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_read_ready(context))?;
        let call = || {
            let mut space = [MaybeUninit::uninit(); BYTES];
            let ((read, _), _) = recv(stream, &mut space[..], RecvFlags::DONTWAIT)?;
            held.extend_from_slice(read);
            Ok(read.len())
        };
        if let Some(read) = call_once(stream, Interest::READABLE, BYTES, call) {
            return Poll::Ready(read);
        }
    }
}

/// Writes as much as the socket takes.
fn poll_send(
    stream: &TcpStream,
    bytes: &[u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(context))?;
        let call = || send_now(stream, bytes);
        if let Some(sent) = call_once(stream, Interest::WRITABLE, bytes.len(), call) {
            return Poll::Ready(sent);
        }
    }
}

/// Writes as much as the socket takes at this moment.
pub(crate) fn send_now(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

/// Makes one system call on a socket while the runtime considers it ready. If it moved less than `wanted`, there is no
/// more for now, and the runtime need not find that out by another call. `None`: it is not ready after all.
fn call_once(
    stream: &TcpStream,
    interest: Interest,
    wanted: usize,
    mut call: impl FnMut() -> io::Result<usize>,
) -> Option<io::Result<usize>> {
    let mut moved = 0;
    let outcome = stream.try_io(interest, || {
        moved = call()?;
        if (1..wanted).contains(&moved) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => (moved > 0).then_some(Ok(moved)),
        Err(error) => Some(Err(error)),
        Ok(()) => Some(Ok(moved)),
    }
}

/// Sends header lines, and announces a body: they are sent in one packet with its beginning.
fn send_lines(stream: &TcpStream, lines: &[u8]) -> io::Result<usize> {
    Ok(send(stream, lines, SendFlags::MORE | SendFlags::NOSIGNAL)?)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    /// A read that fills its space leaves the socket ready: the rest would not be announced again.
    #[tokio::test]
    async fn what_is_longer_than_one_read_is_read_to_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        for length in [15, 16, 17, 32, 100] {
            let bytes: Vec<u8> = (0..length).collect();
            client.write_all(&bytes).await.unwrap();
            let mut held = Vec::new();
            let reading = async {
                while held.len() < bytes.len() {
                    poll_fn(|context| server.poll_receive::<16>(&mut held, context)).await.unwrap();
                }
            };
            timeout(Duration::from_secs(60), reading).await.unwrap();
            assert_eq!(held, bytes);
        }
    }

    #[test]
    fn bodies_stay_as_they_were_written_whoever_lets_go_of_others() {
        let file = BodyFile::open().unwrap();
        let bodies: Vec<Vec<u8>> = (0..4).map(|n| vec![b'a' + n; 100_000]).collect();
        let put = |body: &[u8]| {
            let (one, other) = body.split_at(7);
            file.put(&[one, other].map(Bytes::copy_from_slice)).unwrap()
        };
        let mut places: Vec<(u64, Option<Arc<FileBody>>)> =
            bodies.iter().map(|body| put(body)).map(|put| (put.from, Some(put))).collect();
        places[0].1 = None;
        places[2].1 = None;
        // A socket may still hold the pages of dropped bodies.
        for ((from, _), body) in places.iter().zip(&bodies) {
            let mut read = vec![0; body.len()];
            file.file.read_exact_at(&mut read, *from).unwrap();
            assert!(read == *body);
        }
    }

    #[test]
    fn a_file_has_a_bound_and_is_whole_below_it() {
        let file = BodyFile::open().unwrap();
        let body = [Bytes::from(vec![b'x'; 10 << 20])];
        let put = (0..10).filter(|_| file.put(&body).is_some()).count();
        assert_eq!(put, 6, "as many as fit into 64 MiB");
        assert!(file.put(&[Bytes::from_static(b"small")]).is_some(), "there is room for that");
    }
}

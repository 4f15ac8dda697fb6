//! Ready bodies in memory that the kernel can send by itself.
//!
//! A body that is written to a socket is copied into the kernel, which for 28 KB costs a third of the whole request
//! and for 143 KB more than half. Sent from a file in memory (`memfd`, `sendfile`) it is not copied: the socket takes
//! the file's pages. One such file holds the larger bodies of an epoch, each written once, at a place of its own that
//! is never written again, so what is on its way to a slow client cannot change.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create, sendfile};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Below this, two calls cost more than the copy they save.
pub(crate) const SPOOLED_BYTES_MIN: usize = 12 << 10;
/// Bodies begin at pages, so that those that go leave no shared ones behind.
const PAGE_BYTES: u64 = 4 << 10;

/// The file that an epoch's bodies are in.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    end: AtomicU64,
}

/// A body in the file. Its memory is given back when the last that send it are done.
#[derive(Debug)]
pub(crate) struct Spooled {
    spool: Arc<Spool>,
    from: u64,
    length: u64,
}

impl Spool {
    /// An empty file. `None` where the system gives none: bodies are copied then.
    pub(crate) fn open() -> Option<Arc<Self>> {
        let file = memfd_create("linesman answers", MemfdFlags::CLOEXEC).ok()?;
        Some(Arc::new(Self { file: File::from(file), end: AtomicU64::new(0) }))
    }

    /// Writes a body to a place of its own.
    pub(crate) fn put(self: &Arc<Self>, pieces: &[Bytes]) -> Option<Arc<Spooled>> {
        let length = u64::try_from(pieces.iter().map(Bytes::len).sum::<usize>()).ok()?;
        let from = self.end.fetch_add(length.next_multiple_of(PAGE_BYTES), Ordering::Relaxed);
        let spooled = Spooled { spool: Arc::clone(self), from, length };
        // Dropping what could not be written whole gives back what was.
        let mut at = from;
        for piece in pieces {
            self.file.write_all_at(piece, at).ok()?;
            at += u64::try_from(piece.len()).ok()?;
        }
        Some(Arc::new(spooled))
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let length = self.length.next_multiple_of(PAGE_BYTES);
        if let Err(error) = fallocate(&self.spool.file, hole, self.from, length) {
            // It goes with the whole file at the end of the epoch.
            tracing::debug!(%error, "a body's memory could not be given back early");
        }
    }
}

/// A stream that may know how to send a spooled body.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    const SENDS_SPOOLED: bool = false;

    /// Sends `lines` and then the body from `sent` on. Both are moved on by what was sent.
    fn poll_send_spooled(
        &mut self,
        _lines: &mut impl Buf,
        _body: &Spooled,
        _sent: &mut u64,
        _context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// What is encrypted has to be copied anyway.
impl Socket for TlsStream<TcpStream> {}

impl Socket for TcpStream {
    const SENDS_SPOOLED: bool = true;

    fn poll_send_spooled(
        &mut self,
        lines: &mut impl Buf,
        body: &Spooled,
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
                    let written = sendfile(&*self, &body.spool.file, Some(&mut from), left)?;
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

/// Sends header lines, and says that a body follows: they leave in one packet with its beginning.
fn send_lines(stream: &TcpStream, lines: &impl Buf) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); 2];
    let filled = lines.chunks_vectored(&mut slices);
    let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
    let slices = slices.get(..filled).unwrap_or_default();
    Ok(sendmsg(stream, slices, &mut SendAncillaryBuffer::default(), flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_gives_its_memory_back_and_leaves_the_others_alone() {
        use std::os::unix::fs::MetadataExt;
        let spool = Spool::open().unwrap();
        let (first, second) = (Bytes::from(vec![b'a'; 100_000]), vec![b'b'; 100_000]);
        let first_put = spool.put(&[first]).unwrap();
        let (one, other) = second.split_at(7);
        let pieces = [one, other].map(Bytes::copy_from_slice);
        let second_put = spool.put(&pieces).unwrap();
        let before = spool.file.metadata().unwrap().blocks();
        drop(first_put);
        let after = spool.file.metadata().unwrap().blocks();
        assert!(after <= before / 2, "{before} blocks before and {after} after");
        let mut read = vec![0; second.len()];
        spool.file.read_exact_at(&mut read, second_put.from).unwrap();
        assert_eq!(read, second);
    }
}

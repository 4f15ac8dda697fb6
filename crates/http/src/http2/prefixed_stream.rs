//! A stream whose first bytes were already read, and which says what it is waited for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::waits::Waits;

#[derive(Debug)]
pub(crate) struct PrefixedStream<S> {
    first: Bytes,
    stream: S,
    /// Who is notified of what comes and goes.
    waits: Arc<Waits>,
}

impl<S> PrefixedStream<S> {
    /// A stream whose time-outs are kept there.
    pub(crate) fn new(first: Bytes, stream: S, waits: Arc<Waits>) -> Self {
        Self { first, stream, waits }
    }

    fn note_write(&self, done: bool) {
        self.waits.note_write(done);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefixedStream<S> {
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
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefixedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note_write(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.note_write(flushed.is_ready());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

//! The bodies that hyper sends: with an end, or without one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::Frame;

use super::waits::{Piece, Waits};
use super::watched_stream::WatchedStream;
use crate::reply::{self, BodyStream, LongBody};

#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Piece>),
    /// Each part has a time limit like a body of its own, so that a client that does not read is cut like any other.
    Stream(WatchedStream, Arc<Waits>),
    /// The same with a length: if it ends before that, the stream is reset.
    Long(LongBody, Arc<Waits>),
}

impl Body {
    /// The body of a reply, which other holders may share.
    pub(super) fn of(body: &reply::Body, waits: &Arc<Waits>) -> Self {
        if body.is_empty() {
            return Self::empty();
        }
        let mark = waits.mark(body.unshared_bytes());
        Self::Whole(Some(Piece::new(body.clone(), mark)))
    }

    pub(super) const fn empty() -> Self {
        Self::Whole(None)
    }

    pub(super) fn stream(stream: BodyStream, waits: &Arc<Waits>) -> Self {
        waits.begin_stream();
        Self::Stream(WatchedStream::new(stream), Arc::clone(waits))
    }

    pub(super) fn long(long: LongBody, waits: &Arc<Waits>) -> Self {
        Self::Long(long, Arc::clone(waits))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        match self {
            Self::Stream(stream, waits) => {
                waits.end_stream();
                if waits.is_slow() {
                    stream.note_slow();
                }
            }
            Self::Long(long, waits) if waits.is_slow() => long.pieces.note_slow(),
            Self::Long(..) | Self::Whole(_) => {}
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Piece;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Piece>>>> {
        let piece = match self.get_mut() {
            Self::Whole(whole) => Poll::Ready(whole.take()),
            // All clients of the stream get the same bytes.
            Self::Stream(stream, waits) => {
                let part = ready!(stream.poll_next(context)).transpose();
                let bytes = match part {
                    Ok(bytes) => bytes,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                };
                let piece = |bytes| Piece::new(reply::Body::Whole(bytes), waits.mark_part());
                Poll::Ready(bytes.map(piece))
            }
            Self::Long(long, _) if long.length == 0 => Poll::Ready(None),
            Self::Long(long, waits) => {
                let Some(bytes) = ready!(long.pieces.poll_next(context)) else {
                    return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
                };
                let taken = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let Some(left) = long.length.checked_sub(taken) else {
                    return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
                };
                long.length = left;
                let mark = waits.mark(bytes.len());
                Poll::Ready(Some(Piece::new(reply::Body::Whole(bytes), mark)))
            }
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_none(),
            Self::Stream(..) => false,
            Self::Long(long, _) => long.length == 0,
        }
    }
}

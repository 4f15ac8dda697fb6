//! What hyper sends: a body that is whole, one in pieces, or one that goes on while somebody watches.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Frame;

use super::waits::{Mark, Piece, Waits};
use crate::dashboard::BoardWatch;
use crate::reply;

/// How much of a body in pieces is put together at a time: a frame as large as every client takes.
const PART_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Piece>),
    /// The pieces are shared with others who asked for the same, so no more of them than can be sent is copied.
    Parts(Parts),
    /// Each part is waited for like a body of its own, so that a watcher who does not read is cut like any reader.
    Watched(BoardWatch, Arc<Waits>),
}

#[derive(Debug)]
pub(super) struct Parts {
    pieces: Arc<[Bytes]>,
    next: usize,
    waits: Arc<Waits>,
    _mark: Mark,
}

impl Body {
    pub(super) fn of(body: &reply::Body, waits: &Arc<Waits>) -> Self {
        match body {
            reply::Body::Whole(bytes) if bytes.is_empty() => Self::empty(),
            reply::Body::Whole(bytes) => {
                let mark = waits.mark(body.unshared_bytes());
                Self::Whole(Some(Piece::new(bytes.clone(), mark)))
            }
            reply::Body::Pieces { pieces, .. } => {
                let mark = waits.mark(body.unshared_bytes());
                let (pieces, waits) = (Arc::clone(pieces), Arc::clone(waits));
                Self::Parts(Parts { pieces, next: 0, waits, _mark: mark })
            }
        }
    }

    pub(super) const fn empty() -> Self {
        Self::Whole(None)
    }

    pub(super) fn watched(watch: BoardWatch, waits: &Arc<Waits>) -> Self {
        Self::Watched(watch, Arc::clone(waits))
    }
}

impl Parts {
    fn next(&mut self) -> Option<Piece> {
        let mut part = Vec::new();
        while part.len() < PART_BYTES
            && let Some(piece) = self.pieces.get(self.next)
        {
            part.extend_from_slice(piece);
            self.next += 1;
        }
        (!part.is_empty()).then(|| {
            let mark = self.waits.mark(part.len());
            Piece::new(part.into(), mark)
        })
    }
}

impl hyper::body::Body for Body {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Whole(whole) => Poll::Ready(whole.take()),
            Self::Parts(parts) => Poll::Ready(parts.next()),
            Self::Watched(watch, waits) => {
                // All who watch get the same bytes.
                watch
                    .poll_next(context)
                    .map(|part| part.map(|bytes| Piece::new(bytes, waits.mark(0))))
            }
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_none(),
            Self::Parts(parts) => parts.next >= parts.pieces.len(),
            Self::Watched(..) => false,
        }
    }
}

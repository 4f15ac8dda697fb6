//! What hyper sends: a body that is whole, or one that goes on while somebody watches.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::Frame;

use super::waits::{Piece, Waits};
use crate::reply::{self, BodyStream};

#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Piece>),
    /// Each part is waited for like a body of its own, so that a watcher who does not read is cut like any reader.
    Stream(BodyStream, Arc<Waits>),
}

impl Body {
    /// The body of a reply whose other holders, if any, keep it for everybody.
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
        Self::Stream(stream, Arc::clone(waits))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Self::Stream(stream, waits) = self
            && waits.is_slow()
        {
            stream.note_slow();
        }
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
            // All who watch get the same bytes.
            Self::Stream(stream, waits) => stream
                .poll_next(context)
                .map(|part| part.map(|bytes| Piece::new(reply::Body::Whole(bytes), waits.mark(0)))),
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_none(),
            Self::Stream(..) => false,
        }
    }
}

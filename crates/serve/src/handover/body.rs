//! What hyper sends: a body that is whole, or one that goes on while somebody watches.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::body::Frame;

use super::waits::{Piece, Waits};
use crate::dashboard::BoardWatch;

#[derive(Debug)]
pub(super) enum Body {
    Whole(Full<Piece>),
    /// Each part is waited for like a body of its own, so that a watcher who does not read is cut like any reader.
    Watched(BoardWatch, Arc<Waits>),
}

impl Body {
    pub(super) fn whole(piece: Piece) -> Self {
        Self::Whole(Full::new(piece))
    }

    pub(super) fn watched(watch: BoardWatch, waits: &Arc<Waits>) -> Self {
        Self::Watched(watch, Arc::clone(waits))
    }
}

impl hyper::body::Body for Body {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context),
            Self::Watched(watch, waits) => watch
                .poll_next(context)
                .map(|part| part.map(|bytes| Ok(Frame::data(waits.piece(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Watched(..) => false,
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Watched(..) => hyper::body::SizeHint::default(),
        }
    }
}

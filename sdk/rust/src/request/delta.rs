//! Changes of a list since a cursor.

use std::fmt::Display;

use super::{Body, Request};
use crate::types::{Event, EventsDelta, OddsDelta, OddsRecord, ScoreRecord, ScoresDelta};

macro_rules! deltas {
    ($($item:ty => $delta:ident,)*) => {
        $(impl Body for $delta {
            fn unchanged(cursor: String, published_at: String) -> Option<Self> {
                let (upserts, removed) = (Vec::new(), Vec::new());
                Some(Self { cursor, published_at, upserts, removed, other: serde_json::Map::new() })
            }
        }

        impl Request<Vec<$item>> {
            /// The changes since `meta.cursor` of a response, or since `cursor` of the previous delta: one request,
            /// which costs no quota if nothing changed. `CursorExpired`: read the list again.
            pub fn since(self, cursor: impl Display) -> Request<$delta> {
                self.delta(cursor)
            }
        })*
    };
}

deltas! {
    OddsRecord => OddsDelta,
    ScoreRecord => ScoresDelta,
    Event => EventsDelta,
}

impl<B> Request<B> {
    fn delta<D>(mut self, cursor: impl Display) -> Request<D> {
        // The page size is not part of the selection.
        let parameters = self.query.trim_start_matches('?').split('&');
        let kept: Vec<&str> =
            parameters.filter(|one| !one.is_empty() && !one.starts_with("limit=")).collect();
        self.query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        // It is requested only once.
        self.is_cached = false;
        self.param("since", cursor).with_body()
    }
}

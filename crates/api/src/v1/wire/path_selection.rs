//! Which price paths and closing lines are asked for.

use domain::{Format, Market, RecordId, Timestamp};
use engine::{ClosingRequest, PathRequest};
use serde::{Deserialize, Serialize};

use crate::v1::wire::cursor::decode_path;

/// Which paths are asked for, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathSelection {
    pub request: PathRequest,
    pub format: Format,
    /// Points in the answer at the most.
    pub limit: usize,
    pub after: Option<PathCursor>,
}

/// Which closing lines are asked for, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClosingSelection {
    pub request: ClosingRequest,
    pub format: Format,
}

/// The last point of a page.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathCursor {
    pub(super) bookmaker: Box<str>,
    pub(super) market: Market,
    pub(super) record: RecordId,
    pub(super) published_at: Timestamp,
    pub(super) lineage: u32,
    pub(super) seq: u64,
}

impl PathCursor {
    pub(crate) fn decode(text: &str) -> Option<Self> {
        decode_path(text)
    }
}

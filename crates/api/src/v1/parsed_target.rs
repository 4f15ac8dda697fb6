//! The parsed form of a request.

use domain::{SportId, Timestamp};

use crate::answers::HashedSelector;
use crate::operation::Operation;
use crate::position::LogPosition;

/// A parsed target, before authentication.
#[derive(Clone)]
pub(crate) struct ParsedTarget {
    pub(crate) operation: Operation,
    pub(crate) sport: Option<SportId>,
    pub(crate) asked: HashedSelector,
    /// The instant whose publication is requested, if it is not the current one.
    pub(crate) as_of: Option<Timestamp>,
    /// The position from which changes are requested.
    pub(crate) since: Option<LogPosition>,
}

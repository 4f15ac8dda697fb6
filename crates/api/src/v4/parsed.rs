//! Parsed targets under `/v4`.

use crate::answers::HashedSelector;
use crate::operation::Operation;
use crate::v4::selection::Price;

/// A parsed target, independent of the key.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(super) operation: Operation,
    /// True if the sport exists whether or not it has events.
    pub(super) lasting: bool,
    pub(super) asked: HashedSelector,
    pub(super) price: Price,
}

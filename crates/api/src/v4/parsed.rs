//! What a target under `/v4` means.

use crate::answers::Asked;
use crate::operation::Operation;
use crate::v4::selection::Price;

/// What a target means, whoever asks.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(super) operation: Operation,
    /// The sport is there whether or not it has events.
    pub(super) lasting: bool,
    pub(super) asked: Asked,
    pub(super) price: Price,
}

//! Which price paths and closing lines are asked for.

use domain::Format;
use engine::{ClosingRequest, PathRequest};

/// Which paths are asked for, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathSelection {
    pub request: PathRequest,
    pub format: Format,
}

/// Which closing lines are asked for, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClosingSelection {
    pub request: ClosingRequest,
    pub format: Format,
}

//! Selections of price paths and closing lines.

use domain::Format;
use engine::{ClosingRequest, PathRequest};

/// Selection of paths, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathSelection {
    pub request: PathRequest,
    pub format: Format,
}

/// Selection of closing lines, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClosingSelection {
    pub request: ClosingRequest,
    pub format: Format,
}

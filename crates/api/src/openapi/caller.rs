//! Whom an answer is for.

/// Who asks: what an answer carries depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A client with an API key.
    Key,
    /// A feed with a token.
    Feed,
    /// Anybody.
    Anyone,
}

impl Caller {
    /// Sets answers to one kind of caller apart from those to another.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Key => "",
            Self::Feed => "Push",
            Self::Anyone => "Open",
        }
    }
}

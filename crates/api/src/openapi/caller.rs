//! Kinds of clients.

/// Kind of client; the headers and refusals of a response depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A client with an API key.
    Key,
    /// A feed with a token.
    Feed,
    /// A client without credentials.
    Anyone,
}

impl Caller {
    /// Prefix of the component names for responses to this kind of client.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Key => "",
            Self::Feed => "Push",
            Self::Anyone => "Open",
        }
    }
}

//! A file that a store has.

/// A file that is there.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: String,
    /// By the clock of the store.
    pub(crate) modified_ms: i64,
}

//! A file in a store.

/// An existing file.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: String,
    /// Modification time by the clock of the store.
    pub(crate) modified_ms: i64,
}

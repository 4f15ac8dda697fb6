//! Changes of keys among several nodes: how a node follows them, how long it may accept keys from memory, and how a
//! caller waits until a change holds everywhere.

pub(crate) mod confirm;
pub(crate) mod key_lease;
pub(crate) mod node;
pub(crate) mod register;

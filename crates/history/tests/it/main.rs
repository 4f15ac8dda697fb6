//! The archive from outside: everything written is read back, once, whatever happens meanwhile.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an integration target is nothing but tests and what they share"
)]

mod commits;
mod compaction;
mod export;
mod log;
mod paths;
mod random;
mod rows;
mod shown;
mod stores;

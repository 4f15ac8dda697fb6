//! The store against real databases. `conformance` tests the properties of both; the other modules test properties of
//! one.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an integration target is nothing but tests and what they share"
)]

mod conformance;
mod postgres;
mod sqlite;
mod test_database;
mod transfer;

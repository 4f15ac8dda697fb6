//! The store against real databases. What holds on both is in `conformance`; the other modules are about what is
//! particular to one.
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

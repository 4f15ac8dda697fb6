//! The service over real sockets: every guarantee of the interface and of the decisions (D1 to D32) has a test whose
//! name states it.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "an integration target is nothing but tests and what they share"
)]

mod agents;
mod api;
mod connection;
mod contract;
mod dashboard;
mod durable;
mod hangup;
mod harness;
mod hostile;
mod ingest;
mod openapi;
mod ops;
mod overload;
mod secrecy;
mod shared;
mod streamed;
mod test_market;
mod twins;
mod v1;
mod v4;

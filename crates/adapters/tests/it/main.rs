//! Adapters against fake upstreams over real sockets, with a real book behind them.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "an integration target is nothing but tests and what they share, and sockets run by the real clock"
)]

mod betfair;
mod exec;
mod harness;
mod poll;
mod supervisor;

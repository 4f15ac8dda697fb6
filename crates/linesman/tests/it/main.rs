//! The program itself: the binary is started, used over sockets and the command line, stopped and killed. These tests
//! cover properties visible only from outside a process: durability, recovery, the operator's contract.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an integration target is nothing but tests and what they share"
)]

mod adapters;
mod agents;
mod archive;
mod backup;
mod balancer;
mod cli;
mod cluster;
mod config;
mod crash;
mod examples;
mod formats;
mod get;
mod greeting;
mod harness;
mod history_docs;
mod hostile;
mod identities;
mod migrate;
mod numbers;
mod operators;
mod proxies;
mod record;
mod recordings;
mod restart;
mod sandbox_docs;
mod spreadsheets_docs;
mod tls;

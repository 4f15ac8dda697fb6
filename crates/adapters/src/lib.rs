//! The I/O half of the adapters: transports, scheduling and supervision. Input of upstreams is translated in
//! [`feeds::adapter`]; its further handling is here and is the same for all kinds:
//!
//! - [`schedule`] and [`ledger`] decide when to read and which parts of a read to send. They take the time as a value
//!   and do no I/O.
//! - `poll`, `exec`, `files` and `stream` are the transports.
//! - [`supervisor`] runs adapters while this node leads, and restarts those that end.

pub mod budget;
pub mod build;
mod exec;
mod fetch;
mod files;
pub mod ledger;
mod mapped;
mod poll;
pub mod report;
pub mod runner;
pub mod schedule;
mod session;
pub mod settings;
pub mod sink;
mod stream;
pub mod supervisor;
pub mod tape;
mod the_odds_api;
pub mod threads;

pub use exec::wait_for_programs;
pub use settings::{KINDS, KindRow};

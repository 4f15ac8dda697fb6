//! The I/O half of the adapters: transports, scheduling and supervision. What upstream says is translated in
//! [`feeds::adapter`]; what is done with it is decided here, in the same way for all kinds:
//!
//! - [`schedule`] and [`ledger`] decide when to read, and what of a read to send. They take the time as a value and do
//!   nothing themselves.
//! - `poll`, `exec`, `files` and `stream` are the transports.
//! - [`supervisor`] runs adapters while this node leads, and starts again what ends.

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

pub use settings::{KINDS, KindRow};

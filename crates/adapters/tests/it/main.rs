//! Adapters against fake upstreams over real sockets, with a real book behind them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod betfair;
mod exec;
mod harness;
mod poll;
mod supervisor;

//! The interface to the book: takes messages and lists open events. Implemented by the service, or by a copy for a
//! check.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use domain::message::Reject;
use domain::{BookmakerId, Market, SportId, Timestamp};

/// A future of a [`Sink`].
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The durable result of a batch.
#[derive(Debug, Default)]
pub struct Receipt {
    pub accepted: u64,
    pub unchanged: u64,
    pub superseded: u64,
    /// Lines of the body, counted from 1.
    pub rejected: Vec<(usize, Reject)>,
}

/// The batch was not taken, or only in part; sending it again is idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    #[error("the log cannot be written")]
    LogFailed,
    #[error("this node is no longer the leader")]
    NotLeader,
}

/// An open event of a feed in the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEvent {
    pub reference: Box<str>,
    pub sport: SportId,
    pub commence_time: Timestamp,
    pub markets: Vec<(BookmakerId, Market, Option<Box<str>>)>,
}

/// Takes messages. Waiting for the answer is the back-pressure on adapters.
pub trait Sink: Send + Sync + fmt::Debug {
    /// Submits a body of NDJSON lines.
    fn submit<'a>(&'a self, feed: &'a str, body: Bytes) -> Answer<'a, Result<Receipt, NotTaken>>;

    /// The events that the feed lists, with the markets that have prices.
    fn open<'a>(&'a self, feed: &'a str) -> Answer<'a, Result<Vec<OpenEvent>, NotTaken>>;
}

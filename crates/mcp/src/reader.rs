//! Sources of answers: the API in this process, or a server over the network.

use std::future::Future;
use std::pin::Pin;

use crate::call::Call;
use crate::page::{Page, Refused};

/// A pending answer.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reads the API for one key.
pub trait Reader: Send + Sync {
    /// Makes one request under `/v1`, with all its checks and its cost.
    fn get<'a>(&'a self, call: &'a Call) -> Answering<'a, Result<Page, Refused>>;

    /// Counts a message that is answered without a request towards the burst limit.
    fn count(&self) -> Answering<'_, Result<(), Refused>>;
}

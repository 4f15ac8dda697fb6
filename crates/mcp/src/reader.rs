//! Where answers come from: the API in this process, or a server over the network.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::call::Call;

/// An answer in the making.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reads the API for one key.
pub trait Reader: Send + Sync {
    /// Makes one request under `/v1`, with all its checks and its cost.
    fn get<'a>(&'a self, call: &'a Call) -> Answering<'a, Result<Page, Refused>>;

    /// Counts a message that is answered without a request towards the burst limit.
    fn count(&self) -> Answering<'_, Result<(), Refused>>;
}

/// One page of an answer.
#[derive(Debug)]
pub struct Page {
    pub body: Vec<u8>,
    /// Where the page after it begins.
    pub next_cursor: Option<String>,
}

/// The API's refusal.
#[derive(Debug)]
pub struct Refused {
    pub status: u16,
    /// The API's error: its code, message and so on.
    pub error: Value,
    pub retry_after_s: Option<u64>,
}

impl Refused {
    /// The error, with the time to wait.
    pub(crate) fn into_error(self) -> Value {
        let mut error = self.error;
        if let (Some(fields), Some(wait)) = (error.as_object_mut(), self.retry_after_s) {
            fields.insert("retry_after_s".to_owned(), wait.into());
        }
        error
    }
}

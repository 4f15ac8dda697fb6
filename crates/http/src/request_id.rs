//! Request ids: unique in the process, and different between processes. They are formatted only when needed.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::id::{base62, scramble};

use crate::reply::Head;

/// Prefix of every id.
const PREFIX: &str = "req_";

/// The id of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(u64);

/// The generator of request ids.
#[derive(Debug)]
pub struct RequestIds {
    salt: u64,
    count: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self { salt: RandomState::new().hash_one("request ids"), count: AtomicU64::new(0) }
    }
}

impl RequestIds {
    pub fn next(&self) -> RequestId {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // A bijection of the count, so no id occurs twice.
        RequestId(scramble(count ^ self.salt))
    }
}

impl RequestId {
    /// Appends the header that every answer has.
    pub fn put(self, head: &mut Head) {
        head.line("x-request-id", |line| {
            line.text(PREFIX);
            line.bytes(&base62(self.0));
        });
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(std::str::from_utf8(&base62(self.0)).unwrap_or_default())
    }
}

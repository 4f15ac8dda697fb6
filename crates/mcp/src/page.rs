//! Answers of the API: a page, or a refusal.

use serde_json::Value;

/// One page of an answer.
#[derive(Debug)]
pub struct Page {
    pub body: Vec<u8>,
    /// The cursor of the next page.
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

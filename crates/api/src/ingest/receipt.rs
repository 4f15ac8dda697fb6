//! The receipt of a push: number of lines by result, and the refused lines.

use std::io::Write;

use domain::message::Reject;
use serde::Serialize;

use engine::Receipt;

/// Maximum number of refused lines listed; further ones are only counted.
pub(crate) const LISTED_MAX: usize = 1000;

/// Result of the pieces of a push so far.
#[derive(Debug, Default)]
pub(super) struct Total {
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    rejected: u64,
    /// The first refused lines.
    listed: Vec<(usize, Reject)>,
}

/// A refused line in the receipt.
#[derive(Serialize)]
struct Line<'a> {
    line: usize,
    code: &'static str,
    message: &'a str,
}

impl Total {
    pub(super) fn add(&mut self, piece: Receipt) {
        self.accepted += piece.accepted;
        self.unchanged += piece.unchanged;
        self.superseded += piece.superseded;
        self.rejected += u64::try_from(piece.rejected.len()).unwrap_or(u64::MAX);
        let room = LISTED_MAX.saturating_sub(self.listed.len());
        self.listed.extend(piece.rejected.into_iter().take(room));
    }

    /// The receipt as JSON.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let Self { accepted, unchanged, superseded, rejected, listed } = self;
        let mut json = Vec::with_capacity(128 + 128 * listed.len());
        let head = write!(
            json,
            r#"{{"accepted":{accepted},"unchanged":{unchanged},"superseded":{superseded},"rejected_total":{rejected},"rejected":["#
        );
        // Writing to a `Vec` cannot fail.
        debug_assert!(head.is_ok());
        for (position, (line, reject)) in listed.iter().enumerate() {
            if position > 0 {
                json.push(b',');
            }
            let listed_line =
                Line { line: *line, code: reject.code.slug(), message: &reject.message };
            let written = serde_json::to_writer(&mut json, &listed_line);
            debug_assert!(written.is_ok());
        }
        json.extend_from_slice(b"]}");
        json
    }
}

#[cfg(test)]
mod tests {
    use domain::message::RejectCode;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_refused_line_is_counted_and_the_first_thousand_are_listed() {
        let mut total = Total::default();
        for piece in 0..3 {
            let reject = |at| (at, Reject::new(RejectCode::InvalidJson, format!("\"{at}\"\n")));
            let rejected = (piece * 400 + 1..=piece * 400 + 400).map(reject).collect();
            total.add(Receipt { accepted: 2, rejected, ..Receipt::default() });
        }
        let receipt: Value = serde_json::from_slice(&total.to_json()).unwrap();
        assert_eq!((&receipt["accepted"], &receipt["rejected_total"]), (&json!(6), &json!(1200)));
        let listed = receipt["rejected"].as_array().unwrap();
        assert_eq!(listed.len(), LISTED_MAX);
        let last = json!({ "line": 1000, "code": "invalid_json", "message": "\"1000\"\n" });
        assert_eq!(listed.last(), Some(&last));
    }
}

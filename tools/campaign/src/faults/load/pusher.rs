//! Pushes batches one after the other, to any node. A batch without an answer is sent again or skipped, as feeds do.

use std::time::Duration;

use serde_json::Value;
use shell::random::Random;

use super::LoadContext;
use crate::{
    cluster::{
        http::{Answer, Client},
        unit::{NODES, Unit},
    },
    faults::{
        market,
        record::{Outcome, Push, now_ms},
    },
};

pub(super) const INGEST_PATH: &str = "/ingest/v1/messages";
/// A little longer than a node waits for the leader.
const TIMEOUT: Duration = Duration::from_secs(7);
/// Pause between two batches.
const PAUSE: Duration = Duration::from_millis(350);
/// Pause after a refusal, which asks to retry shortly.
const PAUSE_REFUSED: Duration = Duration::from_millis(400);

pub(super) struct Pusher {
    context: LoadContext,
    number: usize,
    token: String,
    random: Random,
    n: u32,
    ts_ms: i64,
}

impl Pusher {
    pub(super) fn new(context: &LoadContext, number: usize, token: String, random: Random) -> Self {
        Self { context: context.clone(), number, token, random, n: 0, ts_ms: 0 }
    }

    pub(super) fn run(&mut self) {
        let mut goes_again = false;
        while self.context.goes_on() {
            if !goes_again {
                self.n += 1;
                self.ts_ms = now_ms().max(self.ts_ms + 1);
            }
            let outcome = self.send();
            let is_taken = outcome == Outcome::Taken;
            // Half of the failed batches are given up: they may or may not be in the log, but never after the next
            // batch.
            goes_again = !is_taken && self.random.index(2) == 0;
            shell::sleep(if is_taken { PAUSE } else { PAUSE_REFUSED });
        }
    }

    fn send(&mut self) -> Outcome {
        // A third is sent through the load balancer, the rest to any node.
        let node = match self.random.index(3) {
            0 => None,
            _ => self.random.pick(&NODES).copied(),
        };
        let port = self.context.layout.port(node.unwrap_or(Unit::Nginx));
        let client = Client::new(port, TIMEOUT);
        let batch = market::batch(self.number, self.n, self.ts_ms);
        let sent_ms = now_ms();
        let answer = client.post(INGEST_PATH, &headers(&self.token), batch.as_bytes());
        let outcome = match answer {
            Ok(answer) => outcome(&answer),
            Err(error) => Outcome::Unknown(error.to_string()),
        };
        let (pusher, n, done_ms) = (self.number, self.n, now_ms());
        let push = Push { pusher, n, sent_ms, done_ms, node, outcome: outcome.clone() };
        self.context.journal.note("push", push, |records| &mut records.pushes);
        outcome
    }
}

pub(super) fn headers(token: &str) -> String {
    format!("authorization: Bearer {token}\r\ncontent-type: application/x-ndjson\r\n")
}

/// The outcome of a batch according to its answer.
pub(super) fn outcome(answer: &Answer) -> Outcome {
    // The load balancer's own refusals say nothing about a node behind it.
    if answer.status == 504 || answer.status == 502 {
        return Outcome::Unknown(answer.status.to_string());
    }
    if answer.status != 200 {
        return Outcome::Refused(answer.status);
    }
    let receipt: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let rejected = receipt.get("rejected").and_then(Value::as_array).map(Vec::is_empty);
    let superseded = receipt.get("superseded").and_then(Value::as_u64);
    match (rejected, superseded) {
        (Some(true), Some(0)) => Outcome::Taken,
        _ => Outcome::Partly(receipt.to_string().chars().take(300).collect()),
    }
}

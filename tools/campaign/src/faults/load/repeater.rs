//! Requests earlier answers of the readers again with `as_of`, whatever is broken at the time.

use std::time::Duration;

use serde_json::Value;
use shell::random::Random;

use super::{LoadContext, TIMEOUT};
use crate::{
    cluster::{http::Client, unit::Unit},
    faults::{
        past::as_of,
        record::{Read, Repeat, now_ms},
    },
};

/// Minimum age of a publication: another node may be a little behind, and does not know its time yet.
const AGE_MIN_MS: i64 = 3000;
/// Past publications are rebuilt, which takes processor time that other clients need too.
const PAUSE: Duration = Duration::from_secs(1);

/// A client of one api node, or of the load balancer.
pub(super) struct Repeater {
    context: LoadContext,
    client: Client,
    node: Option<Unit>,
    key: String,
    random: Random,
}

impl Repeater {
    /// `node`: `None` is the load balancer.
    pub(super) fn new(
        context: &LoadContext,
        node: Option<Unit>,
        key: &str,
        random: Random,
    ) -> Self {
        let port = context.layout.port(node.unwrap_or(Unit::Nginx));
        let client = Client::new(port, TIMEOUT);
        Self { context: context.clone(), client, node, key: key.to_owned(), random }
    }

    pub(super) fn run(&mut self) {
        while self.context.goes_on() {
            let before_ms = now_ms() - AGE_MIN_MS;
            if let Some(seen) = self.context.journal.earlier_answer(&mut self.random, before_ms) {
                self.repeat(seen);
            }
            shell::sleep(PAUSE);
        }
    }

    fn repeat(&mut self, seen: Read) {
        let path = as_of(&seen.path, seen.published_at.as_deref().unwrap_or_default());
        let sent_ms = now_ms();
        let answer = self.client.get(&path, &format!("x-api-key: {}\r\n", self.key));
        let mut repeat = Repeat {
            sent_ms,
            done_ms: now_ms(),
            node: self.node,
            path,
            seen_etag: seen.etag,
            seen_body: seen.body,
            ..Repeat::default()
        };
        match answer {
            Ok(answer) => {
                repeat.status = answer.status;
                repeat.etag = answer.header("etag").map(str::to_owned);
                if answer.status == 200 {
                    repeat.body = Some(self.context.journal.keep_body(&answer.body));
                } else {
                    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                    let message = body.pointer("/error/message").and_then(Value::as_str);
                    repeat.error = message.map(str::to_owned);
                }
            }
            Err(error) => repeat.error = Some(error.to_string()),
        }
        self.context.journal.note("repeat", repeat, |records| &mut records.repeats);
    }
}

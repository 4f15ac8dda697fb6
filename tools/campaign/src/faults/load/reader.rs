//! Reads odds, events and scores through the load balancer or from a node, with `ETag`s and page by page.

use std::{collections::HashMap, time::Duration};

use jiff::fmt::rfc2822;
use serde_json::Value;
use shell::random::Random;

use super::{LoadContext, TIMEOUT};
use crate::{
    cluster::{
        http::{Answer, Client},
        layout::api_at,
        unit::Unit,
    },
    faults::record::{Read, Walk, now_ms},
};

/// The paths that are requested repeatedly.
const PATHS: [&str; 8] = [
    "/v1/sports/mma/odds?group_by=bout&odds_format=decimal",
    "/v1/sports/mma/odds?odds_format=decimal&limit=500",
    "/v1/sports/tennis/odds?odds_format=decimal&limit=500&regions=us,uk",
    "/v1/sports/tennis/odds?odds_format=decimal&bookmaker=fanduel",
    "/v1/sports/mma/events",
    "/v1/sports/tennis/scores",
    "/v1/books",
    "/v1/sports",
];
/// A sport's odds in pieces.
const PAGES: [&str; 2] = [
    "/v1/sports/mma/odds?odds_format=decimal&limit=7",
    "/v1/sports/tennis/odds?odds_format=decimal&limit=5",
];
const PAGES_MAX: usize = 50;
pub(in crate::faults) const STATUS: &str = "/v1/status";
const PAUSE: Duration = Duration::from_millis(25);
const PROBE_EVERY: Duration = Duration::from_millis(500);
const PROBE_TIME_MAX: Duration = Duration::from_secs(2);
/// Percentage of requests for a body that the client has already.
const CONDITIONAL: usize = 30;

/// A client with a key that records its observations.
#[derive(Debug)]
pub(in crate::faults) struct Requester {
    context: LoadContext,
    client: Client,
    /// `None` is the load balancer.
    node: Option<Unit>,
}

impl Requester {
    pub(in crate::faults) fn new(
        context: &LoadContext,
        node: Option<Unit>,
        timeout: Duration,
    ) -> Self {
        let port = context.layout.port(node.unwrap_or(Unit::Nginx));
        Self { context: context.clone(), client: Client::new(port, timeout), node }
    }

    /// Sends a request and records the result. `named` is the key's name.
    pub(in crate::faults) fn ask(
        &mut self,
        path: &str,
        (named, key): (&str, &str),
        etag: Option<&str>,
    ) -> Option<Answer> {
        let mut headers = format!("x-api-key: {key}\r\n");
        if let Some(etag) = etag {
            headers += &format!("if-none-match: {etag}\r\n");
        }
        let sent_ms = now_ms();
        let answer = self.client.get(path, &headers);
        let mut read = Read {
            sent_ms,
            done_ms: now_ms(),
            balanced: self.node.is_none(),
            node: self.node,
            key: named.to_owned(),
            path: path.to_owned(),
            ..Read::default()
        };
        match &answer {
            Ok(answer) => self.describe(answer, &mut read),
            Err(error) => read.error = Some(error.to_string()),
        }
        self.context.journal.note("read", read, |records| &mut records.reads);
        answer.ok()
    }

    fn describe(&self, answer: &Answer, read: &mut Read) {
        read.status = answer.status;
        read.etag = answer.header("etag").map(str::to_owned);
        read.published_at = answer.header("x-published-at").map(str::to_owned);
        read.used = answer.header("x-requests-used").and_then(|used| used.parse().ok());
        read.date_ms = answer
            .header("date")
            .and_then(|date| Some(rfc2822::parse(date).ok()?.timestamp().as_millisecond()));
        if read.node.is_none() {
            // The last of those that were tried.
            let address = answer.header("x-served-by").and_then(|all| all.rsplit(", ").next());
            let port = address.and_then(|address| address.rsplit_once(':')?.1.parse().ok());
            read.node = port.and_then(|port| api_at(&self.context.layout, port));
        }
        if answer.status == 200 {
            read.body = Some(self.context.journal.keep_body(&answer.body));
        } else if answer.status >= 400 {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let said = |field| body.pointer(field).and_then(Value::as_str);
            // One code may have several causes; the message distinguishes them.
            read.error = said("/error/code")
                .map(|code| format!("{code}: {}", said("/error/message").unwrap_or_default()));
        }
    }
}

/// A reader behind the load balancer whose key's limits are never reached.
pub(super) struct Reader {
    requester: Requester,
    context: LoadContext,
    key: String,
    random: Random,
    etags: HashMap<&'static str, String>,
    /// True if it reads pages, too.
    pages: bool,
}

impl Reader {
    pub(super) fn new(context: &LoadContext, key: &str, random: Random, pages: bool) -> Self {
        Self {
            requester: Requester::new(context, None, TIMEOUT),
            context: context.clone(),
            key: key.to_owned(),
            random,
            etags: HashMap::new(),
            pages,
        }
    }

    pub(super) fn run(&mut self) {
        while self.context.goes_on() {
            if self.pages && self.random.index(4) == 0 {
                self.walk();
                continue;
            }
            let Some(path) = self.random.pick(&PATHS).copied() else { return };
            let conditional = self.random.index(100) < CONDITIONAL;
            let etag = self.etags.get(path).filter(|_| conditional).cloned();
            let answer = self.requester.ask(path, ("steady", &self.key), etag.as_deref());
            if let Some(etag) = answer.as_ref().and_then(|answer| answer.header("etag")) {
                self.etags.insert(path, etag.to_owned());
            }
            shell::sleep(PAUSE);
        }
    }

    /// Reads all pages, whichever node each comes from.
    fn walk(&mut self) {
        let Some(first) = self.random.pick(&PAGES).copied() else { return };
        let mut walk = Walk { begun_ms: now_ms(), path: first.to_owned(), ids: Vec::new() };
        let mut next = Some(first.to_owned());
        for _ in 0..PAGES_MAX {
            let Some(path) = next else {
                return self.context.journal.note("walk", walk, |records| &mut records.walks);
            };
            let answer = self.requester.ask(&path, ("steady", &self.key), None);
            let Some(answer) = answer.filter(|answer| answer.status == 200) else { return };
            let records: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let ids = records.as_array().into_iter().flatten();
            walk.ids.extend(ids.filter_map(|record| Some(record.get("id")?.as_str()?.to_owned())));
            next = answer.header("link").and_then(next_path);
            shell::sleep(PAUSE);
        }
        // If there are more pages than records, the repeated ids show it.
        self.context.journal.note("walk", walk, |records| &mut records.walks);
    }
}

/// The path in `<…>; rel="next"`.
fn next_path(link: &str) -> Option<String> {
    let (target, _) = link.strip_prefix('<')?.split_once('>')?;
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.get(rest.find('/')?..)?,
        None => target,
    };
    Some(path.to_owned())
}

/// Reads one node's status, independently of the load balancer.
pub(super) struct Prober {
    requester: Requester,
    context: LoadContext,
    key: String,
}

impl Prober {
    pub(super) fn new(context: &LoadContext, key: &str, api: Unit) -> Self {
        let requester = Requester::new(context, Some(api), PROBE_TIME_MAX);
        Self { requester, context: context.clone(), key: key.to_owned() }
    }

    pub(super) fn run(&mut self) {
        while self.context.goes_on() {
            self.requester.ask(STATUS, ("steady", &self.key), None);
            shell::sleep(PROBE_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_with_and_without_a_host() {
        assert_eq!(next_path("</v1/x?cursor=a>; rel=\"next\"").unwrap(), "/v1/x?cursor=a");
        assert_eq!(next_path("<http://h:1/v1/x>; rel=\"next\"").unwrap(), "/v1/x");
        assert_eq!(next_path("nothing"), None);
    }
}

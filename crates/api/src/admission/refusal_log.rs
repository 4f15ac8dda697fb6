//! Records refused requests for the developer who owns the key.

use accounts::{Failure, KeyEntry};
use domain::Timestamp;

use crate::error::ApiError;
use crate::operation::Operation;
use crate::v1::param::Param;
use http::percent::decode;
use http::{Request, RequestId};

/// Replaces a key in a URL.
const MASK: &str = "***";

/// Status, code and message of a refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) message: &'a str,
}

impl<'a> From<&'a ApiError> for Refused<'a> {
    fn from(error: &'a ApiError) -> Self {
        Self { status: error.code.status(), code: error.code.slug(), message: &error.message }
    }
}

/// Records a refusal in the key's error list.
pub(crate) fn note(
    entry: &KeyEntry,
    request: &Request<'_>,
    operation: Operation,
    refused: Refused<'_>,
    request_id: RequestId,
    now: Timestamp,
) {
    entry.note_failure(Failure {
        at: now,
        request_id: request_id.to_string().into(),
        endpoint: operation.name(),
        method: request.method.name(),
        target: target(request.path, request.query).into(),
        status: refused.status,
        code: refused.code,
        message: refused.message.into(),
        times: 1,
    });
}

/// Path and query without possible secrets: the key's parameter in any spelling, and any value that looks like a key.
fn target(path: &str, query: &str) -> String {
    let path = masked(path);
    if query.is_empty() {
        return path;
    }
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_key_name(name) => format!("{name}={MASK}"),
            Some((name, value)) => format!("{}={}", masked(name), masked(value)),
            None => masked(pair),
        })
        .collect();
    format!("{path}?{}", pairs.join("&"))
}

/// True for any spelling or encoding of the key's name; an undecodable name counts as one.
fn is_key_name(name: &str) -> bool {
    let Some(name) = decode(name) else {
        return true;
    };
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let own: String = Param::ApiKey.name().chars().filter(char::is_ascii_alphanumeric).collect();
    plain.contains(&own) || plain.contains("token") || plain.contains("secret")
}

fn masked(text: &str) -> String {
    let is_key = decode(text).is_none_or(|text| {
        let text = text.to_ascii_lowercase();
        ["sk_", "fk_"].iter().any(|start| text.contains(start))
    });
    if is_key { MASK.to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_kept_without_what_may_be_a_secret() {
        for (path, query, kept) in [
            ("/v1/books", "", "/v1/books"),
            ("/v1/books", "limit=0&x", "/v1/books?limit=0&x"),
            ("/v1/books", "api_key=sk_test_abc&limit=0", "/v1/books?api_key=***&limit=0"),
            ("/v1/books", "apiKey=abc", "/v1/books?apiKey=***"),
            ("/v4/sports/", "all=x&apiKey=sk_live_a", "/v4/sports/?all=x&apiKey=***"),
            ("/v1/books", "X-API-Key=abc", "/v1/books?X-API-Key=***"),
            ("/v1/books", "key=sk_live_abc", "/v1/books?key=***"),
            ("/v1/books", "key=sk%5Flive_abc", "/v1/books?key=***"),
            ("/v1/books", "sk_live_abc", "/v1/books?***"),
            ("/v1/books", "api%5Fkey=abc", "/v1/books?api%5Fkey=***"),
            ("/v1/books", "x=%73k_live_abc&y=%zz", "/v1/books?x=***&y=***"),
            ("/v1/sk_live_abc", "", "***"),
        ] {
            assert_eq!(target(path, query), kept);
        }
    }
}

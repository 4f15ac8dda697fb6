//! Headers of responses, shared by all operations.

use serde_json::{Value, json};

use crate::openapi::{example, object, refer};

pub(super) const REQUEST_ID: &str = "x-request-id";
const REQUESTS_REMAINING: &str = "x-requests-remaining";
const REQUESTS_USED: &str = "x-requests-used";
const RATE_LIMIT: &str = "RateLimit";
const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";
pub(super) const ETAG: &str = "ETag";
pub(super) const CACHE_CONTROL: &str = "Cache-Control";
pub(super) const VARY: &str = "Vary";
pub(super) const LINK: &str = "Link";
const PUBLISHED_AT: &str = "x-published-at";
const PREVIOUS_PUBLICATION: &str = "x-previous-publication";
const NEXT_PUBLICATION: &str = "x-next-publication";
pub(super) const CURSOR: &str = "x-cursor";
const CONTENT_ENCODING: &str = "Content-Encoding";
pub(super) const RETRY_AFTER: &str = "Retry-After";
pub(super) const ALLOW: &str = "Allow";
pub(super) const WWW_AUTHENTICATE: &str = "WWW-Authenticate";
pub(super) const WEBSOCKET_VERSION: &str = "Sec-WebSocket-Version";
const ACCEPT_RANGES: &str = "Accept-Ranges";
pub(super) const CONTENT_RANGE: &str = "Content-Range";
pub(super) const CONTENT_DISPOSITION: &str = "Content-Disposition";
const DEPRECATION: &str = "Deprecation";
const SUNSET: &str = "Sunset";

/// Headers about the key, in every authenticated response.
pub(super) fn standing() -> impl Iterator<Item = &'static str> {
    [REQUESTS_REMAINING, REQUESTS_USED, RATE_LIMIT, RATE_LIMIT_POLICY, DEPRECATION, SUNSET]
        .into_iter()
}

/// Headers about the publication, in every response from one.
pub(super) fn publication() -> impl Iterator<Item = &'static str> {
    [PUBLISHED_AT, PREVIOUS_PUBLICATION, NEXT_PUBLICATION].into_iter()
}

/// Caching and paging of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// One page of several.
    Paged,
    Whole,
    /// Current state, never cached.
    Present,
}

/// The headers of a 200 under `/v1`.
pub(crate) fn headers_of(kept: Kept, has_cursor: bool) -> Value {
    let of_snapshot = [ETAG, VARY, CONTENT_ENCODING].into_iter().chain(publication());
    let of_snapshot = of_snapshot.filter(|_| kept != Kept::Present);
    let of_page = [LINK].into_iter().filter(|_| kept == Kept::Paged);
    let of_position = [CURSOR].into_iter().filter(|_| has_cursor);
    let all = [REQUEST_ID, CACHE_CONTROL].into_iter().chain(of_snapshot).chain(of_page);
    refer_to_headers(all.chain(of_position).chain(standing()))
}

/// The headers of a file of the archive; `further` are not in every response.
pub(crate) fn headers_of_file(further: &[&'static str]) -> Value {
    let all = [REQUEST_ID, ETAG, CACHE_CONTROL, VARY, ACCEPT_RANGES, LINK].into_iter();
    refer_to_headers(all.chain(further.iter().copied()).chain(standing()))
}

/// The headers of a response that needs no key.
pub(crate) fn headers_for_anyone() -> Value {
    refer_to_headers([REQUEST_ID].into_iter())
}

pub(super) fn refer_to_headers(names: impl Iterator<Item = &'static str>) -> Value {
    object(names.map(|name| (name.to_owned(), refer("headers", name))))
}

/// When a header is present, in responses that list it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    Always,
    Sometimes,
}

/// All headers by name.
pub(crate) fn headers() -> Value {
    let all =
        of_request().into_iter().chain(of_keeping()).chain(of_refusal()).chain(of_query_key());
    let all = all.chain(of_publication()).chain(of_file());
    object(all.map(|(name, header)| (name.to_owned(), header)))
}

type Header = (&'static str, Value);

fn header(
    name: &'static str,
    there: There,
    meaning: &str,
    schema: Value,
    example: Value,
) -> Header {
    let mut header = json!({ "description": meaning, "required": there == There::Always });
    if let Some(fields) = header.as_object_mut() {
        fields.insert("schema".to_owned(), schema);
        fields.insert("example".to_owned(), example);
    }
    (name, header)
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn count(least: u8) -> Value {
    json!({ "type": "integer", "minimum": least })
}

fn of_request() -> [Header; 5] {
    use There::Always;
    let id = json!({ "type": "string", "pattern": "^req_[0-9A-Za-z]+$" });
    let left = "The rest of the burst and of the tightest quota (`r`), and the seconds until they reset (`t`).";
    let limits = "The key's limits (`q`) and their windows in seconds (`w`).";
    let rate = "\"burst\";r=58;t=22, \"daily\";r=9959;t=1342";
    let policy = "\"burst\";q=60;w=60, \"daily\";q=10000;w=86400";
    let remaining = "Requests left in the tightest quota window.";
    [
        header(
            REQUEST_ID,
            Always,
            "Id of the request, also in the service's log.",
            id,
            example::REQUEST_ID.into(),
        ),
        header(REQUESTS_REMAINING, Always, remaining, count(0), 9_959.into()),
        header(REQUESTS_USED, Always, "Requests used in that window.", count(0), 41.into()),
        header(RATE_LIMIT, Always, left, text(), rate.into()),
        header(RATE_LIMIT_POLICY, Always, limits, text(), policy.into()),
    ]
}

fn of_keeping() -> [Header; 5] {
    use There::{Always, Sometimes};
    let etag =
        "Strong ETag of the body; it differs by content encoding. Send it back as `If-None-Match`.";
    let cache = "`private, max-age=` the whole seconds left until the next snapshot; `private, max-age=86400, \
                 immutable` for a past publication requested with `as_of`; `no-store` for status and refusals; \
                 `private, no-cache` for files.";
    let link = "The next page (RFC 8288) if more records match than `limit`, or the next file. It does not contain \
               the key.";
    let next = "</v1/sports/mma/odds?limit=100&cursor=AYDQ…>; rel=\"next\"";
    let packed = "Compression of the body, chosen by `Accept-Encoding`.";
    let encoding = json!({ "type": "string", "enum": ["zstd", "br", "gzip"] });
    let vary = "X-API-Key, Accept-Encoding";
    [
        header(ETAG, Always, etag, text(), "\"3q2-7wAAAAAAAAAAAAAAAA\"".into()),
        header(CACHE_CONTROL, Always, cache, text(), "private, max-age=22".into()),
        header(
            VARY,
            Always,
            "The request headers on which the answer depends.",
            text(),
            vary.into(),
        ),
        header(LINK, Sometimes, link, text(), next.into()),
        header(CONTENT_ENCODING, Sometimes, packed, encoding, "zstd".into()),
    ]
}

fn of_publication() -> [Header; 4] {
    use There::{Always, Sometimes};
    let previous = "Time of the previous publication; only with `as_of`.";
    let next =
        "Time of the next publication; only with `as_of`, and not for the current publication.";
    let cursor = "The position of this answer in the log; the client has seen everything up to it. On odds without \
                 `group_by`, scores and events.";
    let instant = || json!({ "type": "string", "format": "date-time" });
    [
        header(
            PUBLISHED_AT,
            Always,
            "Time of this answer's publication.",
            instant(),
            "2026-11-14T23:38:00.000Z".into(),
        ),
        header(
            PREVIOUS_PUBLICATION,
            Sometimes,
            previous,
            instant(),
            "2026-11-14T23:37:30.000Z".into(),
        ),
        header(NEXT_PUBLICATION, Sometimes, next, instant(), "2026-11-14T23:38:30.000Z".into()),
        header(CURSOR, Sometimes, cursor, text(), "QQEAAAGanEUZQAAAAABKXyHD".into()),
    ]
}

fn of_refusal() -> [Header; 4] {
    use There::Always;
    let challenge = "ApiKey realm=\"linesman\", header=\"X-API-Key\"";
    [
        header(RETRY_AFTER, Always, "Seconds to wait before retrying.", count(1), 22.into()),
        header(ALLOW, Always, "The methods that the path accepts.", text(), "GET, HEAD".into()),
        header(WWW_AUTHENTICATE, Always, "How to authenticate.", text(), challenge.into()),
        header(
            WEBSOCKET_VERSION,
            Always,
            "The supported version of the WebSocket protocol.",
            text(),
            "13".into(),
        ),
    ]
}

fn of_file() -> [Header; 3] {
    use There::Always;
    let range = "The range of the bytes and the length of the file; on an error, `bytes */` and the length.";
    let name = "attachment; filename=\"odds-mma-2026-11-14.parquet\"";
    [
        header(ACCEPT_RANGES, Always, "`Range` requests are supported.", text(), "bytes".into()),
        header(CONTENT_RANGE, Always, range, text(), "bytes 0-1023/146515".into()),
        header(CONTENT_DISPOSITION, Always, "A suggested file name.", text(), name.into()),
    ]
}

fn of_query_key() -> [Header; 2] {
    use There::Sometimes;
    let since = "Date since which the query parameter `api_key` is deprecated (RFC 9745); only if the key was sent \
                that way.";
    let until = "End of support for the query parameter `api_key` (RFC 8594); only if the key was sent that way.";
    let date = "Tue, 01 Jun 2027 00:00:00 GMT";
    [
        header(DEPRECATION, Sometimes, since, text(), "@1793491200".into()),
        header(SUNSET, Sometimes, until, text(), date.into()),
    ]
}

//! Refusals, shared by all operations.

use serde_json::{Map, Value, json};

use crate::error::ErrorCode;
use crate::openapi::caller::Caller;
use crate::openapi::header::{
    ALLOW, CACHE_CONTROL, CONTENT_RANGE, CURSOR, ETAG, LINK, REQUEST_ID, RETRY_AFTER, VARY,
    WEBSOCKET_VERSION, WWW_AUTHENTICATE, headers_of_file, publication, refer_to_headers, standing,
};
use crate::openapi::{example, object, refer};

/// Refusals referenced by operations, each written once.
#[derive(Debug, Default)]
pub(crate) struct Responses(Map<String, Value>);

impl Responses {
    /// One entry per status of the codes.
    pub(crate) fn refusals(
        &mut self,
        caller: Caller,
        codes: impl Iterator<Item = ErrorCode>,
    ) -> Vec<(String, Value)> {
        let codes: Vec<ErrorCode> = codes.collect();
        let mut statuses: Vec<u16> = codes.iter().map(|code| code.status()).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let entry = |status: u16| {
            let with_status = codes.iter().copied().filter(|code| code.status() == status);
            let codes: Vec<ErrorCode> = with_status.collect();
            (status.to_string(), self.refusal(caller, &codes))
        };
        statuses.into_iter().map(entry).collect()
    }

    fn refusal(&mut self, caller: Caller, codes: &[ErrorCode]) -> Value {
        let names: Vec<String> = codes.iter().map(|code| format!("{code:?}")).collect();
        let name = format!("{}{}", caller.prefix(), names.join("Or"));
        if !self.0.contains_key(&name) {
            self.0.insert(name.clone(), refusal(caller, codes));
        }
        refer("responses", &name)
    }

    /// The response if the client already has the current content.
    pub(crate) fn not_modified(&mut self) -> (String, Value) {
        let headers = [REQUEST_ID, ETAG, CACHE_CONTROL, VARY, LINK].into_iter();
        let headers = headers.chain(publication()).chain([CURSOR]).chain(standing());
        let response = json!({
            "description": "Nothing has changed since the answer named by `If-None-Match`. Costs no quota.",
            "headers": refer_to_headers(headers),
        });
        self.0.insert("NotModified".to_owned(), response);
        ("304".to_owned(), refer("responses", "NotModified"))
    }

    /// The same for a file.
    pub(crate) fn file_not_modified(&mut self) -> (String, Value) {
        let response = json!({
            "description": "The file is still the one named by `If-None-Match`. Costs no quota.",
            "headers": headers_of_file(&[]),
        });
        self.0.insert("FileNotModified".to_owned(), response);
        ("304".to_owned(), refer("responses", "FileNotModified"))
    }

    /// The response to a request for changes if there are none.
    pub(crate) fn unchanged(&mut self) -> (String, Value) {
        let headers = [REQUEST_ID, CACHE_CONTROL].into_iter();
        let headers = headers.chain(publication()).chain([CURSOR]).chain(standing());
        let response = json!({
            "description": "Nothing in the selection has changed since the cursor in `since`. Costs no quota.",
            "headers": refer_to_headers(headers),
        });
        self.0.insert("Unchanged".to_owned(), response);
        ("204".to_owned(), refer("responses", "Unchanged"))
    }

    /// The answer to a client that opens a stream again of which it has everything up to its end.
    pub(crate) fn ended(&mut self) -> (String, Value) {
        let headers = [REQUEST_ID, CACHE_CONTROL].into_iter().chain(standing());
        let response = json!({
            "description": "`Last-Event-ID` is at or past `until`: there is nothing more to come, and a browser's \
                            `EventSource` does not connect again. Costs no quota.",
            "headers": refer_to_headers(headers),
        });
        self.0.insert("Ended".to_owned(), response);
        ("204".to_owned(), refer("responses", "Ended"))
    }

    pub(crate) fn into_components(self) -> Value {
        Value::Object(self.0)
    }
}

fn refusal(caller: Caller, codes: &[ErrorCode]) -> Value {
    let meanings: Vec<String> =
        codes.iter().map(|code| format!("`{}`: {}", code.slug(), code.meaning())).collect();
    let examples = codes.iter().map(|code| {
        let shown = json!({ "summary": code.meaning(), "value": example::refusal(caller, *code) });
        (code.slug().to_owned(), shown)
    });
    let mut headers = vec![REQUEST_ID, CACHE_CONTROL];
    headers.extend(codes.iter().filter_map(|code| header_of(*code)).take(1));
    // Before the key is checked there are no headers about it.
    if caller == Caller::Key && codes.iter().all(|code| is_after_key(*code)) {
        headers.extend(standing());
    }
    json!({
        "description": meanings.join("\n\n"),
        "headers": refer_to_headers(headers.into_iter()),
        "content": {
            "application/json": {
                "schema": refer("schemas", "Error"),
                "examples": object(examples),
            },
        },
    })
}

/// The header that accompanies a code.
fn header_of(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::RateLimited
        | ErrorCode::QuotaExceeded
        | ErrorCode::TooManyStreams
        | ErrorCode::FeedPaused
        | ErrorCode::Maintenance
        | ErrorCode::Unavailable => Some(RETRY_AFTER),
        ErrorCode::MethodNotAllowed => Some(ALLOW),
        ErrorCode::AuthenticationFailed => Some(WWW_AUTHENTICATE),
        ErrorCode::UpgradeRequired => Some(WEBSOCKET_VERSION),
        ErrorCode::RangeNotSatisfiable => Some(CONTENT_RANGE),
        ErrorCode::InvalidParameter
        | ErrorCode::InvalidBody
        | ErrorCode::Forbidden
        | ErrorCode::SportNotFound
        | ErrorCode::EventNotFound
        | ErrorCode::NotInHistory
        | ErrorCode::CursorExpired
        | ErrorCode::NotFound
        | ErrorCode::BodyTooLarge
        | ErrorCode::TargetTooLong
        | ErrorCode::HeadTooLarge
        | ErrorCode::Internal => None,
    }
}

/// True if requests that get this code had their key checked before.
fn is_after_key(code: ErrorCode) -> bool {
    match code {
        ErrorCode::InvalidParameter
        | ErrorCode::Forbidden
        | ErrorCode::SportNotFound
        | ErrorCode::EventNotFound
        | ErrorCode::NotInHistory
        | ErrorCode::CursorExpired
        | ErrorCode::NotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::TargetTooLong
        | ErrorCode::RangeNotSatisfiable
        | ErrorCode::RateLimited
        | ErrorCode::QuotaExceeded
        | ErrorCode::TooManyStreams
        | ErrorCode::UpgradeRequired
        | ErrorCode::Maintenance
        | ErrorCode::Unavailable => true,
        ErrorCode::AuthenticationFailed
        | ErrorCode::InvalidBody
        | ErrorCode::FeedPaused
        | ErrorCode::BodyTooLarge
        | ErrorCode::HeadTooLarge
        | ErrorCode::Internal => false,
    }
}

//! The operations under `/v1`, from the table of operations.

use serde_json::{Map, Value, json};

use crate::error::ErrorCode;
use crate::openapi::caller::Caller;
use crate::openapi::header::{
    CONTENT_DISPOSITION, CONTENT_RANGE, Kept, headers_of, headers_of_file,
};
use crate::openapi::response::Responses;
use crate::openapi::{example, object, parameter, refer};
use crate::operation::{Operation, Schema};
use crate::v1::export::PARQUET_TYPE;
use crate::v1::param::Param;

/// Media type without parameters, as readers of the document look it up.
const CSV_TYPE: &str = "text/csv";

/// Path items of every operation.
pub(crate) fn paths(responses: &mut Responses) -> Map<String, Value> {
    let mut paths = Map::new();
    for operation in Operation::v1() {
        if let Some(path) = operation.row().path {
            paths.insert(path.to_owned(), path_item(operation, responses));
        }
    }
    paths
}

fn path_item(operation: Operation, responses: &mut Responses) -> Value {
    let mut answers = vec![("200".to_owned(), success(operation))];
    if operation.has_position() {
        answers.push(responses.unchanged());
    }
    if operation.is_stream() {
        answers.push(responses.ended());
    }
    if operation.is_file() {
        answers.push(("206".to_owned(), file("The part requested by `Range`.", &[CONTENT_RANGE])));
        answers.push(responses.file_not_modified());
    }
    if kept(operation) != Kept::Present {
        answers.push(responses.not_modified());
    }
    let codes = ErrorCode::ALL.into_iter().filter(|code| can_answer(operation, *code));
    answers.extend(responses.refusals(Caller::Key, codes));
    let mut item = json!({
        "get": {
            "tags": [operation.row().tag],
            "operationId": operation.name(),
            "summary": operation.row().title,
            "description": operation.row().meaning,
            "responses": object(answers),
        },
    });
    let parameters = parameter::of(operation);
    if let Some(fields) = item.as_object_mut()
        && !parameters.is_empty()
    {
        fields.insert("parameters".to_owned(), parameters.into());
    }
    item
}

fn success(operation: Operation) -> Value {
    if operation.is_stream() {
        return stream(operation);
    }
    if operation.is_file() {
        return file(operation.row().answer, &[]);
    }
    let json = json!({ "schema": schema(operation), "examples": example::of(operation) });
    let table = json!({ "schema": {
        "type": "string",
        "description": "With `format=csv`: RFC 4180, UTF-8, with a header row.",
    } });
    let types =
        [("application/json", Some(json)), (CSV_TYPE, operation.has_table().then_some(table))];
    let content = types.into_iter().filter_map(|(name, of)| Some((name.to_owned(), of?)));
    json!({
        "description": operation.row().answer,
        "headers": headers_of(kept(operation), operation.has_position()),
        "content": object(content),
    })
}

/// A file of the archive, or a part of it.
fn file(answer: &str, further: &[&'static str]) -> Value {
    let further: Vec<&str> = [CONTENT_DISPOSITION].iter().chain(further).copied().collect();
    json!({
        "description": answer,
        "headers": headers_of_file(&further),
        // Without a schema, as OpenAPI 3.1 specifies for binary data.
        "content": { PARQUET_TYPE: {} },
    })
}

/// An endless text. The schema gives the types of `data`; the description maps event names to types.
fn stream(operation: Operation) -> Value {
    let events = ["Hello", "Snapshot", "Delta", "Fresh", "Cut", "Reset", "End"];
    let events =
        events.map(|name| (name.to_lowercase(), refer("schemas", &format!("Stream{name}"))));
    let data: Vec<Value> = events.iter().map(|(_, schema)| schema.clone()).collect();
    json!({
        "description": operation.row().answer,
        "headers": headers_of(Kept::Present, false),
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "string",
                    "description": "Server-Sent Events; the `data` of each event is one line of JSON.",
                    "contentMediaType": "application/json",
                    "contentSchema": { "oneOf": data },
                },
                "x-event-schemas": object(events),
                "examples": { "stream": example::stream() },
            },
        },
    })
}

fn schema(operation: Operation) -> Value {
    let mut schemas: Vec<Value> = operation.row().schemas.iter().map(Schema::refer).collect();
    match schemas.pop() {
        Some(only) if schemas.is_empty() => only,
        last => json!({ "oneOf": schemas.into_iter().chain(last).collect::<Vec<_>>() }),
    }
}

impl Schema {
    fn refer(&self) -> Value {
        match self {
            Self::One(name) => refer("schemas", name),
            Self::ListOf(name) => json!({ "type": "array", "items": refer("schemas", name) }),
        }
    }
}

fn kept(operation: Operation) -> Kept {
    if !operation.is_kept() {
        Kept::Present
    } else if operation.is_paged() {
        Kept::Paged
    } else {
        Kept::Whole
    }
}

/// True if requests to the operation can get this code.
fn can_answer(operation: Operation, code: ErrorCode) -> bool {
    match code {
        ErrorCode::AuthenticationFailed
        | ErrorCode::InvalidParameter
        | ErrorCode::MethodNotAllowed
        | ErrorCode::TargetTooLong
        | ErrorCode::HeadTooLarge
        | ErrorCode::RateLimited
        | ErrorCode::Internal
        | ErrorCode::Unavailable => true,
        ErrorCode::Forbidden | ErrorCode::SportNotFound | ErrorCode::NotFound => {
            operation.is_in_sport() || operation.is_stream()
        }
        ErrorCode::EventNotFound => {
            operation.row().path.is_some_and(|path| path.contains("{event_id}"))
        }
        ErrorCode::NotInHistory => {
            matches!(
                operation,
                Operation::GetHistory
                    | Operation::GetPricePath
                    | Operation::GetClosing
                    | Operation::GetExport
            ) || operation.is_stream()
                || operation.row().params().contains(&Param::AsOf)
        }
        ErrorCode::TooManyStreams | ErrorCode::UpgradeRequired => operation.is_stream(),
        ErrorCode::RangeNotSatisfiable => operation.is_file(),
        ErrorCode::CursorExpired => operation.has_position(),
        ErrorCode::QuotaExceeded => operation.is_metered(),
        ErrorCode::Maintenance => !operation.is_free(),
        ErrorCode::InvalidBody | ErrorCode::BodyTooLarge | ErrorCode::FeedPaused => false,
    }
}

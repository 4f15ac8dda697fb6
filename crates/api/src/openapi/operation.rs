//! The operations under `/v1`, from the table of endpoints.

use serde_json::{Map, Value, json};

use crate::error::ErrorCode;
use crate::openapi::caller::Caller;
use crate::openapi::header::{Kept, headers_of};
use crate::openapi::response::Responses;
use crate::openapi::{example, object, parameter, refer};
use crate::v1::endpoint::Endpoint;
use crate::v1::param::Param;

/// Path items of every endpoint.
pub(crate) fn paths(responses: &mut Responses) -> Map<String, Value> {
    let mut paths = Map::new();
    for endpoint in Endpoint::ALL {
        if let Some(template) = endpoint.template() {
            paths.insert(template.to_owned(), path_item(endpoint, responses));
        }
    }
    paths
}

fn path_item(endpoint: Endpoint, responses: &mut Responses) -> Value {
    let mut answers = vec![("200".to_owned(), success(endpoint))];
    if kept(endpoint) != Kept::Present {
        answers.push(responses.not_modified());
    }
    let codes = ErrorCode::ALL.into_iter().filter(|code| can_answer(endpoint, *code));
    answers.extend(responses.refusals(Caller::Key, codes));
    let mut item = json!({
        "get": {
            "tags": [tag(endpoint)],
            "operationId": endpoint.name(),
            "summary": endpoint.title(),
            "description": endpoint.meaning(),
            "responses": object(answers),
        },
    });
    let parameters = parameter::of(endpoint);
    if let Some(fields) = item.as_object_mut()
        && !parameters.is_empty()
    {
        fields.insert("parameters".to_owned(), parameters.into());
    }
    item
}

fn success(endpoint: Endpoint) -> Value {
    json!({
        "description": meaning_of_success(endpoint),
        "headers": headers_of(kept(endpoint)),
        "content": {
            "application/json": {
                "schema": schema(endpoint),
                "examples": example::of(endpoint),
            },
        },
    })
}

fn meaning_of_success(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Sports => "The sports.",
        Endpoint::Odds => "Odds records; with `group_by=bout`, the bouts.",
        Endpoint::Scores => "Score records.",
        Endpoint::Events => "Events.",
        Endpoint::Event => "The event.",
        Endpoint::Books => "The bookmakers, in the order of their keys.",
        Endpoint::Status => "The status.",
        Endpoint::Unknown => "",
    }
}

fn schema(endpoint: Endpoint) -> Value {
    let list = |of: &str| json!({ "type": "array", "items": refer("schemas", of) });
    match endpoint {
        Endpoint::Sports => refer("schemas", "SportList"),
        Endpoint::Odds => {
            json!({ "oneOf": [list("OddsRecord"), refer("schemas", "GroupedBouts")] })
        }
        Endpoint::Scores => list("ScoreRecord"),
        Endpoint::Events => list("Event"),
        Endpoint::Event => refer("schemas", "Event"),
        Endpoint::Books => list("Bookmaker"),
        Endpoint::Status => refer("schemas", "ServiceStatus"),
        Endpoint::Unknown => json!({}),
    }
}

fn kept(endpoint: Endpoint) -> Kept {
    if endpoint == Endpoint::Status {
        Kept::Present
    } else if endpoint.params().contains(&Param::Cursor) {
        Kept::Paged
    } else {
        Kept::Whole
    }
}

fn tag(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Odds | Endpoint::Scores | Endpoint::Events | Endpoint::Event => "Odds and events",
        Endpoint::Sports | Endpoint::Books => "Catalogue",
        Endpoint::Status | Endpoint::Unknown => "Service",
    }
}

/// Whether an endpoint's path can get this code.
fn can_answer(endpoint: Endpoint, code: ErrorCode) -> bool {
    let in_sport = endpoint.template().is_some_and(|template| template.contains("{sport_key}"));
    match code {
        ErrorCode::AuthenticationFailed
        | ErrorCode::InvalidParameter
        | ErrorCode::MethodNotAllowed
        | ErrorCode::TargetTooLong
        | ErrorCode::HeadTooLarge
        | ErrorCode::RateLimited
        | ErrorCode::Internal
        | ErrorCode::Unavailable => true,
        ErrorCode::Forbidden | ErrorCode::SportNotFound | ErrorCode::NotFound => in_sport,
        ErrorCode::EventNotFound => endpoint == Endpoint::Event,
        ErrorCode::QuotaExceeded | ErrorCode::Maintenance => endpoint != Endpoint::Status,
        ErrorCode::InvalidBody | ErrorCode::BodyTooLarge | ErrorCode::FeedPaused => false,
    }
}

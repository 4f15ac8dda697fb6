//! Converts a tool call to a request, and its answer to a result.

use form_urlencoded::byte_serialize;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::page::{Page, Refused};
use crate::tool::{LIMIT_DEFAULT, LIMIT_MAX, Operation};

/// Maximum text of a result in bytes: more would fill a model's context with one answer.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A request under `/v1`.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// The parts of the path after `/v1`.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
}

impl Call {
    pub(crate) fn of_path(path: &[&str]) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { path, query: Vec::new() }
    }

    /// The path and query, encoded.
    pub fn target(&self) -> String {
        let mut target = "/v1".to_owned();
        for part in &self.path {
            target.push('/');
            target.extend(byte_serialize(part.as_bytes()));
        }
        for (at, (name, value)) in self.query.iter().enumerate() {
            target.push(if at == 0 { '?' } else { '&' });
            target.extend(byte_serialize(name.as_bytes()));
            target.push('=');
            target.extend(byte_serialize(value.as_bytes()));
        }
        target
    }
}

/// The request of a call, or the reason why it is invalid, in the form of the API's errors.
pub(crate) fn request(
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<Call, Value> {
    let mut given = Vec::new();
    for (name, value) in arguments {
        let Some(text) = text_of(value) else {
            return Err(refused(name, "must be a text, a number, or a list of them"));
        };
        given.push((name.clone(), text));
    }
    let mut path = Vec::new();
    for part in operation.path.split('/').filter(|part| !matches!(*part, "" | "v1")) {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        let Some(name) = name else {
            path.push(part.to_owned());
            continue;
        };
        let place = given.iter().position(|(known, text)| known == name && !text.is_empty());
        let Some(place) = place else { return Err(refused(name, "is needed")) };
        path.push(given.remove(place).1);
    }
    for (name, text) in &given {
        if !operation.query.contains(name) {
            return Err(refused(name, "is not known here"));
        }
        if name == "limit" && text.parse::<u64>().is_ok_and(|limit| limit > LIMIT_MAX) {
            return Err(refused(name, &format!("is at most {LIMIT_MAX} here")));
        }
    }
    if operation.is_paged() && !arguments.contains_key("limit") {
        given.push(("limit".to_owned(), LIMIT_DEFAULT.to_string()));
    }
    Ok(Call { path, query: given })
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> = items.iter().map(text_of).collect();
            texts.map(|texts| texts.join(","))
        }
        Value::Null | Value::Object(_) => None,
    }
}

fn refused(param: &str, what: &str) -> Value {
    let message = format!("`{param}` {what}");
    json!({ "code": "invalid_parameter", "message": message, "param": param })
}

/// An error result in the form of the API's errors.
pub(crate) fn failed(error: &Value) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(json!({ "error": error }).to_string())])
}

/// The result for an answer of the API.
pub(crate) fn result(answer: Result<Page, Refused>) -> CallToolResult {
    let Page { body, next_cursor } = match answer {
        Ok(page) => page,
        Err(refused) => return failed(&refused.into_error()),
    };
    let Ok(mut body) = serde_json::from_slice::<Value>(&body) else {
        return failed(
            &json!({ "code": "unexpected_response", "message": "the answer is not JSON" }),
        );
    };
    let left_out = shorten(&mut body);
    let mut result = json!({ "answer": body, "left_out": left_out });
    // The next page would begin after the records that are left out.
    if let (Some(fields), 0) = (result.as_object_mut(), left_out) {
        fields.extend(next_cursor.map(|cursor| ("next_cursor".to_owned(), cursor.into())));
    }
    CallToolResult::structured(result)
}

/// Removes records from the end of the longest list until the text is short enough; returns their number.
fn shorten(body: &mut Value) -> usize {
    let bytes = body.to_string().len();
    let Some(mut excess) = bytes.checked_sub(TEXT_BYTES_MAX - 256).filter(|excess| *excess > 0)
    else {
        return 0;
    };
    let list = match body {
        Value::Array(items) => Some(items),
        Value::Object(fields) => {
            fields.values_mut().filter_map(Value::as_array_mut).max_by_key(|items| items.len())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let Some(list) = list else { return 0 };
    let mut left_out = 0;
    while excess > 0 {
        let Some(record) = list.pop() else { break };
        excess = excess.saturating_sub(record.to_string().len() + 1);
        left_out += 1;
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Tools;

    fn tools() -> Tools {
        Tools::of(&serde_json::from_str(include_str!("../../../openapi.json")).unwrap())
    }

    fn request_of(name: &str, arguments: &Value) -> Result<(String, String), String> {
        let tools = tools();
        let call = request(tools.find(name).unwrap(), arguments.as_object().unwrap());
        let call = call.map_err(|error| error.to_string())?;
        let mut query: Vec<String> =
            call.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        query.sort();
        Ok((call.path.join("|"), query.join("&")))
    }

    #[test]
    fn a_call_is_a_request() {
        let is = |call: (String, String), path: &str, query: &str| {
            assert_eq!((call.0.as_str(), call.1.as_str()), (path, query));
        };
        let odds = json!({"sport_key": "a/b?c", "regions": ["us", "uk"], "market": "moneyline"});
        let odds = request_of("get_odds", &odds).unwrap();
        is(odds, "sports|a/b?c|odds", "limit=20&market=moneyline&regions=us,uk");
        let explain = json!({"sport_key": "mma", "event_id": "evt_1"});
        is(request_of("explain_event", &explain).unwrap(), "sports|mma|events|evt_1|explain", "");
        is(request_of("get_status", &json!({})).unwrap(), "status", "");
        let limited = json!({"sport_key": "mma", "limit": 100});
        is(request_of("list_ev", &limited).unwrap(), "sports|mma|ev", "limit=100");
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (arguments, name) in [
            (json!({}), "sport_key"),
            (json!({"sport_key": ""}), "sport_key"),
            (json!({"sport_key": "mma", "limit": 101}), "limit"),
            (json!({"sport_key": "mma", "format": "csv"}), "format"),
            (json!({"sport_key": "mma", "api_key": "sk_test_1"}), "api_key"),
            (json!({"sport_key": "mma", "market": {"a": 1}}), "market"),
        ] {
            let error = request_of("get_odds", &arguments).unwrap_err();
            assert!(error.contains("invalid_parameter") && error.contains(name), "{error}");
            assert!(!error.contains("sk_test_1"));
        }
    }

    #[test]
    fn a_long_answer_is_cut_between_records() {
        let record = json!({"id": "x".repeat(1000)});
        let body = json!({"lines": vec![record; 100], "books": [1]}).to_string().into_bytes();
        let result = result(Ok(Page { body, next_cursor: Some("c".to_owned()) }));
        let structured = result.structured_content.unwrap();
        let kept = structured["answer"]["lines"].as_array().unwrap().len();
        assert_eq!(structured["left_out"], 100 - kept);
        assert!(kept > 50 && structured.to_string().len() <= TEXT_BYTES_MAX);
        assert!(structured.get("next_cursor").is_none(), "the next page would begin too late");
    }

    #[test]
    fn every_tool_has_its_schemas() {
        let tools = tools();
        assert_eq!(tools.operations.len(), 13);
        for operation in &tools.operations {
            let output = operation.tool.output_schema.as_ref().unwrap();
            let text = serde_json::to_string(output).unwrap();
            assert!(!text.contains("#/components"), "{}", operation.tool.name);
            assert_ne!(output["properties"]["answer"], json!({}), "{}", operation.tool.name);
            assert!(output["$defs"].as_object().unwrap().values().all(|one| !one.is_null()));
            let input = serde_json::to_string(&operation.tool.input_schema).unwrap();
            assert!(!input.contains("api_key") && !input.contains("since"), "{input}");
        }
        let length = |one: &Operation| serde_json::to_string(&one.tool).unwrap().len();
        let all: usize = tools.operations.iter().map(length).sum();
        assert!(all < 160_000, "the list of tools has {all} bytes");
    }
}

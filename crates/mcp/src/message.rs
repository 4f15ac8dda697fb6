//! Messages of JSON-RPC 2.0 as the protocol uses them: one at a time, with parameters by name.

use serde_json::{Map, Value, json};

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The API refused the message itself: a limit, a service that cannot answer. In the range for servers of their own.
pub(crate) const REFUSED: i32 = -32000;
pub(crate) const RESOURCE_NOT_FOUND: i32 = -32002;
pub(crate) const HEADER_MISMATCH: i32 = -32020;
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;

/// Parameters of a message.
pub(crate) type Params = Map<String, Value>;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// An answer to what this server never asks.
    Response,
}

/// Why a message is not answered with a result.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// Reads a message.
///
/// # Errors
/// It is none; with its id, as far as it has one.
pub(crate) fn parse(bytes: &[u8]) -> Result<Message, Box<(Option<Value>, Fault)>> {
    let value = serde_json::from_slice(bytes)
        .map_err(|_| Box::new((None, Fault::new(PARSE_ERROR, "the message is not JSON"))))?;
    let Value::Object(mut fields) = value else {
        let text = "a message is one object; batches are not taken";
        return Err(Box::new((None, Fault::new(INVALID_REQUEST, text))));
    };
    let id = fields.remove("id");
    let known = id.clone().filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let invalid = |text: &str| Err(Box::new((known.clone(), Fault::new(INVALID_REQUEST, text))));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("`jsonrpc` must be \"2.0\"");
    }
    if id.is_some() && known.is_none() {
        return invalid("`id` must be a text or a whole number");
    }
    let is_response = fields.contains_key("result") || fields.contains_key("error");
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        None if is_response => return Ok(Message::Response),
        _ => return invalid("`method` must be a text"),
    };
    let params = match fields.remove("params") {
        None => Params::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return invalid("`params` must be an object"),
    };
    Ok(match known {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

/// A result, of fields as they are between braces.
pub(crate) fn write_result(id: &Value, fields: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{fields}}}}}").into_bytes()
}

pub(crate) fn write_fault(id: Option<&Value>, fault: Fault) -> Vec<u8> {
    let mut error = json!({ "code": fault.code, "message": fault.message });
    let mut message = json!({ "jsonrpc": "2.0" });
    if let (Some(error), Some(data)) = (error.as_object_mut(), fault.data) {
        error.insert("data".to_owned(), data);
    }
    if let Some(message) = message.as_object_mut() {
        message.extend(id.map(|id| ("id".to_owned(), id.clone())));
        message.insert("error".to_owned(), error);
    }
    message.to_string().into_bytes()
}

/// An object as it is between its braces.
pub(crate) fn fields_of(object: &Value) -> String {
    let text = object.to_string();
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request_or_a_notification() {
        let request = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        let Message::Request { id, method, params } = request else { panic!("{request:?}") };
        assert_eq!((id, method.as_str(), params.len()), (json!("a"), "ping", 0));
        let told = br#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"a":1}}"#;
        assert!(
            matches!(parse(told).unwrap(), Message::Notification { params, .. } if params.len() == 1)
        );
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(parse(response).unwrap(), Message::Response);
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        for (bytes, code, id) in [
            (&b"{"[..], PARSE_ERROR, None),
            (b"\xff", PARSE_ERROR, None),
            (b"[]", INVALID_REQUEST, None),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST, None),
            (br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, INVALID_REQUEST, Some(json!(7))),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST, None),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID_REQUEST, None),
            (br#"{"jsonrpc":"2.0","id":7,"method":1}"#, INVALID_REQUEST, Some(json!(7))),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
                INVALID_REQUEST,
                Some(json!(7)),
            ),
        ] {
            let (found, fault) = *parse(bytes).unwrap_err();
            assert_eq!((found, fault.code), (id, code), "{}", bytes.escape_ascii());
        }
        let deep = [b"{\"a\":".repeat(10_000), b"1".to_vec()].concat();
        assert_eq!(parse(&deep).unwrap_err().1.code, PARSE_ERROR);
    }
}

//! Messages of JSON-RPC 2.0 as they arrive over HTTP: one at a time, with parameters by name.

use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, JsonRpcRequest, RequestId,
    ServerJsonRpcMessage,
};
use serde_json::{Map, Value};

/// The API refused the message itself: a limit, or a service that cannot answer. In the range that is reserved for
/// servers.
pub(crate) const REFUSED: ErrorCode = ErrorCode(-32000);

/// Parameters of a message.
pub(crate) type Params = Map<String, Value>;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// An answer to a request that this server never sends.
    Response,
}

/// Parses a message.
///
/// # Errors
/// It is no message; the error comes with its id if it has one.
pub(crate) fn parse(bytes: &[u8]) -> Result<Message, Box<(Option<RequestId>, ErrorData)>> {
    let value = serde_json::from_slice(bytes).map_err(|_| {
        let error = ErrorData::new(ErrorCode::PARSE_ERROR, "the message is not JSON", None);
        Box::new((None, error))
    })?;
    let Value::Object(mut fields) = value else {
        let text = "a message is one object; batches are not supported";
        return Err(Box::new((None, ErrorData::invalid_request(text, None))));
    };
    let id = fields.remove("id");
    let has_id = id.is_some();
    let known: Option<RequestId> = id.and_then(|id| serde_json::from_value(id).ok());
    let invalid =
        |text: &'static str| Err(Box::new((known.clone(), ErrorData::invalid_request(text, None))));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("`jsonrpc` must be \"2.0\"");
    }
    if has_id && known.is_none() {
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

/// A request in the protocol's types. A request whose parameters do not fit its method is treated as an unknown
/// method.
///
/// # Errors
/// It cannot be a request.
pub(crate) fn typed(
    id: RequestId,
    method: String,
    params: Params,
) -> Result<JsonRpcRequest<ClientRequest>, ErrorData> {
    let fields = [("method".to_owned(), method.into()), ("params".to_owned(), params.into())];
    let request = serde_json::from_value(Value::Object(fields.into_iter().collect()));
    let request = request.map_err(|_| ErrorData::invalid_request("this is no request", None))?;
    Ok(JsonRpcRequest::new(id, request))
}

pub(crate) fn write(message: &ServerJsonRpcMessage) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

pub(crate) fn write_error(id: Option<RequestId>, error: ErrorData) -> Vec<u8> {
    write(&JsonRpcMessage::error(error, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request_or_a_notification() {
        let request = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        let Message::Request { id, method, params } = request else { panic!("{request:?}") };
        assert_eq!((id, method.as_str(), params.len()), (RequestId::String("a".into()), "ping", 0));
        let notification =
            br#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"a":1}}"#;
        assert!(
            matches!(parse(notification).unwrap(), Message::Notification { params, .. } if params.len() == 1)
        );
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(parse(response).unwrap(), Message::Response);
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        for (bytes, code, id) in [
            (&b"{"[..], ErrorCode::PARSE_ERROR, None),
            (b"\xff", ErrorCode::PARSE_ERROR, None),
            (b"[]", ErrorCode::INVALID_REQUEST, None),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, ErrorCode::INVALID_REQUEST, None),
            (
                br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
                ErrorCode::INVALID_REQUEST,
                Some(RequestId::Number(7)),
            ),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, ErrorCode::INVALID_REQUEST, None),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, ErrorCode::INVALID_REQUEST, None),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":1}"#,
                ErrorCode::INVALID_REQUEST,
                Some(RequestId::Number(7)),
            ),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
                ErrorCode::INVALID_REQUEST,
                Some(RequestId::Number(7)),
            ),
        ] {
            let (found, fault) = *parse(bytes).unwrap_err();
            assert_eq!((found, fault.code), (id, code), "{}", bytes.escape_ascii());
        }
        let deep = [b"{\"a\":".repeat(10_000), b"1".to_vec()].concat();
        assert_eq!(parse(&deep).unwrap_err().1.code, ErrorCode::PARSE_ERROR);
    }
}

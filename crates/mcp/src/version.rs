//! Versions of the protocol. Up to 2025-11-25 a client begins with `initialize`; from 2026-07-28 on every request says
//! in its `_meta` which version it is of. Neither needs a session here.

use serde_json::{Value, json};

use crate::message::{Fault, INVALID_PARAMS, Params, UNSUPPORTED_VERSION};
use crate::method::Method;

/// Requests carry their version and what their client can do.
pub(crate) const SELF_CONTAINED: &str = "2026-07-28";
/// The newest that begins with `initialize`: a client that asks for one that the server does not have is told this.
const NEWEST_WITH_INITIALIZE: &str = "2025-11-25";
pub(crate) const VERSIONS: [&str; 3] = ["2025-06-18", NEWEST_WITH_INITIALIZE, SELF_CONTAINED];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    WithInitialize,
    SelfContained,
}

/// The version that a request is of, where it says so itself.
pub(crate) fn of_request(params: &Params) -> Option<&str> {
    params.get("_meta")?.get(VERSION_KEY)?.as_str()
}

/// The version that `initialize` agrees on.
pub(crate) fn agreed(params: &Params) -> &'static str {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let has_initialize = VERSIONS.into_iter().filter(|version| *version != SELF_CONTAINED);
    has_initialize.into_iter().find(|own| Some(*own) == wanted).unwrap_or(NEWEST_WITH_INITIALIZE)
}

/// The form of a request's answer.
///
/// # Errors
/// The request is of a version that the server does not have, or does not say what its version asks for.
pub(crate) fn form(method: Option<Method>, params: &Params) -> Result<Form, Fault> {
    if method == Some(Method::Initialize) {
        return Ok(Form::WithInitialize);
    }
    let version = of_request(params);
    if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
        let data = json!({ "requested": version, "supported": VERSIONS });
        let text = "Unsupported protocol version";
        return Err(Fault { data: Some(data), ..Fault::new(UNSUPPORTED_VERSION, text) });
    }
    if version != Some(SELF_CONTAINED) && method != Some(Method::Discover) {
        return Ok(Form::WithInitialize);
    }
    check_meta(params)?;
    Ok(Form::SelfContained)
}

/// Checks that a request says what those of 2026-07-28 must.
///
/// # Errors
/// It does not.
pub(crate) fn check_meta(params: &Params) -> Result<(), Fault> {
    let meta = params.get("_meta");
    let is_told = |key: &str| match key {
        VERSION_KEY => of_request(params).is_some(),
        _ => meta.and_then(|meta| meta.get(key)).is_some_and(Value::is_object),
    };
    let missing: Vec<&str> =
        [VERSION_KEY, CAPABILITIES_KEY].into_iter().filter(|key| !is_told(key)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("`_meta` lacks or has malformed: {}", missing.join(", "));
    Err(Fault::new(INVALID_PARAMS, text))
}

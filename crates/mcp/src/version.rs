//! Versions of the protocol. Up to 2025-11-25 a client begins with `initialize`; from 2026-07-28 on every request says
//! in its `_meta` which version it is of. Neither needs a session here.

use rmcp::model::{ErrorData, ProtocolVersion, RequestMetaObject};
use serde_json::Value;

use crate::message::Params;
use crate::method::Method;

/// Requests carry their version and what their client can do.
pub(crate) const SELF_CONTAINED: ProtocolVersion = ProtocolVersion::V_2026_07_28;
pub(crate) const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, SELF_CONTAINED];

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    WithInitialize,
    SelfContained,
}

fn meta(params: &Params) -> RequestMetaObject {
    params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default().into()
}

/// The version that a request is of, where it says so itself.
pub(crate) fn of_request(params: &Params) -> Option<ProtocolVersion> {
    meta(params).protocol_version()
}

/// The form of a request's answer.
///
/// # Errors
/// The request is of a version that the server does not have, or does not say what its version asks for.
pub(crate) fn form(method: Option<Method>, params: &Params) -> Result<Form, ErrorData> {
    if method == Some(Method::Initialize) {
        return Ok(Form::WithInitialize);
    }
    let version = of_request(params);
    if let Some(version) = version.as_ref().filter(|version| !VERSIONS.contains(version)) {
        return Err(ErrorData::unsupported_protocol_version(version.clone(), VERSIONS));
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
pub(crate) fn check_meta(params: &Params) -> Result<(), ErrorData> {
    let missing = meta(params).missing_required_keys(&SELF_CONTAINED);
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("`_meta` lacks or has malformed: {}", missing.join(", "));
    Err(ErrorData::invalid_params(text, None))
}

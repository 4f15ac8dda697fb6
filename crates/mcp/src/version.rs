//! Versions of the protocol. Up to 2025-11-25 a client begins with `initialize`; from 2026-07-28 on every request
//! names its version in `_meta`. Neither needs a session here.

use rmcp::model::{ErrorData, ProtocolVersion, RequestMetaObject};
use serde_json::Value;

use crate::message::Params;
use crate::method::Method;

/// The version from which requests carry their version and the client's capabilities.
pub(crate) const SELF_CONTAINED: ProtocolVersion = ProtocolVersion::V_2026_07_28;
pub(crate) const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, SELF_CONTAINED];

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    WithInitialize,
    SelfContained,
}

fn meta(params: &Params) -> RequestMetaObject {
    params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default().into()
}

/// The version of a request, if the request names it.
pub(crate) fn of_request(params: &Params) -> Option<ProtocolVersion> {
    meta(params).protocol_version()
}

/// The form of a request's answer.
///
/// # Errors
/// The server does not have the request's version, or the request lacks what its version requires.
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

/// Checks that a request carries the fields that 2026-07-28 requires.
///
/// # Errors
/// A field is missing.
pub(crate) fn check_meta(params: &Params) -> Result<(), ErrorData> {
    let missing = meta(params).missing_required_keys(&SELF_CONTAINED);
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("`_meta` has missing or malformed fields: {}", missing.join(", "));
    Err(ErrorData::invalid_params(text, None))
}

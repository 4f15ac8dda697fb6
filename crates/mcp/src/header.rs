//! Headers of the HTTP transport that repeat parts of the body, so that proxies can route without reading it. A
//! server that reads both must refuse a contradiction.

use data_encoding::BASE64;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::Value;

use crate::message::Params;
use crate::method::Method;
use crate::version::{self, SELF_CONTAINED, VERSIONS};

/// The parts of a request over HTTP that its headers repeat. A header that is sent twice is a contradiction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Option<&'a [u8]>,
    /// `Mcp-Method`.
    pub method: Option<&'a [u8]>,
    /// `Mcp-Name`.
    pub name: Option<&'a [u8]>,
    /// One of them was sent more than once.
    pub is_ambiguous: bool,
}

impl Headers<'_> {
    /// Compares the headers with a message.
    ///
    /// # Errors
    /// They contradict it, or name a version that the server does not have.
    pub(crate) fn check(&self, method: &str, params: &Params) -> Result<(), ErrorData> {
        if self.is_ambiguous {
            let text = "a header of the protocol is sent more than once";
            return Err(mismatch(text));
        }
        let known = Method::parse(method);
        if known == Some(Method::Initialize) {
            let wanted = params.get("protocolVersion").and_then(Value::as_str);
            return match self.version {
                Some(version) if Some(version) != wanted.map(str::as_bytes) => {
                    let text = "MCP-Protocol-Version differs from `protocolVersion`";
                    Err(ErrorData::invalid_request(text, None))
                }
                _ => self.check_method(method),
            };
        }
        match (self.version, version::of_request(params)) {
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let text = "the request's _meta has a version, which needs MCP-Protocol-Version";
                return Err(mismatch(text));
            }
            (Some(header), Some(version)) if header != version.as_str().as_bytes() => {
                let text = "MCP-Protocol-Version differs from the version in the request's _meta";
                return Err(mismatch(text));
            }
            (Some(header), None) if header == SELF_CONTAINED.as_str().as_bytes() => {
                // A notification of that version carries no more.
                if known.is_some() {
                    version::check_meta(params)?;
                }
            }
            (Some(header), None)
                if !VERSIONS.iter().any(|own| own.as_str().as_bytes() == header) =>
            {
                let own: Vec<&str> = VERSIONS.iter().map(ProtocolVersion::as_str).collect();
                let text = format!("MCP-Protocol-Version must be one of {}", own.join(", "));
                return Err(ErrorData::invalid_request(text, None));
            }
            (Some(_), _) => {}
        }
        if self.version != Some(SELF_CONTAINED.as_str().as_bytes()) {
            return Ok(());
        }
        if self.method.is_none() {
            return Err(mismatch("the header Mcp-Method is needed"));
        }
        self.check_method(method)?;
        let subject = known.and_then(Method::subject);
        let subject = subject.and_then(|name| params.get(name)).and_then(Value::as_str);
        match (subject, self.name) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(mismatch("the header Mcp-Name is needed")),
            (Some(subject), Some(name)) if is_same(name, subject) => Ok(()),
            (Some(_), Some(_)) => Err(mismatch("Mcp-Name differs from what the body names")),
        }
    }

    fn check_method(&self, method: &str) -> Result<(), ErrorData> {
        match self.method {
            Some(header) if header != method.as_bytes() => {
                Err(mismatch("Mcp-Method differs from the body's `method`"))
            }
            _ => Ok(()),
        }
    }
}

fn mismatch(text: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::HEADER_MISMATCH, text, None)
}

/// Whether a header has a value, plain or in Base64.
fn is_same(header: &[u8], value: &str) -> bool {
    let packed = header.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="));
    match packed {
        Some(packed) => BASE64.decode(packed).is_ok_and(|bytes| bytes == value.as_bytes()),
        None => header == value.as_bytes(),
    }
}

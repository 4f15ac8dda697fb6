//! Authentication: finds the key of a request, and explains a refusal.
//!
//! A refusal names the mistake as far as the request alone shows it. It does not say whether a well-formed key is
//! unknown or revoked, and repeats no part of a key (D1).

use std::sync::Arc;

use accounts::{KeyEntry, KeyRefusal, KeySecret};
use http::{Request, SingleHeader};

use crate::admission::refusal::key_status_unknown;
use crate::connection::Connection;
use crate::context::Api;
use crate::error::{ApiError, ErrorCode};
use crate::v1::param::Param;
use crate::v1::query::Query;

/// Where the key was sent.
#[derive(PartialEq)]
pub(super) enum KeySource {
    Header,
    Query,
}

pub(super) fn authenticate(
    api: &Api,
    request: &Request<'_>,
    query: &Query<'_>,
    connection: &mut Connection,
) -> Result<(Arc<KeyEntry>, KeySource), KeyRefusal> {
    let keys = &api.accounts.keys;
    let now = connection.now;
    let known = &mut connection.memory.key;
    match request.key {
        SingleHeader::Once(key) => {
            Ok((keys.authenticate_again(key, now, known)?, KeySource::Header))
        }
        SingleHeader::Repeated => Err(KeyRefusal::Unknown),
        SingleHeader::Absent if api.settings.query_key_enabled => {
            let key = query.first(Param::ApiKey.name()).ok_or(KeyRefusal::Unknown)?;
            Ok((keys.authenticate_again(key.as_bytes(), now, known)?, KeySource::Query))
        }
        SingleHeader::Absent => Err(KeyRefusal::Unknown),
    }
}

/// Authenticates an agent's request, which may also send the key as a bearer token: many agents can send nothing else.
///
/// # Errors
/// The request has no valid key.
pub fn authenticate_agent(api: &Api, request: &Request<'_>) -> Result<Arc<KeyEntry>, ApiError> {
    let bearer = |value: &'_ [u8]| {
        let (scheme, key) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii().to_vec())
    };
    let key = match request.key {
        SingleHeader::Once(key) => Some(key.to_vec()),
        SingleHeader::Absent => request.page.authorization.once().and_then(bearer),
        SingleHeader::Repeated => None,
    };
    let text = match &key {
        Some(key) => match api.accounts.keys.authenticate(key, api.clock.now()) {
            Ok(entry) => return Ok(entry),
            Err(KeyRefusal::Unconfirmed) => return Err(key_status_unknown()),
            Err(KeyRefusal::Unknown) => wrong_key(key),
        },
        None => "a valid API key is needed, once, in X-API-Key or in Authorization: Bearer",
    };
    Err(refusal(text))
}

/// The refusal for a request without a valid key.
pub(super) fn refuse(
    request: &Request<'_>,
    query: &Query<'_>,
    query_key_enabled: bool,
) -> ApiError {
    refusal(mistake(request, query, query_key_enabled))
}

fn refusal(text: &'static str) -> ApiError {
    let mut error = ApiError::new(ErrorCode::AuthenticationFailed, text);
    error.challenge = Some("ApiKey realm=\"linesman\", header=\"X-API-Key\"");
    error
}

fn mistake(request: &Request<'_>, query: &Query<'_>, query_key_enabled: bool) -> &'static str {
    match request.key {
        SingleHeader::Once(key) => return wrong_key(key),
        SingleHeader::Repeated => {
            return "the request header X-API-Key is sent more than once; send it once";
        }
        SingleHeader::Absent => {}
    }
    match query.first(Param::ApiKey.name()) {
        Some(key) if query_key_enabled => return wrong_key(key.as_bytes()),
        Some(_) => {
            return "`api_key` is not accepted here; send the key in the request header X-API-Key";
        }
        None => {}
    }
    if query.first("apiKey").is_some() {
        return if query_key_enabled {
            "`apiKey` is called `api_key` here; better, send the key in the request header X-API-Key"
        } else {
            "`apiKey` is not accepted here; send the key in the request header X-API-Key"
        };
    }
    match request.page.authorization {
        SingleHeader::Absent => MISSING,
        SingleHeader::Once(_) | SingleHeader::Repeated => {
            "an Authorization header was sent; the key goes into the request header X-API-Key, without `Bearer`"
        }
    }
}

const MISSING: &str = "a valid API key is needed in the request header X-API-Key";

fn wrong_key(key: &[u8]) -> &'static str {
    if key.is_empty() {
        MISSING
    } else if key.starts_with(b"fk_") {
        "a feed token (fk_…) only pushes odds; reading needs an API key (sk_test_… or sk_live_…) in X-API-Key"
    } else if KeySecret::parse(key).is_none() {
        "the API key is mistyped or cut off: it is sk_test_ or sk_live_ and 32 letters and digits, of which the last \
         six are a checksum, and they do not fit"
    } else {
        "the API key is well formed, but not valid: it is of another installation, or revoked"
    }
}

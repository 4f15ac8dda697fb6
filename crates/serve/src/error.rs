//! The error table (D1, D2): every code with its status, and the one body every refusal has.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use crate::reply::{Body, Head, Reply};

/// Every code an answer can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    InvalidParameter,
    InvalidBody,
    AuthenticationFailed,
    Forbidden,
    SportNotFound,
    EventNotFound,
    NotFound,
    MethodNotAllowed,
    FeedPaused,
    BodyTooLarge,
    TargetTooLong,
    HeadTooLarge,
    RateLimited,
    QuotaExceeded,
    Internal,
    Maintenance,
    Unavailable,
}

impl ErrorCode {
    pub const ALL: [Self; 17] = [
        Self::InvalidParameter,
        Self::InvalidBody,
        Self::AuthenticationFailed,
        Self::Forbidden,
        Self::SportNotFound,
        Self::EventNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::FeedPaused,
        Self::BodyTooLarge,
        Self::TargetTooLong,
        Self::HeadTooLarge,
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::Internal,
        Self::Maintenance,
        Self::Unavailable,
    ];

    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidParameter | Self::InvalidBody => 400,
            Self::AuthenticationFailed => 401,
            Self::Forbidden => 403,
            Self::SportNotFound | Self::EventNotFound | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::FeedPaused => 409,
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::HeadTooLarge => 431,
            Self::RateLimited | Self::QuotaExceeded => 429,
            Self::Internal => 500,
            Self::Maintenance | Self::Unavailable => 503,
        }
    }

    pub const fn slug(self) -> &'static str {
        match self {
            Self::InvalidParameter => "invalid_parameter",
            Self::InvalidBody => "invalid_body",
            Self::AuthenticationFailed => "authentication_failed",
            Self::Forbidden => "forbidden",
            Self::SportNotFound => "sport_not_found",
            Self::EventNotFound => "event_not_found",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::FeedPaused => "feed_paused",
            Self::BodyTooLarge | Self::TargetTooLong | Self::HeadTooLarge => "request_too_large",
            Self::RateLimited => "rate_limited",
            Self::QuotaExceeded => "quota_exceeded",
            Self::Internal => "internal",
            Self::Maintenance => "maintenance",
            Self::Unavailable => "unavailable",
        }
    }

    /// What a reader of the reference needs to know of it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::InvalidParameter => {
                "A parameter is unknown, repeated, empty or outside its set; `param` names it."
            }
            Self::InvalidBody => {
                "The body of a push is not lines of text, or did not arrive whole."
            }
            Self::AuthenticationFailed => "The API key is missing, malformed, unknown or revoked.",
            Self::Forbidden => {
                "The key is valid but may not read this: a sport outside its groups, or no `odds:read`."
            }
            Self::SportNotFound => "There is no such sport; `/v1/sports` lists them.",
            Self::EventNotFound => "The event is unknown, cancelled or removed.",
            Self::NotFound => "There is no such path.",
            Self::MethodNotAllowed => "The path takes other methods; `Allow` names them.",
            Self::FeedPaused => {
                "An operator has paused the feed; its pushes are refused until it is resumed."
            }
            Self::BodyTooLarge => "The body is larger than the door takes.",
            Self::TargetTooLong => "The path and query are longer than 8 KiB.",
            Self::HeadTooLarge => "The request's headers are larger than 16 KiB or more than 64.",
            Self::RateLimited => "The key's rate limit is reached; retry after `Retry-After`.",
            Self::QuotaExceeded => {
                "The key's quota for the day or month is reached; `message` says which."
            }
            Self::Internal => "The service failed; the request id finds the reason in its log.",
            Self::Maintenance => {
                "The operator has closed the service for a while; try again after `Retry-After`."
            }
            Self::Unavailable => {
                "The service cannot answer at the moment; try again after `Retry-After`."
            }
        }
    }
}

/// A refusal on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) message: Cow<'static, str>,
    pub(crate) param: Option<Cow<'static, str>>,
    pub(crate) retry_after_s: Option<u32>,
    pub(crate) allow: Option<&'static str>,
    /// How to authenticate, where the answer is that one has to.
    pub(crate) challenge: Option<&'static str>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            param: None,
            retry_after_s: None,
            allow: None,
            challenge: None,
        }
    }

    pub(crate) fn param(
        param: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { param: Some(param.into()), ..Self::new(ErrorCode::InvalidParameter, message) }
    }

    /// For 429 and 503, and for a feed that is paused.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds.max(1));
        self
    }

    pub(crate) fn unavailable(message: &'static str) -> Self {
        Self::new(ErrorCode::Unavailable, message).retry_after(1)
    }

    pub(crate) fn internal() -> Self {
        Self::new(
            ErrorCode::Internal,
            "the service failed to answer; the request id finds the reason in its log",
        )
    }

    pub(crate) fn into_reply(self, request_id: impl fmt::Display) -> Reply {
        let mut error = serde_json::Map::new();
        error.insert("code".into(), self.code.slug().into());
        error.insert("message".into(), self.message.into_owned().into());
        error.insert("request_id".into(), request_id.to_string().into());
        if let Some(param) = self.param {
            error.insert("param".into(), param.into_owned().into());
        }
        let body = serde_json::json!({ "error": error }).to_string();
        let mut head = Head::default();
        head.put("content-type", "application/json");
        head.put("cache-control", "no-store");
        if let Some(seconds) = self.retry_after_s {
            head.put_number("retry-after", seconds);
        }
        if let Some(allow) = self.allow {
            head.put("allow", allow);
        }
        if let Some(challenge) = self.challenge {
            head.put("www-authenticate", challenge);
        }
        Reply {
            status: self.code.status(),
            code: Some(self.code),
            head,
            body: Body::Whole(Bytes::from(body)),
            spooled: None,
        }
    }
}

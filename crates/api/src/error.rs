//! The error table (D1, D2): every code with its status, and the body shared by all refusals.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use http::{Body, Head, Refusal, Reply, Request, TARGET_BYTES_MAX};

/// Every error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    InvalidParameter,
    InvalidBody,
    AuthenticationFailed,
    Forbidden,
    SportNotFound,
    EventNotFound,
    NotInHistory,
    NotFound,
    MethodNotAllowed,
    FeedPaused,
    CursorExpired,
    BodyTooLarge,
    TargetTooLong,
    RangeNotSatisfiable,
    HeadTooLarge,
    UpgradeRequired,
    RateLimited,
    QuotaExceeded,
    TooManyStreams,
    Internal,
    Maintenance,
    Unavailable,
}

impl ErrorCode {
    pub const ALL: [Self; 22] = [
        Self::InvalidParameter,
        Self::InvalidBody,
        Self::AuthenticationFailed,
        Self::Forbidden,
        Self::SportNotFound,
        Self::EventNotFound,
        Self::NotInHistory,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::FeedPaused,
        Self::CursorExpired,
        Self::BodyTooLarge,
        Self::TargetTooLong,
        Self::RangeNotSatisfiable,
        Self::HeadTooLarge,
        Self::UpgradeRequired,
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::TooManyStreams,
        Self::Internal,
        Self::Maintenance,
        Self::Unavailable,
    ];

    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidParameter | Self::InvalidBody => 400,
            Self::AuthenticationFailed => 401,
            Self::Forbidden => 403,
            Self::SportNotFound | Self::EventNotFound | Self::NotInHistory | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::FeedPaused => 409,
            Self::CursorExpired => 410,
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::RangeNotSatisfiable => 416,
            Self::UpgradeRequired => 426,
            Self::HeadTooLarge => 431,
            Self::RateLimited | Self::QuotaExceeded | Self::TooManyStreams => 429,
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
            Self::NotInHistory => "not_in_history",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::FeedPaused => "feed_paused",
            Self::CursorExpired => "cursor_expired",
            Self::BodyTooLarge | Self::TargetTooLong | Self::HeadTooLarge => "request_too_large",
            Self::RangeNotSatisfiable => "range_not_satisfiable",
            Self::UpgradeRequired => "upgrade_required",
            Self::RateLimited => "rate_limited",
            Self::QuotaExceeded => "quota_exceeded",
            Self::TooManyStreams => "too_many_streams",
            Self::Internal => "internal",
            Self::Maintenance => "maintenance",
            Self::Unavailable => "unavailable",
        }
    }

    /// The error for the code and the status of a reply.
    pub fn find(slug: &str, status: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.slug() == slug && code.status() == status)
    }

    /// Description for the reference.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::InvalidParameter => {
                "A parameter is unknown, repeated, empty or not an allowed value; `param` names it."
            }
            Self::InvalidBody => "The body of a push is not text in lines, or is incomplete.",
            Self::AuthenticationFailed => "The API key is missing, malformed, unknown or revoked.",
            Self::Forbidden => {
                "The key is valid but may not read this: a sport outside its groups, or no `odds:read` (for files of \
                 the archive `export:read`)."
            }
            Self::SportNotFound => "There is no such sport; `/v1/sports` lists them.",
            Self::EventNotFound => "The event is unknown, cancelled or removed.",
            Self::NotInHistory => {
                "There is no publication of that time; `/v1/history` gives the range of history."
            }
            Self::NotFound => "There is no such path.",
            Self::MethodNotAllowed => "The path accepts only other methods; `Allow` lists them.",
            Self::FeedPaused => {
                "An operator has paused the feed; its pushes are refused until it is resumed."
            }
            Self::CursorExpired => {
                "The changes since this cursor are no longer available or are too many: read everything again."
            }
            Self::BodyTooLarge => "The body is larger than this endpoint accepts.",
            Self::RangeNotSatisfiable => {
                "`Range` begins beyond the end of the file; `Content-Range` gives its length."
            }
            Self::TargetTooLong => "The path and query are longer than 8 KiB.",
            Self::HeadTooLarge => "The request's headers are larger than 16 KiB or more than 64.",
            Self::UpgradeRequired => {
                "The request asks for a version of the WebSocket protocol other than 13."
            }
            Self::RateLimited => "The key's rate limit is reached; retry after `Retry-After`.",
            Self::QuotaExceeded => {
                "The key's quota for the day or month is used up; `message` says which."
            }
            Self::TooManyStreams => {
                "The key has reached its maximum number of open streams; close one first."
            }
            Self::Internal => "The service failed; its log has the reason under the request id.",
            Self::Maintenance => {
                "The service is closed for maintenance; retry after `Retry-After`."
            }
            Self::Unavailable => "The service cannot answer now; retry after `Retry-After`.",
        }
    }
}

/// A refusal before it is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: Cow<'static, str>,
    pub param: Option<Cow<'static, str>>,
    pub retry_after_s: Option<u32>,
    pub allow: Option<&'static str>,
    /// Value of `WWW-Authenticate`, if authentication is required.
    pub challenge: Option<&'static str>,
    /// Length of the file, if the requested range is outside it.
    pub content_length: Option<u64>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            param: None,
            retry_after_s: None,
            allow: None,
            challenge: None,
            content_length: None,
        }
    }

    pub fn param(
        param: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { param: Some(param.into()), ..Self::new(ErrorCode::InvalidParameter, message) }
    }

    /// Sets `Retry-After`: for 429 and 503, and for a paused feed.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds.max(1));
        self
    }

    pub fn unavailable(message: &'static str) -> Self {
        Self::new(ErrorCode::Unavailable, message).retry_after(1)
    }

    pub fn internal() -> Self {
        Self::new(
            ErrorCode::Internal,
            "the service failed to answer; its log has the reason under the request id",
        )
    }

    pub fn into_reply(self, request_id: impl fmt::Display) -> Reply {
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
        if self.code == ErrorCode::UpgradeRequired {
            head.put("upgrade", "websocket");
            head.put("sec-websocket-version", http::websocket::VERSION);
        }
        if let Some(length) = self.content_length {
            head.put("content-range", format!("bytes */{length}"));
        }
        if let Some(challenge) = self.challenge {
            head.put("www-authenticate", challenge);
        }
        Reply {
            code: Some(self.code.slug()),
            body: Body::Whole(Bytes::from(body)),
            ..Reply::empty(self.code.status(), head)
        }
    }
}

impl From<(Refusal, &'static str)> for ApiError {
    fn from((refusal, message): (Refusal, &'static str)) -> Self {
        match refusal {
            Refusal::NotHttp => Self::new(ErrorCode::InvalidParameter, message),
            Refusal::HeadTooLarge => Self::new(ErrorCode::HeadTooLarge, message),
            Refusal::TargetTooLong => Self::new(ErrorCode::TargetTooLong, message),
            Refusal::BodyTooLarge => Self::new(ErrorCode::BodyTooLarge, message),
            Refusal::TooManyConnections => Self::unavailable(message),
            Refusal::Internal => Self::new(ErrorCode::Internal, message),
        }
    }
}

/// Refuses a path and query that are too long. Under `/v1` this check follows the key (D3).
///
/// # Errors
/// The path and query are too long.
pub fn check_target(request: &Request<'_>) -> Result<(), ApiError> {
    if request.path.len() + request.query.len() > TARGET_BYTES_MAX {
        let text = "the path and query are longer than 8 KiB";
        return Err(ApiError::new(ErrorCode::TargetTooLong, text));
    }
    Ok(())
}

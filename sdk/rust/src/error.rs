//! Errors: one type, with a code for each code of the API.

use std::fmt;

use crate::macros::open_enum;
use crate::types::PushReceipt;

open_enum! {
    /// The kind of an error.
    ErrorCode {
        /// A parameter is unknown, empty or outside its set; `param` names it.
        InvalidParameter = "invalid_parameter",
        /// The body of a push cannot be read.
        InvalidBody = "invalid_body",
        /// The key or token is missing, malformed, unknown or revoked.
        AuthenticationFailed = "authentication_failed",
        /// The key may not read this, or the token may not push it.
        Forbidden = "forbidden",
        /// There is no such sport.
        SportNotFound = "sport_not_found",
        /// There is no such event.
        EventNotFound = "event_not_found",
        /// History does not have this instant.
        NotInHistory = "not_in_history",
        /// There is no such path.
        NotFound = "not_found",
        /// The path does not have this method.
        MethodNotAllowed = "method_not_allowed",
        /// An operator has paused the feed.
        FeedPaused = "feed_paused",
        /// The changes since this cursor are no longer available.
        CursorExpired = "cursor_expired",
        /// The request is too large.
        RequestTooLarge = "request_too_large",
        /// The requested part of a file is beyond its end.
        RangeNotSatisfiable = "range_not_satisfiable",
        /// Too many requests in this minute.
        RateLimited = "rate_limited",
        /// The quota of the day or month is used up.
        QuotaExceeded = "quota_exceeded",
        /// The key has the maximum number of streams open.
        TooManyStreams = "too_many_streams",
        /// The request names a version of WebSocket that the server does not support.
        UpgradeRequired = "upgrade_required",
        /// The server failed.
        Internal = "internal",
        /// An operator has closed the service temporarily.
        Maintenance = "maintenance",
        /// The server cannot answer at the moment.
        Unavailable = "unavailable",
        /// No response arrived: no connection, a lost connection, or a timeout.
        ConnectionFailed = "connection_failed",
        /// The response is not one of the API.
        UnexpectedResponse = "unexpected_response",
        /// An argument of a client is invalid.
        InvalidConfiguration = "invalid_configuration",
    }
}

/// The result of every method.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of every method. It never contains a key or a token.
#[derive(Debug)]
pub struct Error(Box<ErrorDetails>);

/// Boxed, so that successful results stay small.
#[derive(Debug)]
struct ErrorDetails {
    code: ErrorCode,
    message: String,
    status: Option<u16>,
    param: Option<String>,
    request_id: Option<String>,
    retry_after: Option<f64>,
    receipt: Option<PushReceipt>,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails {
            code,
            message: message.into(),
            status: None,
            param: None,
            request_id: None,
            retry_after: None,
            receipt: None,
        }))
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidConfiguration, message)
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(crate) fn with_param(mut self, param: Option<String>) -> Self {
        self.0.param = param;
        self
    }

    pub(crate) fn with_request_id(mut self, request_id: Option<String>) -> Self {
        self.0.request_id = request_id;
        self
    }

    pub(crate) fn with_retry_after(mut self, seconds: Option<f64>) -> Self {
        self.0.retry_after = seconds;
        self
    }

    pub(crate) fn with_receipt(mut self, receipt: PushReceipt) -> Self {
        self.0.receipt = Some(receipt);
        self
    }

    /// The kind of the error, for programs.
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// The description of the error, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status; `None` if no response arrived.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The invalid parameter, if there is one.
    pub fn param(&self) -> Option<&str> {
        self.0.param.as_deref()
    }

    /// The request's id, for the operator of the service.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Seconds to wait before the next attempt, if the server sent them.
    pub fn retry_after(&self) -> Option<f64> {
        self.0.retry_after
    }

    /// For a push: the part that the server had confirmed before this error.
    pub fn receipt(&self) -> Option<&PushReceipt> {
        self.0.receipt.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "{}: {}", self.code(), self.message())?;
        if let Some(param) = self.param() {
            write!(text, " · param {param}")?;
        }
        if let Some(request_id) = self.request_id() {
            write!(text, " · request {request_id}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

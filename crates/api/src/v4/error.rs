//! The errors of `/v4` (V16): every code with its status and the beginning of its message, and their common body.

use std::borrow::Cow;

use bytes::Bytes;
use http::{Body, Head, Reply};
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::v4::settings::V4Settings;

/// The codes: variant, text on the wire, status, beginning of the message, description for the reference.
macro_rules! codes {
    ($($variant:ident = $slug:literal, $status:literal, $begins:literal, $meaning:literal;)+) => {
        /// Every error code of `/v4`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($variant,)+
        }

        impl Code {
            pub const ALL: [Self; [$($slug),+].len()] = [$(Self::$variant),+];

            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)+ }
            }

            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Beginning of the message: programs search for it.
            pub const fn begins(self) -> &'static str {
                match self { $(Self::$variant => $begins,)+ }
            }

            /// Description for the reference.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

codes! {
    MissingKey = "MISSING_KEY", 401, "API key is missing",
        "No key was sent.";
    InvalidKey = "INVALID_KEY", 401, "API key is not valid",
        "The key is unknown, revoked or mistyped.";
    OutOfUsageCredits = "OUT_OF_USAGE_CREDITS", 401, "Usage quota has been reached",
        "The response costs more credits than are left in the key's quota. Nothing was charged.";
    HistoricalUnavailable = "HISTORICAL_UNAVAILABLE_ON_FREE_USAGE_PLAN", 401, "Historical data is not available",
        "This service keeps no history (`history.enabled = false`).";
    Forbidden = "FORBIDDEN", 403, "Forbidden",
        "The key is valid but may not read this sport, or has no permission `odds:read`.";
    UnknownSport = "UNKNOWN_SPORT", 404, "Unknown sport",
        "There is no such sport key; `/v4/sports?all=true` lists them.";
    EventNotFound = "EVENT_NOT_FOUND", 404, "Event not found",
        "The event is unknown, final, removed or of another sport.";
    NotFound = "NOT_FOUND", 404, "Not found",
        "There is no such path.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed",
        "The path answers GET and HEAD only.";
    TargetTooLong = "REQUEST_TOO_LARGE", 414, "Request too large",
        "The path and query are longer than 8 KiB.";
    HeadTooLarge = "REQUEST_TOO_LARGE", 431, "Request too large",
        "The request's headers are larger than 16 KiB or more than 64.";
    MissingRegion = "MISSING_REGION", 422, "Missing regions or bookmakers key",
        "Neither `regions` nor `bookmakers` was sent.";
    InvalidRegion = "INVALID_REGION", 422, "Invalid regions",
        "`regions` names a region that does not exist.";
    InvalidBookmakers = "INVALID_BOOKMAKERS", 422, "Invalid bookmakers",
        "`bookmakers` names a bookmaker that is not known.";
    InvalidMarket = "INVALID_MARKET", 422, "Markets not supported by this endpoint",
        "`markets` names a market that this endpoint does not have.";
    InvalidMarketCombo = "INVALID_MARKET_COMBO", 422, "Invalid markets",
        "`markets` names a market that the sport does not have.";
    InvalidOddsFormat = "INVALID_ODDS_FORMAT", 422, "Invalid oddsFormat",
        "`oddsFormat` is neither `decimal` nor `american`.";
    InvalidDateFormat = "INVALID_DATE_FORMAT", 422, "Invalid dateFormat",
        "`dateFormat` is neither `iso` nor `unix`.";
    InvalidEventIds = "INVALID_EVENT_IDS", 422, "Invalid eventIds",
        "`eventIds` has an item that is no event ID, or more than 200.";
    InvalidEventId = "INVALID_EVENT_ID", 422, "Invalid eventId",
        "The event ID in the path has another form.";
    InvalidAllSportsParam = "INVALID_ALL_SPORTS_PARAM", 422, "Invalid all",
        "`all` is neither `true` nor `false`.";
    InvalidScoresDaysFrom = "INVALID_SCORES_DAYS_FROM", 422, "Invalid daysFrom",
        "`daysFrom` is not 1, 2 or 3.";
    InvalidCommenceTimeFrom = "INVALID_COMMENCE_TIME_FROM", 422, "Invalid commenceTimeFrom",
        "`commenceTimeFrom` is not of the form `YYYY-MM-DDTHH:MM:SSZ`.";
    InvalidCommenceTimeTo = "INVALID_COMMENCE_TIME_TO", 422, "Invalid commenceTimeTo",
        "`commenceTimeTo` is not of the form `YYYY-MM-DDTHH:MM:SSZ`.";
    InvalidCommenceTimeRange = "INVALID_COMMENCE_TIME_RANGE", 422, "Invalid commenceTimeFrom and commenceTimeTo",
        "`commenceTimeTo` is not later than `commenceTimeFrom`.";
    InvalidIncludeLinks = "INVALID_INCLUDE_LINKS", 422, "Invalid includeLinks",
        "`includeLinks` is neither `true` nor `false`.";
    InvalidIncludeSids = "INVALID_INCLUDE_SIDS", 422, "Invalid includeSids",
        "`includeSids` is neither `true` nor `false`.";
    InvalidIncludeBetLimits = "INVALID_INCLUDE_BET_LIMITS", 422, "Invalid includeBetLimits",
        "`includeBetLimits` is neither `true` nor `false`.";
    InvalidIncludeRotationNumbers = "INVALID_INCLUDE_ROTATION_NUMBERS", 422, "Invalid includeRotationNumbers",
        "`includeRotationNumbers` is neither `true` nor `false`.";
    InvalidIncludeMultipliers = "INVALID_INCLUDE_MULTIPLIERS", 422, "Invalid includeMultipliers",
        "`includeMultipliers` is neither `true` nor `false`.";
    InvalidHistoricalTimestamp = "INVALID_HISTORICAL_TIMESTAMP", 422, "Invalid date",
        "`date` is no timestamp, or there is no history of that time.";
    MissingHistoricalTimestamp = "MISSING_HISTORICAL_TIMESTAMP", 422, "Missing date",
        "`date` was not sent.";
    InvalidSandboxFault = "INVALID_SANDBOX_FAULT", 422, "Invalid X-Sandbox-Fault",
        "The header `X-Sandbox-Fault` names no fault, or came with a live key.";
    ExceededFreqLimit = "EXCEEDED_FREQ_LIMIT", 429, "Requests are being sent too frequently",
        "The key's rate limit is reached; retry after `Retry-After`.";
    InternalError = "INTERNAL_ERROR", 500, "Internal error",
        "The service failed; its log has the reason under the request ID.";
    Maintenance = "MAINTENANCE", 503, "Maintenance",
        "The service is closed for maintenance; retry after `Retry-After`.";
    Unavailable = "UNAVAILABLE", 503, "Unavailable",
        "The service cannot answer now; retry after `Retry-After`.";
}

impl Code {
    /// The anchor of the code in the documentation.
    pub fn anchor(self) -> String {
        self.slug().to_ascii_lowercase().replace('_', "-")
    }
}

/// A refusal before it is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
    retry_after_s: Option<u32>,
    allow: Option<&'static str>,
}

impl Refused {
    /// A refusal whose message continues the beginning of the code's messages.
    pub(crate) fn new(code: Code, rest: &str) -> Self {
        let message = Cow::Owned(format!("{}{rest}", code.begins()));
        Self { code, message, retry_after_s: None, allow: None }
    }

    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds.max(1));
        self
    }

    pub(crate) fn into_reply(self, settings: &V4Settings) -> Reply {
        let mut details_url = settings.docs_url.clone();
        details_url.push('#');
        details_url.push_str(&self.code.anchor());
        let body = json!({
            "message": self.message,
            "error_code": self.code.slug(),
            "details_url": details_url,
        });
        let mut head = Head::default();
        head.put("content-type", "application/json");
        head.put("cache-control", "no-store");
        if let Some(seconds) = self.retry_after_s {
            head.put_number("retry-after", seconds);
        }
        if let Some(allow) = self.allow {
            head.put("allow", allow);
        }
        Reply {
            code: Some(self.code.slug()),
            body: Body::Whole(Bytes::from(body.to_string())),
            ..Reply::empty(self.code.status(), head)
        }
    }
}

impl From<ApiError> for Refused {
    /// Converts refusals shared with `/v1` to the form of `/v4`.
    fn from(error: ApiError) -> Self {
        let code = match error.code {
            // The only parameter read in the same way by both.
            ErrorCode::InvalidParameter | ErrorCode::InvalidBody => Code::InvalidSandboxFault,
            ErrorCode::AuthenticationFailed => Code::InvalidKey,
            ErrorCode::Forbidden | ErrorCode::FeedPaused => Code::Forbidden,
            ErrorCode::SportNotFound => Code::UnknownSport,
            ErrorCode::EventNotFound | ErrorCode::NotInHistory | ErrorCode::CursorExpired => {
                Code::EventNotFound
            }
            ErrorCode::NotFound => Code::NotFound,
            ErrorCode::MethodNotAllowed | ErrorCode::UpgradeRequired => Code::MethodNotAllowed,
            ErrorCode::TargetTooLong => Code::TargetTooLong,
            // `/v4` sends no files.
            ErrorCode::RangeNotSatisfiable => Code::InternalError,
            ErrorCode::HeadTooLarge | ErrorCode::BodyTooLarge => Code::HeadTooLarge,
            ErrorCode::RateLimited | ErrorCode::TooManyStreams => Code::ExceededFreqLimit,
            ErrorCode::QuotaExceeded => Code::OutOfUsageCredits,
            ErrorCode::Internal => Code::InternalError,
            ErrorCode::Maintenance => Code::Maintenance,
            ErrorCode::Unavailable => Code::Unavailable,
        };
        let message = &error.message;
        let rest = if code == Code::OutOfUsageCredits {
            format!(": the usage limit is reached, {message}")
        } else if code == Code::ExceededFreqLimit {
            format!(": {message}; wait as Retry-After says")
        } else if code == Code::Forbidden {
            format!(": {message}; ask the operator for a key that may read it")
        } else {
            format!(": {message}")
        };
        let ApiError { retry_after_s, allow, .. } = error;
        Self { retry_after_s, allow, ..Self::new(code, &rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart_by_text_and_status_and_have_an_anchor() {
        for (at, code) in Code::ALL.into_iter().enumerate() {
            let same =
                |other: &&Code| other.slug() == code.slug() && other.status() == code.status();
            assert_eq!(Code::ALL.iter().filter(same).count(), 1, "{}", code.slug());
            assert_eq!(Code::ALL.get(at), Some(&code));
        }
        assert_eq!(Code::ExceededFreqLimit.anchor(), "exceeded-freq-limit");
    }

    #[test]
    fn a_message_begins_as_programs_expect_it() {
        let spent = ApiError::new(ErrorCode::QuotaExceeded, "quota reached").retry_after(9);
        let refused = Refused::from(spent);
        assert!(refused.message.starts_with("Usage quota has been reached"));
        assert!(refused.message.contains("usage limit"));
        assert_eq!((refused.code.status(), refused.retry_after_s), (401, Some(9)));
    }
}

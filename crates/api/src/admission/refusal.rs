//! Refusals common to all operations: key, limit, method, a service that cannot answer now.

use accounts::{Charge, Grant, Owner, Refusal, Standing, Window};
use domain::{Catalogue, SportId, Timestamp};
use engine::HistoryError;

use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;

/// `Retry-After` for a full store or queue, in seconds.
const UNAVAILABLE_RETRY_S: u32 = 1;

/// This node was disconnected too long to verify the key, which may be valid.
pub(crate) fn key_status_unknown() -> ApiError {
    let text = "key status is temporarily unknown on this node; retry";
    ApiError::new(ErrorCode::Unavailable, text).retry_after(UNAVAILABLE_RETRY_S)
}

/// Refuses a key without permission for odds, events and scores.
pub(crate) fn check_permission(grant: &Grant) -> Result<(), ApiError> {
    if !grant.odds_read {
        let text = "this key has no permission odds:read, which odds, events and scores need";
        return Err(ApiError::new(ErrorCode::Forbidden, text));
    }
    Ok(())
}

/// Refuses a sport outside the scope of a key.
pub(crate) fn admit(grant: &Grant, catalogue: &Catalogue, sport: SportId) -> Result<(), ApiError> {
    check_permission(grant)?;
    check_group(grant, catalogue, sport)
}

/// Refuses a sport of any catalogue outside the scope of a key. Scope is the current one (H4): the group is that of the
/// present catalogue, if it has the sport.
pub(crate) fn admit_in(
    grant: &Grant,
    present: &Catalogue,
    (catalogue, sport): (&Catalogue, SportId),
) -> Result<(), ApiError> {
    match present.sport_id(&catalogue.sport(sport).key) {
        Some(now) => admit(grant, present, now),
        None => admit(grant, catalogue, sport),
    }
}

/// Refuses a key without access to files of a sport.
pub(crate) fn check_export(
    grant: &Grant,
    catalogue: &Catalogue,
    sport: SportId,
) -> Result<(), ApiError> {
    if !grant.export_read {
        let text = "this key has no permission export:read, which files of the archive need";
        return Err(ApiError::new(ErrorCode::Forbidden, text));
    }
    check_group(grant, catalogue, sport)
}

fn check_group(grant: &Grant, catalogue: &Catalogue, sport: SportId) -> Result<(), ApiError> {
    let group = &catalogue.sport(sport).group;
    if !grant.covers_group(group) {
        let text = format!("this key is restricted to other sport groups than `{group}`");
        return Err(ApiError::new(ErrorCode::Forbidden, text));
    }
    Ok(())
}

/// The service is overloaded and this response is not cached.
pub(crate) fn too_busy() -> ApiError {
    ApiError::unavailable("the service is busy and this answer is not ready; try again shortly")
}

/// This node has not read the log yet.
pub(crate) fn not_yet() -> ApiError {
    ApiError::unavailable("this node is starting and has nothing to show yet; try again shortly")
}

pub(crate) fn wrong_method(operation: Operation) -> ApiError {
    let (text, allow) = match operation.is_stream() {
        true => ("this path answers GET only", "GET"),
        false => ("this path answers GET and HEAD only", "GET, HEAD"),
    };
    let mut error = ApiError::new(ErrorCode::MethodNotAllowed, text);
    error.allow = Some(allow);
    error
}

/// A path that does not exist, or only without its final slash.
pub fn no_such_path(only_slash: bool) -> ApiError {
    let text = if only_slash {
        "there is no such path; leave out the slash at its end"
    } else {
        "there is no such path; /docs lists the endpoints"
    };
    ApiError::new(ErrorCode::NotFound, text)
}

/// The operator has closed the service.
pub(crate) fn closed(retry_after_s: u32) -> ApiError {
    let text = "the service is closed for maintenance; try again later";
    ApiError::new(ErrorCode::Maintenance, text).retry_after(retry_after_s)
}

pub(crate) fn charged(charge: Charge) -> Result<Standing, ApiError> {
    match charge {
        Charge::Granted(standing) => Ok(standing),
        Charge::Refused(refusal) => Err(refused(refusal)),
        Charge::Unavailable => {
            let text = "requests cannot be counted now; retry shortly";
            Err(ApiError::new(ErrorCode::Unavailable, text).retry_after(UNAVAILABLE_RETRY_S))
        }
    }
}

pub(crate) fn refused(refusal: Refusal) -> ApiError {
    let limit = refusal.limit;
    let whose = match refusal.owner {
        Owner::Key => "",
        Owner::Account => " of the account",
    };
    let (code, what, span) = match refusal.window {
        Window::Minute => (ErrorCode::RateLimited, "rate limit", "minute"),
        Window::Day => (ErrorCode::QuotaExceeded, "quota", "day (UTC)"),
        Window::Month => (ErrorCode::QuotaExceeded, "quota", "month (UTC)"),
    };
    let text = format!("{what}{whose} reached: {limit} requests per {span}");
    ApiError::new(code, text).retry_after(refusal.retry_after_s)
}

/// History does not have the requested time, or cannot be read.
pub(crate) fn refused_by_history(error: &HistoryError) -> ApiError {
    match error {
        HistoryError::Off => {
            ApiError::new(ErrorCode::NotInHistory, "this service keeps no history of this data")
        }
        HistoryError::NotKept(reach) => {
            let text = |at: Timestamp| String::from_utf8_lossy(&at.millis_text()).into_owned();
            let lost =
                if reach.gaps.is_empty() { "" } else { ", with gaps that /v1/history lists" };
            let (from, to) = (text(reach.from), text(reach.to));
            let text = format!(
                "there is no publication of that time; history reaches from {from} to {to}{lost}"
            );
            ApiError::new(ErrorCode::NotInHistory, text)
        }
        HistoryError::Busy => {
            ApiError::unavailable("too many lookups of past times are running; retry shortly")
        }
        HistoryError::NoCatalogue => ApiError::unavailable(
            "that time was published with another catalogue, which this service does not have",
        ),
        HistoryError::TooFar | HistoryError::TooMuch | HistoryError::Unreadable(_) => {
            ApiError::unavailable("that time cannot be read now; retry shortly")
        }
    }
}

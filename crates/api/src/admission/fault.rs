//! Faults on request: a sandbox key may ask for a faulty response to test a client's error handling. The response
//! looks exactly like the real one and costs as much: a refusal nothing, and a slow response what it costs without the
//! fault.

use std::time::Duration;

use accounts::{KeyEntry, KeyKind, Refusal, Standing, Window};
use domain::Timestamp;
use domain::suggest::did_you_mean;

use crate::admission::refusal::{closed, refused};
use crate::error::{ApiError, ErrorCode};

/// Delay of a slow response: longer than the timeout of a careless client, shorter than that of a careful one.
const SLOW_BY: Duration = Duration::from_secs(5);
/// `Retry-After` of maintenance and outage, in seconds.
const RETRY_AFTER_S: u32 = 30;

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    RateLimited,
    QuotaExceeded,
    Maintenance,
    Internal,
    Unavailable,
    Slow,
}

impl Fault {
    pub(crate) const ALL: [Self; 6] = [
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::Maintenance,
        Self::Internal,
        Self::Unavailable,
        Self::Slow,
    ];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::QuotaExceeded => "quota_exceeded",
            Self::Maintenance => "maintenance",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Slow => "slow",
        }
    }

    /// Parses the header, if the key may use it.
    pub(crate) fn parse(header: Option<&[u8]>, entry: &KeyEntry) -> Result<Option<Self>, ApiError> {
        let Some(value) = header else { return Ok(None) };
        if entry.grant.kind != KeyKind::Sandbox {
            let text = "X-Sandbox-Fault is for sandbox keys; a live key is never answered with a made-up fault";
            return Err(ApiError::param("X-Sandbox-Fault", text));
        }
        let value = std::str::from_utf8(value).unwrap_or_default().trim();
        let found = Self::ALL.into_iter().find(|fault| fault.key() == value);
        found.map(Some).ok_or_else(|| {
            let keys = || Self::ALL.iter().map(|fault| fault.key());
            let near = did_you_mean(value, keys());
            let list: Vec<&str> = keys().collect();
            let text = format!("there is no such fault; use one of {}{near}", list.join(", "));
            ApiError::param("X-Sandbox-Fault", text)
        })
    }

    /// Returns the refusal of the real fault, or waits.
    pub(crate) async fn apply(self, standing: &Standing, now: Timestamp) -> Result<(), ApiError> {
        let seconds = |until: Timestamp| {
            u32::try_from(until.since(now).as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
        };
        match self {
            Self::RateLimited => Err(refused(Refusal {
                owner: standing.burst.owner,
                window: Window::Minute,
                limit: standing.burst.limit,
                remaining: 0,
                retry_after_s: seconds(standing.burst.resets_at),
            })),
            Self::QuotaExceeded => Err(refused(Refusal {
                owner: standing.quota.owner,
                window: standing.quota.window,
                limit: standing.quota.limit,
                remaining: 0,
                retry_after_s: seconds(standing.quota.resets_at),
            })),
            Self::Maintenance => Err(closed(RETRY_AFTER_S)),
            Self::Internal => Err(ApiError::internal()),
            Self::Unavailable => {
                let text = "the service cannot answer now; retry shortly";
                Err(ApiError::new(ErrorCode::Unavailable, text).retry_after(RETRY_AFTER_S))
            }
            Self::Slow => {
                tokio::time::sleep(SLOW_BY).await;
                Ok(())
            }
        }
    }

    /// Makes the rate limit headers consistent with the body.
    pub(crate) fn adjust_standing(self, standing: &mut Standing) {
        let spent = match self {
            Self::RateLimited => &mut standing.burst,
            Self::QuotaExceeded => &mut standing.quota,
            Self::Maintenance | Self::Internal | Self::Unavailable | Self::Slow => return,
        };
        spent.used = spent.limit;
        spent.remaining = 0;
    }
}

//! The head of a response: its publication, and what the key has left.

use accounts::{KeyEntry, Limits, Standing, Window};
use domain::Timestamp;
use engine::{PastPublication, Published};
use http::Head;

use crate::answers::Encoded;

/// The header lines common to a 200 and a 304.
pub(crate) fn begin_head(published: &Published, encoded: &Encoded, now: Timestamp) -> Head {
    let mut head = Head::with_default_room();
    head.put_lines(&encoded.validators);
    // Maximum age: the whole seconds left in the epoch, rounded down (D14).
    head.line("cache-control", |line| {
        line.text("private, max-age=");
        line.number(published.until.since(now).as_secs());
    });
    head
}

/// Begins the headers of a response that was requested by publication time.
pub(crate) fn begin_head_of_past(
    past: &PastPublication,
    encoded: &Encoded,
    now: Timestamp,
) -> Head {
    let mut head = if past.current {
        begin_head(&past.published, encoded, now)
    } else {
        let mut head = Head::with_default_room();
        head.put_lines(&encoded.validators);
        // Past publications never change.
        head.put_bytes("cache-control", b"private, max-age=86400, immutable");
        head
    };
    let beside = [("x-previous-publication", past.previous), ("x-next-publication", past.next)];
    for (name, at) in beside {
        if let Some(at) = at {
            head.put_bytes(name, &at.millis_text());
        }
    }
    head
}

/// The remaining allowance of the key, in the prior interface's headers and in the IETF's.
pub(crate) fn put_standing(head: &mut Head, entry: &KeyEntry, standing: &Standing, now: Timestamp) {
    let (burst, quota) = (&standing.burst, &standing.quota);
    head.put_number("x-requests-remaining", quota.remaining);
    head.put_number("x-requests-used", quota.used);
    let left = |until: Timestamp| {
        let left = until.since(now);
        left.as_secs() + u64::from(left.subsec_nanos() > 0)
    };
    head.line("ratelimit", |line| {
        line.text("\"burst\";r=");
        line.number(burst.remaining);
        line.text(";t=");
        line.number(left(burst.resets_at));
        line.text(", \"");
        line.text(policy_name(quota.window));
        line.text("\";r=");
        line.number(quota.remaining);
        line.text(";t=");
        line.number(left(quota.resets_at));
    });
    let policy = entry.grant_text.get_or_init(|| policy(&entry.grant.limits));
    head.put_bytes("ratelimit-policy", policy);
}

/// The value of the header with a key's limits.
fn policy(limits: &Limits) -> Box<[u8]> {
    let mut text = format!(
        "\"burst\";q={};w=60, \"daily\";q={};w=86400",
        limits.burst_per_minute, limits.requests_per_day
    );
    if let Some(monthly) = limits.requests_per_month {
        // Months differ in length; the longest is the bound a client can rely on.
        text.push_str(&format!(", \"monthly\";q={monthly};w=2678400"));
    }
    text.into_bytes().into()
}

fn policy_name(window: Window) -> &'static str {
    match window {
        Window::Minute => "burst",
        Window::Day => "daily",
        Window::Month => "monthly",
    }
}

//! Usage of the account's keys: number of requests, their outcomes, the remaining quota, and why requests failed.
use std::collections::HashMap;
use std::time::Duration;

use accounts::{
    CountRow, FAILURES_MAX, KeyView, Outcome, Step, UsageQuery, Window, WindowStanding,
    alert_percent,
};
use api::{Operation, v4};
use askama::Template;
use domain::Timestamp;
use http::Reply;

use crate::dashboard::chart::{self, Chart, Range};
use crate::dashboard::key_line::KeyLine;
use crate::dashboard::page::{self, Part, Shell, parts};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::time_text::{TimeText, number, span};

/// Period of the request rate: the previous hour and the current one so far.
const PACE_S: i64 = 3600;
/// Minimum period for the request rate: a key's first minutes predict little.
const PACE_LEAST_S: u64 = 900;

struct RangeLink {
    key: &'static str,
    label: &'static str,
    current: bool,
}

struct KeyChoice {
    id: String,
    name: String,
    hint: String,
    selected: bool,
}

struct QuotaLine {
    id: String,
    name: String,
    kind: &'static str,
    /// `today`, `this month`.
    window: &'static str,
    limit: String,
    left: String,
    used_n: u32,
    limit_n: u32,
    tone: &'static str,
    forecast: String,
}

struct EndpointLine {
    title: &'static str,
    /// Name as in metrics and logs.
    name: &'static str,
    template: &'static str,
    counts: Vec<String>,
    total: u64,
    shown: String,
}

struct FailureLine {
    at: TimeText,
    request_id: String,
    endpoint: &'static str,
    method: &'static str,
    target: String,
    status: u16,
    code: &'static str,
    explained_at: String,
    message: Vec<Part>,
    times: u32,
    key: String,
}

#[derive(Template)]
#[template(path = "usage.html")]
struct UsagePage {
    shell: Shell,
    ranges: Vec<RangeLink>,
    range: Range,
    keys: Vec<KeyChoice>,
    /// Id of the selected key; empty for all.
    key: String,
    chart: Chart,
    quotas: Vec<QuotaLine>,
    outcomes: Vec<&'static str>,
    endpoints: Vec<EndpointLine>,
    failures: Vec<FailureLine>,
}

pub(crate) async fn answer(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let (accounts, now) = (&page_request.web.api.accounts, page_request.now);
    let account_id = page_request.session()?.account.id.as_str();
    let range = Range::find(page_request.query.get("range"));
    let key = page_request.query.get("key");
    let mut views = accounts.keys_of(account_id).await?;
    views.reverse();
    if !key.is_empty() && !views.iter().any(|view| view.record.id.as_str() == key) {
        return Err(PageError::NotFound);
    }
    let meant = |view: &&KeyView| key.is_empty() || view.record.id.as_str() == key;
    let key_id = (!key.is_empty()).then_some(key);
    let query = UsageQuery { account_id, key_id, step: range.step, from: range.from(now) };
    let rows = accounts.usage(query, &Operation::names()).await?;
    let hour_ago = Timestamp::from_millis(Step::Hour.start_ms(now.as_millis()) - PACE_S * 1000);
    let recent = UsageQuery { step: Step::Hour, from: hour_ago, ..query };
    let recent = accounts.usage(recent, &Operation::names()).await?;
    let spent = spent(&recent);
    let failures = accounts.failures(account_id, key_id, FAILURES_MAX).await?;
    let page = UsagePage {
        shell: Shell::new(page_request, "Usage", "usage"),
        ranges: ranges(range),
        range,
        keys: views.iter().map(|view| choice(view, key, now)).collect(),
        key: key.to_owned(),
        chart: Chart::new(range, &rows, now),
        quotas: views.iter().filter(meant).filter_map(|view| quota(view, &spent, now)).collect(),
        outcomes: Outcome::ALL.map(chart::word).to_vec(),
        endpoints: endpoints(&rows),
        failures: failures
            .into_iter()
            .map(|(id, failure)| {
                let of = views.iter().find(|view| view.record.id == id);
                failure_line(failure, of, now)
            })
            .collect(),
    };
    page::render(200, &page)
}

fn ranges(current: Range) -> Vec<RangeLink> {
    let link =
        |range: Range| RangeLink { key: range.key, label: range.label, current: range == current };
    Range::ALL.map(link).into()
}

fn choice(view: &KeyView, key: &str, now: Timestamp) -> KeyChoice {
    let line = KeyLine::new(view, now);
    KeyChoice { selected: line.id == key, id: line.id, name: line.name, hint: line.hint }
}

/// Requests spent per key.
fn spent(recent: &[CountRow]) -> HashMap<&str, u64> {
    let mut spent = HashMap::new();
    // Successful requests count against the quota, except status.
    let spends =
        |row: &&CountRow| row.outcome == Outcome::Ok && row.endpoint != Operation::GetStatus.name();
    for row in recent.iter().filter(spends) {
        *spent.entry(row.key_id.as_str()).or_default() += row.requests;
    }
    spent
}

fn quota(view: &KeyView, spent: &HashMap<&str, u64>, now: Timestamp) -> Option<QuotaLine> {
    let quota = view.standing?.quota;
    let line = KeyLine::new(view, now);
    let spent = spent.get(line.id.as_str()).copied().unwrap_or_default();
    let into_hour = now.as_secs().rem_euclid(PACE_S);
    let age = now.since(view.record.created_at).as_secs();
    let over = u64::try_from(PACE_S + into_hour).unwrap_or(1).min(age.max(PACE_LEAST_S));
    Some(QuotaLine {
        id: line.id,
        name: line.name,
        kind: line.kind,
        window: match quota.window {
            Window::Minute => "this minute",
            Window::Day => "today",
            Window::Month => "this month",
        },
        limit: number(quota.limit),
        left: number(quota.remaining),
        used_n: quota.used,
        limit_n: quota.limit,
        tone: match alert_percent(&quota) {
            Some(95..) => "bad",
            Some(80..) => "warn",
            Some(_) | None => "good",
        },
        forecast: forecast(&quota, spent, over, now),
    })
}

/// Forecast of the remaining quota at the recent rate of `spent` requests in `over` seconds.
fn forecast(quota: &WindowStanding, spent: u64, over: u64, now: Timestamp) -> String {
    let until_reset = quota.resets_at.since(now);
    let resets = format!("Resets in {}.", span(until_reset));
    if quota.remaining == 0 {
        return format!("Used up: requests are answered 429. {resets}");
    }
    if spent == 0 {
        return format!("No requests in the last hour. {resets}");
    }
    let lasts = Duration::from_secs(u64::from(quota.remaining).saturating_mul(over) / spent);
    if lasts >= until_reset {
        return format!("At the last hour's pace you will not run out. {resets}");
    }
    format!(
        "At the last hour's pace you will run out in {}, at {} UTC. {resets}",
        span(lasts),
        TimeText::time(now.plus(lasts)),
    )
}

fn endpoints(rows: &[CountRow]) -> Vec<EndpointLine> {
    let mut lines: Vec<EndpointLine> = Operation::all()
        .filter_map(|endpoint| {
            let own: Vec<&CountRow> =
                rows.iter().filter(|row| row.endpoint == endpoint.name()).collect();
            let of = |outcome: Outcome| {
                own.iter().filter(|row| row.outcome == outcome).map(|row| row.requests).sum::<u64>()
            };
            let total = Outcome::ALL.into_iter().map(of).sum::<u64>();
            (total > 0).then(|| EndpointLine {
                title: endpoint.row().title,
                name: endpoint.name(),
                template: endpoint
                    .row()
                    .path
                    .unwrap_or("no such path, or refused before it was read"),
                counts: Outcome::ALL.map(|outcome| number(of(outcome))).to_vec(),
                total,
                shown: number(total),
            })
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.total));
    lines
}

fn failure_line(failure: accounts::Failure, of: Option<&KeyView>, now: Timestamp) -> FailureLine {
    FailureLine {
        at: TimeText::new(failure.at, now),
        request_id: failure.request_id.into(),
        endpoint: failure.endpoint,
        method: failure.method,
        target: failure.target.into(),
        status: failure.status,
        code: failure.code,
        explained_at: match v4::Code::ALL.into_iter().find(|code| code.slug() == failure.code) {
            Some(code) => format!("{}#{}", v4::DOCS_PATH, code.anchor()),
            None => format!("/docs/errors#error-{}", failure.code),
        },
        message: parts(&failure.message),
        times: failure.times,
        key: of.map_or_else(String::new, |view| {
            let line = KeyLine::new(view, now);
            format!("{} ({})", line.name, line.hint)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(used: u32, limit: u32, now: Timestamp) -> WindowStanding {
        WindowStanding {
            owner: accounts::Owner::Key,
            window: Window::Day,
            limit,
            used,
            remaining: limit - used,
            resets_at: now.plus(Duration::from_secs(10 * 3600)),
        }
    }

    #[test]
    fn the_forecast_says_when_the_rest_is_spent() {
        let now = Timestamp::parse("2026-11-14T14:00:00Z").unwrap();
        let text = |used, spent, over| forecast(&standing(used, 1000, now), spent, over, now);
        assert!(text(1000, 5, 3600).starts_with("Used up"));
        assert!(text(10, 0, 3600).starts_with("No requests"));
        assert!(text(100, 10, 3600).contains("will not run out"));
        assert!(
            text(900, 50, 3600).contains("run out in 2 h, at 16:00 UTC"),
            "{}",
            text(900, 50, 3600)
        );
    }

    #[test]
    fn shares_are_told_from_half_on() {
        let now = Timestamp::from_secs(0);
        let reached = |used| alert_percent(&standing(used, 1000, now));
        assert_eq!(
            [reached(499), reached(500), reached(799), reached(800), reached(950), reached(1000)],
            [None, Some(50), Some(50), Some(80), Some(95), Some(95)]
        );
    }
}

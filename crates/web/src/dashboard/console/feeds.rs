//! Feeds: volume, delay, rejections, tokens, and pausing.

use std::time::Duration;

use accounts::{FeedRecord, Scores};
use askama::Template;
use domain::{Timestamp, World};
use market::Load;
use serde_json::{Value, json};

use crate::dashboard::confirm::{self, Question};
use crate::dashboard::page::{self, Notice, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::time_text::{TimeText, a_second, latency, number, span};
use engine::feed_stats::{FeedFigures, Sample};
use http::Reply;

/// A feed as the pages show it.
struct FeedLine {
    name: String,
    bookmaker: String,
    /// True if it may report scores.
    scores: bool,
    /// Number of records that the service holds because of it.
    records: String,
    created: TimeText,
    /// `active`, `paused` or `revoked`; `since` is the time it became inactive.
    state: &'static str,
    since: Option<TimeText>,
    last_push: Option<TimeText>,
    a_second: String,
    p50: String,
    p95: String,
    taken: String,
    refused: String,
    any_refused: bool,
    refused_paused: u64,
}

impl FeedLine {
    fn new(feed: FeedRecord, figures: &FeedFigures, load: &Load, now: Timestamp) -> Self {
        let held = load.feeds.iter().find(|(name, _)| **name == *feed.name);
        let recent = figures.recent;
        let late = |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), latency);
        let refused: u64 = figures.rejected.iter().map(|(_, count)| count).sum();
        let (state, since) = match (feed.revoked_at, feed.paused_at) {
            (Some(at), _) => ("revoked", Some(at)),
            (None, Some(at)) => ("paused", Some(at)),
            (None, None) => ("active", None),
        };
        Self {
            name: feed.name,
            bookmaker: feed.bookmaker.unwrap_or_else(|| "any".to_owned()),
            scores: feed.scores,
            records: number(held.map_or(0, |(_, records)| *records)),
            created: TimeText::new(feed.created_at, now),
            state,
            since: since.map(|at| TimeText::new(at, now)),
            last_push: figures.last_push.map(|at| TimeText::new(at, now)),
            a_second: a_second(recent.a_minute),
            p50: late(recent.p50_ms),
            p95: late(recent.p95_ms),
            taken: number(figures.taken),
            refused: number(refused),
            any_refused: refused > 0,
            refused_paused: figures.paused,
        }
    }

    fn is_live(&self) -> bool {
        self.state == "active"
    }

    fn is_paused(&self) -> bool {
        self.state == "paused"
    }
}

struct SourceLine {
    sport: String,
    bookmaker: String,
    read: TimeText,
    age: String,
    latency: String,
    stale: bool,
}

/// An upstream adapter.
struct AdapterLine {
    name: String,
    kind: String,
    state: String,
    /// CSS class of the state.
    dot: &'static str,
    message: String,
    read: Option<TimeText>,
    good: u64,
    failed: u64,
    /// Upstream names without a mapping, and omitted data, as text.
    left_out: String,
    /// Positions and reasons of inputs that were not in the expected format.
    samples: Vec<String>,
}

impl AdapterLine {
    fn new(report: &Value, samples: &[Value], now: Timestamp) -> Self {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let reads = |key: &str| report.pointer(&format!("/reads/{key}")).and_then(Value::as_u64);
        let state = text(report, "state");
        let unmapped = report.get("unmapped").and_then(Value::as_array).into_iter().flatten();
        let unmapped =
            unmapped.map(|name| format!("{} {}", text(name, "what"), text(name, "value")));
        let dropped = report.get("dropped").and_then(Value::as_object).into_iter().flatten();
        let dropped = dropped.map(|(reason, count)| format!("{reason}: {count}"));
        let left_out: Vec<String> = dropped.chain(unmapped).take(LEFT_OUT_MAX).collect();
        let read = Timestamp::parse(&text(report, "last_good_read")).ok();
        Self {
            name: text(report, "name"),
            kind: text(report, "kind"),
            dot: match state.as_str() {
                "ok" => "active",
                "off" | "paused" | "waiting" | "starting" => "paused",
                _ => "suspended",
            },
            state,
            message: text(report, "message"),
            read: read.map(|at| TimeText::new(at, now)),
            good: reads("ok").unwrap_or(0) + reads("unchanged").unwrap_or(0),
            failed: reads("failed").unwrap_or(0),
            left_out: left_out.join(", "),
            samples: samples
                .iter()
                .map(|sample| {
                    let (at, unit) = (text(sample, "at"), text(sample, "unit"));
                    format!("{at} {unit} {}: {}", text(sample, "path"), text(sample, "reason"))
                })
                .collect(),
        }
    }

    fn is_paused(&self) -> bool {
        self.state == "paused" || self.state == "failed"
    }
}

/// Maximum number of omissions listed.
const LEFT_OUT_MAX: usize = 20;

#[derive(Template)]
#[template(path = "feeds.html")]
struct FeedsPage {
    shell: Shell,
    feeds: Vec<FeedLine>,
    adapters: Vec<AdapterLine>,
    sources: Vec<SourceLine>,
    bookmakers: Vec<(String, String)>,
    stale_after: String,
}

#[derive(Template)]
#[template(path = "feed_new.html")]
struct NewFeedPage {
    shell: Shell,
    name: String,
    secret: String,
    base: String,
    /// Messages that can be pushed without changes, and the one that withdraws them.
    example: String,
    /// A region in which the example's bookmaker is offered.
    region: &'static str,
    remove: &'static str,
}

pub(super) struct SampleLine {
    /// Name of the feed, if the samples of several are shown together.
    pub(super) feed: Option<String>,
    pub(super) at: TimeText,
    pub(super) line: usize,
    pub(super) code: &'static str,
    pub(super) text: String,
    pub(super) sent: String,
}

impl SampleLine {
    pub(super) fn new(sample: Sample, feed: Option<&str>, now: Timestamp) -> Self {
        Self {
            feed: feed.map(str::to_owned),
            at: TimeText::new(sample.at, now),
            line: sample.line,
            code: sample.code,
            text: sample.text,
            sent: sample.sent,
        }
    }
}

#[derive(Template)]
#[template(path = "feed.html")]
struct FeedPage {
    shell: Shell,
    feed: FeedLine,
    records_max: String,
    reasons: Vec<(&'static str, String)>,
    anomalies: Vec<(&'static str, String)>,
    samples: Vec<SampleLine>,
}

pub(super) async fn show(
    page_request: &PageRequest<'_>,
    notice: Option<Notice>,
) -> Result<Reply, PageError> {
    let web = page_request.web;
    let load = web.api.world(World::Live).stats.load.load_full();
    let mut feeds: Vec<FeedLine> = web
        .api
        .accounts
        .list_feeds()
        .await?
        .into_iter()
        .map(|feed| {
            let figures = web.api.feed_stats.figures(&feed.name, page_request.now);
            FeedLine::new(feed, &figures, &load, page_request.now)
        })
        .collect();
    // Revoked feeds come last.
    feeds.sort_by_key(|feed| feed.state == "revoked");
    let live = web.api.world(World::Live);
    let mut sources: Vec<SourceLine> = live
        .vitals()
        .sources
        .iter()
        .map(|(sport, bookmaker, source)| SourceLine {
            sport: web.api.catalogue.sport(*sport).title.to_string(),
            bookmaker: web.api.catalogue.bookmaker(*bookmaker).title.to_string(),
            read: TimeText::new(source.read_at, page_request.now),
            age: span(page_request.now.since(source.read_at)),
            latency: latency(u64::from(source.latency_ms)),
            stale: source.is_stale(page_request.now, live.stale_after()),
        })
        .collect();
    // Sources that need attention come first.
    sources
        .sort_by(|a, b| (b.stale, &a.sport, &a.bookmaker).cmp(&(a.stale, &b.sport, &b.bookmaker)));
    let titled = |key: &str, title: &str| (key.to_owned(), title.to_owned());
    let page = FeedsPage {
        shell: Shell::new(page_request, "Feeds", "feeds").with(notice),
        feeds,
        adapters: adapters(page_request),
        sources,
        bookmakers: web
            .api
            .catalogue
            .bookmakers()
            .map(|(_, own)| titled(&own.key, &own.title))
            .collect(),
        stale_after: span(live.stale_after()),
    };
    page::render(200, &page)
}

fn adapters(page_request: &PageRequest<'_>) -> Vec<AdapterLine> {
    let Some(adapters) = page_request.web.api.adapters.get() else { return Vec::new() };
    let line = |report: &Value| {
        let name = report.get("name").and_then(Value::as_str).unwrap_or_default();
        AdapterLine::new(report, &adapters.samples(name), page_request.now)
    };
    adapters.to_json().iter().map(line).collect()
}

/// True if the page's subject is an adapter.
fn is_adapter(page_request: &PageRequest<'_>) -> bool {
    let reports = page_request.web.api.adapters.get().map(|adapters| adapters.to_json());
    let mut reports = reports.unwrap_or_default().into_iter();
    reports.any(|report| report.get("name").and_then(Value::as_str) == Some(page_request.id))
}

pub(super) async fn read_adapter(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    if !is_adapter(page_request) {
        return Err(PageError::NotFound);
    }
    page_request.web.api.accounts.ask_adapter_read(page_request.id, &page_request.actor()?).await?;
    Ok(page::redirect("/console/feeds?done=adapter-read"))
}

pub(super) async fn one(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let feeds = page_request.web.api.accounts.list_feeds().await?;
    let feed =
        feeds.into_iter().find(|feed| feed.name == page_request.id).ok_or(PageError::NotFound)?;
    let stats = &page_request.web.api.feed_stats;
    let figures = stats.figures(&feed.name, page_request.now);
    let counted = |counts: &[(&'static str, u64)]| {
        counts.iter().map(|(code, count)| (*code, number(*count))).collect()
    };
    let samples = stats.samples(&feed.name).into_iter();
    let samples = samples.map(|sample| SampleLine::new(sample, None, page_request.now));
    let live = page_request.web.api.world(World::Live);
    let page = FeedPage {
        shell: Shell::new(page_request, "Feed", "feeds"),
        reasons: counted(&figures.rejected),
        anomalies: counted(&figures.odd),
        samples: samples.collect(),
        records_max: number(live.limits.records_per_feed_max),
        feed: FeedLine::new(feed, &figures, &live.stats.load.load(), page_request.now),
    };
    page::render(200, &page)
}

pub(super) async fn create(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let name = page_request.form.get("name").trim();
    let bookmaker = Some(page_request.form.get("bookmaker")).filter(|key| !key.is_empty());
    if bookmaker.is_some_and(|key| page_request.web.api.catalogue.bookmaker_id(key).is_none()) {
        return Err(PageError::Refused("There is no such bookmaker in the catalogue.".to_owned()));
    }
    let scores = if page_request.form.get("scores").is_empty() {
        Scores::OfUnbound
    } else {
        Scores::Allowed
    };
    let by = page_request.actor()?;
    let (token, record) =
        page_request.web.api.accounts.create_feed(name, bookmaker, scores, &by).await?;
    // A bookmaker whose prices the feed may send.
    let mut bookmakers = page_request.web.api.catalogue.bookmakers().map(|(_, own)| own);
    let own = bookmakers.find(|own| bookmaker.is_none_or(|key| *own.key == *key));
    let own = own.ok_or(PageError::NotFound)?;
    let page = NewFeedPage {
        shell: Shell::new(page_request, "A feed's token", "feeds"),
        name: record.name,
        secret: token.expose().to_owned(),
        base: page_request.base(),
        example: example(&own.key, page_request.now),
        region: own.regions.first().map_or("", |region| region.key()),
        remove: r#"{"type":"remove","ref":"example-1"}"#,
    };
    page::render(200, &page)
}

/// An event in the next week and a price for it, as lines to push.
fn example(bookmaker: &str, now: Timestamp) -> String {
    let starts = Timestamp::from_secs(now.plus(Duration::from_secs(7 * 86_400)).as_secs());
    let event = json!({
        "type": "event", "ref": "example-1", "sport": "mma", "competition": "Example",
        "commence_time": starts.to_string(), "home": "Example One", "away": "Example Two",
    });
    let odds = json!({
        "type": "odds", "ref": "example-1", "bookmaker": bookmaker, "market": "moneyline", "format": "decimal",
        "outcomes": [{ "name": "Example One", "price": 1.8 }, { "name": "Example Two", "price": 2.1 }],
    });
    format!("{event}\n{odds}")
}

pub(super) async fn revoke(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    if !confirm::is_confirmed(page_request) {
        return ask_revoke(page_request).await;
    }
    page_request.web.api.accounts.revoke_feed(page_request.id, &page_request.actor()?).await?;
    Ok(page::redirect("/console/feeds?done=feed-revoked"))
}

async fn ask_revoke(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let feeds = page_request.web.api.accounts.list_feeds().await?;
    let feed =
        feeds.into_iter().find(|feed| feed.name == page_request.id).ok_or(PageError::NotFound)?;
    let figures = page_request.web.api.feed_stats.figures(&feed.name, page_request.now);
    let last = figures.last_push.map(|at| TimeText::new(at, page_request.now).ago);
    let question = Question {
        here: "feeds",
        heading: format!("Revoke the token of {}?", feed.name),
        points: vec![
            format!(
                "Pushes with this token are refused with 401 at once. Its last push: {}.",
                last.unwrap_or_else(|| "none since the service started".to_owned())
            ),
            "Prices that it sent become delayed as time passes, and the status page shows it."
                .to_owned(),
            "This cannot be undone. To stop a feed for a while, pause it instead.".to_owned(),
        ],
        fields: &[],
        button: "Revoke the token",
        back: format!("/console/feeds/{}", feed.name),
    };
    confirm::ask(page_request, question)
}

pub(super) async fn pause(
    page_request: &PageRequest<'_>,
    paused: bool,
) -> Result<Reply, PageError> {
    if is_adapter(page_request) {
        page_request
            .web
            .api
            .accounts
            .pause_adapter(page_request.id, paused, &page_request.actor()?)
            .await?;
        let done = if paused { "adapter-paused" } else { "adapter-resumed" };
        return Ok(page::redirect(&format!("/console/feeds?done={done}")));
    }
    let record = page_request
        .web
        .api
        .accounts
        .pause_feed(page_request.id, paused, &page_request.actor()?)
        .await?;
    let done = if paused { "feed-paused" } else { "feed-resumed" };
    // Back to the page with the button.
    Ok(page::redirect(&match page_request.form.get("back") {
        "feed" => format!("/console/feeds/{}?done={done}", record.name),
        _ => format!("/console/feeds?done={done}"),
    }))
}

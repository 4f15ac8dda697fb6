//! Feeds: how much they send and how late, what is refused of it, their tokens, and pausing them.

use std::time::Duration;

use accounts::{FeedRecord, Scores};
use askama::Template;
use domain::{Timestamp, World};
use market::Load;
use serde_json::{Value, json};

use crate::dashboard::confirm::{self, Question};
use crate::dashboard::moment::{Moment, a_second, latency, number, span};
use crate::dashboard::page::{self, Notice, Shell, Trouble};
use crate::dashboard::visit::Visit;
use engine::feed_stats::{FeedFigures, Sample};
use http::Reply;

/// A feed as the pages show it.
struct FeedLine {
    name: String,
    bookmaker: String,
    /// Whether it may report scores.
    scores: bool,
    /// What it makes the service hold.
    records: String,
    created: Moment,
    /// `active`, `paused` or `revoked`, and since when it is not active.
    state: &'static str,
    since: Option<Moment>,
    last_push: Option<Moment>,
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
            created: Moment::new(feed.created_at, now),
            state,
            since: since.map(|at| Moment::new(at, now)),
            last_push: figures.last_push.map(|at| Moment::new(at, now)),
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
    read: Moment,
    age: String,
    latency: String,
    stale: bool,
}

/// An upstream adapter.
struct AdapterLine {
    name: String,
    kind: String,
    state: String,
    /// How the state is drawn.
    dot: &'static str,
    message: String,
    read: Option<Moment>,
    good: u64,
    failed: u64,
    /// Upstream names without a mapping, and what was left out, as text.
    left_out: String,
    /// Where and why inputs were not in the expected format.
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
            read: read.map(|at| Moment::new(at, now)),
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

/// What was left out of reads is listed up to this many.
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
    /// Messages that can be pushed as they are, and the one that takes them back.
    example: String,
    /// Where the example's bookmaker is offered.
    region: &'static str,
    remove: &'static str,
}

pub(super) struct SampleLine {
    /// Where several feeds' are shown together.
    pub(super) feed: Option<String>,
    pub(super) at: Moment,
    pub(super) line: usize,
    pub(super) code: &'static str,
    pub(super) text: String,
    pub(super) sent: String,
}

impl SampleLine {
    pub(super) fn new(sample: Sample, feed: Option<&str>, now: Timestamp) -> Self {
        Self {
            feed: feed.map(str::to_owned),
            at: Moment::new(sample.at, now),
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
    oddities: Vec<(&'static str, String)>,
    samples: Vec<SampleLine>,
}

pub(super) async fn show(visit: &Visit<'_>, notice: Option<Notice>) -> Result<Reply, Trouble> {
    let web = visit.web;
    let load = web.api.world(World::Live).stats.load.load_full();
    let mut feeds: Vec<FeedLine> = web
        .api
        .accounts
        .list_feeds()
        .await?
        .into_iter()
        .map(|feed| {
            let figures = web.api.feed_stats.figures(&feed.name, visit.now);
            FeedLine::new(feed, &figures, &load, visit.now)
        })
        .collect();
    // What has ended is only looked for.
    feeds.sort_by_key(|feed| feed.state == "revoked");
    let live = web.api.world(World::Live);
    let mut sources: Vec<SourceLine> = live
        .vitals()
        .sources
        .iter()
        .map(|(sport, bookmaker, source)| SourceLine {
            sport: web.api.catalogue.sport(*sport).title.to_string(),
            bookmaker: web.api.catalogue.bookmaker(*bookmaker).title.to_string(),
            read: Moment::new(source.read_at, visit.now),
            age: span(visit.now.since(source.read_at)),
            latency: latency(u64::from(source.latency_ms)),
            stale: source.is_stale(visit.now, live.stale_after()),
        })
        .collect();
    // What needs a look comes first.
    sources
        .sort_by(|a, b| (b.stale, &a.sport, &a.bookmaker).cmp(&(a.stale, &b.sport, &b.bookmaker)));
    let titled = |key: &str, title: &str| (key.to_owned(), title.to_owned());
    let page = FeedsPage {
        shell: Shell::new(visit, "Feeds", "feeds").with(notice),
        feeds,
        adapters: adapters(visit),
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

fn adapters(visit: &Visit<'_>) -> Vec<AdapterLine> {
    let Some(adapters) = visit.web.api.adapters.get() else { return Vec::new() };
    let line = |report: &Value| {
        let name = report.get("name").and_then(Value::as_str).unwrap_or_default();
        AdapterLine::new(report, &adapters.samples(name), visit.now)
    };
    adapters.to_json().iter().map(line).collect()
}

/// Whether the page's subject is an adapter.
fn is_adapter(visit: &Visit<'_>) -> bool {
    let reports = visit.web.api.adapters.get().map(|adapters| adapters.to_json());
    let mut reports = reports.unwrap_or_default().into_iter();
    reports.any(|report| report.get("name").and_then(Value::as_str) == Some(visit.id))
}

pub(super) async fn read_adapter(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    if !is_adapter(visit) {
        return Err(Trouble::NotFound);
    }
    visit.web.api.accounts.ask_adapter_read(visit.id, &visit.actor()?).await?;
    Ok(page::redirect("/console/feeds?done=adapter-read"))
}

pub(super) async fn one(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let feeds = visit.web.api.accounts.list_feeds().await?;
    let feed = feeds.into_iter().find(|feed| feed.name == visit.id).ok_or(Trouble::NotFound)?;
    let ledger = &visit.web.api.feed_stats;
    let figures = ledger.figures(&feed.name, visit.now);
    let counted = |counts: &[(&'static str, u64)]| {
        counts.iter().map(|(code, count)| (*code, number(*count))).collect()
    };
    let samples = ledger.samples(&feed.name).into_iter();
    let samples = samples.map(|sample| SampleLine::new(sample, None, visit.now));
    let live = visit.web.api.world(World::Live);
    let page = FeedPage {
        shell: Shell::new(visit, "Feed", "feeds"),
        reasons: counted(&figures.rejected),
        oddities: counted(&figures.odd),
        samples: samples.collect(),
        records_max: number(live.limits.records_per_feed_max),
        feed: FeedLine::new(feed, &figures, &live.stats.load.load(), visit.now),
    };
    page::render(200, &page)
}

pub(super) async fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let name = visit.form.get("name").trim();
    let bookmaker = Some(visit.form.get("bookmaker")).filter(|key| !key.is_empty());
    if bookmaker.is_some_and(|key| visit.web.api.catalogue.bookmaker_id(key).is_none()) {
        return Err(Trouble::Refused("There is no such bookmaker in the catalogue.".to_owned()));
    }
    let scores =
        if visit.form.get("scores").is_empty() { Scores::OfUnbound } else { Scores::Allowed };
    let by = visit.actor()?;
    let (token, record) = visit.web.api.accounts.create_feed(name, bookmaker, scores, &by).await?;
    // One that the feed may send prices of.
    let mut bookmakers = visit.web.api.catalogue.bookmakers().map(|(_, own)| own);
    let own = bookmakers.find(|own| bookmaker.is_none_or(|key| *own.key == *key));
    let own = own.ok_or(Trouble::NotFound)?;
    let page = NewFeedPage {
        shell: Shell::new(visit, "A feed's token", "feeds"),
        name: record.name,
        secret: token.expose().to_owned(),
        base: visit.base(),
        example: example(&own.key, visit.now),
        region: own.regions.first().map_or("", |region| region.key()),
        remove: r#"{"type":"remove","ref":"example-1"}"#,
    };
    page::render(200, &page)
}

/// An event of next week and a price for it, as lines to push.
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

pub(super) async fn revoke(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    if !confirm::is_confirmed(visit) {
        return ask_revoke(visit).await;
    }
    visit.web.api.accounts.revoke_feed(visit.id, &visit.actor()?).await?;
    Ok(page::redirect("/console/feeds?done=feed-revoked"))
}

async fn ask_revoke(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let feeds = visit.web.api.accounts.list_feeds().await?;
    let feed = feeds.into_iter().find(|feed| feed.name == visit.id).ok_or(Trouble::NotFound)?;
    let figures = visit.web.api.feed_stats.figures(&feed.name, visit.now);
    let last = figures.last_push.map(|at| Moment::new(at, visit.now).ago);
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
    confirm::ask(visit, question)
}

pub(super) async fn pause(visit: &Visit<'_>, paused: bool) -> Result<Reply, Trouble> {
    if is_adapter(visit) {
        visit.web.api.accounts.pause_adapter(visit.id, paused, &visit.actor()?).await?;
        let done = if paused { "adapter-paused" } else { "adapter-resumed" };
        return Ok(page::redirect(&format!("/console/feeds?done={done}")));
    }
    let record = visit.web.api.accounts.pause_feed(visit.id, paused, &visit.actor()?).await?;
    let done = if paused { "feed-paused" } else { "feed-resumed" };
    // Back to where the button was pressed.
    Ok(page::redirect(&match visit.form.get("back") {
        "feed" => format!("/console/feeds/{}?done={done}", record.name),
        _ => format!("/console/feeds?done={done}"),
    }))
}

//! The console's first page: state of the service, its users, and the latest pushes. It reloads itself.
use std::time::Duration;

use accounts::Maintenance;
use askama::Template;
use domain::{Timestamp, World};
use engine::HistoryError;
use rustix::fs::statvfs;
use tokio::time::timeout;

use crate::dashboard::console::traffic::Hour;
use crate::dashboard::key_line::KeyLine;
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::time_text::{TimeText, a_second, number, span};
use http::Reply;

/// Number of keys shown, of those with the most requests today.
const KEYS_SHOWN: usize = 5;
/// Number of feeds shown, of those that pushed last.
const PUSHES_SHOWN: usize = 5;
/// Maximum time the page waits for the state of history: the archive may be slow, or busy with requests.
const PAST_WAIT_MAX: Duration = Duration::from_secs(1);

struct PushLine {
    feed: String,
    at: TimeText,
    a_second: String,
    taken: String,
    refused: String,
}

/// Free space of the disk that holds the data.
struct Disk {
    free: String,
    percent_free: u64,
}

/// Extent of history, and contents of the archive.
struct Past {
    from: TimeText,
    to: TimeText,
    publications: String,
    gaps: usize,
    archive: Option<ArchiveLine>,
}

struct ArchiveLine {
    lag: String,
    size: String,
    files: String,
}

#[derive(Template)]
#[template(path = "console.html")]
struct ConsolePage {
    shell: Shell,
    at: TimeText,
    version: &'static str,
    uptime: String,
    disk: Option<Disk>,
    past: Result<Past, &'static str>,
    hour: Hour,
    a_second: String,
    requests: String,
    refused: String,
    failed: String,
    peak: String,
    keys: Vec<KeyLine>,
    pushes: Vec<PushLine>,
    accounts: usize,
    pending: i64,
    keys_active: usize,
    feeds: usize,
    sources: usize,
    sources_stale: usize,
    events: usize,
    unsure: usize,
    feeds_paused: usize,
    maintenance_s: Option<u32>,
}

pub(super) async fn show(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let web = page_request.web;
    web.traffic.look(&web.api.metrics, page_request.now);
    let hour = web.traffic.hour(&web.api.metrics, page_request.now);
    let feeds = web.api.accounts.list_feeds().await?;
    let active: Vec<&str> = feeds
        .iter()
        .filter(|feed| feed.revoked_at.is_none())
        .map(|feed| feed.name.as_str())
        .collect();
    let live = web.api.world(World::Live);
    let (vitals, stale_after) = (live.vitals(), live.stale_after());
    let page = ConsolePage {
        shell: Shell::new(page_request, "Console", "console"),
        at: TimeText::new(page_request.now, page_request.now),
        version: env!("CARGO_PKG_VERSION"),
        uptime: span(page_request.now.since(web.started)),
        disk: disk(page_request),
        past: past(page_request).await,
        a_second: a_second(hour.minute.all()),
        requests: number(hour.total.all()),
        refused: number(hour.total.refused),
        failed: number(hour.total.failed),
        peak: a_second(hour.peak),
        hour,
        keys: busiest(page_request).await?,
        pushes: pushes(page_request, &active),
        accounts: web.people.accounts().await?.len(),
        pending: web.people.pending_requests().await?,
        keys_active: web.api.accounts.keys.len(),
        feeds: active.len(),
        sources: vitals.sources.len(),
        sources_stale: vitals
            .sources
            .iter()
            .filter(|(_, _, source)| source.is_stale(page_request.now, stale_after))
            .count(),
        events: live.records().0,
        unsure: live.identities().unsure().len(),
        feeds_paused: web
            .api
            .accounts
            .feeds
            .list()
            .iter()
            .filter(|f| f.paused_at.is_some())
            .count(),
        maintenance_s: match web.api.accounts.maintenance() {
            Maintenance::Off => None,
            Maintenance::On { retry_after_s } => Some(retry_after_s),
        },
    };
    page::render(200, &page)
}

/// The keys with the most requests today, with their owners.
async fn busiest(page_request: &PageRequest<'_>) -> Result<Vec<KeyLine>, PageError> {
    let people = super::emails(page_request).await?;
    let views = page_request.web.api.accounts.busiest_keys(KEYS_SHOWN).await?;
    Ok(views.iter().map(|view| super::keys::owned(view, &people, page_request.now)).collect())
}

fn pushes(page_request: &PageRequest<'_>, feeds: &[&str]) -> Vec<PushLine> {
    let figures = feeds
        .iter()
        .map(|feed| (*feed, page_request.web.api.feed_stats.figures(feed, page_request.now)));
    let mut pushed: Vec<(Timestamp, PushLine)> = figures
        .filter_map(|(feed, figures)| {
            let at = figures.last_push?;
            let line = PushLine {
                feed: feed.to_owned(),
                at: TimeText::new(at, page_request.now),
                a_second: a_second(figures.recent.a_minute),
                taken: number(figures.taken),
                refused: number(figures.rejected.iter().map(|(_, count)| count).sum::<u64>()),
            };
            Some((at, line))
        })
        .collect();
    pushed.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    pushed.into_iter().take(PUSHES_SHOWN).map(|(_, line)| line).collect()
}

/// The extent of history, or the reason why it is not known.
async fn past(page_request: &PageRequest<'_>) -> Result<Past, &'static str> {
    let (live, now) = (page_request.web.api.world(World::Live), page_request.now);
    let reach = timeout(PAST_WAIT_MAX, live.history.reach(live.published().snapshot.cut_at)).await;
    let reach = reach.map_err(|_| "The past is being read; look again in a moment.")?;
    let reach = reach.map_err(|error| match error {
        HistoryError::Off => "History is off.",
        HistoryError::NotKept(_)
        | HistoryError::Busy
        | HistoryError::NoCatalogue
        | HistoryError::TooFar
        | HistoryError::TooMuch
        | HistoryError::Unreadable(_) => {
            "The past cannot be read at the moment; the log of the service says why."
        }
    })?;
    let archive = reach.archive.map(|archive| ArchiveLine {
        lag: span(archive.waiting.map_or(Duration::ZERO, |waiting| now.since(waiting))),
        size: size(archive.bytes),
        files: number(u64::try_from(archive.files).unwrap_or(u64::MAX)),
    });
    let (from, to) = (TimeText::new(reach.from, now), TimeText::new(reach.to, now));
    let (publications, gaps) = (number(reach.publications), reach.gaps.len());
    Ok(Past { from, to, publications, gaps, archive })
}

fn size(bytes: u64) -> String {
    let (size, unit) = match bytes {
        0..10_485_760 => (bytes >> 10, "KB"),
        10_485_760..10_737_418_240 => (bytes >> 20, "MB"),
        _ => (bytes >> 30, "GB"),
    };
    format!("{} {unit}", number(size))
}

/// `None` if the node has no data folder, or its disk cannot be queried.
fn disk(page_request: &PageRequest<'_>) -> Option<Disk> {
    let folder = page_request.web.api.world(World::Live).past.notes.as_ref()?;
    let stat = statvfs(folder).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let all = stat.f_blocks.saturating_mul(stat.f_frsize);
    let percent_free = free.saturating_mul(100) / all.max(1);
    Some(Disk { free: size(free), percent_free })
}

//! The status page: every bookmaker and sport, whether it is fresh or delayed and since when, and the last 24 hours,
//! as a page, as JSON and as an Atom feed.

mod feed;
mod incident;
pub(crate) mod record;

use accounts::Maintenance;
use askama::Template;
use domain::{Timestamp, World};
use serde_json::json;

use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::StatusAct;
use crate::dashboard::status::incident::Incident;
use crate::dashboard::status::record::{Delay, Slot, Source};
use crate::dashboard::time_text::{TimeText, span};
use http::Reply;

/// Cache lifetime of the JSON and Atom forms, in seconds.
const KEPT_S: u32 = 5;
/// Maximum number of incidents on the page; the feed has all remembered delays.
const INCIDENTS_SHOWN: usize = 12;

struct SourceState {
    bookmaker_key: String,
    bookmaker: String,
    delayed: bool,
    read_at: Timestamp,
    /// Start of the current delay.
    since: Option<Timestamp>,
    read: TimeText,
    age: String,
    delayed_for: String,
    strip: Strip,
}

/// A day as a drawing, with one path per state, and as text.
struct Strip {
    slots: Vec<Slot>,
    runs: [(&'static str, String); 3],
    words: String,
}

struct SportState {
    key: String,
    title: String,
    fresh: usize,
    sources: Vec<SourceState>,
}

struct WorldState {
    title: &'static str,
    key: &'static str,
    text: &'static str,
    sports: Vec<SportState>,
}

/// A delay with its texts.
pub(crate) struct DelayShown {
    pub(crate) bookmaker: String,
    pub(crate) sport: String,
    pub(crate) began: TimeText,
    pub(crate) ended: Option<TimeText>,
    pub(crate) lasted: String,
    pub(crate) delay: Delay,
}

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage {
    shell: Shell,
    /// CSS class of the heading.
    tone: &'static str,
    heading: &'static str,
    worlds: Vec<WorldState>,
    incidents: Vec<Incident>,
    /// True if the sandbox is shown too.
    with_sandbox: bool,
    at: TimeText,
}

pub(crate) fn answer(page_request: &PageRequest<'_>, page: StatusAct) -> Result<Reply, PageError> {
    if !page_request.web.settings.status_page {
        return Err(PageError::NotFound);
    }
    page_request.web.status.look_now(&page_request.web.api);
    // JSON and Atom have both markets; the page shows the sandbox on request.
    let with_sandbox = page != StatusAct::Status || page_request.query.get("sandbox") == "yes";
    let worlds = worlds(page_request, with_sandbox);
    let overall = overall(page_request, &worlds);
    let delays = delays(page_request);
    match page {
        StatusAct::StatusJson => Ok(as_json(page_request, overall, &worlds, &delays)),
        StatusAct::StatusFeed => Ok(public(feed::reply(page_request, overall, &delays))),
        StatusAct::Status => {
            let (tone, heading) = match overall {
                "maintenance" => (overall, "Closed for maintenance"),
                _ if worlds.iter().all(|world| world.key != "live" || world.sports.is_empty()) => {
                    ("idle", "No live sources yet")
                }
                "degraded" => (overall, "Some sources are delayed"),
                _ => (overall, "All sources are fresh"),
            };
            let page = StatusPage {
                shell: Shell::new(page_request, "Status", "status"),
                tone,
                heading,
                worlds,
                incidents: incident::group(&delays, page_request.now)
                    .into_iter()
                    .take(INCIDENTS_SHOWN)
                    .collect(),
                with_sandbox,
                at: TimeText::new(page_request.now, page_request.now),
            };
            page::render(200, &page)
        }
    }
}

fn worlds(page_request: &PageRequest<'_>, with_sandbox: bool) -> Vec<WorldState> {
    let described = [
        (World::Live, "Live market", "live", "What production keys see."),
        (
            World::Sandbox,
            "Sandbox",
            "sandbox",
            "The simulated market that test keys see, with its staged delays.",
        ),
    ];
    let shown = described.into_iter().filter(|(world, ..)| with_sandbox || *world == World::Live);
    let states = shown.map(|(world, title, key, text)| WorldState {
        title,
        key,
        text,
        sports: sports(page_request, world),
    });
    states.collect()
}

fn sports(page_request: &PageRequest<'_>, world: World) -> Vec<SportState> {
    let handle = page_request.web.api.world(world);
    let (vitals, stale_after, catalogue) =
        (handle.vitals(), handle.stale_after(), &page_request.web.api.catalogue);
    let mut sports: Vec<SportState> = catalogue
        .sports()
        .map(|(id, sport)| {
            let of_sport = vitals.sources.iter().filter(|(sport, _, _)| *sport == id);
            let mut sources: Vec<SourceState> = of_sport
                .map(|(_, bookmaker, source)| {
                    let bookmaker = catalogue.bookmaker(*bookmaker);
                    let delayed = source.is_stale(page_request.now, stale_after);
                    let since = source.read_at.plus(source.fresh_for(stale_after));
                    let own = Source {
                        world: world.to_string(),
                        sport: sport.key.to_string(),
                        bookmaker: bookmaker.key.to_string(),
                    };
                    SourceState {
                        bookmaker_key: bookmaker.key.to_string(),
                        bookmaker: bookmaker.title.to_string(),
                        delayed,
                        read_at: source.read_at,
                        since: delayed.then_some(since),
                        read: TimeText::new(source.read_at, page_request.now),
                        age: span(page_request.now.since(source.read_at)),
                        delayed_for: span(page_request.now.since(since)),
                        strip: Strip::new(page_request.web.status.strip(&own, page_request.now)),
                    }
                })
                .collect();
            sources.sort_by(|a, b| {
                let name = |own: &SourceState| own.bookmaker.to_lowercase();
                (b.delayed, name(a)).cmp(&(a.delayed, name(b)))
            });
            SportState {
                key: sport.key.to_string(),
                title: sport.title.to_string(),
                fresh: sources.iter().filter(|source| !source.delayed).count(),
                sources,
            }
        })
        .collect();
    sports.retain(|sport| !sport.sources.is_empty());
    sports
}

impl Strip {
    fn new(slots: Vec<Slot>) -> Self {
        let count = |slot: Slot| slots.iter().filter(|own| **own == slot).count();
        let known = slots.len() - count(Slot::Unknown);
        let words = format!(
            "Of the last 24 hours, {} were watched: {} quarters of an hour fresh, {} delayed, {} partly",
            span(std::time::Duration::from_secs(900 * u64::try_from(known).unwrap_or(0))),
            count(Slot::Fresh),
            count(Slot::Delayed),
            count(Slot::Mixed),
        );
        let runs =
            [Slot::Fresh, Slot::Delayed, Slot::Mixed].map(|slot| (slot.word(), runs(&slots, slot)));
        Self { slots, runs, words }
    }
}

/// One path for all runs of a state, one unit per slot.
fn runs(slots: &[Slot], wanted: Slot) -> String {
    let mut d = String::new();
    let mut at = 0;
    for stretch in slots.chunk_by(|one, other| one == other) {
        if stretch.first() == Some(&wanted) {
            let length = stretch.len();
            d.push_str(&format!("M{at} 0h{length}v10h-{length}z"));
        }
        at += stretch.len();
    }
    d
}

/// State of the live market only: the sandbox's delays are scheduled.
fn overall(page_request: &PageRequest<'_>, worlds: &[WorldState]) -> &'static str {
    if page_request.web.api.accounts.maintenance() != Maintenance::Off {
        return "maintenance";
    }
    let live = worlds.iter().filter(|world| world.key == "live");
    let delayed = live
        .flat_map(|world| &world.sports)
        .flat_map(|sport| &sport.sources)
        .any(|source| source.delayed);
    if delayed { "degraded" } else { "operational" }
}

fn delays(page_request: &PageRequest<'_>) -> Vec<DelayShown> {
    let catalogue = &page_request.web.api.catalogue;
    let delays = page_request.web.status.delays(World::Live).into_iter();
    delays
        .map(|delay| {
            let sport = catalogue.sport_id(&delay.source.sport).map(|id| catalogue.sport(id));
            let bookmaker = catalogue.bookmaker_id(&delay.source.bookmaker);
            let bookmaker = bookmaker.map(|id| catalogue.bookmaker(id));
            let began = Timestamp::from_millis(delay.began_ms);
            let ended = delay.ended_ms.map(Timestamp::from_millis);
            DelayShown {
                bookmaker: bookmaker
                    .map_or_else(|| delay.source.bookmaker.clone(), |own| own.title.to_string()),
                sport: sport
                    .map_or_else(|| delay.source.sport.clone(), |own| own.title.to_string()),
                began: TimeText::new(began, page_request.now),
                ended: ended.map(|at| TimeText::new(at, page_request.now)),
                lasted: span(ended.unwrap_or(page_request.now).since(began)),
                delay,
            }
        })
        .collect()
}

fn as_json(
    page_request: &PageRequest<'_>,
    overall: &str,
    worlds: &[WorldState],
    delays: &[DelayShown],
) -> Reply {
    let source = |source: &SourceState| {
        json!({
            "bookmaker": source.bookmaker_key,
            "state": if source.delayed { "delayed" } else { "fresh" },
            "since": source.since.map(|at| at.to_string()),
            "last_read_at": source.read_at.to_string(),
            "last_24h": source.strip.slots.iter().map(|slot| slot.word()).collect::<Vec<_>>(),
        })
    };
    let sport = |sport: &SportState| {
        json!({
            "sport": sport.key,
            "sources": sport.sources.iter().map(source).collect::<Vec<_>>(),
        })
    };
    let incident = |shown: &DelayShown| {
        json!({
            "sport": shown.delay.source.sport,
            "bookmaker": shown.delay.source.bookmaker,
            "began_at": shown.began.iso,
            "ended_at": shown.ended.as_ref().map(|ended| &ended.iso),
        })
    };
    let mut body = serde_json::Map::new();
    body.insert("status".into(), overall.into());
    body.insert("at".into(), page_request.now.to_string().into());
    for world in worlds {
        body.insert(world.key.into(), world.sports.iter().map(sport).collect::<Vec<_>>().into());
    }
    body.insert("incidents".into(), delays.iter().map(incident).collect::<Vec<_>>().into());
    let body = serde_json::Value::from(body).to_string();
    public(Reply::new(200, "application/json", body))
}

fn public(mut reply: Reply) -> Reply {
    reply.head.put("cache-control", format!("public, max-age={KEPT_S}"));
    reply.head.put("x-content-type-options", "nosniff");
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_is_drawn_in_stretches() {
        let slots = [Slot::Unknown, Slot::Fresh, Slot::Fresh, Slot::Delayed, Slot::Fresh];
        assert_eq!(runs(&slots, Slot::Fresh), "M1 0h2v10h-2zM4 0h1v10h-1z");
        assert_eq!(runs(&slots, Slot::Delayed), "M3 0h1v10h-1z");
        assert_eq!(runs(&slots, Slot::Mixed), "");
    }
}

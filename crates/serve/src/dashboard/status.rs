//! The status page: every bookmaker and sport, fresh or delayed and since when, for people, machines and
//! feed readers.

use accounts::Maintenance;
use askama::Template;
use domain::{Timestamp, World};
use serde_json::json;

use crate::dashboard::moment::{Moment, span};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::StatusAct;
use crate::dashboard::visit::Visit;
use crate::reply::Reply;

/// How long somebody may keep the machine forms, in seconds.
const KEPT_S: u32 = 5;

struct SourceState {
    bookmaker_key: String,
    bookmaker: String,
    delayed: bool,
    read_at: Timestamp,
    /// Since when it is delayed.
    since: Option<Timestamp>,
    read: Moment,
    age: String,
    delayed_for: String,
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

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage {
    shell: Shell,
    overall: &'static str,
    heading: &'static str,
    worlds: Vec<WorldState>,
    at: Moment,
}

pub(crate) fn answer(visit: &Visit<'_>, page: StatusAct) -> Result<Reply, Trouble> {
    if !visit.app.settings.dashboard.status_page {
        return Err(Trouble::NotFound);
    }
    let worlds = worlds(visit);
    let overall = overall(visit, &worlds);
    match page {
        StatusAct::StatusJson => Ok(as_json(visit, overall, &worlds)),
        StatusAct::StatusFeed => Ok(as_atom(visit, overall, &worlds)),
        StatusAct::Status => {
            let heading = match overall {
                "maintenance" => "Closed for maintenance",
                _ if worlds.iter().all(|world| world.key != "live" || world.sports.is_empty()) => {
                    "No live sources yet"
                }
                "degraded" => "Some sources are delayed",
                _ => "All sources are fresh",
            };
            let shell = Shell::new(visit, "Status", "status");
            let at = Moment::new(visit.now, visit.now);
            page::render(200, &StatusPage { shell, overall, heading, worlds, at })
        }
    }
}

fn worlds(visit: &Visit<'_>) -> Vec<WorldState> {
    let described = [
        (World::Live, "Live market", "live", "What production keys see."),
        (
            World::Sandbox,
            "Sandbox",
            "sandbox",
            "The simulated market that test keys see, with its staged delays.",
        ),
    ];
    let states = described.into_iter().map(|(world, title, key, text)| WorldState {
        title,
        key,
        text,
        sports: sports(visit, world),
    });
    states.collect()
}

fn sports(visit: &Visit<'_>, world: World) -> Vec<SportState> {
    let handle = visit.app.world(world);
    let (vitals, stale_after, catalogue) =
        (handle.vitals(), handle.stale_after(), &visit.app.catalogue);
    let mut sports: Vec<SportState> = catalogue
        .sports()
        .map(|(id, sport)| {
            let of_sport = vitals.sources.iter().filter(|(sport, _, _)| *sport == id);
            let mut sources: Vec<SourceState> = of_sport
                .map(|(_, bookmaker, source)| {
                    let bookmaker = catalogue.bookmaker(*bookmaker);
                    let delayed = source.is_stale(visit.now, stale_after);
                    let since = source.read_at.plus(stale_after);
                    SourceState {
                        bookmaker_key: bookmaker.key.to_string(),
                        bookmaker: bookmaker.title.to_string(),
                        delayed,
                        read_at: source.read_at,
                        since: delayed.then_some(since),
                        read: Moment::new(source.read_at, visit.now),
                        age: span(visit.now.since(source.read_at)),
                        delayed_for: span(visit.now.since(since)),
                    }
                })
                .collect();
            sources.sort_by(|a, b| (b.delayed, &a.bookmaker).cmp(&(a.delayed, &b.bookmaker)));
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

/// Of the live market; the sandbox's delays are part of the play.
fn overall(visit: &Visit<'_>, worlds: &[WorldState]) -> &'static str {
    if visit.app.accounts.maintenance() != Maintenance::Off {
        return "maintenance";
    }
    let live = worlds.iter().filter(|world| world.key == "live");
    let delayed = live
        .flat_map(|world| &world.sports)
        .flat_map(|sport| &sport.sources)
        .any(|source| source.delayed);
    if delayed { "degraded" } else { "operational" }
}

fn as_json(visit: &Visit<'_>, overall: &str, worlds: &[WorldState]) -> Reply {
    let source = |source: &SourceState| {
        json!({
            "bookmaker": source.bookmaker_key,
            "state": if source.delayed { "delayed" } else { "fresh" },
            "since": source.since.map(|at| at.to_string()),
            "last_read_at": source.read_at.to_string(),
        })
    };
    let sport = |sport: &SportState| {
        json!({
            "sport": sport.key,
            "sources": sport.sources.iter().map(source).collect::<Vec<_>>(),
        })
    };
    let mut body = serde_json::Map::new();
    body.insert("status".into(), overall.into());
    body.insert("at".into(), visit.now.to_string().into());
    for world in worlds {
        body.insert(world.key.into(), world.sports.iter().map(sport).collect::<Vec<_>>().into());
    }
    let body = serde_json::Value::from(body).to_string();
    public(Reply::new(200, "application/json", body))
}

/// Delays that last, each an entry; one that ends leaves the feed.
fn as_atom(visit: &Visit<'_>, overall: &str, worlds: &[WorldState]) -> Reply {
    let base = visit.base();
    let mut entries = String::new();
    let mut updated = Timestamp::from_millis(0);
    let live = worlds.iter().filter(|world| world.key == "live");
    for sport in live.flat_map(|world| &world.sports) {
        for source in sport.sources.iter().filter(|source| source.delayed) {
            let Some(since) = source.since else { continue };
            updated = updated.max(since);
            let (bookmaker, sport_key) = (escape(&source.bookmaker_key), escape(&sport.key));
            entries.push_str(&format!(
                "<entry><id>{base}/status#{sport_key}-{bookmaker}-{}</id><title>{} {} is delayed</title>\
                 <updated>{since}</updated><link href=\"{base}/status\"/>\
                 <content type=\"text\">No good read since {}.</content></entry>",
                since.as_secs(),
                escape(&source.bookmaker),
                escape(&sport.title),
                source.read_at,
            ));
        }
    }
    if updated.as_millis() == 0 {
        updated = visit.now;
    }
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\
         <id>{base}/status</id><title>Linesman status: {overall}</title><updated>{updated}</updated>\
         <author><name>Linesman</name></author><link rel=\"self\" href=\"{base}/status.atom\"/>\
         <link href=\"{base}/status\"/>{entries}</feed>\n"
    );
    public(Reply::new(200, "application/atom+xml; charset=utf-8", body))
}

fn public(mut reply: Reply) -> Reply {
    reply.head.put("cache-control", format!("public, max-age={KEPT_S}"));
    reply.head.put("x-content-type-options", "nosniff");
    reply
}

fn escape(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
        out
    })
}

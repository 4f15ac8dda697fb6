//! Bodies: from a selection of a snapshot to JSON, fields exactly as the interface has them.

use accounts::Limits;
use domain::{Catalogue, Timestamp};
use market::{EventSelection, Health, ScoreSelection, Snapshot};
use serde_json::json;

use crate::answers::{Answer, Selector};
use crate::error::ApiError;
use crate::v1::query::event_not_found;
use engine::Published;
use http::Body;

/// Refuses what a snapshot does not have.
pub(crate) fn check_found(selector: &Selector, published: &Published) -> Result<(), ApiError> {
    match selector {
        Selector::Event(sport, id) => {
            let found = published.snapshot.sport(*sport).event(*id);
            found.map(drop).ok_or_else(event_not_found)
        }
        Selector::Sports
        | Selector::Books
        | Selector::Odds(_)
        | Selector::Bouts(_)
        | Selector::Scores(_)
        | Selector::Events(_) => Ok(()),
    }
}

/// Makes the answer to a selection.
pub(crate) fn make(selector: &Selector, snapshot: &Snapshot) -> Answer {
    let mut body = Vec::new();
    let next = match selector {
        Selector::Sports => {
            body = sports(snapshot).into_bytes();
            None
        }
        Selector::Books => {
            body = books(snapshot.catalogue()).into_bytes();
            None
        }
        Selector::Odds(odds) => {
            let page = odds.page(snapshot);
            return Answer::named(page.name, Body::of_pieces(page.pieces), page.next.as_ref());
        }
        Selector::Bouts(bouts) => {
            let page = bouts.select(snapshot);
            let mut text = String::new();
            bouts.write(snapshot, &page.items, &mut text);
            body = text.into_bytes();
            page.next
        }
        Selector::Scores(scores) => {
            let page = scores.select(snapshot);
            ScoreSelection::write(&page.items, &mut body);
            page.next
        }
        Selector::Events(events) => {
            let page = events.select(snapshot);
            EventSelection::write(&page.items, &mut body);
            page.next
        }
        Selector::Event(sport, id) => {
            if let Some(event) = snapshot.sport(*sport).event(*id) {
                body.extend_from_slice(event.texts.event.as_bytes());
            }
            None
        }
    };
    Answer::new(body, next.as_ref())
}

fn sports(snapshot: &Snapshot) -> String {
    let sports: Vec<_> = snapshot
        .catalogue()
        .sports()
        .map(|(id, sport)| {
            let view = snapshot.sport(id);
            json!({
                "key": sport.key,
                "title": sport.title,
                "group": sport.group,
                "active": view.active,
                "events": view.events_open,
                "books": view.bookmakers,
            })
        })
        .collect();
    json!({ "sports": sports }).to_string()
}

fn books(catalogue: &Catalogue) -> String {
    let books: Vec<_> = catalogue
        .bookmakers()
        .map(|(_, bookmaker)| {
            let regions: Vec<&str> = bookmaker.regions.iter().map(|region| region.key()).collect();
            json!({ "key": bookmaker.key, "title": bookmaker.title, "regions": regions })
        })
        .collect();
    serde_json::Value::from(books).to_string()
}

/// The service's status as a key sees it.
pub(crate) fn status(maintenance: bool, health: Health, limits: &Limits, now: Timestamp) -> String {
    let status = match (maintenance, health.degraded) {
        (true, _) => "maintenance",
        (false, true) => "degraded",
        (false, false) => "ok",
    };
    json!({
        "status": status,
        "api_version": "v1",
        "server_time": now.to_string(),
        "rate_limit": {
            "burst_per_minute": limits.burst_per_minute,
            "requests_per_day": limits.requests_per_day,
        },
        "sports_active": health.sports_active,
    })
    .to_string()
}

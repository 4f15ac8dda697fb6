//! The sports, the bookmakers, and the service status.

use accounts::Limits;
use domain::{Catalogue, Region, Timestamp};
use engine::Reach;
use market::{Health, Snapshot};
use serde_json::{Value, json};

use crate::v1::wire::object::{count, flag, list, object, one_of, schema, text};

object!(SportList: "All sports." {
    SPORTS: "sports" = list("Sport", "In the order of the catalogue."),
});

object!(Sport: "A sport." {
    KEY: "key" = text("Sport key."),
    TITLE: "title" = text("Display name."),
    GROUP: "group" = text("Sport group: the unit to which production keys can be restricted."),
    ACTIVE: "active" = flag(
        "False if all sources of the sport are stale or it has none: skip the sport instead of retrying.",
    ),
    EVENTS: "events" = count("Scheduled and live events."),
    BOOKS: "books" = count("Bookmakers pricing the sport."),
});

object!(Bookmaker: "A bookmaker." {
    KEY: "key" = text("Bookmaker key."),
    TITLE: "title" = text("Display name."),
    REGIONS: "regions" = json!({
        "type": "array",
        "items": { "type": "string", "enum": Region::ALL.map(Region::key) },
        "minItems": 1,
        "uniqueItems": true,
        "description": "The regions in which the bookmaker operates.",
    }),
});

object!(ServiceStatus: "The status of the service for the key." {
    STATUS: "status" = one_of(
        STATUSES,
        "`degraded`: at least one source is stale; its prices are still served. `maintenance`: every other endpoint \
        answers 503.",
    ),
    API_VERSION: "api_version" = json!({
        "type": "string",
        "const": VERSION,
        "description": "The version.",
    }),
    SERVER_TIME: "server_time" = schema("Timestamp", "The current time."),
    RATE_LIMIT: "rate_limit" = schema("RateLimit", "The limits of the calling key."),
    SPORTS_ACTIVE: "sports_active" = count("Number of sports with a fresh source."),
});

object!(RateLimit: "The limits of the calling key." {
    BURST_PER_MINUTE: "burst_per_minute" = count("Maximum number of requests in one UTC minute."),
    REQUESTS_PER_DAY: "requests_per_day" = count("Maximum number of requests in one UTC day."),
});

object!(HistoryReach: "The time range of history." {
    FROM: "from" = schema("TimestampMs", "Time of the first publication that `as_of` finds."),
    TO: "to" = schema("TimestampMs", "Time of the last publication."),
    PUBLICATIONS: "publications" = count("Number of publications from `from` to `to`."),
    RETENTION_S: "retention_s" = count("Time for which publications are kept, in seconds."),
    EXPORTED_TO: "exported_to" = json!({
        "type": ["string", "null"],
        "format": "date",
        "description": "The last day with final files.",
    }),
    GAPS: "gaps" = list("HistoryGap", "Time ranges without publications."),
});

object!(HistoryGap: "A time range without publications." {
    FROM: "from" = schema("TimestampMs", "Time of the first missing publication."),
    TO: "to" = schema("TimestampMs", "Time of the next publication that exists."),
});

const VERSION: &str = "v1";
const STATUSES: [&str; 3] = ["ok", "degraded", "maintenance"];

pub(super) fn sports(snapshot: &Snapshot) -> String {
    let sports = snapshot.catalogue().sports().map(|(id, sport)| {
        let view = snapshot.sport(id);
        json!({
            (Sport::KEY.name): sport.key,
            (Sport::TITLE.name): sport.title,
            (Sport::GROUP.name): sport.group,
            (Sport::ACTIVE.name): view.active,
            (Sport::EVENTS.name): view.events_open,
            (Sport::BOOKS.name): view.bookmakers,
        })
    });
    json!({ (SportList::SPORTS.name): sports.collect::<Value>() }).to_string()
}

pub(super) fn books(catalogue: &Catalogue) -> String {
    let books = catalogue.bookmakers().map(|(_, bookmaker)| {
        let regions: Vec<&str> = bookmaker.regions.iter().map(|region| region.key()).collect();
        json!({
            (Bookmaker::KEY.name): bookmaker.key,
            (Bookmaker::TITLE.name): bookmaker.title,
            (Bookmaker::REGIONS.name): regions,
        })
    });
    books.collect::<Value>().to_string()
}

/// The range of history.
pub(crate) fn history(reach: &Reach) -> String {
    let text = |at: Timestamp| String::from_utf8_lossy(&at.millis_text()).into_owned();
    let gaps = reach.gaps.iter().map(|(from, to)| {
        json!({ (HistoryGap::FROM.name): text(*from), (HistoryGap::TO.name): text(*to) })
    });
    json!({
        (HistoryReach::FROM.name): text(reach.from),
        (HistoryReach::TO.name): text(reach.to),
        (HistoryReach::PUBLICATIONS.name): reach.publications,
        (HistoryReach::RETENTION_S.name): reach.retention.as_secs(),
        (HistoryReach::EXPORTED_TO.name): reach.exported_to,
        (HistoryReach::GAPS.name): gaps.collect::<Value>(),
    })
    .to_string()
}

/// The service status for a key.
pub(crate) fn status(maintenance: bool, health: Health, limits: &Limits, now: Timestamp) -> String {
    let [ok, degraded, closed] = STATUSES;
    let status = match (maintenance, health.degraded) {
        (true, _) => closed,
        (false, true) => degraded,
        (false, false) => ok,
    };
    json!({
        (ServiceStatus::STATUS.name): status,
        (ServiceStatus::API_VERSION.name): VERSION,
        (ServiceStatus::SERVER_TIME.name): now.to_string(),
        (ServiceStatus::RATE_LIMIT.name): {
            (RateLimit::BURST_PER_MINUTE.name): limits.burst_per_minute,
            (RateLimit::REQUESTS_PER_DAY.name): limits.requests_per_day,
        },
        (ServiceStatus::SPORTS_ACTIVE.name): health.sports_active,
    })
    .to_string()
}

//! Events and possible duplicates as the command line prints them: from a running server's snapshot, or from a book
//! replayed from the log.

use std::fmt::Write;

use api::v1::event_cells;
use domain::EventId;
use domain::message::Fixture;
use engine::Identities;
use market::{Book, Profile, Snapshot, Unsure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The two sides, or the title of a tournament.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Names {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    away: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

impl From<&Fixture> for Names {
    fn from(fixture: &Fixture) -> Self {
        match fixture {
            Fixture::HeadToHead { home, away } => {
                Self { home: Some(home.to_string()), away: Some(away.to_string()), title: None }
            }
            Fixture::Field { title } => Self { title: Some(title.to_string()), ..Self::default() },
        }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.home, &self.away, &self.title) {
            (Some(home), Some(away), _) => write!(f, "{home} v {away}"),
            (_, _, title) => f.write_str(title.as_deref().unwrap_or_default()),
        }
    }
}

/// An event with the refs of all feeds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventView {
    id: String,
    sport: String,
    competition: String,
    commence_time: String,
    also: Vec<String>,
    refs: Vec<RefView>,
    unsure: Vec<PairView>,
    /// Why each price is present or missing, as `explain` of the API reports it; null if no client sees the event.
    #[serde(default)]
    cells: Value,
    #[serde(flatten)]
    names: Names,
}

#[derive(Debug, Serialize, Deserialize)]
struct RefView {
    feed: String,
    #[serde(rename = "ref")]
    reference: String,
    competition: String,
    commence_time: String,
    swapped: bool,
    why: String,
    #[serde(flatten)]
    names: Names,
}

/// Two possible duplicates.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PairView {
    one: String,
    other: String,
    doubt: String,
    evidence: String,
    one_event: String,
    other_event: String,
}

impl EventView {
    /// From a running server's snapshot.
    pub(crate) fn published(
        identities: &Identities,
        id: EventId,
        snapshot: &Snapshot,
    ) -> Option<Self> {
        let catalogue = snapshot.catalogue();
        let event = identities.event(id)?;
        let refs = event.refs.iter().map(|held| RefView {
            feed: held.feed.to_string(),
            reference: held.reference.to_string(),
            competition: event.competition_of(held).to_owned(),
            commence_time: held.commence_time.to_string(),
            swapped: held.swapped,
            why: held.why.to_string(),
            names: event.fixture_of(held).into(),
        });
        let concerned =
            identities.unsure().iter().filter(|pair| [pair.one, pair.other].contains(&event.id));
        Some(Self {
            id: event.id.to_string(),
            sport: catalogue.sport(event.sport).key.to_string(),
            competition: event.competition.to_string(),
            commence_time: event.commence_time.to_string(),
            also: event.also.iter().map(ToString::to_string).collect(),
            refs: refs.collect(),
            unsure: concerned.map(|pair| PairView::published(pair, identities)).collect(),
            cells: event_cells(snapshot, event.sport, event.id).into(),
            names: (&event.fixture).into(),
        })
    }

    /// From a book.
    pub(crate) fn of(profile: &Profile, book: &Book, snapshot: &Snapshot) -> Self {
        let sport = snapshot.catalogue().sport_id(&profile.sport);
        let refs = profile.refs.iter().map(|held| RefView {
            feed: held.feed.to_string(),
            reference: held.reference.to_string(),
            competition: held.competition.to_string(),
            commence_time: held.commence_time.to_string(),
            swapped: held.swapped,
            why: held.why.clone(),
            names: (&held.fixture).into(),
        });
        Self {
            id: profile.event.to_string(),
            sport: profile.sport.to_string(),
            competition: profile.competition.to_string(),
            commence_time: profile.commence_time.to_string(),
            also: profile.also.iter().map(ToString::to_string).collect(),
            refs: refs.collect(),
            unsure: profile.unsure.iter().map(|pair| PairView::of(pair, book)).collect(),
            cells: sport.and_then(|sport| event_cells(snapshot, sport, profile.event)).into(),
            names: (&profile.fixture).into(),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{} {}\n  {}, {}, starts {}",
            self.id, self.names, self.sport, self.competition, self.commence_time
        );
        for id in &self.also {
            put(&mut text, format_args!("\n  alias: {id}"));
        }
        for held in &self.refs {
            put(
                &mut text,
                format_args!(
                    "\n  {}:{} {}{}, {}, starts {}\n    {}",
                    held.feed,
                    held.reference,
                    held.names,
                    if held.swapped { " (sides swapped)" } else { "" },
                    held.competition,
                    held.commence_time,
                    held.why
                ),
            );
        }
        for pair in &self.unsure {
            put(&mut text, format_args!("\n  possible duplicate: {}", pair.to_text()));
        }
        put_cells(&mut text, &self.cells);
        text
    }
}

impl PairView {
    /// From a running server's snapshot.
    pub(crate) fn published(pair: &Unsure, identities: &Identities) -> Self {
        Self::new(pair, |id| {
            let event = identities.event(id)?;
            Some(format!("{}, starts {}", event.fixture, event.commence_time))
        })
    }

    /// From a book.
    pub(crate) fn of(pair: &Unsure, book: &Book) -> Self {
        Self::new(pair, |id| {
            let event = book.event(id)?;
            Some(format!("{}, starts {}", event.fixture, event.commence_time))
        })
    }

    fn new(pair: &Unsure, event: impl Fn(EventId) -> Option<String>) -> Self {
        Self {
            one: pair.one.to_string(),
            other: pair.other.to_string(),
            doubt: pair.doubt.to_string(),
            evidence: pair.evidence.to_string(),
            one_event: event(pair.one).unwrap_or_default(),
            other_event: event(pair.other).unwrap_or_default(),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let Self { one, other, doubt, evidence, one_event, other_event } = self;
        format!("{one} {one_event} | {other} {other_event} | {doubt} ({evidence})")
    }
}

/// A line for each cell: `fanduel moneyline: suspended since 2026-11-14T23:31:02Z`.
fn put_cells(text: &mut String, cells: &Value) {
    let list = |of: &'_ Value, name: &str| of.get(name).and_then(Value::as_array).cloned();
    let word = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    for book in list(cells, "books").unwrap_or_default() {
        let bookmaker = word(&book, "bookmaker").unwrap_or_default();
        for cell in list(&book, "cells").unwrap_or_default() {
            let market = word(&cell, "market").unwrap_or_default();
            let state = word(&cell, "state").unwrap_or_default().replace('_', " ");
            put(text, format_args!("\n  {bookmaker} {market}: {state}"));
            for (name, before) in [
                ("since", " since "),
                ("may_be", ", may be "),
                ("last_read", ", last read "),
                ("last_update", ", last update "),
            ] {
                if let Some(value) = word(&cell, name) {
                    put(text, format_args!("{before}{value}"));
                }
            }
            if cell.get("stale") == Some(&Value::Bool(true)) {
                put(text, format_args!(", stale"));
            }
        }
    }
    let none: Vec<String> = list(cells, "no_source")
        .unwrap_or_default()
        .iter()
        .filter_map(|own| own.as_str().map(str::to_owned))
        .collect();
    if !none.is_empty() {
        put(text, format_args!("\n  no feed delivers {}", none.join(", ")));
    }
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let written = text.write_fmt(more);
    debug_assert!(written.is_ok());
}

//! A naive book: applies messages in order by the rules of the contract, and records those that the service would
//! refuse.

use std::collections::BTreeMap;

use domain::message::{Body, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, ScoreBody};
use domain::{BookmakerId, Catalogue, Market, SportId, Status, Timestamp};

pub(crate) const KEPT_MS: i64 = 72 * 3_600_000;
pub(crate) const STALE_MS: i64 = 90_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) listing: Listing,
    pub(crate) score: Option<ScoreBody>,
    pub(crate) updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) outcomes: Vec<OfferedOutcome>,
    pub(crate) last_update: Timestamp,
}

pub(crate) type Key = (Box<str>, BookmakerId, Market, Option<Box<str>>);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Book {
    pub(crate) events: BTreeMap<Box<str>, Event>,
    pub(crate) odds: BTreeMap<Key, Record>,
    pub(crate) sources: BTreeMap<(BookmakerId, SportId), Timestamp>,
    /// The last heartbeat of each source.
    confirmed: BTreeMap<(BookmakerId, SportId), Timestamp>,
    /// Messages that the service would have refused or ignored.
    pub(crate) faults: Vec<String>,
}

impl Event {
    pub(crate) fn status(&self) -> Status {
        self.score.as_ref().map_or(Status::Scheduled, |score| score.status)
    }
}

impl Book {
    pub(crate) fn take(&mut self, messages: Vec<FeedMessage>, now: Timestamp) {
        for message in messages {
            let Some(ts) = message.ts else {
                self.faults.push("a message without ts".into());
                continue;
            };
            if ts > now {
                self.faults.push(format!("{ts} is ahead of {now}"));
            }
            match message.body {
                Body::Event { reference, listing } => self.list(reference, listing, ts),
                Body::Odds(odds) => self.price(odds, ts),
                Body::Score(score) => self.score(score, ts),
                Body::Remove { reference } => {
                    if self.events.remove(&reference).is_none() {
                        self.faults.push(format!("{reference} removed but unknown"));
                    }
                    self.odds.retain(|key, _| key.0 != reference);
                }
                Body::Heartbeat { bookmaker, sport } => self.confirm(bookmaker, sport, ts),
            }
        }
        self.settle();
        self.forget(now);
    }

    fn list(&mut self, reference: Box<str>, listing: Listing, ts: Timestamp) {
        match self.events.get_mut(&reference) {
            Some(held) => {
                if held.listing.fixture != listing.fixture {
                    self.odds.retain(|key, _| key.0 != reference);
                }
                held.listing = listing;
            }
            None => {
                let event = Event { listing, score: None, updated_at: ts };
                self.events.insert(reference, event);
            }
        }
    }

    fn price(&mut self, odds: OddsBody, ts: Timestamp) {
        let Some(event) = self.events.get(&odds.reference) else {
            self.faults.push(format!("odds for unknown {}", odds.reference));
            return;
        };
        if event.status() == Status::Final {
            self.faults.push(format!("odds for finished {}", odds.reference));
        }
        if let Fixture::HeadToHead { home, away } = &event.listing.fixture {
            for outcome in &odds.outcomes {
                let name = &outcome.name;
                let known = name == home || name == away;
                if !known && !["Over", "Under", "Draw"].contains(&&**name) {
                    self.faults.push(format!("{name} is nobody in {}", odds.reference));
                }
            }
        }
        let source = (odds.bookmaker, event.listing.sport);
        if self.confirmed.get(&source).is_some_and(|held| *held > ts) {
            self.faults.push(format!("{}: older than a heartbeat", odds.reference));
        }
        let newest = self.sources.entry(source).or_insert(ts);
        *newest = ts.max(*newest);
        let key = (odds.reference, odds.bookmaker, odds.market, odds.group);
        let held = self.odds.get(&key);
        if held.is_some_and(|held| held.last_update > ts) {
            self.faults.push(format!("{key:?} superseded"));
        }
        if odds.outcomes.is_empty() {
            if self.odds.remove(&key).is_none() {
                self.faults.push(format!("{key:?} withdrawn but not there"));
            }
            return;
        }
        let record = Record { outcomes: odds.outcomes, last_update: ts };
        self.odds.insert(key, record);
    }

    fn score(&mut self, score: ScoreBody, ts: Timestamp) {
        let Some(event) = self.events.get_mut(&score.reference) else {
            self.faults.push(format!("score of unknown {}", score.reference));
            return;
        };
        if let Some(held) = &event.score {
            let lower =
                score.status < held.status || score.home < held.home || score.away < held.away;
            if lower {
                self.faults.push(format!("{} went backwards", score.reference));
            }
            if *held == score {
                self.faults.push(format!("{}: score sent twice", score.reference));
                return;
            }
        }
        if score.status == Status::Final {
            let reference = score.reference.clone();
            self.odds.retain(|key, _| key.0 != reference);
        }
        event.updated_at = ts;
        event.score = Some(score);
    }

    fn confirm(&mut self, bookmaker: BookmakerId, sport: Option<SportId>, ts: Timestamp) {
        let Some(sport) = sport else {
            self.faults.push("a heartbeat without a sport".into());
            return;
        };
        let newest = self.sources.entry((bookmaker, sport)).or_insert(ts);
        *newest = ts.max(*newest);
        self.confirmed.insert((bookmaker, sport), ts);
    }

    /// Applies heartbeats: each confirms all records of its source. Odds never have a `ts` before that of an earlier
    /// heartbeat of the same source (`price` ensures it), so one pass at the end is enough.
    fn settle(&mut self) {
        for (key, record) in &mut self.odds {
            let sport = self.events.get(&key.0).map(|event| event.listing.sport);
            let confirmed = sport.and_then(|sport| self.confirmed.get(&(key.1, sport)));
            if let Some(ts) = confirmed {
                record.last_update = record.last_update.max(*ts);
            }
        }
    }

    /// Removes final events 72 h after their final score.
    fn forget(&mut self, now: Timestamp) {
        self.events.retain(|_, event| {
            event.status() != Status::Final
                || now.as_millis() - event.updated_at.as_millis() <= KEPT_MS
        });
    }

    pub(crate) fn is_stale(&self, bookmaker: BookmakerId, sport: SportId, now: Timestamp) -> bool {
        let newest = self.sources.get(&(bookmaker, sport));
        newest.is_none_or(|ts| now.as_millis() - ts.as_millis() > STALE_MS)
    }

    /// Events of a sport with a status.
    pub(crate) fn with(&self, sport: SportId, status: Status) -> impl Iterator<Item = &Event> {
        self.events
            .values()
            .filter(move |event| event.listing.sport == sport && event.status() == status)
    }

    /// The differences to another book, as texts; empty if there are none.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (what, event) in &self.events {
            if other.events.get(what) != Some(event) {
                found.push(format!("{event:?} != {:?}", other.events.get(what)));
            }
        }
        for what in other.events.keys() {
            if !self.events.contains_key(what) {
                found.push(format!("{what} only in the second"));
            }
        }
        for (key, record) in &self.odds {
            if other.odds.get(key) != Some(record) {
                found.push(format!("{key:?}: {record:?} != {:?}", other.odds.get(key)));
            }
        }
        for key in other.odds.keys() {
            if !self.odds.contains_key(key) {
                found.push(format!("{key:?} only in the second"));
            }
        }
        for (source, ts) in &self.sources {
            if other.sources.get(source) != Some(ts) {
                found.push(format!("{source:?} {ts} != {:?}", other.sources.get(source)));
            }
        }
        found.truncate(8);
        found
    }
}

/// The id of a sport of the embedded catalogue.
pub(crate) fn sport(catalogue: &Catalogue, key: &str) -> SportId {
    catalogue.sport_id(key).expect("a sport of the catalogue")
}

//! The book: every event, price and score of one world, with one writer.
//!
//! A message goes in two steps. [`Book::decide`] looks and does not touch: it says whether the message is
//! taken and, if so, what changes. [`Book::absorb`] applies a change, the same way when it is new and when it
//! is read back from the log; so the book is a function of the log, and a crash is a replay.

mod absorb;
mod decide;
mod event;
mod image;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use domain::message::{FeedMessage, Fixture, Reject};
use domain::{BookmakerId, Catalogue, EventId, Market, RecordId, SportId, Timestamp};

use crate::change::Change;
use crate::freshness::{Source, Vitals};
use crate::matching::Index;
pub use event::{Event, EventTexts, Outcome, OutcomeName, Record};
pub(crate) use event::{FeedIx, Slot, SlotKey};
pub use image::{IMAGE_VERSION, ImageError};

/// How event ids come about in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ids {
    /// The next of a sequence, scrambled with the installation's salt.
    Minted { salt: u64 },
    /// From the feed's ref, so that every process has the same ids (the sandbox).
    Derived { salt: u64 },
}

/// How long things stay when nobody speaks of them any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// A final event and its score, and an event nobody lists (D24).
    pub final_retention: Duration,
    /// An event that never became final, after its start and the last word of it; a source with no prices.
    pub forget_after: Duration,
}

/// What became of a message that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// Nothing that clients see differs; freshness may.
    Unchanged,
    /// Something newer is held.
    Superseded,
}

/// A verdict with the change to log and absorb, where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub change: Option<Change>,
}

/// A feed's offer of an event under a ref of its own.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) event: EventId,
    pub(crate) swapped: bool,
    pub(crate) active: bool,
    pub(crate) ts: Timestamp,
    pub(crate) competition: Box<str>,
    pub(crate) commence_time: Timestamp,
    pub(crate) fixture: Fixture,
}

/// What a ref was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub event: EventId,
    /// Feeds that list the event, the eldest first.
    pub feeds: Vec<Box<str>>,
}

/// A feed by name, with its refs.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) name: Box<str>,
    pub(crate) offers: HashMap<Box<str>, Offer>,
}

/// All of one world.
#[derive(Debug)]
pub struct Book {
    catalogue: Arc<Catalogue>,
    ids: Ids,
    events_made: u64,
    events: HashMap<EventId, Event>,
    feeds: Vec<Feed>,
    sources: BTreeMap<(SportId, BookmakerId), Source>,
    index: Index,
}

impl Book {
    pub fn new(catalogue: Arc<Catalogue>, ids: Ids) -> Self {
        Self {
            catalogue,
            ids,
            events_made: 0,
            events: HashMap::new(),
            feeds: Vec::new(),
            sources: BTreeMap::new(),
            index: Index::default(),
        }
    }

    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.values()
    }

    pub fn event(&self, id: EventId) -> Option<&Event> {
        self.events.get(&id)
    }

    /// Which event a feed's ref stands for, and which feeds list that event.
    pub fn identity(&self, feed: &str, reference: &str) -> Option<Identity> {
        let event = self.feed(self.feed_ix(feed)?)?.offers.get(reference)?.event;
        let listers = &self.event(event)?.listed_by;
        let feeds =
            listers.iter().filter_map(|(ix, _)| Some(self.feed(*ix)?.name.clone())).collect();
        Some(Identity { event, feeds })
    }

    pub fn sources(&self) -> impl Iterator<Item = (SportId, BookmakerId, Source)> {
        self.sources.iter().map(|((sport, bookmaker), source)| (*sport, *bookmaker, *source))
    }

    pub(crate) fn source(&self, sport: SportId, bookmaker: BookmakerId) -> Option<Source> {
        self.sources.get(&(sport, bookmaker)).copied()
    }

    pub fn vitals(&self) -> Vitals {
        Vitals { sources: self.sources().collect() }
    }

    /// Decides and absorbs in one step; the change, if any, is the caller's to log.
    ///
    /// # Errors
    /// The message is refused; the book is as before.
    pub fn apply(
        &mut self,
        feed: &str,
        message: &FeedMessage,
        now: Timestamp,
    ) -> Result<Decision, Reject> {
        let decision = self.decide(feed, message, now)?;
        if let Some(change) = &decision.change {
            self.absorb(change, now);
        }
        Ok(decision)
    }

    /// What time alone brings about: events and sources whose stay is over.
    pub fn overdue(&self, now: Timestamp, lifetimes: Lifetimes) -> Vec<Change> {
        let past = |since: Timestamp, stay: Duration| now.since(since) >= stay && now > since;
        let mut overdue: Vec<EventId> = self
            .events
            .values()
            .filter(|event| {
                if event.is_final() {
                    past(event.score_changed, lifetimes.final_retention)
                } else if event.is_listed() {
                    past(event.commence_time.max(event.mentioned_at), lifetimes.forget_after)
                } else {
                    past(event.mentioned_at, lifetimes.final_retention)
                }
            })
            .map(|event| event.id)
            .collect();
        // The map's order is random; the log's need not be.
        overdue.sort_unstable();
        let mut changes: Vec<Change> =
            overdue.into_iter().map(|event| Change::Expired { event }).collect();
        let forgotten = self
            .sources
            .iter()
            .filter(|(key, source)| {
                past(source.read_at, lifetimes.forget_after) && !self.has_prices(**key)
            })
            .map(|((sport, bookmaker), _)| Change::SourceForgotten {
                bookmaker: self.catalogue.bookmaker(*bookmaker).key.clone(),
                sport: self.catalogue.sport(*sport).key.clone(),
            });
        changes.extend(forgotten);
        changes
    }

    fn has_prices(&self, (sport, bookmaker): (SportId, BookmakerId)) -> bool {
        self.events.values().filter(|event| event.sport == sport).any(|event| {
            event.slots.iter().any(|(key, slot)| key.bookmaker == bookmaker && slot.open.is_some())
        })
    }

    /// When the prices in a slot were last confirmed (D28).
    pub(crate) fn last_update(&self, sport: SportId, key: &SlotKey, slot: &Slot) -> Timestamp {
        match self.sources.get(&(sport, key.bookmaker)) {
            Some(source) if source.beat_at > slot.beat_seen => slot.ts.max(source.beat_at),
            _ => slot.ts,
        }
    }

    fn source_key(&self, sport: &str, bookmaker: &str) -> Option<(SportId, BookmakerId)> {
        Some((self.catalogue.sport_id(sport)?, self.catalogue.bookmaker_id(bookmaker)?))
    }

    pub(crate) fn feed_ix(&self, name: &str) -> Option<FeedIx> {
        let at = self.feeds.iter().position(|feed| &*feed.name == name)?;
        u32::try_from(at).ok().map(FeedIx)
    }

    pub(crate) fn feed(&self, ix: FeedIx) -> Option<&Feed> {
        self.feeds.get(usize::try_from(ix.0).ok()?)
    }

    fn feed_mut(&mut self, ix: FeedIx) -> Option<&mut Feed> {
        self.feeds.get_mut(usize::try_from(ix.0).ok()?)
    }

    fn intern_feed(&mut self, name: &str) -> FeedIx {
        self.feed_ix(name).unwrap_or_else(|| {
            self.feeds.push(Feed { name: name.into(), offers: HashMap::new() });
            FeedIx(u32::try_from(self.feeds.len() - 1).unwrap_or(u32::MAX))
        })
    }
}

pub(crate) fn slot_key_of(
    event: EventId,
    catalogue: &Catalogue,
    bookmaker: BookmakerId,
    market: Market,
    group: Option<&str>,
) -> SlotKey {
    let record = RecordId::new(event, &catalogue.bookmaker(bookmaker).key, market, group);
    SlotKey { bookmaker, market, record }
}

//! The book: every event, price and score of one world, with one writer.
//!
//! A message goes in two steps. [`Book::decide`] looks and does not touch: it says whether the message is
//! taken and, if so, what changes. [`Book::absorb`] applies a change, the same way when it is new and when it
//! is read back from the log; so the book is a function of the log, and a crash is a replay.

mod decide;
mod event;
mod image;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use domain::message::{FeedMessage, Fixture, Reject};
use domain::score::Status;
use domain::{BookmakerId, Catalogue, EventId, Market, RecordId, SportId, Timestamp};

use crate::change::{Change, Listed, MarketKey, Quoted, Reported};
use crate::freshness::{Source, Vitals};
use crate::matching::{Index, Participants};
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

    /// Applies a change. `at` is when it was accepted. A key that has left the catalogue since makes the
    /// change void: there is nothing to show it under.
    pub fn absorb(&mut self, change: &Change, at: Timestamp) {
        match change {
            Change::Founded { ids } => *self = Self::new(Arc::clone(&self.catalogue), *ids),
            Change::Listed(listed) => self.absorb_listed(listed, at),
            Change::Quoted(quoted) => self.absorb_quoted(quoted, at),
            Change::Confirmed { event, market, ts } => {
                self.absorb_confirmed(*event, market, *ts, at);
            }
            Change::Scored { event, score, ts } => self.absorb_scored(*event, score, *ts, at),
            Change::Withdrawn { feed, reference, ts } => {
                self.absorb_withdrawn(feed, reference, *ts, at);
            }
            Change::Beat { bookmaker, sport, ts } => {
                self.absorb_beat(bookmaker, sport.as_deref(), *ts, at);
            }
            Change::Expired { event } => self.absorb_expired(*event),
            Change::SourceForgotten { bookmaker, sport } => {
                if let Some(key) = self.source_key(sport, bookmaker) {
                    self.sources.remove(&key);
                }
            }
            Change::Cut { .. } => {}
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

    fn absorb_listed(&mut self, listed: &Listed, at: Timestamp) {
        let is_new = !self.events.contains_key(&listed.event);
        // Counted even where the sport is gone: an id once given is never given again.
        self.events_made += u64::from(is_new);
        let Some(sport) = self.catalogue.sport_id(&listed.sport) else {
            return;
        };
        let feed = self.intern_feed(&listed.feed);
        self.leave_former_event(feed, &listed.reference, listed.event, at);
        if is_new {
            self.events.insert(listed.event, new_event(sport, listed, at));
            self.index.insert(sport, &listed.fixture, listed.commence_time, listed.event);
        }
        let offer = Offer {
            event: listed.event,
            swapped: listed.swapped,
            active: true,
            ts: listed.ts,
            competition: listed.competition.clone(),
            commence_time: listed.commence_time,
            fixture: listed.fixture.clone(),
        };
        if let Some(event) = self.events.get_mut(&listed.event) {
            event.mentioned_at = at;
            if !event.is_listed_by(feed) {
                event.listed_by.push((feed, listed.reference.clone()));
                event.touch();
            }
            let leads = event.listed_by.first().is_some_and(|(first, _)| *first == feed);
            if leads {
                follow_offer(event, &offer, &mut self.index);
            }
        }
        if let Some(feed) = self.feed_mut(feed) {
            feed.offers.insert(listed.reference.clone(), offer);
        }
    }

    /// A ref that stood for another event takes its listing and prices away from there.
    fn leave_former_event(
        &mut self,
        feed: FeedIx,
        reference: &str,
        now_at: EventId,
        at: Timestamp,
    ) {
        let former = self.feed(feed).and_then(|feed| feed.offers.get(reference)).map(|o| o.event);
        if let Some(former) = former.filter(|former| *former != now_at) {
            self.unlist(former, feed, reference, at);
        }
    }

    /// Takes the ref's listing and its feed's prices away; the eldest feed left leads from now on.
    fn unlist(&mut self, event: EventId, feed: FeedIx, reference: &str, at: Timestamp) {
        let Some(event) = self.events.get_mut(&event) else {
            return;
        };
        let listing = |(lister, held): &(FeedIx, Box<str>)| *lister == feed && &**held == reference;
        // The feed may have withdrawn this ref before and list the event under another now.
        if !event.listed_by.iter().any(listing) {
            return;
        }
        event.listed_by.retain(|lister| !listing(lister));
        event.mentioned_at = at;
        event.close_slots(|slot| slot.feed == feed);
        let leader = event.listed_by.first().and_then(|(leader, reference)| {
            self.feeds.get(usize::try_from(leader.0).ok()?)?.offers.get(reference)
        });
        if let Some(leader) = leader {
            follow_offer(event, leader, &mut self.index);
        }
    }

    fn absorb_quoted(&mut self, quoted: &Quoted, at: Timestamp) {
        let feed = self.intern_feed(&quoted.feed);
        let Some(bookmaker) = self.catalogue.bookmaker_id(&quoted.market.bookmaker) else {
            return;
        };
        let Some(event) = self.events.get_mut(&quoted.event) else {
            return;
        };
        event.mentioned_at = at;
        let source = self.sources.entry((event.sport, bookmaker)).or_insert(Source::NEVER);
        source.read(quoted.ts, at);
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(quoted.outcomes.len());
        for outcome in &quoted.outcomes {
            if let Some(name) = event.outcome_name(&outcome.who) {
                outcomes.push(Outcome { name, quote: outcome.quote, point: outcome.point });
            }
        }
        outcomes.sort_unstable_by(|one, other| {
            event.order_outcomes((one.name, one.point), (other.name, other.point))
        });
        let open = (!outcomes.is_empty()).then(|| Arc::new(Record::new(outcomes.into())));
        let key = slot_key(event.id, bookmaker, &quoted.market);
        let was_open = event.slots.get(&key).is_some_and(|slot| slot.open.is_some());
        if was_open != open.is_some() {
            // The event's list of markets may differ now.
            event.touch();
        }
        let slot = Slot {
            group: quoted.market.group.clone(),
            feed,
            ts: quoted.ts,
            beat_seen: source.beat_at,
            open,
        };
        event.slots.insert(key, slot);
    }

    fn absorb_confirmed(
        &mut self,
        event: EventId,
        market: &MarketKey,
        ts: Timestamp,
        at: Timestamp,
    ) {
        let Some(bookmaker) = self.catalogue.bookmaker_id(&market.bookmaker) else {
            return;
        };
        let Some(event) = self.events.get_mut(&event) else {
            return;
        };
        event.mentioned_at = at;
        let source = self.sources.entry((event.sport, bookmaker)).or_insert(Source::NEVER);
        source.read(ts, at);
        if let Some(slot) = event.slots.get_mut(&slot_key(event.id, bookmaker, market)) {
            // A heartbeat that confirmed these prices still does, also where this read is an older one.
            slot.ts = ts;
        }
    }

    fn absorb_scored(&mut self, event: EventId, report: &Reported, ts: Timestamp, at: Timestamp) {
        let Some(event) = self.events.get_mut(&event) else {
            return;
        };
        event.mentioned_at = at;
        let score = event.score_from(report);
        if score != event.score {
            event.score = score;
            event.score_changed = ts;
        }
        event.score_ts = Some(ts);
        if event.score.status == Status::Final {
            event.close_slots(|_| true);
        }
        event.touch();
    }

    fn absorb_withdrawn(&mut self, feed: &str, reference: &str, ts: Timestamp, at: Timestamp) {
        let Some(feed) = self.feed_ix(feed) else {
            return;
        };
        let offer = self.feed_mut(feed).and_then(|feed| feed.offers.get_mut(reference));
        if let Some(offer) = offer {
            offer.active = false;
            offer.ts = ts;
            let event = offer.event;
            self.unlist(event, feed, reference, at);
        }
    }

    fn absorb_beat(&mut self, bookmaker: &str, sport: Option<&str>, ts: Timestamp, at: Timestamp) {
        let Some(bookmaker) = self.catalogue.bookmaker_id(bookmaker) else {
            return;
        };
        match sport {
            Some(sport) => {
                if let Some(sport) = self.catalogue.sport_id(sport) {
                    self.sources.entry((sport, bookmaker)).or_insert(Source::NEVER).beat(ts, at);
                }
            }
            None => {
                for ((_, of), source) in &mut self.sources {
                    if *of == bookmaker {
                        source.beat(ts, at);
                    }
                }
            }
        }
    }

    fn absorb_expired(&mut self, id: EventId) {
        let Some(event) = self.events.remove(&id) else {
            return;
        };
        self.index.remove(event.sport, &event.fixture, id);
        for feed in &mut self.feeds {
            feed.offers.retain(|_, offer| offer.event != id);
        }
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

fn slot_key(event: EventId, bookmaker: BookmakerId, key: &MarketKey) -> SlotKey {
    let record = RecordId::new(event, &key.bookmaker, key.market, key.group.as_deref());
    SlotKey { bookmaker, market: key.market, record }
}

fn new_event(sport: SportId, listed: &Listed, at: Timestamp) -> Event {
    Event {
        id: listed.event,
        sport,
        competition: listed.competition.clone(),
        commence_time: listed.commence_time,
        fixture: listed.fixture.clone(),
        field: event::Field::default(),
        listed_by: Vec::new(),
        first_known: listed.ts,
        mentioned_at: at,
        score: domain::Score::none_yet(),
        score_ts: None,
        score_changed: listed.ts,
        slots: BTreeMap::new(),
        texts: std::sync::OnceLock::new(),
    }
}

/// The leading feed's listing becomes the event's, seen from the event's side.
fn follow_offer(event: &mut Event, offer: &Offer, index: &mut Index) {
    let fixture = match (&offer.fixture, offer.swapped) {
        (Fixture::HeadToHead { home, away }, true) => {
            Fixture::HeadToHead { home: away.clone(), away: home.clone() }
        }
        (fixture, _) => fixture.clone(),
    };
    if event.fixture == fixture
        && event.commence_time == offer.commence_time
        && event.competition == offer.competition
    {
        return;
    }
    index.remove(event.sport, &event.fixture, event.id);
    index.insert(event.sport, &fixture, offer.commence_time, event.id);
    let others = Participants::of(&event.fixture) != Participants::of(&fixture);
    if event.fixture != fixture {
        event.touch_records();
    }
    event.fixture = fixture;
    event.commence_time = offer.commence_time;
    event.competition = offer.competition.clone();
    if others {
        // Somebody else takes part: no price quoted so far is about them.
        event.close_slots(|_| true);
    }
    event.touch();
}

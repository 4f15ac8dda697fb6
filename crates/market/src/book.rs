//! The book: every event, price and score of one world, with one writer.
//!
//! A message is processed in two steps. [`Book::decide`] only reads: it decides whether the message is accepted and
//! what changes. [`Book::absorb`] applies a change, in the same way whether it is new or read back from the log; so
//! the book is a function of the log, and recovery from a crash is a replay.

mod absorb;
mod calendar;
mod decide;
mod doubts;
mod event;
mod field;
mod habits;
mod identity_memory;
mod image;
mod operate;
mod place;
mod resolve;
mod settle;
mod touched;
mod weight;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use domain::message::{Body, FeedMessage, Fixture, Reject};
use domain::{BookmakerId, Catalogue, EventId, Market, RecordId, SportId, Timestamp};

use crate::change::{Change, Configured, Ids};
use crate::freshness::{Source, Vitals};
use crate::matching::{Contest, Evidence, Hashed, Index, Lexicon, NameSignature};
use calendar::Calendar;
pub use event::{Event, EventDetails, OpenRecord, Outcome, OutcomeName, Record};
pub(crate) use event::{FeedIx, Slot, SlotKey};
use identity_memory::IdentityMemory;
pub use image::{IMAGE_VERSION, ImageError, ImagePart};
pub use operate::{NotDone, Operation, Profile, ProfileRef, Unsure};
pub use settle::DOUBTS_MAX;
pub use touched::Touched;
pub use weight::{HORIZON, Limits, Load, UNIT_BYTES};

/// Maximum number of events that expire with one snapshot, so that no snapshot is late because of them; the rest
/// expire with the next.
pub const EXPIRED_AT_ONCE_MAX: usize = 50_000;

/// Retention times after the last mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// For a final event and its score, and an event that no feed lists (D24).
    pub final_retention: Duration,
    /// For an event that never became final, after its start and its last mention; also for a source without prices.
    pub forget_after: Duration,
}

/// The result of a message that was not rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// No difference for clients, except perhaps freshness.
    Unchanged,
    /// The book has something newer.
    Superseded,
}

/// A verdict with the changes to log and absorb, if any.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub change: Option<Change>,
    /// Changes that follow from the first: the reason why a ref was taken for an event, aliases learned from that,
    /// merged events.
    pub follow: Vec<Change>,
    pub oddity: Option<Oddity>,
}

/// Something that is accepted but that a sound source rarely sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Oddity {
    /// A ref now means another event.
    ReusedRef,
    /// A ref's event is now listed with its sides swapped.
    Turned,
    /// A participant of the feed's own event is now a different one.
    Replaced,
    /// The feed already lists the same event under another ref.
    Duplicate,
}

impl Oddity {
    pub const ALL: [Self; 4] = [Self::ReusedRef, Self::Turned, Self::Replaced, Self::Duplicate];

    pub const fn slug(self) -> &'static str {
        match self {
            Self::ReusedRef => "reused_ref",
            Self::Turned => "turned_sides",
            Self::Replaced => "replaced_participant",
            Self::Duplicate => "duplicate_event",
        }
    }
}

/// The reason why a ref means its event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Placed {
    First,
    /// It matched another feed's listing.
    Matched {
        feed: Box<str>,
        reference: Box<str>,
        evidence: Evidence,
    },
    ByOperator,
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
    /// The participants, parsed for comparison: every new listing may be compared with them.
    pub(crate) contest: Contest,
    pub(crate) signature: NameSignature,
    pub(crate) placed: Placed,
    /// Its former event, which was merged into this one.
    pub(crate) came_from: Option<EventId>,
}

/// An event that a feed lists under a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOffer {
    pub reference: Box<str>,
    pub sport: SportId,
    pub commence_time: Timestamp,
    /// The markets that have prices from this feed.
    pub markets: Vec<(BookmakerId, Market, Option<Box<str>>)>,
}

/// A feed by name, with its refs.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) name: Box<str>,
    pub(crate) offers: HashMap<Box<str>, Box<Offer>>,
    /// Memory charged to the feed, in units of [`weight`].
    weight: u64,
}

/// The complete state of one world.
#[derive(Debug)]
pub struct Book {
    catalogue: Arc<Catalogue>,
    ids: Ids,
    events_made: u64,
    /// Boxed, like offers: a table of large entries is slow to grow.
    events: HashMap<EventId, Box<Event>, BuildHasherDefault<Hashed>>,
    feeds: Vec<Feed>,
    feeds_by_name: HashMap<Box<str>, FeedIx>,
    sources: BTreeMap<(SportId, BookmakerId), Source>,
    /// The feeds that have quoted a bookmaker in a sport.
    quoted_by: BTreeMap<(SportId, BookmakerId), BTreeSet<FeedIx>>,
    /// Seconds for which the newest read of each source keeps it fresh, if its messages say so.
    paces: BTreeMap<(SportId, BookmakerId), u32>,
    /// The configuration of the latest publication.
    configured: Option<Configured>,
    index: Index<EventId>,
    calendar: Calendar,
    lexicon: Arc<Lexicon>,
    memory: IdentityMemory,
    limits: Limits,
    /// Memory charged in total, in units of [`weight`].
    weight: u64,
    touched: Touched,
}

impl Feed {
    fn new(name: Box<str>) -> Self {
        Self { name, offers: HashMap::new(), weight: 0 }
    }

    pub(crate) fn offer(&self, reference: &str) -> Option<&Offer> {
        self.offers.get(reference).map(|offer| &**offer)
    }
}

impl Book {
    pub fn new(catalogue: Arc<Catalogue>, ids: Ids) -> Self {
        let lexicon = Arc::new(Lexicon::new(&catalogue));
        Self::with_lexicon(catalogue, lexicon, ids)
    }

    fn with_lexicon(catalogue: Arc<Catalogue>, lexicon: Arc<Lexicon>, ids: Ids) -> Self {
        Self {
            catalogue,
            ids,
            events_made: 0,
            events: HashMap::default(),
            feeds: Vec::new(),
            feeds_by_name: HashMap::new(),
            sources: BTreeMap::new(),
            quoted_by: BTreeMap::new(),
            paces: BTreeMap::new(),
            configured: None,
            index: Index::default(),
            calendar: Calendar::default(),
            lexicon,
            memory: IdentityMemory::default(),
            limits: Limits::DEFAULT,
            weight: 0,
            touched: Touched::All,
        }
    }

    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// The configuration of publications, if the log contains it.
    pub fn configured(&self) -> Option<&Configured> {
        self.configured.as_ref()
    }

    /// Derives the ids of new events from another salt.
    ///
    /// A writer that continues with a book from storage does this once, with a random salt: events that a damaged log
    /// or a restored copy has lost may have ids that clients know, and the old salt would give those to other events.
    /// Derived ids stay the same: they depend only on the ref.
    ///
    /// The salt is not persisted: an id is decided once and is in the log itself.
    pub fn renew_salt(&mut self, salt: u64) {
        if let Ids::Minted { salt: held } = &mut self.ids {
            *held = salt;
        }
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.values().map(|event| &**event)
    }

    pub fn event(&self, id: EventId) -> Option<&Event> {
        self.events.get(&id).map(|event| &**event)
    }

    pub fn sources(&self) -> impl Iterator<Item = (SportId, BookmakerId, Source)> {
        self.sources.iter().map(|(key, source)| {
            (key.0, key.1, Source { fresh_for_s: self.pace(key.0, key.1), ..*source })
        })
    }

    /// Seconds for which the newest read of a source keeps it fresh; 0 if its messages do not say so.
    pub(crate) fn pace(&self, sport: SportId, bookmaker: BookmakerId) -> u32 {
        self.paces.get(&(sport, bookmaker)).copied().unwrap_or(0)
    }

    /// The feeds that have quoted a bookmaker in a sport, in order.
    pub(crate) fn feeds_quoting(
        &self,
        sport: SportId,
        bookmaker: BookmakerId,
    ) -> impl Iterator<Item = FeedIx> {
        self.quoted_by.get(&(sport, bookmaker)).into_iter().flatten().copied()
    }

    /// The possible duplicates of an event, the smallest id first.
    pub(crate) fn doubted_with(&self, event: EventId) -> impl Iterator<Item = EventId> {
        self.memory.doubts.of(event)
    }

    pub(crate) fn source(&self, sport: SportId, bookmaker: BookmakerId) -> Option<Source> {
        let source = self.sources.get(&(sport, bookmaker))?;
        Some(Source { fresh_for_s: self.pace(sport, bookmaker), ..*source })
    }

    pub fn vitals(&self) -> Vitals {
        Vitals { sources: self.sources().collect() }
    }

    /// Decides and absorbs in one step, with everything that follows; the caller logs the changes, in order.
    ///
    /// # Errors
    /// The message is rejected; the book is unchanged.
    pub fn apply(
        &mut self,
        feed: &str,
        message: &FeedMessage,
        now: Timestamp,
    ) -> Result<Decision, Reject> {
        let (mut decision, facts) = self.judge(feed, message, now)?;
        let Some(change) = &decision.change else { return Ok(decision) };
        let stood_for = match &message.body {
            Body::Event { reference, .. } | Body::Remove { reference } => {
                self.stands_for(feed, reference)
            }
            Body::Odds(_) | Body::Score(_) | Body::Heartbeat { .. } => None,
        };
        let players = |book: &Self| match &message.body {
            Body::Odds(odds) => book.players_of(feed, &odds.reference),
            Body::Event { .. } | Body::Score(_) | Body::Remove { .. } | Body::Heartbeat { .. } => 0,
        };
        let known_players = players(self);
        let alone = facts.as_ref().is_some_and(|facts| facts.alone);
        if let Change::Listed(listed) = change {
            self.absorb_listed(listed, facts, now);
        } else {
            self.absorb(change, now);
        }
        for change in &decision.follow {
            self.absorb(change, now);
        }
        if let Body::Event { reference, .. } = &message.body
            && !alone
        {
            let learnt = self.settle_taught(&decision.follow, now);
            decision.follow.extend(learnt);
            decision.follow.extend(self.settle(feed, reference, now));
        }
        if let Body::Odds(odds) = &message.body
            && players(self) > known_players
        {
            // The players help to identify a tournament.
            decision.follow.extend(self.settle(feed, &odds.reference, now));
        }
        if let Some(left) = stood_for {
            let refers = matches!(&message.body, Body::Event { reference, .. }
                if self.stands_for(feed, reference) == Some(left));
            if !refers {
                decision.follow.extend(self.settle_event(left, now));
            }
        }
        Ok(decision)
    }

    /// The events that a feed lists, with its markets that have prices.
    pub fn open_of(&self, feed: &str) -> Vec<OpenOffer> {
        let Some(ix) = self.feed_ix(feed) else { return Vec::new() };
        let offers = self.feed(ix).into_iter().flat_map(|feed| &feed.offers);
        let open = offers.filter(|(_, offer)| offer.active).filter_map(|(reference, offer)| {
            let event = self.event(offer.event)?;
            let slots =
                event.slots.iter().filter(|(_, slot)| slot.feed == ix && slot.open.is_some());
            Some(OpenOffer {
                reference: reference.clone(),
                sport: event.sport,
                commence_time: offer.commence_time,
                markets: slots
                    .map(|(key, slot)| (key.bookmaker, key.market, slot.group.clone()))
                    .collect(),
            })
        });
        open.collect()
    }

    /// The event that a ref is listed for.
    fn stands_for(&self, feed: &str, reference: &str) -> Option<EventId> {
        let offer = self.feed(self.feed_ix(feed)?)?.offer(reference)?;
        offer.active.then_some(offer.event)
    }

    /// Carries out an operation; the caller logs the changes, in order.
    ///
    /// # Errors
    /// It cannot be done; the book is unchanged.
    pub fn operate(
        &mut self,
        operation: &Operation,
        now: Timestamp,
    ) -> Result<Vec<Change>, NotDone> {
        let mut changes = self.decide_operation(operation)?;
        for change in &changes {
            self.absorb(change, now);
        }
        let settled = self.settle_taught(&changes, now);
        changes.extend(settled);
        Ok(changes)
    }

    /// Changes due to the time alone: events and sources that expire, a bounded number at a time.
    pub fn overdue(&self, now: Timestamp, lifetimes: Lifetimes) -> Vec<Change> {
        let past = |since: Timestamp, stay: Duration| now.since(since) >= stay && now > since;
        let mut overdue: Vec<EventId> = self
            .events
            .values()
            .filter(|event| {
                if event.is_final() {
                    let finished_at = event.finished_at.unwrap_or(event.score_changed);
                    past(finished_at, lifetimes.final_retention)
                } else if event.is_listed() {
                    past(event.expected(), lifetimes.forget_after)
                } else {
                    past(event.mentioned_at, lifetimes.final_retention)
                }
            })
            .map(|event| event.id)
            .collect();
        // The map's order is random; the log's should not be.
        overdue.sort_unstable();
        overdue.truncate(EXPIRED_AT_ONCE_MAX);
        let mut changes: Vec<Change> =
            overdue.into_iter().map(|event| Change::Expired { event }).collect();
        let mut silent: BTreeSet<(SportId, BookmakerId)> = self
            .sources
            .iter()
            .filter(|(_, source)| past(source.read_at, lifetimes.forget_after))
            .map(|(key, _)| *key)
            .collect();
        self.retain_without_prices(&mut silent);
        changes.extend(silent.into_iter().map(|(sport, bookmaker)| Change::SourceForgotten {
            bookmaker: self.catalogue.bookmaker(bookmaker).key.clone(),
            sport: self.catalogue.sport(sport).key.clone(),
        }));
        changes
    }

    /// Removes the sources that have prices, visiting each event at most once.
    fn retain_without_prices(&self, sources: &mut BTreeSet<(SportId, BookmakerId)>) {
        for event in self.events.values() {
            if sources.is_empty() {
                return;
            }
            for (key, slot) in &event.slots {
                if slot.open.is_some() {
                    sources.remove(&(event.sport, key.bookmaker));
                }
            }
        }
    }

    /// Time at which the prices in a slot were last confirmed (D28).
    pub(crate) fn last_update(&self, sport: SportId, key: &SlotKey, slot: &Slot) -> Timestamp {
        slot.confirmed().last_update(self.beat_at(sport, key.bookmaker))
    }

    /// The newest heartbeat of a source.
    pub fn beat_at(&self, sport: SportId, bookmaker: BookmakerId) -> Timestamp {
        self.sources.get(&(sport, bookmaker)).unwrap_or(&Source::NEVER).beat_at
    }

    fn source_key(&self, sport: &str, bookmaker: &str) -> Option<(SportId, BookmakerId)> {
        Some((self.catalogue.sport_id(sport)?, self.catalogue.bookmaker_id(bookmaker)?))
    }

    pub(crate) fn feed_ix(&self, name: &str) -> Option<FeedIx> {
        self.feeds_by_name.get(name).copied()
    }

    /// The names of feeds, in the order of their numbers.
    pub(crate) fn feed_names(&self) -> impl Iterator<Item = &str> {
        self.feeds.iter().map(|feed| &*feed.name)
    }

    pub(crate) fn feed(&self, ix: FeedIx) -> Option<&Feed> {
        self.feeds.get(usize::try_from(ix.0).ok()?)
    }

    fn feed_mut(&mut self, ix: FeedIx) -> Option<&mut Feed> {
        self.feeds.get_mut(usize::try_from(ix.0).ok()?)
    }

    fn intern_feed(&mut self, name: &str) -> FeedIx {
        self.feed_ix(name).unwrap_or_else(|| self.add_feed(Feed::new(name.into())))
    }

    fn add_feed(&mut self, feed: Feed) -> FeedIx {
        let ix = FeedIx(u32::try_from(self.feeds.len()).unwrap_or(u32::MAX));
        self.feeds_by_name.insert(feed.name.clone(), ix);
        self.feeds.push(feed);
        ix
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

//! Applying changes: the only code that alters the book, the same for what is new and for what is read back.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use domain::message::Fixture;
use domain::score::Status;
use domain::{BookmakerId, EventId, RecordId, SportId, Timestamp};

use crate::book::event::{Event, Field, Outcome, Record};
use crate::book::{Book, FeedIx, Offer, Slot, SlotKey};
use crate::change::{Change, Listed, MarketKey, Quoted, Reported};
use crate::freshness::Source;
use crate::matching::{Index, Participants};

impl Book {
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
        field: Field::default(),
        listed_by: Vec::new(),
        first_known: listed.ts,
        mentioned_at: at,
        score: domain::Score::none_yet(),
        score_ts: None,
        score_changed: listed.ts,
        slots: BTreeMap::new(),
        texts: OnceLock::new(),
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

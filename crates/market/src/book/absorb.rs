//! Applies changes: the only code that alters the book, the same for new changes and for those read back.

use std::sync::Arc;

use domain::{BookmakerId, EventId, RecordId, Timestamp};

use crate::book::decide::ListingFacts;
use crate::book::event::{Event, Outcome, Record};
use crate::book::identity_memory::turned;
use crate::book::{Book, FeedIx, Offer, Placed, Slot, SlotKey};
use crate::change::{By, Change, Joined, Listed, MarketKey, Quoted, Reported};
use crate::freshness::Source;
use crate::matching::{Alias, Contest, Likeness, NameSignature, same_names};

impl Book {
    /// Applies a change that was accepted at `at`. If one of its keys has left the catalogue since, the change has no
    /// effect: it could not be shown.
    pub fn absorb(&mut self, change: &Change, at: Timestamp) {
        match change {
            Change::Founded { ids } => {
                let (catalogue, lexicon) = (Arc::clone(&self.catalogue), Arc::clone(&self.lexicon));
                let limits = self.limits;
                *self = Self::with_lexicon(catalogue, lexicon, *ids);
                self.limits = limits;
            }
            Change::Listed(listed) => self.absorb_listed(listed, None, at),
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
                    self.quoted_by.remove(&key);
                    self.paces.remove(&key);
                }
            }
            Change::Cut { .. } | Change::Unlogged { .. } => {}
            Change::Configured(configured) => self.configured = Some(configured.clone()),
            Change::Paced { bookmaker, sport, fresh_for_s } => {
                match (self.source_key(sport, bookmaker), *fresh_for_s) {
                    (Some(key), 0) => drop(self.paces.remove(&key)),
                    (Some(key), pace) => drop(self.paces.insert(key, pace)),
                    (None, _) => {}
                }
            }
            Change::Joined(joined) => self.absorb_joined(joined),
            Change::Merged { elder, younger, swapped, by } => {
                self.absorb_merged((*elder, *younger), *swapped, *by, at);
            }
            Change::Split { event, feed, reference, into } => {
                self.absorb_split(*event, (feed, reference), *into, at);
            }
            Change::Doubted { one, other, doubt, evidence } => {
                let known = self.events.contains_key(one) && self.events.contains_key(other);
                if known && one != other {
                    self.memory.doubts.insert((*one, *other), (*doubt, *evidence));
                }
            }
            Change::Cleared { one, other } => {
                self.memory.doubts.remove((*one, *other));
            }
            Change::Parted { one, other } => {
                self.memory.doubts.remove((*one, *other));
                self.memory.part(*one, *other);
            }
            Change::Taught { alias, by } => self.absorb_taught(alias, *by),
            Change::Untaught { alias } => self.memory.aliases.forget(alias),
            Change::Dropped { feed } => self.absorb_dropped(feed, at),
        }
    }

    fn absorb_taught(&mut self, alias: &Alias, by: By) {
        self.memory.aliases.teach(alias);
        // Index the events by the meaning of their names, too.
        for event in self.named(alias, by) {
            self.reindex(event);
        }
    }

    fn absorb_joined(&mut self, joined: &Joined) {
        let Some(feed) = self.feed_ix(&joined.feed).and_then(|feed| self.feed_mut(feed)) else {
            return;
        };
        if let Some(offer) = feed.offers.get_mut(&joined.reference) {
            offer.placed = Placed::Matched {
                feed: joined.with_feed.clone(),
                reference: joined.with_reference.clone(),
                evidence: joined.evidence,
            };
        }
    }

    /// `facts` are the intermediate results of the decision, if it was made just now.
    pub(super) fn absorb_listed(
        &mut self,
        listed: &Listed,
        facts: Option<ListingFacts>,
        at: Timestamp,
    ) {
        let is_new = !self.events.contains_key(&listed.event);
        // Counted even if the sport is gone: an id is never given twice.
        self.events_made += u64::from(is_new);
        let Some(sport) = self.catalogue.sport_id(&listed.sport) else {
            return;
        };
        let feed = self.intern_feed(&listed.feed);
        self.leave_former_event(feed, &listed.reference, listed.event, at);
        if is_new {
            let said = (listed.competition.clone(), listed.commence_time, listed.fixture.clone());
            let mut event = Event::found(listed.event, sport, said, listed.ts, at);
            event.born = self.events_made;
            self.events.insert(listed.event, Box::new(event));
        }
        let offers = self.feed(feed).map(|feed| &feed.offers);
        let before = offers.and_then(|offers| offers.get(&listed.reference));
        let stays = before.filter(|before| before.event == listed.event);
        let (contest, keys) = match facts {
            Some(facts) => (facts.contest, facts.keys),
            None => (Contest::parse(&self.lexicon, sport, &listed.fixture), None),
        };
        let offer = Box::new(Offer {
            event: listed.event,
            swapped: listed.swapped,
            active: true,
            ts: listed.ts,
            competition: listed.competition.clone(),
            commence_time: listed.commence_time,
            fixture: listed.fixture.clone(),
            signature: NameSignature::of(&contest),
            contest,
            placed: stays.map_or(Placed::First, |before| before.placed.clone()),
            came_from: stays.and_then(|before| before.came_from),
        });
        let others = stays.is_some_and(|before| are_others(before, &offer));
        let before = before.map_or(0, |before| before.weight(&listed.reference));
        self.count_offer(feed, before, offer.weight(&listed.reference));
        self.calendar.insert((feed, &listed.reference), &offer.competition, offer.commence_time);
        let (mut joins, mut repriced) = (false, false);
        if let Some(event) = self.events.get_mut(&listed.event) {
            event.mentioned_at = at;
            let lister = (feed, listed.reference.clone());
            event.withdrawn.remove(&lister);
            joins = event.is_listed() && !event.listed_by.contains(&lister);
            if !event.listed_by.contains(&lister) {
                event.listed_by.push(lister.clone());
                event.touch();
            }
            if event.listed_by.first() == Some(&lister) {
                repriced = follow_offer(event, &offer) == Names::Differ || others;
                if others {
                    // A different participant: no price so far is about the new one.
                    event.close_slots(|_| true);
                }
            }
        }
        if let Some(feed) = self.feed_mut(feed) {
            feed.offers.insert(listed.reference.clone(), offer);
        }
        if repriced {
            self.recount_all(listed.event);
        } else {
            self.recount(listed.event);
        }
        if joins || is_new {
            self.index_also(listed.event, (feed, &listed.reference), keys);
        } else {
            self.reindex(listed.event);
        }
    }

    /// If a ref meant another event, removes its listing and prices there.
    fn leave_former_event(
        &mut self,
        feed: FeedIx,
        reference: &str,
        now_at: EventId,
        at: Timestamp,
    ) {
        let former = self.feed(feed).and_then(|feed| feed.offers.get(reference));
        let Some(offer) = former else { return };
        let (former, start, competition) =
            (offer.event, offer.commence_time, offer.competition.clone());
        self.calendar.remove((feed, reference), &competition, start);
        if former != now_at {
            self.unlist(former, feed, reference, at);
            if let Some(former) = self.events.get_mut(&former) {
                former.withdrawn.remove(&(feed, reference.into()));
            }
        }
    }

    /// Removes the ref's listing and its feed's prices; the eldest remaining feed becomes the leading one.
    pub(super) fn unlist(&mut self, event: EventId, feed: FeedIx, reference: &str, at: Timestamp) {
        let Some(event) = self.events.get_mut(&event) else {
            return;
        };
        let listing = |(lister, held): &(FeedIx, Box<str>)| *lister == feed && &**held == reference;
        // The feed may have withdrawn this ref before and now list the event under another.
        if !event.listed_by.iter().any(listing) {
            return;
        }
        event.listed_by.retain(|lister| !listing(lister));
        event.mentioned_at = at;
        if !event.is_listed_by(feed) {
            event.close_slots(|slot| slot.feed == feed);
        }
        let leader = event.listed_by.first().and_then(|(leader, reference)| {
            self.feeds.get(usize::try_from(leader.0).ok()?)?.offers.get(reference)
        });
        if let Some(leader) = leader {
            follow_offer(event, leader);
        }
        let id = event.id;
        self.recount_all(id);
        self.reindex(id);
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
        let key = (event.sport, bookmaker);
        let source = self.sources.entry(key).or_insert(Source::NEVER);
        source.read(quoted.ts, at);
        self.quoted_by.entry(key).or_default().insert(feed);
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
            // The event's list of markets may change.
            event.touch();
        }
        let slot = Slot {
            group: quoted.market.group.clone(),
            feed,
            ts: quoted.ts,
            beat_seen: source.beat_at,
            open,
            weight: 0,
        };
        self.put_slot(quoted.event, key, slot);
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
            // An earlier heartbeat still confirms these prices, even if this read is older than it.
            slot.ts = ts;
        }
    }

    fn absorb_scored(&mut self, event: EventId, report: &Reported, ts: Timestamp, at: Timestamp) {
        let Some(event) = self.events.get_mut(&event) else {
            return;
        };
        event.mentioned_at = at;
        let score = event.score_from(report);
        if score != *event.score {
            event.score = Arc::new(score);
            event.score_changed = ts;
            event.finished_at = event.is_final().then_some(at);
        }
        event.score_ts = Some(ts);
        let id = event.id;
        if event.is_final() {
            event.close_slots(|_| true);
            self.recount_all(id);
        } else {
            event.touch();
            self.recount(id);
        }
    }

    fn absorb_withdrawn(&mut self, feed: &str, reference: &str, ts: Timestamp, at: Timestamp) {
        let Some(feed) = self.feed_ix(feed) else {
            return;
        };
        let offer = self.feed_mut(feed).and_then(|feed| feed.offers.get_mut(reference));
        if let Some(offer) = offer {
            offer.active = false;
            offer.ts = ts;
            let (event, start) = (offer.event, offer.commence_time);
            let competition = offer.competition.clone();
            self.calendar.remove((feed, reference), &competition, start);
            self.unlist(event, feed, reference, at);
            if let Some(event) = self.events.get_mut(&event) {
                event.withdrawn.insert((feed, reference.into()));
            }
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

    /// The cost depends only on the event, not on the size of the book.
    fn absorb_expired(&mut self, id: EventId) {
        let Some(mut gone) = self.events.remove(&id) else {
            return;
        };
        self.touch(id);
        self.uncount(std::mem::take(&mut gone.counted));
        self.index.remove(id);
        self.memory.drop_event(id);
        for (feed, reference) in gone.listed_by.iter().chain(&gone.withdrawn) {
            self.forget_offer(*feed, reference, id);
        }
    }

    fn forget_offer(&mut self, feed: FeedIx, reference: &str, event: EventId) {
        let Some(held) = self.feed_mut(feed) else { return };
        if held.offer(reference).is_none_or(|offer| offer.event != event) {
            return;
        }
        if let Some(offer) = held.offers.remove(reference) {
            if held.offers.capacity() > 4 * held.offers.len() + 64 {
                held.offers.shrink_to(2 * held.offers.len());
            }
            self.calendar.remove((feed, reference), &offer.competition, offer.commence_time);
            self.count_offer(feed, offer.weight(reference), 0);
        }
    }

    /// Removes all listings and prices of a feed, and the events that only it lists.
    fn absorb_dropped(&mut self, name: &str, at: Timestamp) {
        self.memory.aliases.forget_feed(name);
        let Some(feed) = self.feed_ix(name) else { return };
        self.quoted_by.retain(|_, feeds| {
            feeds.remove(&feed);
            !feeds.is_empty()
        });
        let ids: Vec<EventId> =
            self.events.values().filter(|e| e.knows(feed)).map(|e| e.id).collect();
        for id in ids {
            let Some(event) = self.events.get_mut(&id) else { continue };
            let is_feeds = |(lister, _): &(FeedIx, Box<str>)| *lister == feed;
            let others = event.listed_by.iter().any(|lister| !is_feeds(lister));
            let owned = !event.is_listed() && event.owner == Some(feed);
            if (event.is_listed() && !others) || owned {
                self.absorb_expired(id);
                continue;
            }
            let refs = event.listed_by.iter().chain(&event.withdrawn).filter(|held| is_feeds(held));
            let refs: Vec<Box<str>> = refs.map(|(_, reference)| reference.clone()).collect();
            event.slots.retain(|_, slot| slot.feed != feed);
            event.withdrawn.retain(|held| !is_feeds(held));
            event.touch();
            for reference in &refs {
                self.unlist(id, feed, reference, at);
                self.forget_offer(feed, reference, id);
            }
            self.recount_all(id);
        }
    }
}

fn slot_key(event: EventId, bookmaker: BookmakerId, key: &MarketKey) -> SlotKey {
    let record = RecordId::new(event, &key.bookmaker, key.market, key.group.as_deref());
    SlotKey { bookmaker, market: key.market, record }
}

/// True if a corrected listing has a different participant.
fn are_others(before: &Offer, now: &Offer) -> bool {
    let sides = || before.contest.compare(&now.contest).sides;
    !same_names(&before.fixture, &now.fixture) && sides().iter().any(|side| *side < Likeness::Kin)
}

/// Whether the names of an event have changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Same,
    Differ,
}

/// Copies the leading feed's listing to the event, with the event's sides.
fn follow_offer(event: &mut Event, offer: &Offer) -> Names {
    let fixture = if offer.swapped { turned(&offer.fixture) } else { offer.fixture.clone() };
    let names = if event.fixture == fixture { Names::Same } else { Names::Differ };
    if names == Names::Same
        && event.commence_time == offer.commence_time
        && event.competition == offer.competition
    {
        return names;
    }
    if names == Names::Differ {
        event.touch_records();
    }
    event.fixture = fixture;
    event.commence_time = offer.commence_time;
    event.competition = offer.competition.clone();
    event.touch();
    names
}

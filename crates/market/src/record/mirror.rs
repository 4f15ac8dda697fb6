//! The book that a replay of the recording so far would show, and the messages that make it show the same as another
//! book.
//!
//! A message is emitted only if it changes something here. No message sets back a time: if the book was founded again,
//! an event here can have a later score or price than there. It is then renewed: renamed, removed, and listed again
//! under another ref. An event that has expired there is still here, unlisted, and is renamed when another one with
//! the same participants arrives.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, ScoreBody,
};
use domain::score::Score;
use domain::{BookmakerId, Catalogue, EventId, Side, SportId, Timestamp};

use crate::book::{
    Book, Event, Limits, Offer, Outcome, OutcomeName, Record, Slot, SlotKey, slot_key_of,
};
use crate::change::{Change, Ids, MarketKey};
use crate::freshness::Source;
use crate::record::Recorded;

/// The only feed of a replay.
const FEED: &str = "recording";
/// Maximum number of former events with the same names that are put away before one is listed.
const LEFT_MAX: u32 = 100;

#[derive(Debug)]
pub(super) struct Mirror {
    book: Book,
    /// Number of times that each event was renewed.
    renewals: HashMap<EventId, u32>,
    /// Events that renewing did not make equal.
    inexact: HashSet<EventId>,
    said: Vec<Recorded>,
    /// Seconds for which reads keep sources fresh.
    paces: HashMap<(SportId, BookmakerId), u32>,
    /// Time when the current change was accepted, and its time according to the source.
    at: Timestamp,
    ts: Timestamp,
}

impl Mirror {
    pub(super) fn new(catalogue: &Arc<Catalogue>, at: Timestamp) -> Self {
        // These ids are never shown.
        let mut book = Book::new(Arc::clone(catalogue), Ids::Minted { salt: 0 });
        book.set_limits(Limits::NONE);
        Self {
            book,
            renewals: HashMap::new(),
            inexact: HashSet::new(),
            said: Vec::new(),
            paces: HashMap::new(),
            at,
            ts: at,
        }
    }

    pub(super) fn arrive(&mut self, at: Timestamp, ts: Timestamp) {
        // A clock that was set back must not make the times of lines decrease.
        (self.at, self.ts) = (at.max(self.at), ts);
    }

    pub(super) fn take_said(&mut self) -> Vec<Recorded> {
        std::mem::take(&mut self.said)
    }

    pub(super) fn inexact_events(&self) -> usize {
        self.inexact.len()
    }

    /// Emits the complete state of a book.
    pub(super) fn begin(&mut self, theirs: &Book) {
        self.note_paces(theirs);
        let events = listed(theirs);
        for event in &events {
            self.tell_listing(event);
            // Before a heartbeat, send the prices that it confirms.
            for (key, slot) in &event.slots {
                if theirs.last_update(event.sport, key, slot) != slot.ts {
                    self.tell_odds(event, key, slot, slot.ts);
                }
            }
        }
        self.tell_beats(theirs);
        for event in events {
            self.follow_event(theirs, event.id);
        }
    }

    /// Emits everything that may have changed in a book.
    pub(super) fn follow(&mut self, theirs: &Book) {
        if self.book.events().next().is_none() {
            self.begin(theirs);
            return;
        }
        let mut gone = self.listed_ids();
        gone.retain(|id| theirs.event(*id).is_none_or(|event| !event.is_listed()));
        for id in gone {
            self.tell_removal(id);
        }
        // Heartbeats first, since they confirm at once prices that would otherwise be written one by one.
        self.tell_beats(theirs);
        for event in listed(theirs) {
            self.follow_event(theirs, event.id);
        }
    }

    pub(super) fn follow_event(&mut self, theirs: &Book, id: EventId) {
        let Some(event) = theirs.event(id).filter(|event| event.is_listed()) else {
            self.tell_removal(id);
            return;
        };
        self.tell(theirs, event);
        if self.inexact.contains(&id) {
            return;
        }
        if !self.shows(theirs, event) {
            self.renew(id);
            self.tell(theirs, event);
        }
        if !self.shows(theirs, event) {
            self.inexact.insert(id);
        }
    }

    /// Follows one market, the subject of nearly every change.
    pub(super) fn follow_market(&mut self, theirs: &Book, id: EventId, market: &MarketKey) {
        let Some(event) = theirs.event(id).filter(|event| event.is_listed()) else { return };
        let catalogue = theirs.catalogue();
        let Some(bookmaker) = catalogue.bookmaker_id(&market.bookmaker) else { return };
        let key = slot_key_of(id, catalogue, bookmaker, market.market, market.group.as_deref());
        let Some(slot) = event.slots.get(&key) else { return };
        self.tell_slot(theirs, event, &key, slot);
        let shown =
            self.event(id).is_some_and(|mine| self.shows_slot(theirs, event, &key, slot, mine));
        if !shown {
            self.follow_event(theirs, id);
        }
    }

    pub(super) fn follow_sources(&mut self, theirs: &Book) {
        let ahead = self.tell_beats(theirs);
        if ahead.is_empty() {
            return;
        }
        // A heartbeat cannot be undone; prices that it must not confirm are written one by one.
        for event in listed(theirs) {
            if ahead.contains(&event.sport) {
                self.follow_event(theirs, event.id);
            }
        }
    }

    /// Emits the newest heartbeats, and returns the sports in which a heartbeat here is newer than theirs.
    fn tell_beats(&mut self, theirs: &Book) -> HashSet<SportId> {
        let mut ahead = HashSet::new();
        for (sport, bookmaker, source) in theirs.sources() {
            let mine = self.book.source(sport, bookmaker).unwrap_or(Source::NEVER).beat_at;
            if source.beat_at > mine {
                self.say(source.beat_at, Body::Heartbeat { bookmaker, sport: Some(sport) });
            } else if source.beat_at < mine {
                ahead.insert(sport);
            }
        }
        ahead
    }

    /// Emits everything about an event that is not shown yet.
    fn tell(&mut self, theirs: &Book, event: &Event) {
        self.tell_listing(event);
        self.tell_score(event);
        for (key, slot) in &event.slots {
            self.tell_slot(theirs, event, key, slot);
        }
        for (market, ts) in self.surplus(event) {
            self.say(ts, Body::Odds(market));
        }
    }

    fn tell_listing(&mut self, event: &Event) {
        if self.event(event.id).is_some_and(|mine| shows_face(event, mine)) {
            return;
        }
        let listing = listing(event, event.fixture.clone());
        if let Some(offer) = self.offer(&self.reference(event.id)) {
            let ts = offer.ts.max(self.ts);
            // A ref that meant another event before the book was founded again would leave that event behind.
            let stays = self.taken_for(event.id, &listing, ts) == Some(offer.event);
            if stays {
                self.say(ts, Body::Event { reference: self.reference(event.id), listing });
                return;
            }
            self.renew(event.id);
        }
        // The score time of an event without any score is the time of its listing.
        let is_unscored = *event.score == Score::none_yet();
        let ts = if is_unscored { event.score_changed } else { event.first_known };
        // A new ref must create a new event, whatever former events exist: a service may take it for one of those,
        // depending on its own ids.
        for _ in 0..LEFT_MAX {
            let taken_for = self.taken_for(event.id, &listing, ts);
            let Some(left) = taken_for.and_then(|left| self.known_as(left)) else { break };
            self.put_away(&left);
        }
        self.say(ts, Body::Event { reference: self.reference(event.id), listing });
    }

    fn tell_score(&mut self, event: &Event) {
        let Some(mine) = self.event(event.id).filter(|mine| !shows_score(event, mine)) else {
            return;
        };
        let score = &event.score;
        let goes_back = mine.score.may_become(score).is_err();
        let name = |side: Side| match side {
            Side::Home => event.outcome_text(OutcomeName::Home),
            Side::Away => event.outcome_text(OutcomeName::Away),
        };
        let body = ScoreBody {
            reference: self.reference(event.id),
            status: score.status,
            home: score.home,
            away: score.away,
            periods: score.periods.clone(),
            winner: score.winner.map(|side| name(side).into()),
            leaders: leaders(event).map(|(name, rounds)| (name.into(), rounds.to_vec())).collect(),
            correction: if goes_back { Correction::Yes } else { Correction::No },
        };
        self.say(event.score_changed, Body::Score(body));
    }

    fn tell_slot(&mut self, theirs: &Book, event: &Event, key: &SlotKey, slot: &Slot) {
        let Some(mine) = self.event(event.id) else { return };
        if !self.shows_slot(theirs, event, key, slot, mine) {
            let held = mine.slots.get(&self.key(mine, key, slot)).map(|mine| mine.ts);
            let ts = match &slot.open {
                Some(_) => theirs.last_update(event.sport, key, slot),
                // Prices that left with an event or a feed have no time of their own.
                None => held.unwrap_or(slot.ts).max(slot.ts),
            };
            self.tell_odds(event, key, slot, ts);
        } else if slot.open.is_none() {
            // A new read of a market without prices keeps its source fresh.
            let read_at = |book: &Book| book.source(event.sport, key.bookmaker).map(|s| s.read_at);
            let newest = read_at(theirs);
            if newest == Some(slot.ts) && newest > read_at(&self.book) {
                self.tell_odds(event, key, slot, slot.ts);
            }
        }
    }

    fn tell_odds(&mut self, event: &Event, key: &SlotKey, slot: &Slot, ts: Timestamp) {
        let outcomes = slot.open.as_ref().map_or(&[][..], |record| &record.outcomes);
        let outcome = |outcome: &Outcome| OfferedOutcome {
            name: event.outcome_text(outcome.name).into(),
            quote: outcome.quote,
            point: outcome.point,
        };
        let body = OddsBody {
            reference: self.reference(event.id),
            bookmaker: key.bookmaker,
            market: key.market,
            group: slot.group.clone(),
            outcomes: outcomes.iter().map(outcome).collect(),
        };
        self.say(ts, Body::Odds(body));
    }

    fn tell_removal(&mut self, id: EventId) {
        let reference = self.reference(id);
        if let Some(offer) = self.offer(&reference).filter(|offer| offer.active) {
            let ts = offer.ts.max(self.ts);
            self.say(ts, Body::Remove { reference });
        }
    }

    /// Puts the event away, so that the next listing creates a new one.
    fn renew(&mut self, id: EventId) {
        self.put_away(&self.reference(id));
        *self.renewals.entry(id).or_default() += 1;
    }

    /// Leaves an event unlisted, under names that nobody has, so that no listing is taken for it.
    fn put_away(&mut self, reference: &str) {
        let Some(offer) = self.offer(reference) else { return };
        let Some(event) = self.book.event(offer.event) else { return };
        let ts = offer.ts.max(self.ts);
        let own = listing(event, event.fixture.clone());
        let replaced: Box<str> = format!("{reference} replaced").into();
        // One side after the other: a ref without any of its former participants is another event.
        let (half, nobody) = match &event.fixture {
            Fixture::HeadToHead { away, .. } => (
                Fixture::HeadToHead { home: reference.into(), away: away.clone() },
                Fixture::HeadToHead { home: reference.into(), away: replaced },
            ),
            Fixture::Field { title } => (
                Fixture::Field { title: format!("{title} {reference}").into() },
                Fixture::Field { title: replaced },
            ),
        };
        let (half, nobodys) = (listing(event, half), listing(event, nobody));
        // Only a feed that lists an event may rename it.
        for listing in [own, half, nobodys] {
            self.say(ts, Body::Event { reference: reference.into(), listing });
        }
        self.say(ts, Body::Remove { reference: reference.into() });
    }

    /// Emits a message if it changes anything.
    fn say(&mut self, ts: Timestamp, body: Body) {
        let fresh_for_s = self.pace_of(&body);
        let message = FeedMessage { ts: Some(ts), fresh_for_s, body };
        // A replay is later than all its messages.
        let decided = self.book.apply(FEED, &message, self.at.max(ts));
        if decided.is_ok_and(|decision| decision.change.is_some()) {
            self.said.push(Recorded { at: self.at, message });
        }
    }

    /// Seconds for which a message keeps its source fresh.
    fn pace_of(&self, body: &Body) -> Option<u32> {
        let (sport, bookmaker) = match body {
            Body::Odds(odds) => {
                let event = self.offer(&odds.reference)?.event;
                (self.book.event(event)?.sport, odds.bookmaker)
            }
            Body::Heartbeat { bookmaker, sport } => ((*sport)?, *bookmaker),
            Body::Event { .. } | Body::Score(_) | Body::Remove { .. } => return None,
        };
        self.paces.get(&(sport, bookmaker)).copied().filter(|pace| *pace > 0)
    }

    /// Notes the times for which reads keep sources fresh.
    pub(super) fn note_paces(&mut self, theirs: &Book) {
        let paces = theirs.sources().map(|(sport, bookmaker, _)| (sport, bookmaker));
        self.paces = paces.map(|key| (key, theirs.pace(key.0, key.1))).collect();
    }

    pub(super) fn note_pace(&mut self, sport: &str, bookmaker: &str, fresh_for_s: u32) {
        let catalogue = self.book.catalogue();
        let key = catalogue.sport_id(sport).zip(catalogue.bookmaker_id(bookmaker));
        self.paces.extend(key.map(|key| (key, fresh_for_s)));
    }

    fn reference(&self, id: EventId) -> Box<str> {
        match self.renewals.get(&id) {
            None => id.to_string().into(),
            Some(renewals) => format!("{id}.{}", renewals + 1).into(),
        }
    }

    fn offer(&self, reference: &str) -> Option<&Offer> {
        self.book.feed(self.book.feed_ix(FEED)?)?.offer(reference)
    }

    /// The ref under which an event here was listed; each has had one.
    fn known_as(&self, event: EventId) -> Option<Box<str>> {
        let feed = self.book.feed(self.book.feed_ix(FEED)?)?;
        self.book.event(event)?;
        let known_as = feed.offers.iter().find(|(_, offer)| offer.event == event)?;
        Some(known_as.0.clone())
    }

    /// The event here that a listing of theirs would be taken for.
    fn taken_for(&self, id: EventId, listing: &Listing, ts: Timestamp) -> Option<EventId> {
        let body = Body::Event { reference: self.reference(id), listing: listing.clone() };
        let message = FeedMessage { ts: Some(ts), fresh_for_s: None, body };
        let decision = self.book.decide(FEED, &message, self.at.max(ts)).ok()?;
        let Some(Change::Listed(listed)) = decision.change else { return None };
        Some(listed.event)
    }

    /// The event here, if it is listed.
    fn event(&self, id: EventId) -> Option<&Event> {
        let offer = self.offer(&self.reference(id)).filter(|offer| offer.active)?;
        self.book.event(offer.event)
    }

    /// The ids, there, of the events that are listed here.
    fn listed_ids(&self) -> Vec<EventId> {
        let references = self.book.events().flat_map(|event| &event.listed_by);
        let id = |reference: &str| EventId::parse(reference.split('.').next()?);
        let mut ids: Vec<EventId> = references.filter_map(|(_, held)| id(held)).collect();
        ids.sort_unstable();
        ids
    }

    /// The key here of a market of their event.
    fn key(&self, mine: &Event, key: &SlotKey, slot: &Slot) -> SlotKey {
        let catalogue = self.book.catalogue();
        slot_key_of(mine.id, catalogue, key.bookmaker, key.market, slot.group.as_deref())
    }

    /// Markets with prices here that their event does not have, with empty prices.
    fn surplus(&self, event: &Event) -> Vec<(OddsBody, Timestamp)> {
        let Some(mine) = self.event(event.id) else { return Vec::new() };
        let catalogue = self.book.catalogue();
        let unheard_of = |(key, slot): &(&SlotKey, &Slot)| {
            let group = slot.group.as_deref();
            let theirs = slot_key_of(event.id, catalogue, key.bookmaker, key.market, group);
            slot.open.is_some() && !event.slots.contains_key(&theirs)
        };
        let closed = |(key, slot): (&SlotKey, &Slot)| {
            let body = OddsBody {
                reference: self.reference(event.id),
                bookmaker: key.bookmaker,
                market: key.market,
                group: slot.group.clone(),
                outcomes: Vec::new(),
            };
            (body, slot.ts)
        };
        mine.slots.iter().filter(unheard_of).map(closed).collect()
    }

    fn shows(&self, theirs: &Book, event: &Event) -> bool {
        self.event(event.id).is_some_and(|mine| {
            shows_face(event, mine)
                && shows_score(event, mine)
                && self.surplus(event).is_empty()
                && event.slots.iter().all(|(k, slot)| self.shows_slot(theirs, event, k, slot, mine))
        })
    }

    fn shows_slot(
        &self,
        theirs: &Book,
        event: &Event,
        key: &SlotKey,
        slot: &Slot,
        mine: &Event,
    ) -> bool {
        let my_key = self.key(mine, key, slot);
        let held = mine.slots.get(&my_key).and_then(|held| Some((held, held.open.as_ref()?)));
        match (&slot.open, held) {
            (None, None) => true,
            (Some(record), Some((held, my_record))) => {
                theirs.last_update(event.sport, key, slot)
                    == self.book.last_update(mine.sport, &my_key, held)
                    && shows_record(event, record, mine, my_record)
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// The listed events, sorted, since a map's order is random.
fn listed(book: &Book) -> Vec<&Event> {
    let mut events: Vec<&Event> = book.events().filter(|event| event.is_listed()).collect();
    events.sort_unstable_by_key(|event| (event.commence_time, event.id));
    events
}

fn listing(event: &Event, fixture: Fixture) -> Listing {
    Listing {
        sport: event.sport,
        competition: event.competition.clone(),
        commence_time: event.commence_time,
        fixture,
    }
}

fn shows_face(event: &Event, mine: &Event) -> bool {
    event.sport == mine.sport
        && event.competition == mine.competition
        && event.commence_time == mine.commence_time
        && event.fixture == mine.fixture
}

fn shows_score(event: &Event, mine: &Event) -> bool {
    let fields = |score: &Score| (score.status, score.home, score.away, score.winner);
    event.score_changed == mine.score_changed
        && fields(&event.score) == fields(&mine.score)
        && event.score.periods == mine.score.periods
        && leaders(event).eq(leaders(mine))
}

fn leaders(event: &Event) -> impl Iterator<Item = (&str, &[i32])> {
    event
        .score
        .leaders
        .iter()
        .map(|leader| (event.outcome_text(OutcomeName::Entrant(leader.entrant)), &*leader.rounds))
}

fn shows_record(event: &Event, record: &Record, mine: &Event, my_record: &Record) -> bool {
    let outcome = |outcome: &Outcome| (outcome.quote, outcome.point);
    record.outcomes.len() == my_record.outcomes.len()
        && record.outcomes.iter().zip(&*my_record.outcomes).all(|(one, other)| {
            outcome(one) == outcome(other)
                && event.outcome_text(one.name) == mine.outcome_text(other.name)
        })
}

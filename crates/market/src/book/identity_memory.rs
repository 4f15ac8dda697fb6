//! Identities that the book remembers in addition to the listings: merged ids, doubts, operators' decisions, aliases.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use domain::message::Fixture;
use domain::{Catalogue, EventId, RecordId, Timestamp};

use crate::book::doubts::Doubts;
use crate::book::event::{Event, Outcome, OutcomeName, Record, Slot, SlotKey};
use crate::book::{Book, FeedIx, Placed};
use crate::change::By;
use crate::matching::{Aliases, Hashed, NameSignature, Owner, QuickCheck};

/// Identities that are not part of an event.
#[derive(Debug, Default)]
pub(crate) struct IdentityMemory {
    /// Merged ids with the event they now mean, which is never a merged one itself.
    pub(crate) merged: BTreeMap<EventId, EventId>,
    /// The reverse of `merged`.
    stand_ins: HashMap<EventId, Vec<EventId>, BuildHasherDefault<Hashed>>,
    /// Pairs that may be one event.
    pub(crate) doubts: Doubts,
    /// Pairs that an operator declared to be different events, in both orders.
    apart: BTreeSet<(EventId, EventId)>,
    pub(crate) aliases: Aliases,
}

impl IdentityMemory {
    pub(crate) fn are_apart(&self, one: EventId, other: EventId) -> bool {
        self.apart.contains(&(one, other))
    }

    pub(super) fn part(&mut self, one: EventId, other: EventId) {
        self.apart.extend([(one, other), (other, one)]);
    }

    /// Pairs that an operator declared to be different events, each once.
    pub(super) fn parted(&self) -> impl Iterator<Item = (EventId, EventId)> {
        self.apart.iter().copied().filter(|(one, other)| one <= other)
    }

    /// The events from which an operator separated this one.
    fn parted_from(&self, id: EventId) -> Vec<EventId> {
        let (first, last) = (EventId::from_number(0), EventId::from_number(u64::MAX));
        self.apart.range((id, first)..=(id, last)).map(|(_, other)| *other).collect()
    }

    /// Makes `younger` an alias of `elder`.
    pub(super) fn stand_in(&mut self, younger: EventId, elder: EventId) {
        self.merged.insert(younger, elder);
        self.stand_ins.entry(elder).or_default().push(younger);
    }

    /// Number of further ids of an event.
    pub(super) fn stand_ins_of(&self, id: EventId) -> usize {
        self.stand_ins.get(&id).map_or(0, Vec::len)
    }

    /// Makes an id independent again; returns whether it was an alias.
    fn stand_alone(&mut self, id: EventId) -> bool {
        let Some(elder) = self.merged.remove(&id) else { return false };
        if let Some(held) = self.stand_ins.get_mut(&elder) {
            held.retain(|younger| *younger != id);
        }
        true
    }

    /// Forgets an event that was removed.
    pub(super) fn drop_event(&mut self, id: EventId) {
        for younger in self.stand_ins.remove(&id).unwrap_or_default() {
            self.merged.remove(&younger);
        }
        self.doubts.drop_event(id);
        for other in self.parted_from(id) {
            self.apart.remove(&(id, other));
            self.apart.remove(&(other, id));
        }
    }

    /// Moves everything known about the younger event to the elder.
    fn follow_merge(&mut self, elder: EventId, younger: EventId) {
        for held in self.stand_ins.remove(&younger).unwrap_or_default() {
            self.stand_in(held, elder);
        }
        self.stand_in(younger, elder);
        self.doubts.follow_merge(elder, younger);
        for other in self.parted_from(younger) {
            self.apart.remove(&(younger, other));
            self.apart.remove(&(other, younger));
            if other != elder {
                self.part(elder, other);
            }
        }
    }
}

impl Book {
    /// The event of an id: another one if the two were merged.
    pub fn resolve(&self, id: EventId) -> EventId {
        self.memory.merged.get(&id).copied().unwrap_or(id)
    }

    /// Merged ids with the event that each means.
    pub(crate) fn merged(&self) -> impl Iterator<Item = (EventId, EventId)> {
        self.memory.merged.iter().map(|(younger, elder)| (*younger, *elder))
    }

    pub(super) fn absorb_merged(
        &mut self,
        (elder, younger): (EventId, EventId),
        swapped: bool,
        by: By,
        at: Timestamp,
    ) {
        if elder == younger || !self.events.contains_key(&elder) {
            return;
        }
        let Some(mut gone) = self.events.remove(&younger) else { return };
        self.touch(younger);
        self.index.remove(younger);
        for (feed, reference) in &gone.listed_by {
            let offer = self.feed_mut(*feed).and_then(|feed| feed.offers.get_mut(reference));
            if let Some(offer) = offer {
                offer.swapped ^= swapped;
                offer.came_from.get_or_insert(younger);
                if by == By::Operator {
                    offer.placed = Placed::ByOperator;
                }
            }
        }
        if by == By::Operator {
            self.allow_doubles(elder, &gone);
        }
        // Withdrawn refs mean it, too, if they come back.
        for (feed, reference) in gone.listed_by.iter().chain(&gone.withdrawn) {
            let offer = self.feed_mut(*feed).and_then(|feed| feed.offers.get_mut(reference));
            if let Some(offer) = offer.filter(|offer| offer.event == younger) {
                offer.event = elder;
            }
        }
        self.uncount(std::mem::take(&mut gone.counted));
        self.memory.follow_merge(elder, younger);
        let catalogue = Arc::clone(&self.catalogue);
        if let Some(event) = self.events.get_mut(&elder) {
            event.take_over(*gone, swapped, &catalogue, at);
        }
        self.recount_all(elder);
        self.reindex(elder);
    }

    /// Two refs of one feed are two events, unless an operator merged them.
    fn allow_doubles(&mut self, elder: EventId, younger: &Event) {
        let listed_by = self.events.get(&elder).map(|event| event.listed_by.clone());
        let doubled =
            listed_by.into_iter().flatten().filter(|(feed, _)| younger.is_listed_by(*feed));
        for (feed, reference) in doubled {
            let offer = self.feed_mut(feed).and_then(|feed| feed.offers.get_mut(&reference));
            if let Some(offer) = offer {
                offer.placed = Placed::ByOperator;
            }
        }
    }

    pub(super) fn absorb_split(
        &mut self,
        event: EventId,
        (feed, reference): (&str, &str),
        into: EventId,
        at: Timestamp,
    ) {
        let Some(feed) = self.feed_ix(feed) else { return };
        let Some(offer) = self.feed(feed).and_then(|feed| feed.offer(reference)) else {
            return;
        };
        if offer.event != event || self.events.contains_key(&into) {
            return;
        }
        let (swapped, competition, commence_time) =
            (offer.swapped, offer.competition.clone(), offer.commence_time);
        let (fixture, ts) = (offer.fixture.clone(), offer.ts);
        // An id that comes back was counted when it was created.
        self.events_made += u64::from(!self.memory.stand_alone(into));
        let Some(from) = self.events.get_mut(&event) else { return };
        let mut parted =
            Event::found(into, from.sport, (competition, commence_time, fixture), ts, at);
        parted.born = self.events_made;
        let slots = from.give_slots(feed);
        parted.take_slots(slots, &from.field_names(), swapped, &self.catalogue);
        parted.listed_by.push((feed, reference.into()));
        self.events.insert(into, Box::new(parted));
        self.unlist(event, feed, reference, at);
        if let Some(offer) = self.feed_mut(feed).and_then(|feed| feed.offers.get_mut(reference)) {
            (offer.event, offer.swapped, offer.came_from) = (into, false, None);
            offer.placed = Placed::ByOperator;
        }
        self.memory.part(event, into);
        self.memory.doubts.remove((event, into));
        self.recount_all(event);
        self.recount_all(into);
        self.reindex(event);
        self.reindex(into);
    }

    /// Indexes an event under the words of all its listings.
    pub(super) fn reindex(&mut self, id: EventId) {
        let Some(event) = self.events.get(&id) else {
            self.index.remove(id);
            return;
        };
        let mut keys: Vec<u64> = Vec::new();
        for (feed, _, offer) in self.offers_of(event) {
            let view = self.offer_face(feed, event.sport, offer);
            keys.extend(self.index.keys(event.sport, &view.contest, view.commence_time));
        }
        if !event.is_listed() {
            let contest = self.contest_of(event);
            let meant = self.meaning("", event.sport, &contest);
            keys.extend(self.index.keys(event.sport, &meant, event.commence_time));
        }
        let (check, owner) = (self.quick_check_of(event), owner_of(event));
        self.index.set(id, check, owner, keys);
    }

    /// Also indexes an event under the words of one more listing.
    pub(super) fn index_also(
        &mut self,
        id: EventId,
        (feed, reference): (FeedIx, &str),
        keys: Option<Vec<u64>>,
    ) {
        let offer = self.feed(feed).and_then(|feed| feed.offer(reference));
        let (Some(event), Some(offer)) = (self.events.get(&id), offer) else { return };
        let keys = keys.unwrap_or_else(|| {
            let view = self.offer_face(feed, event.sport, offer);
            self.index.keys(event.sport, &view.contest, view.commence_time)
        });
        let (check, owner) = (self.quick_check_of(event), owner_of(event));
        self.index.add(id, check, owner, keys);
    }

    /// The quick check of the eldest listing, whose names and start are the event's.
    fn quick_check_of(&self, event: &Event) -> QuickCheck {
        let mut offers = self.offers_of(event);
        let eldest =
            offers.next().map(|(feed, _, offer)| self.offer_face(feed, event.sport, offer));
        // An unlisted event comes back only under the same names, which a signature cannot show.
        let signature = eldest.map_or(NameSignature::BLANK, |view| view.signature);
        QuickCheck { at: event.commence_time, signature }
    }
}

fn owner_of(event: &Event) -> Owner {
    match &*event.listed_by {
        [] => Owner::Nobody(event.owner.map(|feed| feed.0)),
        [(feed, _), rest @ ..] if rest.iter().all(|(other, _)| other == feed) => Owner::One(feed.0),
        [(feed, _), ..] => Owner::Several(feed.0),
    }
}

impl Event {
    /// Takes over the content of another event that was merged into this one.
    fn take_over(&mut self, gone: Self, swapped: bool, catalogue: &Catalogue, at: Timestamp) {
        let names = gone.field_names();
        self.take_slots(gone.slots, &names, swapped, catalogue);
        self.listed_by.extend(gone.listed_by);
        self.withdrawn.extend(gone.withdrawn);
        self.first_known = self.first_known.min(gone.first_known);
        self.mentioned_at = at;
        if gone.score_ts > self.score_ts {
            let score = Arc::unwrap_or_clone(gone.score);
            let mut score = if swapped { score.swapped() } else { score };
            for leader in &mut score.leaders {
                let name = names.get(usize::from(leader.entrant)).map_or("", |name| name);
                leader.entrant = self.field.intern(name).unwrap_or(leader.entrant);
            }
            self.score = Arc::new(score);
            (self.score_ts, self.score_changed) = (gone.score_ts, gone.score_changed);
            self.finished_at = gone.finished_at;
        }
        if self.is_final() {
            // If either of the two is over, prices must not outlive it.
            self.close_slots(|_| true);
        }
        self.touch();
    }

    fn field_names(&self) -> Vec<Box<str>> {
        self.field.names().to_vec()
    }

    fn give_slots(&mut self, feed: FeedIx) -> BTreeMap<SlotKey, Slot> {
        let (given, kept) =
            std::mem::take(&mut self.slots).into_iter().partition(|(_, slot)| slot.feed == feed);
        self.slots = kept;
        self.touch();
        given
    }

    /// Takes over the prices of another event; of two for one slot the newer wins.
    fn take_slots(
        &mut self,
        slots: BTreeMap<SlotKey, Slot>,
        names: &[Box<str>],
        swapped: bool,
        catalogue: &Catalogue,
    ) {
        for (key, mut slot) in slots {
            let bookmaker = &catalogue.bookmaker(key.bookmaker).key;
            let record = RecordId::new(self.id, bookmaker, key.market, slot.group.as_deref());
            let key = SlotKey { record, ..key };
            if self.slots.get(&key).is_some_and(|held| held.ts >= slot.ts) {
                continue;
            }
            slot.open = slot.open.and_then(|record| self.take_record(&record, names, swapped));
            self.slots.insert(key, slot);
        }
        self.touch();
    }

    fn take_record(
        &mut self,
        record: &Record,
        names: &[Box<str>],
        swapped: bool,
    ) -> Option<Arc<Record>> {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(record.outcomes.len());
        for outcome in &*record.outcomes {
            let name = match outcome.name {
                OutcomeName::Home if swapped => OutcomeName::Away,
                OutcomeName::Away if swapped => OutcomeName::Home,
                OutcomeName::Entrant(at) => {
                    OutcomeName::Entrant(self.field.intern(names.get(usize::from(at))?)?)
                }
                name @ (OutcomeName::Home
                | OutcomeName::Away
                | OutcomeName::Draw
                | OutcomeName::Over
                | OutcomeName::Under) => name,
            };
            outcomes.push(Outcome { name, ..*outcome });
        }
        outcomes.sort_unstable_by(|one, other| {
            self.order_outcomes((one.name, one.point), (other.name, other.point))
        });
        Some(Arc::new(Record::new(outcomes.into())))
    }
}

/// The same participants with the sides swapped.
pub(super) fn turned(fixture: &Fixture) -> Fixture {
    match fixture {
        Fixture::HeadToHead { home, away } => {
            Fixture::HeadToHead { home: away.clone(), away: home.clone() }
        }
        Fixture::Field { .. } => fixture.clone(),
    }
}

//! The consequences of a listing for other events: two are found to be one, or may be one.
//!
//! Joining a listing can show that two separate events are one, whichever came first, so the order of arrival does
//! not matter. Unsure pairs are kept apart and shown to the operator; each further message about either event
//! compares the pair again, and settles it if possible.

use std::time::Duration;

use domain::{EventId, Timestamp};

use crate::book::Book;
use crate::book::event::{Event, FeedIx};
use crate::book::place::{Choice, Fit};
use crate::change::{By, Change};
use crate::matching::{
    Alias, Doubt, Evidence, ListingView, Name, NameSignature, QuickCheck, Verdict, effort,
};

/// Maximum number of steps after one listing; a chain of merges is shorter.
const STEPS_MAX: usize = 32;
/// Maximum number of possible duplicates: a flood of look-alikes cannot fill more.
pub const DOUBTS_MAX: usize = 10_000;
/// Maximum number of possible duplicates of one event.
const DOUBTS_OF_EVENT_MAX: usize = 8;

impl Book {
    /// Applies the consequences of a feed's listing under a ref, and returns the changes for the log.
    pub(super) fn settle(&mut self, feed: &str, reference: &str, now: Timestamp) -> Vec<Change> {
        let mut refs = self.waiting_around(feed, reference);
        refs.push((feed.into(), reference.into()));
        self.settle_refs(refs, now)
    }

    /// Compares an event again after a listing has left it: others that the listing contradicted may be one with it
    /// now.
    pub(super) fn settle_event(&mut self, event: EventId, now: Timestamp) -> Vec<Change> {
        self.settle_refs(self.refs_of_event(event), now)
    }

    fn settle_refs(&mut self, mut refs: Vec<(Box<str>, Box<str>)>, now: Timestamp) -> Vec<Change> {
        let mut steps = Vec::new();
        while let Some((feed, reference)) = refs.pop() {
            let mut merged = true;
            while merged && steps.len() < STEPS_MAX {
                merged = false;
                for step in self.next_steps(&feed, &reference) {
                    let doubtful = self.doubtful_with(&step);
                    self.absorb(&step, now);
                    merged |= matches!(step, Change::Merged { .. });
                    if !matches!(step, Change::Cleared { .. }) {
                        refs.extend(self.waiting_around(&feed, &reference));
                    }
                    steps.push(step);
                    refs.extend(doubtful.into_iter().flat_map(|event| self.refs_of_event(event)));
                }
            }
        }
        steps
    }

    /// Possible duplicates of an event that was merged: the choice may have become unique.
    fn doubtful_with(&self, step: &Change) -> Vec<EventId> {
        if let Change::Cleared { one, other } = step {
            return vec![*one, *other];
        }
        let Change::Merged { elder, younger, .. } = step else { return Vec::new() };
        self.memory.doubts.of(*elder).chain(self.memory.doubts.of(*younger)).collect()
    }

    fn refs_of_event(&self, event: EventId) -> Vec<(Box<str>, Box<str>)> {
        let Some(event) = self.event(event) else { return Vec::new() };
        let named = |(feed, reference): &(FeedIx, Box<str>)| {
            Some((self.feed(*feed)?.name.clone(), reference.clone()))
        };
        event.listed_by.iter().rev().filter_map(named).collect()
    }

    /// Compares again the events whose names got another meaning by these changes.
    pub(super) fn settle_taught(&mut self, changes: &[Change], now: Timestamp) -> Vec<Change> {
        let mut events: Vec<EventId> = Vec::new();
        for change in changes {
            if let Change::Taught { alias, by } = change {
                events.extend(self.named(alias, *by));
            } else if let Change::Merged { elder, .. } = change {
                events.push(*elder);
            }
        }
        events.sort_unstable();
        events.dedup();
        events.into_iter().flat_map(|event| self.settle_event(event, now)).collect()
    }

    /// Events that list the name of an alias. An operator's alias may be a single word, by which only possible
    /// duplicates are found.
    pub(super) fn named(&self, alias: &Alias, by: By) -> Vec<EventId> {
        let Some(sport) = self.catalogue.sport_id(&alias.sport) else { return Vec::new() };
        let name = Name::parse(&alias.name);
        let keys = self.index.keys_of_name(sport, &name);
        let anybody = QuickCheck { at: Timestamp::from_millis(0), signature: NameSignature::BLANK };
        let mut events = self.index.find(&keys, anybody, Duration::MAX);
        if by == By::Operator {
            events.extend(self.memory.doubts.iter().flat_map(|((one, other), _)| [one, other]));
        }
        events.sort_unstable();
        events.dedup();
        let folded = name.folded();
        events.retain(|id| {
            self.event(*id).filter(|event| event.sport == sport).is_some_and(|event| {
                self.offers_of(event).any(|(feed, _, offer)| {
                    let name = self.feed(feed).map(|feed| &feed.name);
                    (alias.feed.is_none() || name == alias.feed.as_ref())
                        && offer.contest.sides().iter().any(|side| side.is_spelled(&folded))
                })
            })
        });
        events
    }

    /// The next changes for a ref: its event is another one, or else new and settled doubts.
    fn next_steps(&self, feed: &str, reference: &str) -> Vec<Change> {
        if effort::is_exhausted() {
            return Vec::new();
        }
        self.weigh_up(feed, reference).unwrap_or_default()
    }

    fn weigh_up(&self, feed: &str, reference: &str) -> Option<Vec<Change>> {
        let feed = self.feed_ix(feed)?;
        let offer = self.feed(feed)?.offer(reference).filter(|offer| offer.active)?;
        let event = self.event(offer.event)?;
        let mut doubted = Vec::new();
        let mut fits = Vec::new();
        let view = self.offer_face(feed, event.sport, offer);
        let near = self.index.near(event.id, view.check(), self.candidates_within(event.sport));
        for id in near {
            let Some(other) =
                self.event(id).filter(|other| other.id != event.id && other.is_listed())
            else {
                continue;
            };
            let shared = shared_feeds(event, other);
            let two = shared.contains(&feed) || !self.only_repeat(&shared, event, other);
            if self.memory.are_apart(event.id, id) || two {
                continue;
            }
            let Some(fit) = self.fit_without(&view, other, &shared) else { continue };
            match fit.verdict {
                Verdict::Same if self.may_be_one(event, other) => fits.push((id, fit)),
                Verdict::Same => doubted.push((id, Doubt::Rival, fit.evidence)),
                Verdict::Unsure(doubt) => doubted.push((id, doubt, fit.evidence)),
                Verdict::Different => {}
            }
        }
        let choice = self.choose(&view, fits);
        if effort::is_exhausted() {
            // The comparison is incomplete, so doubts cannot be decided.
            return None;
        }
        match choice {
            Choice::One(id, fit) => {
                let swapped = fit.swapped != offer.swapped;
                return Some(vec![merge(event, self.event(id)?, swapped, By::Evidence)]);
            }
            Choice::Rivals(rivals) => {
                let rival = |(id, fit): (EventId, Fit)| (id, Doubt::Rival, fit.evidence);
                doubted.extend(rivals.into_iter().map(rival));
            }
            Choice::Nothing => {}
        }
        Some(self.next_doubts(event.id, &doubted))
    }

    /// New doubts, as far as there is room, and doubts that are settled.
    fn next_doubts(&self, event: EventId, doubted: &[(EventId, Doubt, Evidence)]) -> Vec<Change> {
        let doubts = &self.memory.doubts;
        let room_of_all = DOUBTS_MAX.saturating_sub(doubts.len());
        let room = DOUBTS_OF_EVENT_MAX.saturating_sub(doubts.of(event).count()).min(room_of_all);
        let has_room = |id: EventId| doubts.of(id).count() < DOUBTS_OF_EVENT_MAX;
        let fresh = doubted
            .iter()
            .filter(|(other, ..)| !doubts.contains(event, *other) && has_room(*other))
            .take(room)
            .map(|(other, doubt, evidence)| {
                let (one, other) = ordered(event, *other);
                Change::Doubted { one, other, doubt: *doubt, evidence: *evidence }
            });
        let settled = doubts
            .of(event)
            .filter(|other| {
                let still = doubted.iter().any(|(id, ..)| id == other);
                !still && !self.is_doubtful(event, *other)
            })
            .map(|other| {
                let (one, other) = ordered(event, other);
                Change::Cleared { one, other }
            });
        fresh.chain(settled).collect()
    }

    /// True if any listing of one event leaves open whether it is the other.
    fn is_doubtful(&self, one: EventId, other: EventId) -> bool {
        let (Some(one), Some(other)) = (self.event(one), self.event(other)) else { return false };
        if !shared_feeds(one, other).is_empty() || !other.is_listed() {
            return false;
        }
        self.offers_of(one).any(|(feed, _, offer)| {
            if effort::is_exhausted() {
                return true;
            }
            let view = self.offer_face(feed, one.sport, offer);
            self.fit(&view, other).is_some_and(|fit| fit.verdict != Verdict::Different)
        })
    }

    /// True if the feeds that list both events only repeat themselves: the same names, the same time. Then they do
    /// not keep apart events that others show to be one.
    fn only_repeat(&self, feeds: &[FeedIx], one: &Event, other: &Event) -> bool {
        let sport = self.catalogue.sport(one.sport);
        feeds.iter().all(|feed| {
            let theirs = self.faces_of(other, *feed);
            self.faces_of(one, *feed).iter().all(|view| {
                theirs.iter().all(|their_face| {
                    if effort::is_exhausted() {
                        return false;
                    }
                    let evidence = self.evidence(one.sport, view, their_face);
                    evidence.weaker().is_firm() && evidence.verdict(sport) == Verdict::Same
                })
            })
        })
    }

    /// One feed's listings of an event.
    fn faces_of<'a>(&'a self, event: &'a Event, of: FeedIx) -> Vec<ListingView<'a>> {
        let offers = self.offers_of(event).filter(|(feed, ..)| *feed == of);
        offers.map(|(feed, _, offer)| self.offer_face(feed, event.sport, offer)).collect()
    }

    /// True if no listing of one event contradicts a listing of the other.
    fn may_be_one(&self, one: &Event, other: &Event) -> bool {
        let sport = self.catalogue.sport(one.sport);
        let theirs: Vec<_> = self
            .offers_of(other)
            .map(|(feed, _, offer)| self.offer_face(feed, other.sport, offer))
            .collect();
        self.offers_of(one).all(|(feed, _, offer)| {
            let view = self.offer_face(feed, one.sport, offer);
            theirs.iter().all(|their_face| {
                if effort::is_exhausted() {
                    return false;
                }
                let evidence = self.evidence(one.sport, &view, their_face);
                evidence.is_compatible() && evidence.gap() <= sport.other_event_after
            })
        })
    }
}

fn shared_feeds(one: &Event, other: &Event) -> Vec<FeedIx> {
    let listers = one.listed_by.iter().map(|(feed, _)| *feed);
    listers.filter(|feed| other.is_listed_by(*feed)).collect()
}

/// The merge of two events, in which the elder stays.
pub(super) fn merge(one: &Event, other: &Event, swapped: bool, by: By) -> Change {
    let (elder, younger) = if one.born <= other.born { (one, other) } else { (other, one) };
    Change::Merged { elder: elder.id, younger: younger.id, swapped, by }
}

pub(super) fn ordered(one: EventId, other: EventId) -> (EventId, EventId) {
    if one <= other { (one, other) } else { (other, one) }
}

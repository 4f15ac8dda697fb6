//! Uses the events around a listing as evidence: applies [`crate::matching::habit`] to the book.

use domain::message::Fixture;
use domain::{EventId, Sport, SportId, Timestamp};

use crate::book::event::{Event, FeedIx};
use crate::book::{Book, Offer};
use crate::matching::{
    AT_ONCE, Doubt, Evidence, Habit, Likeness, ListingView, Party, SESSION, Tie, Verdict, Vote,
    are_by_day, competition_key, effort, habit,
};

/// This number of neighbouring events costs as much as one typing-error check.
const NEIGHBOURS_OF_A_UNIT: usize = 4;
/// Maximum number of listings considered before one, and after it.
const NEIGHBOURS_MAX: usize = 48;
/// This number of player lookups costs as much as one typing-error check.
const PLAYERS_OF_A_UNIT: usize = 4;
/// When a listing arrives, possible duplicates among this number of listings before and after it are compared again.
const WAITING_MAX: usize = 12;
/// Maximum number of an event's feeds whose listings are searched for them.
const WAITING_FEEDS_MAX: usize = 3;

/// The indication of the surrounding events for two listings being one, in descending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Around {
    For,
    Silent,
    Against,
}

/// Whether two names belong to one player, judging by the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownOtherwise {
    /// They do, on this side of the first.
    Same { side: usize },
    /// Not enough of the tournament is known yet.
    Open,
}

impl Book {
    /// The evidence, including the players of fields, players known under two names, and operators' decisions about
    /// names.
    pub(super) fn evidence(
        &self,
        sport: SportId,
        one: &ListingView<'_>,
        other: &ListingView<'_>,
    ) -> Evidence {
        self.minding(sport, (one, other), Evidence::gather(one, other))
    }

    pub(super) fn minding(
        &self,
        sport: SportId,
        (one, other): (&ListingView<'_>, &ListingView<'_>),
        mut evidence: Evidence,
    ) -> Evidence {
        evidence.mind_fields(one, other, || self.players_in_common(one, other));
        let known = self.known_otherwise(sport, (one, other), &evidence);
        if let Some(KnownOtherwise::Same { side }) = known
            && let Some(likeness) = evidence.sides.get_mut(side)
        {
            *likeness = Likeness::Within;
        }
        if self.memory.aliases.is_empty() {
            return evidence;
        }
        let key = &*self.catalogue.sport(sport).key;
        let theirs = other.contest.sides();
        for (at, (side, likeness)) in
            one.contest.sides().iter().zip(&mut evidence.sides).enumerate()
        {
            let their_side = theirs.get(if evidence.swapped { 1 - at } else { at });
            let names = (side.spelling(), their_side.and_then(Party::spelling));
            if let (Some(name), Some(their_name)) = names
                && self.memory.aliases.are_two(key, &name, &their_name)
            {
                *likeness = Likeness::Conflict.min(*likeness);
            }
        }
        evidence
    }

    /// The verdict on two listings, using the surrounding events if the starts leave it open; and what those
    /// indicate.
    pub(super) fn mind_habit(
        &self,
        sport: &Sport,
        (theirs, ours): (&ListingView<'_>, &ListingView<'_>),
        evidence: &Evidence,
    ) -> (Verdict, Around) {
        let verdict = evidence.verdict(sport);
        let open = match verdict {
            Verdict::Unsure(Doubt::Time) => evidence.competition != Tie::Other,
            Verdict::Same if evidence.gap() <= AT_ONCE => return (verdict, Around::For),
            // Two fighters do not meet again within a short time.
            Verdict::Same => !sport.bouts,
            Verdict::Unsure(_) | Verdict::Different => false,
        };
        if !open {
            return (verdict, Around::Silent);
        }
        match self.habit(sport, theirs, ours) {
            Habit::Same => (Verdict::Same, Around::For),
            Habit::Unknown => (verdict, Around::Silent),
            Habit::OffTime | Habit::Elsewhere if sport.bouts => (verdict, Around::Silent),
            Habit::OffTime if evidence.gap() <= SESSION => (verdict, Around::Silent),
            Habit::OffTime | Habit::Elsewhere | Habit::Other => {
                (Verdict::Unsure(Doubt::Time), Around::Against)
            }
        }
    }

    fn habit(&self, sport: &Sport, theirs: &ListingView<'_>, ours: &ListingView<'_>) -> Habit {
        self.habit_by_day(sport, theirs, ours).0
    }

    /// As [`Book::habit`]; also true if both date their events by the day.
    fn habit_by_day(
        &self,
        sport: &Sport,
        theirs: &ListingView<'_>,
        ours: &ListingView<'_>,
    ) -> (Habit, bool) {
        let (Some(their_feed), Some(feed)) = (theirs.feed.map(FeedIx), ours.feed.map(FeedIx))
        else {
            return (Habit::Unknown, false);
        };
        let skipped = [ours.event, theirs.event];
        let votes = self.votes(sport, (feed, ours), their_feed, skipped);
        if votes.is_empty() {
            return (Habit::Unknown, false);
        }
        let their_votes = self.votes(sport, (their_feed, theirs), feed, skipped);
        let later = minutes(theirs.commence_time) - minutes(ours.commence_time);
        let competition = |view: &ListingView<'_>| competition_key(view.competition);
        let by_day = are_by_day(&votes) && are_by_day(&their_votes);
        let (votes, their_votes) = (&votes[..], &their_votes[..]);
        let sides = ((votes, competition(ours)), (their_votes, competition(theirs)));
        (habit(sides.0, sides.1, later, sport), by_day)
    }

    /// The events around a listing in its competition that another feed lists, too. A competition of another sport
    /// may have the same name ("Championship"), and is no evidence for this one.
    fn votes(
        &self,
        sport: &Sport,
        (feed, view): (FeedIx, &ListingView<'_>),
        other: FeedIx,
        skipped: [Option<EventId>; 2],
    ) -> Vec<Vote> {
        let when = (view.commence_time, sport.other_event_after);
        let around = self.calendar.around((feed, ""), view.competition, when, NEIGHBOURS_MAX);
        let mut votes = Vec::new();
        let mut looked_at = 0;
        for reference in around {
            looked_at += 1;
            let Some(offer) = self.feed(feed).and_then(|feed| feed.offer(reference)) else {
                continue;
            };
            let counts = |event: &&Event| {
                !skipped.contains(&Some(event.id))
                    && self.catalogue.sport(event.sport).key == sport.key
            };
            let Some(event) = self.event(offer.event).filter(counts) else { continue };
            let Some(theirs) = self.in_common(event, feed, other, skipped) else { continue };
            let at = minutes(offer.commence_time);
            let later_minutes = minutes(theirs.commence_time) - at;
            let competition = competition_key(&theirs.competition);
            votes.push(Vote { at, competition, later_minutes });
        }
        effort::spend(1 + looked_at / NEIGHBOURS_OF_A_UNIT);
        votes
    }

    /// The other feed's listing of an event: of the same one, or of the only one that may be the same if its start
    /// were.
    fn in_common(
        &self,
        event: &Event,
        feed: FeedIx,
        other: FeedIx,
        skipped: [Option<EventId>; 2],
    ) -> Option<&Offer> {
        if let Some(offer) = self.offer_by(event, other) {
            return Some(offer);
        }
        let doubts = &self.memory.doubts;
        let only = |of: EventId, lister: FeedIx| {
            let mut listed = doubts
                .of(of)
                .filter(|id| self.event(*id).is_some_and(|event| event.is_listed_by(lister)));
            listed.next().filter(|_| listed.next().is_none())
        };
        let partner = only(event.id, other).filter(|id| !skipped.contains(&Some(*id)))?;
        let is_time = doubts.why(event.id, partner) == Some(Doubt::Time);
        (is_time && only(partner, feed) == Some(event.id)).then_some(())?;
        self.offer_by(self.event(partner)?, other)
    }

    fn offer_by(&self, event: &Event, feed: FeedIx) -> Option<&Offer> {
        let (_, reference) = event.listed_by.iter().find(|(lister, _)| *lister == feed)?;
        self.feed(feed)?.offer(reference)
    }

    /// The side on which two listings of one match have a player under two names: another given name, a nickname, a
    /// married name.
    ///
    /// The opponent, the tournament and the day agree, and the names share a word that nobody else in the draw has.
    pub(super) fn known_otherwise(
        &self,
        sport: SportId,
        (one, other): (&ListingView<'_>, &ListingView<'_>),
        evidence: &Evidence,
    ) -> Option<KnownOtherwise> {
        let [home, away] = evidence.sides;
        let (weaker, stronger) = (home.min(away), home.max(away));
        let rules = self.catalogue.sport(sport);
        // A substitute fighter may be a brother.
        let open = weaker == Likeness::Shared || weaker == Likeness::Conflict && !rules.bouts;
        let (feed, their_feed) = (FeedIx(one.feed?), FeedIx(other.feed?));
        let open = open && stronger.is_firm() && evidence.gap() <= SESSION && feed != their_feed;
        if !open || effort::is_exhausted() {
            return None;
        }
        let at = usize::from(away < home);
        let party = one.contest.sides().get(at)?;
        let their_party = other.contest.sides().get(if evidence.swapped { 1 - at } else { at })?;
        let words = party.words_in_common(their_party);
        if words.is_empty() {
            return None;
        }
        let (habit, by_day) = self.habit_by_day(rules, other, one);
        if habit == Habit::Unknown && !rules.bouts {
            return Some(KnownOtherwise::Open);
        }
        let drawn = |feed: FeedIx, view: &ListingView<'_>, party: &Party| {
            self.is_alone_in_draw(rules, (feed, view), party, &words)
        };
        // Two brothers may both meet the opponent in one tournament, but not on one day.
        let is_same = habit == Habit::Same
            && by_day
            && drawn(feed, one, party)
            && drawn(their_feed, other, their_party);
        is_same.then_some(KnownOtherwise::Same { side: at })
    }

    /// True if nobody else in the draw around a listing has any of the words of a player's name.
    fn is_alone_in_draw(
        &self,
        sport: &Sport,
        (feed, view): (FeedIx, &ListingView<'_>),
        party: &Party,
        words: &[&str],
    ) -> bool {
        let when = (view.commence_time, sport.other_event_after);
        let Some(held) = self.feed(feed) else { return false };
        let spelling = party.spelling();
        let mut looked_at = 0;
        let mut around = self.calendar.around((feed, ""), view.competition, when, NEIGHBOURS_MAX);
        let alone = around.all(|reference| {
            looked_at += 1;
            let sides = held.offer(reference).map_or(&[][..], |offer| offer.contest.sides());
            sides.iter().all(|side| {
                !words.iter().any(|word| side.has_word(word)) || side.spelling() == spelling
            })
        });
        effort::spend(1 + looked_at / NEIGHBOURS_OF_A_UNIT);
        alone
    }

    /// Number of players of the smaller of two fields that are also in the other, and the number that was looked up.
    pub(super) fn players_in_common(
        &self,
        one: &ListingView<'_>,
        other: &ListingView<'_>,
    ) -> (usize, usize) {
        let field = |view: &ListingView<'_>| Some(&self.event(view.event?)?.field);
        match (field(one), field(other)) {
            (Some(one), Some(other)) => {
                let (shared, of) = one.in_common(other);
                effort::spend(of / PLAYERS_OF_A_UNIT);
                (shared, of)
            }
            _ => (0, 0),
        }
    }

    /// Number of known players of a ref's tournament.
    pub(super) fn players_of(&self, feed: &str, reference: &str) -> usize {
        let event = self.stands_for(feed, reference).and_then(|event| self.event(event));
        let field = event.filter(|event| matches!(event.fixture, Fixture::Field { .. }));
        field.map_or(0, |event| event.field.names().len())
    }

    /// Refs around a listing, in the competitions that list it, whose events are possible duplicates: new data may
    /// settle them.
    pub(super) fn waiting_around(&self, feed: &str, reference: &str) -> Vec<(Box<str>, Box<str>)> {
        if self.memory.doubts.len() == 0 || effort::is_exhausted() {
            return Vec::new();
        }
        let offer = self.feed_ix(feed).and_then(|feed| self.feed(feed)?.offer(reference));
        let Some(event) = offer.and_then(|offer| self.event(offer.event)) else {
            return Vec::new();
        };
        let within = self.catalogue.sport(event.sport).other_event_after;
        let mut waiting = Vec::new();
        for (feed, reference, offer) in self.offers_of(event).take(WAITING_FEEDS_MAX) {
            let Some(held) = self.feed(feed) else { continue };
            let when = (offer.commence_time, within);
            let around =
                self.calendar.around((feed, reference), &offer.competition, when, WAITING_MAX);
            effort::spend(2 * WAITING_MAX / NEIGHBOURS_OF_A_UNIT);
            let is_waiting = |reference: &&str| {
                let waits = |offer: &Offer| {
                    offer.event != event.id && self.memory.doubts.of(offer.event).next().is_some()
                };
                held.offer(reference).is_some_and(waits)
            };
            let refs = around.filter(is_waiting);
            waiting.extend(refs.map(|reference| (held.name.clone(), reference.into())));
        }
        waiting
    }
}

fn minutes(at: Timestamp) -> i64 {
    at.as_millis() / 60_000
}

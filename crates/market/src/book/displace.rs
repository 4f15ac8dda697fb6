//! A feed that lists the same two twice: which of its refs others mean.
//!
//! A moved game under a new ref, a plain duplicate: whichever of a feed's refs came first was taken for the event of the
//! others. Where the other ref fits them better, the first gives way and gets an event of its own, so that it does not
//! matter which came first; the others' event keeps its id. A ref gives way once and never takes the place of the one
//! it gave way to, so a feed that moves its starts about cannot make the two change places for ever.

use std::cmp::Ordering;

use crate::book::event::{Event, FeedIx};
use crate::book::place::Rank;
use crate::book::{Book, Offer, Placed};
use crate::change::Change;
use crate::matching::{Face, Verdict};

/// A feed's one listing of an event.
type Listing<'a> = (&'a str, &'a Offer);

impl Book {
    /// Where one feed alone keeps two events apart that the others say are one, or lists an event of others twice: the
    /// ref that fits the others less gives way.
    pub(super) fn misplaced(
        &self,
        one: &Event,
        other: &Event,
        shared: &[FeedIx],
    ) -> Option<Change> {
        let [feed] = shared else { return None };
        let sport = self.catalogue.sport(one.sport);
        let (here, there) = (self.only_listing(one, *feed)?, self.only_listing(other, *feed)?);
        let rest = [self.faces_without(one, *feed), self.faces_without(other, *feed)];
        let [ours, theirs] = &rest;
        let agree = |face: &Face<'_>, with: &Face<'_>| {
            self.evidence(one.sport, face, with).verdict(sport) == Verdict::Same
        };
        if !ours.iter().all(|face| theirs.iter().all(|with| agree(face, with))) {
            return None;
        }
        let rank = |(_, offer): Listing<'_>| {
            let face = self.offer_face(*feed, one.sport, offer);
            let seen = rest.iter().flatten().map(|with| self.evidence(one.sport, with, &face));
            seen.map(|evidence| Rank::of(evidence.verdict(sport), &evidence)).min()
        };
        let ranks = (rank(here)?, rank(there)?);
        let is_settled = |(_, offer): Listing<'_>| {
            matches!(offer.placed, Placed::ByOperator | Placed::Displaced)
        };
        let (event, (reference, _), others) = match ranks.0.cmp(&ranks.1) {
            Ordering::Equal => return None,
            Ordering::Greater => (one, here, ours),
            Ordering::Less => (other, there, theirs),
        };
        // Alone it stands apart already; and who takes its place must be the same, not merely nearer.
        if is_settled(here)
            || is_settled(there)
            || others.is_empty()
            || !ranks.0.min(ranks.1).is_same()
        {
            return None;
        }
        Some(Change::Displaced {
            event: event.id,
            feed: self.feed(*feed)?.name.clone(),
            reference: reference.into(),
            into: self.new_id(reference),
        })
    }

    /// A feed's listing of an event, if it has no more than one.
    fn only_listing<'a>(&'a self, event: &'a Event, of: FeedIx) -> Option<Listing<'a>> {
        let mut listings = self.offers_of(event).filter(|(feed, ..)| *feed == of);
        let (_, reference, offer) = listings.next()?;
        listings.next().is_none().then_some((&**reference, offer))
    }

    /// What all but one feed say of an event.
    fn faces_without<'a>(&'a self, event: &'a Event, but: FeedIx) -> Vec<Face<'a>> {
        let offers = self.offers_of(event).filter(|(feed, ..)| *feed != but);
        offers.map(|(feed, _, offer)| self.offer_face(feed, event.sport, offer)).collect()
    }
}

//! Assigns a listing to an event: the one its ref meant, one that others list, or a new one.

use std::borrow::Cow;
use std::time::Duration;

use domain::message::Listing;
use domain::{EventId, SportId};

use crate::book::event::{Event, FeedIx};
use crate::book::habits::{Around, KnownOtherwise};
use crate::book::{Book, Offer, Placed};
use crate::change::Ids;
use crate::matching::{
    Contest, Doubt, Evidence, Likeness, ListingView, NameSignature, QuickCheck, Verdict, effort,
    same_names,
};

/// The result of comparing a listing with an event.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) verdict: Verdict,
    /// The indication of the events around the two.
    around: Around,
    /// The evidence from the listing that it matches best.
    pub(super) evidence: Evidence,
    pub(super) with: (FeedIx, Box<str>),
    /// True if the listing's home is the event's away.
    pub(super) swapped: bool,
}

/// The choice among the events that a listing fits.
#[derive(Debug)]
pub(super) enum Choice {
    Nothing,
    One(EventId, Fit),
    /// Different events, and the listing could be any of them.
    Rivals(Vec<(EventId, Fit)>),
}

/// The result of searching an event for a listing.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The event it is the same as.
    pub(super) same: Option<(EventId, Option<Fit>)>,
    /// True if the feed already lists that event under another ref.
    pub(super) duplicate: bool,
    /// The index keys of the listing.
    pub(super) keys: Vec<u64>,
    /// True if no listed event is similar.
    pub(super) alone: bool,
}

impl Book {
    /// A contest with the learned meanings of a feed's names.
    pub(super) fn meaning<'a>(
        &self,
        feed: &str,
        sport: SportId,
        contest: &'a Contest,
    ) -> Cow<'a, Contest> {
        let aliases = &self.memory.aliases;
        if aliases.is_empty() {
            return Cow::Borrowed(contest);
        }
        let key = &*self.catalogue.sport(sport).key;
        contest.meaning(|name| aliases.meaning(key, feed, name))
    }

    /// A feed's new listing, prepared for comparison.
    pub(super) fn listing_face<'a>(
        &self,
        feed: &str,
        listing: &'a Listing,
        contest: &'a Contest,
    ) -> ListingView<'a> {
        let contest = self.meaning(feed, listing.sport, contest);
        let signature = NameSignature::of(&contest);
        let Listing { commence_time, competition, .. } = listing;
        let (commence_time, feed) = (*commence_time, self.feed_ix(feed).map(|feed| feed.0));
        ListingView { contest, commence_time, competition, signature, feed, event: None }
    }

    /// A held listing, prepared for comparison.
    pub(super) fn offer_face<'a>(
        &'a self,
        feed: FeedIx,
        sport: SportId,
        offer: &'a Offer,
    ) -> ListingView<'a> {
        let name = self.feed(feed).map_or("", |feed| &*feed.name);
        let contest = self.meaning(name, sport, &offer.contest);
        let signature = match contest {
            Cow::Borrowed(_) => offer.signature,
            Cow::Owned(_) => NameSignature::BLANK,
        };
        let (commence_time, competition) = (offer.commence_time, &*offer.competition);
        let (feed, event) = (Some(feed.0), Some(offer.event));
        ListingView { contest, commence_time, competition, signature, feed, event }
    }

    /// An event as displayed, with the meanings that its names have for a feed.
    fn shown_face<'a>(
        &self,
        feed: &str,
        event: &'a Event,
        contest: &'a Contest,
    ) -> ListingView<'a> {
        let contest = self.meaning(feed, event.sport, contest);
        let (commence_time, competition) = (event.commence_time, &*event.competition);
        let (signature, event) = (NameSignature::BLANK, Some(event.id));
        ListingView { contest, commence_time, competition, signature, feed: None, event }
    }

    /// Maximum distance of a listing's start from an event's eldest listing for being the same.
    pub(super) fn candidates_within(&self, sport: SportId) -> Duration {
        // Gaps are counted in whole minutes.
        self.catalogue.sport(sport).other_event_after + Duration::from_secs(60)
    }

    /// False if a quick check shows that two listings are two events: by their starts, or by how words begin.
    fn may_be(&self, sport: SportId, one: QuickCheck, other: QuickCheck) -> bool {
        let apart = one.at.as_millis().abs_diff(other.at.as_millis());
        u128::from(apart) <= self.candidates_within(sport).as_millis()
            && one.signature.may_be(&other.signature)
    }

    /// The listings of an event, with their feeds.
    pub(super) fn offers_of<'a>(
        &'a self,
        event: &'a Event,
    ) -> impl Iterator<Item = (FeedIx, &'a Box<str>, &'a Offer)> {
        event.listed_by.iter().filter_map(|(feed, reference)| {
            Some((*feed, reference, self.feed(*feed)?.offer(reference)?))
        })
    }

    /// The fit of a listing to an event: as good as with the best of its listings, and none if any of them is a
    /// different event. If the effort is exhausted, it does not fit.
    pub(super) fn fit(&self, view: &ListingView<'_>, event: &Event) -> Option<Fit> {
        self.fit_without(view, event, &[])
    }

    /// As [`Book::fit`], ignoring the listings of some feeds.
    pub(super) fn fit_without(
        &self,
        view: &ListingView<'_>,
        event: &Event,
        ignored: &[FeedIx],
    ) -> Option<Fit> {
        if effort::is_exhausted() {
            return None;
        }
        let sport = self.catalogue.sport(event.sport);
        let faces = || {
            let offers = self.offers_of(event).filter(|(feed, ..)| !ignored.contains(feed));
            offers.map(|(feed, reference, offer)| {
                (feed, reference, offer, self.offer_face(feed, event.sport, offer))
            })
        };
        // The cheap checks first.
        if !faces().all(|(.., theirs)| self.may_be(event.sport, theirs.check(), view.check())) {
            return None;
        }
        let mut best: Option<Fit> = None;
        let (mut stranger, mut contradicted) = (false, false);
        for (feed, reference, offer, theirs) in faces() {
            if effort::is_exhausted() {
                return None;
            }
            let evidence = match Evidence::gather_alike(&theirs, view) {
                Some(evidence) => evidence,
                // If people meet in a tournament, or many play in one, other evidence may still show that they are
                // the same.
                None if sport.clubs.is_empty() && !sport.bouts => Evidence::gather(&theirs, view),
                None => return None,
            };
            let evidence = self.minding(event.sport, (&theirs, view), evidence);
            let open = || {
                let known = self.known_otherwise(event.sport, (&theirs, view), &evidence);
                known == Some(KnownOtherwise::Open)
            };
            let open = !evidence.is_compatible() && open();
            let two = evidence.weaker() <= Likeness::Conflict && !open;
            if two || evidence.gap() > sport.other_event_after {
                return None;
            }
            stranger |= !evidence.is_compatible();
            let (verdict, around) = if open {
                (Verdict::Unsure(Doubt::Name), Around::Silent)
            } else {
                self.mind_habit(sport, (&theirs, view), &evidence)
            };
            contradicted |= around == Around::Against;
            let fit = Fit {
                verdict,
                around,
                evidence,
                with: (feed, reference.clone()),
                swapped: evidence.swapped != offer.swapped,
            };
            if best.as_ref().is_none_or(|best| fit.rank() < best.rank()) {
                best = Some(fit);
            }
        }
        best.map(|fit| match fit.verdict {
            // Another lister may mean somebody else, even if this one certainly matches.
            Verdict::Same if stranger => Fit { verdict: Verdict::Unsure(Doubt::Name), ..fit },
            // Or it may be another meeting of the two.
            Verdict::Same if contradicted => Fit { verdict: Verdict::Unsure(Doubt::Time), ..fit },
            Verdict::Same | Verdict::Unsure(_) | Verdict::Different => fit,
        })
    }

    /// Events that may be the same as a listing, the most similar first.
    pub(super) fn candidates(&self, sport: SportId, view: &ListingView<'_>) -> Vec<EventId> {
        let keys = self.index.keys(sport, &view.contest, view.commence_time);
        self.index.find(&keys, view.check(), self.candidates_within(sport))
    }

    /// Finds the event of a listing.
    pub(super) fn place(
        &self,
        (feed, reference): (Option<FeedIx>, &str),
        listing: &Listing,
        view: &ListingView<'_>,
    ) -> Place {
        // The ref no longer means this event.
        let former = feed.and_then(|feed| self.feed(feed)?.offer(reference));
        let former = former.map(|offer| offer.event);
        let mut place = Place { alone: true, ..Place::default() };
        let mut fits: Vec<(EventId, Fit)> = Vec::new();
        let mut left: Option<(u64, EventId)> = None;
        place.keys = self.index.keys(listing.sport, &view.contest, view.commence_time);
        let within = self.candidates_within(listing.sport);
        for id in self.index.find(&place.keys, view.check(), within) {
            if effort::is_exhausted() {
                place.alone = false;
                break;
            }
            let Some(event) = self.event(id) else { continue };
            let taken = self.is_taken(id, feed, reference);
            if Some(id) == former && !taken {
                continue;
            }
            if !event.is_listed() {
                if let Some(apart) = self.fits_left(event, listing) {
                    left = left.into_iter().chain([(apart, id)]).min();
                }
                continue;
            }
            let Some(fit) = self.fit(view, event) else { continue };
            match fit.verdict {
                Verdict::Same if taken => place.duplicate = true,
                Verdict::Same => fits.push((id, fit)),
                Verdict::Unsure(_) | Verdict::Different => {}
            }
            place.alone = false;
        }
        place.same = match self.choose(view, fits) {
            Choice::One(id, fit) => Some((id, Some(fit))),
            Choice::Nothing => left.map(|(_, id)| (id, None)),
            Choice::Rivals(_) => None,
        };
        place
    }

    /// Chooses among several events that fit a listing.
    ///
    /// A feed that lists two of them contradicts or repeats itself, so its listings count only if no other feed's do:
    /// a feed that floods the service with duplicates cannot draw others' listings of one event to different ones. If
    /// the events have different participants the names decide, and if they cannot, it stays unsure.
    pub(super) fn choose(&self, view: &ListingView<'_>, mut fits: Vec<(EventId, Fit)>) -> Choice {
        if fits.len() < 2 {
            return fits.pop().map_or(Choice::Nothing, |(id, fit)| Choice::One(id, fit));
        }
        let doubled = self.listed_twice(fits.iter().map(|(id, _)| *id));
        if !doubled.is_empty() {
            let upheld = |id: EventId| {
                let fit = self.event(id).and_then(|event| self.fit_without(view, event, &doubled));
                fit.filter(|fit| fit.verdict == Verdict::Same)
            };
            let upheld: Vec<_> =
                fits.iter().filter_map(|(id, _)| Some((*id, upheld(*id)?))).collect();
            if !upheld.is_empty() {
                fits = upheld;
            }
        }
        fits.sort_by_cached_key(|(id, fit)| self.preference(*id, fit, &doubled));
        let Some((best, _)) = fits.first() else { return Choice::Nothing };
        let best = *best;
        fits.retain(|(id, _)| *id == best || self.are_told_apart(best, *id));
        let most = fits.iter().map(|(_, fit)| fit.evidence.weaker()).max();
        fits.retain(|(_, fit)| Some(fit.evidence.weaker()) == most);
        if fits.len() > 1 {
            return Choice::Rivals(fits);
        }
        fits.pop().map_or(Choice::Nothing, |(id, fit)| Choice::One(id, fit))
    }

    /// Feeds that list more than one of the events.
    fn listed_twice(&self, events: impl Iterator<Item = EventId>) -> Vec<FeedIx> {
        let events = events.filter_map(|id| self.event(id));
        let mut listers: Vec<FeedIx> =
            events.flat_map(|event| &event.listed_by).map(|(feed, _)| *feed).collect();
        listers.sort_unstable();
        let twice = listers.chunk_by(|one, other| one == other).filter(|same| same.len() > 1);
        twice.filter_map(|same| same.first().copied()).collect()
    }

    /// True if a listing of a shared event now certainly is another event that others list: no other feed's listing
    /// here matches it any more, or only that of a feed that lists both.
    fn has_moved(&self, feed: FeedIx, event: &Event, view: &ListingView<'_>) -> bool {
        let is_same = |fit: &Fit| fit.verdict == Verdict::Same;
        let elsewhere: Vec<&Event> = self
            .candidates(event.sport, view)
            .into_iter()
            .filter(|id| *id != event.id && !self.memory.are_apart(*id, event.id))
            .filter_map(|id| self.event(id))
            .filter(|other| other.is_listed() && !other.is_listed_by(feed))
            .filter(|other| self.fit(view, other).as_ref().is_some_and(is_same))
            .collect();
        if elsewhere.is_empty() {
            return false;
        }
        let fits = |event: &Event, ignored: &[FeedIx]| {
            self.fit_without(view, event, ignored).as_ref().is_some_and(is_same)
        };
        if !fits(event, &[feed]) {
            return true;
        }
        let ids = elsewhere.iter().map(|other| other.id).chain([event.id]);
        let mut doubled = self.listed_twice(ids);
        doubled.push(feed);
        !fits(event, &doubled) && elsewhere.iter().any(|other| fits(other, &doubled))
    }

    /// True if two events have different participants: by their names, or because a feed lists both and not under the
    /// same names.
    fn are_told_apart(&self, one: EventId, other: EventId) -> bool {
        let (Some(one), Some(other)) = (self.event(one), self.event(other)) else { return false };
        if effort::is_exhausted() {
            return true;
        }
        let contests = (self.contest_of(one), self.contest_of(other));
        let faces =
            (self.shown_face("", one, &contests.0), self.shown_face("", other, &contests.1));
        let evidence = self.evidence(one.sport, &faces.0, &faces.1);
        let both = one.listed_by.iter().any(|(feed, _)| other.is_listed_by(*feed));
        !evidence.is_compatible() || (both && !evidence.weaker().is_firm())
    }

    /// An unlisted event comes back only under the same names; returns the distance of the starts.
    fn fits_left(&self, event: &Event, listing: &Listing) -> Option<u64> {
        let window = self.catalogue.sport(listing.sport).same_event_within.as_millis();
        let apart = event.commence_time.as_millis().abs_diff(listing.commence_time.as_millis());
        let same = same_names(&event.fixture, &listing.fixture);
        (same && u128::from(apart) <= window).then_some(apart)
    }

    /// Sort key among events that fit, smaller is better: better names, nearer start, more feeds; then refs, which do
    /// not depend on the order of arrival.
    fn preference(&self, id: EventId, fit: &Fit, ignored: &[FeedIx]) -> impl Ord + use<> {
        let listed_by = self.event(id).map_or(&[][..], |event| &event.listed_by);
        let counted = listed_by.iter().filter(|(feed, _)| !ignored.contains(feed)).count();
        let first = listed_by
            .iter()
            .map(|(feed, reference)| (reference.clone(), self.feed(*feed).map(|f| f.name.clone())))
            .min();
        (fit.rank(), std::cmp::Reverse(counted), first, id)
    }

    /// True if a corrected listing still means the event of its ref.
    pub(super) fn stays_with(
        &self,
        (feed, reference): (FeedIx, &str),
        offer: &Offer,
        (listing, view): (&Listing, &ListingView<'_>),
    ) -> bool {
        let Some(event) = self.event(offer.event).filter(|event| event.sport == listing.sport)
        else {
            return false;
        };
        let by_operator = offer.placed == Placed::ByOperator;
        if self.is_taken(event.id, Some(feed), reference) && !by_operator {
            return false;
        }
        let sport = self.catalogue.sport(event.sport);
        let own = self.evidence(event.sport, &self.offer_face(feed, event.sport, offer), view);
        if event.is_final() && own.gap() > sport.same_event_within {
            // A ref reused for the next meeting of the two.
            return false;
        }
        let mut others = self
            .offers_of(event)
            .filter(|(lister, held, _)| (*lister, &***held) != (feed, reference))
            .peekable();
        if others.peek().is_none() {
            // Only its own event: it may correct anything, as long as one participant stays.
            return match offer.active {
                true => own.sides.iter().any(|side| *side >= Likeness::OneWord),
                false => same_names(&event.fixture, &listing.fixture),
            };
        }
        if by_operator {
            let names = same_names(&event.fixture, &listing.fixture);
            return names || own.weaker() >= Likeness::OneWord;
        }
        let same_names = same_names(&event.fixture, &listing.fixture);
        let agrees = others.all(|(lister, _, offer)| {
            let theirs = self.offer_face(lister, event.sport, offer);
            let is_kin = || {
                let evidence = || self.evidence(event.sport, &theirs, view);
                !effort::is_exhausted() && evidence().weaker() >= Likeness::Kin
            };
            // Starts too far apart are another event, whatever the ref meant before.
            Evidence::gap_between(&theirs, view) <= sport.other_event_after
                && (same_names || is_kin())
        });
        // A name that would not match this participant may belong to somebody else by now.
        let is_known = || {
            let fit = self.fit_without(view, event, &[feed]);
            own.weaker().is_firm() || fit.is_some_and(|fit| fit.verdict == Verdict::Same)
        };
        agrees && (same_names || is_known()) && !self.has_moved(feed, event, view)
    }

    /// True if a listing names the sides of the event it stays with in the opposite order.
    pub(super) fn is_turned(&self, feed: &str, event: &Event, view: &ListingView<'_>) -> bool {
        let contest = self.contest_of(event);
        let shown = self.shown_face(feed, event, &contest);
        let evidence = self.evidence(event.sport, &shown, view);
        // The order of a different pair means nothing.
        evidence.weaker() >= Likeness::Kin && evidence.swapped
    }

    /// True if the feed already lists the event under another ref.
    pub(super) fn is_taken(&self, event: EventId, feed: Option<FeedIx>, reference: &str) -> bool {
        let other_ref =
            |(lister, held): &(FeedIx, Box<str>)| Some(*lister) == feed && &**held != reference;
        self.event(event).is_some_and(|event| event.listed_by.iter().any(other_ref))
    }

    /// An id that no event has or had.
    pub(super) fn new_id(&self, reference: &str) -> EventId {
        let unused =
            |id: &EventId| !self.events.contains_key(id) && !self.memory.merged.contains_key(id);
        match self.ids {
            Ids::Minted { salt } => {
                let mut numbers = self.events_made..;
                numbers
                    .by_ref()
                    .map(|n| EventId::minted(salt, n))
                    .find(unused)
                    .unwrap_or(EventId::minted(salt, self.events_made))
            }
            Ids::Derived { salt } => {
                let first = EventId::derived(salt, reference);
                // Taken if two feeds use the same ref, or one reuses it.
                let mut others =
                    (1_u32..).map(|n| EventId::derived(salt, &format!("{reference}\u{1f}{n}")));
                if unused(&first) { first } else { others.find(unused).unwrap_or(first) }
            }
        }
    }
}

impl Fit {
    /// Smaller is better.
    fn rank(&self) -> (u8, std::cmp::Reverse<Likeness>, Around, u32) {
        let verdict = match self.verdict {
            Verdict::Same => 0,
            Verdict::Unsure(_) => 1,
            Verdict::Different => 2,
        };
        // Above a near match, greater similarity is no better evidence: the nearer start is.
        let names = self.evidence.weaker().min(Likeness::Near);
        (verdict, std::cmp::Reverse(names), self.around, self.evidence.gap_minutes)
    }
}

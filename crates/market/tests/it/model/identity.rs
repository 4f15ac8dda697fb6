//! The event of a listing, by the naive method: every listing is compared with every other.

use std::cmp::Reverse;
use std::time::Duration;

use domain::message::{Fixture, Listing};
use domain::{EventId, Period, Side, Timestamp};
use linesman_market::Verdict;

use super::rules::{first_person, participants, same_participants};
use super::{Happening, Model, Offering, Report, Who};

/// A fitting event, and the distance of its nearest listing's start from the one in question.
type Fit = (EventId, Duration);

impl Model {
    pub(super) fn hear_event(
        &mut self,
        (feed, reference): (&str, &str),
        listing: &Listing,
        ts: Timestamp,
        now: Timestamp,
        told: Option<EventId>,
    ) -> Verdict {
        let held = self.offers.iter().position(|o| o.feed == feed && o.reference == reference);
        if let Some(held) = held.map(|at| &self.offers[at]) {
            if ts < held.ts {
                return Verdict::Superseded;
            }
            if held.active && held.listing == *listing {
                return Verdict::Unchanged;
            }
        }
        let stood_for = held.map(|at| self.offers[at].event);
        let known = held
            .filter(|at| self.still_means(&self.offers[*at], listing))
            .map(|at| self.offers[at].event)
            .or_else(|| self.same_event(feed, stood_for, listing));
        let id = known.unwrap_or_else(|| self.make_event(listing, ts, now, told));
        assert_eq!(told, Some(id), "the book took {listing:?} for another event");
        let left = stood_for.filter(|former| *former != id);
        if let Some(former) = left {
            self.leave(feed, reference, former, now);
        }
        let event = self.event_mut(id);
        event.mentioned = now;
        let lister = (feed.to_owned(), reference.to_owned());
        if !event.listers.contains(&lister) {
            event.listers.push(lister);
        }
        let swapped = is_turned(&event.fixture, &listing.fixture);
        self.offers.retain(|o| o.feed != feed || o.reference != reference);
        self.offers.push(Offering {
            feed: feed.to_owned(),
            reference: reference.to_owned(),
            event: id,
            swapped,
            active: true,
            ts,
            listing: listing.clone(),
        });
        self.follow_eldest(id);
        self.settle(feed, reference, now);
        if let Some(former) = left {
            self.settle_rest(former, now);
        }
        Verdict::Accepted
    }

    /// True if the participants are the same, or if only this feed lists the event and one participant stays. A ref
    /// of an event that is over is reused if its time differs.
    fn still_means(&self, offer: &Offering, listing: &Listing) -> bool {
        let Some(event) = self.events.iter().find(|event| event.id == offer.event) else {
            return false;
        };
        let me = (offer.feed.clone(), offer.reference.clone());
        let taken = event.listers.iter().any(|lister| lister.0 == me.0 && *lister != me);
        if event.sport != listing.sport || taken {
            return false;
        }
        let within = self.catalogue.sport(listing.sport).same_event_within;
        if event.status() == domain::Status::Final && apart(&offer.listing, listing) > within {
            return false;
        }
        if event.listers == [me] {
            return somebody_stays(&offer.listing.fixture, &listing.fixture);
        }
        let after = self.catalogue.sport(listing.sport).other_event_after;
        let far = |other: &&Offering| {
            (&other.feed, &other.reference) != (&offer.feed, &offer.reference)
                && apart(&other.listing, listing) > after
        };
        same_participants(&event.fixture, &listing.fixture)
            && !self.offers_of(event.id).iter().any(far)
            && (event.listers.is_empty() || !self.has_moved(offer, listing))
    }

    /// True if the listing no longer matches any other feed's here, or only that of a feed that lists both, and
    /// matches other feeds' listings elsewhere.
    fn has_moved(&self, offer: &Offering, listing: &Listing) -> bool {
        let me = &*offer.feed;
        let elsewhere: Vec<&Happening> = self
            .events
            .iter()
            .filter(|other| other.id != offer.event && other.sport == listing.sport)
            .filter(|other| !other.listers.iter().any(|(feed, _)| feed == me))
            .filter(|other| self.fits(listing, other.id, &[]).is_some())
            .collect();
        if self.fits(listing, offer.event, &[me]).is_none() {
            return !elsewhere.is_empty();
        }
        let all: Vec<&Happening> =
            elsewhere.iter().copied().chain([self.event(offer.event)]).collect();
        let lists = |event: &Happening, feed: &str| event.listers.iter().any(|l| l.0 == feed);
        let mut doubled: Vec<&str> = vec![me];
        for (feed, _) in all.iter().flat_map(|event| &event.listers) {
            if all.iter().filter(|event| lists(event, feed)).count() > 1 {
                doubled.push(feed);
            }
        }
        self.fits(listing, offer.event, &doubled).is_none()
            && elsewhere.iter().any(|other| self.fits(listing, other.id, &doubled).is_some())
    }

    /// The event of other feeds that fits best, or an unlisted one.
    fn same_event(
        &self,
        feed: &str,
        stood_for: Option<EventId>,
        listing: &Listing,
    ) -> Option<EventId> {
        let within = self.catalogue.sport(listing.sport).same_event_within;
        let others = || {
            let events = self.events.iter().filter(|event| event.sport == listing.sport);
            events.filter(|event| Some(event.id) != stood_for)
        };
        let fits: Vec<Fit> = others()
            .filter(|event| !event.listers.iter().any(|(f, _)| f == feed))
            .filter_map(|event| Some((event.id, self.fits(listing, event.id, &[])?)))
            .collect();
        let from = |event: &Happening| between(event.start, listing.commence_time);
        self.choose(listing, &fits).or_else(|| {
            others()
                .filter(|event| event.listers.is_empty() && from(event) <= within)
                .filter(|event| same_participants(&event.fixture, &listing.fixture))
                .min_by_key(|event| (from(event), event.id))
                .map(|event| event.id)
        })
    }

    /// The distance of the nearest listing of the event, if the new one certainly is the same event; ignores the
    /// listings of some feeds.
    fn fits(&self, listing: &Listing, id: EventId, ignored: &[&str]) -> Option<Duration> {
        let sport = self.catalogue.sport(listing.sport);
        let offers: Vec<&Offering> = self
            .offers_of(id)
            .into_iter()
            .filter(|offer| !ignored.contains(&&*offer.feed))
            .collect();
        let other = |offer: &&Offering| {
            !same_participants(&offer.listing.fixture, &listing.fixture)
                || apart(&offer.listing, listing) > sport.other_event_after
        };
        if offers.iter().any(other) {
            return None;
        }
        let nearest = offers.iter().map(|offer| apart(&offer.listing, listing)).min();
        nearest.filter(|nearest| *nearest <= sport.same_event_within)
    }

    /// The nearest event, then the one with more listers, then by refs. A feed that lists several of them is ignored
    /// if one has another lister.
    fn choose(&self, listing: &Listing, fits: &[Fit]) -> Option<EventId> {
        let mut doubled: Vec<&str> = vec![];
        for (at, (id, _)) in fits.iter().enumerate() {
            for (feed, _) in &self.event(*id).listers {
                let elsewhere = fits.iter().enumerate().any(|(n, (id, _))| {
                    n != at && self.event(*id).listers.iter().any(|l| l.0 == *feed)
                });
                if elsewhere {
                    doubled.push(feed);
                }
            }
        }
        let upheld: Vec<Fit> = fits
            .iter()
            .filter_map(|(id, _)| Some((*id, self.fits(listing, *id, &doubled)?)))
            .collect();
        let fits = if upheld.is_empty() { fits.to_vec() } else { upheld };
        let preference = |(id, gap): &&Fit| {
            let listers = &self.event(*id).listers;
            let counted = listers.iter().filter(|(feed, _)| !doubled.contains(&&**feed)).count();
            let first =
                listers.iter().map(|(feed, reference)| (reference.clone(), feed.clone())).min();
            (*gap, Reverse(counted), first, *id)
        };
        fits.iter().min_by_key(preference).map(|(id, _)| *id)
    }

    fn offers_of(&self, id: EventId) -> Vec<&Offering> {
        self.offers.iter().filter(|offer| offer.active && offer.event == id).collect()
    }

    /// Merges events that a new listing shows to be one.
    fn settle(&mut self, feed: &str, reference: &str, now: Timestamp) {
        let mine = |o: &&Offering| o.feed == feed && o.reference == reference && o.active;
        while let Some(offer) = self.offers.iter().find(mine) {
            let (id, listing) = (offer.event, offer.listing.clone());
            let event = self.event(id);
            let mut fits: Vec<Fit> = vec![];
            for other in self.events.iter().filter(|o| o.id != id && o.sport == event.sport) {
                let shared = self.shared(event, other);
                let far = shared.iter().any(|(_, far)| *far);
                let shared: Vec<&str> = shared.into_iter().map(|(shared, _)| shared).collect();
                if far || shared.contains(&feed) || !self.may_be_one(id, other.id) {
                    continue;
                }
                fits.extend(self.fits(&listing, other.id, &shared).map(|gap| (other.id, gap)));
            }
            let Some(other) = self.choose(&listing, &fits) else { return };
            self.merge(id, other, now);
        }
    }

    /// Compares an event again after a listing has left it: others that the listing contradicted may be one with it
    /// now.
    pub(super) fn settle_rest(&mut self, id: EventId, now: Timestamp) {
        let event = self.events.iter().find(|event| event.id == id);
        for (feed, reference) in event.map_or(vec![], |event| event.listers.clone()) {
            self.settle(&feed, &reference, now);
        }
    }

    /// Feeds that list both events, and whether their listings are further apart than those of one event.
    fn shared(&self, one: &Happening, other: &Happening) -> Vec<(&str, bool)> {
        let within = self.catalogue.sport(one.sport).same_event_within;
        let mut shared = vec![];
        for ours in self.offers_of(one.id) {
            for theirs in self.offers_of(other.id).into_iter().filter(|o| o.feed == ours.feed) {
                shared.push((&*ours.feed, apart(&ours.listing, &theirs.listing) > within));
            }
        }
        shared
    }

    fn may_be_one(&self, one: EventId, other: EventId) -> bool {
        let after = self.catalogue.sport(self.event(one).sport).other_event_after;
        self.offers_of(one).iter().all(|ours| {
            self.offers_of(other).iter().all(|theirs| {
                same_participants(&ours.listing.fixture, &theirs.listing.fixture)
                    && apart(&ours.listing, &theirs.listing) <= after
            })
        })
    }

    /// Moves the younger event's listings, prices and score to the elder.
    fn merge(&mut self, one: EventId, other: EventId, now: Timestamp) {
        let place = |id: EventId| self.events.iter().position(|event| event.id == id).unwrap();
        let (elder, younger) = if place(one) < place(other) { (one, other) } else { (other, one) };
        let gone = self.events.remove(place(younger));
        let turned = is_turned(&self.event(elder).fixture, &gone.fixture);
        for offer in self.offers.iter_mut().filter(|offer| offer.event == younger) {
            offer.event = elder;
            offer.swapped ^= turned;
        }
        self.take_prices(&gone, elder, turned);
        let event = self.event_mut(elder);
        event.listers.extend(gone.listers);
        event.mentioned = now;
        if gone.report_ts > event.report_ts {
            for (who, _) in &gone.report.leaders {
                meet(&mut event.players, *who, &gone.players);
            }
            event.report = if turned { turned_report(gone.report) } else { gone.report };
            (event.report_ts, event.changed) = (gone.report_ts, gone.changed);
            event.taken = gone.taken;
        }
        if event.status() == domain::Status::Final {
            self.suspend(|price| price.event == elder);
        }
        for (_, now_at) in &mut self.merged {
            if *now_at == younger {
                *now_at = elder;
            }
        }
        self.merged.push((younger, elder));
    }

    fn take_prices(&mut self, gone: &Happening, elder: EventId, turned: bool) {
        let (mut moved, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.prices).into_iter().partition(|price| price.event == gone.id);
        self.prices = kept;
        moved.retain(|price| {
            let held = self.prices.iter().position(|held| {
                held.event == elder
                    && held.bookmaker == price.bookmaker
                    && held.market == price.market
                    && held.group == price.group
            });
            let newer = held.is_none_or(|at| self.prices[at].ts < price.ts);
            if newer {
                held.map(|at| self.prices.remove(at));
            }
            newer
        });
        for mut price in moved {
            price.event = elder;
            for outcome in &mut price.outcomes {
                match outcome.who {
                    Who::Side(side) if turned => outcome.who = Who::Side(side.other()),
                    Who::Person(who) => {
                        meet(&mut self.event_mut(elder).players, who, &gone.players);
                    }
                    Who::Side(_) | Who::Draw | Who::Over | Who::Under => {}
                }
            }
            self.prices.push(price);
        }
    }
}

fn meet(players: &mut Vec<(usize, String)>, who: usize, known: &[(usize, String)]) {
    if !players.iter().any(|(held, _)| *held == who) {
        players.extend(known.iter().find(|(held, _)| *held == who).cloned());
    }
}

fn turned_report(mut report: Report) -> Report {
    (report.home, report.away) = (report.away, report.home);
    let turned = |p: &Period| Period { number: p.number, home: p.away, away: p.home };
    report.periods = report.periods.iter().map(turned).collect();
    report.winner = report.winner.map(Side::other);
    report
}

/// True if two fixtures name the same people in opposite order.
fn is_turned(one: &Fixture, other: &Fixture) -> bool {
    same_participants(one, other) && first_person(one) != first_person(other)
}

fn somebody_stays(before: &Fixture, now: &Fixture) -> bool {
    let (one, other) = participants(before);
    let (first, second) = participants(now);
    let stays = |who: usize| who == first || Some(who) == second;
    stays(one) || other.is_some_and(stays)
}

fn apart(one: &Listing, other: &Listing) -> Duration {
    between(one.commence_time, other.commence_time)
}

fn between(one: Timestamp, other: Timestamp) -> Duration {
    one.since(other).max(other.since(one))
}

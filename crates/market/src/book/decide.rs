//! Decides about a message without changing anything.

use domain::market::OutcomeRule;
use domain::message::{
    Body, Correction, FUTURE_TS_MS_MAX, FeedMessage, Listing, MARKETS_MAX, OddsBody, Reject,
    RejectCode, ScoreBody,
};
use domain::{BookmakerId, EventId, Side, Sport, SportId, Timestamp};

use crate::book::event::{Event, FeedIx};
use crate::book::place::Fit;
use crate::book::resolve::Speaker;
use crate::book::{Book, Decision, Oddity, Offer, OutcomeName, Verdict, slot_key_of};
use crate::change::{Change, Joined, Listed, MarketKey, Quoted, QuotedOutcome, Reported, Who};
use crate::freshness::Source;
use crate::matching::{Contest, Likeness, check_names, effort, same_names};

/// Intermediate results of deciding on a listing, for absorbing it.
#[derive(Debug)]
pub(super) struct ListingFacts {
    pub(super) contest: Contest,
    /// The index keys of the listing.
    pub(super) keys: Option<Vec<u64>>,
    /// No listed event is similar, so nothing else can follow.
    pub(super) alone: bool,
}

/// The time of a message according to its source.
#[derive(Clone, Copy, Debug)]
enum SourceTime {
    At(Timestamp),
    /// The message has no time; this is its arrival.
    ByNow(Timestamp),
}

impl SourceTime {
    fn at(self) -> Timestamp {
        match self {
            Self::At(ts) | Self::ByNow(ts) => ts,
        }
    }

    /// The new time, replacing `held`; `None` if the held one is newer. A message without a time counts as newer than
    /// the held one, even if the clock was set back a little.
    fn after(self, held: Timestamp) -> Option<Timestamp> {
        match self {
            Self::At(ts) => (ts >= held).then_some(ts),
            Self::ByNow(now) => Some(now.max(held)),
        }
    }
}

impl Book {
    /// Decides what a message of `feed` changes at `now`, if anything.
    ///
    /// # Errors
    /// The message is rejected, with the reason.
    pub fn decide(
        &self,
        feed: &str,
        message: &FeedMessage,
        now: Timestamp,
    ) -> Result<Decision, Reject> {
        self.judge(feed, message, now).map(|(decision, _)| decision)
    }

    /// As [`Book::decide`], but also returns the intermediate results for a listing, which are expensive to compute
    /// twice.
    pub(super) fn judge(
        &self,
        feed: &str,
        message: &FeedMessage,
        now: Timestamp,
    ) -> Result<(Decision, Option<ListingFacts>), Reject> {
        effort::begin();
        let source_time = message.ts.map_or(SourceTime::ByNow(now), SourceTime::At);
        let ts = source_time.at();
        if ts.as_millis() > now.as_millis().saturating_add(FUTURE_TS_MS_MAX) {
            let text = format!("`ts` {ts} is more than 5 s ahead of the service's clock, {now}");
            return Err(Reject::new(RejectCode::FutureTs, text));
        }
        let decision = match &message.body {
            Body::Event { reference, listing } => {
                self.check_start(listing.commence_time, now)?;
                return self.decide_event(feed, reference, listing, source_time);
            }
            Body::Odds(odds) => {
                let decision = self.decide_odds(feed, odds, source_time)?;
                let event = self.offered(feed, &odds.reference)?.1;
                self.pace_reads(decision, message, odds.bookmaker, Some(event.sport))
            }
            Body::Score(score) => self.decide_score(feed, score, source_time, now)?,
            Body::Remove { reference } => self.decide_remove(feed, reference, source_time)?,
            Body::Heartbeat { bookmaker, sport } => {
                let decision = self.decide_beat(*bookmaker, *sport, source_time);
                self.pace_reads(decision, message, *bookmaker, *sport)
            }
        };
        Ok((decision, None))
    }

    fn decide_event(
        &self,
        feed: &str,
        reference: &str,
        listing: &Listing,
        source_time: SourceTime,
    ) -> Result<(Decision, Option<ListingFacts>), Reject> {
        let feed_ix = self.feed_ix(feed);
        let offer = self.offer(feed_ix, reference);
        let Some(ts) = offer.map_or(Some(source_time.at()), |offer| source_time.after(offer.ts))
        else {
            return Ok((Decision::of(Verdict::Superseded), None));
        };
        if offer.is_some_and(|offer| offer.active && self.says_the_same(offer, listing)) {
            return Ok((Decision::of(Verdict::Unchanged), None));
        }
        check_names(listing)?;
        let contest = Contest::parse(&self.lexicon, listing.sport, &listing.fixture);
        let listed = (&*listing.competition, &listing.fixture);
        let held = offer.map_or(0, |offer| offer.weight(reference));
        let more = Self::weigh_listing(reference, listed, &contest).saturating_sub(held);
        let founds = Self::weigh_event(listed);
        // Check before searching for its event. A new listing may need an event of its own.
        self.check_room(feed_ix, if offer.is_none() { more + founds } else { more })?;
        let view = self.listing_face(feed, listing, &contest);
        let known = feed_ix.zip(offer);
        let stays =
            known.filter(|(ix, offer)| self.stays_with((*ix, reference), offer, (listing, &view)));
        let mut follow = Vec::new();
        let mut oddity = None;
        let (mut keys, mut alone) = (None, false);
        let (event, swapped) = match stays {
            Some((_, offer)) => {
                let event = self.event(offer.event);
                let swapped = event.is_some_and(|event| self.is_turned(feed, event, &view));
                oddity = self.oddity_of_correction(offer, (listing, &contest), swapped);
                (offer.event, swapped)
            }
            None => {
                let place = self.place((feed_ix, reference), listing, &view);
                (keys, alone) = (Some(place.keys), offer.is_none() && place.alone);
                let reused = offer.is_some_and(|offer| offer.active);
                let duplicate = place.duplicate.then_some(Oddity::Duplicate);
                oddity = oddity.or(reused.then_some(Oddity::ReusedRef)).or(duplicate);
                match place.same {
                    Some((id, Some(fit))) => {
                        follow = self.follow_join((feed, reference), id, listing, &fit);
                        (id, fit.swapped)
                    }
                    Some((id, None)) => {
                        let event = self.event(id);
                        (id, event.is_some_and(|event| self.is_turned(feed, event, &view)))
                    }
                    None => {
                        self.check_room(feed_ix, more + founds)?;
                        (self.new_id(reference), false)
                    }
                }
            }
        };
        let listed = Listed {
            event,
            feed: feed.into(),
            reference: reference.into(),
            sport: self.catalogue.sport(listing.sport).key.clone(),
            competition: listing.competition.clone(),
            commence_time: listing.commence_time,
            fixture: listing.fixture.clone(),
            swapped,
            ts,
        };
        let decision = Decision { follow, oddity, ..Decision::change(Change::Listed(listed)) };
        Ok((decision, Some(ListingFacts { contest, keys, alone })))
    }

    /// The reason why a ref was taken for an event, and the aliases learned from it.
    fn follow_join(
        &self,
        (feed, reference): (&str, &str),
        event: EventId,
        listing: &Listing,
        fit: &Fit,
    ) -> Vec<Change> {
        let (with, with_reference) = &fit.with;
        let joined = Joined {
            feed: feed.into(),
            reference: reference.into(),
            with_feed: self.feed(*with).map_or_else(Box::default, |feed| feed.name.clone()),
            with_reference: with_reference.clone(),
            evidence: fit.evidence,
        };
        let event = self.event(event);
        let taught = event.map(|event| self.taught_by_join(feed, event, &listing.fixture, fit));
        [Change::Joined(joined)].into_iter().chain(taught.into_iter().flatten()).collect()
    }

    fn oddity_of_correction(
        &self,
        offer: &Offer,
        (listing, contest): (&Listing, &Contest),
        swapped: bool,
    ) -> Option<Oddity> {
        if offer.active && same_names(&offer.fixture, &listing.fixture) {
            return (offer.swapped != swapped).then_some(Oddity::Turned);
        }
        let sides = offer.contest.compare(contest).sides;
        sides.iter().any(|side| *side < Likeness::Kin).then_some(Oddity::Replaced)
    }

    fn says_the_same(&self, offer: &Offer, listing: &Listing) -> bool {
        offer.competition == listing.competition
            && offer.commence_time == listing.commence_time
            && offer.fixture == listing.fixture
            && self.event(offer.event).is_some_and(|event| event.sport == listing.sport)
    }

    fn decide_odds(
        &self,
        feed: &str,
        odds: &OddsBody,
        source_time: SourceTime,
    ) -> Result<Decision, Reject> {
        let (offer, event) = self.offered(feed, &odds.reference)?;
        let sport = self.catalogue.sport(event.sport);
        check_market(sport, odds)?;
        if event.is_final() && !odds.outcomes.is_empty() {
            let text = "the event is final and takes no more odds; a score with `correction: true` reopens it";
            return Err(Reject::new(RejectCode::IllegalTransition, text));
        }
        let group = odds.group.as_deref();
        let key = slot_key_of(event.id, &self.catalogue, odds.bookmaker, odds.market, group);
        let slot = event.slots.get(&key);
        let feed_ix = self.feed_ix(feed);
        if slot.is_none() {
            // Check before resolving the names.
            self.check_room(feed_ix, 1)?;
        }
        let lexicon = &self.lexicon;
        let outcomes = Speaker { event, offer, sport, lexicon }.outcomes(odds)?;
        let market = MarketKey {
            bookmaker: self.catalogue.bookmaker(odds.bookmaker).key.clone(),
            market: odds.market,
            group: odds.group.clone(),
        };
        let Some(ts) = slot.map_or(Some(source_time.at()), |slot| source_time.after(slot.ts))
        else {
            return Ok(Decision::of(Verdict::Superseded));
        };
        if let Some(slot) = slot {
            let held = slot.open.as_ref().map_or(&[][..], |record| &record.outcomes);
            if same_outcomes(event, held, &outcomes) {
                let newer = ts > slot.ts;
                let change = newer.then_some(Change::Confirmed { event: event.id, market, ts });
                return Ok(Decision { change, ..Decision::of(Verdict::Unchanged) });
            }
        } else if event.slots.len() >= MARKETS_MAX {
            let text = format!("the event has {MARKETS_MAX} markets already");
            return Err(Reject::new(RejectCode::TooLarge, text));
        }
        self.check_room_for_odds(feed_ix, event, (group, slot), &outcomes)?;
        Ok(Decision::change(Change::Quoted(Quoted {
            event: event.id,
            market,
            feed: feed.into(),
            outcomes,
            ts,
        })))
    }

    fn decide_score(
        &self,
        feed: &str,
        body: &ScoreBody,
        source_time: SourceTime,
        now: Timestamp,
    ) -> Result<Decision, Reject> {
        let (offer, event) = self.offered(feed, &body.reference)?;
        self.check_begun(body.status, event.commence_time.min(offer.commence_time), now)?;
        // A time ahead of ours must not make other feeds' reports look old until it has passed.
        let after = |held: Timestamp| source_time.after(held.min(now)).map(|ts| ts.max(held));
        let Some(ts) = event.score_ts.map_or(Some(source_time.at()), after) else {
            return Ok(Decision::of(Verdict::Superseded));
        };
        let (sport, lexicon) = (self.catalogue.sport(event.sport), &*self.lexicon);
        let report = Speaker { event, offer, sport, lexicon }.score(body)?;
        let unchanged = event.score_ts.is_some() && says_the_same(event, &report);
        if unchanged {
            return Ok(Decision::of(Verdict::Unchanged));
        }
        if body.correction == Correction::No {
            let next = domain::Score {
                status: report.status,
                home: report.home,
                away: report.away,
                winner: report.winner,
                ..domain::Score::none_yet()
            };
            event
                .score
                .may_become(&next)
                .map_err(|e| Reject::new(RejectCode::IllegalTransition, e.to_string()))?;
        }
        self.check_room_for_score(self.feed_ix(feed), event, &report)?;
        Ok(Decision::change(Change::Scored { event: event.id, score: report, ts }))
    }

    fn decide_remove(
        &self,
        feed: &str,
        reference: &str,
        source_time: SourceTime,
    ) -> Result<Decision, Reject> {
        let offer =
            self.offer(self.feed_ix(feed), reference).ok_or_else(|| unknown_ref(reference))?;
        let Some(ts) = source_time.after(offer.ts) else {
            return Ok(Decision::of(Verdict::Superseded));
        };
        if !offer.active {
            return Ok(Decision::of(Verdict::Unchanged));
        }
        Ok(Decision::change(Change::Withdrawn {
            feed: feed.into(),
            reference: reference.into(),
            ts,
        }))
    }

    fn decide_beat(
        &self,
        bookmaker: BookmakerId,
        sport: Option<SportId>,
        source_time: SourceTime,
    ) -> Decision {
        let ts = source_time.at();
        let beats: Vec<Timestamp> = match sport {
            Some(sport) => {
                vec![self.sources.get(&(sport, bookmaker)).unwrap_or(&Source::NEVER).beat_at]
            }
            None => {
                self.sources().filter(|(_, of, _)| *of == bookmaker).map(|s| s.2.beat_at).collect()
            }
        };
        if beats.iter().any(|held| ts > *held) {
            return Decision::change(Change::Beat {
                bookmaker: self.catalogue.bookmaker(bookmaker).key.clone(),
                sport: sport.map(|sport| self.catalogue.sport(sport).key.clone()),
                ts,
            });
        }
        let older =
            !beats.is_empty() && beats.iter().all(|held| source_time.after(*held).is_none());
        Decision::of(if older { Verdict::Superseded } else { Verdict::Unchanged })
    }

    /// Inserts before a read how long it keeps its sources fresh, if that changed and the read is the newest.
    fn pace_reads(
        &self,
        decision: Decision,
        message: &FeedMessage,
        bookmaker: BookmakerId,
        sport: Option<SportId>,
    ) -> Decision {
        let ts = match &decision.change {
            Some(Change::Quoted(quoted)) => quoted.ts,
            Some(Change::Confirmed { ts, .. } | Change::Beat { ts, .. }) => *ts,
            _ => return decision,
        };
        let fresh_for_s = message.fresh_for_s.unwrap_or(0);
        let of_bookmaker = |sport: SportId| (sport, self.source(sport, bookmaker));
        let read: Vec<(SportId, Option<Source>)> = match sport {
            Some(sport) => vec![of_bookmaker(sport)],
            None => self
                .sources()
                .filter(|(_, of, _)| *of == bookmaker)
                .map(|(sport, _, source)| (sport, Some(source)))
                .collect(),
        };
        let is_newest = |source: &Option<Source>| source.is_none_or(|held| ts >= held.read_at);
        let paced = read.into_iter().filter(|(sport, source)| {
            is_newest(source) && self.pace(*sport, bookmaker) != fresh_for_s
        });
        let mut changes = paced.map(|(sport, _)| Change::Paced {
            bookmaker: self.catalogue.bookmaker(bookmaker).key.clone(),
            sport: self.catalogue.sport(sport).key.clone(),
            fresh_for_s,
        });
        let Some(first) = changes.next() else { return decision };
        let follow = changes.chain(decision.change).chain(decision.follow).collect();
        Decision { change: Some(first), follow, ..decision }
    }

    fn offer(&self, feed: Option<FeedIx>, reference: &str) -> Option<&Offer> {
        self.feed(feed?)?.offer(reference)
    }

    /// The event that a feed means by a ref it has listed.
    fn offered(&self, feed: &str, reference: &str) -> Result<(&Offer, &Event), Reject> {
        self.offer(self.feed_ix(feed), reference)
            .filter(|offer| offer.active)
            .and_then(|offer| Some((offer, self.event(offer.event)?)))
            .ok_or_else(|| unknown_ref(reference))
    }
}

impl Decision {
    fn of(verdict: Verdict) -> Self {
        Self { verdict, change: None, follow: Vec::new(), oddity: None }
    }

    fn change(change: Change) -> Self {
        Self { change: Some(change), ..Self::of(Verdict::Accepted) }
    }
}

fn unknown_ref(reference: &str) -> Reject {
    let text = format!("no `event` with ref `{reference}` is listed by this feed; send it first");
    Reject::new(RejectCode::UnknownRef, text)
}

fn check_market(sport: &Sport, odds: &OddsBody) -> Result<(), Reject> {
    let key = odds.market.key();
    if !sport.offers(odds.market) {
        let known: Vec<&str> = sport.markets.iter().map(|market| market.key()).collect();
        let text = format!("{} has no market `{key}`; it has {}", sport.key, known.join(", "));
        return Err(Reject::new(RejectCode::MarketNotInSport, text));
    }
    if odds.group.is_some() && odds.market.outcome_rule() != OutcomeRule::Pairing {
        let text = format!("`group` goes with matchup and three_ball, not with {key}");
        return Err(Reject::new(RejectCode::InvalidMessage, text));
    }
    Ok(())
}

/// True if the held outcomes equal the offered ones, in any order.
fn same_outcomes(event: &Event, held: &[crate::book::Outcome], offered: &[QuotedOutcome]) -> bool {
    held.len() == offered.len()
        && offered.iter().all(|outcome| {
            let name = match &outcome.who {
                Who::Side(Side::Home) => Some(OutcomeName::Home),
                Who::Side(Side::Away) => Some(OutcomeName::Away),
                Who::Draw => Some(OutcomeName::Draw),
                Who::Over => Some(OutcomeName::Over),
                Who::Under => Some(OutcomeName::Under),
                Who::Player(name) => event.field.find(name).ok().map(OutcomeName::Entrant),
            };
            name.is_some_and(|name| {
                held.binary_search_by(|o| {
                    event.order_outcomes((o.name, o.point), (name, outcome.point))
                })
                .ok()
                .and_then(|at| held.get(at))
                .is_some_and(|held| held.quote == outcome.quote)
            })
        })
}

fn says_the_same(event: &Event, report: &Reported) -> bool {
    let held = &event.score;
    held.status == report.status
        && held.home == report.home
        && held.away == report.away
        && held.periods == report.periods
        && held.winner == report.winner
        && held.leaders.len() == report.leaders.len()
        && held.leaders.iter().zip(&report.leaders).all(|(leader, (name, rounds))| {
            event.outcome_text(OutcomeName::Entrant(leader.entrant)) == &**name
                && leader.rounds == *rounds
        })
}

//! A second, naive implementation of the book: flat lists of facts, searched from end to end, nothing shared, nothing
//! precomputed. It follows the rules of `docs/api/promises.md` and `docs/ingest.md`, not the book's code.

mod answers;
mod coverage;
mod identity;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use domain::market::OutcomeRule;
use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, RejectCode, ScoreBody,
};
use domain::{
    BookmakerId, Catalogue, EventId, Line, Market, Period, Quote, Side, SportId, Status, Timestamp,
};
use linesman_market::{Lifetimes, Verdict};

use crate::test_book::Outcome;
use crate::vocabulary::person;

use rules::{confirm_all, goes_back, means_draw, same_participants, side_of};

/// All facts.
#[derive(Debug)]
pub(crate) struct Model {
    catalogue: Arc<Catalogue>,
    pub(crate) events: Vec<Happening>,
    offers: Vec<Offering>,
    prices: Vec<Pricing>,
    sources: Vec<Reading>,
    /// The feeds that have quoted a bookmaker in a sport.
    quoted: Vec<(SportId, BookmakerId, String)>,
    ids_made: Vec<EventId>,
    /// Merged ids with the event that each means, in the order of the merges.
    pub(crate) merged: Vec<(EventId, EventId)>,
}

#[derive(Debug)]
pub(crate) struct Happening {
    pub(crate) id: EventId,
    pub(crate) sport: SportId,
    pub(crate) start: Timestamp,
    competition: String,
    fixture: Fixture,
    /// Person and first spelling, in the order of first mention.
    players: Vec<(usize, String)>,
    /// Feed and ref, in the order of arrival.
    listers: Vec<(String, String)>,
    mentioned: Timestamp,
    report: Report,
    report_ts: Option<Timestamp>,
    changed: Timestamp,
    /// Arrival time of the score.
    taken: Timestamp,
}

#[derive(Debug, PartialEq)]
struct Report {
    status: Status,
    home: Option<i32>,
    away: Option<i32>,
    periods: Vec<Period>,
    winner: Option<Side>,
    leaders: Vec<(usize, Vec<i32>)>,
}

#[derive(Debug)]
struct Offering {
    feed: String,
    reference: String,
    event: EventId,
    swapped: bool,
    active: bool,
    ts: Timestamp,
    listing: Listing,
}

/// A bookmaker's market of an event, with or without prices.
#[derive(Debug)]
struct Pricing {
    event: EventId,
    bookmaker: BookmakerId,
    market: Market,
    group: Option<String>,
    feed: String,
    ts: Timestamp,
    confirmed: Timestamp,
    /// `None` if suspended.
    outcomes: Vec<Priced>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Priced {
    who: Who,
    quote: Quote,
    point: Option<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Side(Side),
    Draw,
    Over,
    Under,
    Person(usize),
}

#[derive(Debug)]
struct Reading {
    sport: SportId,
    bookmaker: BookmakerId,
    read: Option<Timestamp>,
    beat: Option<Timestamp>,
    latency_ms: i64,
}

impl Model {
    pub(crate) fn new(catalogue: Arc<Catalogue>) -> Self {
        let (events, offers, prices, sources) = (vec![], vec![], vec![], vec![]);
        let (quoted, ids_made, merged) = (vec![], vec![], vec![]);
        Self { catalogue, events, offers, prices, sources, quoted, ids_made, merged }
    }

    /// `told` is the id that the book assigned, since the model cannot know the id of a new event.
    pub(crate) fn hear(
        &mut self,
        feed: &str,
        message: &FeedMessage,
        now: Timestamp,
        told: Option<EventId>,
    ) -> Outcome {
        if message.ts.is_some_and(|ts| ts > now.plus(Duration::from_secs(5))) {
            return Err(RejectCode::FutureTs);
        }
        // A message without a time is at least as new as the held one.
        let held = self.held_ts(feed, &message.body, now);
        let ts = message.ts.unwrap_or_else(|| held.map_or(now, |held| now.max(held)));
        match &message.body {
            Body::Event { reference, listing } => {
                Ok(self.hear_event((feed, reference), listing, ts, now, told))
            }
            Body::Odds(odds) => self.hear_odds(feed, odds, ts, now),
            Body::Score(score) => self.hear_score(feed, score, ts, now),
            Body::Remove { reference } => self.hear_remove(feed, reference, ts, now),
            Body::Heartbeat { bookmaker, sport } => {
                let verdict = self.hear_beat(*bookmaker, *sport, ts, now);
                let older = message.ts.is_none() && verdict == Verdict::Superseded;
                Ok(if older { Verdict::Unchanged } else { verdict })
            }
        }
    }

    /// The time of the held data that a message would replace.
    fn held_ts(&self, feed: &str, body: &Body, now: Timestamp) -> Option<Timestamp> {
        let of = |reference: &str| {
            self.offers.iter().find(|o| o.feed == feed && *o.reference == *reference)
        };
        match body {
            Body::Event { reference, .. } | Body::Remove { reference } => Some(of(reference)?.ts),
            Body::Score(score) => {
                let held = self.event(of(&score.reference)?.event).report_ts;
                held.map(|held| held.min(now))
            }
            Body::Odds(odds) => {
                let event = of(&odds.reference)?.event;
                let held = self.prices.iter().find(|price| {
                    price.event == event
                        && price.bookmaker == odds.bookmaker
                        && price.market == odds.market
                        && price.group.as_deref() == odds.group.as_deref()
                });
                held.map(|price| price.ts)
            }
            Body::Heartbeat { .. } => None,
        }
    }

    fn make_event(
        &mut self,
        listing: &Listing,
        ts: Timestamp,
        now: Timestamp,
        told: Option<EventId>,
    ) -> EventId {
        let id = told.unwrap();
        assert!(!self.ids_made.contains(&id), "{id} is another event's");
        self.ids_made.push(id);
        self.events.push(Happening {
            id,
            sport: listing.sport,
            start: listing.commence_time,
            competition: listing.competition.to_string(),
            fixture: listing.fixture.clone(),
            players: vec![],
            listers: vec![],
            mentioned: now,
            report: Report {
                status: Status::Scheduled,
                home: None,
                away: None,
                periods: vec![],
                winner: None,
                leaders: vec![],
            },
            report_ts: None,
            changed: ts,
            taken: now,
        });
        id
    }

    /// Removes the ref's listing, and the feed's prices with its last listing.
    fn leave(&mut self, feed: &str, reference: &str, id: EventId, now: Timestamp) {
        let Some(event) = self.events.iter_mut().find(|event| event.id == id) else {
            return;
        };
        let me = (feed.to_owned(), reference.to_owned());
        if !event.listers.contains(&me) {
            return;
        }
        event.listers.retain(|lister| *lister != me);
        event.mentioned = now;
        let still = event.listers.iter().any(|lister| lister.0 == feed);
        self.suspend(|price| price.event == id && price.feed == feed && !still);
        self.follow_eldest(id);
    }

    fn follow_eldest(&mut self, id: EventId) {
        let event = self.events.iter_mut().find(|event| event.id == id).unwrap();
        let Some((feed, reference)) = event.listers.first() else {
            return;
        };
        let eldest = |o: &&Offering| o.feed == *feed && o.reference == *reference;
        let offer = self.offers.iter().find(eldest).unwrap();
        let mut fixture = offer.listing.fixture.clone();
        if let (Fixture::HeadToHead { home, away }, true) = (&mut fixture, offer.swapped) {
            std::mem::swap(home, away);
        }
        let others = !same_participants(&event.fixture, &fixture);
        event.fixture = fixture;
        event.start = offer.listing.commence_time;
        event.competition = offer.listing.competition.to_string();
        if others {
            self.suspend(|price| price.event == id);
        }
    }

    fn suspend(&mut self, which: impl Fn(&Pricing) -> bool) {
        for price in self.prices.iter_mut().filter(|price| which(price)) {
            price.outcomes.clear();
        }
    }

    fn listed(&self, feed: &str, reference: &str) -> Result<(&Offering, &Happening), RejectCode> {
        let mine = |o: &&Offering| o.feed == feed && o.reference == reference && o.active;
        let offer = self.offers.iter().find(mine).ok_or(RejectCode::UnknownRef)?;
        let event = self.events.iter().find(|event| event.id == offer.event);
        Ok((offer, event.ok_or(RejectCode::UnknownRef)?))
    }

    fn hear_odds(&mut self, feed: &str, odds: &OddsBody, ts: Timestamp, now: Timestamp) -> Outcome {
        let (_, event) = self.listed(feed, &odds.reference)?;
        let (id, sport) = (event.id, event.sport);
        if !self.catalogue.sport(sport).markets.contains(&odds.market) {
            return Err(RejectCode::MarketNotInSport);
        }
        let pairing = [Market::Matchup, Market::ThreeBall].contains(&odds.market);
        if odds.group.is_some() && !pairing {
            return Err(RejectCode::InvalidMessage);
        }
        if event.report.status == Status::Final && !odds.outcomes.is_empty() {
            return Err(RejectCode::IllegalTransition);
        }
        let mut outcomes: Vec<Priced> = vec![];
        let mut twice = false;
        for offered in &odds.outcomes {
            let who = self.who(event, odds.market, &offered.name)?;
            twice |= outcomes.iter().any(|held| held.who == who && held.point == offered.point);
            outcomes.push(Priced { who, quote: offered.quote, point: offered.point });
        }
        if twice {
            return Err(RejectCode::InvalidMessage);
        }
        let group = odds.group.as_deref().map(str::to_owned);
        let place = self.prices.iter().position(|price| {
            price.event == id
                && price.bookmaker == odds.bookmaker
                && price.market == odds.market
                && price.group == group
        });
        if let Some(held) = place.map(|at| &mut self.prices[at]) {
            if ts < held.ts {
                return Ok(Verdict::Superseded);
            }
            let same = held.outcomes.len() == outcomes.len()
                && outcomes.iter().all(|outcome| held.outcomes.contains(outcome));
            if same && ts == held.ts {
                return Ok(Verdict::Unchanged);
            }
            if same {
                held.ts = ts;
                held.confirmed = held.confirmed.max(ts);
                self.event_mut(id).mentioned = now;
                self.source(sport, odds.bookmaker).hear(ts, now);
                return Ok(Verdict::Unchanged);
            }
        }
        place.map(|at| self.prices.remove(at));
        for offered in &odds.outcomes {
            self.meet(id, odds.market, &offered.name);
        }
        self.event_mut(id).mentioned = now;
        self.source(sport, odds.bookmaker).hear(ts, now);
        self.quoted.push((sport, odds.bookmaker, feed.to_owned()));
        self.prices.push(Pricing {
            event: id,
            bookmaker: odds.bookmaker,
            market: odds.market,
            group,
            feed: feed.to_owned(),
            ts,
            confirmed: ts,
            outcomes,
        });
        Ok(Verdict::Accepted)
    }

    fn who(&self, event: &Happening, market: Market, name: &str) -> Result<Who, RejectCode> {
        let draw = means_draw(name);
        match market.outcome_rule() {
            OutcomeRule::Sides if draw && self.catalogue.sport(event.sport).draw => Ok(Who::Draw),
            OutcomeRule::Sides => {
                side_of(&event.fixture, name).map(Who::Side).ok_or(RejectCode::UnknownOutcome)
            }
            OutcomeRule::OverUnder => match &*name.to_lowercase() {
                "over" => Ok(Who::Over),
                "under" => Ok(Who::Under),
                _ => Err(RejectCode::UnknownOutcome),
            },
            OutcomeRule::Pairing if draw => Ok(Who::Draw),
            OutcomeRule::Pairing | OutcomeRule::Entrants => Ok(Who::Person(person(name).unwrap())),
        }
    }

    /// Adds a player to the event at the first mention.
    fn meet(&mut self, id: EventId, market: Market, name: &str) {
        let is_player = match market.outcome_rule() {
            OutcomeRule::Entrants => true,
            OutcomeRule::Pairing => !means_draw(name),
            OutcomeRule::Sides | OutcomeRule::OverUnder => false,
        };
        if let Some(who) = person(name).filter(|_| is_player) {
            let players = &mut self.event_mut(id).players;
            if !players.iter().any(|(known, _)| *known == who) {
                players.push((who, name.to_owned()));
            }
        }
    }

    fn hear_score(
        &mut self,
        feed: &str,
        body: &ScoreBody,
        ts: Timestamp,
        now: Timestamp,
    ) -> Outcome {
        let (offer, event) = self.listed(feed, &body.reference)?;
        let (id, swapped) = (event.id, offer.swapped);
        // A time ahead of the clock does not make other reports superseded.
        if event.report_ts.is_some_and(|held| ts < held.min(now)) {
            return Ok(Verdict::Superseded);
        }
        let ts = event.report_ts.map_or(ts, |held| ts.max(held));
        let is_field = matches!(event.fixture, Fixture::Field { .. });
        let winner = match &body.winner {
            Some(name) if !is_field && !means_draw(name) => {
                Some(side_of(&event.fixture, name).ok_or(RejectCode::UnknownOutcome)?)
            }
            _ => None,
        };
        let turned = |(home, away)| if swapped { (away, home) } else { (home, away) };
        let (home, away) = if is_field { (None, None) } else { turned((body.home, body.away)) };
        let periods = body.periods.iter().filter(|_| !is_field).map(|period| {
            let (home, away) =
                if swapped { (period.away, period.home) } else { (period.home, period.away) };
            Period { number: period.number, home, away }
        });
        let leaders = body.leaders.iter().filter(|_| is_field);
        let report = Report {
            status: body.status,
            home,
            away,
            periods: periods.collect(),
            winner,
            leaders: leaders
                .map(|(name, rounds)| (person(name).unwrap(), rounds.clone()))
                .collect(),
        };
        if event.report_ts.is_some() && event.report == report {
            return Ok(Verdict::Unchanged);
        }
        if body.correction == Correction::No && goes_back(&event.report, &report) {
            return Err(RejectCode::IllegalTransition);
        }
        if is_field {
            for (name, _) in &body.leaders {
                self.meet(id, Market::Outright, name);
            }
        }
        let event = self.event_mut(id);
        event.mentioned = now;
        event.report_ts = Some(ts);
        if event.report != report {
            event.changed = ts;
            event.taken = now;
            event.report = report;
        }
        if event.report.status == Status::Final {
            self.suspend(|price| price.event == id);
        }
        Ok(Verdict::Accepted)
    }

    fn hear_remove(
        &mut self,
        feed: &str,
        reference: &str,
        ts: Timestamp,
        now: Timestamp,
    ) -> Outcome {
        let mine = |o: &&mut Offering| o.feed == feed && o.reference == reference;
        let offer = self.offers.iter_mut().find(mine).ok_or(RejectCode::UnknownRef)?;
        if ts < offer.ts {
            return Ok(Verdict::Superseded);
        }
        if !offer.active {
            return Ok(Verdict::Unchanged);
        }
        offer.active = false;
        offer.ts = ts;
        let id = offer.event;
        self.leave(feed, reference, id, now);
        self.settle_rest(id, now);
        Ok(Verdict::Accepted)
    }

    fn hear_beat(
        &mut self,
        bookmaker: BookmakerId,
        sport: Option<SportId>,
        ts: Timestamp,
        now: Timestamp,
    ) -> Verdict {
        let known = |source: &Reading| source.bookmaker == bookmaker;
        let meant = |source: &Reading| known(source) && sport.is_none_or(|s| s == source.sport);
        let beats: Vec<Option<Timestamp>> = match sport {
            Some(_) if !self.sources.iter().any(meant) => vec![None],
            _ => self.sources.iter().filter(|s| meant(s)).map(|s| s.beat).collect(),
        };
        if !beats.iter().any(|held| held.is_none_or(|held| ts > held)) {
            let older = beats.iter().all(|held| held.is_some_and(|held| ts < held));
            return if older && !beats.is_empty() {
                Verdict::Superseded
            } else {
                Verdict::Unchanged
            };
        }
        if let Some(sport) = sport {
            self.source(sport, bookmaker);
        }
        for source in &mut self.sources {
            if !meant(source) {
                continue;
            }
            source.hear(ts, now);
            if source.beat.is_none_or(|held| ts > held) {
                source.beat = Some(ts);
                confirm_all(&mut self.prices, &self.events, source, ts);
            }
        }
        Verdict::Accepted
    }

    /// Removals due to the time alone: events, then sources by key.
    pub(crate) fn expire(
        &mut self,
        now: Timestamp,
        stay: Lifetimes,
    ) -> (Vec<EventId>, Vec<(SportId, BookmakerId)>) {
        let over = |event: &Happening| {
            if event.report.status == Status::Final {
                now.since(event.taken) >= stay.final_retention
            } else if event.listers.is_empty() {
                now.since(event.mentioned) >= stay.final_retention
            } else {
                now.since(event.start.max(event.mentioned)) >= stay.forget_after
            }
        };
        let mut events: Vec<EventId> =
            self.events.iter().filter(|event| over(event)).map(|event| event.id).collect();
        events.sort_unstable();
        let silent = |source: &&Reading| {
            now.since(source.read.unwrap()) >= stay.forget_after
                && !self.prices.iter().any(|price| {
                    price.bookmaker == source.bookmaker
                        && !price.outcomes.is_empty()
                        && self.event(price.event).sport == source.sport
                })
        };
        let mut sources: Vec<(SportId, BookmakerId)> =
            self.sources.iter().filter(silent).map(|s| (s.sport, s.bookmaker)).collect();
        sources.sort_unstable();
        self.events.retain(|event| !events.contains(&event.id));
        self.merged.retain(|(_, elder)| !events.contains(elder));
        self.offers.retain(|offer| !events.contains(&offer.event));
        self.prices.retain(|price| !events.contains(&price.event));
        self.sources.retain(|source| !sources.contains(&(source.sport, source.bookmaker)));
        self.quoted.retain(|(sport, bookmaker, _)| !sources.contains(&(*sport, *bookmaker)));
        (events, sources)
    }

    pub(crate) fn event(&self, id: EventId) -> &Happening {
        self.events.iter().find(|event| event.id == id).unwrap()
    }

    fn event_mut(&mut self, id: EventId) -> &mut Happening {
        self.events.iter_mut().find(|event| event.id == id).unwrap()
    }

    fn source(&mut self, sport: SportId, bookmaker: BookmakerId) -> &mut Reading {
        let known = |s: &Reading| s.sport == sport && s.bookmaker == bookmaker;
        let at = self.sources.iter().position(known).unwrap_or_else(|| {
            let (read, beat, latency_ms) = (None, None, 0);
            self.sources.push(Reading { sport, bookmaker, read, beat, latency_ms });
            self.sources.len() - 1
        });
        &mut self.sources[at]
    }
}

impl Happening {
    pub(crate) fn status(&self) -> Status {
        self.report.status
    }

    fn player(&self, who: usize) -> &str {
        &self.players.iter().find(|(known, _)| *known == who).unwrap().1
    }
}

impl Reading {
    fn hear(&mut self, ts: Timestamp, now: Timestamp) {
        if self.read.is_none_or(|held| ts >= held) {
            self.read = Some(ts);
            self.latency_ms = (now.as_millis() - ts.as_millis()).max(0);
        }
    }

    fn is_stale(&self, now: Timestamp, stale_after: Duration) -> bool {
        now.since(self.read.unwrap()) > stale_after
    }
}

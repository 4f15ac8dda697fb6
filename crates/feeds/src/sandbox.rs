//! The sandbox: a simulated market that is always in season (D19).
//!
//! It is a function of a seed and an instant. Nothing is stored, and no state is kept between calls:
//! [`Simulation::world_at`] builds the state at any instant from scratch, [`Simulation::between`] returns the
//! messages from one instant to another, and both give the same book. Its only output is feed messages.
//!
//! Modules: `schedule` assigns events to slots; `fight`, `tennis`, `football` and `golf` play the contests and
//! compute their fair chances at any moment; `bookmaker`, `grid`, `rows`, `offer` and `field` turn chances into
//! prices; `scheduled_faults` lists the deliberate faults.

use std::sync::Arc;

use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, ScoreBody,
};
use domain::{BookmakerId, Catalogue, Side, SportId, Status, Timestamp};

pub use self::life::{Life, LifeRequest, Lives};

use self::bookmaker::{PROFILES, Profile};
use self::discipline::Discipline;
use self::event::{Contest, Event, Names, Revision};
use self::golf::{Leaders, Tournament};
use self::grid::Ladder;
use self::noise::{TICK_S, to_tick};
use self::offer::{Priced, Read};
use self::rows::{Offer, Pricer};
use self::schedule::Schedule;

mod board;
mod bookmaker;
mod contest;
mod discipline;
mod disruption;
mod event;
mod field;
mod fight;
mod football;
mod golf;
mod grid;
mod life;
mod noise;
mod offer;
mod origins;
mod people;
mod places;
mod rows;
mod schedule;
mod scheduled_faults;
mod tennis;

/// Time for which a final event is kept (D24).
const KEPT_MS: i64 = 72 * 3_600_000;
const KEPT_S: i64 = KEPT_MS / 1000;

/// The sandbox of one seed.
#[derive(Clone, Debug)]
pub struct Simulation {
    schedule: Schedule,
    /// Distinguishes its world from that of another seed or catalogue.
    pub hash: u64,
    catalogue: Arc<Catalogue>,
    pricers: Vec<(BookmakerId, &'static Profile, Ladder)>,
    sports: Vec<(Discipline, SportId)>,
}

/// The order of messages of one instant: listings, scores, odds, heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Listing,
    Score,
    Odds,
    Heartbeat,
}

/// Messages in the order in which they are generated, event by event, with the instant at which each is sent.
#[derive(Debug, Default)]
struct Outbox(Vec<(i64, Rank, FeedMessage)>);

impl Simulation {
    /// The sandbox of a seed. Sports and bookmakers that the catalogue lacks are left out.
    pub fn new(seed: u64, catalogue: Arc<Catalogue>) -> Self {
        let pricers = PROFILES
            .iter()
            .filter_map(|profile| {
                let id = catalogue.bookmaker_id(profile.key)?;
                Some((id, profile, Ladder::of(profile.grid)))
            })
            .collect();
        let sports = Discipline::ALL
            .into_iter()
            .filter_map(|sport| Some((sport, catalogue.sport_id(sport.key())?)))
            .collect();
        let hash = catalogue.hash_with(seed);
        Self { schedule: Schedule { seed }, hash, catalogue, pricers, sports }
    }

    /// All messages that bring an empty book to the state at `at`: events, scores, odds, heartbeats, each with its
    /// original `ts`.
    pub fn world_at(&self, at: Timestamp) -> Vec<FeedMessage> {
        let now = to_tick(at.as_secs());
        let mut outbox = Outbox::default();
        for event in self.schedule.events(now - KEPT_S, now) {
            let Some(sport) = self.sport_id(event.discipline) else {
                continue;
            };
            let removed = event.removed.is_some_and(|removed| removed <= now);
            // Compared in milliseconds, like the book, which removes older events itself.
            let forgotten = now >= event.start()
                && event.over().saturating_mul(1000).saturating_add(KEPT_MS).lt(&at.as_millis());
            if removed || forgotten {
                continue;
            }
            for revision in event.revisions.iter().filter(|revision| revision.at <= now) {
                outbox.list(&event, revision, sport);
            }
            outbox.score_at(&event, now);
            if event.is_open(now) {
                self.standing_odds(&event, now, &mut outbox);
            }
        }
        for (id, profile, _) in &self.pricers {
            for &(sport, sport_id) in &self.sports {
                if profile.sports.contains(&sport) {
                    let arrival = profile.last_read(sport, now);
                    outbox.heartbeat(*id, sport_id, arrival, arrival - profile.lag_s());
                }
            }
        }
        outbox.world()
    }

    /// The last instant, up to this one, at which anything can happen.
    pub fn last_step(at: Timestamp) -> Timestamp {
        Timestamp::from_secs(to_tick(at.as_secs()))
    }

    /// The first instant after this one at which anything can happen.
    pub fn next_step(at: Timestamp) -> Timestamp {
        Timestamp::from_secs(to_tick(at.as_secs()) + TICK_S)
    }

    /// The messages after `from`, up to and including `to`.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Vec<FeedMessage> {
        let (from, to) = (to_tick(from.as_secs()), to_tick(to.as_secs()));
        let mut outbox = Outbox::default();
        if to <= from {
            return Vec::new();
        }
        for event in self.schedule.events(from, to) {
            let Some(sport) = self.sport_id(event.discipline) else {
                continue;
            };
            let gone = event.removed.is_some_and(|removed| removed <= from)
                || (from >= event.start() && event.over() <= from);
            if gone {
                continue;
            }
            let is_new = |at: i64| from < at && at <= to;
            for revision in event.revisions.iter().filter(|revision| is_new(revision.at)) {
                outbox.list(&event, revision, sport);
            }
            if let Some(removed) = event.removed.filter(|at| is_new(*at)) {
                let reference = event.reference.clone();
                outbox.push(removed, Rank::Listing, removed, Body::Remove { reference });
            }
            outbox.scores_between(&event, from, to);
            let carried: Vec<_> = self.pricers_on(&event).collect();
            self.moving_odds(&event, &carried, (from, to), &mut outbox);
        }
        for (id, profile, _) in &self.pricers {
            for &(sport, sport_id) in &self.sports {
                if profile.sports.contains(&sport) {
                    for arrival in profile.reads(sport, from, to) {
                        outbox.heartbeat(*id, sport_id, arrival, arrival - profile.lag_s());
                    }
                }
            }
        }
        outbox.in_order()
    }

    fn sport_id(&self, discipline: Discipline) -> Option<SportId> {
        let found = self.sports.iter().find(|(sport, _)| *sport == discipline);
        found.map(|(_, id)| *id)
    }

    /// The bookmakers that carry an event.
    fn pricers_on<'a>(&'a self, event: &Event) -> impl Iterator<Item = (BookmakerId, Pricer<'a>)> {
        let key = event.key;
        let carried: Vec<_> =
            self.pricers.iter().filter(|(_, profile, _)| profile.carries(event)).collect();
        debug_assert!(!carried.is_empty(), "no bookmaker carries {key:x}");
        carried.into_iter().map(|(id, profile, ladder)| (*id, Pricer { profile, ladder }))
    }

    /// The odds as of each bookmaker's last read.
    fn standing_odds(&self, event: &Event, now: i64, outbox: &mut Outbox) {
        let priced = Priced::new(event);
        for (id, pricer) in self.pricers_on(event) {
            let arrival = pricer.profile.last_read(event.discipline, now);
            if event.renamed_within(arrival, now) || !event.is_open(arrival) {
                continue;
            }
            let read = Read { at: arrival - pricer.profile.lag_s(), arrival };
            for offer in &pricer.offers(&priced, pricer.view(event, read)) {
                self.send(event, id, read, offer, offer.outcomes(event, read.at), outbox);
            }
        }
    }

    /// The odds that changed at each read. As long as a bookmaker's view is unchanged, no prices are computed.
    fn moving_odds(
        &self,
        event: &Event,
        carried: &[(BookmakerId, Pricer<'_>)],
        (from, to): (i64, i64),
        outbox: &mut Outbox,
    ) {
        let priced = Priced::new(event);
        for &(id, pricer) in carried {
            let lag = pricer.profile.lag_s();
            let view_at = |arrival: i64| {
                let read = Read { at: arrival - lag, arrival };
                event.is_open(arrival).then(|| pricer.view(event, read))
            };
            let mut before = pricer.profile.last_read(event.discipline, from);
            let mut view = view_at(before);
            let mut held: Option<Vec<Offer>> = None;
            for arrival in pricer.profile.reads(event.discipline, from, to) {
                let now = view_at(arrival);
                let withdrawn = event.renamed_within(before, arrival);
                let previous = if withdrawn { None } else { view };
                (before, view) = (arrival, now);
                let Some(now) = now else {
                    held = None;
                    continue;
                };
                if previous == Some(now) {
                    continue;
                }
                let old = match (held.take(), previous) {
                    (_, None) => Vec::new(),
                    (Some(held), Some(_)) => held,
                    (None, Some(previous)) => pricer.offers(&priced, previous),
                };
                let new = pricer.offers(&priced, now);
                let read = Read { at: arrival - lag, arrival };
                for gone in old.iter().filter(|old| old.among(&new).is_none()) {
                    self.send(event, id, read, gone, Vec::new(), outbox);
                }
                for offer in new.iter().filter(|new| new.among(&old) != Some(*new)) {
                    self.send(event, id, read, offer, offer.outcomes(event, read.at), outbox);
                }
                held = Some(new);
            }
        }
    }

    /// Sends odds, unless the operator's catalogue has removed the market from the sport.
    fn send(
        &self,
        event: &Event,
        bookmaker: BookmakerId,
        read: Read,
        offer: &Offer,
        outcomes: Vec<OfferedOutcome>,
        outbox: &mut Outbox,
    ) {
        let sport = self.sport_id(event.discipline);
        if !sport.is_some_and(|id| self.catalogue.sport(id).offers(offer.market)) {
            return;
        }
        let body = Body::Odds(OddsBody {
            reference: event.reference.clone(),
            bookmaker,
            market: offer.market,
            group: offer.group.label(),
            outcomes,
        });
        outbox.push(read.arrival, Rank::Odds, read.at, body);
    }
}

impl Outbox {
    fn push(&mut self, out: i64, rank: Rank, ts: i64, body: Body) {
        let message = FeedMessage { ts: Some(Timestamp::from_secs(ts)), fresh_for_s: None, body };
        self.0.push((out, rank, message));
    }

    fn list(&mut self, event: &Event, revision: &Revision, sport: SportId) {
        let fixture = match &revision.names {
            Names::Sides { home, away } => {
                Fixture::HeadToHead { home: home.clone(), away: away.clone() }
            }
            Names::Title(title) => Fixture::Field { title: title.clone() },
        };
        let body = Body::Event {
            reference: event.reference.clone(),
            listing: Listing {
                sport,
                competition: revision.competition.clone(),
                commence_time: Timestamp::from_secs(revision.commence),
                fixture,
            },
        };
        self.push(revision.at, Rank::Listing, revision.at, body);
    }

    fn heartbeat(&mut self, bookmaker: BookmakerId, sport: SportId, arrival: i64, read: i64) {
        let sport = Some(sport);
        let body = Body::Heartbeat { bookmaker, sport };
        self.push(arrival, Rank::Heartbeat, read, body);
    }

    /// The current score.
    fn score_at(&mut self, event: &Event, now: i64) {
        if now < event.start() {
            return;
        }
        match &event.contest {
            Contest::Duel(duel) => {
                let timeline = duel.timeline();
                if let Some(at) = timeline.step_at(now) {
                    self.duel_score(event, at);
                }
            }
            Contest::Field(tournament) => {
                if now >= tournament.over() {
                    self.final_board(event, tournament);
                } else if let Some((since, leaders)) = tournament.board_at(now) {
                    self.board(event, tournament, since, Status::Live, &leaders);
                }
            }
        }
    }

    fn scores_between(&mut self, event: &Event, from: i64, to: i64) {
        if to < event.start() || event.removed.is_some() {
            return;
        }
        match &event.contest {
            Contest::Duel(duel) => {
                for (at, step) in duel.timeline().steps.iter().enumerate() {
                    if from < step.at && step.at <= to {
                        self.duel_score(event, at);
                    }
                }
            }
            Contest::Field(tournament) => {
                let start = tournament.start;
                if from < start {
                    self.board(event, tournament, start, Status::Live, &Vec::new());
                }
                for (at, leaders) in tournament.new_boards(from, to) {
                    self.board(event, tournament, at, Status::Live, &leaders);
                }
                if from < tournament.over() && tournament.over() <= to {
                    self.final_board(event, tournament);
                }
            }
        }
    }

    fn duel_score(&mut self, event: &Event, at: usize) {
        let Contest::Duel(duel) = &event.contest else {
            return;
        };
        let Some(step) = duel.timeline().steps.get(at) else {
            return;
        };
        let names = event.revisions.last().map(|last| &last.names);
        let winner = match (names, step.winner) {
            (Some(Names::Sides { home, .. }), Some(Side::Home)) => Some(home.clone()),
            (Some(Names::Sides { away, .. }), Some(Side::Away)) => Some(away.clone()),
            (Some(Names::Sides { .. } | Names::Title(_)) | None, _) => None,
        };
        let body = Body::Score(ScoreBody {
            reference: event.reference.clone(),
            status: step.status,
            home: Some(step.home),
            away: Some(step.away),
            periods: step.periods.clone(),
            winner,
            leaders: Vec::new(),
            correction: Correction::No,
        });
        self.push(step.at, Rank::Score, step.at, body);
    }

    fn final_board(&mut self, event: &Event, tournament: &Tournament) {
        let over = tournament.over();
        let leaders = tournament.leaders(over);
        self.board(event, tournament, over, Status::Final, &leaders);
    }

    fn board(
        &mut self,
        event: &Event,
        tournament: &Tournament,
        at: i64,
        status: Status,
        leaders: &Leaders,
    ) {
        let players = &tournament.course().players;
        let row = |(i, rounds): &(usize, Vec<i32>)| {
            let name = tournament.player_name(players.get(*i)?);
            Some((name, rounds.clone()))
        };
        let body = Body::Score(ScoreBody {
            reference: event.reference.clone(),
            status,
            home: None,
            away: None,
            periods: Vec::new(),
            winner: None,
            leaders: leaders.iter().filter_map(row).collect(),
            correction: Correction::No,
        });
        self.push(at, Rank::Score, at, body);
    }

    /// Sorted by kind: events before the messages that refer to them.
    fn world(mut self) -> Vec<FeedMessage> {
        self.0.sort_by_key(|(_, rank, _)| *rank);
        self.0.into_iter().map(|(_, _, message)| message).collect()
    }

    /// Sorted by instant, and returned with it.
    fn timed(mut self) -> Vec<(Timestamp, FeedMessage)> {
        self.0.sort_by_key(|(out, rank, _)| (*out, *rank));
        self.0.into_iter().map(|(out, _, message)| (Timestamp::from_secs(out), message)).collect()
    }

    /// Sorted by instant.
    fn in_order(mut self) -> Vec<FeedMessage> {
        self.0.sort_by_key(|(out, rank, _)| (*out, *rank));
        self.0.into_iter().map(|(_, _, message)| message).collect()
    }
}

//! What to do with a message: look, decide, change nothing.

use std::collections::HashMap;

use domain::market::OutcomeRule;
use domain::message::{
    Body, Correction, FUTURE_TS_MS_MAX, FeedMessage, Fixture, Listing, MARKETS_MAX, OddsBody,
    REFS_MAX, Reject, RejectCode, ScoreBody,
};
use domain::{BookmakerId, EventId, Side, Sport, SportId, Timestamp};

use crate::book::event::{Event, FeedIx};
use crate::book::{Book, Decision, Ids, Offer, OutcomeName, Verdict, slot_key_of};
use crate::change::{Change, Listed, MarketKey, Quoted, QuotedOutcome, Reported, Who};
use crate::freshness::Source;
use crate::matching::{self, Participants, fold};

impl Book {
    /// Says what a message of `feed` changes at `now`, if anything.
    ///
    /// # Errors
    /// The message is refused, with the reason.
    pub fn decide(
        &self,
        feed: &str,
        message: &FeedMessage,
        now: Timestamp,
    ) -> Result<Decision, Reject> {
        let ts = message.ts.unwrap_or(now);
        if ts.as_millis() > now.as_millis().saturating_add(FUTURE_TS_MS_MAX) {
            let text = format!("`ts` {ts} is more than 5 s ahead of the service's clock, {now}");
            return Err(Reject::new(RejectCode::FutureTs, text));
        }
        match &message.body {
            Body::Event { reference, listing } => self.decide_event(feed, reference, listing, ts),
            Body::Odds(odds) => self.decide_odds(feed, odds, ts),
            Body::Score(score) => self.decide_score(feed, score, ts),
            Body::Remove { reference } => self.decide_remove(feed, reference, ts),
            Body::Heartbeat { bookmaker, sport } => Ok(self.decide_beat(*bookmaker, *sport, ts)),
        }
    }

    fn decide_event(
        &self,
        feed: &str,
        reference: &str,
        listing: &Listing,
        ts: Timestamp,
    ) -> Result<Decision, Reject> {
        let feed_ix = self.feed_ix(feed);
        let offer = self.offer(feed_ix, reference);
        if let Some(offer) = offer {
            if ts < offer.ts {
                return Ok(Decision::of(Verdict::Superseded));
            }
            if offer.active && self.says_the_same(offer, listing) {
                return Ok(Decision::of(Verdict::Unchanged));
            }
        } else if self.refs_of(feed_ix) >= REFS_MAX {
            let text = format!("this feed lists {REFS_MAX} events already; remove some first");
            return Err(Reject::new(RejectCode::TooLarge, text));
        }
        let event = match offer {
            Some(offer) if self.stays_with(feed_ix, reference, offer, listing) => offer.event,
            _ => self.match_or_make(feed_ix, reference, listing),
        };
        let swapped = match self.event(event) {
            // A sole lister's new participants replace the event's, in the order it gives them.
            Some(event)
                if Participants::of(&event.fixture) == Participants::of(&listing.fixture) =>
            {
                matching::is_swapped(&event.fixture, &listing.fixture)
            }
            _ => false,
        };
        Ok(Decision::change(Change::Listed(Listed {
            event,
            feed: feed.into(),
            reference: reference.into(),
            sport: self.catalogue.sport(listing.sport).key.clone(),
            competition: listing.competition.clone(),
            commence_time: listing.commence_time,
            fixture: listing.fixture.clone(),
            swapped,
            ts,
        })))
    }

    fn refs_of(&self, feed: Option<FeedIx>) -> usize {
        feed.and_then(|feed| self.feed(feed)).map_or(0, |feed| feed.offers.len())
    }

    fn says_the_same(&self, offer: &Offer, listing: &Listing) -> bool {
        offer.competition == listing.competition
            && offer.commence_time == listing.commence_time
            && offer.fixture == listing.fixture
            && self.event(offer.event).is_some_and(|event| event.sport == listing.sport)
    }

    /// Whether a corrected listing still means the event its ref stood for: the participants are the event's,
    /// or nobody else lists it and so nobody else's prices could end up under other names.
    fn stays_with(
        &self,
        feed: Option<FeedIx>,
        reference: &str,
        offer: &Offer,
        listing: &Listing,
    ) -> bool {
        let Some(event) = self.event(offer.event) else {
            return false;
        };
        let same = Participants::of(&event.fixture) == Participants::of(&listing.fixture);
        let alone = event.listed_by.iter().all(|(lister, _)| Some(*lister) == feed);
        event.sport == listing.sport
            && !self.is_taken(event.id, feed, reference)
            && (same || (alone && offer.active))
    }

    /// Whether the feed already lists the event under another ref.
    fn is_taken(&self, event: EventId, feed: Option<FeedIx>, reference: &str) -> bool {
        let other_ref =
            |(lister, held): &(FeedIx, Box<str>)| Some(*lister) == feed && &**held != reference;
        self.event(event).is_some_and(|event| event.listed_by.iter().any(other_ref))
    }

    fn match_or_make(&self, feed: Option<FeedIx>, reference: &str, listing: &Listing) -> EventId {
        let taken = |id: EventId| self.is_taken(id, feed, reference);
        if let Some(same) = self.index.find(&self.catalogue, listing, taken) {
            return same.event;
        }
        let unused = |id: &EventId| !self.events.contains_key(id);
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
                // Another event has it when two feeds use the same ref, or one uses it anew.
                let mut others =
                    (1_u32..).map(|n| EventId::derived(salt, &format!("{reference}\u{1f}{n}")));
                if unused(&first) { first } else { others.find(unused).unwrap_or(first) }
            }
        }
    }

    fn decide_odds(&self, feed: &str, odds: &OddsBody, ts: Timestamp) -> Result<Decision, Reject> {
        let (offer, event) = self.offered(feed, &odds.reference)?;
        let sport = self.catalogue.sport(event.sport);
        check_market(sport, odds)?;
        if event.is_final() && !odds.outcomes.is_empty() {
            let text = "the event is final and takes no more odds; a score with `correction: true` reopens it";
            return Err(Reject::new(RejectCode::IllegalTransition, text));
        }
        let outcomes = resolve_outcomes(event, offer, sport, odds)?;
        let market = MarketKey {
            bookmaker: self.catalogue.bookmaker(odds.bookmaker).key.clone(),
            market: odds.market,
            group: odds.group.clone(),
        };
        let group = odds.group.as_deref();
        let key = slot_key_of(event.id, &self.catalogue, odds.bookmaker, odds.market, group);
        if let Some(slot) = event.slots.get(&key) {
            if ts < slot.ts {
                return Ok(Decision::of(Verdict::Superseded));
            }
            let held = slot.open.as_ref().map_or(&[][..], |record| &record.outcomes);
            if same_outcomes(event, held, &outcomes) {
                let newer = ts > slot.ts;
                let change = newer.then_some(Change::Confirmed { event: event.id, market, ts });
                return Ok(Decision { verdict: Verdict::Unchanged, change });
            }
        } else if event.slots.len() >= MARKETS_MAX {
            let text = format!("the event has {MARKETS_MAX} markets already");
            return Err(Reject::new(RejectCode::TooLarge, text));
        }
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
        ts: Timestamp,
    ) -> Result<Decision, Reject> {
        let (offer, event) = self.offered(feed, &body.reference)?;
        if event.score_ts.is_some_and(|held| ts < held) {
            return Ok(Decision::of(Verdict::Superseded));
        }
        let report = resolve_score(event, offer, body)?;
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
        Ok(Decision::change(Change::Scored { event: event.id, score: report, ts }))
    }

    fn decide_remove(
        &self,
        feed: &str,
        reference: &str,
        ts: Timestamp,
    ) -> Result<Decision, Reject> {
        let offer =
            self.offer(self.feed_ix(feed), reference).ok_or_else(|| unknown_ref(reference))?;
        if ts < offer.ts {
            return Ok(Decision::of(Verdict::Superseded));
        }
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
        ts: Timestamp,
    ) -> Decision {
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
        let older = !beats.is_empty() && beats.iter().all(|held| ts < *held);
        Decision::of(if older { Verdict::Superseded } else { Verdict::Unchanged })
    }

    fn offer(&self, feed: Option<FeedIx>, reference: &str) -> Option<&Offer> {
        self.feed(feed?)?.offers.get(reference)
    }

    /// The event a feed means by a ref it has listed.
    fn offered(&self, feed: &str, reference: &str) -> Result<(&Offer, &Event), Reject> {
        self.offer(self.feed_ix(feed), reference)
            .filter(|offer| offer.active)
            .and_then(|offer| Some((offer, self.event(offer.event)?)))
            .ok_or_else(|| unknown_ref(reference))
    }
}

impl Decision {
    fn of(verdict: Verdict) -> Self {
        Self { verdict, change: None }
    }

    fn change(change: Change) -> Self {
        Self { verdict: Verdict::Accepted, change: Some(change) }
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

fn resolve_outcomes(
    event: &Event,
    offer: &Offer,
    sport: &Sport,
    odds: &OddsBody,
) -> Result<Vec<QuotedOutcome>, Reject> {
    let rule = odds.market.outcome_rule();
    let mut outcomes: Vec<QuotedOutcome> = Vec::with_capacity(odds.outcomes.len());
    // The event does not know them yet, so two spellings of one have to be told here.
    let mut newcomers: HashMap<String, Box<str>> = HashMap::new();
    for offered in &odds.outcomes {
        let who = match resolve_outcome(event, offer, sport, rule, &offered.name)? {
            Who::Player(name) if event.field.find(&name).is_none() => {
                Who::Player(newcomers.entry(fold(&name)).or_insert(name).clone())
            }
            who @ (Who::Side(_) | Who::Draw | Who::Over | Who::Under | Who::Player(_)) => who,
        };
        if outcomes.iter().any(|held| held.who == who && held.point == offered.point) {
            let text = format!("two outcomes mean the same: `{}`", offered.name);
            return Err(Reject::new(RejectCode::InvalidMessage, text));
        }
        outcomes.push(QuotedOutcome { who, quote: offered.quote, point: offered.point });
    }
    check_field_room(event, outcomes.iter().map(|outcome| &outcome.who))?;
    Ok(outcomes)
}

fn resolve_outcome(
    event: &Event,
    offer: &Offer,
    sport: &Sport,
    rule: OutcomeRule,
    name: &str,
) -> Result<Who, Reject> {
    let found = match rule {
        OutcomeRule::Sides if sport.draw && is_draw(name) => Some(Who::Draw),
        OutcomeRule::Sides => resolve_side(event, offer, name).map(Who::Side),
        OutcomeRule::OverUnder if name.eq_ignore_ascii_case("over") => Some(Who::Over),
        OutcomeRule::OverUnder if name.eq_ignore_ascii_case("under") => Some(Who::Under),
        OutcomeRule::OverUnder => None,
        OutcomeRule::Pairing if is_draw(name) => Some(Who::Draw),
        OutcomeRule::Pairing | OutcomeRule::Entrants => Some(player(event, name)),
    };
    found.ok_or_else(|| {
        let expected = match (rule, &offer.fixture) {
            (OutcomeRule::OverUnder, _) => "Over or Under".to_owned(),
            (_, Fixture::HeadToHead { home, away }) => format!("`{home}` or `{away}`"),
            (_, Fixture::Field { .. }) => "a player".to_owned(),
        };
        let text = format!("outcome `{name}` fits nobody; expected {expected}");
        Reject::new(RejectCode::UnknownOutcome, text)
    })
}

fn is_draw(name: &str) -> bool {
    ["draw", "tie"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// The side a name means: by the feed's own words for the event first, then by the event's.
fn resolve_side(event: &Event, offer: &Offer, name: &str) -> Option<Side> {
    side_in(&offer.fixture, name)
        .map(|side| if offer.swapped { side.other() } else { side })
        .or_else(|| side_in(&event.fixture, name))
}

fn side_in(fixture: &Fixture, name: &str) -> Option<Side> {
    let Fixture::HeadToHead { home, away } = fixture else {
        return None;
    };
    if name == &**home {
        return Some(Side::Home);
    }
    if name == &**away {
        return Some(Side::Away);
    }
    let folded = fold(name);
    match (folded == fold(home), folded == fold(away)) {
        (true, false) => Some(Side::Home),
        (false, true) => Some(Side::Away),
        _ => None,
    }
}

fn player(event: &Event, name: &str) -> Who {
    Who::Player(event.field.find(name).map_or(name, |(_, ours)| ours).into())
}

fn check_field_room<'a>(event: &Event, who: impl Iterator<Item = &'a Who>) -> Result<(), Reject> {
    let is_new = |who: &&Who| matches!(who, Who::Player(name) if event.field.find(name).is_none());
    if event.field.has_room_for(who.filter(is_new).count()) {
        Ok(())
    } else {
        let text = format!("the event has more than {} players", domain::message::OUTCOMES_MAX);
        Err(Reject::new(RejectCode::TooLarge, text))
    }
}

/// Whether the outcomes held are those offered, in whichever order.
fn same_outcomes(event: &Event, held: &[crate::book::Outcome], offered: &[QuotedOutcome]) -> bool {
    held.len() == offered.len()
        && offered.iter().all(|outcome| {
            let name = match &outcome.who {
                Who::Side(Side::Home) => Some(OutcomeName::Home),
                Who::Side(Side::Away) => Some(OutcomeName::Away),
                Who::Draw => Some(OutcomeName::Draw),
                Who::Over => Some(OutcomeName::Over),
                Who::Under => Some(OutcomeName::Under),
                Who::Player(name) => event.field.find(name).map(|(at, _)| OutcomeName::Entrant(at)),
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

fn resolve_score(event: &Event, offer: &Offer, body: &ScoreBody) -> Result<Reported, Reject> {
    let is_field = matches!(event.fixture, Fixture::Field { .. });
    let winner = match &body.winner {
        Some(name) if !is_field && !is_draw(name) => {
            let side = side_in(&offer.fixture, name).or_else(|| {
                side_in(&event.fixture, name).map(|s| if offer.swapped { s.other() } else { s })
            });
            Some(side.ok_or_else(|| {
                let text = format!("winner `{name}` is neither participant");
                Reject::new(RejectCode::UnknownOutcome, text)
            })?)
        }
        _ => None,
    };
    let score = domain::Score {
        status: body.status,
        home: body.home.filter(|_| !is_field),
        away: body.away.filter(|_| !is_field),
        periods: if is_field { Vec::new() } else { body.periods.clone() },
        winner,
        leaders: Vec::new(),
    };
    let score = if offer.swapped { score.swapped() } else { score };
    let leaders: Vec<(Box<str>, Vec<i32>)> = body
        .leaders
        .iter()
        .filter(|_| is_field)
        .map(|(name, rounds)| {
            let known = event.field.find(name).map_or(&**name, |(_, ours)| ours);
            (known.into(), rounds.clone())
        })
        .collect();
    let players: Vec<Who> = leaders.iter().map(|(name, _)| Who::Player(name.clone())).collect();
    check_field_room(event, players.iter())?;
    Ok(Reported {
        status: score.status,
        home: score.home,
        away: score.away,
        periods: score.periods,
        winner: score.winner,
        leaders,
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

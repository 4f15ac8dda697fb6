//! Whom a feed means: the names in its prices and scores become the event's own participants, or nobody's.
//!
//! A name is looked for among the feed's own words for the event first, then among the event's; only where neither
//! has it word for word are spellings compared. What could be either side is neither: a price never ends up with
//! the wrong one.

use std::collections::HashMap;

use domain::market::OutcomeRule;
use domain::message::{Fixture, OddsBody, Reject, RejectCode, ScoreBody};
use domain::{Side, Sport};

use crate::book::Offer;
use crate::book::event::Event;
use crate::change::{QuotedOutcome, Reported, Who};
use crate::matching::{Lexicon, Likeness, Party, fold};

/// An event as one of its feeds speaks of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker<'a> {
    pub(super) event: &'a Event,
    pub(super) offer: &'a Offer,
    pub(super) sport: &'a Sport,
    pub(super) lexicon: &'a Lexicon,
}

impl Speaker<'_> {
    pub(super) fn outcomes(&self, odds: &OddsBody) -> Result<Vec<QuotedOutcome>, Reject> {
        let rule = odds.market.outcome_rule();
        let mut outcomes: Vec<QuotedOutcome> = Vec::with_capacity(odds.outcomes.len());
        // The event does not know them yet, so two spellings of one have to be told here.
        let mut newcomers: HashMap<String, Box<str>> = HashMap::new();
        for offered in &odds.outcomes {
            let who = match self.outcome(rule, odds, &offered.name)? {
                Who::Player(name) if self.event.field.find(&name).is_none() => {
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
        self.check_field_room(outcomes.iter().map(|outcome| &outcome.who))?;
        Ok(outcomes)
    }

    fn outcome(&self, rule: OutcomeRule, odds: &OddsBody, name: &str) -> Result<Who, Reject> {
        let found = match rule {
            OutcomeRule::Sides if self.sport.draw && is_draw(name) => Some(Who::Draw),
            OutcomeRule::Sides => self.side(name).map(Who::Side),
            OutcomeRule::OverUnder if name.eq_ignore_ascii_case("over") => Some(Who::Over),
            OutcomeRule::OverUnder if name.eq_ignore_ascii_case("under") => Some(Who::Under),
            OutcomeRule::OverUnder => None,
            OutcomeRule::Pairing if is_draw(name) => Some(Who::Draw),
            OutcomeRule::Pairing | OutcomeRule::Entrants => {
                // A player that the same market has under its own name is not also meant by another.
                let is_named =
                    |ours: &str| odds.outcomes.iter().any(|other| fold(&other.name) == fold(ours));
                Some(Who::Player(self.player(name, is_named).into()))
            }
        };
        found.ok_or_else(|| {
            let expected = match (rule, &self.offer.fixture) {
                (OutcomeRule::OverUnder, _) => "Over or Under".to_owned(),
                (_, Fixture::HeadToHead { home, away }) => format!("`{home}` or `{away}`"),
                (_, Fixture::Field { .. }) => "a player".to_owned(),
            };
            let text = format!("outcome `{name}` fits nobody; expected {expected}");
            Reject::new(RejectCode::UnknownOutcome, text)
        })
    }

    /// The event's side that a name means.
    fn side(&self, name: &str) -> Option<Side> {
        let turned = |side: Side| if self.offer.swapped { side.other() } else { side };
        side_in(&self.offer.fixture, name)
            .map(turned)
            .or_else(|| side_in(&self.event.fixture, name))
            .or_else(|| self.side_like(&self.offer.fixture, name).map(turned))
            .or_else(|| self.side_like(&self.event.fixture, name))
    }

    /// The side whose name is like it, if the other's is not.
    fn side_like(&self, fixture: &Fixture, name: &str) -> Option<Side> {
        let Fixture::HeadToHead { home, away } = fixture else { return None };
        let party = |raw: &str| Party::parse(self.lexicon, self.event.sport, raw);
        let meant = party(name);
        let (home, away) = (party(home).like(&meant), party(away).like(&meant));
        let (side, best, other) =
            if home > away { (Side::Home, home, away) } else { (Side::Away, away, home) };
        is_clear(best, other, Likeness::OneWord).then_some(side)
    }

    /// The player of the event's field that a name means, or the name itself where there is none yet.
    fn player<'b>(&'b self, name: &'b str, is_named: impl Fn(&str) -> bool) -> &'b str {
        let field = &self.event.field;
        if let Some((_, ours)) = field.find(name) {
            return ours;
        }
        let alike = field.resembling(name);
        match &*alike {
            [(best, ours), rest @ ..] => {
                let next = rest.first().map_or(Likeness::Nothing, |(likeness, _)| *likeness);
                if is_clear(*best, next, Likeness::Near) && !is_named(ours) { ours } else { name }
            }
            [] => name,
        }
    }

    fn check_field_room<'b>(&self, who: impl Iterator<Item = &'b Who>) -> Result<(), Reject> {
        let field = &self.event.field;
        let is_new = |who: &&Who| matches!(who, Who::Player(name) if field.find(name).is_none());
        if field.has_room_for(who.filter(is_new).count()) {
            Ok(())
        } else {
            let text = format!("the event has more than {} players", domain::message::OUTCOMES_MAX);
            Err(Reject::new(RejectCode::TooLarge, text))
        }
    }

    pub(super) fn score(&self, body: &ScoreBody) -> Result<Reported, Reject> {
        let is_field = matches!(self.event.fixture, Fixture::Field { .. });
        let winner = match &body.winner {
            Some(name) if !is_field && !is_draw(name) => {
                Some(self.side(name).ok_or_else(|| {
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
            // Turned with the rest, though it is the event's already.
            winner: winner.map(|side| if self.offer.swapped { side.other() } else { side }),
            leaders: Vec::new(),
        };
        let score = if self.offer.swapped { score.swapped() } else { score };
        let leaders: Vec<(Box<str>, Vec<i32>)> = body
            .leaders
            .iter()
            .filter(|_| is_field)
            .map(|(name, rounds)| {
                let is_named =
                    |ours: &str| body.leaders.iter().any(|(other, _)| fold(other) == fold(ours));
                (self.player(name, is_named).into(), rounds.clone())
            })
            .collect();
        let players: Vec<Who> = leaders.iter().map(|(name, _)| Who::Player(name.clone())).collect();
        self.check_field_room(players.iter())?;
        Ok(Reported {
            status: score.status,
            home: score.home,
            away: score.away,
            periods: score.periods,
            winner: score.winner,
            leaders,
        })
    }
}

/// Whether the best is good enough and nobody else is meant by it.
fn is_clear(best: Likeness, next: Likeness, least: Likeness) -> bool {
    best >= least && best > next && (next <= Likeness::Shared || best >= Likeness::Sound)
}

fn is_draw(name: &str) -> bool {
    ["draw", "tie"].iter().any(|word| name.eq_ignore_ascii_case(word))
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

//! Resolves the names in a feed's prices and scores to the event's participants, or to nobody.
//!
//! A name is searched among the feed's own names for the event first, then among the event's; spellings are compared
//! only if neither has it literally. A name that could be either side is neither: a price never gets the wrong one.

use std::collections::{HashMap, HashSet};

use domain::market::OutcomeRule;
use domain::message::{Fixture, OUTCOMES_MAX, OddsBody, Reject, RejectCode, ScoreBody};
use domain::{Side, Sport};

use crate::book::Offer;
use crate::book::event::Event;
use crate::change::{QuotedOutcome, Reported, Who};
use crate::matching::{Lexicon, Likeness, Name, Party, check_name, effort, fold};

/// Maximum number of spellings of the two sides in one market: alternative lines repeat the same two or three names.
const SPELLINGS_MAX: usize = 16;
/// This number of letters costs as much as one typing-error check.
const LETTERS_OF_A_UNIT: usize = 16;
/// Up to this number of outcomes every pair is compared, which is cheaper than hashing.
const PAIRWISE_MAX: usize = 16;

/// An event in the terms of one of its feeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker<'a> {
    pub(super) event: &'a Event,
    pub(super) offer: &'a Offer,
    pub(super) sport: &'a Sport,
    pub(super) lexicon: &'a Lexicon,
}

impl Speaker<'_> {
    pub(super) fn outcomes(&self, odds: &OddsBody) -> Result<Vec<QuotedOutcome>, Reject> {
        let names = || odds.outcomes.iter().map(|offered| &*offered.name);
        let who: Vec<Who> = match odds.market.outcome_rule() {
            OutcomeRule::Sides => self.sides(names())?,
            OutcomeRule::OverUnder => names().map(over_or_under).collect::<Result<_, _>>()?,
            OutcomeRule::Pairing => {
                let mut players = self.players(names().filter(|name| !is_draw(name)))?.into_iter();
                let who = |name| {
                    if is_draw(name) { Some(Who::Draw) } else { players.next().map(Who::Player) }
                };
                names().filter_map(who).collect()
            }
            OutcomeRule::Entrants => self.players(names())?.into_iter().map(Who::Player).collect(),
        };
        let outcomes: Vec<QuotedOutcome> = who
            .into_iter()
            .zip(&odds.outcomes)
            .map(|(who, offered)| QuotedOutcome { who, quote: offered.quote, point: offered.point })
            .collect();
        if let Some(twice) = find_twice(&outcomes) {
            let name = odds.outcomes.get(twice).map_or("", |offered| &*offered.name);
            let text = format!("two outcomes mean the same: `{name}`");
            return Err(Reject::new(RejectCode::InvalidMessage, text));
        }
        Ok(outcomes)
    }

    /// The event's sides for some names; each spelling is resolved once.
    fn sides<'b>(&self, names: impl Iterator<Item = &'b str>) -> Result<Vec<Who>, Reject> {
        let mut known: Vec<(&str, Who)> = Vec::new();
        let mut who = Vec::with_capacity(names.size_hint().0);
        for name in names {
            if let Some((_, known)) = known.iter().find(|(spelling, _)| *spelling == name) {
                who.push(known.clone());
                continue;
            }
            if known.len() >= SPELLINGS_MAX {
                let text = format!("more than {SPELLINGS_MAX} spellings of the two sides");
                return Err(Reject::new(RejectCode::TooLarge, text));
            }
            let found = match self.sport.draw && is_draw(name) {
                true => Some(Who::Draw),
                false => self.side(name).map(Who::Side),
            };
            let found = found.ok_or_else(|| {
                fits_nobody(
                    name,
                    &match &self.offer.fixture {
                        Fixture::HeadToHead { home, away } => format!("`{home}` or `{away}`"),
                        Fixture::Field { .. } => "a player".to_owned(),
                    },
                )
            })?;
            known.push((name, found.clone()));
            who.push(found);
        }
        Ok(who)
    }

    /// The event's side for a name.
    fn side(&self, name: &str) -> Option<Side> {
        let turned = |side: Side| if self.offer.swapped { side.other() } else { side };
        side_in(&self.offer.fixture, name)
            .map(turned)
            .or_else(|| side_in(&self.event.fixture, name))
            .or_else(|| self.side_like(&self.offer.fixture, name).map(turned))
            .or_else(|| self.side_like(&self.event.fixture, name))
    }

    /// The side whose name is similar, if the other's is not.
    fn side_like(&self, fixture: &Fixture, name: &str) -> Option<Side> {
        let Fixture::HeadToHead { home, away } = fixture else { return None };
        let party = |raw: &str| Party::parse(self.lexicon, self.event.sport, raw);
        let meant = party(name);
        let (home, away) = (party(home).like(&meant), party(away).like(&meant));
        let (side, best, other) =
            if home > away { (Side::Home, home, away) } else { (Side::Away, away, home) };
        is_clear(best, other, Likeness::OneWord).then_some(side)
    }

    /// The players of the event's field for some names, in the event's spelling; a name without a player stays as it
    /// is. Checks for room before it compares spellings.
    fn players<'b>(&self, names: impl Iterator<Item = &'b str>) -> Result<Vec<Box<str>>, Reject> {
        let field = &self.event.field;
        // A player whom the message names literally is not also meant by another name.
        let mut named: HashSet<u16> = HashSet::new();
        let mut unknown: HashSet<u64> = HashSet::new();
        let mut meant: Vec<(&str, Result<u16, String>)> = Vec::with_capacity(names.size_hint().0);
        for name in names {
            let found = field.find(name);
            match &found {
                Ok(at) => named.insert(*at),
                Err(folded) => unknown.insert(field.hash_of(folded)),
            };
            if unknown.len() > field.room() {
                let text = format!("the event has more than {OUTCOMES_MAX} players");
                return Err(Reject::new(RejectCode::TooLarge, text));
            }
            meant.push((name, found));
        }
        // New players are not in the event yet, so two spellings of one must be recognised here.
        let mut newcomers: HashMap<String, Box<str>> = HashMap::new();
        let mut players = Vec::with_capacity(meant.len());
        for (name, found) in meant {
            players.push(match found {
                Ok(at) => field.name(at).into(),
                Err(folded) => match newcomers.get(&folded) {
                    Some(name) => name.clone(),
                    None => {
                        let known = self.known_player(name)?.filter(|at| !named.contains(at));
                        let name: Box<str> = known.map_or(name, |at| field.name(at)).into();
                        newcomers.insert(folded, name.clone());
                        name
                    }
                },
            });
        }
        Ok(players)
    }

    /// The player who is in the field under another spelling.
    fn known_player(&self, name: &str) -> Result<Option<u16>, Reject> {
        let field = &self.event.field;
        check_name(name)?;
        let name = Name::parse(name);
        // Adding a new player costs work for each word, too.
        let (words, letters) =
            name.words().fold((0, 0), |(words, letters), word| (words + 1, letters + word.len()));
        effort::spend(words + letters / LETTERS_OF_A_UNIT);
        if let Some(at) = field.find_words(&name) {
            return Ok(Some(at));
        }
        let alike = field.resembling(&name);
        if effort::is_exhausted() {
            let text = "the names are too long or like those of too many other players; send fewer at a time";
            return Err(Reject::new(RejectCode::TooLarge, text));
        }
        let likeness =
            |at: usize| alike.get(at).map_or(Likeness::Nothing, |(likeness, _)| *likeness);
        let clear = is_clear(likeness(0), likeness(1), Likeness::Near);
        Ok(alike.first().filter(|_| clear).map(|(_, at)| *at))
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
        let leaders = if is_field { &*body.leaders } else { &[] };
        let players = self.players(leaders.iter().map(|(name, _)| &**name))?;
        let rounds = leaders.iter().map(|(_, rounds)| rounds.clone());
        let leaders = players.into_iter().zip(rounds).collect();
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

/// True if the best match is good enough and no other player can be meant.
fn is_clear(best: Likeness, next: Likeness, least: Likeness) -> bool {
    best >= least && best > next && (next <= Likeness::Shared || best >= Likeness::Sound)
}

fn over_or_under(name: &str) -> Result<Who, Reject> {
    match name {
        over if over.eq_ignore_ascii_case("over") => Ok(Who::Over),
        under if under.eq_ignore_ascii_case("under") => Ok(Who::Under),
        _ => Err(fits_nobody(name, "Over or Under")),
    }
}

fn fits_nobody(name: &str, expected: &str) -> Reject {
    let text = format!("outcome `{name}` matches no participant; expected {expected}");
    Reject::new(RejectCode::UnknownOutcome, text)
}

/// The position of an outcome that repeats another.
fn find_twice(outcomes: &[QuotedOutcome]) -> Option<usize> {
    if outcomes.len() <= PAIRWISE_MAX {
        return outcomes.iter().enumerate().position(|(at, outcome)| {
            let before = outcomes.get(..at).unwrap_or_default();
            before.iter().any(|held| held.who == outcome.who && held.point == outcome.point)
        });
    }
    let mut seen = HashSet::with_capacity(outcomes.len());
    outcomes.iter().position(|outcome| !seen.insert((&outcome.who, outcome.point)))
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

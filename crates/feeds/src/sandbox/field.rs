//! Golf markets: outright, top-N, round leader, three-balls and matchups, all derived from one leaderboard
//! distribution.

use domain::Market;

use super::board::{best_of_three, duel, places};
use super::discipline::Discipline;
use super::event::Event;
use super::golf::Tournament;
use super::noise::{below, mix};
use super::rows::{Group, Offer, Pricer, Selection, row};

/// Fair chances of a whole field at an instant.
#[derive(Debug)]
pub(crate) struct FieldFair {
    /// Indices in the field of the players still in the tournament.
    players: Vec<usize>,
    /// Chances to finish first and among the first five, ten and twenty.
    finish: Vec<[f64; 4]>,
    /// Chances of the best score of the round; empty if that is not offered.
    round_best: Vec<f64>,
    pairings: Vec<Pairing>,
}

/// Two or three players against each other.
#[derive(Debug)]
struct Pairing {
    market: Market,
    group: Group,
    salt: u64,
    players: Vec<usize>,
    chances: Vec<f64>,
}

const PLACES: [usize; 4] = [1, 5, 10, 20];
const MARKETS: [Market; 4] = [Market::Outright, Market::Top5, Market::Top10, Market::Top20];
/// Round markets open half a day before the round.
const ROUND_OPENS_S: i64 = 43_200;
const MATCHUPS: usize = 12;
/// One in this many groups of a round is offered as a three-ball.
const THREE_BALL_EVERY: u64 = 3;

impl FieldFair {
    pub(crate) fn of(tournament: &Tournament, at: i64) -> Self {
        let entrants: Vec<_> = tournament.in_it(at).collect();
        let outlooks: Vec<_> =
            entrants.iter().map(|(_, player)| tournament.outlook(player, at)).collect();
        let mut fair = Self {
            players: entrants.iter().map(|(i, _)| *i).collect(),
            finish: Vec::new(),
            round_best: Vec::new(),
            pairings: Vec::new(),
        };
        let Some(round) = tournament.round_at(at) else {
            // All rounds are over.
            fair.players.clear();
            return fair;
        };
        fair.finish = places(&outlooks, PLACES);
        if at >= tournament.round_start(round) - ROUND_OPENS_S {
            let rounds: Vec<_> = entrants
                .iter()
                .map(|(_, player)| tournament.round_outlook(player, round, at))
                .collect();
            fair.round_best = places(&rounds, [1]).into_iter().map(|[p]| p).collect();
            // From the third round on, groups have two players.
            if round < 2 {
                fair.three_balls(tournament, round, at);
            }
        }
        fair.matchups(tournament, at);
        fair
    }

    fn three_balls(&mut self, tournament: &Tournament, round: i64, at: i64) {
        let players = &tournament.course().players;
        for group in (0..tournament.players / 3)
            .filter(|group| below(mix(tournament.key, group + 77), THREE_BALL_EVERY) == 0)
        {
            let members: Vec<usize> = (0..players.len())
                .filter(|i| players.get(*i).is_some_and(|player| player.group == group))
                .collect();
            let outlooks: Vec<_> = members
                .iter()
                .filter_map(|i| players.get(*i))
                .map(|player| tournament.round_outlook(player, round, at))
                .collect();
            if let &[a, b, c] = outlooks.as_slice() {
                self.pairings.push(Pairing {
                    market: Market::ThreeBall,
                    group: Group::ThreeBall { round, group },
                    salt: mix(round.cast_unsigned(), group),
                    players: members,
                    chances: best_of_three([a, b, c]).to_vec(),
                });
            }
        }
    }

    /// Pairs the players by skill at the start: the best with the second best, and so on.
    fn matchups(&mut self, tournament: &Tournament, at: i64) {
        let players = &tournament.course().players;
        let mut order: Vec<usize> = (0..players.len()).collect();
        let skill = |i: &usize| players.get(*i).map_or(0.0, |player| player.skill);
        order.sort_by(|a, b| skill(a).total_cmp(&skill(b)));
        let pairs = order.chunks_exact(2).take(MATCHUPS).enumerate();
        for (number, pair) in pairs {
            if !pair.iter().all(|player| self.players.contains(player)) {
                continue;
            }
            let outlooks: Vec<_> = pair
                .iter()
                .filter_map(|i| players.get(*i))
                .map(|player| tournament.outlook(player, at))
                .collect();
            if let &[one, other] = outlooks.as_slice() {
                let p = duel(one, other);
                self.pairings.push(Pairing {
                    market: Market::Matchup,
                    group: Group::Matchup(number),
                    salt: mix(99, u64::try_from(number).unwrap_or(0)),
                    players: pair.to_vec(),
                    chances: vec![p, 1.0 - p],
                });
            }
        }
    }
}

/// The offers of a bookmaker.
pub(crate) fn field_offers(pricer: Pricer<'_>, event: &Event, fair: &FieldFair) -> Vec<Offer> {
    let mut offers = Vec::new();
    let margin = pricer.profile.long_margin;
    let offered = |market| pricer.profile.offers(Discipline::Golf, market);
    let mut listed = |market: Market, chances: &[f64], winners: usize, margin: f64| {
        let Some(quotes) = pricer.many_way(chances, winners, margin) else {
            return;
        };
        let rows = fair.players.iter().zip(quotes);
        let rows = rows.map(|(i, quote)| row(Selection::Player(*i), quote, None)).collect();
        offers.push(Offer { market, group: Group::Only, rows });
    };
    for (at, (market, winners)) in MARKETS.into_iter().zip(PLACES).enumerate() {
        // Small fields have no meaningful top twenty once most of it is decided; the grid's guard handles that.
        if offered(market) && winners * 2 < fair.players.len() {
            let chances: Vec<f64> = fair.finish.iter().filter_map(|p| p.get(at).copied()).collect();
            let margin = if winners == 1 { margin } else { margin * 0.6 };
            listed(market, &chances, winners, margin);
        }
    }
    if offered(Market::RoundLeader) && !fair.round_best.is_empty() {
        listed(Market::RoundLeader, &fair.round_best, 1, margin * 1.1);
    }
    for pairing in fair.pairings.iter().filter(|pairing| offered(pairing.market)) {
        // Each bookmaker offers only some of the pairings.
        let taken = below(pricer.profile.hash(mix(event.key, pairing.salt)), 4) != 0;
        let decided = pairing.chances.iter().any(|p| *p > 0.94);
        if !taken || decided {
            continue;
        }
        let Some(quotes) = pricer.many_way(&pairing.chances, 1, pricer.profile.margin * 1.3) else {
            continue;
        };
        let rows = pairing.players.iter().zip(quotes);
        offers.push(Offer {
            market: pairing.market,
            group: pairing.group,
            rows: rows.map(|(i, quote)| row(Selection::Player(*i), quote, None)).collect(),
        });
    }
    offers
}

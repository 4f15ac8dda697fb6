//! Fights: rounds by the ten-point must, a finish or a decision.
//!
//! In each round either fighter may finish the bout; otherwise one of them wins the round 10-9. The winner is the
//! fighter who finishes it or leads on the cards; an even card is decided by a random draw. There are no draws and no
//! 10-8 rounds.

use domain::{Period, Side, Status};

use super::contest::{Fair, Form, Seen, Spread, Step, Timeline};
use super::noise::{Draws, gauss, logistic, mix_signed, real, to_tick, whole};

/// The rules of a bout and its chance of an early end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fight {
    pub(crate) rounds: i32,
    pub(crate) round_s: i64,
    /// Log-odds of a finish within a round.
    pub(crate) finish: f64,
    /// Minimum time from the start until the result is official. It keeps a bout of each sport live at any instant,
    /// whatever the knock-outs.
    pub(crate) official_after_s: i64,
}

/// Time for walk-outs and introductions.
const WALKOUT_S: i64 = 240;
const BREAK_S: i64 = 60;
/// Time from the end to the announcement.
const ANNOUNCE_S: i64 = 120;
/// Interval at which observers of a round get a new impression: the live repricing interval.
const GLIMPSE_S: i64 = 30;
/// Strength of the impressions: at the bell they are right in about five rounds of six.
const CLARITY: f64 = 1.0;
/// A finish counts as a lead beyond any card.
const FINISH_MARGIN: i32 = 20;

/// Chances in one round.
#[derive(Clone, Copy)]
struct Round {
    home_finish: f64,
    away_finish: f64,
    home_wins: f64,
}

impl Fight {
    fn round(&self, form: Form) -> Round {
        let finish = logistic(self.finish + form.tempo);
        let home = logistic(1.1 * form.strength);
        Round {
            home_finish: finish * home,
            away_finish: finish * (1.0 - home),
            home_wins: logistic(0.9 * form.strength),
        }
    }

    pub(crate) fn play(&self, start: i64, form: Form, key: u64) -> Timeline {
        let chances = self.round(form);
        let mut draws = Draws::new(key);
        let mut now = start + WALKOUT_S;
        let mut periods = Vec::new();
        let mut steps = vec![step(start, Status::Live, &periods, None)];
        let mut card = 0_i32;
        let mut winner = None;
        for number in 1..=self.rounds {
            let finish = draws.uniform();
            let when = draws.uniform();
            if finish < chances.home_finish + chances.away_finish {
                // No bout ends in the first seconds of a round.
                now += to_tick(whole(real(self.round_s) * (0.06 + 0.94 * when)));
                winner = Some(if finish < chances.home_finish { Side::Home } else { Side::Away });
                break;
            }
            now += self.round_s;
            let home_round = draws.chance(chances.home_wins);
            card += if home_round { 1 } else { -1 };
            let (home, away) = if home_round { (10, 9) } else { (9, 10) };
            periods.push(Period { number: u32::try_from(number).unwrap_or(0), home, away });
            steps.push(step(now, Status::Live, &periods, None));
            if number < self.rounds {
                now += BREAK_S;
            }
        }
        let winner = winner.unwrap_or_else(|| match card {
            1.. => Side::Home,
            0 if draws.chance(0.5) => Side::Home,
            _ => Side::Away,
        });
        let over = (now + ANNOUNCE_S).max(start + self.official_after_s);
        steps.push(step(over, Status::Final, &periods, Some(winner)));
        Timeline { steps, closed: now, over }
    }

    pub(crate) fn fair(&self, form: Form, seen: Option<Seen<'_>>) -> Fair {
        let chances = self.round(form);
        let done = seen.map_or(0, |seen| i32::try_from(seen.step.periods.len()).unwrap_or(0));
        let lead = seen.map_or(0, |seen| {
            let card = seen.step.periods.iter();
            card.map(|round| round.home - round.away).sum()
        });
        let elapsed = seen.map_or(0.0, |seen| self.elapsed(done, seen));
        let mut current = chances;
        current.home_finish *= 1.0 - elapsed;
        current.away_finish *= 1.0 - elapsed;
        if let Some(seen) = seen {
            let lean = self.impression(done, elapsed, inkling(lead, seen), seen.luck);
            current.home_wins = logistic(0.9 * form.strength + lean);
        }
        let (home, margin) = self.ends(done, lead, current, chances);
        let total = self.lasts(done, elapsed, chances.home_finish + chances.away_finish);
        Fair { home, margin, total }
    }

    /// The log-odds that watching the round so far adds to home's chance of winning it.
    ///
    /// Impressions point to the round's winner but are noisy, so the odds drift there instead of jumping; the formula
    /// is the Bayes update for a drift of [`CLARITY`] in noise of one.
    fn impression(&self, done: i32, elapsed: f64, way: f64, luck: u64) -> f64 {
        let glimpses = self.round_s / GLIMPSE_S;
        let seen = whole(elapsed * real(glimpses));
        let luck = mix_signed(luck, i64::from(done));
        let blur: f64 = (0..seen).map(|glimpse| gauss(mix_signed(luck, glimpse))).sum();
        let share = real(seen) / real(glimpses);
        2.0 * CLARITY * (CLARITY * share * way + blur / real(glimpses).sqrt())
    }

    /// Elapsed fraction of the current round.
    fn elapsed(&self, done: i32, seen: Seen<'_>) -> f64 {
        let bell = seen.start + WALKOUT_S + i64::from(done) * (self.round_s + BREAK_S);
        (real(seen.at - bell) / real(self.round_s)).clamp(0.0, 1.0)
    }

    /// Home's chance to win, and the distribution of the final lead on the cards.
    fn ends(&self, done: i32, lead: i32, current: Round, later: Round) -> (f64, Spread) {
        let width = usize::try_from(2 * FINISH_MARGIN + 1).unwrap_or(0);
        let at = |lead: i32| usize::try_from(lead + FINISH_MARGIN).unwrap_or(0);
        let mut cards = vec![0.0; width];
        if let Some(slot) = cards.get_mut(at(lead)) {
            *slot = 1.0;
        }
        let (mut home_finish, mut away_finish) = (0.0, 0.0);
        for number in done..self.rounds {
            let round = if number == done { current } else { later };
            let mut next = vec![0.0; width];
            for (lead, p) in cards.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                home_finish += p * round.home_finish;
                away_finish += p * round.away_finish;
                let goes_on = p * (1.0 - round.home_finish - round.away_finish);
                if let Some(slot) = next.get_mut(lead + 1) {
                    *slot += goes_on * round.home_wins;
                }
                if let Some(slot) = next.get_mut(lead.saturating_sub(1)) {
                    *slot += goes_on * (1.0 - round.home_wins);
                }
            }
            cards = next;
        }
        let ahead: f64 = cards.iter().skip(at(1)).sum();
        let even = cards.get(at(0)).copied().unwrap_or(0.0);
        let home = home_finish + ahead + even / 2.0;
        if let Some(slot) = cards.first_mut() {
            *slot += away_finish;
        }
        if let Some(slot) = cards.last_mut() {
            *slot += home_finish;
        }
        let margin = Spread::Mass { low: -FINISH_MARGIN, mass: cards };
        (home, margin)
    }

    /// The distribution of the number of rounds whose middle is passed: over 2.5 means past the middle of the third.
    fn lasts(&self, done: i32, elapsed: f64, finish: f64) -> Spread {
        let mut mass = Vec::new();
        let mut passed_before = 1.0;
        let mut reached = 1.0;
        for number in 0..self.rounds {
            let passed = if number < done || (number == done && elapsed >= 0.5) {
                1.0
            } else if number == done {
                1.0 - finish * (0.5 - elapsed)
            } else {
                reached * (1.0 - finish / 2.0)
            };
            if number == done {
                reached = 1.0 - finish * (1.0 - elapsed);
            } else if number > done {
                reached *= 1.0 - finish;
            }
            mass.push(passed_before - passed);
            passed_before = passed;
        }
        mass.push(passed_before);
        Spread::Mass { low: 0, mass }
    }
}

/// The direction of the current round, for observers: 1 is home's, -1 away's.
fn inkling(lead: i32, seen: Seen<'_>) -> f64 {
    let winner = seen.next.and_then(|next| next.winner);
    let after = seen.next.map_or(lead, |next| {
        let card = next.periods.iter();
        card.map(|round| round.home - round.away).sum()
    });
    match (after.cmp(&lead), winner) {
        (std::cmp::Ordering::Greater, _) | (_, Some(Side::Home)) => 1.0,
        (std::cmp::Ordering::Less, _) | (_, Some(Side::Away)) => -1.0,
        (std::cmp::Ordering::Equal, None) => 0.0,
    }
}

fn step(at: i64, status: Status, periods: &[Period], winner: Option<Side>) -> Step {
    Step {
        at,
        status,
        home: i32::from(winner == Some(Side::Home)),
        away: i32::from(winner == Some(Side::Away)),
        periods: periods.to_vec(),
        winner,
        incident: !periods.is_empty(),
    }
}

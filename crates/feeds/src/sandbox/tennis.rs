//! Tennis: best of three sets, games held or broken, a tie-break at six all.

use domain::{Period, Status};

use super::contest::{Fair, Form, Seen, Spread, Step, Timeline};
use super::noise::{Draws, logistic};

/// The serve parameters of a match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    /// Log-odds of holding serve between equal players.
    pub(crate) hold: f64,
    /// True if the home player serves first.
    pub(crate) home_first: bool,
}

const SETS_TO_WIN: i32 = 2;
/// Number of bins for games, the last one for all larger counts; three sets of 7-6 are 39.
const GAMES_MAX: usize = 40;
const LEAD_MAX: i32 = 20;

/// Chances in one game.
#[derive(Clone, Copy)]
struct Game {
    home_holds: f64,
    away_holds: f64,
    tie_break: f64,
}

/// A possible end of a set, with its chance.
#[derive(Clone, Copy)]
struct SetEnd {
    home: i32,
    away: i32,
    p: f64,
}

impl Match {
    fn game(&self, form: Form) -> Game {
        let hold = self.hold + form.tempo;
        Game {
            home_holds: logistic(hold + form.strength / 2.0),
            away_holds: logistic(hold - form.strength / 2.0),
            tie_break: logistic(0.8 * form.strength),
        }
    }

    pub(crate) fn play(&self, start: i64, form: Form, key: u64) -> Timeline {
        let game = self.game(form);
        let mut draws = Draws::new(key);
        let mut now = start;
        let mut sets = (0, 0);
        let mut periods = vec![period(1)];
        let mut steps = vec![step(start, sets, &periods, false)];
        let mut home_serves = self.home_first;
        // Time for walk-on, coin toss and warm-up.
        now += draws.seconds(240, 480);
        while sets.0 < SETS_TO_WIN && sets.1 < SETS_TO_WIN {
            let Some(set) = periods.last_mut() else { break };
            let decider = set.home == 6 && set.away == 6;
            let home_wins = draws.chance(match (decider, home_serves) {
                (true, _) => game.tie_break,
                (false, true) => game.home_holds,
                (false, false) => 1.0 - game.away_holds,
            });
            now += if decider { draws.seconds(420, 700) } else { draws.seconds(130, 300) };
            *(if home_wins { &mut set.home } else { &mut set.away }) += 1;
            let ended = set_over(set.home, set.away);
            if ended {
                *(if home_wins { &mut sets.0 } else { &mut sets.1 }) += 1;
            }
            let broken = home_wins != home_serves;
            home_serves = !home_serves;
            steps.push(step(now, sets, &periods, ended || broken));
            if ended && sets.0 < SETS_TO_WIN && sets.1 < SETS_TO_WIN {
                periods.push(period(u32::try_from(periods.len()).unwrap_or(0) + 1));
                now += 120;
            }
        }
        if let Some(last) = steps.last_mut() {
            last.status = Status::Final;
        }
        Timeline { steps, closed: now, over: now }
    }

    pub(crate) fn fair(&self, form: Form, seen: Option<Seen<'_>>) -> Fair {
        let game = self.game(form);
        let none = Vec::new();
        let periods = seen.map_or(&none, |seen| &seen.step.periods);
        let played: i32 = periods.iter().map(|set| set.home + set.away).sum();
        let lead: i32 = periods.iter().map(|set| set.home - set.away).sum();
        let open = periods
            .last()
            .filter(|set| !set_over(set.home, set.away))
            .map_or((0, 0), |set| (set.home, set.away));
        let serves = self.home_first == (played % 2 == 0);
        let fresh =
            [set_ends((0, 0), self.home_first, game), set_ends((0, 0), !self.home_first, game)];
        let mut count = Count {
            home: 0.0,
            leads: vec![0.0; usize::try_from(2 * LEAD_MAX + 1).unwrap_or(0)],
            totals: vec![0.0; GAMES_MAX],
        };
        let sets = seen.map_or((0, 0), |seen| (seen.step.home, seen.step.away));
        let current = set_ends(open, serves, game);
        let from = Branch {
            sets,
            lead: lead - (open.0 - open.1),
            played: played - (open.0 + open.1),
            p: 1.0,
        };
        count.sets_from(&fresh, from, &current);
        Fair {
            home: count.home,
            margin: Spread::Mass { low: -LEAD_MAX, mass: count.leads },
            total: Spread::Mass { low: 0, mass: count.totals },
        }
    }
}

/// One possible course of the match so far.
#[derive(Clone, Copy)]
struct Branch {
    sets: (i32, i32),
    lead: i32,
    played: i32,
    p: f64,
}

/// Sums over the possible ends of a match.
struct Count {
    home: f64,
    leads: Vec<f64>,
    totals: Vec<f64>,
}

impl Count {
    /// `fresh` holds the ends of a whole set that begins after an even number of games, and after an odd one.
    fn sets_from(&mut self, fresh: &[Vec<SetEnd>; 2], from: Branch, ends: &[SetEnd]) {
        for end in ends {
            let won = end.home > end.away;
            let to = Branch {
                sets: (from.sets.0 + i32::from(won), from.sets.1 + i32::from(!won)),
                lead: from.lead + end.home - end.away,
                played: from.played + end.home + end.away,
                p: from.p * end.p,
            };
            if to.sets.0 == SETS_TO_WIN || to.sets.1 == SETS_TO_WIN {
                self.add(to);
            } else if to.p > 3e-6 {
                let [even, odd] = fresh;
                self.sets_from(fresh, to, if to.played % 2 == 0 { even } else { odd });
            }
        }
    }

    fn add(&mut self, end: Branch) {
        if end.sets.0 > end.sets.1 {
            self.home += end.p;
        }
        let lead = usize::try_from(end.lead + LEAD_MAX).unwrap_or(0);
        if let Some(slot) = self.leads.get_mut(lead) {
            *slot += end.p;
        }
        let total = usize::try_from(end.played).unwrap_or(0);
        if let Some(slot) = self.totals.get_mut(total.min(GAMES_MAX - 1)) {
            *slot += end.p;
        }
    }
}

/// The possible ends of a set from a given score.
fn set_ends(from: (i32, i32), home_serves: bool, game: Game) -> Vec<SetEnd> {
    let mut ends = Vec::with_capacity(14);
    let mut states = vec![SetEnd { home: from.0, away: from.1, p: 1.0 }];
    let mut serves = home_serves;
    // At most thirteen games; all states of one pass have the same number of games played.
    while !states.is_empty() {
        let mut next: Vec<SetEnd> = Vec::with_capacity(14);
        for state in states {
            let home_wins = if state.home == 6 && state.away == 6 {
                game.tie_break
            } else if serves {
                game.home_holds
            } else {
                1.0 - game.away_holds
            };
            for (home, away, p) in [
                (state.home + 1, state.away, state.p * home_wins),
                (state.home, state.away + 1, state.p * (1.0 - home_wins)),
            ] {
                let into = if set_over(home, away) { &mut ends } else { &mut next };
                match into.iter_mut().find(|known| (known.home, known.away) == (home, away)) {
                    Some(known) => known.p += p,
                    None => into.push(SetEnd { home, away, p }),
                }
            }
        }
        states = next;
        serves = !serves;
    }
    ends
}

fn set_over(home: i32, away: i32) -> bool {
    let (most, least) = (home.max(away), home.min(away));
    most == 7 || (most == 6 && least <= 4)
}

const fn period(number: u32) -> Period {
    Period { number, home: 0, away: 0 }
}

fn step(at: i64, sets: (i32, i32), periods: &[Period], incident: bool) -> Step {
    Step {
        at,
        status: Status::Live,
        home: sets.0,
        away: sets.1,
        periods: periods.to_vec(),
        winner: None,
        incident,
    }
}

//! American football: drives that end in a touchdown, a field goal or nothing, by quarter; overtime until a side
//! scores.
//!
//! The remaining margin and total are assumed to be normal, with variance in proportion to the remaining clock.

use domain::{Period, Side, Status};

use super::contest::{Fair, Form, Seen, Spread, Step, Timeline};
use super::noise::{Draws, normal_cdf, real, to_tick, whole};

/// The scoring level of a league.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gridiron {
    /// Expected points of both sides together in an even game.
    pub(crate) points: f64,
}

const QUARTER_CLOCK_S: f64 = 900.0;
/// Real time of a quarter, including stoppages.
const QUARTER_S: i64 = 2640;
const HALF_TIME_S: i64 = 780;
/// Variances per game, from the deviation of real results from the closing line.
const MARGIN_VARIANCE: f64 = 174.0;
const TOTAL_VARIANCE: f64 = 165.0;
/// Points come in sevens: a late lead is less safe than the clock alone suggests.
const LATE_VARIANCE: f64 = 25.0;
/// Variance that remains at the very end: a last kick.
const LAST_VARIANCE: f64 = 0.6;
const DRIVE_CLOCK_S: (f64, f64) = (85.0, 225.0);
/// Mean number of such drives in two halves, less the last of each half.
const DRIVES_PER_SIDE: f64 = 11.15;
const FIELD_GOAL: f64 = 0.155;

/// The score during play.
struct Board {
    home: i32,
    away: i32,
    periods: Vec<Period>,
    steps: Vec<Step>,
}

impl Board {
    fn add(&mut self, side: Side, points: i32) {
        let total = match side {
            Side::Home => &mut self.home,
            Side::Away => &mut self.away,
        };
        *total += points;
        if let Some(quarter) = self.periods.last_mut() {
            match side {
                Side::Home => quarter.home += points,
                Side::Away => quarter.away += points,
            }
        }
    }

    fn step(&mut self, at: i64, incident: bool) {
        self.steps.push(Step {
            at,
            status: Status::Live,
            home: self.home,
            away: self.away,
            periods: self.periods.clone(),
            winner: None,
            incident,
        });
    }

    /// Begins the quarters up to this one (0 to 3) that have not begun.
    fn begin(&mut self, start: i64, quarter: i32) {
        for number in 0..=quarter {
            if usize::try_from(number) == Ok(self.periods.len()) {
                self.quarter(quarter_start(start, number));
            }
        }
    }

    fn quarter(&mut self, at: i64) {
        let number = u32::try_from(self.periods.len()).unwrap_or(0) + 1;
        self.periods.push(Period { number, home: 0, away: 0 });
        self.step(at, false);
    }
}

impl Gridiron {
    /// The chance that a drive of this side ends in a touchdown.
    fn touchdown(&self, form: Form, side: Side) -> f64 {
        let half = (self.points + form.tempo) / 2.0;
        let points = match side {
            Side::Home => half + form.strength / 2.0,
            Side::Away => half - form.strength / 2.0,
        };
        ((points / DRIVES_PER_SIDE - 3.0 * FIELD_GOAL) / 6.99).clamp(0.04, 0.6)
    }

    pub(crate) fn play(&self, start: i64, form: Form, key: u64) -> Timeline {
        let mut draws = Draws::new(key);
        let mut board = Board { home: 0, away: 0, periods: Vec::new(), steps: Vec::new() };
        let mut side = if draws.chance(0.5) { Side::Home } else { Side::Away };
        for half in 0..2_i32 {
            let mut clock = f64::from(2 * half) * QUARTER_CLOCK_S;
            loop {
                let (least, most) = DRIVE_CLOCK_S;
                clock += least + (most - least) * draws.uniform();
                // A drive that does not end within the half scores nothing.
                if clock >= f64::from(2 * half + 2) * QUARTER_CLOCK_S {
                    break;
                }
                let quarter = if clock < f64::from(2 * half + 1) * QUARTER_CLOCK_S {
                    2 * half
                } else {
                    2 * half + 1
                };
                board.begin(start, quarter);
                let into = (clock - f64::from(quarter) * QUARTER_CLOCK_S) / QUARTER_CLOCK_S;
                let at = quarter_start(start, quarter) + to_tick(whole(into * real(QUARTER_S)));
                self.drive(form, side, &mut draws, &mut board, at);
                side = side.other();
            }
            board.begin(start, 2 * half + 1);
        }
        let mut over = quarter_start(start, 3) + QUARTER_S;
        let mut closed = over;
        if board.home == board.away {
            board.quarter(over + 180);
            over += 180 + draws.seconds(300, 1100);
            closed = over;
            let home = draws.chance(normal_cdf(form.strength / 14.0));
            let side = if home { Side::Home } else { Side::Away };
            let points = if draws.chance(0.6) { 3 } else { 6 };
            board.add(side, points);
        }
        board.step(over, true);
        if let Some(last) = board.steps.last_mut() {
            last.status = Status::Final;
        }
        Timeline { steps: board.steps, closed, over }
    }

    /// Plays one drive.
    fn drive(&self, form: Form, side: Side, draws: &mut Draws, board: &mut Board, at: i64) {
        let luck = draws.uniform();
        let touchdown = self.touchdown(form, side);
        let extra = draws.uniform();
        if luck < touchdown {
            let conversion = match extra {
                x if x < 0.92 => 1,
                x if x < 0.955 => 2,
                _ => 0,
            };
            board.add(side, 6 + conversion);
        } else if luck < touchdown + FIELD_GOAL {
            board.add(side, 3);
        } else if luck > 0.997 {
            board.add(side.other(), 2);
        } else {
            return;
        }
        board.step(at, true);
    }

    pub(crate) fn fair(&self, form: Form, seen: Option<Seen<'_>>) -> Fair {
        let left = seen.map_or(1.0, |seen| remaining(seen.at - seen.start));
        let (lead, points) = seen.map_or((0, 0), |seen| {
            (seen.step.home - seen.step.away, seen.step.home + seen.step.away)
        });
        let mean = f64::from(lead) + form.strength * left;
        let late = LATE_VARIANCE * left.sqrt() * (1.0 - left);
        let deviation = (MARGIN_VARIANCE * left + late + LAST_VARIANCE).sqrt();
        let home = normal_cdf(mean / deviation);
        // In the last minutes there is no market for margins and totals.
        if left < 0.02 {
            return Fair { home, margin: Spread::Closed, total: Spread::Closed };
        }
        Fair {
            home,
            margin: Spread::Normal { mean, deviation },
            total: Spread::Normal {
                mean: f64::from(points) + (self.points + form.tempo) * left,
                deviation: (TOTAL_VARIANCE * left + LAST_VARIANCE).sqrt(),
            },
        }
    }
}

/// Start of a quarter (0 to 3).
fn quarter_start(start: i64, quarter: i32) -> i64 {
    start + i64::from(quarter) * QUARTER_S + if quarter >= 2 { HALF_TIME_S } else { 0 }
}

/// The share of the clock that remains at this time since the start.
fn remaining(since: i64) -> f64 {
    let half = 2 * QUARTER_S;
    let played = if since < half { since } else { (since - HALF_TIME_S).clamp(half, 2 * half) };
    1.0 - real(played.max(0)) / real(2 * half)
}

//! Golf tournaments: a field of players, tee times, holes, a cut and a leaderboard.
//!
//! Every hole of every player is one hash, so the state of a tournament at any instant is a sum over the holes
//! completed by then. Four-day tournaments cut the field after two rounds; qualifiers are one round.

use std::cell::OnceCell;

use super::board::Outlook;
use super::noise::{TICK_S, count, gauss, mix, uniform, wave};
use super::people::{Circuit, name, shuffled};

/// The parameters of a tournament.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    pub(crate) seed: u64,
    pub(crate) key: u64,
    pub(crate) circuit: Circuit,
    /// Start of the tour's roster in the circuit, and its size.
    pub(crate) roster: (u64, u64),
    pub(crate) players: u64,
    pub(crate) rounds: i64,
    /// First tee time.
    pub(crate) start: i64,
    /// Time between two groups on one tee.
    pub(crate) gap_s: i64,
    pub(crate) hole_s: i64,
    pub(crate) course: OnceCell<Course>,
}

/// The values derived from hashes, computed once.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) players: Vec<Player>,
    /// The players of the last two rounds.
    survivors: Vec<bool>,
    names: OnceCell<Vec<Box<str>>>,
}

/// A player with the whole tournament, past and future.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    /// Position in the circuit's roster.
    person: u64,
    /// Strokes per round against the field; negative is better.
    pub(crate) skill: f64,
    /// Strokes against par after each number of holes.
    after: Vec<i32>,
    tees: Vec<i64>,
    /// Decides ties, like a play-off.
    fate: u64,
    /// Group in the first round.
    pub(crate) group: u64,
}

/// A leaderboard: the leaders, with the totals of the rounds they completed.
pub(crate) type Leaders = Vec<(usize, Vec<i32>)>;

/// Interval at which leaderboards change.
pub(crate) const BOARD_S: i64 = 120;
const PAR: i32 = 72;
const DAY_S: i64 = 86_400;
/// Players up to this position, ties included, continue after two rounds.
const CUT: usize = 65;
/// Mean and variance of a hole against par, from the table in [`hole`].
const HOLE_MEAN: f64 = 0.015;
const HOLE_VARIANCE: f64 = 0.505;
const LEADERS: usize = 10;

impl Tournament {
    pub(crate) fn course(&self) -> &Course {
        self.course.get_or_init(|| self.build())
    }

    pub(crate) fn round_start(&self, round: i64) -> i64 {
        self.start + round * DAY_S
    }

    /// Time when the last player finishes, rounded up to a leaderboard.
    pub(crate) fn round_end(&self, round: i64) -> i64 {
        let groups = i64::try_from(self.players / 3).unwrap_or(0);
        let span = (groups + 1) / 2 * self.gap_s + 18 * self.hole_s;
        self.round_start(round) + (span / BOARD_S + 1) * BOARD_S
    }

    /// Time when the result is official.
    pub(crate) fn over(&self) -> i64 {
        self.round_end(self.rounds - 1) + 30 * TICK_S
    }

    /// Time of the cut; `i64::MAX` for tournaments without one.
    pub(crate) fn cut_at(&self) -> i64 {
        if self.rounds > 2 { self.round_end(1) } else { i64::MAX }
    }

    /// The current round, or else the next one; `None` when all are over.
    pub(crate) fn round_at(&self, at: i64) -> Option<i64> {
        (0..self.rounds).find(|&round| at < self.round_end(round))
    }

    /// True if any player is on the course.
    pub(crate) fn playing(&self, at: i64) -> bool {
        self.round_at(at).is_some_and(|round| at >= self.round_start(round))
    }

    pub(crate) fn player_name(&self, player: &Player) -> Box<str> {
        name(self.seed, self.circuit, player.person)
    }

    /// The names of the whole field, in the order of [`Course::players`].
    pub(crate) fn names(&self) -> &[Box<str>] {
        let course = self.course();
        course.names.get_or_init(|| {
            let players = course.players.iter();
            players.map(|player| self.player_name(player)).collect()
        })
    }

    fn build(&self) -> Course {
        let half = usize::try_from(2 * 18).unwrap_or(0);
        let mut players: Vec<Player> = (0..self.players).map(|i| self.player(i)).collect();
        let mut totals: Vec<i32> = players.iter().map(|p| p.score(half)).collect();
        totals.sort_unstable();
        let line = totals.get(CUT - 1).copied().unwrap_or(i32::MAX);
        let survivors: Vec<bool> = players.iter().map(|p| p.score(half) <= line).collect();
        for round in 2..self.rounds {
            self.send_out(round, &mut players, &survivors);
        }
        Course { players, survivors, names: OnceCell::new() }
    }

    fn player(&self, i: u64) -> Player {
        let (first, roster) = self.roster;
        let person = first + shuffled(mix(self.key, 3), i, roster);
        let skill = 0.85 * gauss(mix(mix(self.seed, 0x901f), person)) - 0.1;
        let holes = mix(mix(self.key, 5), i);
        let mut score = 0;
        let mut after = Vec::with_capacity(73);
        after.push(0);
        for number in 0..self.rounds * 18 {
            score += hole(mix(holes, number.cast_unsigned()), skill);
            after.push(score);
        }
        let place = shuffled(mix(self.key, 4), i, self.players);
        // An early tee time one day, a late one the next.
        let other = (place + self.players / 6 * 3) % self.players;
        let tees = [place, other]
            .into_iter()
            .zip(0..self.rounds.min(2))
            .map(|(place, round)| {
                let slot = i64::try_from(place / 6).unwrap_or(0);
                self.round_start(round) + slot * self.gap_s
            })
            .collect();
        Player { person, skill, after, tees, fate: mix(holes, 9), group: place / 3 }
    }

    /// Tee times by position: the leaders start last, and players who missed the cut do not start.
    fn send_out(&self, round: i64, players: &mut [Player], survivors: &[bool]) {
        let done = usize::try_from(round * 18).unwrap_or(0);
        let mut order: Vec<(i32, u64, usize)> = players
            .iter()
            .zip(survivors)
            .enumerate()
            .filter(|(_, (_, stays))| **stays)
            .map(|(i, (player, _))| (player.score(done), player.fate, i))
            .collect();
        order.sort_unstable();
        let mut tees = vec![i64::MAX; players.len()];
        for (place, (_, _, i)) in order.iter().rev().enumerate() {
            let slot = i64::try_from(place / 4).unwrap_or(0);
            if let Some(tee) = tees.get_mut(*i) {
                *tee = self.round_start(round) + slot * self.gap_s;
            }
        }
        for (player, tee) in players.iter_mut().zip(tees) {
            player.tees.push(tee);
        }
    }

    /// The players still in the tournament at an instant.
    pub(crate) fn in_it(&self, at: i64) -> impl Iterator<Item = (usize, &Player)> {
        let course = self.course();
        let cut = at >= self.cut_at();
        let players = course.players.iter().zip(&course.survivors).enumerate();
        players.filter(move |(_, (_, stays))| !cut || **stays).map(|(i, (player, _))| (i, player))
    }

    /// The expected score of a player's whole tournament.
    pub(crate) fn outlook(&self, player: &Player, at: i64) -> Outlook {
        let done = player.holes(at, self.hole_s);
        self.expect(player, done, usize::try_from(self.rounds * 18).unwrap_or(0), at)
    }

    /// The expected score of a player's round.
    pub(crate) fn round_outlook(&self, player: &Player, round: i64, at: i64) -> Outlook {
        let from = usize::try_from(round * 18).unwrap_or(0);
        let done = player.holes(at, self.hole_s).clamp(from, from + 18);
        let mut outlook = self.expect(player, done, from + 18, at);
        outlook.mean -= f64::from(player.score(from));
        outlook
    }

    fn expect(&self, player: &Player, done: usize, until: usize, at: i64) -> Outlook {
        let left = count(until.saturating_sub(done));
        // The opinion of a player drifts by a fifth of a stroke per round.
        let form = 0.2 * wave(player.fate, at, 20_000);
        Outlook {
            mean: f64::from(player.score(done)) + left * (HOLE_MEAN + (player.skill + form) / 18.0),
            variance: left * HOLE_VARIANCE,
        }
    }

    /// The top of the leaderboard, by strokes against par of the players who have started.
    pub(crate) fn leaders(&self, at: i64) -> Leaders {
        let mut board: Vec<(i32, u64, usize, usize)> = self
            .in_it(at)
            .map(|(i, player)| (i, player, player.holes(at, self.hole_s)))
            .filter(|(_, _, holes)| *holes > 0)
            .map(|(i, player, holes)| (player.score(holes), player.fate, i, holes))
            .collect();
        if board.len() > LEADERS {
            board.select_nth_unstable(LEADERS);
            board.truncate(LEADERS);
        }
        board.sort_unstable();
        let players = &self.course().players;
        let row = |(_, _, i, holes): (i32, u64, usize, usize)| {
            let player = players.get(i)?;
            Some((i, player.rounds(holes / 18)))
        };
        board.into_iter().filter_map(row).collect()
    }

    /// The current leaderboard and its time; `None` before the start.
    pub(crate) fn board_at(&self, at: i64) -> Option<(i64, Leaders)> {
        if at < self.start {
            return None;
        }
        let mut candidate = at.div_euclid(BOARD_S) * BOARD_S;
        let mut held = self.leaders(candidate);
        while candidate > self.start {
            if !self.may_change(candidate) {
                // Nothing changes at night: go back to the end of the last round.
                let ended = (0..self.rounds).map(|round| self.round_end(round));
                candidate = ended.filter(|end| *end < candidate).max().unwrap_or(self.start);
                continue;
            }
            let before = self.leaders(candidate - BOARD_S);
            if before != held {
                return Some((candidate, held));
            }
            held = before;
            candidate -= BOARD_S;
        }
        Some((self.start, Vec::new()))
    }

    /// The leaderboards that are new after `from`, up to and including `to`.
    pub(crate) fn new_boards(&self, from: i64, to: i64) -> Vec<(i64, Leaders)> {
        let mut boards = Vec::new();
        let mut at = (from.max(self.start).div_euclid(BOARD_S) + 1) * BOARD_S;
        while at <= to && at < self.over() {
            if self.may_change(at) {
                let board = self.leaders(at);
                if board != self.leaders(at - BOARD_S) {
                    boards.push((at, board));
                }
            }
            at += BOARD_S;
        }
        boards
    }

    /// True if the leaderboard at an instant can differ from the previous one.
    fn may_change(&self, at: i64) -> bool {
        (0..self.rounds).any(|round| self.round_start(round) < at && at <= self.round_end(round))
    }
}

impl Player {
    /// Strokes against par after a number of holes.
    fn score(&self, holes: usize) -> i32 {
        self.after.get(holes).copied().unwrap_or(0)
    }

    /// Number of completed holes.
    fn holes(&self, at: i64, hole_s: i64) -> usize {
        let played =
            self.tees.iter().map(|tee| at.saturating_sub(*tee).div_euclid(hole_s).clamp(0, 18));
        usize::try_from(played.sum::<i64>()).unwrap_or(0)
    }

    /// Strokes in each of the first rounds.
    fn rounds(&self, rounds: usize) -> Vec<i32> {
        (0..rounds)
            .map(|round| PAR + self.score(18 * round + 18) - self.score(18 * round))
            .collect()
    }
}

/// Strokes against par on one hole.
fn hole(hash: u64, skill: f64) -> i32 {
    let u = uniform(hash);
    let shift = skill / 36.0;
    let birdie = 0.205 - shift;
    match u {
        u if u < 0.005 => -2,
        u if u < birdie => -1,
        u if u < 0.805 - shift => 0,
        u if u < 0.97 => 1,
        _ => 2,
    }
}

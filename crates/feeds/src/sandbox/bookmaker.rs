//! The bookmakers of the sandbox: their sports, grid, margin, bias and delay, and the times at which each feed is
//! read.
//!
//! The keys are the catalogue's; the behaviour is invented. Each region has at least five of them.

use domain::Market;

use super::discipline::Discipline;
use super::event::Event;
use super::grid::Grid;
use super::noise::{TICK_S, below, mix, to_tick, uniform};
use super::schedule::FOOTBALL_SPACING_S;
use super::scheduled_faults::{STALE, STALE_BY_S, is_silent};

/// The behaviour of one bookmaker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) key: &'static str,
    pub(crate) grid: Grid,
    /// Overround of an even two-way market.
    pub(crate) margin: f64,
    /// Overround of an outright.
    pub(crate) long_margin: f64,
    /// Maximum deviation of its opinion of an event from the market's, in log-odds. Well below the margins, or
    /// arbitrage would be common.
    pub(crate) bias: f64,
    /// Time from news or an incident until it is priced.
    pub(crate) delay_s: i64,
    /// Interval at which it reprices an event before the start.
    pub(crate) requote_s: i64,
    /// Read interval of its feed, and the phase of the reads.
    pub(crate) read_s: (i64, i64),
    pub(crate) sports: &'static [Discipline],
    pub(crate) style: Style,
    /// Share of the minor events that it carries.
    pub(crate) cover: f64,
    /// A hash of the key.
    salt: u64,
}

/// Pricing habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Lines at standard juice: the line moves, the price stays.
    American,
    /// The price moves; boxing is priced with the draw.
    British,
    /// The price moves.
    Plain,
    /// Only the winner markets.
    Exchange,
    /// Like American, but closed once the event starts.
    PreMatch,
}

/// The bookmaker that deviates from the market on some games, so that there is always an arbitrage, a price above its
/// fair value, and lines far enough apart for a middle. It is never silent.
const CONTRARY: &str = "caesars";
/// Deviation of its opinion from the market's on those games, in log-odds.
const CONTRARY_BIAS: f64 = 0.3;
/// The interval of those football games. About 24 games are scheduled at any time.
const CONTRARY_EVERY: i64 = 6;

const ALL: &[Discipline] = &Discipline::ALL;
const NO_GOLF: &[Discipline] =
    &[Discipline::Mma, Discipline::Boxing, Discipline::Tennis, Discipline::Football];
const NO_BOXING: &[Discipline] =
    &[Discipline::Mma, Discipline::Tennis, Discipline::Football, Discipline::Golf];
const NO_TENNIS: &[Discipline] =
    &[Discipline::Mma, Discipline::Boxing, Discipline::Football, Discipline::Golf];
const NO_FOOTBALL: &[Discipline] =
    &[Discipline::Mma, Discipline::Boxing, Discipline::Tennis, Discipline::Golf];
const NO_MMA: &[Discipline] =
    &[Discipline::Boxing, Discipline::Tennis, Discipline::Football, Discipline::Golf];

/// In the order of keys.
pub(crate) const PROFILES: [Profile; 16] = [
    profile(STALE, Grid::AmericanFives, Style::PreMatch, NO_GOLF, [0.0455, 0.30], [60, 900, 60, 0]),
    profile("bet365", Grid::Fractions, Style::British, ALL, [0.052, 0.28], [10, 300, 20, 0]),
    profile("betfair", Grid::DecimalTicks, Style::Exchange, ALL, [0.022, 0.06], [0, 120, 10, 0]),
    profile("betmgm", Grid::AmericanFives, Style::American, ALL, [0.0455, 0.32], [20, 480, 30, 0]),
    profile(
        "betrivers",
        Grid::AmericanPoints,
        Style::American,
        NO_BOXING,
        [0.054, 0.30],
        [30, 600, 30, 10],
    ),
    profile("bovada", Grid::AmericanFives, Style::American, ALL, [0.0455, 0.34], [30, 600, 30, 20]),
    profile(
        "caesars",
        Grid::AmericanTens,
        Style::American,
        NO_TENNIS,
        [0.0455, 0.33],
        [20, 540, 30, 0],
    ),
    profile(
        "draftkings",
        Grid::AmericanFives,
        Style::American,
        ALL,
        [0.0455, 0.26],
        [10, 300, 20, 10],
    ),
    profile("fanduel", Grid::AmericanPoints, Style::American, ALL, [0.047, 0.26], [10, 300, 20, 0]),
    profile(
        "ladbrokes",
        Grid::Fractions,
        Style::British,
        NO_FOOTBALL,
        [0.065, 0.36],
        [40, 600, 30, 10],
    ),
    profile(
        "paddypower",
        Grid::Fractions,
        Style::British,
        NO_MMA,
        [0.060, 0.32],
        [20, 480, 30, 20],
    ),
    profile(
        "pinnacle",
        Grid::DecimalThousandths,
        Style::Plain,
        ALL,
        [0.026, 0.14],
        [0, 120, 10, 0],
    ),
    profile("sportsbet", Grid::DecimalTicks, Style::Plain, ALL, [0.055, 0.30], [20, 420, 30, 10]),
    profile("tab", Grid::DecimalTicks, Style::Plain, NO_FOOTBALL, [0.060, 0.34], [50, 900, 30, 20]),
    profile("unibet", Grid::DecimalTicks, Style::Plain, ALL, [0.050, 0.28], [10, 360, 20, 10]),
    profile("williamhill", Grid::Fractions, Style::British, ALL, [0.060, 0.32], [30, 540, 30, 0]),
];

/// `margins`: two-way, outright. `seconds`: delay, requote, read period, read phase.
const fn profile(
    key: &'static str,
    grid: Grid,
    style: Style,
    sports: &'static [Discipline],
    margins: [f64; 2],
    seconds: [i64; 4],
) -> Profile {
    let [margin, long_margin] = margins;
    let [delay_s, requote_s, period_s, phase_s] = seconds;
    Profile {
        key,
        grid,
        margin,
        long_margin,
        // Bookmakers with low margins have little bias.
        bias: 0.45 * (margin - 0.01),
        delay_s,
        requote_s,
        read_s: (period_s, phase_s),
        sports,
        style,
        cover: if margin < 0.053 { 1.0 } else { 0.85 },
        salt: salt_of(key),
    }
}

const fn salt_of(key: &str) -> u64 {
    let mut salt = 0;
    let mut left = key.as_bytes();
    while let [first, rest @ ..] = left {
        salt = mix(salt, u64::from_le_bytes([*first, 0, 0, 0, 0, 0, 0, 0]));
        left = rest;
    }
    salt
}

impl Profile {
    /// A hash of this bookmaker and `about`.
    pub(crate) fn hash(&self, about: u64) -> u64 {
        mix(self.salt, about)
    }

    /// Its bias on an event, in log-odds.
    pub(crate) fn bias_on(&self, event: &Event) -> f64 {
        let side = 2.0 * uniform(self.hash(event.key)) - 1.0;
        if self.is_contrary_on(event) { CONTRARY_BIAS.copysign(side) } else { self.bias * side }
    }

    /// True if this is a game on which it deviates from the market.
    fn is_contrary_on(&self, event: &Event) -> bool {
        let slot = event.revisions.first().map(|first| first.commence / FOOTBALL_SPACING_S);
        let chosen = slot.is_some_and(|slot| slot % CONTRARY_EVERY == 0);
        chosen && event.discipline == Discipline::Football && self.key == CONTRARY
    }

    pub(crate) fn carries(&self, event: &Event) -> bool {
        self.sports.contains(&event.discipline) && uniform(self.hash(event.key ^ 0xc0)) < self.cover
    }

    /// Time at which it first offers an event.
    pub(crate) fn opens(&self, event: &Event) -> i64 {
        let wait = i64::try_from(below(self.hash(event.key ^ 0x09), 2400)).unwrap_or(0);
        event.listed() + to_tick(wait)
    }

    /// True if it offers this market in the sport at all.
    pub(crate) fn offers(&self, sport: Discipline, market: Market) -> bool {
        let combat = matches!(sport, Discipline::Mma | Discipline::Boxing);
        match market {
            Market::Moneyline | Market::Outright | Market::Matchup => true,
            // Only some bookmakers offer handicaps on the judges' cards.
            Market::Spread if combat => self.hash(0x57).is_multiple_of(2) || self.margin < 0.03,
            Market::Spread
            | Market::TotalPoints
            | Market::TotalRounds
            | Market::Top5
            | Market::Top10
            | Market::Top20 => self.style != Style::Exchange || market == Market::Top10,
            Market::RoundLeader => self.style == Style::British || self.style == Style::American,
            Market::ThreeBall => self.style != Style::Exchange,
        }
    }

    /// Delay between a read and its arrival.
    pub(crate) fn lag_s(&self) -> i64 {
        if self.key == STALE { STALE_BY_S } else { 0 }
    }

    fn is_read(&self, sport: Discipline, arrival: i64) -> bool {
        let (period, phase) = self.read_s;
        arrival.rem_euclid(period) == phase && !is_silent(self.key, sport, arrival)
    }

    /// Arrival of the last read at or before an instant. No silence lasts longer than ten minutes.
    pub(crate) fn last_read(&self, sport: Discipline, at: i64) -> i64 {
        let mut arrival = to_tick(at);
        for _ in 0..90_u8 {
            if self.is_read(sport, arrival) {
                break;
            }
            arrival -= TICK_S;
        }
        arrival
    }

    /// The reads that arrive after `from`, up to and including `to`.
    pub(crate) fn reads(&self, sport: Discipline, from: i64, to: i64) -> impl Iterator<Item = i64> {
        let (first, last) = (from.div_euclid(TICK_S) + 1, to.div_euclid(TICK_S));
        (first..=last)
            .map(|tick| tick * TICK_S)
            .filter(move |arrival| self.is_read(sport, *arrival))
    }
}

//! Five published ways to remove a bookmaker's margin (N9, N11).
//!
//! Doubles are allowed here and nowhere else in the analysis: the four operations and square roots are the same on
//! every machine, and `pow` is a library's own code, so that nodes agree to the byte. Whether a method applies at all
//! is decided exactly.

use std::cmp::Ordering;

use domain::Price;

use crate::analysis::exact::{Sum, stake_and_return};

/// A way to turn prices into probabilities that add up to the number of winners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Power,
    Multiplicative,
    Additive,
    Shin,
    OddsRatio,
}

/// What a method makes of one bookmaker's prices.
#[derive(Clone, Debug, PartialEq)]
pub struct WithoutMargin {
    /// In the order of the prices.
    pub probabilities: Box<[f64]>,
    /// k of power, z of Shin, c of the odds ratio.
    pub parameter: Option<f64>,
}

/// A price with what the methods need of it, and how many outcomes have that price: in a field many share one.
#[derive(Clone, Copy, Debug)]
struct Level {
    implied: f64,
    /// Profit over stake, which is (1 - π) / π without the loss of subtracting.
    odds: f64,
    count: f64,
}

/// Steps of a solver, at most. Half of that is usual for the hardest prices; a market takes ten.
const STEPS_MAX: u32 = 200;
/// Doublings to find where a sum is below the number of winners.
const DOUBLINGS_MAX: u32 = 200;

impl Method {
    pub const ALL: [Self; 5] =
        [Self::Power, Self::Multiplicative, Self::Additive, Self::Shin, Self::OddsRatio];

    pub const fn key(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Multiplicative => "multiplicative",
            Self::Additive => "additive",
            Self::Shin => "shin",
            Self::OddsRatio => "odds_ratio",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.key() == text)
    }

    /// Position in [`Method::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Shin's model has one winner.
    pub const fn supports(self, winners: u32) -> bool {
        !matches!(self, Self::Shin) || winners == 1
    }

    /// The probabilities without the margin; `None` where the method has no result. Prices that add up to less than
    /// the number of winners have no margin to remove.
    pub fn remove(self, prices: &[Price], winners: u32) -> Option<WithoutMargin> {
        let sum = Sum::of(prices.iter().copied());
        let is_fair = match sum.cmp_whole(winners) {
            Ordering::Less => return None,
            Ordering::Equal => true,
            Ordering::Greater => false,
        };
        if !self.supports(winners)
            || (self == Self::Additive && takes_too_much(prices, &sum, winners))
        {
            return None;
        }
        let market = Prices::new(prices, winners);
        let solved = match self {
            Self::Multiplicative | Self::Additive => None,
            Self::Power | Self::OddsRatio if is_fair => Some(1.0),
            Self::Shin if is_fair => Some(0.0),
            Self::Power | Self::OddsRatio => Some(market.solve(self, (1.0, market.upper(self)?))),
            Self::Shin => Some(market.solve(self, (0.0, 1.0))),
        };
        let parameter = solved.unwrap_or(0.0);
        let fair = |level: &Level| {
            if is_fair { level.implied } else { market.fair(self, level, parameter) }
        };
        let mut probabilities: Box<[f64]> =
            prices.iter().map(|price| fair(&level(*price))).collect();
        if !is_fair {
            settle(&mut probabilities, market.winners);
        }
        Some(WithoutMargin { probabilities, parameter: solved })
    }
}

/// One bookmaker's prices.
struct Prices {
    levels: Vec<Level>,
    winners: f64,
    booksum: f64,
    outcomes: f64,
}

impl Prices {
    fn new(prices: &[Price], winners: u32) -> Self {
        let mut sorted = prices.to_vec();
        sorted.sort_unstable();
        let levels: Vec<Level> = sorted
            .chunk_by(|one, other| one == other)
            .filter_map(|same| Some(Level { count: whole(same.len()), ..level(*same.first()?) }))
            .collect();
        let booksum = levels.iter().map(|level| level.count * level.implied).sum();
        Self { levels, winners: f64::from(winners), booksum, outcomes: whole(prices.len()) }
    }

    /// A price's probability under a method whose parameter is known.
    fn fair(&self, method: Method, level: &Level, parameter: f64) -> f64 {
        match method {
            Method::Multiplicative => self.winners * level.implied / self.booksum,
            Method::Additive => level.implied - (self.booksum - self.winners) / self.outcomes,
            Method::Power => libm::pow(level.implied, parameter),
            Method::Shin => {
                let square = level.implied * level.implied / self.booksum;
                // The formula of Jullien and Salanié with its difference of roots rationalised: it holds at z = 1 too.
                let root = (parameter * parameter + 4.0 * (1.0 - parameter) * square).sqrt();
                2.0 * square / (root + parameter)
            }
            Method::OddsRatio => 1.0 / (1.0 + parameter * level.odds),
        }
    }

    /// How far the probabilities add up to more than the number of winners. It falls with the parameter.
    fn excess(&self, method: Method, parameter: f64) -> f64 {
        let each =
            self.levels.iter().map(|level| level.count * self.fair(method, level, parameter));
        each.sum::<f64>() - self.winners
    }

    /// A parameter that is too large; `None` where there is none, as for a price whose probability is 1 in doubles.
    fn upper(&self, method: Method) -> Option<f64> {
        let mut upper = 1.25;
        for _ in 0..DOUBLINGS_MAX {
            if self.excess(method, upper) < 0.0 {
                return Some(upper);
            }
            upper *= 2.0;
        }
        None
    }

    /// The parameter between two bounds at which the probabilities add up: regula falsi with the Illinois rule, which
    /// keeps the root between its bounds, and halving wherever a step brings little.
    fn solve(&self, method: Method, (mut low, mut high): (f64, f64)) -> f64 {
        let (mut above, mut below) = (self.excess(method, low), self.excess(method, high));
        if above <= 0.0 {
            return low;
        }
        let mut last = Ordering::Equal;
        for step in 0..STEPS_MAX {
            let middle = low + (high - low) / 2.0;
            let slope = low + (high - low) * (above / (above - below));
            let next = if step % 8 == 7 || !(slope > low && slope < high) { middle } else { slope };
            if !(next > low && next < high) {
                break;
            }
            let excess = self.excess(method, next);
            let side = excess.total_cmp(&0.0);
            match side {
                Ordering::Greater => {
                    (low, above) = (next, excess);
                    below /= if last == side { 2.0 } else { 1.0 };
                }
                Ordering::Less => {
                    (high, below) = (next, excess);
                    above /= if last == side { 2.0 } else { 1.0 };
                }
                Ordering::Equal => return next,
            }
            last = side;
            if excess.abs() < SETTLED * self.winners {
                return next;
            }
        }
        low + (high - low) / 2.0
    }
}

/// So near to the number of winners, for each of them, is near enough: what is left is scaled away.
const SETTLED: f64 = 1e-13;

/// Whether the additive method leaves an outcome nothing: π ≤ (B - W) / n of the longest price, exactly.
fn takes_too_much(prices: &[Price], sum: &Sum, winners: u32) -> bool {
    let Some(longest) = prices.iter().max() else { return true };
    let (stake, total) = stake_and_return(*longest);
    let (outcomes, stake) = (u128::try_from(prices.len()).unwrap_or(u128::MAX), u128::from(stake));
    let most = u128::from(winners) * total + outcomes.saturating_mul(stake);
    sum.cmp_ratio(most, total).is_ge()
}

/// Takes the last rounding errors out: the probabilities add up to the number of winners.
fn settle(probabilities: &mut [f64], winners: f64) {
    let sum: f64 = probabilities.iter().sum();
    if sum > 0.0 {
        probabilities.iter_mut().for_each(|own| *own *= winners / sum);
    }
}

fn level(price: Price) -> Level {
    let (profit, stake) = (real(price.profit()), real(price.stake()));
    Level { implied: stake / (stake + profit), odds: profit / stake, count: 1.0 }
}

/// The nearest double.
fn real(number: u64) -> f64 {
    /// 2^32
    const HALF: f64 = 4_294_967_296.0;
    let half = |bits: u64| f64::from(u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX));
    half(number >> 32) * HALF + half(number)
}

pub(crate) fn whole(number: usize) -> f64 {
    u64::try_from(number).map_or(f64::MAX, real)
}

#[cfg(test)]
mod tests;

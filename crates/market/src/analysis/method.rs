//! Five published methods for removing a bookmaker's margin (N9, N11).
//!
//! Doubles are allowed here and nowhere else in the analysis: the four operations and square roots are the same on
//! every machine, and `exp` and `log`, from which the power method's `pow` is built, are a library's own code, so
//! that nodes agree to the byte. Whether a method applies at all is decided exactly.

use std::cmp::Ordering;

use domain::Price;

use crate::analysis::exact::{Sum, stake_and_return};

/// A method for converting prices to probabilities that add up to the number of winners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Power,
    Multiplicative,
    Additive,
    Shin,
    OddsRatio,
}

/// The result of a method for one bookmaker's prices.
#[derive(Clone, Debug, PartialEq)]
pub struct WithoutMargin {
    /// Probabilities in the order of the prices.
    pub probabilities: Box<[f64]>,
    /// The fitted parameter: k of power, z of Shin, c of the odds ratio.
    pub parameter: Option<f64>,
}

/// A price shared by some outcomes: in a field many are equal.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The value that the parameter is applied to: ln π for power, π² / B for Shin, (1 - π) / π for the odds ratio.
    base: f64,
    count: f64,
}

/// Maximum number of steps of a solver. The hardest prices take some forty, a market four.
const STEPS_MAX: u32 = 200;
/// Tolerance of the sum, per winner: the remaining error is removed by scaling.
const SETTLED: f64 = 1e-13;

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

    /// True if the method supports this number of winners: Shin's model has one.
    pub const fn supports(self, winners: u32) -> bool {
        !matches!(self, Self::Shin) || winners == 1
    }

    /// The probabilities without the margin; `None` if the method has no result. Prices that add up to less than the
    /// number of winners have no margin to remove.
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
        let implied: Box<[f64]> = prices.iter().map(|price| implied(*price)).collect();
        if is_fair {
            return Some(WithoutMargin { probabilities: implied, parameter: self.neutral() });
        }
        let booksum: f64 = implied.iter().sum();
        let winners = f64::from(winners);
        let (mut probabilities, parameter) = match self {
            Self::Multiplicative => (implied, None),
            Self::Additive => {
                let share = (booksum - winners) / whole(implied.len());
                (implied.iter().map(|own| own - share).collect(), None)
            }
            Self::Power | Self::Shin | Self::OddsRatio => {
                let keys = if self == Self::OddsRatio {
                    prices.iter().map(|price| odds(*price)).collect()
                } else {
                    implied
                };
                let levels = Levels::new(self, &keys, booksum, winners);
                let parameter = levels.solve()?;
                (levels.probabilities(parameter), Some(parameter))
            }
        };
        settle(&mut probabilities, winners);
        Some(WithoutMargin { probabilities, parameter })
    }

    /// The parameter that leaves probabilities unchanged.
    const fn neutral(self) -> Option<f64> {
        match self {
            Self::Power | Self::OddsRatio => Some(1.0),
            Self::Shin => Some(0.0),
            Self::Multiplicative | Self::Additive => None,
        }
    }
}

/// The distinct prices of an offer, for the methods that fit a parameter.
struct Levels {
    method: Method,
    winners: f64,
    levels: Vec<Level>,
    /// For each price, the position of its level.
    of_price: Vec<usize>,
}

impl Levels {
    /// Groups implied probabilities, or odds for the odds ratio: none is negative, so their bits sort as they do.
    fn new(method: Method, keys: &[f64], booksum: f64, winners: f64) -> Self {
        let mut order: Vec<(u64, usize)> = keys.iter().map(|key| key.to_bits()).zip(0..).collect();
        order.sort_unstable();
        let mut levels = Vec::new();
        let mut of_price = vec![0; keys.len()];
        for same in order.chunk_by(|one, other| one.0 == other.0) {
            for (_, at) in same {
                if let Some(own) = of_price.get_mut(*at) {
                    *own = levels.len();
                }
            }
            let key = same.first().map_or(0.0, |(bits, _)| f64::from_bits(*bits));
            let base = match method {
                Method::Power => libm::log(key),
                Method::Shin => key * key / booksum,
                Method::OddsRatio | Method::Multiplicative | Method::Additive => key,
            };
            levels.push(Level { base, count: whole(same.len()) });
        }
        Self { method, winners, levels, of_price }
    }

    fn probabilities(&self, parameter: f64) -> Box<[f64]> {
        let levels = self.levels.iter().map(|level| self.fair(level.base, parameter).0);
        let levels: Vec<f64> = levels.collect();
        self.of_price.iter().map(|at| levels.get(*at).copied().unwrap_or(0.0)).collect()
    }

    /// A price's probability at a parameter, and its rate of decrease there.
    fn fair(&self, base: f64, parameter: f64) -> (f64, f64) {
        match self.method {
            Method::Power => {
                let fair = libm::exp(parameter * base);
                (fair, -base * fair)
            }
            Method::Shin => {
                // The formula of Jullien and Salanié with the difference of roots rationalised: it is valid at z = 1,
                // too.
                let root = (parameter * parameter + 4.0 * (1.0 - parameter) * base).sqrt();
                let fair = 2.0 * base / (root + parameter);
                (fair, fair * (1.0 + (parameter - 2.0 * base) / root) / (root + parameter))
            }
            Method::OddsRatio => {
                let fair = 1.0 / (1.0 + parameter * base);
                (fair, base * fair * fair)
            }
            Method::Multiplicative | Method::Additive => (base, 0.0),
        }
    }

    /// The step of Newton's method.
    ///
    /// It is applied to a function of the sum that is nearly straight, and convex if it falls, concave if it rises:
    /// steps from below the root stay below it. ln of the sum is convex for power, 1 over the sum is concave for the
    /// odds ratio, and for one price both are straight lines.
    fn step(&self, sum: f64, fall: f64) -> f64 {
        let excess = sum - self.winners;
        match self.method {
            Method::Power => libm::log(sum / self.winners) * sum / fall,
            Method::OddsRatio => excess * (sum / self.winners) / fall,
            Method::Shin | Method::Multiplicative | Method::Additive => excess / fall,
        }
    }

    /// The parameter at which the probabilities add up to the number of winners: Newton's method between bounds, with
    /// bisection if a step leaves them or several make little progress.
    ///
    /// `None` if there is none, as for power with a price whose probability is 1 in doubles.
    fn solve(&self) -> Option<f64> {
        let certain = self.levels.iter().filter(|level| level.base >= 0.0);
        if self.method == Method::Power
            && certain.map(|level| level.count).sum::<f64>() >= self.winners
        {
            return None;
        }
        let mut high = if self.method == Method::Shin { 1.0 } else { f64::INFINITY };
        let mut low = self.method.neutral()?;
        let mut at = low;
        for step in 1..=STEPS_MAX {
            let (mut sum, mut fall) = (0.0, 0.0);
            for level in &self.levels {
                let own = self.fair(level.base, at);
                sum += level.count * own.0;
                fall += level.count * own.1;
            }
            let excess = sum - self.winners;
            if excess.abs() < SETTLED * self.winners {
                break;
            }
            *(if excess > 0.0 { &mut low } else { &mut high }) = at;
            let newton = at + self.step(sum, fall);
            let is_inside = |next: f64| next > low && next < high;
            let next = if is_inside(newton) && (step % 8 > 0 || high.is_infinite()) {
                newton
            } else if high.is_infinite() {
                low * 2.0
            } else {
                low + (high - low) / 2.0
            };
            if !is_inside(next) {
                break;
            }
            at = next;
        }
        Some(at)
    }
}

/// True if the additive method leaves an outcome without probability: π ≤ (B - W) / n for the longest price, exactly.
fn takes_too_much(prices: &[Price], sum: &Sum, winners: u32) -> bool {
    let Some(longest) = prices.iter().max() else { return true };
    let (stake, total) = stake_and_return(*longest);
    let (outcomes, stake) = (u128::try_from(prices.len()).unwrap_or(u128::MAX), u128::from(stake));
    let most = u128::from(winners) * total + outcomes.saturating_mul(stake);
    sum.cmp_ratio(most, total).is_ge()
}

/// Removes the last rounding errors: the probabilities add up to the number of winners.
fn settle(probabilities: &mut [f64], winners: f64) {
    let sum: f64 = probabilities.iter().sum();
    if sum > 0.0 {
        let factor = winners / sum;
        probabilities.iter_mut().for_each(|own| *own *= factor);
    }
}

/// Stake divided by return.
fn implied(price: Price) -> f64 {
    let (profit, stake) = (real(price.profit()), real(price.stake()));
    stake / (stake + profit)
}

/// Profit divided by stake, which is (1 - π) / π without the loss of precision of a subtraction.
fn odds(price: Price) -> f64 {
    real(price.profit()) / real(price.stake())
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

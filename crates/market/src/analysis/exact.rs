//! Exact sums of implied probabilities (N7, N8).
//!
//! A sum of ratios has a denominator as long as all of them together. Bounds in 64 fractional bits, which cost one
//! division each, answer nearly every question; the exact sum is computed only if the bounds do not decide: if a sum
//! is exactly 1, or on the edge between two written values.

use std::cmp::Ordering;
use std::ops::{Mul, Sub};

use domain::Price;
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;

/// Billionths: nine places.
pub type Billionths = i128;

/// One, in billionths.
pub const ONE: Billionths = 1_000_000_000;

/// Number of fractional bits of the bounds: a stake of 64 bits, shifted by this, still fits 128.
const FRACTION_BITS: u32 = 63;

/// The sum of the implied probabilities of some prices: the booksum.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Lower and upper bound of the sum, in units of 2^-63.
    least: u128,
    most: u128,
    prices: Vec<Price>,
}

/// The rounding of a value with more than nine places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    HalfEven,
    Down,
    Up,
}

/// A function of the sum. Each is monotonic, so that its bounds follow from the sum's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The sum itself.
    Booksum,
    /// The sum less 1.
    Excess,
    /// 1 - winners / sum.
    Hold { winners: u32 },
    /// 1 / sum - 1.
    Profit,
}

impl Sum {
    pub fn of(prices: impl IntoIterator<Item = Price>) -> Self {
        let prices: Vec<Price> = prices.into_iter().collect();
        let (mut least, mut most) = (0, 0);
        for price in &prices {
            let (stake, total) = stake_and_return(*price);
            let shifted = u128::from(stake) << FRACTION_BITS;
            // One division: divisions are most of the cost of a sum.
            let part = shifted / total;
            least += part;
            most += part + u128::from(part * total < shifted);
        }
        Self { least, most, prices }
    }

    /// Compares the sum with a ratio.
    pub fn cmp_ratio(&self, numerator: u128, denominator: u128) -> Ordering {
        let bounded = || {
            let there = numerator.checked_mul(1 << FRACTION_BITS)?;
            let at_least = self.least.checked_mul(denominator)?.cmp(&there);
            let at_most = self.most.checked_mul(denominator)?.cmp(&there);
            (at_least == at_most).then_some(at_least)
        };
        bounded().unwrap_or_else(|| {
            let (ours, over) = self.ratio();
            (ours * denominator).cmp(&(over * numerator))
        })
    }

    /// Compares the sum with a whole number.
    pub fn cmp_whole(&self, whole: u32) -> Ordering {
        self.cmp_ratio(whole.into(), 1)
    }

    /// A measure of the sum, to nine places.
    pub fn measure(&self, measure: Measure, rounding: Rounding) -> Billionths {
        self.measure_by_bounds(measure, rounding).unwrap_or_else(|| {
            let (sum, over) = self.ratio();
            let (numerator, denominator) = measure.of(BigInt::from(sum), BigInt::from(over));
            let written = rounded(numerator, &denominator, rounding);
            Billionths::try_from(written).unwrap_or(Billionths::MAX)
        })
    }

    fn measure_by_bounds(&self, measure: Measure, rounding: Rounding) -> Option<Billionths> {
        let at = |bound: u128| {
            let bound = i128::try_from(bound).ok().filter(|bound| *bound > 0)?;
            let (numerator, denominator) = measure.of(bound, 1_i128 << FRACTION_BITS);
            // The profit of a tiny sum needs more than 128 bits.
            numerator.checked_mul(ONE)?;
            Some(rounded(numerator, &denominator, rounding))
        };
        let (least, most) = (at(self.least)?, at(self.most)?);
        (least == most).then_some(least)
    }

    /// The sum as a ratio, not in lowest terms.
    fn ratio(&self) -> (BigUint, BigUint) {
        let mut sum = (BigUint::ZERO, BigUint::from(1_u32));
        for price in &self.prices {
            let (stake, total) = stake_and_return(*price);
            sum = (sum.0 * total + &sum.1 * stake, sum.1 * total);
        }
        sum
    }

    /// Divides an amount in proportion to the probabilities, rounded down; the remainder goes one each to the largest
    /// remainders, the first of equals first (N16).
    pub fn divide(&self, amount: u64) -> Vec<u64> {
        let (sum, over) = self.ratio();
        let share = |price: &Price| {
            let (stake, total) = stake_and_return(*price);
            // The product of all returns is a multiple of each.
            (&over * amount * stake / total).div_rem(&sum)
        };
        let shares: Vec<(BigUint, BigUint)> = self.prices.iter().map(share).collect();
        let mut parts: Vec<u64> =
            shares.iter().map(|(part, _)| u64::try_from(part).unwrap_or(amount)).collect();
        let mut order: Vec<usize> = (0..shares.len()).collect();
        let rest = |at: &usize| shares.get(*at).map(|(_, rest)| rest);
        order.sort_by(|one, other| rest(other).cmp(&rest(one)));
        let given: u64 = parts.iter().sum();
        let left = usize::try_from(amount.saturating_sub(given)).unwrap_or(0);
        for at in order.into_iter().take(left) {
            if let Some(part) = parts.get_mut(at) {
                *part += 1;
            }
        }
        parts
    }
}

impl Ord for Sum {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.most < other.least {
            return Ordering::Less;
        }
        if self.least > other.most {
            return Ordering::Greater;
        }
        let ((ours, over), (theirs, under)) = (self.ratio(), other.ratio());
        (ours * under).cmp(&(theirs * over))
    }
}

impl PartialOrd for Sum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Sum {}

impl Measure {
    /// The measure of the sum `sum / over`, as a ratio with a denominator above zero.
    fn of<T>(self, sum: T, over: T) -> (T, T)
    where
        T: Clone + Sub<Output = T> + Mul<Output = T> + From<u32>,
    {
        match self {
            Self::Booksum => (sum, over),
            Self::Excess => (sum - over.clone(), over),
            Self::Hold { winners } => (sum.clone() - over * T::from(winners), sum),
            Self::Profit => (over - sum.clone(), sum),
        }
    }
}

/// Expected value of a unit staked at a price, for a published probability: p · (1 + profit / stake) - 1, rounded
/// down. All of it fits 128 bits.
pub fn expected_value(probability: u32, price: Price) -> Billionths {
    let (stake, total) = stake_and_return(price);
    let gain = i128::from(probability) * i128::try_from(total).unwrap_or(i128::MAX);
    let stake = i128::from(stake);
    (gain - stake * ONE).div_euclid(stake)
}

/// Compares the expected values of two bets exactly.
pub fn cmp_expected_value(one: (u32, Price), other: (u32, Price)) -> Ordering {
    let ((stake, total), (other_stake, other_total)) =
        (stake_and_return(one.1), stake_and_return(other.1));
    let ours = BigUint::from(one.0) * total * other_stake;
    let theirs = BigUint::from(other.0) * other_total * stake;
    ours.cmp(&theirs)
}

/// The return of a stake in cents at a price, rounded down to cents.
pub fn returns(cents: u64, price: Price) -> u128 {
    let (stake, total) = stake_and_return(price);
    u128::from(cents) * total / u128::from(stake)
}

/// Stake and return; the implied probability is the first divided by the second.
pub(crate) fn stake_and_return(price: Price) -> (u64, u128) {
    (price.stake(), u128::from(price.stake()) + u128::from(price.profit()))
}

/// A ratio in billionths.
fn rounded<T: Integer + Clone + TryFrom<Billionths>>(
    numerator: T,
    denominator: &T,
    rounding: Rounding,
) -> T {
    let Ok(scale) = T::try_from(ONE) else { return T::zero() };
    let (whole, rest) = (numerator * scale).div_mod_floor(denominator);
    let up = match rounding {
        Rounding::Down => false,
        Rounding::Up => !rest.is_zero(),
        Rounding::HalfEven => match (rest.clone() + rest).cmp(denominator) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => whole.is_odd(),
        },
    };
    if up { whole + T::one() } else { whole }
}

#[cfg(test)]
mod tests;

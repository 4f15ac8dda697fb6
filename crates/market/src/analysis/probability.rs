//! The probability that a price implies, a bookmaker's margin, and the probabilities without it.

use std::num::NonZeroU32;

use domain::{Market, Price};

/// A probability in billionths, above zero.
pub type Probability = NonZeroU32;

/// One, in billionths.
pub const WHOLE: u32 = 1_000_000_000;

/// The implied probability of a price, margin included: the stake divided by the return.
pub fn implied_probability(price: Price) -> Probability {
    let (profit, stake) = (u128::from(price.profit()), u128::from(price.stake()));
    let billionths = (stake * u128::from(WHOLE) + (profit + stake) / 2) / (profit + stake);
    u32::try_from(billionths).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// The number of a market's outcomes that win.
pub const fn winners(market: Market) -> u32 {
    match market {
        Market::Moneyline
        | Market::Spread
        | Market::TotalPoints
        | Market::TotalRounds
        | Market::Outright
        | Market::ThreeBall
        | Market::Matchup
        | Market::RoundLeader => 1,
        Market::Top5 => 5,
        Market::Top10 => 10,
        Market::Top20 => 20,
    }
}

/// The amount by which a bookmaker's prices exceed the whole, in billionths; negative if they add up to less.
pub fn margin(probabilities: &[Probability], winners: u32) -> i64 {
    let sum: i64 = probabilities.iter().map(|own| i64::from(own.get())).sum();
    (sum - i64::from(winners) * i64::from(WHOLE)) / i64::from(winners.max(1))
}

/// Probabilities in the same proportions, without the margin.
pub fn without_margin(probabilities: &[Probability], winners: u32) -> Vec<u32> {
    let sum: u64 = probabilities.iter().map(|own| u64::from(own.get())).sum();
    let whole = u64::from(winners) * u64::from(WHOLE);
    let share = |own: &Probability| {
        let share = u128::from(own.get()) * u128::from(whole) / u128::from(sum.max(1));
        u32::try_from(share).unwrap_or(WHOLE).min(WHOLE)
    };
    probabilities.iter().map(share).collect()
}

/// The median; for an even number the lower of the two in the middle.
pub fn median(mut probabilities: Vec<u32>) -> Option<u32> {
    probabilities.sort_unstable();
    probabilities.get(probabilities.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use domain::{Format, Quote};

    use super::*;

    fn of(american: &str) -> Probability {
        implied_probability(Quote::parse(american, Format::American).unwrap().price)
    }

    #[test]
    fn a_price_implies_its_probability_and_margins_add_up() {
        assert_eq!(of("100").get(), 500_000_000);
        assert_eq!(of("-110").get(), 523_809_524);
        let book = [of("-110"), of("-110")];
        assert_eq!(margin(&book, 1), 47_619_048);
        assert_eq!(without_margin(&book, 1), [500_000_000, 500_000_000]);
        let uneven = without_margin(&[of("-165"), of("140")], 1);
        assert!(uneven.iter().sum::<u32>().abs_diff(WHOLE) <= 2, "{uneven:?}");
        assert_eq!(uneven[0] / 1_000_000, 599);
    }

    #[test]
    fn generous_prices_have_a_margin_below_zero_and_no_probability_is_above_one() {
        assert_eq!(margin(&[of("110"), of("110")], 1), -47_619_048);
        assert_eq!(without_margin(&[of("-10000"), of("5000")], 5)[0], WHOLE);
        assert_eq!(median(vec![3, 1, 2]), Some(2));
        assert_eq!(median(vec![4, 1, 2, 3]), Some(2));
        assert_eq!(median(Vec::new()), None);
    }
}

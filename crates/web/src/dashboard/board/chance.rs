//! Prices as chances: what a price implies, a bookmaker's margin, and the chances without it.
//!
//! In billionths, as whole numbers: for looking at, never for paying out. Prices themselves stay exact.

use std::num::NonZeroU32;

use domain::{Market, Price};

/// A probability in billionths, above zero.
pub(crate) type Chance = NonZeroU32;

/// One, in billionths.
pub(crate) const WHOLE: u32 = 1_000_000_000;

/// What a price implies, margin included: stake over what comes back.
pub(crate) fn chance(price: Price) -> Chance {
    let (profit, stake) = (u128::from(price.profit()), u128::from(price.stake()));
    let billionths = (stake * u128::from(WHOLE) + (profit + stake) / 2) / (profit + stake);
    u32::try_from(billionths).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// How many of a market's outcomes come true.
pub(crate) const fn winners(market: Market) -> u32 {
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

/// What a bookmaker's prices add up to beyond the whole, in billionths; below zero where the prices are generous.
pub(crate) fn margin(chances: &[Chance], winners: u32) -> i64 {
    let sum: i64 = chances.iter().map(|chance| i64::from(chance.get())).sum();
    (sum - i64::from(winners) * i64::from(WHOLE)) / i64::from(winners.max(1))
}

/// The chances in the same proportions, without the margin.
pub(crate) fn fair(chances: &[Chance], winners: u32) -> Vec<u32> {
    let sum: u64 = chances.iter().map(|chance| u64::from(chance.get())).sum();
    let whole = u64::from(winners) * u64::from(WHOLE);
    let share = |chance: &Chance| {
        let share = u128::from(chance.get()) * u128::from(whole) / u128::from(sum.max(1));
        u32::try_from(share).unwrap_or(WHOLE).min(WHOLE)
    };
    chances.iter().map(share).collect()
}

/// The middle of some chances; of an even number the lower of the two in the middle.
pub(crate) fn median(mut chances: Vec<u32>) -> Option<u32> {
    chances.sort_unstable();
    chances.get(chances.len().saturating_sub(1) / 2).copied()
}

/// `52.4 %`, from billionths.
pub(crate) fn percent(billionths: i64) -> String {
    let tenths = (billionths + 500_000 * billionths.signum()) / 1_000_000;
    let sign = if tenths < 0 { "\u{2212}" } else { "" };
    format!("{sign}{}.{}\u{a0}%", tenths.abs() / 10, tenths.abs() % 10)
}

#[cfg(test)]
mod tests {
    use domain::{Format, Quote};

    use super::*;

    fn of(american: &str) -> Chance {
        chance(Quote::parse(american, Format::American).unwrap().price)
    }

    #[test]
    fn a_price_implies_its_chance_and_margins_add_up() {
        assert_eq!(of("100").get(), 500_000_000);
        assert_eq!(of("-110").get(), 523_809_524);
        let book = [of("-110"), of("-110")];
        assert_eq!(percent(margin(&book, 1)), "4.8\u{a0}%");
        assert_eq!(fair(&book, 1), [500_000_000, 500_000_000]);
        let uneven = fair(&[of("-165"), of("140")], 1);
        assert!(uneven.iter().sum::<u32>().abs_diff(WHOLE) <= 2, "{uneven:?}");
        assert_eq!(percent(i64::from(uneven[0])), "59.9\u{a0}%");
    }

    #[test]
    fn generous_prices_have_a_margin_below_zero_and_no_chance_is_above_one() {
        assert_eq!(percent(margin(&[of("110"), of("110")], 1)), "\u{2212}4.8\u{a0}%");
        assert_eq!(fair(&[of("-10000"), of("5000")], 5)[0], WHOLE);
        assert_eq!(median(vec![3, 1, 2]), Some(2));
        assert_eq!(median(vec![4, 1, 2, 3]), Some(2));
        assert_eq!(median(Vec::new()), None);
    }
}

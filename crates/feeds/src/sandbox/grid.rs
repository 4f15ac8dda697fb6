//! Price grids: the prices that a bookmaker can quote. A probability becomes the longest price on the grid that still
//! includes the bookmaker's margin, so rounding never makes a book underround.

use domain::{Format, Price, Quote};

/// The grid of a bookmaker's prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// American in steps of five, larger steps for longer prices.
    AmericanFives,
    /// American in steps of ten or more.
    AmericanTens,
    /// American in single points near even money.
    AmericanPoints,
    /// Decimal hundredths, then larger steps: the tick ladder of exchanges and most of Europe.
    DecimalTicks,
    /// Decimal thousandths for short prices.
    DecimalThousandths,
    /// The traditional fractions of British bookmakers.
    Fractions,
}

impl Grid {
    #[cfg(test)]
    const ALL: [Self; 6] = [
        Self::AmericanFives,
        Self::AmericanTens,
        Self::AmericanPoints,
        Self::DecimalTicks,
        Self::DecimalThousandths,
        Self::Fractions,
    ];
}

/// The prices of a grid, shortest first, each with its decimal value for comparison.
#[derive(Clone, Debug)]
pub(crate) struct Ladder(Vec<(f64, Quote)>);

impl Ladder {
    pub(crate) fn of(grid: Grid) -> Self {
        let mut prices = match grid {
            Grid::AmericanFives => american(&[(200, 5), (500, 10), (1000, 25), (2000, 50)]),
            Grid::AmericanTens => american(&[(500, 10), (1000, 50), (2000, 100)]),
            Grid::AmericanPoints => american(&[(200, 1), (300, 2), (500, 5), (1000, 10)]),
            Grid::DecimalTicks => decimal(&[
                (2_000, 10),
                (3_000, 20),
                (4_000, 50),
                (6_000, 100),
                (10_000, 200),
                (20_000, 500),
                (30_000, 1_000),
                (50_000, 2_000),
                (100_000, 5_000),
                (1_000_000, 10_000),
            ]),
            Grid::DecimalThousandths => {
                decimal(&[(3_000, 1), (10_000, 10), (50_000, 250), (1_000_000, 5_000)])
            }
            Grid::Fractions => fractions(),
        };
        prices.sort_by(|a, b| a.0.total_cmp(&b.0));
        prices.dedup_by_key(|(_, quote)| quote.price);
        Self(prices)
    }

    /// The longest price whose implied probability is at least `implied`.
    pub(crate) fn at_least(&self, implied: f64) -> Option<Quote> {
        let longest = 1.0 / implied;
        let after = self.0.partition_point(|(value, _)| *value <= longest);
        let at = after.checked_sub(1)?;
        self.0.get(at).map(|(_, quote)| *quote)
    }

    #[cfg(test)]
    pub(crate) fn prices(&self) -> impl Iterator<Item = Quote> {
        self.0.iter().map(|(_, quote)| *quote)
    }
}

fn entry(profit: u64, stake: u64, format: Format) -> Option<(f64, Quote)> {
    let price = Price::from_ratio(profit, stake)?;
    let part = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let value = 1.0 + part(price.profit()) / part(price.stake());
    Some((value, Quote { price, format }))
}

/// Prices on both sides of even money, in steps up to each bound; longer prices in steps of 100, then 500.
fn american(steps: &[(u64, u64)]) -> Vec<(f64, Quote)> {
    let mut sizes = vec![100];
    for &(bound, step) in steps.iter().chain(&[(5_000, 100), (100_000, 500)]) {
        while let Some(last) = sizes.last().copied().filter(|last| *last < bound) {
            sizes.push(last + step);
        }
    }
    let plus = sizes.iter().filter_map(|&n| entry(n, 100, Format::American));
    // No bookmaker quotes shorter than -10000.
    let minus = sizes.iter().filter(|&&n| n <= 10_000);
    let minus = minus.filter_map(|&n| entry(100, n, Format::American));
    plus.chain(minus).collect()
}

/// Prices in thousandths, in steps up to each bound.
fn decimal(steps: &[(u64, u64)]) -> Vec<(f64, Quote)> {
    let mut prices = Vec::new();
    let mut thousandths = 1_010;
    for &(bound, step) in steps {
        while thousandths < bound {
            prices.extend(entry(thousandths - 1_000, 1_000, Format::Decimal));
            thousandths += step;
        }
        thousandths = bound;
    }
    prices.extend(entry(thousandths - 1_000, 1_000, Format::Decimal));
    prices
}

/// The fractions of a British betting shop.
const FRACTIONS: &str = "1/100 1/66 1/50 1/40 1/33 1/25 1/20 1/16 1/14 1/12 1/11 1/10 1/9 1/8 2/15 1/7 2/13 \
    1/6 2/11 1/5 2/9 1/4 2/7 3/10 1/3 4/11 2/5 4/9 1/2 8/15 4/7 8/13 4/6 8/11 4/5 5/6 10/11 20/21 1/1 21/20 \
    11/10 6/5 5/4 13/10 11/8 7/5 6/4 8/5 13/8 7/4 9/5 15/8 2/1 85/40 11/5 9/4 12/5 5/2 13/5 11/4 14/5 3/1 \
    10/3 7/2 4/1 9/2 5/1 11/2 6/1 13/2 7/1 15/2 8/1 17/2 9/1 10/1 11/1 12/1 14/1 16/1 18/1 20/1 22/1 25/1 \
    28/1 33/1 40/1 50/1 66/1 80/1 100/1 125/1 150/1 200/1 250/1 300/1 400/1 500/1 750/1 1000/1";

fn fractions() -> Vec<(f64, Quote)> {
    let prices = FRACTIONS.split_whitespace();
    prices
        .filter_map(|text| Quote::parse(text, Format::Fractional).ok())
        .filter_map(|quote| entry(quote.price.profit(), quote.price.stake(), quote.format))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_never_pays_more_than_asked_and_the_next_one_would() {
        for grid in Grid::ALL {
            let ladder = Ladder::of(grid);
            let prices: Vec<Quote> = ladder.prices().collect();
            assert!(prices.is_sorted_by(|a, b| a.price < b.price), "{grid:?}");
            for i in 2..990_u32 {
                let implied = f64::from(i) / 1000.0;
                let quote = ladder.at_least(implied).unwrap();
                let value = |quote: Quote| {
                    let (profit, stake) = (quote.price.profit(), quote.price.stake());
                    f64::from(u32::try_from(profit).unwrap())
                        / f64::from(u32::try_from(stake).unwrap())
                        + 1.0
                };
                assert!(1.0 / value(quote) >= implied - 1e-12);
                let next = prices.iter().find(|next| next.price > quote.price);
                assert!(next.is_none_or(|next| 1.0 / value(*next) < implied));
            }
        }
    }
}

//! Compares the analysis with a second implementation: ratios of a library for exact values, and plain bisection for
//! the methods that remove margins (N22).

use std::collections::BTreeMap;

use domain::message::OfferedOutcome;
use domain::{BookmakerSet, Format, Line, Market, Price, Quote, Status};
use linesman_market::analysis::exact::{Measure, Rounding, Sum};
use linesman_market::analysis::{
    Analysis, ArbitrageSelection, BestSelection, Filter, Method, MiddleSelection, Reference,
    ValueSelection,
};
use num_rational::BigRational;
use proptest::prelude::*;

use crate::test_book::{TestBook, cases};

const BOOKMAKERS: [&str; 6] = ["bet365", "betmgm", "caesars", "draftkings", "fanduel", "pinnacle"];
const NAMES: [&str; 3] = ["Oren Castellane", "Jannik Sinner", "Draw"];

/// A bookmaker's offer on a bout, and the time since its last confirmation.
#[derive(Clone, Debug)]
struct Book {
    bookmaker: usize,
    age_s: i64,
    /// Thousandths of decimal prices: home, away and perhaps the draw.
    moneyline: Vec<u32>,
    /// Half points, over and under.
    totals: Vec<(u8, u32, u32)>,
}

fn ratio(thousandths: u32) -> BigRational {
    BigRational::new(1000.into(), thousandths.into())
}

fn quote(thousandths: u32) -> Quote {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    Quote::parse(&text, Format::Decimal).unwrap()
}

fn books() -> impl Strategy<Value = Vec<Book>> {
    let prices = || prop_oneof![1010_u32..6000, Just(2000), Just(1500), Just(3000)];
    let moneyline = proptest::collection::vec(prices(), 1..4);
    let totals = proptest::collection::btree_map(3_u8..12, (prices(), prices()), 0..4);
    let book = (0..BOOKMAKERS.len(), 0_i64..130, moneyline, totals).prop_map(
        |(bookmaker, age_s, moneyline, totals)| Book {
            bookmaker,
            age_s,
            moneyline,
            totals: totals.into_iter().map(|(point, (over, under))| (point, over, under)).collect(),
        },
    );
    proptest::collection::btree_map(0..BOOKMAKERS.len(), book, 1..6).prop_map(|books| {
        books.into_iter().map(|(bookmaker, book)| Book { bookmaker, ..book }).collect()
    })
}

/// A book whose snapshot is 200 seconds after the start of the test.
fn test_book(books: &[Book]) -> TestBook {
    let mut test = TestBook::open();
    let bout = test.bout("bout", NAMES[0], NAMES[1], 100);
    test.say("feed", bout).unwrap();
    test.wait(200);
    for book in books {
        let outcome = |name: &str, price: u32, point: Option<Line>| OfferedOutcome {
            name: name.into(),
            quote: quote(price),
            point,
        };
        let moneyline =
            NAMES.iter().zip(&book.moneyline).map(|(name, price)| outcome(name, *price, None));
        let totals = book.totals.iter().flat_map(|(point, over, under)| {
            let point = Some(Line::from_quarters(i32::from(*point) * 2));
            [outcome("Over", *over, point), outcome("Under", *under, point)]
        });
        let key = BOOKMAKERS[book.bookmaker];
        for (market, outcomes) in [
            (Market::Moneyline, moneyline.collect()),
            (Market::TotalRounds, totals.collect::<Vec<_>>()),
        ] {
            if !outcomes.is_empty() {
                let odds = test.odds_body("bout", key, market, None, outcomes);
                test.say_at("feed", 200 - book.age_s, odds).unwrap();
            }
        }
    }
    test
}

fn filter(test: &TestBook) -> Filter {
    Filter {
        sport: test.sport("mma"),
        market: None,
        events: None,
        from: None,
        to: None,
        status: Some(Status::Scheduled),
        bookmakers: BookmakerSet::ALL,
        max_age_s: None,
    }
}

/// The usable offers by line, which is (point, ways): each with its bookmaker and prices.
type Lines = BTreeMap<(Option<u8>, usize), Vec<(usize, Vec<u32>)>>;

fn lines(books: &[Book]) -> (Lines, [u32; 3]) {
    let mut lines = Lines::new();
    let [mut stale, mut incomplete, mut underround] = [0; 3];
    for book in books {
        let moneyline = (None, book.moneyline.clone());
        let totals = book.totals.iter().map(|(point, o, u)| (Some(*point), vec![*o, *u]));
        for (point, prices) in std::iter::once(moneyline).chain(totals) {
            let sum: BigRational = prices.iter().map(|price| ratio(*price)).sum();
            if book.age_s > 90 {
                stale += 1;
            } else if prices.len() < 2 {
                incomplete += 1;
            } else if sum < BigRational::from_integer(1.into()) {
                underround += 1;
            } else {
                lines.entry((point, prices.len())).or_default().push((book.bookmaker, prices));
            }
        }
    }
    (lines, [stale, incomplete, underround])
}

/// The best price of each outcome of a line.
fn best(offers: &[(usize, Vec<u32>)], ways: usize) -> Vec<u32> {
    let best = |at: usize| offers.iter().map(|(_, prices)| prices[at]).max().unwrap();
    (0..ways).map(best).collect()
}

fn floor(value: &BigRational) -> i128 {
    let scaled = value * BigRational::from_integer(1_000_000_000.into());
    i128::try_from(scaled.floor().to_integer()).unwrap()
}

/// A hundred bisection steps, with the operations of the standard library.
fn bisect(mut low: f64, mut high: f64, excess: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

fn naive(method: Method, implied: &[f64], winners: f64) -> Option<Vec<f64>> {
    let booksum: f64 = implied.iter().sum();
    let outcomes = f64::from(u32::try_from(implied.len()).unwrap());
    let solve = |(low, high): (f64, f64), fair: &dyn Fn(f64, f64) -> f64| {
        let excess = |at: f64| implied.iter().map(|own| fair(*own, at)).sum::<f64>() - winners;
        let at = bisect(low, high, excess);
        implied.iter().map(|own| fair(*own, at)).collect::<Vec<f64>>()
    };
    Some(match method {
        Method::Multiplicative => implied.iter().map(|own| winners * own / booksum).collect(),
        Method::Additive => {
            let fair: Vec<f64> =
                implied.iter().map(|own| own - (booksum - winners) / outcomes).collect();
            return fair.iter().all(|own| *own > 0.0).then_some(fair);
        }
        Method::Power => solve((1.0, 1e4), &|own, k| own.powf(k)),
        Method::Shin => solve((0.0, 1.0 - 1e-9), &|own, z| {
            ((z * z + 4.0 * (1.0 - z) * own * own / booksum).sqrt() - z) / (2.0 * (1.0 - z))
        }),
        Method::OddsRatio => solve((1.0, 1e9), &|own, c| own / (c + own - c * own)),
    })
}

/// Random prices of 2 to 200 outcomes whose booksum is between the number of winners and three times that.
fn market() -> impl Strategy<Value = (Vec<Price>, u32)> {
    let weights = proptest::collection::vec(1_u32..1000, 2..200);
    (weights, 1.0..3.0_f64, 0_usize..4).prop_filter_map(
        "prices above 1",
        |(weights, margin, kind)| {
            let winners = [1, 1, 5, 20][kind];
            let sum: f64 = weights.iter().map(|own| f64::from(*own)).sum();
            let price = |own: &u32| {
                let implied = f64::from(*own) / sum * f64::from(winners) * margin;
                (implied < 0.995).then(|| quote_of(1.0 / implied))
            };
            let prices: Option<Vec<Price>> = weights.iter().map(price).collect();
            Some((prices?, winners))
        },
    )
}

fn quote_of(decimal: f64) -> Price {
    Quote::parse(&format!("{decimal:.4}"), Format::Decimal).unwrap().price
}

fn implied(price: &Price) -> f64 {
    let part = |own: u64| f64::from(u32::try_from(own).unwrap());
    part(price.stake()) / (part(price.stake()) + part(price.profit()))
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn margins_are_removed_as_by_plain_bisection((prices, winners) in market()) {
        let each: Vec<f64> = prices.iter().map(implied).collect();
        let sum = Sum::of(prices.iter().copied());
        for method in Method::ALL {
            let ours = method.remove(&prices, winners);
            if sum.cmp_whole(winners).is_lt() || !method.supports(winners) {
                prop_assert_eq!(ours, None);
                continue;
            }
            let theirs = naive(method, &each, f64::from(winners));
            prop_assert_eq!(ours.is_some(), theirs.is_some(), "{:?}", method);
            let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
            let sum: f64 = ours.probabilities.iter().sum();
            prop_assert!((sum - f64::from(winners)).abs() < 1e-12, "{:?} adds up to {}", method, sum);
            for (own, other) in ours.probabilities.iter().zip(theirs) {
                prop_assert!((own - other).abs() < 1e-9, "{:?}: {} and {}", method, own, other);
                prop_assert!((0.0..=1.0).contains(own));
            }
        }
    }

    #[test]
    fn best_prices_and_arbitrages_are_those_of_plain_ratios(books in books()) {
        let test = test_book(&books);
        let (snapshot, analysis) = (test.snapshot(), Analysis::default());
        let (lines, [stale, incomplete, underround]) = lines(&books);
        let one = BigRational::from_integer(1.into());
        let mut expected: Vec<(i128, Vec<u32>)> = Vec::new();
        for ((_, ways), offers) in &lines {
            let prices = best(offers, *ways);
            let sum: BigRational = prices.iter().map(|price| ratio(*price)).sum();
            let profit = floor(&(one.clone() / sum - &one));
            if profit > 0 {
                expected.push((profit, prices));
            }
        }
        let selection = ArbitrageSelection { filter: filter(&test), min_profit: 0, stake: 100, limit: 500 };
        let found = selection.select(&snapshot, &analysis);
        let refused = found.refused;
        prop_assert_eq!([refused.stale, refused.incomplete, refused.underround], [stale, incomplete, underround]);
        let mut ours: Vec<(i128, Vec<u32>)> = Vec::new();
        for own in &found.results {
            let prices = own.legs.iter().map(|staked| {
                let price = staked.leg.quote.price;
                u32::try_from((price.profit() + price.stake()) * 1000 / price.stake()).unwrap()
            });
            ours.push((own.profit, prices.collect()));
            prop_assert_eq!(own.legs.iter().map(|staked| staked.stake).sum::<u64>(), 10_000);
        }
        prop_assert!(ours.windows(2).all(|pair| pair[0].0 >= pair[1].0), "the largest first");
        ours.sort();
        expected.sort();
        prop_assert_eq!(ours, expected);
        let best = BestSelection { filter: filter(&test), limit: 500, after: None };
        let page = best.select(&snapshot, &analysis);
        prop_assert_eq!((page.refused.stale, page.refused.underround), (stale, 0));
        prop_assert!(page.lines.len() >= lines.len());
    }

    #[test]
    fn expected_values_are_against_the_others(books in books()) {
        let test = test_book(&books);
        let (snapshot, analysis) = (test.snapshot(), Analysis::default());
        let reference = Reference { method: Method::Multiplicative, named: None, min_books: 1 };
        let selection = ValueSelection { filter: filter(&test), reference, min_ev: 0, limit: 500 };
        let found = selection.select(&snapshot, &analysis);
        let mut expected = 0;
        for ((_, ways), offers) in &lines(&books).0 {
            for (bookmaker, prices) in offers {
                let others: Vec<Vec<f64>> = offers
                    .iter()
                    .filter(|(other, _)| other != bookmaker)
                    .map(|(_, prices)| {
                        let implied: Vec<f64> = prices.iter().map(|own| 1000.0 / f64::from(*own)).collect();
                        naive(Method::Multiplicative, &implied, 1.0).unwrap()
                    })
                    .collect();
                if others.is_empty() {
                    continue;
                }
                let middle = |at: usize| median(others.iter().map(|own| own[at]).collect());
                let medians: Vec<f64> = (0..*ways).map(middle).collect();
                let sum: f64 = medians.iter().sum();
                let above = |(median, price): (&f64, &u32)| median / sum * f64::from(*price) / 1000.0 - 1.0;
                // No value is so close to zero that the ninth place decides, except by chance.
                expected += medians.iter().zip(prices).map(above).filter(|ev| *ev > 2e-8).count();
            }
        }
        prop_assert!(found.results.windows(2).all(|pair| pair[0].ev >= pair[1].ev));
        let clear = found.results.iter().filter(|own| own.ev > 20).count();
        prop_assert_eq!(clear, expected);
    }

    #[test]
    fn middles_are_all_pairs_of_points_up_to_their_cost(books in books()) {
        let test = test_book(&books);
        let (snapshot, analysis) = (test.snapshot(), Analysis::default());
        let selection = MiddleSelection { filter: filter(&test), max_cost: 50_000_000, limit: 500 };
        let found = selection.select(&snapshot, &analysis);
        let lines = lines(&books).0;
        let totals: Vec<(u8, Vec<u32>)> = lines
            .iter()
            .filter_map(|((point, ways), offers)| Some(((*point)?, best(offers, *ways))))
            .collect();
        let most = BigRational::new(105.into(), 100.into());
        let mut expected = 0;
        for (low, over) in &totals {
            let under = totals.iter().filter(|(high, _)| high > low);
            expected += under.filter(|(_, under)| ratio(over[0]) + ratio(under[1]) <= most).count();
        }
        prop_assert_eq!(found.results.len(), expected);
        prop_assert!(found.results.windows(2).all(|pair| pair[0].break_even <= pair[1].break_even));
    }
}

fn median(mut own: Vec<f64>) -> f64 {
    own.sort_by(f64::total_cmp);
    let middle = own.len() / 2;
    if own.len() % 2 == 1 { own[middle] } else { f64::midpoint(own[middle - 1], own[middle]) }
}

#[test]
fn a_sum_of_long_decimals_is_what_a_ratio_library_says() {
    let long = ["3.0000000000000001", "1.4999999999999999", "7.77777777777777777"];
    let prices = long.map(|text| Quote::parse(text, Format::Decimal).unwrap().price);
    let part = |own: u64| BigRational::from_integer(own.into());
    let sum: BigRational =
        prices.iter().map(|own| part(own.stake()) / (part(own.stake()) + part(own.profit()))).sum();
    let ours = Sum::of(prices).measure(Measure::Booksum, Rounding::Down);
    assert_eq!(ours, floor(&sum));
}

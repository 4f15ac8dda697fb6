use domain::{Format, Quote};
use proptest::prelude::*;

use super::*;

fn price(text: &str) -> Price {
    let format = if text.contains('/') {
        Format::Fractional
    } else if text.contains('.') {
        Format::Decimal
    } else {
        Format::American
    };
    Quote::parse(text, format).unwrap().price
}

fn sum(texts: &[&str]) -> Sum {
    Sum::of(texts.iter().map(|text| price(text)))
}

#[test]
fn sums_that_are_exactly_one_are_neither_below_nor_above_it() {
    for whole in [
        &["170", "-170"][..],
        &["1.5", "3.0"],
        &["2/1", "2/1", "2/1"],
        &["1/2", "2/1"],
        // 17 digits: the two prices are complements of each other.
        &["99999999999999999/100000000000000000", "100000000000000000/99999999999999999"],
    ] {
        let sum = sum(whole);
        assert_eq!(sum.cmp_whole(1), Ordering::Equal, "{whole:?}");
        assert_eq!(sum.measure(Measure::Booksum, Rounding::HalfEven), ONE);
        for rounding in [Rounding::Down, Rounding::Up, Rounding::HalfEven] {
            assert_eq!(sum.measure(Measure::Profit, rounding), 0);
            assert_eq!(sum.measure(Measure::Excess, rounding), 0);
            assert_eq!(sum.measure(Measure::Hold { winners: 1 }, rounding), 0);
        }
    }
}

#[test]
fn a_difference_in_the_seventeenth_digit_decides() {
    let below = sum(&["2.0000000000000001", "2.0"]);
    let above = sum(&["1.9999999999999999", "2.0"]);
    assert_eq!(below.cmp_whole(1), Ordering::Less);
    assert_eq!(above.cmp_whole(1), Ordering::Greater);
    assert!(below < above && below < sum(&["2.0", "2.0"]) && above > sum(&["100", "100"]));
    assert_eq!(below.measure(Measure::Booksum, Rounding::Down), ONE - 1);
    assert_eq!(below.measure(Measure::Profit, Rounding::Down), 0);
    assert_eq!(below.measure(Measure::Profit, Rounding::Up), 1);
    assert_eq!(above.measure(Measure::Excess, Rounding::Up), 1);
}

#[test]
fn a_profit_is_what_it_is_and_not_a_little_less() {
    assert_eq!(sum(&["2.05", "2.05"]).measure(Measure::Profit, Rounding::Down), 25_000_000);
    let example = sum(&["140", "-125"]);
    assert_eq!(example.measure(Measure::Booksum, Rounding::HalfEven), 972_222_222);
    assert_eq!(example.measure(Measure::Hold { winners: 1 }, Rounding::HalfEven), -28_571_429);
    assert_eq!(example.measure(Measure::Profit, Rounding::Down), 28_571_428);
    assert_eq!(example.measure(Measure::Excess, Rounding::Up), -27_777_777);
}

#[test]
fn a_stake_is_divided_to_the_cent() {
    assert_eq!(sum(&["140", "-125"]).divide(10_000), [4286, 5714]);
    assert_eq!(returns(4286, price("140")), 10_286);
    assert_eq!(returns(5714, price("-125")), 10_285);
    // Three equal remainders and one cent: the first outcome gets it.
    assert_eq!(sum(&["2/1", "2/1", "2/1"]).divide(100), [34, 33, 33]);
    assert_eq!(sum(&["2/1", "2/1", "2/1"]).divide(1), [1, 0, 0]);
}

#[test]
fn expected_value_is_rounded_down_and_compared_exactly() {
    assert_eq!(expected_value(500_000_000, price("2.05")), 25_000_000);
    assert_eq!(expected_value(500_000_000, price("-110")), -45_454_546);
    assert_eq!(expected_value(1, price("99999999999999999/1")), 99_999_999_000_000_000);
    let (one, other) = ((400_000_000, price("2.5000000000000001")), (400_000_000, price("2.5")));
    assert_eq!(expected_value(one.0, one.1), expected_value(other.0, other.1));
    assert_eq!(cmp_expected_value(one, other), Ordering::Greater);
}

fn any_price() -> impl Strategy<Value = Price> {
    let small = (1_u64..3000, 1_u64..3000);
    let large = (1_u64.., 1_u64..);
    prop_oneof![small, large].prop_map(|(profit, stake)| Price::from_ratio(profit, stake).unwrap())
}

proptest! {
    /// The bounds never contradict the exact sum.
    #[test]
    fn bounds_decide_as_the_exact_sum_does(prices in proptest::collection::vec(any_price(), 1..40)) {
        let sum = Sum::of(prices);
        let (ours, over) = sum.ratio();
        for whole in 0..20_u32 {
            prop_assert_eq!(sum.cmp_whole(whole), ours.cmp(&(&over * whole)));
        }
        let measures =
            [Measure::Booksum, Measure::Excess, Measure::Hold { winners: 5 }, Measure::Profit];
        for measure in measures {
            for rounding in [Rounding::Down, Rounding::Up, Rounding::HalfEven] {
                let (n, d) = measure.of(BigInt::from(ours.clone()), BigInt::from(over.clone()));
                let exact = rounded(n, &d, rounding);
                prop_assert_eq!(BigInt::from(sum.measure(measure, rounding)), exact);
            }
        }
    }

    #[test]
    fn a_division_gives_everything_away_and_nobody_a_cent_too_much(
        prices in proptest::collection::vec(any_price(), 2..6),
        amount in 1_u64..100_000_000,
    ) {
        let sum = Sum::of(prices.clone());
        let parts = sum.divide(amount);
        prop_assert_eq!(parts.iter().sum::<u64>(), amount);
        let (ours, over) = sum.ratio();
        for (part, price) in parts.iter().zip(prices) {
            let (stake, total) = stake_and_return(price);
            let fair = (&over * amount * stake, &ours * total);
            prop_assert!(&fair.1 * *part < &fair.0 + &fair.1, "at most a cent above");
            prop_assert!(&fair.1 * (*part + 1) > fair.0, "less than a cent below");
        }
    }
}

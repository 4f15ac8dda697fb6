use super::*;

#[test]
fn a_median_of_an_even_number_is_the_mean_of_the_two_in_the_middle() {
    let sorted = [(0.1, 2), (0.2, 0), (0.4, 3), (0.8, 1)];
    assert_eq!(median(&sorted, None), Some(((0.2 + 0.4) / 2.0, 4)));
    assert_eq!(median(&sorted, Some(2)), Some((0.4, 3)));
    assert_eq!(median(&sorted, Some(3)), Some((0.2, 3)));
    assert_eq!(median(&sorted, Some(9)), median(&sorted, None));
    assert_eq!(median(&[(0.5, 1)], Some(1)), None);
    assert_eq!(median(&[], None), None);
}

#[test]
fn scaled_probabilities_add_up_and_none_is_above_one() {
    let mut two = [Some((0.3, 1)), None, Some((0.6, 1))];
    scale(&mut two, 1.0);
    assert!((two[0].unwrap().0 + two[2].unwrap().0 - 1.0).abs() < 1e-15);
    let mut five: Vec<_> = [0.95, 0.5, 0.4, 0.3, 0.2].map(|own| Some((own, 1))).to_vec();
    scale(&mut five, 3.0);
    let sum: f64 = five.iter().map(|own| own.unwrap().0).sum();
    assert!((sum - 3.0).abs() < 1e-12, "{five:?}");
    assert!((five[0].unwrap().0 - 1.0).abs() < 1e-15, "{five:?}");
    let mut certain = vec![Some((0.4, 1)); 5];
    scale(&mut certain, 5.0);
    assert!(certain.iter().all(|own| (own.unwrap().0 - 1.0).abs() < 1e-15));
}

#[test]
fn a_fair_price_is_that_of_the_probability_as_published() {
    let price = |probability, format| {
        Fair { probability, books: 1 }.quote().map(|quote| quote.to_json(format))
    };
    assert_eq!(price(400_000_000, Format::Fractional).unwrap(), "\"3/2\"");
    assert_eq!(price(400_000_000, Format::American).unwrap(), "150");
    assert_eq!(price(653_152_280, Format::Decimal).unwrap(), "1.531");
    assert_eq!(price(0, Format::Decimal), None);
    assert_eq!(price(1_000_000_000, Format::Decimal), None);
}

#[test]
fn nine_places_are_half_even() {
    assert_eq!(billionths(0.0000000125), Some(12));
    assert_eq!(billionths(0.372984404), Some(372_984_404));
    assert_eq!(billionths(2.0), Some(2_000_000_000));
    assert_eq!(billionths(0.0), Some(0));
    assert_eq!(billionths(1e-9), Some(1));
    assert_eq!(billionths(8_000_000.0), Some(8_000_000_000_000_000));
    assert_eq!(billionths(9_000_001.0), None);
    assert_eq!(billionths(-1.0), None);
    assert_eq!(billionths(f64::NAN), None);
}

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, quoted: Format, american: &str, decimal: &str, fractional: &str) {
    let quote = Quote::parse(text, quoted).unwrap();
    assert_eq!(quote.to_json(Format::American), american, "{text} in american");
    assert_eq!(quote.to_json(Format::Decimal), decimal, "{text} in decimal");
    assert_eq!(quote.to_json(Format::Fractional), format!("\"{fractional}\""), "{text}");
}

#[test]
fn prices_are_written_as_decided() {
    use Format::{American, Decimal, Fractional};
    check("-110", American, "-110", "1.909", "10/11");
    check("+150", American, "150", "2.5", "3/2");
    check("150.0", American, "150", "2.5", "3/2");
    check("-100", American, "100", "2", "1/1");
    check("-200000", American, "-200000", "1.0005", "1/2000");
    check("-3000000", American, "-3000000", "1.00003", "1/30000");
    check("2.0", Decimal, "100", "2", "1/1");
    check("1.91", Decimal, "-110", "1.91", "91/100");
    check("1.9999", Decimal, "100", "1.9999", "9999/10000");
    check(
        "1.9090909090909092",
        Decimal,
        "-110",
        "1.9090909090909092",
        "2272727272727273/2500000000000000",
    );
    check("1e2", Decimal, "9900", "100", "99/1");
    check("2/4", Fractional, "-200", "1.5", "1/2");
    check("4.5/1", Fractional, "450", "5.5", "9/2");
    check("1/3", Fractional, "-300", "1.333", "1/3");
    // Half-even at the third place: 1 + 1/16 = 1.0625 and 1 + 3/16 = 1.1875.
    check("1/16", Fractional, "-1600", "1.062", "1/16");
    check("3/16", Fractional, "-533", "1.188", "3/16");
    // Half away from zero: 201/200 is +100.5, 200/201 is -100.5.
    check("201/200", Fractional, "101", "2.005", "201/200");
    check("200/201", Fractional, "-101", "1.995", "200/201");
    check("1000/1001", Fractional, "100", "1.999", "1000/1001");
}

#[test]
fn what_is_no_price_is_refused() {
    let table: [(Format, &[&str]); 3] = [
        (
            Format::American,
            &[
                "", "0", "99", "-99", "99.9", "150.5", "NaN", "abc", "1/2", "--110", "+-110",
                "1e400",
            ],
        ),
        (
            Format::Decimal,
            &[
                "",
                "1",
                "1.0",
                "0.5",
                "-2.5",
                "NaN",
                "inf",
                ".",
                "2.",
                ".5",
                "2,5",
                "1e999",
                "99999999999999999999",
            ],
        ),
        (
            Format::Fractional,
            &["", "5", "0/1", "1/0", "-1/2", "1/-2", "a/b", "1/2/3", "/", "1e30/1"],
        ),
    ];
    for (format, texts) in table {
        for text in texts {
            assert!(Quote::parse(text, format).is_err(), "{text:?} as {}", format.key());
        }
    }
}

#[test]
fn every_american_price_round_trips_through_itself_and_its_fraction() {
    for size in 100..=100_000_i128 {
        for value in [size, -size] {
            let quote = Quote::parse(&value.to_string(), Format::American).unwrap();
            let expected = if value == -100 { 100 } else { value };
            assert_eq!(quote.price.american(), expected);
            let mut fraction = String::new();
            quote.price.write_fraction(&mut fraction);
            let back = Quote::parse(&fraction, Format::Fractional).unwrap();
            assert_eq!(back.price, quote.price);
            assert_eq!(back.to_json(Format::American), expected.to_string());
        }
    }
}

#[test]
fn every_decimal_thousandth_round_trips() {
    for thousandths in 1_001..=1_001_000_u32 {
        let mut text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
        let quote = Quote::parse(&text, Format::Decimal).unwrap();
        while text.ends_with('0') {
            text.pop();
        }
        let text = text.trim_end_matches('.');
        assert_eq!(quote.to_json(Format::Decimal), text);
        // The same value quoted as a fraction prints the same three places.
        let fraction = Quote { format: Format::Fractional, ..quote };
        assert_eq!(fraction.to_json(Format::Decimal), text);
    }
}

proptest! {
    #[test]
    fn order_agrees_with_exact_cross_multiplication(
        a in 1_u64.., b in 1_u64.., c in 1_u64.., d in 1_u64..
    ) {
        let (left, right) = (Price::from_ratio(a, b).unwrap(), Price::from_ratio(c, d).unwrap());
        prop_assert_eq!(left.cmp(&right), (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b))));
        prop_assert_eq!(left == right, left.cmp(&right) == Ordering::Equal);
    }

    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_can_be_written(text in "\\PC{0,24}") {
        for format in Format::ALL {
            if let Ok(quote) = Quote::parse(&text, format) {
                let own = quote.to_json(format);
                let again = Quote::parse(own.trim_matches('"'), format).unwrap();
                prop_assert_eq!(again.price, quote.price);
                for other in Format::ALL {
                    prop_assert!(!quote.to_json(other).is_empty());
                }
            }
        }
    }

    #[test]
    fn a_decimal_always_prints_above_one(profit in 1_u64.., stake in 1_u64..) {
        let mut text = String::new();
        Price::from_ratio(profit, stake).unwrap().write_decimal(&mut text);
        prop_assert_ne!(text.as_str(), "1");
        prop_assert!(!text.ends_with(".0"));
    }
}

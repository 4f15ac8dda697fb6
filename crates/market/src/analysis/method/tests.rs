use domain::{Format, Quote};

use super::*;

fn prices(texts: &str) -> Vec<Price> {
    let read = |text: &str| match text.split_once('/') {
        // A decimal price as a ratio.
        Some((total, stake)) => {
            let (total, stake): (u64, u64) = (total.parse().unwrap(), stake.parse().unwrap());
            Price::from_ratio(total - stake, stake).unwrap()
        }
        None => Quote::parse(text, Format::Decimal).unwrap().price,
    };
    texts.split_whitespace().map(read).collect()
}

fn near(ours: f64, published: f64) -> bool {
    (ours - published).abs() <= 1e-9
}

/// A method, its probabilities, and its parameter if that is published.
type Row<'a> = (Method, &'a [f64], Option<f64>);

/// The reference tables of N22.
#[test]
fn the_published_tables_are_reproduced() {
    let tables: [(&str, [Row<'_>; 3]); 3] = [
        (
            "2.6 2.4 4.3",
            [
                (Method::Power, &[0.372984404, 0.405107167, 0.221908428], None),
                (Method::Shin, &[0.372994060, 0.404779411, 0.222226529], Some(0.016942513)),
                (Method::OddsRatio, &[0.372428651, 0.404131304, 0.223440045], None),
            ],
        ),
        (
            "1.5 2.74",
            [
                (Method::Power, &[0.653152280, 0.346847720], None),
                (Method::Shin, &[0.650851582, 0.349148418], Some(0.031727285)),
                (Method::OddsRatio, &[0.651017818, 0.348982182], None),
            ],
        ),
        (
            "100/87 5 10 20 50 100",
            [
                (
                    Method::Power,
                    &[0.825750324, 0.109403011, 0.042185355, 0.016266501, 0.004615205, 0.001779604],
                    None,
                ),
                (
                    Method::Shin,
                    &[0.768786360, 0.147486428, 0.058968487, 0.020021434, 0.003766358, 0.000970931],
                    None,
                ),
                (
                    Method::OddsRatio,
                    &[0.781990717, 0.118162407, 0.056206334, 0.027435662, 0.010820066, 0.005384813],
                    None,
                ),
            ],
        ),
    ];
    for (texts, rows) in tables {
        for (method, published, parameter) in rows {
            let ours = method.remove(&prices(texts), 1).unwrap();
            let agrees = ours.probabilities.iter().zip(published).all(|(p, q)| near(*p, *q));
            assert!(agrees, "{method:?} of {texts}: {ours:?}");
            assert!(parameter.is_none_or(|z| near(ours.parameter.unwrap(), z)), "{ours:?}");
        }
    }
    assert_eq!(Method::Additive.remove(&prices("100/87 5 10 20 50 100"), 1), None);
}

#[test]
fn with_two_outcomes_shin_is_additive() {
    for texts in ["1.5 2.74", "1.01 12", "1.9 1.9", "1.91 1.95", "5 1.1"] {
        let two = prices(texts);
        let [shin, additive] =
            [Method::Shin, Method::Additive].map(|method| method.remove(&two, 1).unwrap());
        let same = shin.probabilities.iter().zip(&additive.probabilities);
        assert!(same.into_iter().all(|(s, a)| (s - a).abs() < 1e-12), "{texts}");
    }
}

#[test]
fn without_a_margin_every_method_gives_the_implied_probabilities() {
    for texts in ["2 2", "1.5 3", "270/100 270/170", "3 3 3"] {
        let fair = prices(texts);
        for method in Method::ALL {
            let ours = method.remove(&fair, 1).unwrap();
            let implied = fair.iter().map(|price| implied(*price));
            assert!(ours.probabilities.iter().zip(implied).all(|(p, q)| near(*p, q)));
            let neutral = match method {
                Method::Power | Method::OddsRatio => Some(1.0),
                Method::Shin => Some(0.0),
                Method::Multiplicative | Method::Additive => None,
            };
            assert_eq!(ours.parameter, neutral);
        }
    }
}

#[test]
fn a_method_without_a_result_says_so() {
    // Below the number of winners there is no margin to remove.
    assert!(Method::ALL.iter().all(|method| method.remove(&prices("2.1 2.1"), 1).is_none()));
    let twelve = prices(&"1.6 ".repeat(12));
    assert!(Method::Shin.remove(&twelve, 5).is_none());
    assert!(Method::Power.remove(&twelve, 5).is_some());
    // Additive leaves the longest price exactly nothing: 0.9 + 0.1 + 0.1 + ... with (B - W) / n = 0.1 / 1.
    assert!(Method::Additive.remove(&prices("10/9 5 10"), 1).is_some());
    assert!(Method::Additive.remove(&prices("10/9 10/3 10"), 1).is_none(), "0.1 - 0.3 / 3");
    // The probability of this price is 1 in doubles: no power removes the margin.
    let certain = vec![Price::from_ratio(1, u64::MAX).unwrap(), Price::from_ratio(9, 1).unwrap()];
    assert_eq!(Method::Power.remove(&certain, 1), None);
    for method in Method::ALL {
        if let Some(ours) = method.remove(&certain, 1) {
            assert!(ours.probabilities.iter().all(|p| (0.0..=1.0).contains(p)), "{method:?}");
        }
    }
}

/// The hardest prices: favourites nearly certain, outsiders nearly impossible, booksums up to the number of outcomes.
#[test]
fn extreme_prices_are_solved_within_the_steps() {
    let odds = [(1, 1 << 52), (1, 1_000_000_000), (1, 100), (1, 1), (99, 1), (1 << 40, 1)];
    let odds = odds.map(|(profit, stake)| Price::from_ratio(profit, stake).unwrap());
    for one in odds {
        for other in odds {
            for others in [1, 2, 150] {
                let mut prices = vec![other; others];
                prices.push(one);
                for method in [Method::Power, Method::Shin, Method::OddsRatio] {
                    let Some(ours) = method.remove(&prices, 1) else { continue };
                    let key = if method == Method::OddsRatio { super::odds } else { implied };
                    let keys: Vec<f64> = prices.iter().map(|own| key(*own)).collect();
                    let booksum = prices.iter().map(|own| implied(*own)).sum();
                    let levels = Levels::new(method, &keys, booksum, 1.0);
                    let unscaled: f64 = levels.probabilities(ours.parameter.unwrap()).iter().sum();
                    assert!((unscaled - 1.0).abs() < 1e-9, "{method:?} of {prices:?}: {unscaled}");
                }
            }
        }
    }
}

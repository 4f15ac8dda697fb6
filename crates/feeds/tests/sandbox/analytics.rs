//! The analytics that always find something in the sandbox (N20), with requests that have no parameters: scheduled
//! events, and the bookmakers of the United States.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Catalogue, Line, Market, Region, Status, Timestamp};

use crate::book::Book;
use crate::promises::{Facts, implied, is_on};

/// Default of the maximum cost of a middle.
const MIDDLE_COST_MAX: f64 = 0.05;

/// A line: event, market, pairing, point and the number of outcomes.
type Key<'a> = (&'a str, Market, Option<&'a str>, Option<i32>, usize);
/// Each bookmaker's probabilities, margin included.
type Lines<'a> = BTreeMap<Key<'a>, Vec<Vec<f64>>>;

pub(crate) fn check(book: &Book, catalogue: &Catalogue, at: Timestamp, facts: &mut Facts) {
    let mut lines = Lines::new();
    let (mut three_way, mut stale) = (false, false);
    for ((reference, bookmaker, market, group), record) in &book.odds {
        let sport = book.events[reference].listing.sport;
        let american = catalogue.bookmaker(*bookmaker).regions.contains(&Region::Us);
        if !american || !is_on(book, reference, Status::Scheduled) {
            continue;
        }
        // Fresh or not: boxing is not read in the last minutes of an hour.
        let fight = catalogue.sport(sport).bouts && *market == Market::Moneyline;
        three_way |= fight && record.outcomes.len() == 3;
        if book.is_stale(*bookmaker, sport, at) {
            stale = true;
            continue;
        }
        let probabilities = record.outcomes.iter().map(|own| implied(own.quote.price)).collect();
        let point = record.outcomes[0].point.map(Line::quarters);
        let key = (&**reference, *market, group.as_deref(), point, record.outcomes.len());
        lines.entry(key).or_default().push(probabilities);
    }
    let promises = [
        ("an arbitrage", lines.iter().any(is_arbitrage)),
        ("a positive expected value", lines.iter().any(has_value)),
        ("a middle", has_middle(&lines)),
        ("a fight with a draw", three_way),
        ("a stale offer", stale),
    ];
    let missing = promises.into_iter().filter(|(_, holds)| !holds);
    facts.faults.extend(missing.map(|(what, _)| format!("analytics: there is not {what}")));
}

fn is_two_way((_, _, _, _, ways): &Key<'_>) -> bool {
    *ways == 2
}

/// The lowest probability among the bookmakers, for each of two outcomes.
fn best(offers: &[Vec<f64>]) -> [f64; 2] {
    [0, 1].map(|at| offers.iter().map(|own| own[at]).fold(1.0, f64::min))
}

fn is_arbitrage((key, offers): (&Key<'_>, &Vec<Vec<f64>>)) -> bool {
    is_two_way(key) && best(offers).iter().sum::<f64>() < 0.999
}

/// True if a price is better than the median of the others without their margins, removed by the multiplicative
/// method.
fn has_value((key, offers): (&Key<'_>, &Vec<Vec<f64>>)) -> bool {
    let fair = |own: &Vec<f64>| own[0] / own.iter().sum::<f64>();
    let value = |at: usize, own: &Vec<f64>| {
        let others = offers.iter().enumerate().filter(|(other, _)| *other != at);
        let mut others: Vec<f64> = others.map(|(_, other)| fair(other)).collect();
        others.sort_by(f64::total_cmp);
        let home = others[others.len() / 2];
        home / own[0] > 1.005 || (1.0 - home) / own[1] > 1.005
    };
    is_two_way(key) && offers.len() > 2 && offers.iter().enumerate().any(|(at, own)| value(at, own))
}

/// True if the lines of two bookmakers are so far apart that both sides win between them.
fn has_middle(lines: &Lines<'_>) -> bool {
    let markets: BTreeSet<(&str, Market)> = lines.keys().map(|key| (key.0, key.1)).collect();
    markets.into_iter().any(|(reference, market)| {
        let of_market: Vec<(i32, [f64; 2])> = lines
            .iter()
            .filter(|(key, _)| (key.0, key.1) == (reference, market) && is_two_way(key))
            .filter_map(|(key, offers)| {
                // The first outcome wins above a total, and above the negated handicap of the home side.
                let bound = if market == Market::Spread { -key.3? } else { key.3? };
                Some((bound, best(offers)))
            })
            .collect();
        let is_middle = |(low, above): &(i32, [f64; 2]), (high, below): &(i32, [f64; 2])| {
            low < high && above[0] + below[1] - 1.0 < MIDDLE_COST_MAX - 0.001
        };
        of_market.iter().any(|low| of_market.iter().any(|high| is_middle(low, high)))
    })
}

//! Which of several prices counts: a record's main line, the line that most bookmakers have, the best price on it.

use std::collections::BTreeMap;

use domain::{Line, Price};

use crate::analysis::probability::{WHOLE, implied_probability};
use crate::book::{Outcome, OutcomeName};

/// A record may have several lines for one outcome; its main line is the one nearest to even money.
pub fn main_outcome(outcomes: &[Outcome], name: OutcomeName) -> Option<&Outcome> {
    let from_even =
        |outcome: &&Outcome| implied_probability(outcome.quote.price).get().abs_diff(WHOLE / 2);
    outcomes.iter().filter(|outcome| outcome.name == name).min_by_key(from_even)
}

/// The line that most have; of equals the lowest. `None` where there is nothing to choose from.
pub fn usual_line(points: impl Iterator<Item = Option<Line>>) -> Option<Option<Line>> {
    let mut counts: BTreeMap<Option<i32>, (u32, Option<Line>)> = BTreeMap::new();
    for point in points {
        counts.entry(point.map(Line::quarters)).or_insert((0, point)).0 += 1;
    }
    counts.into_values().rev().max_by_key(|(count, _)| *count).map(|(_, point)| point)
}

/// The offer with the best price; of equals the first, so that nothing changes hands while prices stand still.
pub fn best_price<T>(
    offers: impl DoubleEndedIterator<Item = T>,
    price: impl Fn(&T) -> Price,
) -> Option<T> {
    offers.rev().max_by_key(price)
}

#[cfg(test)]
mod tests {
    use domain::{Format, Quote};

    use super::*;

    #[test]
    fn of_several_lines_the_one_nearest_to_even_money_is_the_main_one() {
        let line = |price: &str, quarters| Outcome {
            name: OutcomeName::Home,
            quote: Quote::parse(price, Format::Decimal).unwrap(),
            point: Some(Line::from_quarters(quarters)),
        };
        let outcomes = [line("1.3", -4), line("1.95", -14), line("3.4", -28)];
        let main = main_outcome(&outcomes, OutcomeName::Home).unwrap();
        assert_eq!(main.point, Some(Line::from_quarters(-14)));
        assert!(main_outcome(&outcomes, OutcomeName::Away).is_none());
    }
}

//! Selects a record's main line from several.

use crate::analysis::probability::{WHOLE, implied_probability};
use crate::book::{Outcome, OutcomeName};

/// The outcome on a record's main line: of several lines, the one nearest to even money.
pub fn main_outcome(outcomes: &[Outcome], name: OutcomeName) -> Option<&Outcome> {
    let from_even =
        |outcome: &&Outcome| implied_probability(outcome.quote.price).get().abs_diff(WHOLE / 2);
    outcomes.iter().filter(|outcome| outcome.name == name).min_by_key(from_even)
}

#[cfg(test)]
mod tests {
    use domain::{Format, Line, Quote};

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

//! Text of prices, lines and ages on the board.
use std::time::Duration;

use domain::{Format, Line};
use market::book::{Outcome, OutcomeName};

/// Maximum number of decimal places a column is padded to. Prices with more places stay as they are; none is rounded.
const PLACES_MAX: usize = 4;

/// Text of a price: with its sign, and with at least two decimal places, so that columns align.
pub(crate) fn price_text(offer: &Outcome, format: Format) -> String {
    let text = offer.quote.to_json(format);
    let text = text.trim_matches('"');
    match format {
        Format::American => match text.strip_prefix('-') {
            Some(digits) => format!("\u{2212}{digits}"),
            None => format!("+{text}"),
        },
        Format::Fractional => text.to_owned(),
        Format::Decimal => {
            let places = text.split_once('.').map_or(0, |(_, places)| places.len());
            let dot = if places == 0 { "." } else { "" };
            format!("{text}{dot}{}", "0".repeat(2_usize.saturating_sub(places)))
        }
    }
}

/// A handicap with its sign, a total without.
pub(crate) fn line_text(line: Line, outcome: OutcomeName) -> String {
    let mut text = String::new();
    line.write_json(&mut text);
    let total = matches!(outcome, OutcomeName::Over | OutcomeName::Under);
    match text.strip_prefix('-') {
        Some(digits) => format!("\u{2212}{digits}"),
        None if total || line.quarters() == 0 => text,
        None => format!("+{text}"),
    }
}

/// `52.4 %`, from billionths.
pub(crate) fn percent(billionths: i64) -> String {
    let tenths = (billionths + 500_000 * billionths.signum()) / 1_000_000;
    let sign = if tenths < 0 { "\u{2212}" } else { "" };
    format!("{sign}{}.{}\u{a0}%", tenths.abs() / 10, tenths.abs() % 10)
}

/// A duration as one short word.
pub(crate) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7200 => (seconds / 60, "m"),
        7200..172_800 => (seconds / 3600, "h"),
        172_800.. => (seconds / 86_400, "d"),
    };
    format!("{count}{unit}")
}

/// Gives the decimal prices of one column the same number of decimal places.
pub(crate) fn align(texts: Vec<&mut String>) {
    let places = |text: &str| text.split_once('.').map_or(0, |(_, places)| places.len());
    let most = texts.iter().map(|text| places(text)).filter(|places| *places <= PLACES_MAX).max();
    for text in texts.into_iter().filter(|text| text.contains('.')) {
        let missing = most.unwrap_or(0).saturating_sub(places(text));
        text.extend(std::iter::repeat_n('0', missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_in_tenths_of_a_percent() {
        assert_eq!(percent(47_619_048), "4.8\u{a0}%");
        assert_eq!(percent(-47_619_048), "\u{2212}4.8\u{a0}%");
        assert_eq!(percent(598_999_999), "59.9\u{a0}%");
    }

    #[test]
    fn decimal_prices_of_a_column_have_the_same_number_of_places() {
        let aligned = |texts: &[&str]| {
            let mut texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
            align(texts.iter_mut().collect());
            texts
        };
        assert_eq!(aligned(&["1.10", "1.104", "1001.00"]), ["1.100", "1.104", "1001.000"]);
        assert_eq!(aligned(&["1.10", "1.9090909"]), ["1.10", "1.9090909"]);
        assert_eq!(aligned(&["+120", "5/4"]), ["+120", "5/4"]);
    }
}

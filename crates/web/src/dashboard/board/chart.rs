//! SVG chart of one outcome's price at every bookmaker: time to the right, longer prices up.
use std::borrow::Cow;
use std::time::Duration;

use domain::{Format, Price, Quote, Timestamp};
use market::analysis::WHOLE;

use crate::dashboard::board::screen::Start;

use engine::PricePath;

/// Maximum time span of the chart.
const SPAN: Duration = Duration::from_secs(30 * 24 * 3600);
/// From this span on, the time axis shows days instead of times.
const DAYS_FROM: Duration = Duration::from_secs(48 * 3600);
/// Size of the chart and of its plot area, in its own units.
pub(crate) const WIDTH: i64 = 640;
pub(crate) const HEIGHT: i64 = 300;
const LEFT: i64 = 84;
const RIGHT: i64 = WIDTH - 14;
const TOP: i64 = 16;
const BOTTOM: i64 = HEIGHT - 38;
/// Minimum range of the vertical axis: two percent, so that small moves do not look large.
const RISE_MIN: i64 = 20_000_000;
const ROWS: i64 = 4;
const COLUMNS: i64 = 4;

/// A rendered chart.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) lines: Vec<Drawn>,
    pub(crate) rows: Vec<Tick>,
    pub(crate) columns: Vec<Tick>,
    pub(crate) from: String,
}

/// One bookmaker's line; `colour` is its index in the palette.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) colour: usize,
    pub(crate) title: String,
    pub(crate) d: String,
}

/// An axis label; labels of the time axis have an instant, which a script converts to local time.
#[derive(Debug)]
pub(crate) struct Tick {
    pub(crate) at: i64,
    pub(crate) text: String,
    pub(crate) iso: String,
}

struct Scale {
    from_ms: i64,
    span_ms: i64,
    low: i64,
    rise: i64,
}

impl Scale {
    fn x(&self, at: Timestamp) -> i64 {
        let passed = (at.as_millis() - self.from_ms).clamp(0, self.span_ms);
        LEFT + (RIGHT - LEFT) * passed / self.span_ms.max(1)
    }

    fn y(&self, probability: i64) -> i64 {
        TOP + (BOTTOM - TOP) * (probability - self.low) / self.rise.max(1)
    }
}

/// Returns `None` if there is nothing to draw yet.
pub(crate) fn draw(
    paths: &[(usize, String, Cow<'_, PricePath>)],
    now: Timestamp,
    format: Format,
) -> Option<Chart> {
    let points = || paths.iter().flat_map(|(_, _, path)| path.points.iter());
    let eldest = points().map(|point| point.at()).min()?;
    let from = eldest.max(now.minus(SPAN));
    let probabilities =
        || points().filter_map(|point| point.probability).map(|own| i64::from(own.get()));
    let (low, high) = (probabilities().min()?, probabilities().max()?);
    let rise = (high - low).max(RISE_MIN);
    let pad = rise / 10;
    let middle = i64::midpoint(low, high);
    let low = (middle - rise / 2 - pad).max(1);
    let span_ms = i64::try_from(now.since(from).as_millis()).unwrap_or(0);
    let scale = Scale { from_ms: from.as_millis(), span_ms, low, rise: rise + 2 * pad };
    let lines = paths
        .iter()
        .map(|(colour, title, path)| Drawn {
            colour: *colour,
            title: title.clone(),
            d: trace(path, &scale, from, now),
        })
        .filter(|line| !line.d.is_empty())
        .collect();
    let rows = (0..=ROWS).map(|row| {
        let probability = scale.low + scale.rise * row / ROWS;
        Tick { at: scale.y(probability), text: price_at(probability, format), iso: String::new() }
    });
    let columns = (0..=COLUMNS).map(|column| {
        let at = Timestamp::from_millis(scale.from_ms + span_ms * column / COLUMNS);
        let Start { iso, text } = Start::new(at);
        let (day, time) = text.split_once(", ").unwrap_or((&text, ""));
        match now.since(from) < DAYS_FROM {
            true => Tick { at: scale.x(at), text: time.to_owned(), iso },
            false => Tick { at: scale.x(at), text: day.to_owned(), iso: String::new() },
        }
    });
    let from = crate::dashboard::time_text::TimeText::new(from, now).text;
    Some(Chart { lines, rows: rows.collect(), columns: columns.collect(), from })
}

/// A price holds until the next change; the line breaks while there is no price.
fn trace(path: &PricePath, scale: &Scale, from: Timestamp, now: Timestamp) -> String {
    let mut d = String::new();
    let mut drawing = false;
    let mut points = path.points.iter().peekable();
    while let Some(point) = points.next() {
        let x = scale.x(point.at().max(from));
        // Points that fall on the same x are drawn as one step.
        if points.peek().is_some_and(|next| scale.x(next.at().max(from)) == x) {
            continue;
        }
        match point.probability {
            Some(probability) => {
                let y = scale.y(i64::from(probability.get()));
                if drawing {
                    d.push_str(&format!("H{x}V{y}"));
                } else {
                    d.push_str(&format!("M{x} {y}"));
                }
                drawing = true;
            }
            None if drawing => {
                d.push_str(&format!("H{x}"));
                drawing = false;
            }
            None => {}
        }
    }
    if drawing {
        d.push_str(&format!("H{}", scale.x(now)));
    }
    d
}

/// The price of a probability without a margin, rounded for an axis label.
pub(crate) fn price_at(probability: i64, format: Format) -> String {
    let probability = u64::try_from(probability).unwrap_or(1).clamp(1, u64::from(WHOLE) - 1);
    let Some(price) = Price::from_ratio(u64::from(WHOLE) - probability, probability) else {
        return String::new();
    };
    match format {
        Format::American => {
            let american = price.american();
            if american < 0 { format!("\u{2212}{}", -american) } else { format!("+{american}") }
        }
        // Probabilities of axis labels do not give customary fractions, so decimals are shown.
        Format::Decimal | Format::Fractional => {
            let text = Quote { price, format: Format::Decimal }.to_json(Format::Decimal);
            let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
            let places: String = places.chars().chain("00".chars()).take(2).collect();
            format!("{whole}.{places}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_has_its_price_on_the_edge() {
        assert_eq!(price_at(500_000_000, Format::Decimal), "2.00");
        assert_eq!(price_at(500_000_000, Format::American), "+100");
        assert_eq!(price_at(523_809_524, Format::American), "\u{2212}110");
        assert_eq!(price_at(-5, Format::Decimal), "1000000000.00");
    }
}

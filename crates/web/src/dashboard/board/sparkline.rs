//! Sparkline: recent moves of an outcome's median probability or line.
use std::time::Duration;

use domain::{Line, Timestamp};
use market::analysis::{WHOLE, median};

use engine::{PricePath, PricePoint};

/// Maximum time span.
const SPAN: Duration = Duration::from_secs(24 * 3600);
/// Number of sampled intervals.
const STEPS: i64 = 32;
/// Size of the drawing in its own units.
const WIDTH: i64 = 960;
const HEIGHT: i64 = 280;
const EDGE: i64 = 30;
/// Minimum range of the vertical axis, so that a move of half a percent does not look large.
const RISE_MIN: i64 = 10_000_000;

/// The `d` attribute of an SVG path; empty if there is too little to draw.
pub(crate) fn draw(paths: &[&PricePath], now: Timestamp) -> String {
    let eldest = paths.iter().filter_map(|path| path.points.front()).map(|point| point.at()).min();
    let Some(eldest) = eldest else {
        return String::new();
    };
    let from = eldest.max(now.minus(SPAN));
    let span_ms = i64::try_from(now.since(from).as_millis()).unwrap_or(0);
    let instants =
        (0..=STEPS).map(|step| Timestamp::from_millis(from.as_millis() + span_ms * step / STEPS));
    let series: Vec<Option<i64>> = if moves_line(paths) {
        instants.map(|at| middle(paths, at, line_of)).collect()
    } else {
        instants.map(|at| middle(paths, at, chance_of)).collect()
    };
    if span_ms == 0 || series.iter().flatten().count() < 2 {
        return String::new();
    }
    trace(&series)
}

/// True if the line moved; otherwise the probability is drawn.
fn moves_line(paths: &[&PricePath]) -> bool {
    let lines = |path: &PricePath| {
        path.points.iter().filter_map(|point| point.line).map(Line::quarters).collect::<Vec<_>>()
    };
    paths.iter().any(|path| lines(path).windows(2).any(|pair| matches!(pair, [a, b] if a != b)))
}

/// Inverted, so that up is a longer price as in the charts.
fn chance_of(point: PricePoint) -> Option<u32> {
    point.probability.map(|probability| WHOLE.saturating_sub(probability.get()))
}

/// Lines may be negative; the median is taken of unsigned numbers.
fn line_of(point: PricePoint) -> Option<u32> {
    let quarters = i64::from(point.line?.quarters());
    u32::try_from((quarters + 10_000) * RISE_MIN / 80).ok()
}

fn middle(paths: &[&PricePath], at: Timestamp, of: fn(PricePoint) -> Option<u32>) -> Option<i64> {
    let values = paths.iter().filter_map(|path| path.at(at)).filter_map(of);
    median(values.collect()).map(i64::from)
}

fn trace(series: &[Option<i64>]) -> String {
    let (low, high) = series
        .iter()
        .flatten()
        .fold((i64::MAX, i64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    let rise = (high - low).max(RISE_MIN);
    let middle = i64::midpoint(low, high);
    let mut path = String::new();
    let mut last = None;
    for (step, value) in (0_i64..).zip(series) {
        let Some(value) = value else {
            last = None;
            continue;
        };
        let x = WIDTH * step / STEPS;
        let y = HEIGHT / 2 - (value - middle) * (HEIGHT - 2 * EDGE) / rise;
        // A price holds until the next change: steps, not slopes.
        match last {
            None => path.push_str(&format!("M{x} {y}")),
            Some(before) if before == y => path.push_str(&format!("H{x}")),
            Some(_) => path.push_str(&format!("H{x}V{y}")),
        }
        last = Some(y);
    }
    shorten(&path)
}

/// Merges two successive moves to the right.
fn shorten(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| c.is_ascii_alphabetic())
            .map_or(rest.len(), |(at, _)| at);
        let (part, left) = rest.split_at(end);
        if first == 'H' && parts.last().is_some_and(|last| last.starts_with('H')) {
            parts.pop();
        }
        parts.push(part);
        rest = left;
    }
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_and_steps_and_breaks_where_there_was_nothing() {
        let series = [Some(0), Some(0), Some(100_000_000), None, Some(50_000_000)];
        assert_eq!(trace(&series), "M0 250H60V30M120 140");
        assert_eq!(trace(&[Some(7), Some(7), Some(7)]), "M0 140H60");
    }
}

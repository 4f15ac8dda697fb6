//! Bar charts over time as SVG. The bars scale with the page; labels and numbers are HTML text next to them and keep
//! their size on every screen.

use accounts::{CountRow, Outcome, Step};
use domain::Timestamp;

use crate::dashboard::time_text::{TimeText, number};

/// Size of the drawing in its own units; the page scales it.
const WIDTH: u64 = 1000;
const HEIGHT: u64 = 200;

/// A selectable time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Value in the URL.
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) step: Step,
    /// Number of steps per bar.
    steps: i64,
    bars: i64,
}

impl Range {
    pub(crate) const ALL: [Self; 4] = [
        Self { key: "24h", label: "24 hours", step: Step::Hour, steps: 1, bars: 24 },
        Self { key: "7d", label: "7 days", step: Step::Hour, steps: 3, bars: 56 },
        Self { key: "30d", label: "30 days", step: Step::Day, steps: 1, bars: 30 },
        Self { key: "1y", label: "1 year", step: Step::Day, steps: 7, bars: 52 },
    ];

    /// The range with that key, or the first range.
    pub(crate) fn find(key: &str) -> Self {
        let [first, ..] = Self::ALL;
        Self::ALL.into_iter().find(|range| range.key == key).unwrap_or(first)
    }

    /// Start of the first bar, chosen so that the last bar ends with the current step.
    pub(crate) fn from(self, now: Timestamp) -> Timestamp {
        let end_ms = self.step.start_ms(now.as_millis()) + self.step.millis();
        Timestamp::from_millis(end_ms - self.bars * self.bar_ms())
    }

    fn bar_ms(self) -> i64 {
        self.step.millis() * self.steps
    }

    fn name(self, at: Timestamp) -> String {
        match self.step {
            Step::Hour if self.steps == 1 => format!("{} UTC", TimeText::time(at)),
            Step::Hour => format!("{}, {} UTC", TimeText::day(at), TimeText::time(at)),
            Step::Day if self.steps == 1 => TimeText::day(at),
            Step::Day => format!("week from {}", TimeText::day(at)),
        }
    }

    fn tick(self, at: Timestamp) -> String {
        match self.step {
            Step::Hour if self.steps == 1 => TimeText::time(at),
            Step::Hour | Step::Day => TimeText::day(at),
        }
    }
}

/// Label of an outcome.
pub(crate) const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "Answered",
        Outcome::NotModified => "Not modified",
        Outcome::Refused => "Refused",
        Outcome::Limited => "Over a limit",
        Outcome::Failed => "Failed",
    }
}

/// The HTTP statuses of an outcome.
pub(crate) const fn statuses(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "200",
        Outcome::NotModified => "304",
        Outcome::Refused => "4xx",
        Outcome::Limited => "429",
        Outcome::Failed => "5xx",
    }
}

/// One segment of a bar.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) outcome: &'static str,
    pub(crate) y: u64,
    pub(crate) height: u64,
}

#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) x: u64,
    pub(crate) width: u64,
    pub(crate) name: String,
    pub(crate) total: String,
    pub(crate) pieces: Vec<Piece>,
    counts: [u64; Outcome::ALL.len()],
}

/// The count of one outcome.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) outcome: &'static str,
    pub(crate) word: &'static str,
    pub(crate) statuses: &'static str,
    pub(crate) total: String,
}

/// A chart with its labels.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) bars: Vec<Bar>,
    /// From top to bottom.
    pub(crate) scale: [String; 3],
    pub(crate) ticks: Vec<String>,
    pub(crate) legend: Vec<Entry>,
    pub(crate) total: String,
    pub(crate) is_empty: bool,
}

impl Chart {
    pub(crate) fn new(range: Range, rows: &[CountRow], now: Timestamp) -> Self {
        let from = range.from(now);
        let bar_count = usize::try_from(range.bars).unwrap_or_default();
        let mut sums = vec![[0_u64; Outcome::ALL.len()]; bar_count];
        for row in rows {
            let place = (row.start_ms - from.as_millis()).div_euclid(range.bar_ms());
            let bar = usize::try_from(place).ok().and_then(|place| sums.get_mut(place));
            if let Some(cell) = bar.and_then(|bar| bar.get_mut(row.outcome as usize)) {
                *cell = cell.saturating_add(row.requests);
            }
        }
        let top = nice(sums.iter().map(|counts| counts.iter().sum()).max().unwrap_or_default());
        let at = |n: i64| Timestamp::from_millis(from.as_millis() + n * range.bar_ms());
        let bars: Vec<Bar> = (0_i64..)
            .zip(sums)
            .map(|(n, counts)| bar(n, range.bars, counts, top, range.name(at(n))))
            .collect();
        let of = |outcome: Outcome| {
            let counts = bars.iter().filter_map(|bar| bar.counts.get(outcome as usize));
            counts.sum::<u64>()
        };
        let total: u64 = Outcome::ALL.into_iter().map(of).sum();
        let legend = Outcome::ALL.into_iter().map(|outcome| Entry {
            outcome: outcome.as_str(),
            word: word(outcome),
            statuses: statuses(outcome),
            total: number(of(outcome)),
        });
        Self {
            scale: [number(top), number(top / 2), "0".to_owned()],
            ticks: [0, 1, 2, 3].iter().map(|part| range.tick(at(range.bars * part / 4))).collect(),
            legend: legend.collect(),
            total: number(total),
            is_empty: total == 0,
            bars,
        }
    }
}

/// Builds a bar: non-zero segments are at least 2 units high, and no bar is higher than the drawing.
fn bar(n: i64, bars: i64, counts: [u64; Outcome::ALL.len()], top: u64, name: String) -> Bar {
    let (n, bars) = (u64::try_from(n).unwrap_or_default(), u64::try_from(bars).unwrap_or(1));
    let (x, next) = (n * WIDTH / bars, (n + 1) * WIDTH / bars);
    let mut below = 0_u64;
    let mut pieces = Vec::new();
    for (outcome, count) in Outcome::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
        let height = (count.saturating_mul(HEIGHT) / top.max(1)).max(2);
        below = (below + height).min(HEIGHT);
        pieces.push(Piece { outcome: outcome.as_str(), y: HEIGHT - below, height });
    }
    let total = number(counts.iter().sum::<u64>());
    Bar { x, width: (next - x).saturating_sub(2).max(1), name, total, pieces, counts }
}

/// The next round number for the scale: even, so that its half is a whole number.
fn nice(most: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [2, 4, 6, 8, 10] {
            if most <= step * unit {
                return step * unit;
            }
        }
        let Some(next) = unit.checked_mul(10).filter(|next| *next <= u64::MAX / 100) else {
            return most;
        };
        unit = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start: &str, outcome: Outcome, requests: u64) -> CountRow {
        let start_ms = Timestamp::parse(start).unwrap().as_millis();
        let (key_id, endpoint) = ("key_1".to_owned(), "get_odds".to_owned());
        CountRow { key_id, start_ms, endpoint, outcome, requests }
    }

    #[test]
    fn every_request_is_in_its_bar_and_in_the_sum() {
        let now = Timestamp::parse("2026-11-14T12:34:56Z").unwrap();
        let rows = [
            row("2026-11-13T12:00:00Z", Outcome::Ok, 1000),
            row("2026-11-13T13:00:00Z", Outcome::Ok, 7),
            row("2026-11-14T12:00:00Z", Outcome::Ok, 90),
            row("2026-11-14T12:00:00Z", Outcome::Failed, 3),
        ];
        let chart = Chart::new(Range::find("24h"), &rows, now);
        assert_eq!(chart.bars.len(), 24);
        assert_eq!((chart.bars[0].name.as_str(), chart.bars[0].total.as_str()), ("13:00 UTC", "7"));
        assert_eq!(
            (chart.bars[23].name.as_str(), chart.bars[23].total.as_str()),
            ("12:00 UTC", "93")
        );
        assert_eq!(chart.total, "100", "what is older is not shown");
        assert_eq!(chart.scale, ["100", "50", "0"]);
        let last: Vec<_> =
            chart.bars[23].pieces.iter().map(|p| (p.outcome, p.y, p.height)).collect();
        assert_eq!(last, [("ok", 20, 180), ("failed", 14, 6)]);
        assert_eq!(chart.ticks, ["13:00", "19:00", "01:00", "07:00"]);
    }

    #[test]
    fn weeks_and_days_hold_what_falls_into_them() {
        let now = Timestamp::parse("2026-11-14T12:34:56Z").unwrap();
        let rows = [
            row("2026-11-08T00:00:00Z", Outcome::Ok, 5),
            row("2026-11-14T00:00:00Z", Outcome::Ok, 2),
        ];
        let year = Chart::new(Range::find("1y"), &rows, now);
        assert_eq!((year.bars.len(), year.bars[51].total.as_str()), (52, "7"));
        let month = Chart::new(Range::find("30d"), &rows, now);
        assert_eq!((month.bars[29].name.as_str(), month.bars[29].total.as_str()), ("14 Nov", "2"));
        assert_eq!(month.bars[23].total, "5");
        assert!(Chart::new(Range::find("nonsense"), &[], now).is_empty);
    }

    #[test]
    fn scales_read_well_and_nothing_is_out_of_bounds() {
        assert_eq!(
            [nice(0), nice(1), nice(3), nice(9), nice(11), nice(81), nice(1001)],
            [2, 2, 4, 10, 20, 100, 2000]
        );
        assert_eq!(nice(u64::MAX), u64::MAX);
        let huge = bar(0, 1, [u64::MAX / 2, 1, 1, 1, 1], 100, String::new());
        assert!(huge.pieces.iter().all(|piece| piece.y <= HEIGHT));
    }
}

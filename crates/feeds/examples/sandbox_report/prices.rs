//! The bookmakers' prices for the home side of one contest: hours before the start, and in play.

use domain::message::ScoreBody;
use domain::{BookmakerId, Market, Status};

use crate::page::Page;
use crate::svg::{Frame, Scale, Svg, area, clock_ticks, number, percent_ticks, put, real, steps};
use crate::tape::{Paths, Point, Tape, implied};

/// A part of the time axis with its own scale: play is drawn wider than the time before it.
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// Time between two labels.
    pub(crate) every: i64,
    pub(crate) frame: Frame,
}

pub(crate) const WIDTH: f64 = 1120.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 1062.0;
const GAP: f64 = 22.0;
pub(crate) const BEFORE_S: i64 = 4 * 3600 + 1800;

impl Span {
    pub(crate) fn scale(&self) -> Scale {
        self.frame.across((0.0, real(self.to - self.from)))
    }

    pub(crate) fn x(&self, at: i64) -> f64 {
        self.scale().within(real(at.clamp(self.from, self.to) - self.from))
    }

    /// Labels with times of day; the last moment is left to the next span.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        clock_ticks(self.from, self.to - 300, self.every)
    }

    /// The steps of one path, cut to this span.
    pub(crate) fn steps(&self, path: &[Point], y: impl Fn(Point) -> Option<f64>) -> String {
        let mut points = Vec::new();
        let before = path.iter().rev().find(|point| point.at <= self.from);
        if let Some(point) = before {
            points.push((self.x(self.from), y(*point)));
        }
        for point in path.iter().filter(|point| self.from < point.at && point.at < self.to) {
            points.push((self.x(point.at), y(*point)));
        }
        steps(&points, self.frame.right)
    }
}

/// The time before the start and the play, next to each other.
pub(crate) fn spans(tape: &Tape, reference: &str, top: f64, bottom: f64) -> [Span; 2] {
    let start = starts(tape, reference);
    let over = tape.scores[reference].last().map_or(start, |(at, _)| *at);
    let split = if over - start < 3600 { 0.56 } else { 0.42 };
    let middle = LEFT + (RIGHT - LEFT) * split;
    let every = match over - start {
        ..2400 => 300,
        2400..9000 => 1200,
        _ => 1800,
    };
    let frame = |left, right| Frame { left, top, right, bottom };
    [
        Span { from: start - BEFORE_S, to: start, every: 1800, frame: frame(LEFT, middle) },
        Span { from: start, to: over + every / 2, every, frame: frame(middle + GAP, RIGHT) },
    ]
}

/// The instant of the first live score.
fn starts(tape: &Tape, reference: &str) -> i64 {
    let live = tape.scores[reference].iter().find(|(_, score)| score.status == Status::Live);
    live.map_or(tape.from, |(at, _)| *at)
}

pub(crate) fn draw(tape: &Tape, sport: &str, page: &mut Page) {
    let (id, title, note) = if sport == "mma" {
        (
            "mma",
            "Prices of a bout",
            "Each bookmaker's price for the home fighter: before the start opinion drifts and may jump on news; in play \
             prices follow the cards. The end of each round suspends the market for a while, which interrupts the \
             lines. The late bookmaker closes at the start. A line that continues from :30 to :35 is Bovada, which \
             is silent then.",
        )
    } else {
        (
            "tennis",
            "Prices of a tennis match",
            "The home player's price, game by game. Every game suspends the market until the bookmaker has priced it, breaks \
             of serve and ends of sets for longer. Short ticks at the bottom are games, dashed lines the ends of sets. \
             A line that continues from :30 to :35 is Bovada, which is silent then.",
        )
    };
    page.section(id, title, note);
    // A replaced fighter is another case than a moving price.
    let reference =
        tape.best(sport, |reference| (!reference.contains("replaced"), interest(tape, reference)));
    let (home, away) = tape.sides(&reference);
    let listing = &tape.listings[&reference];
    let last = tape.scores[&reference].last().map(|(_, score)| result(score, home, away));
    page.caption(&format!(
        "{home} against {away}, {}. {}",
        listing.competition,
        last.unwrap_or_default()
    ));
    page.families();
    page.add(&chart(tape, &reference, sport));
}

/// How interesting a contest is: its length, then how far the price moved; drift before the start counts more, as it
/// is rarer.
fn interest(tape: &Tape, reference: &str) -> (usize, f64) {
    let start = starts(tape, reference);
    let travelled = |from: i64, to: i64| {
        let all = tape.paths.get(reference).into_iter().flatten();
        let sharp = all.filter(|((market, id), _)| {
            *market == Market::Moneyline && tape.key(*id) == "pinnacle"
        });
        let points = sharp.flat_map(|(_, path)| path);
        let (least, most) = asked(points.filter(|point| (from..to).contains(&point.at)));
        (most - least).max(0.0)
    };
    let rounds = tape.scores[reference].last().map_or(0, |(_, score)| score.periods.len());
    (rounds.min(3), 3.0 * travelled(start - BEFORE_S, start) + travelled(start, i64::MAX))
}

/// The lowest and the highest chance that prices imply.
fn asked<'a>(points: impl Iterator<Item = &'a Point>) -> (f64, f64) {
    let asked = points.filter_map(|point| point.held.map(|(price, _)| implied(price)));
    asked.fold((1.0_f64, 0.0_f64), |(least, most), p| (least.min(p), most.max(p)))
}

fn chart(tape: &Tape, reference: &str, sport: &str) -> String {
    let paths = &tape.paths[reference];
    let (top, bottom) = (46.0, 350.0);
    let mut svg =
        Svg::new(WIDTH, 448.0, "Implied probability over time, one line for each bookmaker");
    let spans = spans(tape, reference, top, bottom);
    let (least, most) = range(paths, &spans);
    let y = spans[0].frame.upward((real(least) / 100.0, real(most) / 100.0));
    let every = if most - least > 50 { 10 } else { 5 };
    let ticks = percent_ticks(least, most, every);
    let blank: Vec<_> = ticks.iter().map(|(value, _)| (*value, String::new())).collect();
    for (i, span) in spans.iter().enumerate() {
        let frame = span.frame;
        svg.bar("plot", (frame.left, top), (frame.width(), bottom - top), "");
        svg.grid_y(frame, y, if i == 0 { &ticks } else { &blank });
        svg.grid_x(frame, span.scale(), &span.ticks());
        let what = if i == 0 { "before the start" } else { "in play" };
        svg.label("strong", (frame.left, 14.0), what);
    }
    for (value, _) in ticks.iter().filter(|(value, _)| *value > 0.0) {
        let price = format!("{:.2}", 1.0 / value);
        svg.label("tick", (RIGHT + 6.0, y.at(*value) + 3.5), &price);
    }
    svg.name_y(14.0, spans[0].frame, "implied probability, margin included");
    svg.name_y(WIDTH - 8.0, spans[0].frame, "decimal price");
    let live = &spans[1];
    svg.line("zero", (live.frame.left, top), (live.frame.left, bottom));
    marks(&mut svg, tape, reference, sport, live);
    let mut lines: Vec<_> =
        paths.iter().filter(|((market, _), _)| *market == Market::Moneyline).collect();
    // Draw the low-margin lines last, so that they are on top.
    lines.sort_by_key(|((_, id), _)| std::cmp::Reverse(tape.family(*id)));
    for ((_, id), path) in &lines {
        let place = |point: Point| point.held.map(|(price, _)| y.within(implied(price)));
        for span in &spans {
            svg.path(tape.family(*id).class(), &span.steps(path, place), tape.key(*id));
        }
    }
    let lines: Vec<(BookmakerId, &[Point])> =
        lines.iter().map(|((_, id), path)| (*id, path.as_slice())).collect();
    for span in &spans {
        quoting(&mut svg, span, &lines);
    }
    svg.name_y(14.0, Frame { top: 384.0, bottom: 430.0, ..spans[0].frame }, "quoting");
    svg.finish()
}

/// The number of bookmakers with a price, below the chart.
fn quoting(svg: &mut Svg, span: &Span, lines: &[(BookmakerId, &[Point])]) {
    let frame = Frame { top: 384.0, bottom: 430.0, ..span.frame };
    let all = number(lines.len());
    let y = frame.upward((0.0, all));
    svg.bar("plot", (frame.left, frame.top), (frame.width(), 46.0), "");
    let mut changes: Vec<i64> =
        lines.iter().flat_map(|(_, path)| path.iter().map(|p| p.at)).collect();
    changes.push(span.from);
    changes.retain(|at| span.from <= *at && *at < span.to);
    changes.sort_unstable();
    changes.dedup();
    let mut points = Vec::new();
    let mut held = None;
    for at in changes {
        let open = |path: &&[Point]| {
            let after = path.partition_point(|point| point.at <= at);
            after.checked_sub(1).is_some_and(|i| path[i].held.is_some())
        };
        let open = number(lines.iter().filter(|(_, path)| open(path)).count());
        if let Some(before) = held {
            points.push((span.x(at), y.at(before)));
        }
        points.push((span.x(at), y.at(open)));
        held = Some(open);
    }
    points.extend(held.map(|open| (frame.right, y.at(open))));
    svg.path("quoting", &area(&points, frame.bottom), "bookmakers with a price");
    for (value, text) in [(0.0, "0".to_owned()), (all, format!("{all}"))] {
        svg.line("grid", (frame.left, y.at(value)), (frame.right, y.at(value)));
        if frame.left < LEFT + 1.0 {
            svg.label("tick end", (frame.left - 4.0, y.at(value) + 3.5), &text);
        }
    }
}

/// Whole percents that enclose everything drawn.
fn range(paths: &Paths, spans: &[Span; 2]) -> (i64, i64) {
    let drawn = paths.iter().filter(|((market, _), _)| *market == Market::Moneyline);
    let points = drawn.flat_map(|(_, path)| path);
    let (least, most) = asked(points.filter(|point| point.at >= spans[0].from));
    let fives = |from: f64| (0..=20_i64).filter(move |n| real(*n) / 20.0 > from);
    let low = fives(least).next().map_or(0, |n| (n - 1).max(0) * 5);
    (low, fives(most).next().unwrap_or(20) * 5)
}

/// Marks the moments at which the score changed.
pub(crate) fn marks(svg: &mut Svg, tape: &Tape, reference: &str, sport: &str, span: &Span) {
    let (home, away) = tape.sides(reference);
    let mut before: Option<&ScoreBody> = None;
    let mut row = 0;
    let mut last = f64::MIN;
    for (at, score) in &tape.scores[reference] {
        let x = span.x(*at);
        let text = moved(sport, before, score, home, away);
        before = Some(score);
        let Frame { top, bottom, .. } = span.frame;
        if text.is_empty() {
            svg.line("rug", (x, bottom - 6.0), (x, bottom));
            continue;
        }
        svg.line("mark", (x, top), (x, bottom));
        row = if x - last < 44.0 { (row + 1) % 2 } else { 0 };
        last = x;
        svg.label("tick mid", (x, top - 6.0 - 12.0 * real(row)), &text);
    }
}

/// A new score in short form; empty if it needs no label.
fn moved(
    sport: &str,
    before: Option<&ScoreBody>,
    now: &ScoreBody,
    home: &str,
    away: &str,
) -> String {
    let Some(before) = before else { return String::new() };
    let pair = |home: i32, away: i32| format!("{home}–{away}");
    match sport {
        "mma" if now.status == Status::Final => {
            let winner = now.winner.as_deref().unwrap_or_default();
            let side = if winner == home { home } else { away };
            format!("{} wins", side.rsplit(' ').next().unwrap_or(side))
        }
        "mma" => now.periods.last().map_or(String::new(), |round| {
            format!("R{} {}", round.number, pair(round.home, round.away))
        }),
        "tennis" if (now.home, now.away) != (before.home, before.away) => {
            let set = before.periods.len().checked_sub(1).and_then(|i| now.periods.get(i));
            set.map_or(String::new(), |set| format!("set {}", pair(set.home, set.away)))
        }
        "american_football" if (now.home, now.away) != (before.home, before.away) => {
            pair(now.home.unwrap_or(0), now.away.unwrap_or(0))
        }
        _ => String::new(),
    }
}

/// The result.
pub(crate) fn result(score: &ScoreBody, home: &str, away: &str) -> String {
    let mut text = match (&score.winner, score.home, score.away) {
        (Some(winner), _, _) => format!("{winner} won; rounds on the card:"),
        (None, Some(h), Some(a)) if h > a => format!("{home} won {h}–{a}:"),
        (None, h, a) => format!("{away} won {}–{}:", a.unwrap_or(0), h.unwrap_or(0)),
    };
    for period in &score.periods {
        put(&mut text, format_args!(" {}–{}", period.home, period.away));
    }
    text
}

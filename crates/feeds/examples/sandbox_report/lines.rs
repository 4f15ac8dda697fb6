//! A football game: the spread line, and the price of the home side at it.

use domain::{Line, Market};

use crate::page::Page;
use crate::prices::{BEFORE_S, Span, WIDTH, marks, result, spans};
use crate::svg::{Frame, Scale, Svg};
use crate::tape::{Point, Tape, decimal};

/// Vertical offset of each family's line if several coincide.
const APART: [f64; 5] = [0.0, -2.5, 2.5, 5.0, -5.0];
const PANELS: [(f64, f64); 2] = [(46.0, 216.0), (258.0, 428.0)];

pub(crate) fn draw(tape: &Tape, page: &mut Page) {
    page.section(
        "spread",
        "Spread line and its price in a football game",
        "Above, the home side's handicap; below, the decimal price at it. Bookmakers with an American grid hold the \
         price at standard juice while the chances are near even, and move the line; the others move the price \
         first and the line later. In play the line follows the lead, and every score suspends. Lines at the same height are drawn a little apart.",
    );
    let reference = tape.best("american_football", |reference| interest(tape, reference));
    let (home, away) = tape.sides(&reference);
    let last = tape.scores[&reference].last().map(|(_, score)| result(score, home, away));
    let competition = &tape.listings[&reference].competition;
    page.caption(&format!("{home} against {away}, {competition}. {}", last.unwrap_or_default()));
    page.families();
    page.add(&chart(tape, &reference));
}

/// Rates a game: the line moved before the start, the lead changed hands a few times, and there are few enough scores
/// for their labels.
fn interest(tape: &Tape, reference: &str) -> (usize, usize, usize) {
    let scores = &tape.scores[reference];
    let leads = scores.iter().map(|(_, score)| score.home.cmp(&score.away));
    let mut leads: Vec<_> = leads.filter(|lead| lead.is_ne()).collect();
    leads.dedup();
    let start = scores.first().map_or(0, |(at, _)| *at);
    let wait = start - BEFORE_S..start;
    let sharp = tape.paths[reference].iter();
    let sharp =
        sharp.filter(|((market, id), _)| *market == Market::Spread && tape.key(*id) == "pinnacle");
    let waiting = sharp.flat_map(|(_, path)| path).filter(|point| wait.contains(&point.at));
    let mut before: Vec<_> = waiting.filter_map(|point| point.held?.1).collect();
    before.dedup();
    (before.len().min(3), leads.len().min(4), usize::MAX - scores.len())
}

fn chart(tape: &Tape, reference: &str) -> String {
    let mut svg =
        Svg::new(WIDTH, 456.0, "Spread line and price over time, one line for each bookmaker");
    let paths = tape.paths[reference].iter().filter(|((market, _), _)| *market == Market::Spread);
    let mut paths: Vec<_> = paths.map(|((_, id), path)| (*id, path)).collect();
    paths.sort_by_key(|(id, _)| std::cmp::Reverse(tape.family(*id)));
    for (panel, (top, bottom)) in PANELS.into_iter().enumerate() {
        let spans = spans(tape, reference, top, bottom);
        let points = paths.iter().flat_map(|(_, path)| path.iter());
        let points = points.filter(|point| point.at >= spans[0].from);
        let values: Vec<f64> = points.filter_map(|point| value(panel, *point)).collect();
        let (y, ticks) = scale(panel, &values, spans[0].frame);
        axes(&mut svg, &spans, y, &ticks);
        let name = ["home handicap, points", "decimal price of home"][panel];
        svg.name_y(14.0, spans[0].frame, name);
        if panel == 0 {
            for (span, what) in spans.iter().zip(["before the start", "in play"]) {
                svg.label("strong", (span.frame.left, 14.0), what);
            }
        }
        let live = &spans[1];
        if panel == 0 {
            marks(&mut svg, tape, reference, "american_football", live);
        }
        svg.line("zero", (live.frame.left, top), (live.frame.left, bottom));
        for (id, path) in &paths {
            let family = tape.family(*id);
            let apart = if panel == 0 { APART[family as usize] } else { 0.0 };
            let place = |point: Point| value(panel, point).map(|value| y.within(value) + apart);
            let class = family.class();
            for span in &spans {
                svg.path(class, &span.steps(path, place), tape.key(*id));
            }
        }
    }
    svg.finish()
}

fn axes(svg: &mut Svg, spans: &[Span; 2], y: Scale, ticks: &[(f64, String)]) {
    let blank: Vec<_> = ticks.iter().map(|(value, _)| (*value, String::new())).collect();
    for (i, span) in spans.iter().enumerate() {
        let Frame { left, top, bottom, .. } = span.frame;
        svg.bar("plot", (left, top), (span.frame.width(), bottom - top), "");
        svg.grid_y(span.frame, y, if i == 0 { ticks } else { &blank });
        svg.grid_x(span.frame, span.scale(), &span.ticks());
    }
}

fn value(panel: usize, point: Point) -> Option<f64> {
    let (price, line) = point.held?;
    if panel == 0 { line.map(points) } else { Some(decimal(price)) }
}

fn points(line: Line) -> f64 {
    f64::from(line.quarters()) / 4.0
}

/// Whole touchdowns for lines, tenths for prices.
fn scale(panel: usize, values: &[f64], frame: Frame) -> (Scale, Vec<(f64, String)>) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let step = if panel == 0 { 7.0 } else { 0.1 };
    let (mut low, mut high) = (-20_i32, 60_i32);
    while f64::from(low + 1) * step < least {
        low += 1;
    }
    while f64::from(high - 1) * step > most {
        high -= 1;
    }
    let label = |n: i32| match panel {
        0 if n == 0 => "0".to_owned(),
        0 => format!("{:+}", f64::from(n) * step).replace('-', "−"),
        _ => format!("{:.2}", f64::from(n) * step),
    };
    let ticks = (low..=high).map(|n| (f64::from(n) * step, label(n))).collect();
    (frame.upward((f64::from(low) * step, f64::from(high) * step)), ticks)
}

//! The margin of each bookmaker, by sport.

use crate::page::Page;
use crate::svg::{Frame, Scale, Svg, number, percent_ticks};
use crate::tape::Tape;

const ROW: f64 = 22.0;
const TOP: f64 = 30.0;

pub(crate) fn draw(tape: &Tape, page: &mut Page) {
    page.section(
        "margins",
        "Margins by bookmaker and sport",
        "The sum of the implied probabilities of the winner market, less one: moneylines, and golf's outrights on a \
         scale of their own. Sampled each hour of the day. The line spans the 5th to the 95th percentile, the box the \
         middle half, the stroke is the median. Nothing may be below zero. A row without a box: the bookmaker does \
         not carry that sport.",
    );
    page.families();
    let mut bookmakers: Vec<_> = tape.boards.keys().copied().collect();
    bookmakers.sort_by_key(|id| (tape.family(*id), *id));
    let height = TOP + ROW * number(bookmakers.len()) + 40.0;
    let mut svg = Svg::new(1120.0, height, "Margins of each bookmaker by sport");
    let bottom = height - 40.0;
    for (i, id) in bookmakers.iter().enumerate() {
        let y = TOP + ROW * (number(i) + 0.5) + 4.0;
        svg.label("end", (92.0, y), tape.key(*id));
    }
    for (at, (sport, about)) in tape.catalogue.sports().enumerate() {
        let left = 104.0 + number(at) * 204.0;
        let frame = Frame { left, top: TOP, right: left + 182.0, bottom };
        let golf = &*about.key == "golf";
        let (most, every) = if golf { (58, 20) } else { (11, 4) };
        let x = frame.across((0.0, number(most) / 100.0));
        svg.bar("plot", (left, TOP), (frame.width(), bottom - TOP), "");
        let ticks = percent_ticks(0, i64::try_from(most).unwrap_or(0), every);
        svg.grid_x(frame, x, &ticks);
        svg.line("zero", (left, TOP), (left, bottom));
        svg.label("strong", (left, TOP - 10.0), &about.title);
        for (i, id) in bookmakers.iter().enumerate() {
            let Some(margins) = tape.margins.get(&(sport, *id)) else { continue };
            let middle = TOP + ROW * (number(i) + 0.5);
            draw_box(&mut svg, x, middle, tape.family(*id).class(), margins, tape.key(*id));
        }
    }
    svg.label("name mid", (610.0, height - 6.0), "overround of the winner market");
    page.add(&svg.finish());
}

fn draw_box(svg: &mut Svg, x: Scale, middle: f64, class: &str, margins: &[f64], who: &str) {
    let mut sorted = margins.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
    let place = |percent: usize| x.within(at(percent));
    let title = format!(
        "{who}: median {:.1} %, middle half {:.1} to {:.1} %, least {:.1} %, {} samples",
        at(50) * 100.0,
        at(25) * 100.0,
        at(75) * 100.0,
        at(0) * 100.0,
        sorted.len()
    );
    svg.line(class, (place(5), middle), (place(95), middle));
    let width = (place(75) - place(25)).max(1.5);
    svg.bar(&format!("box {class}"), (place(25), middle - 6.0), (width, 12.0), &title);
    let stroke = place(50);
    svg.line(&format!("median {class}"), (stroke, middle - 6.0), (stroke, middle + 6.0));
}

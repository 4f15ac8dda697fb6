//! The frequency of arbitrage between the best prices of all bookmakers.

use crate::page::Page;
use crate::svg::{Frame, Svg, clock_ticks, number, real};
use crate::tape::{DAY_S, Tape};

/// The maximum that the tests allow: one in a hundred.
const MOST: f64 = 0.01;

pub(crate) fn draw(tape: &Tape, page: &mut Page) {
    let (markets, beaten) =
        tape.looks.iter().fold((0, 0), |(m, b), look| (m + look.markets, b + look.beaten));
    let share = 100.0 * number(beaten) / number(markets);
    let mut lives = tape.lives.clone();
    lives.sort_unstable();
    let minutes = |percent: usize| {
        lives.get(lives.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0) * 2
    };
    page.section(
        "arbitrage",
        "Arbitrage over the day",
        &format!(
            "Every two minutes: of all two-way markets at one line, the share in which the best prices of the fresh \
             bookmakers add up to less than one. Over the day {share:.3} %, {} in all; half of them last no more than \
             {} minutes, nine in ten no more than {}, the longest {}.",
            lives.len(),
            minutes(50),
            minutes(90),
            minutes(100)
        ),
    );
    let mut svg = Svg::new(1120.0, 210.0, "Share of two-way markets with arbitrage over a day");
    let frame = Frame { left: 62.0, top: 12.0, right: 1062.0, bottom: 168.0 };
    let share = |beaten: usize, markets: usize| number(beaten) / number(markets.max(1));
    let most = tape.looks.iter().map(|look| share(look.beaten, look.markets)).fold(MOST, f64::max);
    let x = frame.across((0.0, real(DAY_S)));
    let y = frame.upward((0.0, most * 1.1));
    svg.bar("plot", (frame.left, frame.top), (frame.width(), frame.bottom - frame.top), "");
    let tenths = (0..20_u32).map(|n| f64::from(n) / 1000.0).filter(|share| *share <= most * 1.1);
    let ticks: Vec<_> = tenths.map(|share| (share, format!("{:.1} %", share * 100.0))).collect();
    svg.grid_y(frame, y, &ticks);
    svg.grid_x(frame, x, &clock_ticks(tape.from, tape.to, 7200));
    for look in &tape.looks {
        let left = x.at(real(look.at - tape.from));
        let top = y.at(share(look.beaten, look.markets));
        let title = format!("{} of {} markets", look.beaten, look.markets);
        if look.beaten > 0 && left < frame.right {
            svg.bar("fill", (left, top), (1.4, frame.bottom - top), &title);
        }
    }
    svg.line("limit", (frame.left, y.at(MOST)), (frame.right, y.at(MOST)));
    svg.label(
        "limit-text end",
        (frame.right - 6.0, y.at(MOST) - 5.0),
        "the tests require an average below this",
    );
    svg.name_y(14.0, frame, "share of markets");
    svg.label("name mid", (562.0, 204.0), "time of day, UTC");
    page.add(&svg.finish());
}

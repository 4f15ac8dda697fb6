//! The picture in docs/analytics.md shows the results of the methods.

use std::fmt::Write as _;
use std::path::Path;

use domain::{Format, Price, Quote};
use linesman_market::analysis::{Method, implied_probability};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 44.0;

/// A tournament's winner at one bookmaker, in decimal odds.
const FIELD: [&str; 12] = ["3", "4.5", "6", "8", "10", "13", "15", "17", "21", "26", "31", "34"];

/// Horizontal axis: the implied probability on a logarithmic scale, from 2.5 to 40 %.
fn x(implied: f64) -> f64 {
    LEFT + (implied / 0.025).ln() / 16.0_f64.ln() * (WIDTH - LEFT - RIGHT)
}

/// Vertical axis: the share of it that is left, from 0 to 1.
fn y(left: f64) -> f64 {
    HEIGHT - BOTTOM - left * (HEIGHT - TOP - BOTTOM)
}

fn drawn() -> String {
    let price = |text: &str| Quote::parse(text, Format::Decimal).unwrap().price;
    let prices: Vec<Price> = FIELD.into_iter().map(price).collect();
    let implied: Vec<f64> =
        prices.iter().map(|price| f64::from(implied_probability(*price).get()) / 1e9).collect();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"How much of its implied probability each method leaves an outcome: the same share by \
         multiplicative, ever less for longshots by odds ratio, power, Shin and additive, in that order\">\n\
         <style>text{{font:11px system-ui,sans-serif;fill:#666}}.grid{{stroke:#8884;fill:none}}\
         .line{{stroke-width:2;fill:none}}.m0{{stroke:#2a7de1}}.m1{{stroke:#888}}.m2{{stroke:#d1495b}}\
         .m3{{stroke:#2e8b57}}.m4{{stroke:#b8860b}}\
         @media(prefers-color-scheme:dark){{text{{fill:#aaa}}}}</style>\n"
    );
    let mut put = |line: String| writeln!(svg, "{line}").unwrap();
    for left in [0.0, 0.25, 0.5, 0.75, 1.0] {
        put(format!("<path class=\"grid\" d=\"M{LEFT} {:.1}H{}\"/>", y(left), WIDTH - RIGHT));
        let at = (LEFT - 6.0, y(left) + 4.0);
        put(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{left}</text>", at.0, at.1));
    }
    for percent in [2.5, 5.0, 10.0, 20.0, 40.0] {
        let at = (x(percent / 100.0), HEIGHT - BOTTOM + 16.0);
        put(format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{percent} %</text>",
            at.0, at.1
        ));
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    put(format!(
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">implied probability π</text>",
        HEIGHT - 8.0
    ));
    put(format!(
        "<text x=\"12\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {:.1})\">p / π</text>",
        y(0.5),
        y(0.5)
    ));
    for (n, method) in Method::ALL.into_iter().enumerate() {
        let fair = method.remove(&prices, 1).unwrap();
        let points: Vec<String> = implied
            .iter()
            .zip(&fair.probabilities)
            .map(|(implied, fair)| format!("{:.1},{:.1}", x(*implied), y(fair / implied)))
            .collect();
        let dashes = ["", " stroke-dasharray=\"2 3\"", "", " stroke-dasharray=\"7 3\"", ""][n];
        put(format!("<polyline class=\"line m{n}\"{dashes} points=\"{}\"/>", points.join(" ")));
        let (from, at) =
            (WIDTH - RIGHT + 14.0, TOP + 24.0 + 20.0 * f64::from(u8::try_from(n).unwrap()));
        put(format!("<path class=\"line m{n}\"{dashes} d=\"M{from} {at}h24\"/>"));
        put(format!("<text x=\"{}\" y=\"{}\">{}</text>", from + 30.0, at + 4.0, method.key()));
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_picture_of_the_methods_shows_what_they_give() {
    let drawn = drawn();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kept = std::fs::read_to_string(root.join("docs/analytics/methods.svg")).unwrap_or_default();
    if drawn != kept {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("methods.svg");
        std::fs::write(&path, &drawn).unwrap();
        assert_eq!(drawn, kept, "look at {} and copy it to docs/analytics", path.display());
    }
}

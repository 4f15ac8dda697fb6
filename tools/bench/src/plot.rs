//! Plots as SVG: one line over a logarithmic or linear axis, small enough to be read as text, with colours for light
//! and dark backgrounds.

use std::fmt::Write as _;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;

/// A line to draw.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// File name without extension.
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    pub(super) across: &'static str,
    pub(super) up: &'static str,
    /// Pairs of x and y, ordered by x.
    pub(super) points: Vec<(f64, f64)>,
}

impl Plot {
    pub(super) fn to_svg(&self) -> String {
        let most = self.points.iter().map(|(_, y)| *y).fold(0.0, f64::max) * 1.15;
        let place = |(x, y): (f64, f64)| {
            let x = LEFT + self.share(x) * (WIDTH - LEFT - RIGHT);
            let y = HEIGHT - BOTTOM - y / most.max(f64::MIN_POSITIVE) * (HEIGHT - TOP - BOTTOM);
            (x, y)
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n\
             <style>text{{font:11px system-ui,sans-serif;fill:#666}}.t{{font-size:13px;font-weight:600}}\
             .g{{stroke:#8884;fill:none}}.l{{stroke:#2a7de1;stroke-width:2;fill:none}}circle{{fill:#2a7de1}}\
             @media(prefers-color-scheme:dark){{text{{fill:#aaa}}.l{{stroke:#6cb0ff}}circle{{fill:#6cb0ff}}}}</style>\n",
            self.title
        );
        let mut put = |line: String| writeln!(svg, "{line}").unwrap_or_default();
        put(format!("<text class=\"t\" x=\"{LEFT}\" y=\"16\">{}</text>", self.title));
        for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let y = HEIGHT - BOTTOM - quarter * (HEIGHT - TOP - BOTTOM);
            put(format!("<path class=\"g\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT));
            let (x, y) = (LEFT - 6.0, y + 4.0);
            put(format!(
                "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
                short(most * quarter)
            ));
        }
        let line: Vec<String> = self
            .points
            .iter()
            .map(|point| place(*point))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        put(format!("<polyline class=\"l\" points=\"{}\"/>", line.join(" ")));
        for (across, up) in &self.points {
            let (x, y) = place((*across, *up));
            put(format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"));
            put(format!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - BOTTOM + 15.0,
                short(*across)
            ));
        }
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        put(format!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}; up: {}</text>",
            HEIGHT - 8.0,
            self.across,
            self.up
        ));
        svg.push_str("</svg>\n");
        svg
    }

    /// Position of a value between the first and the last; logarithmic if the range is wide.
    fn share(&self, x: f64) -> f64 {
        let (Some((first, _)), Some((last, _))) = (self.points.first(), self.points.last()) else {
            return 0.0;
        };
        let scale = |x: f64| if last / first.max(1.0) > 20.0 { (x + 1.0).ln() } else { x };
        let range = scale(*last) - scale(*first);
        if range > 0.0 { (scale(x) - scale(*first)) / range } else { 0.0 }
    }
}

fn short(figure: f64) -> String {
    if figure >= 1000.0 {
        format!("{:.0}k", figure / 1000.0)
    } else if figure >= 10.0 || figure.fract() == 0.0 {
        format!("{figure:.0}")
    } else {
        format!("{figure:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_one_small_drawing_within_its_frame() {
        let points = vec![(1.0, 8.0), (100.0, 9.0), (10_000.0, 30.0)];
        let plot = Plot { file: "a", title: "A plot", across: "things", up: "µs", points };
        let svg = plot.to_svg();
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>") && svg.len() < 8_000
        );
        let drawn = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next());
        for place in drawn.unwrap().split(' ') {
            let (x, y) = place.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y), "{place}");
        }
    }
}

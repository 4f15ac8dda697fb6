//! The parts of SVG that the charts need. Colours are classes, so that the page's style decides for light and dark.

use std::fmt::Write as _;

/// A drawing under construction.
#[derive(Debug)]
pub(crate) struct Svg {
    text: String,
}

/// Maps values to positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) values: (f64, f64),
    pub(crate) places: (f64, f64),
}

/// The position of a plot in its drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Scale {
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (from, to) = self.values;
        let (first, last) = self.places;
        first + (value - from) / (to - from) * (last - first)
    }

    /// The same, kept within the plot.
    pub(crate) fn within(&self, value: f64) -> f64 {
        let (first, last) = self.places;
        self.at(value).clamp(first.min(last), first.max(last))
    }
}

impl Frame {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn across(&self, values: (f64, f64)) -> Scale {
        Scale { values, places: (self.left, self.right) }
    }

    /// Small values at the bottom.
    pub(crate) fn upward(&self, values: (f64, f64)) -> Scale {
        Scale { values, places: (self.bottom, self.top) }
    }
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64, label: &str) -> Self {
        let mut text = String::new();
        let label = escape(label);
        put(
            &mut text,
            format_args!(
                "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n"
            ),
        );
        Self { text }
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        put(
            &mut self.text,
            format_args!(
                "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
            ),
        );
    }

    /// A label; `class` also sets its anchor.
    pub(crate) fn label(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        put(
            &mut self.text,
            format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n"),
        );
    }

    /// A path with a title that is shown on hover.
    pub(crate) fn path(&mut self, class: &str, d: &str, title: &str) {
        if d.is_empty() {
            return;
        }
        let title = escape(title);
        put(
            &mut self.text,
            format_args!("<path class=\"{class}\" d=\"{d}\"><title>{title}</title></path>\n"),
        );
    }

    pub(crate) fn bar(&mut self, class: &str, from: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height)) = (from, size);
        let title = escape(title);
        put(
            &mut self.text,
            format_args!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"><title>{title}</title></rect>\n"
            ),
        );
    }

    /// Horizontal grid lines with their labels at the left.
    pub(crate) fn grid_y(&mut self, frame: Frame, scale: Scale, ticks: &[(f64, String)]) {
        for (value, text) in ticks {
            let y = scale.at(*value);
            self.line("grid", (frame.left, y), (frame.right, y));
            self.label("tick end", (frame.left - 6.0, y + 3.5), text);
        }
    }

    /// Vertical grid lines with their labels below.
    pub(crate) fn grid_x(&mut self, frame: Frame, scale: Scale, ticks: &[(f64, String)]) {
        for (value, text) in ticks {
            let x = scale.at(*value);
            self.line("grid", (x, frame.top), (x, frame.bottom));
            self.label("tick mid", (x, frame.bottom + 15.0), text);
        }
    }

    /// The title of a vertical axis, left of its labels.
    pub(crate) fn name_y(&mut self, x: f64, frame: Frame, text: &str) {
        let y = f64::midpoint(frame.top, frame.bottom);
        let text = escape(text);
        put(
            &mut self.text,
            format_args!(
                "<text class=\"name mid\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{text}</text>\n"
            ),
        );
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// A stepped line through points in the order of time; a point without a value interrupts it.
pub(crate) fn steps(points: &[(f64, Option<f64>)], until: f64) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let Some(y) = y else { continue };
        let before = i.checked_sub(1).and_then(|i| points.get(i)?.1);
        match before {
            Some(_) => put(&mut d, format_args!("V{y:.1}")),
            None => put(&mut d, format_args!("M{x:.1} {y:.1}")),
        }
        let next = points.get(i + 1).map_or(until, |next| next.0);
        put(&mut d, format_args!("H{next:.1}"));
    }
    d
}

/// The area between a curve and the bottom.
pub(crate) fn area(points: &[(f64, f64)], bottom: f64) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let mut d = format!("M{:.1} {bottom:.1}", first.0);
    for (x, y) in points {
        put(&mut d, format_args!("L{x:.1} {y:.1}"));
    }
    put(&mut d, format_args!("L{:.1} {bottom:.1}Z", last.0));
    d
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Appends to a `String`, which cannot fail.
pub(crate) fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a text takes what is written to it");
}

/// A count or a number of seconds as a float.
pub(crate) fn real(n: i64) -> f64 {
    f64::from(i32::try_from(n).unwrap_or(i32::MAX))
}

pub(crate) fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Hour and minute of an instant.
pub(crate) fn clock(at: i64) -> String {
    let minute = at.rem_euclid(86_400) / 60;
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// Labelled multiples of `every` seconds within a span.
pub(crate) fn clock_ticks(from: i64, to: i64, every: i64) -> Vec<(f64, String)> {
    let first = from.div_euclid(every) + i64::from(from.rem_euclid(every) != 0);
    (first..=to.div_euclid(every))
        .map(|n| n * every)
        .map(|at| (real(at - from), clock(at)))
        .collect()
}

/// Percent labels from `from` to `to`, both whole percents.
pub(crate) fn percent_ticks(from: i64, to: i64, every: i64) -> Vec<(f64, String)> {
    let first = from.div_euclid(every) + i64::from(from.rem_euclid(every) != 0);
    (first..=to.div_euclid(every))
        .map(|n| n * every)
        .map(|percent| (real(percent) / 100.0, format!("{percent} %")))
        .collect()
}

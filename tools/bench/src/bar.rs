//! The bars: what must be reached, what is wanted, and what was measured.

use std::fmt;

/// A figure that has to be on the right side of two lines.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// Not a number where the figure is only shown beside others.
    pub(super) must: f64,
    pub(super) goal: f64,
    pub(super) measured: f64,
    /// What else is worth knowing of it.
    pub(super) note: String,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Times,
    Count,
    PerSecond,
    Bytes,
    Seconds,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    More,
    Less,
}

/// Where a figure lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Goal,
    Must,
    Missed,
    /// The machine was too disturbed for the figure to mean anything.
    NotShown,
    /// There is no line to be on the right side of.
    NoBar,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Goal => "goal",
            Self::Must => "must",
            Self::Missed => "**not met**",
            Self::NotShown => "**not shown**",
            Self::NoBar => "–",
        })
    }
}

impl Bar {
    pub(super) fn verdict(&self) -> Verdict {
        let reaches = |line: f64| match self.better {
            Better::More => self.measured >= line,
            Better::Less => self.measured <= line,
        };
        if self.measured.is_nan() {
            Verdict::NotShown
        } else if self.must.is_nan() {
            Verdict::NoBar
        } else if reaches(self.goal) {
            Verdict::Goal
        } else if reaches(self.must) {
            Verdict::Must
        } else {
            Verdict::Missed
        }
    }

    /// The measured figure as a share of the one that must be reached; above 1 is better, whichever way that is. `None`
    /// where nothing was shown, or there is no such figure.
    pub(super) fn ratio(&self) -> Option<f64> {
        let ratio = match self.better {
            Better::More => self.measured / self.must,
            Better::Less => self.must / self.measured.max(f64::MIN_POSITIVE),
        };
        (!self.measured.is_nan() && !ratio.is_nan()).then_some(ratio)
    }

    /// A line of the table, or no line, as it is shown.
    pub(super) fn show_line(&self, line: f64) -> String {
        if line.is_nan() {
            "–".to_owned()
        } else {
            format!("{} {}", self.sign(), self.show(line))
        }
    }

    pub(super) fn show(&self, figure: f64) -> String {
        if figure.is_nan() {
            return "–".to_owned();
        }
        match self.unit {
            Unit::Times => format!("{figure:.2} ×"),
            Unit::Count => shell::thousands(figure),
            Unit::PerSecond => format!("{} /s", shell::thousands(figure)),
            Unit::Bytes => format!("{} B", shell::thousands(figure)),
            Unit::Seconds => format!("{figure:.2} s"),
        }
    }

    fn sign(&self) -> &'static str {
        match self.better {
            Better::More => "≥",
            Better::Less => "≤",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(better: Better, measured: f64) -> Bar {
        let (must, goal) = match better {
            Better::More => (1.0, 1.3),
            Better::Less => (1.5, 1.0),
        };
        let (name, note) = ("a bar", String::new());
        Bar { name, unit: Unit::Times, better, must, goal, measured, note }
    }

    #[test]
    fn figures_lie_on_the_right_side_of_their_lines() {
        for (better, measured, verdict) in [
            (Better::More, 1.3, Verdict::Goal),
            (Better::More, 1.29, Verdict::Must),
            (Better::More, 0.99, Verdict::Missed),
            (Better::Less, 1.0, Verdict::Goal),
            (Better::Less, 1.5, Verdict::Must),
            (Better::Less, 1.51, Verdict::Missed),
            (Better::Less, f64::NAN, Verdict::NotShown),
        ] {
            assert_eq!(bar(better, measured).verdict(), verdict, "{measured}");
        }
        assert!(
            bar(Better::Less, 3.0).ratio() < Some(1.0)
                && bar(Better::More, 3.0).ratio() > Some(1.0)
        );
        assert_eq!(bar(Better::Less, f64::NAN).ratio(), None);
        let beside = Bar { must: f64::NAN, goal: f64::NAN, ..bar(Better::Less, 2.0) };
        assert_eq!((beside.verdict(), beside.ratio()), (Verdict::NoBar, None));
        assert_eq!(beside.show_line(beside.must), "–");
    }
}

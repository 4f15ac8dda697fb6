//! The bars: limits, goals and measured figures.

use std::fmt;

/// A figure with a limit and a goal.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// NaN if the figure is only shown for comparison.
    pub(super) must: f64,
    pub(super) goal: f64,
    pub(super) measured: f64,
    /// Further information for the table.
    pub(super) note: String,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Times,
    Count,
    PerSecond,
    Bytes,
    Seconds,
}

/// Direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    More,
    Less,
}

/// Comparison of a figure with its limit and its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Goal,
    Must,
    Missed,
    /// The machine was too busy for a meaningful figure.
    NotShown,
    /// The figure has no limit.
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

    /// The measured figure relative to its limit, so that above 1 is better in both directions. `None` if there is no
    /// figure or no limit.
    pub(super) fn ratio(&self) -> Option<f64> {
        let ratio = match self.better {
            Better::More => self.measured / self.must,
            Better::Less => self.must / self.measured.max(f64::MIN_POSITIVE),
        };
        (!self.measured.is_nan() && !ratio.is_nan()).then_some(ratio)
    }

    /// A limit or a goal as the table shows it, even if there is none.
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

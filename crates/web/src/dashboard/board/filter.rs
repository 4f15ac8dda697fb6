//! Filters of a board's events by name, competition and day. They are applied to a screen that all readers share.
use std::collections::{BTreeMap, BTreeSet};

use crate::dashboard::board::screen::Fixture;
use crate::dashboard::form::{self, Form};

/// Maximum length of the search text; the rest is ignored.
const FIND_CHARS_MAX: usize = 80;
/// Maximum length of a competition's name.
const COMPETITION_CHARS_MAX: usize = 200;

/// The reader's filters; empty fields are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) find: String,
    /// `find` in lower case.
    wanted: String,
    pub(crate) competition: String,
    /// A UTC date such as `2026-11-16`.
    pub(crate) day: String,
}

impl Filter {
    pub(crate) fn read(query: &Form) -> Self {
        let text = |name, max| query.get(name).trim().chars().take(max).collect::<String>();
        let find = text("q", FIND_CHARS_MAX);
        Self {
            wanted: find.to_lowercase(),
            find,
            competition: text("competition", COMPETITION_CHARS_MAX),
            day: text("day", "2026-11-16".len()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn fits(&self, own: &Fixture) -> bool {
        own.is_about(&self.wanted)
            && (self.competition.is_empty() || self.competition == own.competition)
            && own.starts.iso.starts_with(&self.day)
    }

    pub(crate) fn fields(&self) -> [(&'static str, &str); 3] {
        [("q", &self.find), ("competition", &self.competition), ("day", &self.day)]
    }

    /// The filters as an addition to a URL query.
    pub(crate) fn query(&self) -> String {
        form::query(&self.fields()).replacen('?', "&", 1)
    }
}

/// Competitions offered as filters.
pub(crate) fn competitions(fixtures: &[Fixture]) -> BTreeSet<&str> {
    fixtures.iter().map(|own| own.competition.as_str()).filter(|own| !own.is_empty()).collect()
}

/// Days offered as filters, each with its text.
pub(crate) fn days(fixtures: &[Fixture]) -> BTreeMap<&str, &str> {
    let parts = fixtures
        .iter()
        .filter_map(|own| Some((own.starts.iso.get(..10)?, own.starts.text.split(',').next()?)));
    parts.collect()
}

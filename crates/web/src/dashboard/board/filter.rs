//! Which events of a board a reader asks for: by name, by competition, by day. Applied to a screen that is everybody's.
use std::collections::{BTreeMap, BTreeSet};

use crate::dashboard::board::screen::Fixture;
use crate::dashboard::form::{self, Form};

/// Longest text to look for; further letters do not count.
const FIND_CHARS_MAX: usize = 80;
/// The same for the name of a competition.
const COMPETITION_CHARS_MAX: usize = 200;

/// What to look for; what is empty does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) find: String,
    /// The same in small letters.
    wanted: String,
    pub(crate) competition: String,
    /// A day in UTC, as `2026-11-16`.
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

    /// What is added to an address's query.
    pub(crate) fn query(&self) -> String {
        form::query(&self.fields()).replacen('?', "&", 1)
    }
}

/// Competitions to choose from.
pub(crate) fn competitions(fixtures: &[Fixture]) -> BTreeSet<&str> {
    fixtures.iter().map(|own| own.competition.as_str()).filter(|own| !own.is_empty()).collect()
}

/// Days to choose from, with the day as people write it.
pub(crate) fn days(fixtures: &[Fixture]) -> BTreeMap<&str, &str> {
    let parts = fixtures
        .iter()
        .filter_map(|own| Some((own.starts.iso.get(..10)?, own.starts.text.split(',').next()?)));
    parts.collect()
}

//! The catalogue: the known sports and bookmakers, and the rules of each. Data, not code (D26).
//!
//! An embedded TOML file lists what the service ships with; an operator's file adds to it or overrides it. The whole
//! is validated when it is read and then never changes. Ids are positions in it: they are cheap to hold and compare
//! but mean nothing outside the process, so persisted data uses keys.

use std::time::Duration;

use serde::Deserialize;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::keyed::keyed;
use crate::market::Market;
use crate::suggest;

mod bookmaker_set;
mod file;
mod key;
pub mod v4;
mod v4_file;

pub use bookmaker_set::BookmakerSet;

/// The sports and bookmakers that the service ships with.
pub const EMBEDDED: &str = include_str!("../catalogue.toml");

/// The clubs that it ships with.
const EMBEDDED_CLUBS: &str = include_str!("../clubs.toml");
/// The names used on `/v4`.
const EMBEDDED_V4: &str = include_str!("../v4.toml");

/// Separates the files of a source; no TOML contains this character.
const SOURCE_SEPARATOR: &str = "\u{1e}";

/// Number of bits in a set of bookmakers.
pub const BOOKMAKERS_MAX: usize = 256;
/// Maximum number of sports, far above any real catalogue.
pub const SPORTS_MAX: usize = 64;
/// Number of bits in a set of clubs.
pub const CLUBS_MAX: usize = 128;

/// Position of a sport in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SportId(u8);

/// Position of a bookmaker in the catalogue, in the order of keys, which is the order of answers (D15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookmakerId(u8);

impl SportId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl BookmakerId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A region where a bookmaker is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Region {
    Us,
    Uk,
    Eu,
    Au,
}

keyed!(Region, key {
    Us = "us",
    Uk = "uk",
    Eu = "eu",
    Au = "au",
});

/// The kind of fixture that the events of a sport have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Two participants.
    HeadToHead,
    /// A tournament with many participants.
    Field,
}

/// A sport with its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sport {
    pub key: Box<str>,
    pub title: Box<str>,
    pub group: Box<str>,
    pub shape: Shape,
    pub markets: Vec<Market>,
    /// The market that the prior interface's `totals` means in this sport.
    pub totals: Option<Market>,
    /// True if the moneyline may end in a draw.
    pub draw: bool,
    /// True for a fight sport: a score names the winner and odds can be grouped by bout (D7).
    pub bouts: bool,
    /// Two listings of the same participants are one event if their starts are at most this far apart.
    pub same_event_within: Duration,
    /// Beyond this they are two events; between the two limits, names alone do not decide.
    pub other_event_after: Duration,
    /// Other names of the sport, which are not accepted as keys.
    pub aliases: Vec<Box<str>>,
    /// The participants, if they are a fixed set of clubs.
    pub clubs: Vec<Club>,
    /// The rule for its keys on `/v4`.
    pub v4: v4::KeyRule,
}

/// A club and its names in the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Club {
    pub name: Box<str>,
    pub forms: Vec<Box<str>>,
}

/// A bookmaker and the regions where it is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmaker {
    pub key: Box<str>,
    pub title: Box<str>,
    pub regions: Vec<Region>,
}

/// All sports and bookmakers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    sports: Vec<Sport>,
    bookmakers: Vec<Bookmaker>,
    v4: v4::Names,
    source: Box<str>,
}

/// The faults of a catalogue file: all of them, not only the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct CatalogueError(pub Vec<String>);

impl Catalogue {
    /// The embedded catalogue, with the entries of an operator's file added or replaced.
    ///
    /// # Errors
    /// The file is not TOML of the expected form, or its entries contradict each other.
    pub fn load(operators_file: Option<&str>) -> Result<Self, CatalogueError> {
        let files = [EMBEDDED, EMBEDDED_CLUBS, EMBEDDED_V4].into_iter().chain(operators_file);
        let files: Vec<&str> = files.collect();
        Self::from_source(&files.join(SOURCE_SEPARATOR))
    }

    /// A catalogue from the text that [`Catalogue::source`] returned, possibly in an earlier program version.
    ///
    /// # Errors
    /// As for [`Catalogue::load`].
    pub fn from_source(source: &str) -> Result<Self, CatalogueError> {
        let catalogue = file::merge(source.split(SOURCE_SEPARATOR))?;
        Ok(Self { source: source.into(), ..catalogue })
    }

    /// This catalogue plus the entries that only `earlier` ones have (given oldest first); of several with the same
    /// key, the newest is used.
    ///
    /// It resolves present and former keys and has no names of `/v4`. Entries beyond the maximum are dropped.
    #[must_use]
    pub fn with_earlier<'a>(&self, earlier: impl DoubleEndedIterator<Item = &'a Self>) -> Self {
        let (mut sports, mut bookmakers) = (self.sports.clone(), self.bookmakers.clone());
        for catalogue in earlier.rev() {
            for sport in &catalogue.sports {
                if sports.len() < SPORTS_MAX && !sports.iter().any(|held| held.key == sport.key) {
                    sports.push(sport.clone());
                }
            }
            for bookmaker in &catalogue.bookmakers {
                let place = bookmakers.binary_search_by(|held| held.key.cmp(&bookmaker.key));
                if let Err(place) = place
                    && bookmakers.len() < BOOKMAKERS_MAX
                {
                    bookmakers.insert(place, bookmaker.clone());
                }
            }
        }
        Self { sports, bookmakers, v4: v4::Names::default(), source: Box::default() }
    }

    /// All files that the catalogue was made from, as one text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Identifies the catalogue: a hash of its source.
    pub fn version(&self) -> String {
        format!("{:032x}", xxh3_128(self.source.as_bytes()))
    }

    /// A hash of the catalogue and a seed, for values derived from both.
    pub fn hash_with(&self, seed: u64) -> u64 {
        xxh3_64_with_seed(self.source.as_bytes(), seed)
    }

    /// The names of sports and bookmakers on `/v4`.
    pub fn v4(&self) -> &v4::Names {
        &self.v4
    }

    /// Sports in the order of the file.
    pub fn sports(&self) -> impl Iterator<Item = (SportId, &Sport)> {
        self.sports
            .iter()
            .enumerate()
            .filter_map(|(i, sport)| Some((SportId(u8::try_from(i).ok()?), sport)))
    }

    /// Bookmakers in the order of their keys.
    pub fn bookmakers(&self) -> impl Iterator<Item = (BookmakerId, &Bookmaker)> {
        self.bookmakers
            .iter()
            .enumerate()
            .filter_map(|(i, bookmaker)| Some((BookmakerId(u8::try_from(i).ok()?), bookmaker)))
    }

    pub fn sport_id(&self, key: &str) -> Option<SportId> {
        self.sports().find(|(_, sport)| &*sport.key == key).map(|(id, _)| id)
    }

    /// The sport that a wrong key probably means: a similar key, an alias, or a key of The Odds API, which begins
    /// with the sport (`americanfootball_nfl`).
    pub fn sport_meant(&self, wrong: &str) -> Option<&Sport> {
        let near = suggest::nearest(wrong, self.sports.iter().map(|sport| &*sport.key));
        if let Some(id) = near.and_then(|key| self.sport_id(key)) {
            return Some(self.sport(id));
        }
        let wrong = suggest::fold(wrong);
        let named =
            |sport: &&Sport| sport.aliases.iter().any(|alias| suggest::fold(alias) == wrong);
        let begins = |sport: &&Sport| wrong.starts_with(&suggest::fold(&sport.key));
        self.sports.iter().find(named).or_else(|| self.sports.iter().find(begins))
    }

    /// Lists the sports, and suggests the one that a wrong key may mean. The key is not repeated: it may be a secret
    /// in the wrong place.
    pub fn sports_hint(&self, wrong: &str) -> String {
        let keys: Vec<&str> = self.sports.iter().map(|sport| &*sport.key).collect();
        let meant = self.sport_meant(wrong);
        let meant = meant.map(|sport| format!("; did you mean `{}`?", sport.key));
        format!("the sports are {}{}", keys.join(", "), meant.unwrap_or_default())
    }

    pub fn bookmaker_id(&self, key: &str) -> Option<BookmakerId> {
        let found = self.bookmakers.binary_search_by(|held| (*held.key).cmp(key)).ok()?;
        u8::try_from(found).ok().map(BookmakerId)
    }

    /// The sport with an id of this catalogue.
    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made by this catalogue, which never shrinks"
    )]
    pub fn sport(&self, id: SportId) -> &Sport {
        &self.sports[id.index()]
    }

    /// The bookmaker with an id of this catalogue.
    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made by this catalogue, which never shrinks"
    )]
    pub fn bookmaker(&self, id: BookmakerId) -> &Bookmaker {
        &self.bookmakers[id.index()]
    }

    pub fn has_group(&self, group: &str) -> bool {
        self.sports.iter().any(|sport| &*sport.group == group)
    }

    /// The bookmakers offered in any of the regions.
    pub fn bookmakers_in(&self, regions: &[Region]) -> BookmakerSet {
        let mut set = BookmakerSet::default();
        for (id, bookmaker) in self.bookmakers() {
            if bookmaker.regions.iter().any(|region| regions.contains(region)) {
                set.insert(id);
            }
        }
        set
    }
}

impl Sport {
    pub fn offers(&self, market: Market) -> bool {
        self.markets.contains(&market)
    }
}

#[cfg(test)]
mod tests;

//! The catalogue: which sports and bookmakers there are and the rules of each. Data, not code (D26).
//!
//! An embedded TOML file lists what the service ships with; an operator's file adds to it or overrides it.
//! It is checked whole when it is read and then never changes. Ids are positions in it: they are cheap to
//! hold and compare but mean nothing outside the process, so whatever is persisted uses keys.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::market::{Market, OutcomeRule};

/// What the service ships with.
pub const EMBEDDED: &str = include_str!("../catalogue.toml");

/// The clubs it knows.
const EMBEDDED_CLUBS: &str = include_str!("../clubs.toml");

/// Sets of bookmakers are bit sets of this many bits.
pub const BOOKMAKERS_MAX: usize = 256;
/// Far above what anybody carries.
pub const SPORTS_MAX: usize = 64;
/// Sets of clubs are bit sets of this many bits.
pub const CLUBS_MAX: usize = 128;

/// Position of a sport in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SportId(u8);

/// Position of a bookmaker in the catalogue; in the order of keys, as answers are (D15).
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

/// Where a bookmaker is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Region {
    Us,
    Uk,
    Eu,
    Au,
}

impl Region {
    pub const ALL: [Self; 4] = [Self::Us, Self::Uk, Self::Eu, Self::Au];

    pub const fn key(self) -> &'static str {
        match self {
            Self::Us => "us",
            Self::Uk => "uk",
            Self::Eu => "eu",
            Self::Au => "au",
        }
    }

    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|region| region.key() == key)
    }
}

/// What an event of a sport looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Two participants.
    HeadToHead,
    /// A tournament of many.
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
    /// What the prior interface's `totals` means here.
    pub totals: Option<Market>,
    /// Whether the moneyline may end in a draw.
    pub draw: bool,
    /// Whether this is a fight sport: a score names the winner and odds can be grouped by bout (D7).
    pub bouts: bool,
    /// Two listings of the same participants are one event when they start within this of each other.
    pub same_event_within: Duration,
    /// Beyond this they are two events; in between it takes more than the names to tell.
    pub other_event_after: Duration,
    /// Those who take part, where they are a fixed circle of clubs.
    pub clubs: Vec<Club>,
}

/// A club and what sources call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Club {
    pub name: Box<str>,
    pub forms: Vec<Box<str>>,
}

/// A bookmaker and where it is offered.
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
}

/// What is wrong with a catalogue file; every fault, not only the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct CatalogueError(pub Vec<String>);

impl Catalogue {
    /// The embedded catalogue, with an operator's file laid over it.
    ///
    /// # Errors
    /// The file is not TOML of the expected form, or its entries contradict themselves.
    pub fn load(operators_file: Option<&str>) -> Result<Self, CatalogueError> {
        let mut sports: Vec<Sport> = Vec::new();
        let mut bookmakers: BTreeMap<Box<str>, Bookmaker> = BTreeMap::new();
        let mut faults = Vec::new();
        for text in [EMBEDDED, EMBEDDED_CLUBS].into_iter().chain(operators_file) {
            let file: File = match toml::from_str(text) {
                Ok(file) => file,
                Err(error) => return Err(CatalogueError(vec![one_line(&error, text)])),
            };
            for entry in file.sport {
                match entry.checked() {
                    Ok(sport) => match sports.iter_mut().find(|held| held.key == sport.key) {
                        Some(held) => {
                            let clubs = std::mem::take(&mut held.clubs);
                            *held = Sport { clubs, ..sport };
                        }
                        None => sports.push(sport),
                    },
                    Err(fault) => faults.push(fault),
                }
            }
            for entry in file.club {
                if let Err(fault) = entry.add_to(&mut sports) {
                    faults.push(fault);
                }
            }
            for entry in file.bookmaker {
                match entry.checked() {
                    Ok(bookmaker) => drop(bookmakers.insert(bookmaker.key.clone(), bookmaker)),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        if sports.len() > SPORTS_MAX {
            faults.push(format!("{} sports; at most {SPORTS_MAX} fit", sports.len()));
        }
        if bookmakers.len() > BOOKMAKERS_MAX {
            faults.push(format!("{} bookmakers; at most {BOOKMAKERS_MAX} fit", bookmakers.len()));
        }
        if faults.is_empty() {
            Ok(Self { sports, bookmakers: bookmakers.into_values().collect() })
        } else {
            Err(CatalogueError(faults))
        }
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

    pub fn bookmaker_id(&self, key: &str) -> Option<BookmakerId> {
        let found = self.bookmakers.binary_search_by(|held| (*held.key).cmp(key)).ok()?;
        u8::try_from(found).ok().map(BookmakerId)
    }

    /// The sport behind an id of this catalogue.
    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made by this catalogue, which never shrinks"
    )]
    pub fn sport(&self, id: SportId) -> &Sport {
        &self.sports[id.index()]
    }

    /// The bookmaker behind an id of this catalogue.
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

/// A set of bookmakers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookmakerSet([u64; BOOKMAKERS_MAX / 64]);

impl BookmakerSet {
    pub const ALL: Self = Self([u64::MAX; BOOKMAKERS_MAX / 64]);

    pub fn just(id: BookmakerId) -> Self {
        let mut set = Self::default();
        set.insert(id);
        set
    }

    pub fn insert(&mut self, id: BookmakerId) {
        if let Some(word) = self.0.get_mut(id.index() / 64) {
            *word |= 1 << (id.index() % 64);
        }
    }

    pub fn contains(&self, id: BookmakerId) -> bool {
        self.0.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let mut both = self;
        for (word, theirs) in both.0.iter_mut().zip(other.0) {
            *word &= theirs;
        }
        both
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    sport: Vec<SportEntry>,
    #[serde(default)]
    bookmaker: Vec<BookmakerEntry>,
    #[serde(default)]
    club: Vec<ClubEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SportEntry {
    key: Box<str>,
    title: Box<str>,
    group: Box<str>,
    #[serde(default = "head_to_head")]
    shape: Shape,
    markets: Option<Vec<Box<str>>>,
    totals: Option<Box<str>>,
    #[serde(default)]
    draw: bool,
    #[serde(default)]
    bouts: bool,
    #[serde(default = "a_day_and_a_half")]
    same_event_within_hours: u16,
    other_event_after_hours: Option<u16>,
}

fn head_to_head() -> Shape {
    Shape::HeadToHead
}

fn a_day_and_a_half() -> u16 {
    36
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BookmakerEntry {
    key: Box<str>,
    title: Box<str>,
    regions: Vec<Region>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClubEntry {
    sport: Box<str>,
    name: Box<str>,
    #[serde(default)]
    forms: Vec<Box<str>>,
}

impl ClubEntry {
    fn add_to(self, sports: &mut [Sport]) -> Result<(), String> {
        let Self { sport, name, forms } = self;
        let Some(sport) = sports.iter_mut().find(|held| held.key == sport) else {
            return Err(format!("club {name}: there is no sport `{sport}`"));
        };
        if name.is_empty() || forms.iter().any(|form| form.is_empty()) {
            return Err(format!("club of {}: a name is empty", sport.key));
        }
        let full = sport.clubs.len() >= CLUBS_MAX;
        match sport.clubs.iter_mut().find(|held| held.name == name) {
            Some(held) => held.forms = forms,
            None if sport.shape == Shape::Field || full => {
                let least = "sports of two participants have clubs";
                return Err(format!("club {name}: only {least}, and at most {CLUBS_MAX}"));
            }
            None => sport.clubs.push(Club { name, forms }),
        }
        Ok(())
    }
}

impl SportEntry {
    fn checked(self) -> Result<Sport, String> {
        let key = self.key;
        check_key(&key).and_then(|()| check_key(&self.group)).map_err(|e| format!("sport: {e}"))?;
        let market = |name: &str| {
            Market::parse(name).ok_or_else(|| format!("sport {key}: unknown market `{name}`"))
        };
        let markets: Vec<Market> = match &self.markets {
            Some(names) => names.iter().map(|name| market(name)).collect::<Result<_, _>>()?,
            // What a sport of this shape usually has: the winner, handicap and points, or all of a field's.
            None => Market::ALL
                .into_iter()
                .filter(|market| fits(self.shape, *market) && *market != Market::TotalRounds)
                .collect(),
        };
        let only_totals = || {
            let mut totals = markets.iter().filter(|m| m.outcome_rule() == OutcomeRule::OverUnder);
            totals.next().filter(|_| totals.next().is_none()).copied()
        };
        let totals = match self.totals.as_deref() {
            Some(name) => Some(market(name)?),
            None => only_totals(),
        };
        if let Some(stranger) = markets.iter().find(|market| !fits(self.shape, **market)) {
            return Err(format!(
                "sport {key}: market `{}` does not go with its shape",
                stranger.key()
            ));
        }
        if totals.is_some_and(|totals| !markets.contains(&totals)) {
            return Err(format!("sport {key}: `totals` is not among its markets"));
        }
        if self.bouts && (self.shape == Shape::Field || !markets.contains(&Market::Moneyline)) {
            return Err(format!("sport {key}: bouts need two participants and a moneyline"));
        }
        if self.title.is_empty() || markets.is_empty() {
            return Err(format!("sport {key}: a title and at least one market are needed"));
        }
        let within = self.same_event_within_hours;
        let after = self.other_event_after_hours.unwrap_or(within);
        if after < within {
            return Err(format!(
                "sport {key}: other_event_after_hours is less than same_event_within_hours"
            ));
        }
        let hours = |hours: u16| Duration::from_secs(3600 * u64::from(hours));
        Ok(Sport {
            key,
            title: self.title,
            group: self.group,
            shape: self.shape,
            markets,
            totals,
            draw: self.draw,
            bouts: self.bouts,
            same_event_within: hours(within),
            other_event_after: hours(after),
            clubs: Vec::new(),
        })
    }
}

impl BookmakerEntry {
    fn checked(mut self) -> Result<Bookmaker, String> {
        check_key(&self.key).map_err(|e| format!("bookmaker: {e}"))?;
        self.regions.sort_unstable();
        self.regions.dedup();
        if self.regions.is_empty() || self.title.is_empty() {
            return Err(format!(
                "bookmaker {}: a title and at least one region are needed",
                self.key
            ));
        }
        Ok(Bookmaker { key: self.key, title: self.title, regions: self.regions })
    }
}

/// What is wrong and where, without the picture a TOML error draws.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
    format!("line {line}: {}", error.message())
}

fn fits(shape: Shape, market: Market) -> bool {
    match market.outcome_rule() {
        OutcomeRule::Sides | OutcomeRule::OverUnder => shape == Shape::HeadToHead,
        OutcomeRule::Entrants | OutcomeRule::Pairing => shape == Shape::Field,
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if (1..=40).contains(&key.len()) && key.bytes().all(plain) {
        Ok(())
    } else {
        Err(format!("key `{key}` must be 1 to 40 characters of a-z, 0-9 and _"))
    }
}

#[cfg(test)]
mod tests;

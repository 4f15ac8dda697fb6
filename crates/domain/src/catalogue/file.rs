//! The form of a catalogue file, and the validation of its entries.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::key::check_key;
use super::{
    BOOKMAKERS_MAX, Bookmaker, CLUBS_MAX, Catalogue, CatalogueError, Club, Region, SPORTS_MAX,
    Shape, Sport,
};
use crate::catalogue::v4;
use crate::catalogue::v4_file::{V4BookmakerEntry, V4Names, V4SportEntry};
use crate::market::{Market, OutcomeRule};

/// Merges files: an entry of a later file replaces the one with the same key in an earlier file. Sports are in the
/// order of the files and bookmakers in the order of their keys.
pub(super) fn merge<'a>(files: impl Iterator<Item = &'a str>) -> Result<Catalogue, CatalogueError> {
    let mut sports: Vec<Sport> = Vec::new();
    let mut bookmakers = BTreeMap::new();
    let mut names = V4Names::default();
    let mut faults = Vec::new();
    for text in files {
        let file: File =
            toml::from_str(text).map_err(|error| CatalogueError(vec![one_line(&error, text)]))?;
        let added = file.sport.into_iter().map(|entry| entry.add_to(&mut sports));
        faults.extend(added.filter_map(Result::err));
        let added = file.club.into_iter().map(|entry| entry.add_to(&mut sports));
        faults.extend(added.filter_map(Result::err));
        names.begin_file(file.v4_also_known, file.v4_sport);
        for mut entry in file.bookmaker {
            names.note_bookmaker(&entry.key, entry.v4.take());
            match entry.checked() {
                Ok(bookmaker) => drop(bookmakers.insert(bookmaker.key.clone(), bookmaker)),
                Err(fault) => faults.push(fault),
            }
        }
    }
    for (count, max, what) in
        [(sports.len(), SPORTS_MAX, "sports"), (bookmakers.len(), BOOKMAKERS_MAX, "bookmakers")]
    {
        if count > max {
            faults.push(format!("{count} {what}; at most {max} fit"));
        }
    }
    let bookmakers = bookmakers.into_values().collect();
    let mut catalogue =
        Catalogue { sports, bookmakers, v4: v4::Names::default(), source: Box::default() };
    match names.checked(&catalogue) {
        Ok(names) => catalogue.v4 = names,
        Err(more) => faults.extend(more),
    }
    if faults.is_empty() { Ok(catalogue) } else { Err(CatalogueError(faults)) }
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
    #[serde(default)]
    v4_sport: Vec<V4SportEntry>,
    #[serde(default)]
    v4_also_known: Vec<Box<str>>,
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
    #[serde(default)]
    aliases: Vec<Box<str>>,
    #[serde(default = "a_day_and_a_half")]
    same_event_within_hours: u16,
    other_event_after_hours: Option<u16>,
    #[serde(default)]
    v4: v4::KeyRule,
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
    v4: Option<Vec<V4BookmakerEntry>>,
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
    /// Adds the sport, or replaces the one with the same key and keeps that one's clubs.
    fn add_to(self, sports: &mut Vec<Sport>) -> Result<(), String> {
        let sport = self.checked()?;
        match sports.iter_mut().find(|held| held.key == sport.key) {
            Some(held) => {
                let clubs = std::mem::take(&mut held.clubs);
                *held = Sport { clubs, ..sport };
            }
            None => sports.push(sport),
        }
        Ok(())
    }

    fn checked(self) -> Result<Sport, String> {
        let key = self.key;
        check_key(&key).and_then(|()| check_key(&self.group)).map_err(|e| format!("sport: {e}"))?;
        let market = |name: &str| {
            Market::parse(name).ok_or_else(|| format!("sport {key}: unknown market `{name}`"))
        };
        let markets: Vec<Market> = match &self.markets {
            Some(names) => names.iter().map(|name| market(name)).collect::<Result<_, _>>()?,
            // The usual markets of a sport of this shape: winner, handicap and total, or all markets of a field.
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
            aliases: self.aliases,
            same_event_within: hours(within),
            other_event_after: hours(after),
            clubs: Vec::new(),
            v4: self.v4,
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

/// The fault and its line, without the multi-line excerpt of a TOML error.
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

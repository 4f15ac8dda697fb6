//! The names of `/v4` in catalogue files, and their validation.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::key::check_key;
use super::{Catalogue, SportId};
use crate::catalogue::v4::{self, EntryNames, KeyRule, SportEntry, Tour};

/// A bookmaker as `/v4` shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct V4BookmakerEntry {
    key: Box<str>,
    title: Box<str>,
    regions: Vec<v4::Region>,
}

/// An entry of the table of sports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct V4SportEntry {
    sport: Box<str>,
    key: Box<str>,
    title: Box<str>,
    description: Option<Box<str>>,
    names: Option<Vec<Box<str>>>,
    #[serde(default)]
    sandbox_names: Vec<Box<str>>,
    #[serde(default)]
    tours: Vec<Tour>,
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    clubs: bool,
}

/// The content of the files before validation.
#[derive(Debug, Default)]
pub(super) struct V4Names {
    /// Number of files read so far; decides which of two entries is the later one.
    files: usize,
    also_known: Vec<Box<str>>,
    sports: Vec<V4SportEntry>,
    /// The `/v4` entries of each catalogue bookmaker, if a file has them, and the number of the last file with the
    /// bookmaker.
    bookmakers: BTreeMap<Box<str>, (Option<Vec<V4BookmakerEntry>>, usize)>,
}

impl V4Names {
    pub(super) fn begin_file(&mut self, also_known: Vec<Box<str>>, sports: Vec<V4SportEntry>) {
        self.files += 1;
        self.also_known.extend(also_known);
        self.sports.extend(sports);
    }

    /// Records the `/v4` entries of a bookmaker; if they are left out, an earlier file's entries remain.
    pub(super) fn note_bookmaker(&mut self, key: &str, entries: Option<Vec<V4BookmakerEntry>>) {
        let held = self.bookmakers.entry(key.into()).or_default();
        if entries.is_some() || held.0.is_none() {
            *held = (entries, self.files);
        }
    }

    pub(super) fn checked(self, catalogue: &Catalogue) -> Result<v4::Names, Vec<String>> {
        let mut faults = Vec::new();
        let bookmakers = self.bookmakers(catalogue, &mut faults);
        let sports = self.sports(catalogue, &mut faults);
        let unfit = self.also_known.iter().filter_map(|key| check_key(key).err());
        faults.extend(unfit.map(|fault| format!("v4_also_known: {fault}")));
        if bookmakers.len() > v4::BOOKMAKERS_MAX {
            let (count, max) = (bookmakers.len(), v4::BOOKMAKERS_MAX);
            faults.push(format!("{count} bookmakers on /v4; at most {max} fit"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(v4::Names::new(bookmakers, self.also_known, sports))
    }

    fn bookmakers(&self, catalogue: &Catalogue, faults: &mut Vec<String>) -> Vec<v4::Bookmaker> {
        let mut by_key: BTreeMap<Box<str>, (v4::Bookmaker, usize)> = BTreeMap::new();
        for (id, bookmaker) in catalogue.bookmakers() {
            let own = || v4::Bookmaker {
                key: bookmaker.key.clone(),
                title: bookmaker.title.clone(),
                regions: bookmaker.regions.iter().map(|region| (*region).into()).collect(),
                bookmaker: id,
            };
            let (entries, file) = match self.bookmakers.get(&bookmaker.key) {
                Some((Some(entries), file)) => {
                    let entry = |entry: &V4BookmakerEntry| v4::Bookmaker {
                        key: entry.key.clone(),
                        title: entry.title.clone(),
                        regions: entry.regions.iter().copied().collect(),
                        bookmaker: id,
                    };
                    (entries.iter().map(entry).collect(), *file)
                }
                Some((None, file)) => (vec![own()], *file),
                None => (vec![own()], 0),
            };
            for entry in entries {
                if let Err(fault) = check_key(&entry.key) {
                    faults.push(format!("bookmaker {}, v4: {fault}", bookmaker.key));
                }
                if entry.title.is_empty() || entry.regions.count() == 0 {
                    let key = &bookmaker.key;
                    faults.push(format!("bookmaker {key}, v4: a title and a region are needed"));
                }
                // A bookmaker that an operator adds keeps its key; an earlier file's entry with that key is replaced.
                match by_key.get(&entry.key).map(|(_, earlier)| earlier.cmp(&file)) {
                    Some(std::cmp::Ordering::Equal) => {
                        faults.push(format!("two bookmakers are `{}` on /v4", entry.key));
                    }
                    Some(std::cmp::Ordering::Greater) => {}
                    Some(std::cmp::Ordering::Less) | None => {
                        by_key.insert(entry.key.clone(), (entry, file));
                    }
                }
            }
        }
        by_key.into_values().map(|(bookmaker, _)| bookmaker).collect()
    }

    fn sports(&self, catalogue: &Catalogue, faults: &mut Vec<String>) -> Vec<SportEntry> {
        let mut by_key: BTreeMap<Box<str>, SportEntry> = BTreeMap::new();
        for entry in &self.sports {
            match entry.checked(catalogue) {
                // The entry of the last file wins.
                Ok(entries) => {
                    by_key.extend(entries.into_iter().map(|entry| (entry.key.clone(), entry)));
                }
                Err(fault) => faults.push(format!("v4_sport {}: {fault}", entry.key)),
            }
        }
        by_key.into_values().collect()
    }
}

impl V4SportEntry {
    fn checked(&self, catalogue: &Catalogue) -> Result<Vec<SportEntry>, String> {
        check_key(&self.key)?;
        let id: SportId = catalogue
            .sport_id(&self.sport)
            .ok_or_else(|| format!("there is no sport `{}`", self.sport))?;
        let sport = catalogue.sport(id);
        if self.title.is_empty() {
            return Err("a title is needed".to_owned());
        }
        if self.tours.is_empty() == (sport.v4 == KeyRule::Tours) && !self.whole {
            let text =
                "`tours` goes with the entries of a sport whose `v4` is \"tours\", and no others";
            return Err(text.to_owned());
        }
        let names = EntryNames {
            key: self.key.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            names: self.names.clone().unwrap_or_else(|| vec![self.key.clone()]),
            sandbox_names: self.sandbox_names.clone(),
            whole: self.whole,
            clubs: self.clubs,
        };
        if self.tours.is_empty() {
            return Ok(vec![SportEntry::new((id, sport), None, &names)]);
        }
        let of_tour = |tour: &Tour| SportEntry::new((id, sport), Some(*tour), &names);
        Ok(self.tours.iter().map(of_tour).collect())
    }
}

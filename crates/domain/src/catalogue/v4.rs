//! Names of the prior interface, as `/v4` shows them: keys of sports, bookmakers and events (V8 to V11).
//!
//! They are data of the catalogue. Nothing here is persisted: a name is derived from the catalogue and from the
//! sources' name of a competition.

mod bookmaker;
mod slug;
mod sport;

pub use bookmaker::{BOOKMAKERS_MAX, Bookmaker, BookmakerId, BookmakerSet, Region, RegionSet};
pub use slug::slug;
pub(crate) use sport::EntryNames;
pub use sport::{KeyRule, SportEntry, SportName, Tour};

use crate::catalogue;
use crate::{Catalogue, SportId, World};

/// All names of a catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// In the order of their keys.
    pub(crate) bookmakers: Vec<Bookmaker>,
    /// Keys of bookmakers that the prior interface has or had and that are not carried.
    pub(crate) also_known: Vec<Box<str>>,
    /// In the order of their keys.
    pub(crate) sports: Vec<SportEntry>,
    /// The `/v4` bookmakers of each catalogue bookmaker, by its position.
    entries: Vec<Vec<BookmakerId>>,
}

impl Names {
    pub(crate) fn new(
        bookmakers: Vec<Bookmaker>,
        also_known: Vec<Box<str>>,
        sports: Vec<SportEntry>,
    ) -> Self {
        let mut entries: Vec<Vec<BookmakerId>> = Vec::new();
        for (id, bookmaker) in BookmakerId::all().zip(&bookmakers) {
            let ours = bookmaker.bookmaker.index();
            if entries.len() <= ours {
                entries.resize_with(ours + 1, Vec::new);
            }
            entries.get_mut(ours).into_iter().for_each(|entries| entries.push(id));
        }
        Self { bookmakers, also_known, sports, entries }
    }

    /// The `/v4` bookmakers of a catalogue bookmaker, in the order of keys.
    pub fn entries_of(&self, bookmaker: catalogue::BookmakerId) -> &[BookmakerId] {
        self.entries.get(bookmaker.index()).map_or(&[], Vec::as_slice)
    }

    /// Bookmakers in the order of their keys.
    pub fn bookmakers(&self) -> impl Iterator<Item = (BookmakerId, &Bookmaker)> {
        BookmakerId::all().zip(&self.bookmakers)
    }

    pub fn bookmaker(&self, id: BookmakerId) -> Option<&Bookmaker> {
        self.bookmakers.get(id.index())
    }

    /// The bookmakers that a request's key means: one of `/v4`, all `/v4` entries of a catalogue bookmaker, or an
    /// empty set for a key that is known but not carried. `None` if there is no such key.
    pub fn find_bookmakers(&self, catalogue: &Catalogue, key: &str) -> Option<BookmakerSet> {
        let mut found = BookmakerSet::default();
        if let Some((id, _)) = self.bookmakers().find(|(_, held)| &*held.key == key) {
            found.insert(id);
            return Some(found);
        }
        if let Some(ours) = catalogue.bookmaker_id(key) {
            self.entries_of(ours).iter().for_each(|id| found.insert(*id));
            return Some(found);
        }
        self.also_known.iter().any(|known| &**known == key).then_some(found)
    }

    /// Every key that a request may use for a bookmaker.
    pub fn bookmaker_keys<'a>(&'a self, catalogue: &'a Catalogue) -> impl Iterator<Item = &'a str> {
        let own = catalogue.bookmakers().map(|(_, bookmaker)| &*bookmaker.key);
        let also = self.also_known.iter().map(|key| &**key);
        self.bookmakers.iter().map(|bookmaker| &*bookmaker.key).chain(own).chain(also)
    }

    /// The bookmakers offered in any of the regions.
    pub fn bookmakers_in(&self, regions: RegionSet) -> BookmakerSet {
        let mut set = BookmakerSet::default();
        let offered = self.bookmakers().filter(|(_, held)| held.regions.meets(regions));
        offered.for_each(|(id, _)| set.insert(id));
        set
    }

    /// The entries of the table, in the order of their keys.
    pub fn sports(&self) -> impl Iterator<Item = &SportEntry> {
        self.sports.iter()
    }

    pub fn sport(&self, key: &str) -> Option<&SportEntry> {
        let at = self.sports.binary_search_by(|held| (*held.key).cmp(key)).ok()?;
        self.sports.get(at)
    }
}

/// The name on `/v4` of an event's sport.
pub fn sport_name<'a>(
    catalogue: &'a Catalogue,
    world: World,
    sport: SportId,
    (competition, title): (&'a str, Option<&'a str>),
) -> SportName<'a> {
    let (rules, names): (&catalogue::Sport, &Names) = (catalogue.sport(sport), catalogue.v4());
    let entries = names.sports.iter().filter(|entry| entry.sport == sport);
    SportName::of(rules, entries, world, (competition, title))
}

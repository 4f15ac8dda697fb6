//! Finds similar contests by the words of their participants, so that nothing is ever compared with everything.
//!
//! Two contests that are one share at least two words, so the index is by pairs of words: "Smith" alone leads to
//! hundreds, "Smith" with "Veldt" to one or two. A tournament is found by single words of its title and by its week.
//!
//! A source that floods the service with look-alikes must not hide other listings, nor make lookups expensive: under
//! each key only some entries of one source are kept, only a few of those are candidates, and the best ones of each
//! source come first. An entry that several sources list belongs to its eldest source, so that two flooding sources
//! together hide nothing either.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, RandomState};
use std::time::Duration;

use domain::{SportId, Timestamp};

use super::contest::{Contest, Key, week_of};
use super::hashed::Hashed;
use super::name::Name;
use super::name_signature::NameSignature;

/// Maximum number of candidates, which bounds the cost of one listing.
pub(crate) const CANDIDATES_MAX: usize = 48;
/// Maximum number of candidates of one owner.
pub(crate) const CANDIDATES_OF_OWNER_MAX: usize = 8;
/// Maximum number of entries of one owner under a key: the same two rarely meet more often before the event is
/// forgotten.
const ENTRIES_OF_OWNER_MAX: usize = 32;
/// Maximum number of entries under a key; a more frequent key is not selective enough to be used.
const POSTINGS_MAX: usize = 4096;
/// Maximum number of entries looked up for one contest, under its rarest keys first: more than one source can add
/// under all keys of a contest.
const HITS_MAX: usize = 4096;
/// Maximum number of words of a contest: pairs of doubles have eight. More is a mistake or an attack.
const WORDS_MAX: usize = 12;

/// Entries by the words of their names.
#[derive(Debug)]
pub(crate) struct Index<Id> {
    /// Positions of entries, by key.
    postings: HashMap<u64, Vec<u32>, BuildHasherDefault<Hashed>>,
    entries: Vec<Option<Entry<Id>>>,
    places: HashMap<Id, u32, BuildHasherDefault<Hashed>>,
    /// Positions that can be reused.
    vacant: Vec<u32>,
    hasher: RandomState,
}

/// The sources that list an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// Only this source.
    One(u32),
    /// Several sources, of which this one is the eldest.
    Several(u32),
    /// No source any more; this one was the last.
    Nobody(Option<u32>),
    /// Entries of a batch, where no source can flood the index.
    Anybody,
}

#[derive(Debug)]
struct Entry<Id> {
    id: Id,
    check: QuickCheck,
    owner: Owner,
    /// Its keys, in order.
    keys: Box<[u64]>,
}

/// The data for a quick check of two entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuickCheck {
    pub(crate) at: Timestamp,
    pub(crate) signature: NameSignature,
}

impl<Id> Default for Index<Id> {
    fn default() -> Self {
        Self {
            postings: HashMap::default(),
            entries: Vec::new(),
            places: HashMap::default(),
            vacant: Vec::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<Id: Copy + Eq + Hash + Ord> Index<Id> {
    /// The index keys of a contest.
    pub(crate) fn keys(&self, sport: SportId, contest: &Contest, at: Timestamp) -> Vec<u64> {
        let mut words: Vec<u64> = Vec::with_capacity(8);
        if contest.title().is_some() {
            self.note(&mut words, sport, Key::Week(week_of(at)));
        }
        contest.keys(&mut |key| self.note(&mut words, sport, key));
        if contest.keys_in_common() < 2 { words } else { pairs(words) }
    }

    /// The index keys of contests with a participant of this name, if the name has two words.
    pub(crate) fn keys_of_name(&self, sport: SportId, name: &Name) -> Vec<u64> {
        let mut words: Vec<u64> = Vec::new();
        name.keys().for_each(|word| self.note(&mut words, sport, Key::Word(word)));
        pairs(words)
    }

    fn note(&self, words: &mut Vec<u64>, sport: SportId, key: Key<'_>) {
        let mut hash = self.hasher.hash_one((sport.index(), key));
        // Two brothers against each other: their surname occurs twice.
        while words.contains(&hash) {
            hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1;
        }
        if words.len() < WORDS_MAX {
            words.push(hash);
        }
    }

    /// Sets the keys of `id`, replacing former ones.
    pub(crate) fn set(&mut self, id: Id, check: QuickCheck, owner: Owner, mut keys: Vec<u64>) {
        keys.sort_unstable();
        keys.dedup();
        if let Some(held) = self.entry_mut(id)
            && *held.keys == *keys
        {
            (held.check, held.owner) = (check, owner);
            return;
        }
        self.remove(id);
        self.add(id, check, owner, keys);
    }

    /// Adds further keys for `id`.
    pub(crate) fn add(&mut self, id: Id, check: QuickCheck, owner: Owner, mut keys: Vec<u64>) {
        let before = self.entry_mut(id).map(|held| std::mem::take(&mut held.keys));
        let before = before.unwrap_or_default();
        let place = self.place_of(id);
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| before.binary_search(key).is_err() && self.post(*key, place, owner));
        keys.extend(&before);
        keys.sort_unstable();
        let entry = Entry { id, check, owner, keys: keys.into() };
        if let Some(held) = self.entries.get_mut(at(place)) {
            *held = Some(entry);
        }
    }

    fn entry(&self, place: u32) -> Option<&Entry<Id>> {
        self.entries.get(at(place))?.as_ref()
    }

    fn entry_mut(&mut self, id: Id) -> Option<&mut Entry<Id>> {
        self.entries.get_mut(at(*self.places.get(&id)?))?.as_mut()
    }

    /// The position of an entry, assigned if it is new.
    fn place_of(&mut self, id: Id) -> u32 {
        *self.places.entry(id).or_insert_with(|| {
            self.vacant.pop().unwrap_or_else(|| {
                self.entries.push(None);
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            })
        })
    }

    /// Adds an entry under a key, unless its owner has too many there.
    fn post(&mut self, key: u64, place: u32, owner: Owner) -> bool {
        let entries = &self.entries;
        let is_owners = |place: &&u32| {
            let entry = entries.get(at(**place)).and_then(Option::as_ref);
            entry.is_some_and(|entry| entry.owner == owner)
        };
        let held = self.postings.entry(key).or_default();
        let full = owner != Owner::Anybody
            && held.len() >= ENTRIES_OF_OWNER_MAX
            && held.iter().filter(is_owners).count() >= ENTRIES_OF_OWNER_MAX;
        if !full {
            held.push(place);
        }
        !full
    }

    pub(crate) fn remove(&mut self, id: Id) {
        let Some(place) = self.places.remove(&id) else { return };
        let entry = self.entries.get_mut(at(place)).and_then(Option::take);
        for key in entry.map(|entry| entry.keys).unwrap_or_default() {
            if let Some(held) = self.postings.get_mut(&key) {
                held.retain(|other| *other != place);
                if held.is_empty() {
                    self.postings.remove(&key);
                }
            }
        }
        self.vacant.push(place);
    }

    /// Entries that share a key with an entry of the index, including itself.
    pub(crate) fn near(&self, id: Id, check: QuickCheck, within: Duration) -> Vec<Id> {
        let entry = self.places.get(&id).and_then(|place| self.entry(*place));
        entry.map(|entry| self.find(&entry.keys, check, within)).unwrap_or_default()
    }

    /// Entries that share a key and pass the quick check: the most similar first, then the nearest, and the best of
    /// each owner before the second best of any.
    pub(crate) fn find(&self, keys: &[u64], check: QuickCheck, within: Duration) -> Vec<Id> {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let apart = |entry: &Entry<Id>| entry.check.at.as_millis().abs_diff(check.at.as_millis());
        let may_be = |place: &u32| {
            self.entry(*place).is_some_and(|entry| {
                apart(entry) <= within && check.signature.may_be(&entry.check.signature)
            })
        };
        let mut hits: Vec<u32> = Vec::new();
        for held in self.postings_of(keys) {
            hits.extend(held.iter().copied().filter(may_be));
        }
        hits.sort_unstable();
        let mut found: Vec<(Reverse<usize>, u64, Id, Owner)> = hits
            .chunk_by(|one, other| one == other)
            .filter_map(|same| {
                let entry = self.entry(*same.first()?)?;
                Some((Reverse(same.len()), apart(entry), entry.id, entry.owner))
            })
            .collect();
        found.sort_unstable_by_key(|(hits, apart, id, _)| (*hits, *apart, *id));
        if found.len() > 1 {
            found = by_turns(found, |(.., owner)| *owner);
        }
        found.truncate(CANDIDATES_MAX);
        found.into_iter().map(|(_, _, id, _)| id).collect()
    }

    /// The entries under the keys, as many as may be looked up.
    fn postings_of(&self, keys: &[u64]) -> Vec<&[u32]> {
        let held = keys.iter().filter_map(|key| self.postings.get(key)).map(Vec::as_slice);
        let mut held: Vec<&[u32]> = held.filter(|held| held.len() <= POSTINGS_MAX).collect();
        if held.iter().map(|held| held.len()).sum::<usize>() > HITS_MAX {
            held.sort_by_key(|held| held.len());
            let mut room = HITS_MAX;
            held.retain(|held| {
                let fits = held.len() <= room;
                room = room.saturating_sub(held.len());
                fits
            });
        }
        held
    }
}

/// The first of each owner, then the second of each, and so on, with a maximum for each owner.
fn by_turns<T>(found: Vec<T>, owner: impl Fn(&T) -> Owner) -> Vec<T> {
    let mut of_owner: Vec<(Owner, usize)> = Vec::new();
    let mut turns: Vec<(usize, T)> = Vec::with_capacity(found.len());
    for one in found {
        let owner = owner(&one);
        let held = of_owner.iter_mut().find(|(held, _)| *held == owner);
        let turn = match held {
            _ if owner == Owner::Anybody => 0,
            Some((_, turn)) => {
                *turn += 1;
                *turn
            }
            None => {
                of_owner.push((owner, 0));
                0
            }
        };
        if turn < CANDIDATES_OF_OWNER_MAX {
            turns.push((turn, one));
        }
    }
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, one)| one).collect()
}

fn at(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// Number of words of a contest, and of its index keys.
pub(crate) fn keys_count(contest: &Contest) -> (usize, usize) {
    let mut words = 0;
    contest.keys(&mut |_| words += 1);
    // The week of a tournament is a further key.
    words += usize::from(contest.title().is_some());
    let keyed = words.min(WORDS_MAX);
    let keys =
        if contest.keys_in_common() < 2 { keyed } else { keyed * keyed.saturating_sub(1) / 2 };
    (words, keys)
}

fn pairs(mut words: Vec<u64>) -> Vec<u64> {
    words.sort_unstable();
    let mut pairs = Vec::with_capacity(words.len() * words.len().saturating_sub(1) / 2);
    for (at, one) in words.iter().enumerate() {
        let later = words.get(at + 1..).unwrap_or_default();
        pairs.extend(later.iter().map(|other| one.rotate_left(23).wrapping_add(*other)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::Catalogue;
    use domain::message::Fixture;

    use super::super::contest::Lexicon;
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn check(secs: i64) -> QuickCheck {
        QuickCheck { at: Timestamp::from_secs(secs), signature: NameSignature::BLANK }
    }

    struct TestIndex {
        sport: SportId,
        lexicon: Lexicon,
        index: Index<u32>,
    }

    impl TestIndex {
        fn new() -> Self {
            let catalogue = Arc::new(Catalogue::load(None).unwrap());
            let sport = catalogue.sport_id("mma").unwrap();
            Self { sport, lexicon: Lexicon::new(&catalogue), index: Index::default() }
        }

        fn keys(&self, home: &str, away: &str) -> Vec<u64> {
            let fixture = Fixture::HeadToHead { home: home.into(), away: away.into() };
            let contest = Contest::parse(&self.lexicon, self.sport, &fixture);
            self.index.keys(self.sport, &contest, Timestamp::from_secs(0))
        }

        fn put(&mut self, id: u32, owner: Owner, secs: i64, (home, away): (&str, &str)) {
            let keys = self.keys(home, away);
            self.index.set(id, check(secs), owner, keys);
        }

        fn find(&self, home: &str, away: &str) -> Vec<u32> {
            self.index.find(&self.keys(home, away), check(0), DAY)
        }
    }

    #[test]
    fn two_words_in_common_lead_there_and_one_does_not() {
        let mut test = TestIndex::new();
        test.put(1, Owner::One(0), 0, ("Tomas Veldt", "Oren Castellane"));
        assert_eq!(test.find("Castellane", "Veldt"), [1]);
        assert_eq!(test.find("Tomas Veldt", "Somebody Else"), [1]);
        assert_eq!(test.find("Tomas Berg", "Somebody Else"), [0_u32; 0]);
        test.index.remove(1);
        assert_eq!(test.find("Castellane", "Veldt"), [0_u32; 0]);
        assert!(test.index.postings.is_empty());
    }

    #[test]
    fn the_most_alike_come_first_then_the_nearest_and_none_beyond_the_window() {
        let mut test = TestIndex::new();
        let names = ("Tomas Veldt", "Oren Castellane");
        test.put(1, Owner::One(0), 0, ("T. Veldt", "O. Castellane"));
        test.put(2, Owner::One(1), 3600, names);
        test.put(3, Owner::One(2), 60, names);
        test.put(4, Owner::One(3), 86_401, names);
        assert_eq!(test.find(names.0, names.1), [3, 2, 1]);
    }

    #[test]
    fn brothers_against_each_other_are_found_by_their_one_name() {
        let mut test = TestIndex::new();
        test.put(1, Owner::One(0), 0, ("Anton Veldt", "Tomas Veldt"));
        assert_eq!(test.find("A. Veldt", "T. Veldt"), [1]);
    }

    #[test]
    fn who_floods_the_index_hides_nobody_and_costs_no_more_than_a_few_looks() {
        let mut test = TestIndex::new();
        let names = ("Tomas Veldt", "Oren Castellane");
        for id in 0..10_000 {
            test.put(id, Owner::One(7), 0, names);
        }
        test.put(10_000, Owner::One(1), 7200, ("Veldt", "Castellane"));
        test.put(10_001, Owner::Several(1), 7200, ("T. Veldt", "O. Castellane"));
        let found = test.find(names.0, names.1);
        assert!(found.contains(&10_000) && found.contains(&10_001));
        assert_eq!(found.len(), CANDIDATES_OF_OWNER_MAX + 2);
        let kept = test.index.postings.values().map(Vec::len).max();
        assert_eq!(kept, Some(ENTRIES_OF_OWNER_MAX + 2));
        // Two sources that flood together, so that several list each of their entries.
        for id in 20_000..30_000 {
            test.put(id, Owner::Several(7), 0, names);
        }
        let found = test.find(names.0, names.1);
        assert!(found.contains(&10_000) && found.contains(&10_001));
        assert!(found.iter().take(4).any(|id| *id == 10_000), "each owner has its turn");
        for id in (0..10_000).chain(20_000..30_000) {
            test.index.remove(id);
        }
        assert_eq!(test.find(names.0, names.1).len(), 2);
    }
}

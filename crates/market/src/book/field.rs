//! The players of a field under the spelling that came first, and the resolution of later spellings.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};
use std::sync::Arc;

use domain::message::OUTCOMES_MAX;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::matching::{Hashed, Likeness, Name, fold};

/// Maximum number of players that a spelling is compared with: those that share most of its words.
const RESEMBLING_MAX: usize = 8;
/// Maximum number of players looked up by their words for one spelling, the rarest words first. In a real field no
/// word is shared by more than a dozen.
const HITS_MAX: usize = 128;

/// Maximum number of players of a field that are looked up in another: the favourites come first.
const IN_COMMON_MAX: usize = 64;

/// The players of a field.
#[derive(Debug, Default)]
pub(crate) struct Field {
    /// Shared with snapshots; copied if a player is added while one still holds it.
    names: Arc<Vec<Box<str>>>,
    parsed: Vec<Name>,
    /// Number of bytes of each rendered name.
    escaped_bytes: Vec<usize>,
    /// By a hash of the name as written: most names are repeated exactly, and need no folding.
    by_name: HashMap<u64, u16, BuildHasherDefault<Hashed>>,
    by_folded: HashMap<Box<str>, u16>,
    /// By a hash of their words in any order; `None` if two players have the same words.
    by_words: HashMap<u64, Option<u16>, BuildHasherDefault<Hashed>>,
    /// By the words of their names.
    by_word: HashMap<u64, Vec<u16>, BuildHasherDefault<Hashed>>,
    hash: Hash,
}

/// The seed of a hash whose collisions cannot be provoked from outside.
#[derive(Debug)]
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(RandomState::new().hash_one(()))
    }
}

impl Hash {
    fn of(&self, text: &str) -> u64 {
        xxh3_64_with_seed(text.as_bytes(), self.0)
    }
}

impl Field {
    /// The field of a checkpoint: each player keeps its number, whatever folding does with the names now.
    pub(crate) fn restore<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut field = Self::default();
        for (at, name) in (0..=u16::MAX).zip(names) {
            field.by_folded.entry(fold(name).into()).or_insert(at);
            field.note(name, at);
        }
        field
    }

    fn note(&mut self, name: &str, at: u16) {
        Arc::make_mut(&mut self.names).push(name.into());
        let parsed = Name::parse(name);
        for word in parsed.keys() {
            self.by_word.entry(self.hash.of(word)).or_default().push(at);
        }
        let words = self.hash.of(&parsed.folded());
        self.by_words.entry(words).and_modify(|held| *held = None).or_insert(Some(at));
        self.parsed.push(parsed);
        self.escaped_bytes.push(escaped_bytes(name));
        self.by_name.insert(self.hash.of(name), at);
    }

    /// The player with the same words in any order: "Kim, Si Woo" is "Si Woo Kim".
    pub(crate) fn find_words(&self, name: &Name) -> Option<u16> {
        let at = self.by_words.get(&self.hash.of(&name.folded())).copied().flatten()?;
        (self.parsed.get(usize::from(at))?.folded() == name.folded()).then_some(at)
    }

    /// Players whose names share words with this one, the most similar first.
    pub(crate) fn resembling(&self, name: &Name) -> Vec<(Likeness, u16)> {
        let held = name.keys().filter_map(|word| self.by_word.get(&self.hash.of(word)));
        let mut lists: Vec<&[u16]> = held.map(Vec::as_slice).collect();
        lists.sort_unstable_by_key(|list| list.len());
        let mut hits: Vec<u16> = lists.into_iter().flatten().copied().take(HITS_MAX).collect();
        hits.sort_unstable();
        let mut shared: Vec<(Reverse<usize>, u16)> = hits
            .chunk_by(|one, other| one == other)
            .filter_map(|same| Some((Reverse(same.len()), *same.first()?)))
            .collect();
        shared.sort_unstable();
        let mut alike: Vec<(Likeness, u16)> = shared
            .into_iter()
            .take(RESEMBLING_MAX)
            .filter_map(|(_, at)| Some((name.like(self.parsed.get(usize::from(at))?), at)))
            .collect();
        alike.sort_unstable_by_key(|(likeness, at)| (Reverse(*likeness), *at));
        alike
    }

    /// Number of players of the smaller of two fields that are also in the other, and the number that was looked up.
    pub(crate) fn in_common(&self, other: &Self) -> (usize, usize) {
        let (fewer, more) =
            if self.parsed.len() <= other.parsed.len() { (self, other) } else { (other, self) };
        let looked_at = fewer.parsed.len().min(IN_COMMON_MAX);
        let found = fewer.parsed.iter().take(IN_COMMON_MAX);
        (found.filter(|name| more.find_words(name).is_some()).count(), looked_at)
    }

    pub(crate) fn names(&self) -> &Arc<Vec<Box<str>>> {
        &self.names
    }

    pub(crate) fn name(&self, at: u16) -> &str {
        self.names.get(usize::from(at)).map_or("", |name| name)
    }

    pub(crate) fn escaped_bytes(&self, at: u16) -> usize {
        self.escaped_bytes.get(usize::from(at)).copied().unwrap_or(0)
    }

    /// The player with a name, ignoring differences that folding removes.
    ///
    /// # Errors
    /// There is none; the value is the folded name.
    pub(crate) fn find(&self, name: &str) -> Result<u16, String> {
        let as_written = self.by_name.get(&self.hash.of(name)).copied();
        if let Some(at) = as_written.filter(|at| self.name(*at) == name) {
            return Ok(at);
        }
        let folded = fold(name);
        self.by_folded.get(folded.as_str()).copied().ok_or(folded)
    }

    /// The player's number, which is assigned if the player is new; `None` if the field is full.
    pub(crate) fn intern(&mut self, name: &str) -> Option<u16> {
        let folded = match self.find(name) {
            Ok(at) => return Some(at),
            Err(folded) => folded,
        };
        if self.names.len() >= OUTCOMES_MAX {
            return None;
        }
        let at = u16::try_from(self.names.len()).ok()?;
        self.by_folded.insert(folded.into(), at);
        self.note(name, at);
        Some(at)
    }

    /// A hash of a folded name.
    pub(crate) fn hash_of(&self, folded: &str) -> u64 {
        self.hash.of(folded)
    }

    /// Number of players that can still be added.
    pub(crate) fn room(&self) -> usize {
        OUTCOMES_MAX.saturating_sub(self.names.len())
    }
}

/// Length of a rendered text, with quotes and backslashes escaped.
pub(super) fn escaped_bytes(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

//! Sets of bookmakers as bits.

use super::{BOOKMAKERS_MAX, BookmakerId};

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

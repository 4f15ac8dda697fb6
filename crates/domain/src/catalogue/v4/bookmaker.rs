//! Bookmakers as `/v4` shows them: a catalogue bookmaker may be several here, each with its regions (V11).

use serde::Deserialize;

use crate::catalogue;
use crate::keyed::keyed;

/// A region where a bookmaker is offered, in the prior interface's division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    Us,
    Us2,
    UsDfs,
    UsEx,
    Uk,
    Eu,
    Fr,
    Se,
    Au,
}

keyed!(Region, key {
    Us = "us",
    Us2 = "us2",
    UsDfs = "us_dfs",
    UsEx = "us_ex",
    Uk = "uk",
    Eu = "eu",
    Fr = "fr",
    Se = "se",
    Au = "au",
});

impl From<catalogue::Region> for Region {
    fn from(region: catalogue::Region) -> Self {
        match region {
            catalogue::Region::Us => Self::Us,
            catalogue::Region::Uk => Self::Uk,
            catalogue::Region::Eu => Self::Eu,
            catalogue::Region::Au => Self::Au,
        }
    }
}

/// A set of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegionSet(u16);

impl RegionSet {
    pub fn insert(&mut self, region: Region) {
        self.0 |= 1 << (region as u16);
    }

    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// True if the sets share a region.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<Region> for RegionSet {
    fn from_iter<T: IntoIterator<Item = Region>>(regions: T) -> Self {
        let mut set = Self::default();
        regions.into_iter().for_each(|region| set.insert(region));
        set
    }
}

/// A `/v4` bookmaker, which shows the prices of a catalogue bookmaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmaker {
    pub key: Box<str>,
    pub title: Box<str>,
    pub regions: RegionSet,
    pub bookmaker: catalogue::BookmakerId,
}

/// Number of bits in a set of `/v4` bookmakers.
pub const BOOKMAKERS_MAX: usize = 256;

/// Position among the bookmakers of `/v4`, which are in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookmakerId(u8);

impl BookmakerId {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of bookmakers of `/v4`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BookmakerSet([u64; BOOKMAKERS_MAX / 64]);

impl BookmakerSet {
    pub fn insert(&mut self, id: BookmakerId) {
        if let Some(word) = self.0.get_mut(id.index() / 64) {
            *word |= 1 << (id.index() % 64);
        }
    }

    pub fn contains(&self, id: BookmakerId) -> bool {
        self.0.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        for (word, theirs) in self.0.iter_mut().zip(other.0) {
            *word |= theirs;
        }
        self
    }
}

//! Titles of tournaments: their significant words, and the additional evidence of the week and the field.

use std::collections::BTreeSet;

use super::effort;
use super::likeness::Likeness;
use super::name;

/// A tournament's title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Title {
    telling: BTreeSet<String>,
    /// Words that many titles have: "Open", "Championship".
    common: BTreeSet<String>,
    division: Division,
}

/// The kinds of players, as bits; none if the words do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division(u8);

/// Looking up this number of title words costs as much as one typing-error check.
const WORDS_OF_A_UNIT: usize = 4;
/// Insignificant words of a title.
const TITLE_SILENT: [&str; 23] = [
    "the",
    "a",
    "of",
    "at",
    "in",
    "on",
    "by",
    "and",
    "presented",
    "pres",
    "powered",
    "golf",
    "tournament",
    "pga",
    "tour",
    "winner",
    "outright",
    "outrights",
    "betting",
    "odds",
    "to",
    "win",
    "mens",
];
/// Words that name the kind of players: the women's open is not the open.
const DIVISIONS: [(&str, u8); 10] = [
    ("women", 1),
    ("womens", 1),
    ("ladies", 1),
    ("lpga", 1),
    ("senior", 2),
    ("seniors", 2),
    ("amateur", 4),
    ("amateurs", 4),
    ("junior", 8),
    ("juniors", 8),
];
/// Minimum number of known players of two fields for any evidence, and for decisive evidence.
const PLAYERS_MIN: usize = 10;
const PLAYERS_SURE: usize = 20;
/// Words of a title that many tournaments have.
const TITLE_COMMON: [&str; 9] = [
    "open",
    "championship",
    "championships",
    "classic",
    "invitational",
    "cup",
    "challenge",
    "masters",
    "pro",
];

impl Title {
    pub(super) fn parse(raw: &str) -> Self {
        let folded = super::fold(&name::bare(raw));
        let is_year =
            |word: &str| word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
        let says = |word: &&str| {
            let silent = TITLE_SILENT.contains(word) || is_year(word) || is_ordinal(word);
            !silent && Division::of(word).0 == 0
        };
        let words = folded.split(' ').filter(says);
        let (common, mut telling): (BTreeSet<String>, BTreeSet<String>) =
            words.map(ToOwned::to_owned).partition(|word| TITLE_COMMON.contains(&word.as_str()));
        if telling.is_empty() {
            telling.clone_from(&common);
        }
        let division = Division::of(&folded);
        if telling.is_empty() {
            telling.insert(folded);
        }
        Self { telling, common, division }
    }

    /// The likeness of two titles, considering their competitions. In one week, a title of only common words equals
    /// one with more of them: "The Open", "The Open Championship".
    pub(super) fn like_listed(
        &self,
        other: &Self,
        (likeness, same_week): (Likeness, bool),
        (competition, their_competition): (&str, &str),
    ) -> Likeness {
        if self.division != other.division {
            let with = |title: &Self, competition: &str| {
                title.division.0 | Division::of(&super::fold(competition)).0
            };
            if with(self, competition) != with(other, their_competition) {
                return likeness.min(Likeness::Conflict);
            }
        }
        let subset =
            self.telling.is_subset(&other.telling) || other.telling.is_subset(&self.telling);
        let common = self.is_common() && other.is_common();
        if same_week && common && subset { likeness.max(Likeness::Within) } else { likeness }
    }

    /// The likeness of two tournaments of one week with known fields: `shared` of `of` players are in both. Nobody
    /// plays in two in a week.
    pub(crate) fn like_with_fields(
        &self,
        other: &Self,
        likeness: Likeness,
        (shared, of): (usize, usize),
    ) -> Likeness {
        let related = self.is_common() || other.is_common() || likeness > Likeness::Nothing;
        if likeness == Likeness::Conflict || likeness >= Likeness::Sound || of < PLAYERS_MIN {
            likeness
        } else if 3 * shared >= 2 * of && (related || of >= PLAYERS_SURE) {
            likeness.max(Likeness::Within)
        } else if of >= PLAYERS_SURE && 4 * shared < of {
            Likeness::Conflict
        } else {
            likeness
        }
    }

    /// The index keys of the title.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.telling.iter().map(String::as_str)
    }

    /// True if it has no word of its own.
    fn is_common(&self) -> bool {
        self.telling.is_subset(&self.common)
    }

    pub(super) fn like(&self, other: &Self) -> Likeness {
        effort::spend((self.telling.len() + other.telling.len()) / WORDS_OF_A_UNIT);
        let shared = self.telling.intersection(&other.telling).count();
        let (fewer, more) = {
            let (one, two) = (self.telling.len(), other.telling.len());
            (one.min(two), one.max(two))
        };
        let only_common = self.is_common() || other.is_common();
        if shared == more && self.common == other.common {
            Likeness::Same
        } else if shared == more {
            Likeness::Sound
        } else if shared == fewer && !only_common {
            Likeness::Within
        } else if 2 * shared > fewer {
            Likeness::Overlap
        } else if shared > 0 {
            Likeness::Shared
        } else {
            Likeness::Nothing
        }
    }
}

impl Division {
    fn of(folded: &str) -> Self {
        let bits = folded.split(' ').filter_map(|word| {
            DIVISIONS.iter().find(|(name, _)| *name == word).map(|(_, bit)| *bit)
        });
        Self(bits.fold(0, |all, bit| all | bit))
    }
}

/// "152nd".
fn is_ordinal(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ends = word.get(digits.len()..).is_some_and(|end| ["st", "nd", "rd", "th"].contains(&end));
    ends && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

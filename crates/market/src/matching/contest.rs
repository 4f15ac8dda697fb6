//! Who takes part in a listing, in a form that can be compared: two parties, or a tournament's title.

use std::collections::{BTreeSet, HashMap};

use domain::message::Fixture;
use domain::{Catalogue, SportId};

use super::name::{Likeness, Name};

/// What the catalogue knows of the clubs of a sport, by every form of their names.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    sports: Vec<Clubs>,
}

/// A club is a bit, so that a form that several share ("LA") is a set.
type ClubSet = u128;

#[derive(Debug, Default)]
struct Clubs {
    by_form: HashMap<String, ClubSet>,
    /// Participants are teams, not people.
    teams: bool,
}

/// One side of an event.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    /// Two for a pair of players.
    names: Vec<Name>,
    /// What the name is known to stand for.
    means: Option<Name>,
    clubs: ClubSet,
    is_team: bool,
}

/// All who take part.
#[derive(Clone, Debug)]
pub(crate) enum Contest {
    Sides(Box<[Party; 2]>),
    Field(Title),
}

/// How two contests compare, in the orientation that fits better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// For the first contest's home and away; a title has the same for both.
    pub(crate) sides: [Likeness; 2],
    pub(crate) swapped: bool,
}

/// Something that a contest is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key<'a> {
    Word(&'a str),
    Club(u32),
}

/// A tournament's title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Title {
    telling: BTreeSet<String>,
    /// "Open", "Championship": many have them.
    common: BTreeSet<String>,
}

/// Words that make another team of the same place: who has one and who has not are two.
const QUALIFIERS: [&str; 21] = [
    "state",
    "st",
    "saint",
    "tech",
    "north",
    "northern",
    "south",
    "southern",
    "east",
    "eastern",
    "west",
    "western",
    "central",
    "international",
    "am",
    "city",
    "united",
    "women",
    "b",
    "ii",
    "u21",
];

/// Words of a title that say nothing.
const TITLE_SILENT: [&str; 15] = [
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
];
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

impl Lexicon {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let clubs = |sport: &domain::Sport| {
            let mut clubs = Clubs { teams: !sport.clubs.is_empty(), ..Clubs::default() };
            for (at, club) in sport.clubs.iter().enumerate() {
                let nickname = club.name.rsplit(' ').next().unwrap_or_default();
                for form in club.forms.iter().chain([&club.name]) {
                    *clubs.by_form.entry(fold(form)).or_default() |= 1 << at;
                    // "KC Chiefs", "SF 49ers".
                    if form.len() <= 3 {
                        let form = fold(&format!("{form} {nickname}"));
                        *clubs.by_form.entry(form).or_default() |= 1 << at;
                    }
                }
            }
            clubs
        };
        Self { sports: catalogue.sports().map(|(_, sport)| clubs(sport)).collect() }
    }

    fn of(&self, sport: SportId) -> Option<&Clubs> {
        self.sports.get(sport.index())
    }
}

impl Clubs {
    fn find(&self, form: &str) -> Option<ClubSet> {
        self.by_form.get(form).copied()
    }
}

impl Party {
    /// `means` is what the name is known to stand for, where that was learnt.
    pub(crate) fn parse(lexicon: &Lexicon, sport: SportId, raw: &str, means: Option<&str>) -> Self {
        let clubs = lexicon.of(sport);
        let is_team = clubs.is_some_and(|clubs| clubs.teams);
        let names = if is_team { vec![Name::parse(raw)] } else { people(raw) };
        let set = match clubs.filter(|clubs| clubs.teams) {
            // "LAR (NFC)": what is said aside makes no other club.
            Some(clubs) => {
                clubs.find(&fold(raw)).or_else(|| clubs.find(&bare(&names))).unwrap_or(0)
            }
            None => 0,
        };
        Self { names, means: means.map(Name::parse), clubs: set, is_team }
    }

    pub(crate) fn like(&self, other: &Self) -> Likeness {
        if self.clubs != 0 && other.clubs != 0 {
            let both = self.clubs & other.clubs;
            return match both {
                0 => Likeness::Nothing,
                _ if self.clubs.count_ones() == 1 && other.clubs.count_ones() == 1 => {
                    Likeness::Same
                }
                // "LA" is one of two; the opponent and the time have to tell.
                _ => Likeness::Within,
            };
        }
        let ours = self.names.iter().chain(&self.means);
        let single = match (&*self.names, &*other.names) {
            ([_], [_]) => ours
                .flat_map(|name| {
                    other.names.iter().chain(&other.means).map(|theirs| name.like(theirs))
                })
                .max()
                .unwrap_or(Likeness::Nothing),
            ([one, two], [first, second]) => {
                let straight = one.like(first).min(two.like(second));
                straight.max(one.like(second).min(two.like(first)))
            }
            // A pair is nobody alone.
            _ => Likeness::Nothing,
        };
        if self.is_team && single > Likeness::Conflict && self.qualifiers() != other.qualifiers() {
            return Likeness::Conflict;
        }
        // A form that is not known beside one that is: the same words may be a college's.
        if (self.clubs == 0) == (other.clubs == 0) { single } else { single.min(Likeness::Near) }
    }

    fn qualifiers(&self) -> Vec<&str> {
        let mut found: Vec<&str> = self
            .names
            .iter()
            .flat_map(Name::words)
            .filter(|word| QUALIFIERS.contains(word))
            .collect();
        found.sort_unstable();
        found
    }

    /// What it is found by.
    fn keys(&self, each: &mut impl FnMut(Key<'_>)) {
        let mut rest = self.clubs;
        while rest != 0 {
            each(Key::Club(rest.trailing_zeros()));
            rest &= rest - 1;
        }
        for name in self.names.iter().chain(&self.means) {
            name.keys().for_each(|word| each(Key::Word(word)));
        }
    }

    /// The name as one text that is equal for equal names, for a person named in full.
    pub(crate) fn spelling(&self) -> Option<String> {
        match &*self.names {
            [name] if !self.is_team => Some(name.folded()),
            _ => None,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.names.iter().all(Name::is_full)
    }
}

impl Contest {
    /// `means` tells what a name of this source is known to stand for.
    pub(crate) fn parse<'a>(
        lexicon: &Lexicon,
        sport: SportId,
        fixture: &'a Fixture,
        means: impl Fn(&'a str) -> Option<&'a str>,
    ) -> Self {
        match fixture {
            Fixture::HeadToHead { home, away } => {
                let party = |raw: &'a str| Party::parse(lexicon, sport, raw, means(raw));
                let mut sides = [party(home), party(away)];
                // "Washington v Oregon State": a city alone is a club only against a club.
                if sides.iter().any(|side| side.clubs == 0) {
                    sides.iter_mut().for_each(|side| side.clubs = 0);
                }
                let [one, other] = &mut sides;
                // "LA v LAC": it cannot be both.
                if one.clubs.count_ones() == 1 && other.clubs.count_ones() > 1 {
                    other.clubs &= !one.clubs;
                } else if other.clubs.count_ones() == 1 && one.clubs.count_ones() > 1 {
                    one.clubs &= !other.clubs;
                }
                Self::Sides(Box::new(sides))
            }
            Fixture::Field { title } => Self::Field(Title::parse(title)),
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Agreement {
        match (self, other) {
            (Self::Sides(ours), Self::Sides(theirs)) => {
                let [home, away] = &**ours;
                let [their_home, their_away] = &**theirs;
                let straight = [home.like(their_home), away.like(their_away)];
                let turned = [home.like(their_away), away.like(their_home)];
                let rank =
                    |sides: [Likeness; 2]| (sides.into_iter().min(), sides.into_iter().max());
                let swapped = rank(turned) > rank(straight);
                Agreement { sides: if swapped { turned } else { straight }, swapped }
            }
            (Self::Field(ours), Self::Field(theirs)) => {
                Agreement { sides: [ours.like(theirs); 2], swapped: false }
            }
            _ => Agreement { sides: [Likeness::Nothing; 2], swapped: false },
        }
    }

    /// What it is found by.
    pub(crate) fn keys(&self, each: &mut impl FnMut(Key<'_>)) {
        match self {
            Self::Sides(sides) => sides.iter().for_each(|side| side.keys(each)),
            Self::Field(title) => title.telling.iter().for_each(|word| each(Key::Word(word))),
        }
    }

    /// How many keys two contests have in common at least if they are the same: one on each side, or two of one.
    pub(crate) fn keys_in_common(&self) -> usize {
        match self {
            Self::Sides(_) => 2,
            Self::Field(_) => 1,
        }
    }

    pub(crate) fn sides(&self) -> &[Party] {
        match self {
            Self::Sides(sides) => &**sides,
            Self::Field(_) => &[],
        }
    }
}

impl Title {
    fn parse(raw: &str) -> Self {
        let folded = super::fold(raw);
        let is_year =
            |word: &str| word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
        let words = folded.split(' ').filter(|word| !TITLE_SILENT.contains(word) && !is_year(word));
        let (common, mut telling): (BTreeSet<String>, BTreeSet<String>) =
            words.map(ToOwned::to_owned).partition(|word| TITLE_COMMON.contains(&word.as_str()));
        if telling.is_empty() {
            telling.clone_from(&common);
        }
        if telling.is_empty() {
            telling.insert(folded);
        }
        Self { telling, common }
    }

    fn like(&self, other: &Self) -> Likeness {
        let shared = self.telling.intersection(&other.telling).count();
        let (fewer, more) = {
            let (one, two) = (self.telling.len(), other.telling.len());
            (one.min(two), one.max(two))
        };
        let only_common =
            self.telling.is_subset(&self.common) || other.telling.is_subset(&other.common);
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

/// One player, or the two of a pair.
fn people(raw: &str) -> Vec<Name> {
    let is_pair =
        raw.bytes().any(|byte| b"/&+".contains(&byte)) || raw.split(' ').any(|word| word == "and");
    if !is_pair {
        return vec![Name::parse(raw)];
    }
    for between in ["/", " & ", " + ", " and "] {
        if let Some((one, other)) = raw.split_once(between) {
            return vec![Name::parse(one), Name::parse(other)];
        }
    }
    vec![Name::parse(raw)]
}

/// The words of a name without what is said aside.
fn bare(names: &[Name]) -> String {
    names.iter().flat_map(Name::words).collect::<Vec<_>>().join(" ")
}

fn fold(form: &str) -> String {
    super::fold(form)
}

#[cfg(test)]
mod tests;

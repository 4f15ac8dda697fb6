//! The participants of a listing in a comparable form: two parties, or a tournament's title.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::message::Fixture;
use domain::{Catalogue, SportId, Timestamp};

use super::likeness::Likeness;
use super::name::{self, Name};
use super::title::Title;

/// The clubs of each sport in the catalogue, by every form of their names.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    sports: Vec<Clubs>,
}

/// A set of clubs, one bit each, since several clubs can share a form ("LA").
type ClubSet = u128;

#[derive(Debug, Default)]
struct Clubs {
    by_form: HashMap<String, ClubSet>,
    /// True if participants are teams, not people.
    teams: bool,
}

/// One side of an event.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    name: Name,
    /// The name that this one is known to mean.
    means: Option<Box<Name>>,
    is: Is,
}

/// The kind of a side. Most are one person, so other data is boxed.
#[derive(Clone, Debug)]
enum Is {
    Person,
    /// With a second player.
    Pair(Box<Name>),
    /// One of these clubs; none if the club is unknown.
    Team(Box<ClubSet>),
}

/// All participants.
#[derive(Clone, Debug)]
pub(crate) enum Contest {
    Sides(Box<[Party; 2]>),
    Field(Box<Title>),
}

/// The result of comparing two contests, in the orientation that fits better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// Likeness of the first contest's home and away; a title has the same for both.
    pub(crate) sides: [Likeness; 2],
    pub(crate) swapped: bool,
}

/// An index key of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key<'a> {
    Word(&'a str),
    Club(u32),
    /// Tournaments of one week, whatever their titles.
    Week(i64),
}

/// The number of a week that begins on Monday.
pub(crate) fn week_of(at: Timestamp) -> i64 {
    // The first day of 1970 was a Thursday.
    (at.as_millis().div_euclid(86_400_000) + 3).div_euclid(7)
}

/// Words that distinguish teams of one place: a name with one and a name without it are two teams.
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

impl Lexicon {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let clubs = |sport: &domain::Sport| {
            let mut clubs = Clubs { teams: !sport.clubs.is_empty(), ..Clubs::default() };
            for (at, club) in sport.clubs.iter().enumerate() {
                let nickname = club.name.rsplit(' ').next().unwrap_or_default();
                for form in club.forms.iter().chain([&club.name]) {
                    *clubs.by_form.entry(super::fold(form)).or_default() |= 1 << at;
                    // "KC Chiefs", "SF 49ers".
                    if form.len() <= 3 {
                        let form = super::fold(&format!("{form} {nickname}"));
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
    pub(crate) fn parse(lexicon: &Lexicon, sport: SportId, raw: &str) -> Self {
        let Some(clubs) = lexicon.of(sport).filter(|clubs| clubs.teams) else {
            return Self::person_or_pair(raw);
        };
        let name = Name::parse(raw);
        // "LAR (NFC)": a remark does not make another club.
        let set = clubs.find(&super::fold(raw)).or_else(|| clubs.find(&bare(&name))).unwrap_or(0);
        Self { name, means: None, is: Is::Team(Box::new(set)) }
    }

    fn person_or_pair(raw: &str) -> Self {
        // "(no bets on round 5 and later)" does not make a pair.
        let bare = name::bare(raw);
        let raw = &*bare;
        let is_pair = raw.bytes().any(|byte| b"/&+".contains(&byte))
            || raw.split(' ').any(|word| word == "and");
        let between = if is_pair { &["/", " & ", " + ", " and "][..] } else { &[] };
        match between.iter().find_map(|between| raw.split_once(between)) {
            Some((one, other)) => {
                let partner = Box::new(Name::parse(other));
                Self { name: Name::parse(one), means: None, is: Is::Pair(partner) }
            }
            None => Self { name: Name::parse(raw), means: None, is: Is::Person },
        }
    }

    /// The possible clubs.
    fn clubs(&self) -> ClubSet {
        match &self.is {
            Is::Person | Is::Pair(_) => 0,
            Is::Team(clubs) => **clubs,
        }
    }

    fn set_clubs(&mut self, set: ClubSet) {
        match &mut self.is {
            Is::Person | Is::Pair(_) => {}
            Is::Team(clubs) => **clubs = set,
        }
    }

    pub(crate) fn like(&self, other: &Self) -> Likeness {
        let (clubs, their_clubs) = (self.clubs(), other.clubs());
        if clubs != 0 && their_clubs != 0 {
            return match clubs & their_clubs {
                0 => Likeness::Nothing,
                _ if clubs.count_ones() == 1 && their_clubs.count_ones() == 1 => Likeness::Same,
                // "LA" is one of two; the opponent and the time must decide.
                _ => Likeness::Within,
            };
        }
        let single = match (&self.is, &other.is) {
            (Is::Pair(partner), Is::Pair(their_partner)) => {
                let straight = self.name.like(&other.name).min(partner.like(their_partner));
                straight.max(self.name.like(their_partner).min(partner.like(&other.name)))
            }
            // A pair never matches a single person.
            (Is::Pair(_), _) | (_, Is::Pair(_)) => Likeness::Nothing,
            (Is::Person | Is::Team(_), Is::Person | Is::Team(_)) => self.like_alone(other),
        };
        let is_team = matches!(self.is, Is::Team(_));
        if is_team && single > Likeness::Conflict && self.qualifiers() != other.qualifiers() {
            return Likeness::Conflict;
        }
        // A known form against an unknown one: the same words may be a college's name.
        if (clubs == 0) == (their_clubs == 0) { single } else { single.min(Likeness::Near) }
    }

    /// The likeness by the name or its meaning, whichever is greater.
    fn like_alone(&self, other: &Self) -> Likeness {
        let theirs = || std::iter::once(&other.name).chain(other.means.as_deref());
        let ours = std::iter::once(&self.name).chain(self.means.as_deref());
        let alike = ours.flat_map(|name| theirs().map(|other| name.like(other)));
        alike.max().unwrap_or(Likeness::Nothing)
    }

    fn qualifiers(&self) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.name.words().filter(|word| QUALIFIERS.contains(word)).collect();
        found.sort_unstable();
        found
    }

    /// The index keys of the side.
    fn keys(&self, each: &mut impl FnMut(Key<'_>)) {
        let mut rest = self.clubs();
        while rest != 0 {
            each(Key::Club(rest.trailing_zeros()));
            rest &= rest - 1;
        }
        for name in self.names().chain(self.means.as_deref()) {
            name.keys().for_each(|word| each(Key::Word(word)));
        }
    }

    fn names(&self) -> impl Iterator<Item = &Name> {
        let partner = match &self.is {
            Is::Pair(partner) => Some(&**partner),
            Is::Person | Is::Team(_) => None,
        };
        std::iter::once(&self.name).chain(partner)
    }

    /// The name, if it is one person's and has no other meaning.
    pub(super) fn person(&self) -> Option<&Name> {
        match self.is {
            Is::Person if self.means.is_none() => Some(&self.name),
            Is::Person | Is::Pair(_) | Is::Team(_) => None,
        }
    }

    /// Words that the names of two people share, by how they sound. A father and a son share theirs, so names with a
    /// generation have none.
    pub(crate) fn words_in_common<'a>(&'a self, other: &Self) -> Vec<&'a str> {
        let (Some(name), Some(theirs)) = (self.person(), other.person()) else { return Vec::new() };
        if name.has_generation() || theirs.has_generation() {
            return Vec::new();
        }
        let common = name.keys().filter(|word| theirs.keys().any(|other| other == *word));
        common.filter(|word| word.len() > 1).collect()
    }

    /// True if a person's name has the word, by how it sounds.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        matches!(self.is, Is::Person) && self.name.keys().any(|held| held == word)
    }

    /// The name as one text that is equal for equal names, if it is a person's.
    pub(crate) fn spelling(&self) -> Option<String> {
        match self.is {
            Is::Person => Some(self.name.folded()),
            Is::Pair(_) | Is::Team(_) => None,
        }
    }

    /// True if its words are those of a folded name.
    pub(crate) fn is_spelled(&self, folded: &str) -> bool {
        match self.is {
            Is::Person | Is::Team(_) => self.name.folded() == folded,
            Is::Pair(_) => false,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.names().all(Name::is_full)
    }
}

impl Contest {
    pub(crate) fn parse(lexicon: &Lexicon, sport: SportId, fixture: &Fixture) -> Self {
        match fixture {
            Fixture::HeadToHead { home, away } => {
                let mut sides = [home, away].map(|raw| Party::parse(lexicon, sport, raw));
                let [one, other] = &mut sides;
                let (clubs, their_clubs) = (one.clubs(), other.clubs());
                if clubs == 0 || their_clubs == 0 {
                    // "Washington v Oregon State": a city alone is a club only against another club.
                    one.set_clubs(0);
                    other.set_clubs(0);
                } else if clubs.count_ones() == 1 && their_clubs.count_ones() > 1 {
                    // "LA v LAC": it cannot be both.
                    other.set_clubs(their_clubs & !clubs);
                } else if their_clubs.count_ones() == 1 && clubs.count_ones() > 1 {
                    one.set_clubs(clubs & !their_clubs);
                }
                Self::Sides(Box::new(sides))
            }
            Fixture::Field { title } => Self::Field(Box::new(Title::parse(title))),
        }
    }

    /// The contest with the known meanings of its names, if `means` has any. A pair has no other meaning: an alias is
    /// about one person.
    pub(crate) fn meaning<'a>(&self, means: impl Fn(&Name) -> Option<&'a str>) -> Cow<'_, Self> {
        let meant = |side: &Party| match side.is {
            Is::Person | Is::Team(_) => means(&side.name),
            Is::Pair(_) => None,
        };
        let Self::Sides(sides) = self else { return Cow::Borrowed(self) };
        let meanings = sides.each_ref().map(meant);
        if meanings.iter().all(Option::is_none) {
            return Cow::Borrowed(self);
        }
        let mut sides = sides.clone();
        for (side, meaning) in sides.iter_mut().zip(meanings) {
            side.means = meaning.map(|name| Box::new(Name::parse(name)));
        }
        Cow::Owned(Self::Sides(sides))
    }

    pub(crate) fn compare(&self, other: &Self) -> Agreement {
        match (self, other) {
            (Self::Sides(ours), Self::Sides(theirs)) => {
                let [home, away] = &**ours;
                let [their_home, their_away] = &**theirs;
                let straight = [home.like(their_home), away.like(their_away)];
                let turned = [home.like(their_away), away.like(their_home)];
                let swapped = rank(turned) > rank(straight);
                Agreement { sides: if swapped { turned } else { straight }, swapped }
            }
            (Self::Field(ours), Self::Field(theirs)) => {
                Agreement { sides: [ours.like(theirs); 2], swapped: false }
            }
            _ => Agreement { sides: [Likeness::Nothing; 2], swapped: false },
        }
    }

    /// As [`Contest::compare`], but `None` if a side has no counterpart: that shows for most contests with two common
    /// words that they are different.
    pub(crate) fn agree(&self, other: &Self) -> Option<Agreement> {
        let (Self::Sides(ours), Self::Sides(theirs)) = (self, other) else {
            return Some(self.compare(other)).filter(|found| found.weaker() > Likeness::Conflict);
        };
        let [home, away] = &**ours;
        let [their_home, their_away] = &**theirs;
        let fits = |one: &Party, other: &Party| {
            Some(one.like(other)).filter(|likeness| *likeness > Likeness::Conflict)
        };
        let both = |first: &Party, second: &Party| Some([fits(home, first)?, fits(away, second)?]);
        let straight = both(their_home, their_away);
        let turned = both(their_away, their_home);
        let swapped = turned.map(rank) > straight.map(rank);
        let sides = if swapped { turned } else { straight };
        sides.map(|sides| Agreement { sides, swapped })
    }

    /// The index keys of the contest.
    pub(crate) fn keys(&self, each: &mut impl FnMut(Key<'_>)) {
        match self {
            Self::Sides(sides) => sides.iter().for_each(|side| side.keys(each)),
            Self::Field(title) => title.keys().for_each(|word| each(Key::Word(word))),
        }
    }

    /// Minimum number of keys that two contests share if they are the same: one for each side, or two of one.
    pub(crate) fn keys_in_common(&self) -> usize {
        match self {
            Self::Sides(_) => 2,
            Self::Field(_) => 1,
        }
    }

    pub(crate) fn title(&self) -> Option<&Title> {
        match self {
            Self::Sides(_) => None,
            Self::Field(title) => Some(title),
        }
    }

    pub(crate) fn sides(&self) -> &[Party] {
        match self {
            Self::Sides(sides) => &**sides,
            Self::Field(_) => &[],
        }
    }
}

impl Agreement {
    pub(crate) fn weaker(&self) -> Likeness {
        rank(self.sides).0
    }
}

/// Sort key of an orientation: the one with the better weaker side is better.
fn rank([home, away]: [Likeness; 2]) -> (Likeness, Likeness) {
    (home.min(away), home.max(away))
}

/// The words of a name without remarks.
fn bare(name: &Name) -> String {
    name.words().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

//! The sport key and the name of the sport that an event has on `/v4` (V8).

use std::borrow::Cow;

use serde::Deserialize;

use super::slug::{fold, is_apostrophe, slug, words};
use crate::catalogue::Sport;
use crate::{SportId, World};

/// The rule for the sport keys of a sport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRule {
    /// One key for each competition.
    #[default]
    Competition,
    /// One key for each tournament of each tour, if the competition names a tour.
    Tours,
    /// One key for each tournament, from its title.
    Tournament,
}

/// A tour of a sport with separate tours for men and women.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tour {
    Atp,
    Wta,
}

impl Tour {
    const ATP_WORDS: [&'static str; 5] = ["atp", "men", "mens", "gentlemen", "gentlemens"];
    const WTA_WORDS: [&'static str; 4] = ["wta", "women", "womens", "ladies"];

    const fn key(self) -> &'static str {
        match self {
            Self::Atp => "atp",
            Self::Wta => "wta",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Atp => "ATP",
            Self::Wta => "WTA",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Atp => "Men's Singles",
            Self::Wta => "Women's Singles",
        }
    }

    fn of(competition: &str) -> Option<Self> {
        let folded = fold(competition);
        let has = |list: &[&str]| words(&folded).any(|word| list.contains(&word));
        if has(&Self::ATP_WORDS) {
            Some(Self::Atp)
        } else if has(&Self::WTA_WORDS) {
            Some(Self::Wta)
        } else {
            None
        }
    }

    /// True if a word of a competition only names the tour.
    fn is_word(word: &str) -> bool {
        Self::ATP_WORDS.contains(&word) || Self::WTA_WORDS.contains(&word) || word == "singles"
    }
}

/// An entry of the table: a sport that has a key even without events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SportEntry {
    /// The whole key.
    pub key: Box<str>,
    pub sport: SportId,
    pub title: Box<str>,
    pub description: Box<str>,
    pub(crate) tour: Option<Tour>,
    /// The names of its competitions or tournaments, as slugs.
    pub(crate) names: Vec<Box<str>>,
    /// Further names, in the sandbox only.
    pub(crate) sandbox_names: Vec<Box<str>>,
    /// True if all events of the sport have this key.
    pub whole: bool,
    /// True if the sport's clubs are its participants.
    pub clubs: bool,
}

/// The names of an entry in the catalogue's file.
#[derive(Debug)]
pub(crate) struct EntryNames {
    pub(crate) key: Box<str>,
    pub(crate) title: Box<str>,
    pub(crate) description: Option<Box<str>>,
    pub(crate) names: Vec<Box<str>>,
    pub(crate) sandbox_names: Vec<Box<str>>,
    pub(crate) whole: bool,
    pub(crate) clubs: bool,
}

impl SportEntry {
    pub(crate) fn new(
        (id, sport): (SportId, &Sport),
        tour: Option<Tour>,
        given: &EntryNames,
    ) -> Self {
        let slugs = |names: &[Box<str>]| names.iter().map(|name| slug(name).into()).collect();
        let description = match (&given.description, tour) {
            (Some(description), _) => description.clone(),
            (None, Some(tour)) => tour.description().into(),
            (None, None) => sport.title.clone(),
        };
        Self {
            key: key(sport, tour, &given.key).into(),
            sport: id,
            title: title(sport, tour, &given.title).into(),
            description,
            tour,
            names: slugs(&given.names),
            sandbox_names: slugs(&given.sandbox_names),
            whole: given.whole,
            clubs: given.clubs,
        }
    }

    fn matches(&self, world: World, tour: Option<Tour>, slug: &str) -> bool {
        let called = |names: &[Box<str>]| names.iter().any(|name| **name == *slug);
        let in_sandbox = world == World::Sandbox && called(&self.sandbox_names);
        self.whole || (self.tour == tour && (called(&self.names) || in_sandbox))
    }
}

/// The `/v4` names of an event's sport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SportName<'a> {
    pub key: Cow<'a, str>,
    pub title: Cow<'a, str>,
    pub description: Cow<'a, str>,
}

impl<'a> SportName<'a> {
    /// The name for an event of a sport, from the names of its competition and its tournament.
    pub(super) fn of(
        sport: &'a Sport,
        mut entries: impl Iterator<Item = &'a SportEntry>,
        world: World,
        (competition, tournament): (&'a str, Option<&'a str>),
    ) -> Self {
        let (tour, name, description) = match (sport.v4, tournament) {
            (KeyRule::Tours, _) => match Tour::of(competition) {
                Some(tour) => {
                    let rest = Cow::Owned(without_tour(competition));
                    (Some(tour), rest, Cow::Borrowed(tour.description()))
                }
                None => (None, Cow::Borrowed(competition), Cow::Borrowed(&*sport.title)),
            },
            (KeyRule::Tournament, Some(tournament)) => {
                (None, Cow::Borrowed(tournament), Cow::Borrowed(competition))
            }
            (KeyRule::Competition, _) | (KeyRule::Tournament, None) => {
                (None, Cow::Borrowed(competition), Cow::Borrowed(&*sport.title))
            }
        };
        let slug = slug(&name);
        if let Some(entry) = entries.find(|entry| entry.matches(world, tour, &slug)) {
            // A tournament's own competition says more than the table's description.
            let known = sport.v4 != KeyRule::Tournament || competition.is_empty();
            let description = if known { Cow::Borrowed(&*entry.description) } else { description };
            return Self {
                key: Cow::Borrowed(&entry.key),
                title: Cow::Borrowed(&entry.title),
                description,
            };
        }
        let title = match (tour, sport.v4) {
            (None, KeyRule::Competition | KeyRule::Tours) => name,
            _ => Cow::Owned(title(sport, tour, &name)),
        };
        Self { key: Cow::Owned(key(sport, tour, &slug)), title, description }
    }
}

/// The whole key.
fn key(sport: &Sport, tour: Option<Tour>, name: &str) -> String {
    let mut key = sport.key.replace('_', "");
    key.push('_');
    if let Some(tour) = tour {
        key.extend([tour.key(), "_"]);
    }
    key.push_str(name);
    if sport.v4 == KeyRule::Tournament {
        key.push_str("_winner");
    }
    key
}

fn title(sport: &Sport, tour: Option<Tour>, name: &str) -> String {
    match (tour, sport.v4) {
        (Some(tour), _) if name.is_empty() => tour.title().to_owned(),
        (Some(tour), _) => format!("{} {name}", tour.title()),
        (None, KeyRule::Tournament) => format!("{name} Winner"),
        (None, KeyRule::Competition | KeyRule::Tours) => name.to_owned(),
    }
}

/// The competition without the words that only name the tour.
fn without_tour(competition: &str) -> String {
    let mut rest = String::with_capacity(competition.len());
    // The text between the last word that was kept and the next.
    let (mut between, mut dropped) = (String::new(), false);
    for (word, after) in words_with_gaps(competition) {
        if words(&fold(word)).any(Tour::is_word) {
            dropped = true;
            continue;
        }
        match (rest.is_empty(), dropped) {
            (true, _) => {}
            (false, true) => {
                // Keep brackets that were closed before the dropped words.
                rest.extend(between.chars().take_while(|c| matches!(c, ')' | ']' | '.' | ',')));
                rest.push(' ');
            }
            (false, false) => rest.push_str(&between),
        }
        rest.push_str(word);
        (between, dropped) = (after.to_owned(), false);
    }
    let open = |c: char| c.is_whitespace() || matches!(c, '(' | '[' | '-' | '–' | '—' | ',' | ':');
    if dropped {
        rest.extend(between.chars().take_while(|c| matches!(c, ')' | ']')));
    } else {
        rest.push_str(between.trim_end_matches(open));
    }
    rest
}

/// Each word of a text as written, and the text after it.
fn words_with_gaps(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let in_word = |c: char| c.is_alphanumeric() || is_apostrophe(c);
    let mut rest = text.trim_start_matches(move |c| !in_word(c));
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let gap = after.find(in_word).unwrap_or(after.len());
        let (gap, next) = after.split_at(gap);
        rest = next;
        Some((word, gap))
    })
}

#[cfg(test)]
mod tests {
    use crate::{Catalogue, World, v4};

    /// Key, title and description of an event.
    fn named(world: World, sport: &str, competition: &str, title: Option<&str>) -> [String; 3] {
        let catalogue = Catalogue::load(None).unwrap();
        let sport = catalogue.sport_id(sport).unwrap();
        let name = v4::sport_name(&catalogue, world, sport, (competition, title));
        [name.key.into_owned(), name.title.into_owned(), name.description.into_owned()]
    }

    #[test]
    fn keys_titles_and_descriptions_are_those_of_the_prior_interface() {
        for (sport, competition, expected) in [
            ("mma", "UFC 300", ["mma_mixed_martial_arts", "MMA", "Mixed Martial Arts"]),
            ("boxing", "Title Night", ["boxing_boxing", "Boxing", "Boxing Bouts"]),
            ("american_football", "NFL 2026", ["americanfootball_nfl", "NFL", "US Football"]),
            (
                "american_football",
                "National Football League",
                ["americanfootball_nfl", "NFL", "US Football"],
            ),
            (
                "american_football",
                "College Football",
                ["americanfootball_ncaaf", "NCAAF", "US College Football"],
            ),
            ("american_football", "CFL", ["americanfootball_cfl", "CFL", "American Football"]),
            (
                "american_football",
                "Continental Gridiron Union",
                [
                    "americanfootball_continental_gridiron_union",
                    "Continental Gridiron Union",
                    "American Football",
                ],
            ),
            (
                "tennis",
                "Vellmar Open (men)",
                ["tennis_atp_vellmar_open", "ATP Vellmar Open", "Men's Singles"],
            ),
            (
                "tennis",
                "WTA Nørhavn Masters 2026",
                ["tennis_wta_norhavn_masters", "WTA Nørhavn Masters 2026", "Women's Singles"],
            ),
            (
                "tennis",
                "Lakeside Challenger",
                ["tennis_lakeside_challenger", "Lakeside Challenger", "Tennis"],
            ),
            (
                "tennis",
                "Wimbledon 2026 - Gentlemen's Singles",
                ["tennis_atp_wimbledon", "ATP Wimbledon", "Men's Singles"],
            ),
            (
                "tennis",
                "Roland Garros (women)",
                ["tennis_wta_french_open", "WTA French Open", "Women's Singles"],
            ),
            (
                "tennis",
                "Australian Open Women's Singles",
                ["tennis_wta_aus_open_singles", "WTA Australian Open", "Women's Singles"],
            ),
            (
                "tennis",
                "ATP Paris Masters",
                ["tennis_atp_paris_masters", "ATP Paris Masters", "Men's Singles"],
            ),
            ("tennis", "Wimbledon", ["tennis_wimbledon", "Wimbledon", "Tennis"]),
            ("tennis", "ATP Singles", ["tennis_atp_other", "ATP", "Men's Singles"]),
        ] {
            assert_eq!(named(World::Live, sport, competition, None), expected, "{competition}");
        }
    }

    #[test]
    fn a_tournament_is_a_sport_of_its_own() {
        for (competition, title, expected) in [
            (
                "World Tour",
                "Harborlight Open",
                ["golf_harborlight_open_winner", "Harborlight Open Winner", "World Tour"],
            ),
            (
                "PGA Tour",
                "The Masters",
                ["golf_masters_tournament_winner", "Masters Tournament Winner", "PGA Tour"],
            ),
            ("Majors", "U.S. Open 2026", ["golf_us_open_winner", "US Open Winner", "Majors"]),
        ] {
            assert_eq!(named(World::Live, "golf", competition, Some(title)), expected);
        }
    }

    #[test]
    fn only_the_sandbox_has_leagues_under_keys_that_programs_have_hard_coded() {
        for (competition, key) in [
            ("Continental Gridiron Union", "americanfootball_nfl"),
            ("Seaboard Collegiate Conference", "americanfootball_ncaaf"),
            ("Frontier Spring League", "americanfootball_frontier_spring_league"),
        ] {
            assert_eq!(named(World::Sandbox, "american_football", competition, None)[0], key);
        }
    }

    #[test]
    fn the_words_of_a_tour_leave_no_trace_in_the_title() {
        for (competition, title) in [
            ("Men's Vellmar Open", "ATP Vellmar Open"),
            ("Vellmar (Men) Open", "ATP Vellmar Open"),
            ("ATP Vellmar Open (Clay)", "ATP Vellmar Open (Clay)"),
            ("Vellmar (Clay) - Men’s Singles", "ATP Vellmar (Clay)"),
            ("Vellmar, Men, Clay", "ATP Vellmar, Clay"),
        ] {
            assert_eq!(named(World::Live, "tennis", competition, None)[1], title);
        }
    }
}

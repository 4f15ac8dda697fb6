//! Learned meanings of names: a source's spelling means our participant, or two names are two people.
//!
//! An alias learned from a confident match holds only for its source, so that a lying source cannot harm others; an
//! operator's alias holds for all.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::name::Name;

/// Maximum number of aliases; further ones are not learned.
pub const ALIASES_MAX: usize = 200_000;
/// Maximum for one source, so that none can use up the total.
pub const ALIASES_OF_FEED_MAX: usize = 20_000;

/// One alias.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Alias {
    pub sport: Box<str>,
    /// The source that uses the name; `None` for all sources.
    pub feed: Option<Box<str>>,
    pub name: Box<str>,
    pub meaning: Meaning,
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Meaning {
    /// This participant.
    Is(Box<str>),
    /// Anyone except this participant.
    IsNot(Box<str>),
}

/// All aliases.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    /// By sport and folded name.
    held: HashMap<Box<str>, BTreeMap<String, Vec<Alias>>>,
    count: usize,
    of_feed: HashMap<Box<str>, usize>,
    /// The words of all names that ever had a meaning: most names contain none of them, which is cheap to check.
    words: HashSet<Box<str>>,
}

impl Aliases {
    /// Adds an alias and replaces an older meaning of the same name for the same source; returns whether there was
    /// room.
    pub(crate) fn teach(&mut self, alias: &Alias) -> bool {
        if self.has_room(alias.feed.as_deref()) {
            self.forget(alias);
            let name = Name::parse(&alias.name);
            self.words.extend(name.words().map(Box::from));
            let folded = name.folded();
            self.held
                .entry(alias.sport.clone())
                .or_default()
                .entry(folded)
                .or_default()
                .push(alias.clone());
            self.count += 1;
            if let Some(feed) = &alias.feed {
                *self.of_feed.entry(feed.clone()).or_default() += 1;
            }
            return true;
        }
        false
    }

    pub(crate) fn has_room(&self, feed: Option<&str>) -> bool {
        let of_feed = feed.and_then(|feed| self.of_feed.get(feed)).copied().unwrap_or(0);
        self.count < ALIASES_MAX && of_feed < ALIASES_OF_FEED_MAX
    }

    /// Forgets aliases that contradict this one: the same, or for a positive meaning any other positive one.
    pub(crate) fn forget(&mut self, alias: &Alias) {
        let Some(names) = self.held.get_mut(&alias.sport) else { return };
        let folded = Name::parse(&alias.name).folded();
        let Some(held) = names.get_mut(&folded) else { return };
        let before = held.len();
        held.retain(|other| {
            other.feed != alias.feed || !contradicts(&other.meaning, &alias.meaning)
        });
        let dropped = before - held.len();
        if held.is_empty() {
            names.remove(&folded);
        }
        self.count -= dropped;
        if let Some(of_feed) = alias.feed.as_ref().and_then(|feed| self.of_feed.get_mut(feed)) {
            *of_feed = of_feed.saturating_sub(dropped);
        }
    }

    /// The participant that a source means by a name, if known; the source's own alias takes precedence over a
    /// general one.
    pub(crate) fn meaning(&self, sport: &str, feed: &str, name: &Name) -> Option<&str> {
        if self.words.is_empty() || name.words().any(|word| !self.words.contains(word)) {
            return None;
        }
        let held = self.held.get(sport)?.get(&name.folded())?;
        let of = |feed: Option<&str>| {
            held.iter().find_map(|alias| match &alias.meaning {
                Meaning::Is(who) if alias.feed.as_deref() == feed => Some(&**who),
                Meaning::Is(_) | Meaning::IsNot(_) => None,
            })
        };
        of(Some(feed)).or_else(|| of(None))
    }

    /// True if an operator declared that these are two people; both names are folded.
    pub(crate) fn are_two(&self, sport: &str, one: &str, other: &str) -> bool {
        let Some(names) = self.held.get(sport) else { return false };
        let says = |one: &str, other: &str| {
            names.get(one).is_some_and(|held| {
                held.iter().any(|alias| match &alias.meaning {
                    Meaning::IsNot(who) => Name::parse(who).folded() == other,
                    Meaning::Is(_) => false,
                })
            })
        };
        says(one, other) || says(other, one)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Number of aliases learned from one source.
    pub(crate) fn len_of(&self, feed: &str) -> usize {
        self.of_feed.get(feed).copied().unwrap_or(0)
    }

    /// Forgets the aliases learned from one source.
    pub(crate) fn forget_feed(&mut self, feed: &str) {
        if self.of_feed.remove(feed).is_none() {
            return;
        }
        for names in self.held.values_mut() {
            names.retain(|_, held| {
                let before = held.len();
                held.retain(|alias| alias.feed.as_deref() != Some(feed));
                self.count -= before - held.len();
                !held.is_empty()
            });
        }
        let held = self.held.values().flat_map(BTreeMap::values).flatten();
        self.words = held
            .flat_map(|alias| Name::parse(&alias.name).words().map(Box::from).collect::<Vec<_>>())
            .collect();
    }

    /// All aliases, sorted.
    pub(crate) fn all(&self) -> Vec<&Alias> {
        let mut all: Vec<&Alias> =
            self.held.values().flat_map(BTreeMap::values).flatten().collect();
        all.sort_unstable();
        all
    }
}

fn contradicts(one: &Meaning, other: &Meaning) -> bool {
    match (one, other) {
        (Meaning::Is(_), Meaning::Is(_)) => true,
        (Meaning::IsNot(one), Meaning::IsNot(other))
        | (Meaning::Is(one), Meaning::IsNot(other))
        | (Meaning::IsNot(one), Meaning::Is(other)) => {
            Name::parse(one).folded() == Name::parse(other).folded()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(feed: Option<&str>, name: &str, meaning: Meaning) -> Alias {
        Alias { sport: "mma".into(), feed: feed.map(Into::into), name: name.into(), meaning }
    }

    #[test]
    fn a_sources_own_habit_comes_before_everybodys_and_is_nobody_elses() {
        let name = Name::parse("Kaos Wendt");
        let mut aliases = Aliases::default();
        aliases.teach(&alias(Some("north"), "Kaos Wendt", Meaning::Is("Kalle Wendt".into())));
        assert_eq!(
            aliases.meaning("mma", "north", &Name::parse("KAOS WENDT")),
            Some("Kalle Wendt")
        );
        assert_eq!(aliases.meaning("mma", "south", &name), None);
        assert_eq!(aliases.meaning("boxing", "north", &name), None);
        aliases.teach(&alias(None, "Wendt, Kaos", Meaning::Is("Karl Wendt".into())));
        assert_eq!(aliases.meaning("mma", "south", &name), Some("Karl Wendt"));
        assert_eq!(aliases.meaning("mma", "north", &name), Some("Kalle Wendt"));
    }

    #[test]
    fn the_last_word_counts_and_what_is_two_is_not_one() {
        let name = Name::parse("Kaos Wendt");
        let mut aliases = Aliases::default();
        aliases.teach(&alias(None, "Kaos Wendt", Meaning::Is("Kalle Wendt".into())));
        aliases.teach(&alias(None, "Kaos Wendt", Meaning::Is("Karl Wendt".into())));
        assert_eq!(aliases.meaning("mma", "north", &name), Some("Karl Wendt"));
        aliases.teach(&alias(None, "Kaos Wendt", Meaning::IsNot("Karl Wendt".into())));
        assert_eq!(aliases.meaning("mma", "north", &name), None);
        assert!(aliases.are_two("mma", "karl wendt", "kaos wendt"));
        assert_eq!(aliases.len(), 1);
    }

    #[test]
    fn one_source_cannot_use_up_the_room() {
        let mut aliases = Aliases::default();
        for n in 0..ALIASES_OF_FEED_MAX {
            assert!(aliases.teach(&alias(
                Some("north"),
                &format!("Name {n}x"),
                Meaning::Is("Somebody Else".into())
            )));
        }
        assert!(!aliases.teach(&alias(
            Some("north"),
            "One More",
            Meaning::Is("Somebody Else".into())
        )));
        assert!(aliases.teach(&alias(
            Some("south"),
            "One More",
            Meaning::Is("Somebody Else".into())
        )));
    }
}

//! Which event is this? Identity of events across feeds.
//!
//! A listing is the same event as one already known when the sport and the folded participants agree, in
//! whichever order, and the starts lie within the sport's window; the nearest start wins. A feed never has
//! two refs for one event. What was decided for a ref is kept in the log and never guessed again.

use std::collections::HashMap;

use domain::message::{Fixture, Listing};
use domain::{Catalogue, EventId, SportId, Timestamp};

/// Finds events by who takes part in them.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_participants: HashMap<(SportId, Participants), Vec<Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    event: EventId,
    commence_time: Timestamp,
}

/// The participants of a fixture, folded and in an order of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Participants(Box<str>);

/// A known event that a listing is the same as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Same {
    pub(crate) event: EventId,
}

impl Participants {
    pub(crate) fn of(fixture: &Fixture) -> Self {
        match fixture {
            Fixture::HeadToHead { home, away } => {
                let (one, other) = (fold(home), fold(away));
                let (first, second) = if one <= other { (one, other) } else { (other, one) };
                Self(format!("{first}\n{second}").into())
            }
            Fixture::Field { title } => Self(fold(title).into()),
        }
    }
}

impl Index {
    pub(crate) fn insert(
        &mut self,
        sport: SportId,
        fixture: &Fixture,
        commence_time: Timestamp,
        event: EventId,
    ) {
        let key = (sport, Participants::of(fixture));
        self.by_participants.entry(key).or_default().push(Entry { event, commence_time });
    }

    pub(crate) fn remove(&mut self, sport: SportId, fixture: &Fixture, event: EventId) {
        let key = (sport, Participants::of(fixture));
        if let Some(entries) = self.by_participants.get_mut(&key) {
            entries.retain(|entry| entry.event != event);
            if entries.is_empty() {
                self.by_participants.remove(&key);
            }
        }
    }

    /// The known event nearest in time that the listing is the same as; `taken` says which events this feed
    /// already has another ref for.
    pub(crate) fn find(
        &self,
        catalogue: &Catalogue,
        listing: &Listing,
        taken: impl Fn(EventId) -> bool,
    ) -> Option<Same> {
        let window = catalogue.sport(listing.sport).same_event_within.as_millis();
        let distance = |entry: &Entry| {
            u128::from(entry.commence_time.as_millis().abs_diff(listing.commence_time.as_millis()))
        };
        self.by_participants
            .get(&(listing.sport, Participants::of(&listing.fixture)))?
            .iter()
            .filter(|entry| distance(entry) <= window && !taken(entry.event))
            .min_by_key(|entry| (distance(entry), entry.event))
            .map(|entry| Same { event: entry.event })
    }
}

/// Whether the second fixture names the first's participants the other way round.
pub(crate) fn is_swapped(ours: &Fixture, theirs: &Fixture) -> bool {
    match (ours, theirs) {
        (Fixture::HeadToHead { home, .. }, Fixture::HeadToHead { home: their_home, .. }) => {
            fold(home) != fold(their_home)
        }
        (Fixture::Field { .. }, _) | (_, Fixture::Field { .. }) => false,
    }
}

/// A name without what differs from source to source: accents, case, punctuation, spacing.
pub(crate) fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    let mut gap = false;
    let ascii = if name.is_ascii() { None } else { Some(deunicode::deunicode(name)) };
    for c in ascii.as_deref().unwrap_or(name).chars() {
        if c.is_ascii_alphanumeric() {
            if gap && !folded.is_empty() {
                folded.push(' ');
            }
            gap = false;
            folded.push(c.to_ascii_lowercase());
        } else if c != '\'' && c != '.' {
            // "O'Neil" and "J.J." stay in one piece.
            gap = true;
        }
    }
    // A name of nothing but signs still has to differ from another such name.
    if folded.is_empty() { name.trim().to_lowercase() } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_drops_what_differs_from_source_to_source() {
        for (one, other) in [
            ("Jiří Procházka", "JIRI  PROCHAZKA"),
            ("Auger-Aliassime", "auger aliassime"),
            ("Sean O'Malley", "Sean O’Malley"),
            ("B.J. Penn", "BJ Penn"),
            (" Novak Đoković ", "novak dokovic"),
        ] {
            assert_eq!(fold(one), fold(other));
        }
        assert_ne!(fold("Jermell Charlo"), fold("Jermall Charlo"));
        assert_ne!(fold("···"), fold("—"));
    }
}

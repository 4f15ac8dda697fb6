//! Matches the listings of several feeds all at once, for `linesman match`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::message::{Fixture, Listing, OUTCOMES_MAX};
use domain::{Catalogue, EventId};

use super::contest::{Contest, Lexicon};
use super::groups::Item;
use super::judge::ListingView;
use super::name::Name;
use super::name_signature::NameSignature;
use super::solve::{Solved, solve};

/// The listings of all feeds.
#[derive(Debug)]
pub struct BatchMatcher {
    catalogue: Arc<Catalogue>,
    /// Sorted, so that the result does not depend on the order of input.
    listings: BTreeMap<(Box<str>, Box<str>), Listing>,
    /// The players of tournaments.
    players: BTreeMap<(Box<str>, Box<str>), BTreeSet<String>>,
}

/// The result for a ref.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub feed: Box<str>,
    pub reference: Box<str>,
    /// Equal for refs that are the same event; without meaning outside this result.
    pub event: EventId,
    /// In thousandths.
    pub confidence: u16,
    pub why: String,
}

/// Confidence for a ref without any similar listing.
const SURE: u16 = 1000;
/// Confidence for a ref that is kept apart despite a similar listing.
const UNSURE: u16 = 500;

impl BatchMatcher {
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue, listings: BTreeMap::new(), players: BTreeMap::new() }
    }

    /// Adds a feed's listing of an event; the last one of a ref counts.
    pub fn list(&mut self, feed: &str, reference: &str, listing: Listing) {
        self.listings.insert((feed.into(), reference.into()), listing);
    }

    /// Adds the players of a tournament for which a feed that lists it has odds.
    pub fn note_players<'a>(
        &mut self,
        feed: &str,
        reference: &str,
        names: impl Iterator<Item = &'a str>,
    ) {
        let key = (feed.into(), reference.into());
        if let Some(Listing { fixture: Fixture::Field { .. }, .. }) = self.listings.get(&key) {
            let players = self.players.entry(key).or_default();
            players.extend(names.take(OUTCOMES_MAX).map(|name| Name::parse(name).folded()));
        }
    }

    /// Matches all listings; results are in the order of feeds and refs.
    pub fn solve(&self) -> Vec<Found> {
        let lexicon = Lexicon::new(&self.catalogue);
        let mut feeds: Vec<&str> = Vec::new();
        let mut items = Vec::with_capacity(self.listings.len());
        for (key, listing) in &self.listings {
            let (feed, _) = key;
            if feeds.last() != Some(&&**feed) {
                feeds.push(feed);
            }
            let view = ListingView {
                contest: Cow::Owned(Contest::parse(&lexicon, listing.sport, &listing.fixture)),
                commence_time: listing.commence_time,
                competition: &listing.competition,
                signature: NameSignature::BLANK,
                feed: None,
                event: None,
            };
            let players = self.players.get(key);
            items.push(Item { feed: feeds.len(), sport: listing.sport, view, players });
        }
        let solved = solve(&self.catalogue, &items);
        let entries: Vec<_> = self.listings.iter().collect();
        let name = |at: usize| {
            entries.get(at).map_or_else(String::new, |((feed, reference), listing)| {
                format!("{feed} {reference} ({})", title(&listing.fixture))
            })
        };
        entries
            .iter()
            .zip(&solved)
            .map(|(((feed, reference), listing), solved)| {
                let (confidence, why) = self.explain(listing, solved, name);
                let event = EventId::minted(0, u64::try_from(solved.group).unwrap_or(u64::MAX));
                Found { feed: feed.clone(), reference: reference.clone(), event, confidence, why }
            })
            .collect()
    }

    fn explain(
        &self,
        listing: &Listing,
        solved: &Solved,
        name: impl Fn(usize) -> String,
    ) -> (u16, String) {
        let sport = self.catalogue.sport(listing.sport);
        if let Some((with, evidence)) = &solved.with {
            return (evidence.confidence(sport), format!("same as {}: {evidence}", name(*with)));
        }
        match &solved.unsure {
            Some((with, evidence, doubt)) => {
                (UNSURE, format!("not sure whether it is {}: {doubt} ({evidence})", name(*with)))
            }
            None => (SURE, "no other feed lists a similar event".to_owned()),
        }
    }
}

fn title(fixture: &Fixture) -> String {
    match fixture {
        Fixture::HeadToHead { home, away } => format!("{home} v {away}"),
        Fixture::Field { title } => title.to_string(),
    }
}

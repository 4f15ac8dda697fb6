//! Builds a read: the rules that hold for every kind, in one place.

use std::collections::HashMap;

use domain::catalogue::{BookmakerId, SportId};
use domain::market::Market;
use domain::message::{Fixture, Listing, NAME_BYTES_MAX, OUTCOMES_MAX, OddsBody, OfferedOutcome};
use domain::message::{REF_BYTES_MAX, ScoreBody};
use domain::time::Timestamp;

use crate::adapter::names::Known;
use crate::adapter::{
    Coverage, Drift, FAILURES_MAX, Listed, Offered, Read, Scored, Settings, UNMAPPED_MAX, Unmapped,
    What, dropped,
};

/// Maximum number of events and of markets in one read.
const LISTINGS_MAX: usize = 50_000;
const MARKETS_MAX: usize = 200_000;
/// Maximum number of markets of one event in a read: the book's own maximum.
const EVENT_MARKETS_MAX: usize = domain::message::MARKETS_MAX;
/// More than one failed item in this many is drift, if at least [`FAILED_MIN`] failed (A18).
const FAILED_SHARE: u64 = 5;
const FAILED_MIN: u64 = 5;

/// Collects a [`Read`]: one listing per ref (the first wins), one market per ref, bookmaker, market and group (the
/// last price of an outcome wins), names resolved or counted, failures counted.
#[derive(Debug)]
pub(crate) struct Gather<'s> {
    settings: &'s Settings,
    read: Read,
    listed: HashMap<Box<str>, usize>,
    /// Indices of each ref's markets in the read.
    markets: HashMap<Box<str>, Vec<usize>>,
    /// The result of the last sport lookup: most events of a read have the same sport.
    sport: Option<(Box<str>, Known<SportId>)>,
}

/// A market as a translator found it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) reference: Box<str>,
    pub(crate) bookmaker: BookmakerId,
    pub(crate) sport: SportId,
    pub(crate) market: Market,
    pub(crate) group: Option<Box<str>>,
    pub(crate) outcomes: Vec<OfferedOutcome>,
    pub(crate) ts: Option<Timestamp>,
    pub(crate) suspended: bool,
}

impl<'s> Gather<'s> {
    pub(crate) fn new(settings: &'s Settings, coverage: Coverage) -> Self {
        Self {
            settings,
            read: Read { coverage, ..Read::default() },
            listed: HashMap::new(),
            markets: HashMap::new(),
            sport: None,
        }
    }

    pub(crate) fn drop_one(&mut self, reason: &'static str) {
        *self.read.dropped.entry(reason).or_default() += 1;
    }

    /// Counts an item that was tried, whether it succeeds or fails.
    pub(crate) fn tried(&mut self) {
        self.read.items += 1;
    }

    pub(crate) fn fail(&mut self, fault: Drift) {
        self.read.failed += 1;
        if self.read.failures.len() < FAILURES_MAX {
            self.read.failures.push(fault);
        }
        self.drop_one(dropped::FAILED);
    }

    pub(crate) fn bookmaker(&mut self, upstream: &str) -> Option<BookmakerId> {
        let known = self.settings.names.bookmaker(upstream, &self.settings.catalogue);
        let id = self.known(known, What::Bookmaker, upstream)?;
        self.unless_owned(id)
    }

    /// The bookmaker, unless it belongs to another adapter.
    pub(crate) fn unless_owned(&mut self, id: BookmakerId) -> Option<BookmakerId> {
        if self.settings.owned.contains(id) {
            self.drop_one(dropped::OWNED);
            return None;
        }
        Some(id)
    }

    pub(crate) fn sport(&mut self, upstream: &str) -> Option<SportId> {
        let known = match &self.sport {
            Some((last, known)) if **last == *upstream => *known,
            _ => {
                let known = self.settings.names.sport(upstream, &self.settings.catalogue);
                self.sport = Some((upstream.into(), known));
                known
            }
        };
        self.known(known, What::Sport, upstream)
    }

    /// The market, if the sport has it.
    pub(crate) fn market(&mut self, upstream: &str, sport: SportId) -> Option<Market> {
        let known = self.settings.names.market(upstream, sport, &self.settings.catalogue);
        let market = self.known(known, What::Market, upstream)?;
        if !self.settings.catalogue.sport(sport).offers(market) {
            self.drop_one(dropped::NOT_IN_SPORT);
            return None;
        }
        Some(market)
    }

    fn known<T>(&mut self, known: Known<T>, what: What, upstream: &str) -> Option<T> {
        match known {
            Known::Is(value) => return Some(value),
            Known::Ignored => self.drop_one(dropped::IGNORED),
            Known::Unmapped => {
                self.drop_one(dropped::UNMAPPED);
                let value = upstream.chars().take(80).collect::<String>().into();
                let name = Unmapped { what, value };
                if self.read.unmapped.len() < UNMAPPED_MAX || self.read.unmapped.contains_key(&name)
                {
                    *self.read.unmapped.entry(name).or_default() += 1;
                }
            }
        }
        None
    }

    /// The listing of a ref, if it already has one.
    pub(crate) fn listing(&self, reference: &str) -> Option<&Listing> {
        let index = *self.listed.get(reference)?;
        self.read.listings.get(index).map(|listed| &listed.listing)
    }

    /// Adds an event; the first listing of a ref wins.
    ///
    /// # Errors
    /// A name is empty or too long, or both sides have the same name.
    pub(crate) fn list(
        &mut self,
        reference: &str,
        listing: Listing,
    ) -> Result<(), (&'static str, String)> {
        check_reference(reference).map_err(|reason| ("ref", reason))?;
        check_name(&listing.competition).map_err(|reason| ("competition", reason))?;
        match &listing.fixture {
            Fixture::HeadToHead { home, away } => {
                check_name(home).map_err(|reason| ("home", reason))?;
                check_name(away).map_err(|reason| ("away", reason))?;
                if home.to_lowercase() == away.to_lowercase() {
                    return Err(("away", "is the same as home".to_owned()));
                }
            }
            Fixture::Field { title } => check_name(title).map_err(|reason| ("title", reason))?,
        }
        if self.listed.contains_key(reference) {
            return Ok(());
        }
        if self.read.listings.len() >= LISTINGS_MAX {
            self.drop_one(dropped::TOO_MANY);
            return Ok(());
        }
        self.listed.insert(reference.into(), self.read.listings.len());
        self.read.listings.push(Listed { reference: reference.into(), listing });
        Ok(())
    }

    /// Adds a market, or adds its outcomes to the same market found before.
    pub(crate) fn offer(&mut self, mut found: Found) {
        if check_reference(&found.reference).is_err()
            || found.group.as_deref().is_some_and(|group| check_reference(group).is_err())
        {
            self.fail(Drift::new("market", "its ref or group is empty or too long"));
            return;
        }
        if found.ts.is_none() {
            self.confirm(found.bookmaker, found.sport);
        }
        let Some(index) = self.place(&mut found) else {
            self.drop_one(dropped::TOO_MANY);
            return;
        };
        let Some(offered) = self.read.markets.get_mut(index) else {
            return;
        };
        offered.ts = offered.ts.max(found.ts);
        // A market that is split over several items is suspended only if every part is: otherwise some part has
        // prices.
        offered.suspended = if offered.odds.outcomes.is_empty() && found.outcomes.is_empty() {
            offered.suspended || found.suspended
        } else {
            false
        };
        if offered.odds.outcomes.is_empty()
            && found.outcomes.len() <= 3
            && !repeats(&found.outcomes)
        {
            offered.odds.outcomes = found.outcomes;
            return;
        }
        let mut too_many = 0_u64;
        for outcome in found.outcomes {
            too_many += u64::from(!put(&mut offered.odds.outcomes, outcome));
        }
        if too_many > 0 {
            *self.read.dropped.entry(dropped::TOO_MANY).or_default() += too_many;
        }
    }

    /// The index of the market in the read, which is added with its ref and group if it is new; `None` if there is no
    /// room.
    fn place(&mut self, found: &mut Found) -> Option<usize> {
        let read = &mut self.read;
        let same = |index: &&usize| {
            read.markets.get(**index).is_some_and(|held| {
                let held = &held.odds;
                held.bookmaker == found.bookmaker
                    && held.market == found.market
                    && held.group == found.group
            })
        };
        let of_event = self.markets.get_mut(&*found.reference);
        // Search backwards: parts of one market usually follow each other.
        if let Some(index) = of_event.as_ref().and_then(|all| all.iter().rev().find(same)) {
            return Some(*index);
        }
        let full = of_event.as_ref().is_some_and(|all| all.len() >= EVENT_MARKETS_MAX);
        if full || read.markets.len() >= MARKETS_MAX {
            return None;
        }
        let index = read.markets.len();
        match of_event {
            Some(all) => all.push(index),
            None => drop(self.markets.insert(found.reference.clone(), vec![index])),
        }
        let odds = OddsBody {
            reference: std::mem::take(&mut found.reference),
            bookmaker: found.bookmaker,
            market: found.market,
            group: found.group.take(),
            outcomes: Vec::new(),
        };
        read.markets.push(Offered { odds, ts: found.ts, suspended: false });
        Some(index)
    }

    pub(crate) fn score(&mut self, score: ScoreBody, ts: Option<Timestamp>) {
        self.read.scores.push(Scored { score, ts });
    }

    /// Notes that the bookmaker's offer in this sport was read.
    pub(crate) fn confirm(&mut self, bookmaker: BookmakerId, sport: SportId) {
        if !self.read.confirmed.contains(&(bookmaker, sport)) {
            self.read.confirmed.push((bookmaker, sport));
        }
    }

    /// The read, unless too many of its items failed.
    ///
    /// # Errors
    /// More than a fifth of the items failed, and at least five.
    pub(crate) fn finish(self) -> Result<Read, Drift> {
        let read = self.read;
        if read.failed >= FAILED_MIN && read.failed * FAILED_SHARE > read.items {
            let first = read.failures.into_iter().next();
            let first = first.unwrap_or_else(|| Drift::new("/", "unknown"));
            let reason = format!(
                "{} of {} items could not be read; the first: {}",
                read.failed, read.items, first.reason
            );
            return Err(Drift { path: first.path, reason });
        }
        Ok(read)
    }
}

/// True if two of a few outcomes are the same.
fn repeats(outcomes: &[OfferedOutcome]) -> bool {
    let same = |a: &OfferedOutcome, b: &OfferedOutcome| a.name == b.name && a.point == b.point;
    outcomes
        .iter()
        .enumerate()
        .any(|(at, one)| outcomes.iter().skip(at + 1).any(|other| same(one, other)))
}

/// Adds an outcome or replaces the same one; `false` if there are too many.
fn put(outcomes: &mut Vec<OfferedOutcome>, new: OfferedOutcome) -> bool {
    let same = |held: &OfferedOutcome| held.name == new.name && held.point == new.point;
    // Search backwards: parts of one market usually follow each other.
    let held = outcomes.iter().rposition(same);
    if let Some(held) = held.and_then(|index| outcomes.get_mut(index)) {
        *held = new;
        return true;
    }
    let fits = outcomes.len() < OUTCOMES_MAX;
    if fits {
        outcomes.push(new);
    }
    fits
}

/// Checks a ref by the rules for messages.
pub(crate) fn check_reference(reference: &str) -> Result<(), String> {
    check_text(reference, REF_BYTES_MAX)
}

/// Checks a name by the rules for messages.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    check_text(name, NAME_BYTES_MAX)
}

fn check_text(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > bytes_max {
        return Err(format!("has {} bytes; at most {bytes_max} are taken", text.len()));
    }
    match crate::push::find_invisible(text) {
        Some(character) => {
            Err(format!("has U+{:04X}, an invisible character", u32::from(character)))
        }
        None => Ok(()),
    }
}

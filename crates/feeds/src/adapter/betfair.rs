//! `betfair`: the lines of the Exchange Stream.
//!
//! Images and deltas update a cache of markets; changes are emitted as best back prices, at most once per market and
//! [`Options::emit_every`], suspensions at once.
//!
//! The stream is resumed with [`Betfair::clocks`]. Names come from `listMarketCatalogue`
//! ([`Betfair::read_catalogue`]); an event without names is not listed, and its prices wait.

use std::collections::HashMap;
use std::time::Duration;

use domain::catalogue::{BookmakerId, SportId};
use domain::market::Market as OurMarket;
use domain::message::{Listing, OddsBody};
use domain::score::Status;
use domain::time::Timestamp;

use crate::adapter::names::Known;
use crate::adapter::pull::UNIT;
use crate::adapter::{
    Coverage, Drift, Listed, Offered, Read, Scored, Settings, Translator, Unmapped, What, dropped,
};

mod cache;
mod catalogue;
mod line;
mod offer;
mod option;

use cache::{Definition, Market, State};
use catalogue::Entry;
use line::{Change, Line};

pub use option::{Control, Options, own_names};

/// The exchange's key in our catalogue.
const BOOKMAKER: &str = "betfair";
/// Maximum number of markets of one stream; the exchange allows 200 unless it agreed to more.
const MARKETS_MAX: usize = 10_000;
/// Interval at which silence is confirmed as "nothing changed".
const CONFIRM_EVERY: Duration = Duration::from_secs(10);

/// Reads the Exchange Stream.
#[derive(Debug)]
pub struct Betfair {
    settings: Settings,
    bookmaker: Option<BookmakerId>,
    options: Options,
    markets: HashMap<Box<str>, Market>,
    events: HashMap<Box<str>, Event>,
    slots: HashMap<u64, Slot>,
    next_slot: u64,
    catalogue: HashMap<Box<str>, Entry>,
    /// Slots with changes to send.
    pending: Vec<u64>,
    /// Earliest time at which one of them may be sent.
    due: Option<Timestamp>,
    /// True if a suspension is among them.
    urgent: bool,
    image: u64,
    /// True if an image is complete, but not all names are known yet.
    complete_waits: bool,
    in_image: bool,
    initial_clk: String,
    clk: String,
    confirmed: Option<Timestamp>,
    control: Option<Control>,
    line: Line,
}

/// An event of the exchange.
#[derive(Debug)]
struct Event {
    sport: SportId,
    listing: Option<Listing>,
    status: Status,
    slots: Vec<u64>,
}

/// One of our markets: several of the exchange's if each of those is one line of it.
#[derive(Debug)]
struct Slot {
    event: Box<str>,
    market: OurMarket,
    members: Vec<Box<str>>,
    sent: Option<Timestamp>,
    /// True if the last message said suspended; `None` before the first.
    suspended: Option<bool>,
    pending: bool,
}

impl Betfair {
    pub fn new(settings: Settings, options: Options) -> Self {
        let names = own_names().overlaid(&settings.names);
        let bookmaker = settings.bookmaker.or_else(|| settings.catalogue.bookmaker_id(BOOKMAKER));
        Self {
            settings: Settings { names, ..settings },
            bookmaker,
            options,
            markets: HashMap::new(),
            events: HashMap::new(),
            slots: HashMap::new(),
            next_slot: 0,
            catalogue: HashMap::new(),
            pending: Vec::new(),
            due: None,
            urgent: false,
            image: 0,
            complete_waits: false,
            in_image: false,
            initial_clk: String::new(),
            clk: String::new(),
            confirmed: None,
            control: None,
            line: Line::default(),
        }
    }

    /// `initialClk` and `clk` to resume with; `None` before the first image.
    pub fn clocks(&self) -> Option<(&str, &str)> {
        let known = !self.initial_clk.is_empty() && !self.clk.is_empty();
        known.then_some((&*self.initial_clk, &*self.clk))
    }

    /// Forgets the clocks, so that the next subscription begins with an image. The cache stays until that image is
    /// complete.
    pub fn forget_clocks(&mut self) {
        self.initial_clk.clear();
        self.clk.clear();
    }

    /// The latest line that concerned the connection.
    pub fn take_control(&mut self) -> Option<Control> {
        self.control.take()
    }

    /// Event types to subscribe to: those mapped to one of our sports.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        let sports = self.settings.names.sports.iter();
        sports.filter(|(_, ours)| !ours.is_empty()).map(|(id, _)| &**id)
    }

    /// Markets without names, to query the catalogue for.
    pub fn missing_names(&self) -> Vec<Box<str>> {
        let missing = self.markets.iter().filter(|(id, market)| {
            market.slot.is_some() && !self.catalogue.contains_key(*id) && !is_named(market)
        });
        missing.map(|(id, _)| id.clone()).collect()
    }

    /// Takes an answer of `listMarketCatalogue`: events whose names are now known are listed, with their prices.
    ///
    /// # Errors
    /// It is not a list of markets.
    pub fn read_catalogue(&mut self, bytes: &[u8], at: Timestamp) -> Result<Read, Drift> {
        for (id, entry) in catalogue::read(bytes)? {
            if self.catalogue.len() < MARKETS_MAX || self.catalogue.contains_key(&id) {
                self.catalogue.insert(id, entry);
            }
        }
        let markets = &self.markets;
        self.catalogue.retain(|id, _| markets.contains_key(id));
        let mut read = Read::default();
        let ids: Vec<Box<str>> = self.markets.keys().cloned().collect();
        for id in ids {
            self.update_event(&id, &mut read);
        }
        if std::mem::take(&mut self.complete_waits) {
            let mut complete = self.complete(at);
            // The statuses of events in play were just found, and are reported once.
            complete.scores.append(&mut read.scores);
            return Ok(complete);
        }
        self.emit(at, true, &mut read);
        Ok(read)
    }

    /// Everything known now, as a complete read; `None` while an image is incomplete.
    pub fn everything(&mut self, at: Timestamp) -> Option<Read> {
        (!self.in_image && !self.complete_waits).then(|| self.complete(at))
    }

    /// Everything in the cache, as a complete read.
    fn complete(&mut self, at: Timestamp) -> Read {
        let mut read = Read { coverage: Coverage::Complete, ..Read::default() };
        for (reference, event) in &self.events {
            if let Some(listing) = &event.listing {
                read.listings
                    .push(Listed { reference: reference.clone(), listing: listing.clone() });
            }
        }
        let slots: Vec<u64> = self.slots.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.mark(slot));
        self.emit(at, true, &mut read);
        read
    }

    fn mark(&mut self, slot: u64) {
        let Some(held) = self.slots.get_mut(&slot) else {
            return;
        };
        let due = held.sent.map_or(Timestamp::default(), |sent| sent.plus(self.options.emit_every));
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        if !held.pending {
            held.pending = true;
            self.pending.push(slot);
        }
    }

    /// Applies one market's change from a line.
    fn change(&mut self, id: &str, change: &mut Change, published: Timestamp, read: &mut Read) {
        let held = self.markets.len();
        let (known, market) = match self.markets.get_mut(id) {
            Some(market) => (true, market),
            None if change.definition.is_none() || held >= MARKETS_MAX => {
                *read.dropped.entry(dropped::INCOMPLETE).or_default() += 1;
                return;
            }
            None => (false, self.markets.entry(id.into()).or_default()),
        };
        let size_min = self.options.min_size.saturating_mul(UNIT);
        let definition = change.definition.take();
        market.image = self.image;
        // Of markets that are not ours, only the id is kept.
        if known && market.slot.is_none() {
            if definition.is_some_and(|definition| definition.state == State::Closed) {
                self.markets.remove(id);
            }
            return;
        }
        market.published = market.published.max(published);
        if change.image {
            market.clear();
        }
        let defined = definition.is_some();
        if let Some(definition) = definition {
            market.define(definition);
        }
        let changed = market.update(self.line.updates_of(change), change.image, size_min);
        let slot = market.slot;
        if defined {
            self.place(id, read);
            self.update_event(id, read);
        } else if changed && let Some(slot) = slot {
            self.mark(slot);
        }
    }

    /// Assigns a market with a new definition to its event and to our market.
    fn place(&mut self, id: &str, read: &mut Read) {
        let Some(market) = self.markets.get(id) else {
            return;
        };
        if let Some(slot) = market.slot {
            self.urgent = true;
            self.mark(slot);
            return;
        }
        let Definition { event, event_type, market_type, .. } = &market.definition;
        let sport = self.settings.names.sport(event_type, &self.settings.catalogue);
        let Some(sport) = known(sport, What::Sport, event_type, read) else {
            return;
        };
        let ours = offer::find_market(market_type, sport, &self.settings);
        let Some(ours) = known(ours, What::Market, market_type, read) else {
            return;
        };
        if !self.settings.catalogue.sport(sport).offers(ours) {
            *read.dropped.entry(dropped::NOT_IN_SPORT).or_default() += 1;
            return;
        }
        let reference = event.clone();
        let event = self.events.entry(reference.clone()).or_insert_with(|| Event {
            sport,
            listing: None,
            status: Status::Scheduled,
            slots: Vec::new(),
        });
        let held = event.slots.iter().copied();
        let same = |slot: &u64| self.slots.get(slot).is_some_and(|slot| slot.market == ours);
        let slot = held.into_iter().find(same).unwrap_or_else(|| {
            self.next_slot += 1;
            event.slots.push(self.next_slot);
            let slot = Slot {
                event: reference,
                market: ours,
                members: Vec::new(),
                sent: None,
                suspended: None,
                pending: false,
            };
            self.slots.insert(self.next_slot, slot);
            self.next_slot
        });
        if let Some(slot) = self.slots.get_mut(&slot) {
            slot.members.push(id.into());
        }
        if let Some(market) = self.markets.get_mut(id) {
            market.slot = Some(slot);
        }
        self.mark(slot);
    }

    /// Lists or corrects the event of a market, and reports its status.
    fn update_event(&mut self, id: &str, read: &mut Read) {
        let Some(market) = self.markets.get(id) else {
            return;
        };
        let slot = market.slot.and_then(|slot| self.slots.get(&slot));
        let reference = &market.definition.event;
        let Some((slot, event)) = slot.zip(self.events.get_mut(reference)) else {
            return;
        };
        let entry = self.catalogue.get(id);
        let listing = offer::listing(market, slot.market, event.sport, entry, &self.settings);
        // The runners of the result market name the sides; other markets name them only if nothing else has.
        let better = matches!(slot.market, OurMarket::Moneyline | OurMarket::Outright);
        if let Some(listing) = listing
            .filter(|listing| event.listing.as_ref().is_none_or(|held| better && held != listing))
        {
            if event.listing.is_none() {
                let slots = event.slots.clone();
                event.listing = Some(listing.clone());
                read.listings.push(Listed { reference: reference.clone(), listing });
                slots.into_iter().for_each(|slot| self.mark(slot));
            } else {
                event.listing = Some(listing.clone());
                read.listings.push(Listed { reference: reference.clone(), listing });
            }
        }
        self.report(id, read);
    }

    fn report(&mut self, id: &str, read: &mut Read) {
        let Some(market) = self.markets.get(id) else {
            return;
        };
        let slot = market.slot.and_then(|slot| self.slots.get(&slot));
        let Some((slot, event)) = slot.zip(self.events.get_mut(&market.definition.event)) else {
            return;
        };
        if event.listing.is_none() {
            return;
        }
        let shape = self.settings.catalogue.sport(event.sport).shape;
        let score = offer::score(market, slot.market, self.catalogue.get(id), shape);
        if let Some(score) = score.filter(|score| score.status > event.status) {
            event.status = score.status;
            read.scores.push(Scored { score, ts: Some(market.published) });
        }
    }

    /// Emits the pending changes that are due; all of them if `now`.
    fn emit(&mut self, at: Timestamp, now: bool, read: &mut Read) {
        let pending = std::mem::take(&mut self.pending);
        self.due = None;
        self.urgent = false;
        for id in pending {
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            slot.pending = false;
            let state = slot_state(slot, &self.markets);
            let turned =
                slot.suspended != Some(state == State::Suspended) || state == State::Closed;
            let due = slot.sent.map(|sent| sent.plus(self.options.emit_every));
            if !now && !turned && due.is_some_and(|due| due > at) {
                self.mark(id);
                continue;
            }
            self.send(id, state, at, read);
        }
    }

    fn send(&mut self, id: u64, state: State, at: Timestamp, read: &mut Read) {
        let Some((slot, bookmaker)) = self.slots.get_mut(&id).zip(self.bookmaker) else {
            return;
        };
        if self.events.get(&slot.event).is_none_or(|event| event.listing.is_none()) {
            self.remove_closed(id);
            return;
        }
        let mut outcomes = Vec::new();
        let mut published = None;
        for member in &slot.members {
            if let Some(market) = self.markets.get(member) {
                let entry = self.catalogue.get(member);
                offer::outcomes(market, slot.market, entry, &mut outcomes);
                published = published.max(Some(market.published));
            }
        }
        outcomes.truncate(domain::message::OUTCOMES_MAX);
        slot.sent = Some(at);
        slot.suspended = Some(state == State::Suspended);
        let odds = OddsBody {
            reference: slot.event.clone(),
            bookmaker,
            market: slot.market,
            group: None,
            outcomes,
        };
        read.markets.push(Offered { odds, ts: published, suspended: state == State::Suspended });
        self.remove_closed(id);
    }

    /// Removes closed markets from the cache; the event is removed with its last market.
    fn remove_closed(&mut self, id: u64) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        let markets = &mut self.markets;
        slot.members.retain(|member| {
            let closed =
                markets.get(member).is_none_or(|market| market.definition.state == State::Closed);
            if closed {
                markets.remove(member);
            }
            !closed
        });
        if !slot.members.is_empty() {
            return;
        }
        let event = slot.event.clone();
        self.slots.remove(&id);
        if let Some(held) = self.events.get_mut(&event) {
            held.slots.retain(|slot| *slot != id);
            if held.slots.is_empty() {
                self.events.remove(&event);
            }
        }
    }

    /// Ends an image: markets that it lacks are gone.
    fn end_image(&mut self, at: Timestamp) -> Option<Read> {
        let image = self.image;
        let gone: Vec<Box<str>> = self
            .markets
            .iter()
            .filter(|(_, market)| market.image != image)
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            if let Some(market) = self.markets.get_mut(&id) {
                market.definition.state = State::Closed;
                if let Some(slot) = market.slot {
                    self.remove_closed(slot);
                } else {
                    self.markets.remove(&id);
                }
            }
        }
        if !self.missing_names().is_empty() {
            self.complete_waits = true;
            return None;
        }
        Some(self.complete(at))
    }

    /// Adds the bookmaker and sports that this line confirms, at most every ten seconds.
    fn confirm(&mut self, at: Timestamp, read: &mut Read) {
        if self.confirmed.is_some_and(|last| at.since(last) < CONFIRM_EVERY && at >= last) {
            return;
        }
        let Some(bookmaker) = self.bookmaker else {
            return;
        };
        for event in self.events.values().filter(|event| event.listing.is_some()) {
            if !read.confirmed.contains(&(bookmaker, event.sport)) {
                read.confirmed.push((bookmaker, event.sport));
            }
        }
        if !read.confirmed.is_empty() {
            self.confirmed = Some(at);
        }
    }
}

impl Translator for Betfair {
    fn translate(&mut self, _unit: &str, bytes: &[u8], at: Timestamp) -> Result<Read, Drift> {
        let mut read = Read::default();
        let text = std::str::from_utf8(bytes).map_err(|error| not_a_line(error.valid_up_to()))?;
        let head = self.line.read(text).map_err(not_a_line)?;
        if let Some(control) = head.control {
            self.control = Some(control);
            return Ok(read);
        }
        if let Some(clk) = head.initial_clk {
            self.initial_clk.clear();
            self.initial_clk.push_str(&clk);
        }
        if let Some(clk) = head.clk {
            self.clk.clear();
            self.clk.push_str(&clk);
        }
        if head.image && !self.in_image {
            self.image += 1;
            self.in_image = head.more;
        }
        let mut changes = std::mem::take(&mut self.line.changes);
        for change in &mut changes {
            read.items += 1;
            if let Some(id) = change.id(text) {
                self.change(id, change, head.published.unwrap_or(at), &mut read);
            }
        }
        self.line.changes = changes;
        if head.image && !head.more {
            self.in_image = false;
            if let Some(mut complete) = self.end_image(at) {
                complete.dropped = read.dropped;
                complete.unmapped = read.unmapped;
                complete.items = read.items;
                complete.scores.append(&mut read.scores);
                read = complete;
            }
        }
        if !self.in_image && (self.urgent || self.due.is_some_and(|due| due <= at)) {
            self.emit(at, false, &mut read);
        }
        if !head.late {
            self.confirm(at, &mut read);
        }
        Ok(read)
    }

    fn flush(&mut self, at: Timestamp) -> Read {
        let mut read = Read::default();
        if !self.in_image && self.due.is_some_and(|due| due <= at) {
            self.emit(at, false, &mut read);
        }
        read
    }
}

/// Open if any member is, closed if all are.
fn slot_state(slot: &Slot, markets: &HashMap<Box<str>, Market>) -> State {
    let states = slot.members.iter().filter_map(|id| markets.get(id));
    let states = states.map(|market| market.definition.state);
    states.fold(State::Closed, |all, state| match (all, state) {
        (State::Open, _) | (_, State::Open) => State::Open,
        (State::Suspended, _) | (_, State::Suspended) => State::Suspended,
        (State::Closed, State::Closed) => State::Closed,
    })
}

fn not_a_line(offset: usize) -> Drift {
    Drift::new(format!("column {}", offset + 1), "not a line of the Exchange Stream")
}

fn is_named(market: &Market) -> bool {
    let runners = &market.definition.runners;
    runners.iter().all(|runner| runner.name.is_some() || !runner.active)
        && market.definition.event_name.is_some()
}

fn known<T>(known: Known<T>, what: What, value: &str, read: &mut Read) -> Option<T> {
    match known {
        Known::Is(value) => return Some(value),
        Known::Ignored => *read.dropped.entry(dropped::IGNORED).or_default() += 1,
        Known::Unmapped => {
            *read.dropped.entry(dropped::UNMAPPED).or_default() += 1;
            let value: String = value.chars().take(80).collect();
            *read.unmapped.entry(Unmapped { what, value: value.into() }).or_default() += 1;
        }
    }
    None
}

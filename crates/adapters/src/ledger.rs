//! What of a read is sent: the difference between what upstream offers and what was sent before (A14 to A19).
//!
//! Pure: reads and the time go in, messages come out. It is rebuilt from the book at every start, and whenever the book
//! did not take what was sent.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use domain::message::{Body, FeedMessage, Listing, OddsBody, OfferedOutcome, ScoreBody};
use domain::{BookmakerId, Market, SportId, Timestamp};
use feeds::adapter::{Coverage, Offered, Read};

use crate::sink::OpenEvent;

/// Most events that one adapter may have: more than any source offers, and far below 64 MiB with their markets.
pub const EVENTS_MAX: usize = 50_000;
/// Most markets that it may have: each takes about 200 bytes here.
pub const MARKETS_MAX: usize = 150_000;
/// From this number of open events on, a read that would empty more than half of them is held back.
const SHRUNK_EVENTS_MIN: usize = 10;
/// This number of such reads in a row is believed.
const SHRUNK_READS: u32 = 3;

/// How an adapter wants its reads handled.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long good reads must lack an event before it is removed.
    pub remove_after: Duration,
    /// Whether prices stay when an event has started.
    pub in_play: bool,
}

/// When a read was made, and for how long it keeps its sources fresh.
#[derive(Clone, Copy, Debug)]
pub struct ReadAt<'a> {
    /// Units whose name begins with another but ends in the same part belong together: `events/KEY` and `odds/KEY`.
    pub unit: &'a str,
    /// When the request was sent, less the age that upstream gave.
    pub at: Timestamp,
    pub now: Timestamp,
    pub fresh_for_s: Option<u32>,
    /// Whether every unit had a good complete read since the start, this one included.
    pub all_read: bool,
}

/// What follows from a read.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    pub messages: Vec<FeedMessage>,
    /// It was held back: it would have emptied this many events.
    pub held_back: Option<usize>,
    /// Times ahead of our clock that were set to now.
    pub clamped: u64,
    /// Events or markets beyond what an adapter may have.
    pub too_many: u64,
}

type MarketId = (BookmakerId, Market, Option<Box<str>>);

/// What was sent, by ref.
#[derive(Debug, Default)]
pub struct Ledger {
    events: HashMap<Box<str>, Known>,
    /// Reads in a row that would have emptied most, by group of units.
    shrunk: HashMap<Box<str>, u32>,
    /// What the last good read of a unit confirmed as a whole, for reads that find nothing new.
    confirmed: HashMap<Box<str>, Vec<(BookmakerId, SportId)>>,
    markets: usize,
}

#[derive(Debug)]
struct Known {
    /// `None`: it is in the book, and what it says is not known here.
    listing: Option<Listing>,
    starts: Timestamp,
    /// The group of units that offers it; `None`: no read had it since the start.
    group: Option<Box<str>>,
    /// When a good read last had it.
    seen: Timestamp,
    markets: HashMap<MarketId, Sent>,
    score: Option<ScoreBody>,
    fresh_for_s: Option<u32>,
}

#[derive(Debug)]
struct Sent {
    /// `None`: it has prices in the book, and they are not known here.
    outcomes: Option<Vec<OfferedOutcome>>,
    ts: Option<Timestamp>,
}

impl Sent {
    fn is_open(&self) -> bool {
        self.outcomes.as_ref().is_none_or(|outcomes| !outcomes.is_empty())
    }

    /// When a read that lacks it says that it went: not before the prices that it takes away.
    fn withdrawn_at(&self, at: ReadAt<'_>) -> Timestamp {
        match (&self.outcomes, self.ts) {
            (None, _) => at.now,
            (Some(_), held) => at.at.max(held.unwrap_or(at.at)).min(at.now),
        }
    }

    fn withdraw(
        &mut self,
        (reference, (bookmaker, market, group)): (&str, &MarketId),
        ts: Timestamp,
        fresh_for_s: Option<u32>,
    ) -> FeedMessage {
        (self.outcomes, self.ts) = (Some(Vec::new()), None);
        let odds = OddsBody {
            reference: reference.into(),
            bookmaker: *bookmaker,
            market: *market,
            group: group.clone(),
            outcomes: Vec::new(),
        };
        FeedMessage { ts: Some(ts), fresh_for_s, body: Body::Odds(odds) }
    }
}

fn group_of(unit: &str) -> &str {
    unit.rsplit('/').next().unwrap_or(unit)
}

impl Ledger {
    /// Begins with what the book holds of the feed.
    pub fn new(open: Vec<OpenEvent>, now: Timestamp) -> Self {
        let mut ledger = Self::default();
        for event in open {
            ledger.markets += event.markets.len();
            let markets = event.markets.into_iter();
            let known = Known {
                listing: None,
                starts: event.commence_time,
                group: None,
                seen: now,
                markets: markets.map(|id| (id, Sent { outcomes: None, ts: None })).collect(),
                score: None,
                fresh_for_s: None,
            };
            ledger.events.insert(event.reference, known);
        }
        ledger
    }

    /// When the events of a unit start, for its schedule.
    pub fn starts(&self, unit: &str) -> impl Iterator<Item = Timestamp> {
        let group = group_of(unit);
        let own = self.events.values().filter(move |known| known.group.as_deref() == Some(group));
        own.map(|known| known.starts)
    }

    /// Whether an event of a unit has started and its score is not final.
    pub fn has_begun(&self, unit: &str, now: Timestamp) -> bool {
        let group = group_of(unit);
        self.events.values().any(|known| {
            let is_final =
                known.score.as_ref().is_some_and(|score| score.status == domain::Status::Final);
            known.group.as_deref() == Some(group) && known.starts <= now && !is_final
        })
    }

    /// How many events have prices.
    pub fn open_events(&self) -> usize {
        self.events.values().filter(|known| known.markets.values().any(Sent::is_open)).count()
    }

    /// What is open, for programs that are given it when they start.
    pub fn open(&self) -> impl Iterator<Item = (&str, &MarketId)> {
        self.events.iter().flat_map(|(reference, known)| {
            let open = known.markets.iter().filter(|(_, sent)| sent.is_open());
            open.map(move |(id, _)| (&**reference, id))
        })
    }

    /// What follows from a good read.
    pub fn take(&mut self, read: Read, at: ReadAt<'_>, rules: Rules) -> Plan {
        let mut plan = Plan::default();
        if let Some(emptied) = self.would_empty(&read, at) {
            let reads = self.shrunk.entry(group_of(at.unit).into()).or_default();
            *reads += 1;
            if *reads < SHRUNK_READS {
                plan.held_back = Some(emptied);
                return plan;
            }
        }
        self.shrunk.remove(group_of(at.unit));
        let Read { coverage, listings, markets, scores, confirmed, .. } = read;
        let offered = Offer {
            events: listings.iter().map(|listed| listed.reference.clone()).collect(),
            markets: markets
                .iter()
                .map(|m| (m.odds.reference.clone(), market_id(&m.odds)))
                .collect(),
        };
        for listed in listings {
            self.list(listed.reference, listed.listing, at, &mut plan);
        }
        self.note_missing(coverage, &offered, at, rules, &mut plan);
        for market in markets {
            self.quote(market, at, rules, &mut plan);
        }
        for scored in scores {
            self.score(scored.score, scored.ts, at, &mut plan);
        }
        plan.messages.extend(confirmed.iter().map(|beat| heartbeat(*beat, at)));
        self.confirmed.insert(at.unit.into(), confirmed);
        plan
    }

    /// What follows from a read that found nothing new (304).
    pub fn take_unchanged(&mut self, at: ReadAt<'_>) -> Plan {
        let group = group_of(at.unit);
        for known in self.events.values_mut().filter(|known| known.group.as_deref() == Some(group))
        {
            known.seen = at.now;
        }
        let confirmed = self.confirmed.get(at.unit).map_or(&[][..], Vec::as_slice);
        Plan {
            messages: confirmed.iter().map(|beat| heartbeat(*beat, at)).collect(),
            ..Plan::default()
        }
    }

    /// What time alone brings about: prices go when an event starts, where they are not kept in play.
    pub fn tick(&mut self, now: Timestamp, rules: Rules) -> Vec<FeedMessage> {
        let mut messages = Vec::new();
        if rules.in_play {
            return messages;
        }
        for (reference, known) in &mut self.events {
            if known.starts > now {
                continue;
            }
            for (id, sent) in known.markets.iter_mut().filter(|(_, sent)| sent.is_open()) {
                messages.push(sent.withdraw((reference, id), now, known.fresh_for_s));
            }
        }
        messages
    }

    /// Forgets that a message was sent: it was refused, and the next read sends it again.
    pub fn forget(&mut self, message: &FeedMessage) {
        match &message.body {
            Body::Event { reference, .. } => {
                if let Some(known) = self.events.get_mut(reference) {
                    known.listing = None;
                }
            }
            Body::Odds(odds) => {
                let known = self.events.get_mut(&odds.reference);
                let sent = known.and_then(|known| known.markets.remove(&market_id(odds)));
                self.markets -= usize::from(sent.is_some());
            }
            // A score that was refused is refused again until it changes.
            Body::Score(_) | Body::Remove { .. } | Body::Heartbeat { .. } => {}
        }
    }

    fn list(&mut self, reference: Box<str>, listing: Listing, at: ReadAt<'_>, plan: &mut Plan) {
        let group = group_of(at.unit);
        let is_full = self.events.len() >= EVENTS_MAX;
        match self.events.get_mut(&reference) {
            Some(known) => {
                known.seen = at.now;
                if known.group.as_deref() != Some(group) {
                    known.group = Some(group.into());
                }
                if known.listing.as_ref() == Some(&listing) {
                    return;
                }
                (known.starts, known.listing) = (listing.commence_time, Some(listing.clone()));
            }
            None if is_full => {
                plan.too_many += 1;
                return;
            }
            None => {
                let known = Known {
                    starts: listing.commence_time,
                    listing: Some(listing.clone()),
                    group: Some(group.into()),
                    seen: at.now,
                    markets: HashMap::new(),
                    score: None,
                    fresh_for_s: at.fresh_for_s,
                };
                self.events.insert(reference.clone(), known);
            }
        }
        let body = Body::Event { reference, listing };
        plan.messages.push(FeedMessage { ts: Some(at.at.min(at.now)), fresh_for_s: None, body });
    }

    fn quote(&mut self, market: Offered, at: ReadAt<'_>, rules: Rules, plan: &mut Plan) {
        let Offered { mut odds, ts, .. } = market;
        let Some(known) = self.events.get_mut(&odds.reference) else { return };
        (known.seen, known.fresh_for_s) = (at.now, at.fresh_for_s);
        if !rules.in_play && known.starts <= at.now {
            odds.outcomes.clear();
        }
        if ts.is_some_and(|ts| ts > at.now) {
            plan.clamped += 1;
        }
        let ts = ts.map(|ts| ts.min(at.now));
        let id = market_id(&odds);
        match known.markets.get_mut(&id) {
            Some(sent) => {
                let same = sent.outcomes.as_ref() == Some(&odds.outcomes);
                if same && (ts.is_none() || sent.ts == ts || !sent.is_open()) {
                    return;
                }
                (sent.outcomes, sent.ts) = (Some(odds.outcomes.clone()), ts);
            }
            // What has no prices and never had any is not worth a message.
            None if odds.outcomes.is_empty() => return,
            None if self.markets >= MARKETS_MAX => {
                plan.too_many += 1;
                return;
            }
            None => {
                self.markets += 1;
                known.markets.insert(id, Sent { outcomes: Some(odds.outcomes.clone()), ts });
            }
        }
        plan.messages.push(FeedMessage {
            ts: Some(ts.unwrap_or(at.at.min(at.now))),
            fresh_for_s: at.fresh_for_s,
            body: Body::Odds(odds),
        });
    }

    fn score(&mut self, score: ScoreBody, ts: Option<Timestamp>, at: ReadAt<'_>, plan: &mut Plan) {
        let Some(known) = self.events.get_mut(&score.reference) else { return };
        if known.score.as_ref() == Some(&score) {
            return;
        }
        known.score = Some(score.clone());
        let ts = Some(ts.unwrap_or(at.at).min(at.now));
        plan.messages.push(FeedMessage { ts, fresh_for_s: None, body: Body::Score(score) });
    }

    /// Withdraws what a complete read lacks.
    fn note_missing(
        &mut self,
        coverage: Coverage,
        offered: &Offer,
        at: ReadAt<'_>,
        rules: Rules,
        plan: &mut Plan,
    ) {
        if coverage == Coverage::Delta {
            return;
        }
        let prices = matches!(coverage, Coverage::Complete | Coverage::Prices);
        let events = matches!(coverage, Coverage::Complete | Coverage::Events);
        let mut removed = Vec::new();
        for (reference, known) in &mut self.events {
            if !known.is_of(at) {
                continue;
            }
            if prices {
                for (id, sent) in &mut known.markets {
                    if sent.is_open() && !offered.markets.contains(&(reference.clone(), id.clone()))
                    {
                        let ts = sent.withdrawn_at(at);
                        plan.messages.push(sent.withdraw((reference, id), ts, at.fresh_for_s));
                    }
                }
            }
            let is_missing = events && !offered.events.contains(reference);
            if is_missing && at.now.since(known.seen) >= rules.remove_after {
                removed.push(reference.clone());
            }
        }
        removed.sort_unstable();
        for reference in removed {
            self.markets -= self.events.remove(&reference).map_or(0, |known| known.markets.len());
            let body = Body::Remove { reference };
            plan.messages.push(FeedMessage { ts: Some(at.now), fresh_for_s: None, body });
        }
    }

    /// How many events a complete read would leave without prices, where that is more than half of those that have
    /// some.
    fn would_empty(&self, read: &Read, at: ReadAt<'_>) -> Option<usize> {
        if !matches!(read.coverage, Coverage::Complete | Coverage::Prices) {
            return None;
        }
        let priced: BTreeSet<&str> = read
            .markets
            .iter()
            .filter(|market| !market.odds.outcomes.is_empty() || market.suspended)
            .map(|market| &*market.odds.reference)
            .collect();
        let open = self
            .events
            .iter()
            .filter(|(_, known)| known.is_of(at) && known.markets.values().any(Sent::is_open));
        let (mut all, mut emptied) = (0, 0);
        for (reference, _) in open {
            all += 1;
            emptied += usize::from(!priced.contains(&**reference));
        }
        (all >= SHRUNK_EVENTS_MIN && emptied * 2 > all).then_some(emptied)
    }
}

impl Known {
    /// Whether a read of this unit says all there is about it. An event that no read had since the start is of no
    /// unit, so all must have been read.
    fn is_of(&self, at: ReadAt<'_>) -> bool {
        self.group.as_deref().map_or(at.all_read, |group| group == group_of(at.unit))
    }
}

struct Offer {
    events: HashSet<Box<str>>,
    markets: HashSet<(Box<str>, MarketId)>,
}

fn market_id(odds: &OddsBody) -> MarketId {
    (odds.bookmaker, odds.market, odds.group.clone())
}

fn heartbeat((bookmaker, sport): (BookmakerId, SportId), at: ReadAt<'_>) -> FeedMessage {
    let body = Body::Heartbeat { bookmaker, sport: Some(sport) };
    FeedMessage { ts: Some(at.at.min(at.now)), fresh_for_s: at.fresh_for_s, body }
}

#[cfg(test)]
mod tests;

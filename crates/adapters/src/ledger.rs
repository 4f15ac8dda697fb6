//! Decides which messages a read sends: the difference between the upstream's offer and the messages sent before (A14
//! to A19).
//!
//! Pure: reads and the time go in, messages come out. The ledger is rebuilt from the book at every start, and
//! whenever the book did not take a batch.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use domain::message::{Body, FeedMessage, Listing, OddsBody, OfferedOutcome, ScoreBody};
use domain::{BookmakerId, Market, SportId, Timestamp};
use feeds::adapter::{Coverage, Offered, Read};

use crate::sink::OpenEvent;

/// Maximum number of events of one adapter: more than any source offers, and far below 64 MiB with their markets.
pub const EVENTS_MAX: usize = 50_000;
/// Maximum number of markets of one adapter: each takes about 200 bytes here.
pub const MARKETS_MAX: usize = 150_000;
/// With at least this many open events, a read that would empty more than half of them is held back.
const SHRUNK_EVENTS_MIN: usize = 10;
/// This many such reads in a row are accepted.
const SHRUNK_READS: u32 = 3;

/// An adapter's rules for its reads.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Time for which good reads must lack an event before it is removed.
    pub remove_after: Duration,
    /// True if prices stay after an event has started.
    pub in_play: bool,
}

/// The time of a read, and how long it keeps its sources fresh.
#[derive(Clone, Copy, Debug)]
pub struct ReadAt<'a> {
    /// Name of the unit. Units with the same last part belong together: `events/KEY` and `odds/KEY`.
    pub unit: &'a str,
    /// Time when the request was sent, less the age reported by upstream.
    pub at: Timestamp,
    pub now: Timestamp,
    pub fresh_for_s: Option<u32>,
    /// True if every unit had a good complete read since the start, this one included.
    pub all_read: bool,
}

/// The messages and counts that result from a read.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    pub messages: Vec<FeedMessage>,
    /// The number of events that the read would have emptied, if it was held back.
    pub held_back: Option<usize>,
    /// Number of times ahead of our clock, which were set to now.
    pub clamped: u64,
    /// Number of events or markets beyond the maximum of an adapter.
    pub too_many: u64,
}

type MarketId = (BookmakerId, Market, Option<Box<str>>);

/// The offers sent so far, by ref.
#[derive(Debug, Default)]
pub struct Ledger {
    events: HashMap<Box<str>, Known>,
    /// Number of consecutive reads that would have emptied most events, by group of units.
    shrunk: HashMap<Box<str>, u32>,
    /// The sources that the last good read of a unit confirmed, for reads that find nothing new.
    confirmed: HashMap<Box<str>, Vec<(BookmakerId, SportId)>>,
    markets: usize,
}

#[derive(Debug)]
struct Known {
    /// `None`: it is in the book, but its content is not known here.
    listing: Option<Listing>,
    starts: Timestamp,
    /// The group of units that offers it; `None` if no read since the start had it.
    group: Option<Box<str>>,
    /// Time of the last good read that had it.
    seen: Timestamp,
    markets: HashMap<MarketId, Sent>,
    score: Option<ScoreBody>,
    fresh_for_s: Option<u32>,
}

#[derive(Debug)]
struct Sent {
    /// `None`: the book has prices that are not known here.
    outcomes: Option<Vec<OfferedOutcome>>,
    ts: Option<Timestamp>,
}

impl Sent {
    fn is_open(&self) -> bool {
        self.outcomes.as_ref().is_none_or(|outcomes| !outcomes.is_empty())
    }

    /// The `ts` of a withdrawal because a read lacks the market: never before the `ts` of the prices it withdraws.
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
    /// Starts with the feed's open events in the book.
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

    /// The start times of a unit's events, for its schedule.
    pub fn starts(&self, unit: &str) -> impl Iterator<Item = Timestamp> {
        let group = group_of(unit);
        let own = self.events.values().filter(move |known| known.group.as_deref() == Some(group));
        own.map(|known| known.starts)
    }

    /// True if an event of a unit has started and its score is not final.
    pub fn has_begun(&self, unit: &str, now: Timestamp) -> bool {
        let group = group_of(unit);
        self.events.values().any(|known| {
            let is_final =
                known.score.as_ref().is_some_and(|score| score.status == domain::Status::Final);
            known.group.as_deref() == Some(group) && known.starts <= now && !is_final
        })
    }

    /// The open markets, for programs that receive them when they start.
    pub fn open(&self) -> impl Iterator<Item = (&str, &MarketId)> {
        self.events.iter().flat_map(|(reference, known)| {
            let open = known.markets.iter().filter(|(_, sent)| sent.is_open());
            open.map(move |(id, _)| (&**reference, id))
        })
    }

    /// The messages that a good read requires.
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

    /// The messages after a read that found nothing new (304).
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

    /// The messages due to the time alone: unless prices are kept in play, they are withdrawn when an event starts.
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

    /// Forgets a message that was refused, so that the next read sends it again.
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
            // A score that was refused would be refused again until it changes.
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
            // A market that never had prices needs no message.
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

    /// Withdraws the markets and removes the events that a complete read lacks.
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

    /// Number of events that a complete read would leave without prices, if that is more than half of the events with
    /// prices.
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
    /// True if a read of this unit is complete for the event. An event that no read since the start had belongs to no
    /// unit, so every unit must have been read.
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

//! Restricts an analysis: to lines, bookmakers and ages (N4, N5).

use std::time::Duration;

use domain::{BookmakerId, BookmakerSet, EventId, Line as Point, Market, Quote, RecordId, SportId};
use domain::{Status, Timestamp};
use serde::{Deserialize, Serialize};

use crate::analysis::line::{Analysis, MarketLine, Offer, Priced, SportLines, is_field};
use crate::book::OutcomeName;
use crate::select::EventIds;
use crate::snapshot::{EventRow, Snapshot, SportView};

/// The lines, and the bookmakers whose prices in them are used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    pub sport: SportId,
    pub market: Option<Market>,
    pub events: EventIds,
    /// Inclusive.
    pub from: Option<Timestamp>,
    /// Exclusive.
    pub to: Option<Timestamp>,
    pub status: Option<Status>,
    /// The bookmakers at which bets are possible.
    pub bookmakers: BookmakerSet,
    /// Seconds; the snapshot's own limit if absent.
    pub max_age_s: Option<u32>,
}

/// End of a page of lines: the sort key of its last line, so that it means the same position in every epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LineCursor {
    pub commence_time: Timestamp,
    pub event: EventId,
    pub market: Market,
    pub point: Option<Point>,
    /// Empty for a field, which has one line.
    pub names: Vec<OutcomeName>,
}

/// Counts of offers that were not used, by the first reason, and of lines without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    pub stale: u32,
    pub incomplete: u32,
    pub underround: u32,
    /// Number of lines with too few sources.
    pub thin: u32,
    /// Number of lines for which the method has no result.
    pub undefined: u32,
}

/// One price that can be bet on.
#[derive(Clone, Copy, Debug)]
pub struct Leg {
    pub name: OutcomeName,
    pub point: Option<Point>,
    pub quote: Quote,
    pub bookmaker: BookmakerId,
    pub record: RecordId,
    pub last_update: Timestamp,
    pub age_s: u64,
    pub underround: bool,
}

/// The treatment of offers whose prices alone add up to too little (N6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Underround {
    Show,
    Refuse,
}

/// A filter over a snapshot.
#[derive(Debug)]
pub struct Scope<'a> {
    pub snapshot: &'a Snapshot,
    pub view: &'a SportView,
    pub max_age: Duration,
    lines: &'a SportLines,
    filter: &'a Filter,
    /// Positions of the requested events, sorted.
    events: Option<Vec<u32>>,
    /// Selects the markets for which the request has lines.
    markets: fn(Market) -> bool,
}

/// Splits lines into pages.
#[derive(Debug)]
pub(crate) struct Pager<'a> {
    after: Option<&'a LineCursor>,
    room: usize,
    last: Option<&'a MarketLine>,
    /// The cursor of the next page, if there is one.
    pub(crate) next: Option<LineCursor>,
}

impl<'a> Pager<'a> {
    pub(crate) fn new(after: Option<&'a LineCursor>, limit: usize) -> Self {
        Self { after, room: limit, last: None, next: None }
    }

    /// True if the next line belongs to the page.
    pub(crate) fn admits(&mut self, scope: &Scope<'_>, line: &'a MarketLine) -> bool {
        if self.next.is_some() || self.after.is_some_and(|after| !scope.is_after(line, after)) {
            return false;
        }
        if self.room == 0 {
            self.next = self.last.and_then(|last| scope.cursor(last));
            return false;
        }
        self.room -= 1;
        self.last = Some(line);
        true
    }
}

impl<'a> Scope<'a> {
    /// Applies a filter; `None` for a sport that the snapshot does not have.
    pub fn new(
        filter: &'a Filter,
        snapshot: &'a Snapshot,
        analysis: &'a Analysis,
        markets: fn(Market) -> bool,
    ) -> Option<Self> {
        let view = snapshot.sport(filter.sport);
        let lines = analysis.sport(snapshot, filter.sport)?;
        let events = filter.events.as_ref().map(|ids| {
            let positions = ids.iter().filter_map(|id| view.event_position(*id));
            let mut events: Vec<u32> = positions.filter_map(|at| u32::try_from(at).ok()).collect();
            events.sort_unstable();
            events
        });
        let max_age = filter
            .max_age_s
            .map_or(snapshot.stale_after, |seconds| Duration::from_secs(seconds.into()));
        Some(Self { snapshot, view, max_age, lines, filter, events, markets })
    }

    /// The requested lines, in order, with their events.
    pub fn lines(&self) -> impl Iterator<Item = (&'a EventRow, &'a MarketLine)> + '_ {
        let lines = self.lines.lines.iter().filter(|line| self.wants(line.event, line.market));
        lines.filter_map(|line| Some((self.event(line)?, line)))
    }

    pub fn event(&self, line: &MarketLine) -> Option<&'a EventRow> {
        self.view.events.get(usize::try_from(line.event).ok()?)
    }

    fn wants(&self, event: u32, market: Market) -> bool {
        let Filter { market: wanted, from, to, status, .. } = self.filter;
        let row = usize::try_from(event).ok().and_then(|at| self.view.events.get(at));
        (self.markets)(market)
            && wanted.is_none_or(|wanted| wanted == market)
            && self.events.as_ref().is_none_or(|events| events.binary_search(&event).is_ok())
            && row.is_some_and(|row| {
                status.is_none_or(|status| status == row.status)
                    && from.is_none_or(|from| row.commence_time >= from)
                    && to.is_none_or(|to| row.commence_time < to)
            })
    }

    /// Counts the partial sets of some bookmakers, which are never used.
    pub(crate) fn count_partial(&self, bookmakers: &BookmakerSet, refused: &mut Refused) {
        let asked = self.lines.partial.iter().filter(|partial| {
            bookmakers.contains(partial.bookmaker) && self.wants(partial.event, partial.market)
        });
        for partial in asked {
            if self.is_stale(partial.last_update) {
                refused.stale += 1;
            } else {
                refused.incomplete += 1;
            }
        }
    }

    /// The offers of a line that can be bet on; counts the others.
    pub(crate) fn usable(
        &self,
        line: &'a MarketLine,
        underround: Underround,
        refused: &mut Refused,
    ) -> Vec<&'a Offer> {
        let mut usable = Vec::with_capacity(line.offers.len());
        for offer in &line.offers {
            if !self.filter.bookmakers.contains(offer.bookmaker) {
                continue;
            }
            if self.is_stale(offer.last_update) {
                refused.stale += 1;
            } else if offer.underround && underround == Underround::Refuse {
                refused.underround += 1;
            } else {
                usable.push(offer);
            }
        }
        usable
    }

    pub(crate) fn bookmakers(&self) -> &BookmakerSet {
        &self.filter.bookmakers
    }

    pub(crate) fn is_stale(&self, last_update: Timestamp) -> bool {
        self.snapshot.cut_at.since(last_update) > self.max_age
    }

    /// Age at the publication, in whole seconds.
    pub fn age_s(&self, last_update: Timestamp) -> u64 {
        self.snapshot.cut_at.since(last_update).as_secs()
    }

    pub(crate) fn leg(&self, line: &MarketLine, offer: &Offer, priced: &Priced) -> Option<Leg> {
        let name = *line.names.get(usize::from(priced.name))?;
        Some(Leg {
            name,
            point: line.point_of(name),
            quote: priced.quote,
            bookmaker: offer.bookmaker,
            record: offer.record,
            last_update: offer.last_update,
            age_s: self.age_s(offer.last_update),
            underround: offer.underround,
        })
    }

    /// True if a line comes after a cursor.
    pub(crate) fn is_after(&self, line: &MarketLine, cursor: &LineCursor) -> bool {
        let Some(event) = self.event(line) else { return false };
        let (here, there) = ((event.commence_time, event.id), (cursor.commence_time, cursor.event));
        let names = |names: &[OutcomeName]| -> Vec<&str> {
            names.iter().map(|name| event.outcome_text(*name)).collect()
        };
        here.cmp(&there)
            .then_with(|| (line.market, line.point).cmp(&(cursor.market, cursor.point)))
            .then_with(|| names(paged_names(line)).cmp(&names(&cursor.names)))
            .is_gt()
    }

    pub(crate) fn cursor(&self, line: &MarketLine) -> Option<LineCursor> {
        let event = self.event(line)?;
        Some(LineCursor {
            commence_time: event.commence_time,
            event: event.id,
            market: line.market,
            point: line.point,
            names: paged_names(line).to_vec(),
        })
    }
}

/// The names that distinguish a line from others with the same market and point.
fn paged_names(line: &MarketLine) -> &[OutcomeName] {
    if is_field(line.market) { &[] } else { &line.names }
}

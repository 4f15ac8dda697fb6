//! The reason why a price is there or missing: exactly one state for every event, bookmaker and market of a snapshot.

use domain::{BookmakerId, BookmakerSet, EventId, Market, SportId, Status, Timestamp};

use crate::book::FeedIx;
use crate::snapshot::{EventRow, Snapshot, SourceRow, SportView};

/// The state of one event, bookmaker and market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// There are records; more than one if a market has pairings.
    Priced { records: u32, last_update: Timestamp, stale: bool },
    /// The event is final, and its odds were removed.
    Ended,
    /// Closed by a source that still lists the event.
    Suspended { since: Timestamp },
    /// Was priced by a source that no longer lists the event.
    Withdrawn { since: Timestamp },
    /// No feed delivers the bookmaker in the sport.
    NoSource,
    /// Not read for so long that the state is unknown.
    SourceStale { last_read: Timestamp },
    /// The source lists an event that may be this one.
    Unsure { may_be: EventId },
    /// The source was read and does not list the event.
    NotListed { last_read: Timestamp },
    /// The source lists the event and never had the market for it.
    NotOffered { last_read: Timestamp },
}

/// The restrictions of an answer, one for each parameter that was sent or has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CellFilter {
    pub market: Option<Market>,
    pub bookmaker: Option<BookmakerId>,
    /// The bookmakers of the regions.
    pub regions: Option<BookmakerSet>,
}

/// The cells of a sport to count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoverageSelection {
    pub sport: SportId,
    pub filter: CellFilter,
}

/// The event to explain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExplainSelection {
    pub sport: SportId,
    pub event: EventId,
    pub filter: CellFilter,
}

/// The parameter that excludes a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    Market,
    Bookmaker,
    Regions,
}

impl CellFilter {
    /// The first parameter that excludes a cell, if any.
    pub fn excludes(&self, bookmaker: BookmakerId, market: Market) -> Option<Exclusion> {
        if self.market.is_some_and(|only| only != market) {
            return Some(Exclusion::Market);
        }
        self.excludes_bookmaker(bookmaker)
    }

    /// The first parameter that excludes all markets of a bookmaker, if any.
    pub fn excludes_bookmaker(&self, bookmaker: BookmakerId) -> Option<Exclusion> {
        if self.bookmaker.is_some_and(|only| only != bookmaker) {
            Some(Exclusion::Bookmaker)
        } else if self.regions.is_some_and(|regions| !regions.contains(bookmaker)) {
            Some(Exclusion::Regions)
        } else {
            None
        }
    }
}

impl Snapshot {
    /// Visits every cell of an event, in the order of bookmakers, then markets.
    pub fn visit_cells(
        &self,
        sport: SportId,
        event: &EventRow,
        mut visit: impl FnMut(BookmakerId, Market, Cell),
    ) {
        let view = self.sport(sport);
        let markets = self.markets(sport);
        let mut records = event.records.clone().filter_map(|at| view.record(at)).peekable();
        let mut closed = event.closed.iter().peekable();
        for (bookmaker, _) in self.catalogue().bookmakers() {
            let source = view.source(bookmaker);
            let missing = view.missing(event, source);
            for market in &markets {
                let here = (bookmaker, *market);
                let mut priced = None;
                while let Some(row) = records.next_if(|row| (row.bookmaker, row.market) <= here) {
                    let (count, last) = priced.unwrap_or((0, row.last_update));
                    priced = Some((count + 1, row.last_update.max(last)));
                }
                let mut gone = None;
                while let Some(row) = closed.next_if(|row| (row.bookmaker, row.market) <= here) {
                    gone = Some(row);
                }
                let cell = match (priced, gone) {
                    (Some((records, last_update)), _) => {
                        let stale = self.cut_at.since(last_update) > self.stale_after;
                        Cell::Priced { records, last_update, stale }
                    }
                    // A source that was forgotten does not count, whatever markets it left.
                    (None, Some(row)) if missing != Cell::NoSource => match row.listed {
                        true => Cell::Suspended { since: row.since },
                        false => Cell::Withdrawn { since: row.since },
                    },
                    (None, _) => missing,
                };
                visit(bookmaker, *market, cell);
            }
        }
    }

    /// The markets of a sport, in the order of records.
    pub fn markets(&self, sport: SportId) -> Vec<Market> {
        let mut markets = self.catalogue().sport(sport).markets.clone();
        markets.sort_unstable();
        markets
    }
}

impl SportView {
    /// A bookmaker's source, if any feed has quoted it in the sport.
    pub fn source(&self, bookmaker: BookmakerId) -> Option<&SourceRow> {
        let at = self.sources.binary_search_by_key(&bookmaker, |row| row.bookmaker).ok()?;
        self.sources.get(at).filter(|row| !row.quoted_by.is_empty())
    }

    /// The state of a market that never had a price.
    fn missing(&self, event: &EventRow, source: Option<&SourceRow>) -> Cell {
        if event.status == Status::Final {
            return Cell::Ended;
        }
        let Some(row) = source else { return Cell::NoSource };
        let last_read = row.source.read_at;
        let lists = |feeds: &[FeedIx]| feeds.iter().any(|feed| row.quoted_by.contains(feed));
        if row.stale {
            return Cell::SourceStale { last_read };
        }
        let other = |id: &&EventId| self.event(**id).is_some_and(|other| lists(&other.listed_by));
        if let Some(may_be) = event.may_be.iter().find(other) {
            return Cell::Unsure { may_be: *may_be };
        }
        if lists(&event.listed_by) {
            Cell::NotOffered { last_read }
        } else {
            Cell::NotListed { last_read }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::snapshot::ClosedRow;

    /// C9: a closed slot adds a row, an open one adds nothing.
    #[test]
    fn what_coverage_adds_to_a_snapshot_is_small() {
        assert!(size_of::<ClosedRow>() <= 64, "{} bytes", size_of::<ClosedRow>());
    }
}

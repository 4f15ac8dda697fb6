//! Text for each cell of an event: why its price is present or missing.

use domain::{BookmakerId, SportId, Timestamp};
use market::snapshot::EventRow;
use market::{Cell, Snapshot};

use crate::dashboard::time_text::{TimeText, span};

/// Cells of an event: a row for each bookmaker with a source, a column for each market.
pub(crate) struct Cells {
    pub(crate) markets: Vec<&'static str>,
    pub(crate) rows: Vec<BookCells>,
    /// Bookmakers that no feed delivers for this sport.
    pub(crate) no_source: String,
}

/// One bookmaker's cells.
pub(crate) struct BookCells {
    bookmaker: BookmakerId,
    pub(crate) title: String,
    /// Each market with the text of its cell.
    pub(crate) texts: Vec<(&'static str, String)>,
    /// The feeds behind them, for operators; empty for other roles.
    pub(crate) feeds: Vec<String>,
}

impl Cells {
    pub(crate) fn new(snapshot: &Snapshot, sport: SportId, event: &EventRow) -> Self {
        let markets = snapshot.markets(sport).into_iter().map(domain::Market::key).collect();
        let mut rows: Vec<(BookCells, bool)> = Vec::new();
        snapshot.visit_cells(sport, event, |bookmaker, market, cell| {
            if rows.last().is_none_or(|(last, _)| last.bookmaker != bookmaker) {
                let title = snapshot.catalogue().bookmaker(bookmaker).title.to_string();
                let (texts, feeds) = Default::default();
                rows.push((BookCells { bookmaker, title, texts, feeds }, false));
            }
            if let Some((row, delivered)) = rows.last_mut() {
                row.texts.push((market.key(), text(cell, snapshot.cut_at)));
                *delivered |= cell != Cell::NoSource;
            }
        });
        let (shown, none): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, shown)| *shown);
        let none: Vec<String> = none.into_iter().map(|(row, _)| row.title).collect();
        Self {
            markets,
            rows: shown.into_iter().map(|(row, _)| row).collect(),
            no_source: none.join(", "),
        }
    }

    /// Adds the feeds behind each bookmaker, as shown to operators.
    pub(crate) fn with_feeds(
        mut self,
        snapshot: &Snapshot,
        sport: SportId,
        shown: impl Fn(&str) -> String,
    ) -> Self {
        for row in &mut self.rows {
            let feeds = snapshot.feeds_quoting(sport, row.bookmaker);
            row.feeds = feeds.into_iter().map(&shown).collect();
        }
        self
    }

    pub(crate) fn has_feeds(&self) -> bool {
        self.rows.iter().any(|row| !row.feeds.is_empty())
    }
}

/// Text of a cell.
pub(crate) fn text(cell: Cell, now: Timestamp) -> String {
    match cell {
        Cell::Priced { last_update, stale, .. } => {
            let age = span(now.since(last_update));
            if stale { format!("priced, late {age}") } else { format!("priced, {age} old") }
        }
        Cell::Ended => "ended".to_owned(),
        Cell::Suspended { since } => format!("suspended since {}", instant(since, now)),
        Cell::Withdrawn { since } => format!("withdrawn since {}", instant(since, now)),
        Cell::NoSource => "no feed delivers it".to_owned(),
        Cell::SourceStale { last_read } => format!("not read since {}", instant(last_read, now)),
        Cell::Unsure { may_be } => format!("may be {may_be}"),
        Cell::NotListed { .. } => "not listed".to_owned(),
        Cell::NotOffered { .. } => "not offered".to_owned(),
    }
}

/// The time of day, with the date if it is not today.
fn instant(at: Timestamp, now: Timestamp) -> String {
    let time = TimeText::time(at);
    if TimeText::day(at) == TimeText::day(now) {
        time
    } else {
        format!("{}, {time}", TimeText::day(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_reported_in_words_with_its_time() {
        let now = Timestamp::parse("2026-11-14T23:38:30Z").unwrap();
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let since = at("2026-11-14T23:31:02Z");
        assert_eq!(text(Cell::Suspended { since }, now), "suspended since 23:31");
        let last_read = at("2026-11-12T08:00:00Z");
        assert_eq!(text(Cell::SourceStale { last_read }, now), "not read since 12 Nov, 08:00");
        let last_update = at("2026-11-14T23:38:26Z");
        let priced = |stale| text(Cell::Priced { records: 1, last_update, stale }, now);
        assert_eq!([priced(false), priced(true)], ["priced, 4 s old", "priced, late 4 s"]);
    }
}

//! Fragments of an event with its prices: built once for each of the filters that most clients use, and concatenated
//! for every response that needs them (see `answers::fragment_cache`).

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use domain::v4::{BookmakerId, BookmakerSet};
use domain::{EventId, SportId, Status, Timestamp};
use market::snapshot::{EventRow, RecordRow};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::answers::{Answer, Fragment};
use crate::v4::selection::{Markets, Selection, SportFilter, Style};
use crate::v4::wire::event::{EventText, put_time};
use crate::v4::wire::odds::{
    Bookmaker, MarketText, OddsEvent, latest, write_bookmaker, write_bookmaker_end, write_market,
};
use crate::v4::wire::window::choose;
use crate::v4::wire::{Source, of_pieces};

/// Prices of an event to show, and their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    bookmakers: BookmakerSet,
    markets: Markets,
    style: Style,
}

/// An event with its prices, followed by a comma.
#[derive(Debug)]
pub(crate) struct OddsFragment {
    text: Bytes,
    content_hash: u64,
    /// The markets with prices.
    markets: Markets,
}

impl Fragment for OddsFragment {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }
}

/// Minimum size of a separate piece; shorter text is copied because a piece costs more.
const PIECE_BYTES_MIN: usize = 1 << 10;

/// The open events of a selection with their prices.
pub(super) fn odds(source: &Source<'_>, selection: &Selection) -> Answer {
    let chosen = choose(source, selection, |event| event.status != Status::Final);
    let mut pieces = Vec::with_capacity(chosen.len().min(64) + 2);
    let mut hashes = Vec::with_capacity(size_of::<u64>() * chosen.len());
    let mut copied: Vec<u8> = vec![b'['];
    let mut priced = false;
    for (sport, at, event) in &chosen {
        let filter = filter(source, selection, *sport);
        let fragment = fragment(source, (*sport, *at, event), filter);
        priced |= fragment.markets.count() > 0;
        hashes.extend_from_slice(&fragment.content_hash.to_le_bytes());
        if fragment.text.len() < PIECE_BYTES_MIN {
            copied.extend_from_slice(&fragment.text);
            continue;
        }
        if !copied.is_empty() {
            pieces.push(Bytes::from(std::mem::take(&mut copied)));
        }
        pieces.push(fragment.text.clone());
    }
    if !copied.is_empty() {
        pieces.push(Bytes::from(copied));
    }
    if let (Some(last), false) = (pieces.last_mut(), chosen.is_empty()) {
        // The comma after the last event.
        last.truncate(last.len().saturating_sub(1));
    }
    pieces.push(Bytes::from_static(b"]"));
    of_pieces(xxh3_128(&hashes), pieces, u32::from(priced))
}

/// One event with its prices, or with the markets offered for it.
pub(super) fn event_odds(
    source: &Source<'_>,
    selection: &Selection,
    id: Option<EventId>,
) -> Answer {
    let found = id.and_then(|id| source.find_event(&selection.sport, id));
    let sport = match &selection.sport {
        SportFilter::Whole(sport) | SportFilter::Key(sport, _) => Some(*sport),
        SportFilter::All | SportFilter::Upcoming(_) => None,
    };
    // The caller found it in the same snapshot.
    let (Some((at, event)), Some(sport)) = (found, sport) else {
        return Answer::new(Vec::new(), None);
    };
    let fragment = fragment(source, (sport, at, event), filter(source, selection, sport));
    let text = fragment.text.slice(..fragment.text.len().saturating_sub(1));
    let units = fragment.markets.count();
    let units = if selection.style.has(Style::MARKETS_ONLY) { units.min(1) } else { units };
    // A single event differs from a list of one event.
    of_pieces(u128::from(fragment.content_hash) << 1 | 1, vec![text], units)
}

fn filter(source: &Source<'_>, selection: &Selection, sport: SportId) -> Filter {
    let Selection { bookmakers, markets, style, .. } = *selection;
    let markets = markets.of_sport(source.snapshot.catalogue().sport(sport));
    Filter { bookmakers, markets, style }
}

fn fragment(
    source: &Source<'_>,
    (sport, at, event): (SportId, usize, &EventRow),
    filter: Filter,
) -> Arc<OddsFragment> {
    let view = source.snapshot.sport(sport);
    let make = || OddsFragment::new(source, sport, event, filter);
    let size = (view.events.len(), view.records.len());
    let kept = source.publication.fragments.of_sport(source.snapshot, sport);
    match kept.and_then(|kept| kept.cell(&filter, size, at)) {
        Some(cell) => match cell.get() {
            Some(fragment) => fragment,
            None if cell.has_room() => cell.get_or_make(make),
            None => Arc::new(make()),
        },
        None => Arc::new(make()),
    }
}

impl OddsFragment {
    fn new(source: &Source<'_>, sport: SportId, event: &EventRow, filter: Filter) -> Self {
        let (rows, runs) = runs(source, sport, event, filter);
        let mut writer = Writer {
            source,
            sport,
            event,
            style: filter.style,
            out: Vec::with_capacity(512 + 384 * runs.len()),
            markets: Markets::default(),
            stamp: (Timestamp::from_secs(i64::MIN), Vec::new()),
        };
        let text = EventText::of(source.snapshot, source.wire, event);
        text.write(event, filter.style, &mut writer.out);
        writer.out.extend_from_slice(OddsEvent::BOOKMAKERS.next.as_bytes());
        writer.out.push(b'[');
        for (bookmaker, run) in &runs {
            writer.bookmaker(*bookmaker, rows.get(run.clone()).unwrap_or_default());
        }
        if !runs.is_empty() {
            writer.out.pop();
        }
        writer.out.extend_from_slice(b"]},");
        let Writer { out, markets, .. } = writer;
        Self { content_hash: xxh3_64(&out), text: Bytes::from(out), markets }
    }
}

/// The rows that match a filter, grouped by bookmaker of `/v4` in the order of their keys.
fn runs<'a>(
    source: &Source<'a>,
    sport: SportId,
    event: &EventRow,
    filter: Filter,
) -> (Vec<&'a RecordRow>, Vec<(BookmakerId, Range<usize>)>) {
    let view = source.snapshot.sport(sport);
    let names = source.snapshot.catalogue().v4();
    let shown = event
        .records
        .clone()
        .filter(|at| view.kind(*at).is_some_and(|(_, market)| filter.markets.contains(market)));
    let rows: Vec<&RecordRow> = shown.filter_map(|at| view.record(at)).collect();
    let mut runs = Vec::with_capacity(rows.len());
    let mut from = 0;
    // Rows are ordered by our bookmakers, then by market.
    for of_one in rows.chunk_by(|one, other| one.bookmaker == other.bookmaker) {
        let run = from..from + of_one.len();
        from = run.end;
        let entries = of_one.first().map_or(&[][..], |first| names.entries_of(first.bookmaker));
        let wanted = entries.iter().filter(|id| filter.bookmakers.contains(**id));
        runs.extend(wanted.map(|id| (*id, run.clone())));
    }
    runs.sort_unstable_by_key(|(id, _)| *id);
    (rows, runs)
}

/// Writes an event's prices.
struct Writer<'a> {
    source: &'a Source<'a>,
    sport: SportId,
    event: &'a EventRow,
    style: Style,
    out: Vec<u8>,
    markets: Markets,
    /// A time and its text. Neighbouring rows mostly have the same time.
    stamp: (Timestamp, Vec<u8>),
}

impl Writer<'_> {
    /// Appends a bookmaker with its markets, and a comma.
    fn bookmaker(&mut self, id: BookmakerId, rows: &[&RecordRow]) {
        let catalogue = self.source.snapshot.catalogue();
        let Some(bookmaker) = catalogue.v4().bookmaker(id) else { return };
        write_bookmaker(&bookmaker.key, &bookmaker.title, &mut self.out);
        if !self.style.has(Style::OF_EVENT) {
            self.out.extend_from_slice(Bookmaker::LAST_UPDATE.next.as_bytes());
            self.put_stamp(latest(rows));
        }
        self.out.extend_from_slice(Bookmaker::MARKETS.next.as_bytes());
        self.out.push(b'[');
        for market in rows.chunk_by(|one, other| one.market == other.market) {
            self.market(market);
            self.out.push(b',');
        }
        self.out.pop();
        write_bookmaker_end(self.style, &mut self.out);
        self.out.push(b',');
    }

    fn market(&mut self, rows: &[&RecordRow]) {
        let Some(first) = rows.first() else { return };
        self.markets.insert(first.market);
        if let ([row], true) = (rows, self.style.is_rendered()) {
            let Source { snapshot, wire, .. } = self.source;
            let rendered = snapshot.rendered_record(wire, self.event, row);
            if !rendered.bytes.is_empty() {
                self.stamp(row.last_update);
                MarketText(rendered).write(&self.stamp.1, self.style, &mut self.out);
                return;
            }
        }
        let sport = self.source.snapshot.catalogue().sport(self.sport);
        write_market(sport, self.event, rows, self.style, &mut self.out);
    }

    fn put_stamp(&mut self, time: Timestamp) {
        self.stamp(time);
        self.out.extend_from_slice(&self.stamp.1);
    }

    /// Updates the text of the time.
    fn stamp(&mut self, time: Timestamp) {
        if self.stamp.1.is_empty() || self.stamp.0.as_secs() != time.as_secs() {
            self.stamp.0 = time;
            self.stamp.1.clear();
            put_time(time, self.style, &mut self.stamp.1);
        }
    }
}

//! Entries of the log as rows.

use domain::message::Fixture;
use domain::score::Side;
use domain::{EventId, Line, Market, Quote, RecordId, Timestamp};
use market::book::{Event, OutcomeName, Record};
use market::change::{MarketKey, Quoted, Reported, Who};
use market::{Book, CHANGE_VERSION, Change};

use crate::Entry;
use crate::frame::{Cell, Frame};

/// The reason if the bookmaker reports that nothing is priced.
const NO_PRICES: &str = "no_prices";

/// The kind of rows of `internal` that hold only what `odds` has no column for.
pub(crate) const QUOTED: &str = "quoted";

/// The name of an entry's kind in `internal`.
const fn kind(change: &Change) -> &'static str {
    match change {
        Change::Founded { .. } => "founded",
        Change::Listed(_) => "listed",
        Change::Quoted(_) => QUOTED,
        Change::Confirmed { .. } => "confirmed",
        Change::Scored { .. } => "scored",
        Change::Withdrawn { .. } => "withdrawn",
        Change::Beat { .. } => "beat",
        Change::Expired { .. } => "expired",
        Change::SourceForgotten { .. } => "source_forgotten",
        Change::Cut { .. } => "cut",
        Change::Joined(_) => "joined",
        Change::Merged { .. } => "merged",
        Change::Split { .. } => "split",
        Change::Doubted { .. } => "doubted",
        Change::Cleared { .. } => "cleared",
        Change::Parted { .. } => "parted",
        Change::Taught { .. } => "taught",
        Change::Untaught { .. } => "untaught",
        Change::Dropped { .. } => "dropped",
        Change::Paced { .. } => "paced",
        Change::Configured(_) => "configured",
        Change::Unlogged { .. } => "unlogged",
    }
}

const fn millis(at: Timestamp) -> Cell<'static> {
    Cell::Number(at.as_millis())
}

/// Placeholder until the time of publication is known.
const UNPUBLISHED: Cell<'static> = Cell::Number(0);

fn sport_of<'a>(book: &'a Book, event: Option<&Event>) -> Option<&'a str> {
    event.map(|event| &*book.catalogue().sport(event.sport).key)
}

/// The record of a market.
pub(crate) fn record_id(event: EventId, market: &MarketKey) -> RecordId {
    RecordId::new(event, &market.bookmaker, market.market, market.group.as_deref())
}

/// Adds an entry that has no columns of its own.
pub(crate) fn push_internal(frame: &mut Frame, entry: &Entry) {
    let mut bytes = Vec::new();
    if let Change::Quoted(quoted) = &entry.change {
        bytes.extend_from_slice(quoted.feed.as_bytes());
    } else {
        bytes.push(CHANGE_VERSION);
        entry.change.encode(&mut bytes);
    }
    frame.push(&[
        Cell::unsigned(entry.seq),
        millis(entry.at),
        UNPUBLISHED,
        Cell::Text(kind(&entry.change)),
        Cell::Bytes(&bytes),
    ]);
}

pub(crate) fn push_epoch(frame: &mut Frame, entry: &Entry, cut: Timestamp, book: &Book) {
    let configured = book.configured();
    let unsigned = |number: Option<u64>| number.map_or(Cell::Null, Cell::unsigned);
    frame.push(&[
        Cell::unsigned(entry.seq),
        millis(entry.at),
        millis(cut),
        unsigned(configured.map(|configured| configured.refresh_interval_ms)),
        unsigned(configured.map(|configured| configured.stale_after_ms)),
        Cell::text(configured.map(|configured| &*configured.catalogue)),
        Cell::text(configured.map(|configured| &*configured.program)),
    ]);
}

/// The columns of a row of odds without the outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OddsHead<'a> {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) ts: Timestamp,
    /// `None`: it is set once it is known, together with whether it is shown.
    pub(crate) published_at: Option<Timestamp>,
    pub(crate) sport: Option<&'a str>,
    pub(crate) event: EventId,
    pub(crate) record: RecordId,
    pub(crate) bookmaker: &'a str,
    pub(crate) market: Market,
    pub(crate) group: Option<&'a str>,
    /// The last shown freshness of prices that are not shown any more; for prices shown without such a quote, their
    /// present freshness.
    pub(crate) last_update: Option<Timestamp>,
}

/// The outcome of a row of odds.
pub(crate) struct Offer<'a> {
    pub(crate) side: Option<&'static str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) quote: Quote,
    pub(crate) point: Option<Line>,
}

/// Adds a row for each outcome, or one with the reason why there is none.
fn push_offers<'a>(
    frame: &mut Frame,
    head: &OddsHead<'_>,
    offers: impl ExactSizeIterator<Item = Offer<'a>>,
    reason: Option<&str>,
) {
    let (event_id, record_id) = (head.event.to_string(), head.record.to_string());
    let outcomes = i64::try_from(offers.len()).unwrap_or(i64::MAX);
    let last_update = head.last_update.map_or(Cell::Null, millis);
    let head = [
        Cell::unsigned(head.seq),
        millis(head.at),
        millis(head.ts),
        head.published_at.map_or(UNPUBLISHED, millis),
        Cell::Flag(head.published_at.is_some()),
        Cell::text(head.sport),
        Cell::Text(&event_id),
        Cell::Text(&record_id),
        Cell::Text(head.bookmaker),
        Cell::Text(head.market.key()),
        Cell::text(head.group),
        Cell::Number(outcomes),
    ];
    if outcomes == 0 {
        let none = [Cell::Null; 9];
        push_row(frame, &[&head[..], &none, &[Cell::text(reason), last_update]]);
    }
    for (n, offer) in (1..).zip(offers) {
        let mut decimal = String::new();
        let price = offer.quote.price;
        price.write_decimal(&mut decimal);
        let priced = [
            Cell::Number(n),
            Cell::text(offer.name),
            Cell::text(offer.side),
            Cell::Text(offer.quote.format.key()),
            Cell::unsigned(price.profit()),
            Cell::unsigned(price.stake()),
            decimal.parse().map_or(Cell::Null, Cell::Double),
            Cell::number(i64::try_from(price.american()).ok()),
            Cell::number(offer.point.map(|point| i64::from(point.quarters()) * 25)),
            Cell::Null,
            last_update,
        ];
        push_row(frame, &[&head[..], &priced]);
    }
}

/// Adds a row whose further columns are filled separately.
fn push_row(frame: &mut Frame, cells: &[&[Cell<'_>]]) {
    let mut cells = cells.concat();
    cells.resize(frame.values.len(), Cell::Null);
    frame.push(&cells);
}

/// Adds a closing line, which may have a reason and prices.
pub(crate) fn push_closing<'a>(
    frame: &mut Frame,
    head: &OddsHead<'_>,
    offers: impl ExactSizeIterator<Item = Offer<'a>>,
    reason: Option<&str>,
) {
    let from = frame.rows();
    push_offers(frame, head, offers, reason);
    let column = frame.column("reason");
    for row in (from..frame.rows()).filter(|_| reason.is_some()) {
        frame.set_text(column, row, reason.unwrap_or_default());
    }
}

/// Adds the rows of a price change. `book` is the book after the entry.
pub(crate) fn push_odds(frame: &mut Frame, entry: &Entry, quoted: &Quoted, book: &Book) {
    let event = book.event(quoted.event);
    let head = OddsHead {
        seq: entry.seq,
        at: entry.at,
        ts: quoted.ts,
        published_at: None,
        sport: sport_of(book, event),
        event: quoted.event,
        record: record_id(quoted.event, &quoted.market),
        bookmaker: &quoted.market.bookmaker,
        market: quoted.market.market,
        group: quoted.market.group.as_deref(),
        last_update: None,
    };
    let offers = quoted.outcomes.iter().map(|outcome| {
        let (side, name) = name_of(&outcome.who, event);
        Offer { side, name, quote: outcome.quote, point: outcome.point }
    });
    push_offers(frame, &head, offers, Some(NO_PRICES));
}

/// Adds prices that are shown without such a quote: their event was renamed, or joined with another. `beat_seen` is
/// the newest heartbeat of their source when they were quoted: only a later one confirms them.
pub(crate) fn push_shown(
    frame: &mut Frame,
    head: &OddsHead<'_>,
    (event, record): (&Event, &Record),
    beat_seen: Option<Timestamp>,
) {
    let from = frame.rows();
    let offers = record.outcomes.iter().map(|outcome| Offer {
        side: outcome.name.side_key(),
        name: Some(event.outcome_text(outcome.name)),
        quote: outcome.quote,
        point: outcome.point,
    });
    push_offers(frame, head, offers, Some(NO_PRICES));
    let column = frame.column("beat_seen");
    for row in from..frame.rows() {
        if let Some(beat_seen) = beat_seen {
            // A missing heartbeat is the beginning of time, in a form that readers can represent.
            frame.set_number(column, row, beat_seen.as_millis().max(0));
        }
    }
}

/// Adds the end of prices that are not shown any more without a withdrawal.
pub(crate) fn push_gone(frame: &mut Frame, head: &OddsHead<'_>, reason: &str) {
    push_offers(frame, head, std::iter::empty(), Some(reason));
}

/// The side of an outcome, and its name as it is shown. A player has no side.
fn name_of<'a>(who: &'a Who, event: Option<&'a Event>) -> (Option<&'static str>, Option<&'a str>) {
    let sides = event.and_then(|event| match &event.fixture {
        Fixture::HeadToHead { home, away } => Some((&**home, &**away)),
        Fixture::Field { .. } => None,
    });
    match who {
        Who::Side(Side::Home) => (Some("home"), sides.map(|(home, _)| home)),
        Who::Side(Side::Away) => (Some("away"), sides.map(|(_, away)| away)),
        Who::Draw => (Some("draw"), Some("Draw")),
        Who::Over => (Some("over"), Some("Over")),
        Who::Under => (Some("under"), Some("Under")),
        Who::Player(name) => (None, Some(name)),
    }
}

/// Adds a confirmation or a heartbeat.
pub(crate) fn push_read(
    frame: &mut Frame,
    entry: &Entry,
    (bookmaker, sport, ts): (&str, Option<&str>, Timestamp),
    record: Option<(EventId, &MarketKey)>,
) {
    let event_id = record.map(|(event, _)| event.to_string());
    let record_id = record.map(|(event, market)| record_id(event, market).to_string());
    frame.push(&[
        Cell::unsigned(entry.seq),
        millis(entry.at),
        millis(ts),
        UNPUBLISHED,
        Cell::text(sport),
        Cell::Text(bookmaker),
        Cell::text(record_id.as_deref()),
        Cell::text(event_id.as_deref()),
        Cell::text(record.map(|(_, market)| market.market.key())),
        Cell::text(record.and_then(|(_, market)| market.group.as_deref())),
    ]);
}

pub(crate) fn push_confirmed(
    frame: &mut Frame,
    entry: &Entry,
    (event, market, ts): (EventId, &MarketKey, Timestamp),
    book: &Book,
) {
    let sport = sport_of(book, book.event(event));
    push_read(frame, entry, (&market.bookmaker, sport, ts), Some((event, market)));
}

pub(crate) fn push_score(
    frame: &mut Frame,
    entry: &Entry,
    (event, score, ts): (EventId, &Reported, Timestamp),
    book: &Book,
) {
    let held = book.event(event);
    let event_id = event.to_string();
    let side = |side: Side| match side {
        Side::Home => "home",
        Side::Away => "away",
    };
    frame.push(&[
        Cell::unsigned(entry.seq),
        millis(entry.at),
        millis(ts),
        UNPUBLISHED,
        Cell::Flag(false),
        Cell::text(sport_of(book, held)),
        Cell::Text(&event_id),
        Cell::Text(score.status.key()),
        Cell::number(score.home.map(i64::from)),
        Cell::number(score.away.map(i64::from)),
        Cell::text(score.winner.map(side)),
        held.map_or(Cell::Null, |event| millis(event.details().score_changed)),
        Cell::Periods(&score.periods),
        Cell::Leaders(&score.leaders),
    ]);
}

/// Adds a score that is shown without such a report: the event is new, or took over that of another.
pub(crate) fn push_shown_score(
    frame: &mut Frame,
    (seq, at, published_at): (u64, Timestamp, Timestamp),
    event: &Event,
    book: &Book,
) {
    let (event_id, score) = (event.id.to_string(), &event.score);
    let changed = event.details().score_changed;
    let side = |side: Side| match side {
        Side::Home => "home",
        Side::Away => "away",
    };
    let name = |entrant| event.outcome_text(OutcomeName::Entrant(entrant)).into();
    let leaders = score.leaders.iter().map(|leader| (name(leader.entrant), leader.rounds.clone()));
    let leaders: Vec<(Box<str>, Vec<i32>)> = leaders.collect();
    frame.push(&[
        Cell::unsigned(seq),
        millis(at),
        millis(changed),
        millis(published_at),
        Cell::Flag(true),
        Cell::text(sport_of(book, Some(event))),
        Cell::Text(&event_id),
        Cell::Text(score.status.key()),
        Cell::number(score.home.map(i64::from)),
        Cell::number(score.away.map(i64::from)),
        Cell::text(score.winner.map(side)),
        millis(changed),
        Cell::Periods(&score.periods),
        Cell::Leaders(&leaders),
    ]);
}

/// An event as a publication shows it, and the kind of its change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventChange<'a> {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) published_at: Timestamp,
    pub(crate) id: EventId,
    pub(crate) what: &'static str,
    pub(crate) event: Option<&'a Event>,
    pub(crate) sport: Option<&'a str>,
    pub(crate) merged_into: Option<EventId>,
}

pub(crate) fn push_event(frame: &mut Frame, change: &EventChange<'_>) {
    let details = change.event.map(Event::details);
    let (id, into) = (change.id.to_string(), change.merged_into.map(|into| into.to_string()));
    frame.push(&[
        Cell::unsigned(change.seq),
        millis(change.at),
        millis(change.published_at),
        Cell::Flag(true),
        Cell::text(change.sport),
        Cell::Text(&id),
        Cell::Text(change.what),
        Cell::text(details.map(|details| &*details.competition)),
        Cell::text(details.and_then(|details| details.title.as_deref())),
        Cell::text(details.and_then(|details| details.home.as_deref())),
        Cell::text(details.and_then(|details| details.away.as_deref())),
        change.event.map_or(Cell::Null, |event| millis(event.commence_time)),
        Cell::text(change.event.map(|event| event.score.status.key())),
        Cell::text(into.as_deref()),
    ]);
}

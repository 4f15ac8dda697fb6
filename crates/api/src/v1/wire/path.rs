//! The history of prices: paths and closing lines (H10 to H12).

use domain::{EventId, Format, Timestamp};
use engine::{
    ClosedRecord, ClosingPage, EventPaths, PathPlace, PathRequest, Point, PointOutcome, RecordPath,
    StartBy,
};
use serde_json::{Value, json};

use crate::answers::Answer;
use crate::v1::wire::cursor::{encode, encode_path};
use crate::v1::wire::object::{
    event_id, flag, id, list, object, one_of, push_plain, push_time, schema, text,
};
use crate::v1::wire::path_selection::{ClosingSelection, PathSelection};
use crate::v1::wire::record::push_outcomes;

object!(PricePath: "The price history of one bookmaker's market for one event." {
    ID: "id" = id("odd_", "The record's id; it stays the same while price and line move."),
    SPORT_KEY: "sport_key" = text("Sport key."),
    EVENT_ID: "event_id" = event_id(),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    MARKET: "market" = schema("MarketKey", "The market."),
    FORMAT: "format" = one_of(
        Format::ALL.map(Format::key),
        "Format of `price`: the requested `odds_format`.",
    ),
    OPEN: "open" = schema("OpeningLine", "The first published prices."),
    CLOSE: "close" = nullable(
        "ClosingLine",
        "The prices when the event started; null before the start, and if there was no price before it.",
    ),
    POINTS: "points" = list("PricePoint", "Changes of prices or lines, in the order of publication."),
});

object!(ClosingRecord: "The opening and closing line of one bookmaker's market for one event." {
    ID: "id" = id("odd_", "The record's id; it stays the same while price and line move."),
    SPORT_KEY: "sport_key" = text("Sport key."),
    EVENT_ID: "event_id" = event_id(),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    MARKET: "market" = schema("MarketKey", "The market."),
    FORMAT: "format" = one_of(
        Format::ALL.map(Format::key),
        "Format of `price`: the requested `odds_format`.",
    ),
    OPEN: "open" = schema("OpeningLine", "The first published prices."),
    CLOSE: "close" = schema("ClosingLine", "The prices when the event started."),
});

object!(OpeningLine: "The first published prices." {
    PUBLISHED_AT: "published_at" = schema("TimestampMs", "Time of publication."),
    EXACT: "exact" = flag("False if earlier prices may have been published before history began."),
    OUTCOMES: "outcomes" = list("Outcome", "The outcomes offered."),
});

object!(ClosingLine: "The prices in the last publication before an event started." {
    START: "start" = schema("TimestampMs", "Time at which the event started."),
    BY: "by" = one_of(
        StartBy::ALL.map(StartBy::key),
        "The source of the start: the first publication that shows the event as live or final or, as long as there \
        is none, its `commence_time`.",
    ),
    ACTIVE: "active" = flag(
        "True if the prices were still offered at the start. Otherwise they are the last prices before it, and \
        `reason` says why they were withdrawn.",
    ),
    PUBLISHED_AT: "published_at" = schema("TimestampMs", "Time at which these prices were first published."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which the prices were last confirmed."),
    REASON: "reason" = reason("Why they were withdrawn before the start; otherwise null."),
    OUTCOMES: "outcomes" = list("Outcome", "The outcomes offered."),
});

object!(PricePoint: "A change of prices or lines." {
    AT: "at" = schema("TimestampMs", "Time at which the change was accepted."),
    PUBLISHED_AT: "published_at" = json!({
        "type": ["string", "null"],
        "format": "date-time",
        "description": "Time at which the change was first published; null if it was replaced before a publication.",
    }),
    TS: "ts" = schema("Timestamp", "Time of the change according to its source."),
    REASON: "reason" = reason("Why there is no price; otherwise null."),
    OUTCOMES: "outcomes" = list("Outcome", "The outcomes offered; empty if there is no price."),
});

/// Reasons for missing prices.
const REASONS: [&str; 4] = ["no_prices", "removed", "final", "merged"];

/// Size at which a page ends between two points or two closing lines, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;

fn reason(meaning: &str) -> Value {
    let [one, two, three, four] = REASONS;
    json!({ "type": ["string", "null"], "enum": [one, two, three, four, null], "description": meaning })
}

fn nullable(of: &str, meaning: &str) -> Value {
    let of = format!("#/components/schemas/{of}");
    json!({ "oneOf": [{ "$ref": of }, { "type": "null" }], "description": meaning })
}

/// The response to a request for paths, as of a publication.
pub(crate) fn price_paths(
    selection: &PathSelection,
    found: &EventPaths,
    cut_at: Timestamp,
) -> Answer {
    let mut page = Page { selection, found, out: String::from("["), points: 0 };
    let after = selection.request.after.as_ref();
    // The last place in the response, and whether the response has all that was found.
    let (mut next, mut is_all) = (None, true);
    for path in &found.paths {
        // The rest of a path that began on the previous page.
        let is_begun = after.is_some_and(|after| after.cmp_path(&path.head).is_eq());
        if is_begun && path.points.is_empty() {
            continue;
        }
        if page.is_full() {
            is_all = false;
            break;
        }
        let (written, last) = page.push(path);
        next = Some(last);
        if written < path.points.len() {
            is_all = false;
            break;
        }
    }
    page.out.push(']');
    let next = if is_all { found.end.clone() } else { next };
    let next = next.map(|next| encode_path(&next));
    Answer::new(page.out.into_bytes(), next).of_publication(cut_at, None)
}

/// The response to a request for closing lines, as of a publication.
pub(crate) fn closing_lines(
    selection: &ClosingSelection,
    found: &ClosingPage,
    cut_at: Timestamp,
) -> Answer {
    let mut out = String::from("[");
    // The last record in the response, and whether it ends there.
    let (mut last, mut is_full) = (None, false);
    for record in &found.records {
        is_full = out.len() >= BODY_BYTES_MAX;
        if is_full {
            break;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let ClosedRecord { event, path, exact, .. } = record;
        push_head(path, (&selection.request.sport, *event), selection.format, &mut out);
        push_lines(path, *exact, selection.format, &mut out);
        out.push('}');
        last = Some(record);
    }
    out.push(']');
    let next = match last.filter(|_| is_full) {
        Some(last) => Some(encode(&last.place())),
        None => found.next.as_ref().map(encode),
    };
    Answer::new(out.into_bytes(), next).of_publication(cut_at, None)
}

struct Page<'a> {
    selection: &'a PathSelection,
    found: &'a EventPaths,
    out: String,
    points: usize,
}

impl Page<'_> {
    fn is_full(&self) -> bool {
        self.points >= self.selection.request.limit || self.out.len() >= BODY_BYTES_MAX
    }

    /// Writes a path with as many points as fit; returns their number and the place of the last one.
    fn push(&mut self, path: &RecordPath) -> (usize, PathPlace) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        let PathSelection { request: PathRequest { sport, event, .. }, format } = self.selection;
        let format = *format;
        let exact_after = self.found.exact_after;
        let exact = path.open.as_ref().is_some_and(|open| open.published_at > exact_after);
        push_head(path, (sport, *event), format, &mut self.out);
        push_lines(path, exact, format, &mut self.out);
        self.out.push_str(PricePath::POINTS.next);
        self.out.push('[');
        // A path without points is passed as a whole.
        let (mut written, mut last) = (0, PathPlace::end_of(&path.head));
        for point in &path.points {
            if written > 0 {
                if self.is_full() {
                    break;
                }
                self.out.push(',');
            }
            push_point(point, format, &mut self.out);
            self.points += 1;
            written += 1;
            last = PathPlace::of(&path.head, point);
        }
        self.out.push_str("]}");
        (written, last)
    }
}

fn push_head(path: &RecordPath, (sport, event): (&str, EventId), format: Format, out: &mut String) {
    out.push_str(PricePath::ID.first);
    push_plain(&path.head.record.to_string(), out);
    out.push_str(PricePath::SPORT_KEY.next);
    push_plain(sport, out);
    out.push_str(PricePath::EVENT_ID.next);
    push_plain(&event.to_string(), out);
    out.push_str(PricePath::BOOKMAKER.next);
    push_plain(&path.head.bookmaker, out);
    out.push_str(PricePath::MARKET.next);
    push_plain(path.head.market.key(), out);
    out.push_str(PricePath::FORMAT.next);
    push_plain(format.key(), out);
}

/// The opening and the closing line.
fn push_lines(path: &RecordPath, exact: bool, format: Format, out: &mut String) {
    out.push_str(PricePath::OPEN.next);
    match &path.open {
        Some(open) => push_open(open, exact, format, out),
        None => out.push_str("null"),
    }
    out.push_str(PricePath::CLOSE.next);
    match path.closing.as_ref().and_then(|line| line.start.map(|start| (line, start))) {
        Some((line, start)) => push_close(line, start, format, out),
        None => out.push_str("null"),
    }
}

fn push_open(open: &Point, exact: bool, format: Format, out: &mut String) {
    out.push_str(OpeningLine::PUBLISHED_AT.first);
    push_millis(open.published_at, out);
    out.push_str(OpeningLine::EXACT.next);
    out.push_str(if exact { "true" } else { "false" });
    out.push_str(OpeningLine::OUTCOMES.next);
    push_points(&open.outcomes, format, out);
    out.push('}');
}

fn push_close(
    line: &engine::ClosingLine,
    (start, by): (Timestamp, StartBy),
    format: Format,
    out: &mut String,
) {
    out.push_str(ClosingLine::START.first);
    push_millis(start, out);
    out.push_str(ClosingLine::BY.next);
    push_plain(by.key(), out);
    out.push_str(ClosingLine::ACTIVE.next);
    out.push_str(if line.active { "true" } else { "false" });
    out.push_str(ClosingLine::PUBLISHED_AT.next);
    push_millis(line.prices.published_at, out);
    out.push_str(ClosingLine::LAST_UPDATE.next);
    push_time(line.last_update, out);
    out.push_str(ClosingLine::REASON.next);
    push_reason(line.reason.as_deref(), out);
    out.push_str(ClosingLine::OUTCOMES.next);
    push_points(&line.prices.outcomes, format, out);
    out.push('}');
}

fn push_point(point: &Point, format: Format, out: &mut String) {
    out.push_str(PricePoint::AT.first);
    push_millis(point.at, out);
    out.push_str(PricePoint::PUBLISHED_AT.next);
    match point.shown {
        true => push_millis(point.published_at, out),
        false => out.push_str("null"),
    }
    out.push_str(PricePoint::TS.next);
    push_time(point.ts, out);
    out.push_str(PricePoint::REASON.next);
    push_reason(point.reason.as_deref(), out);
    out.push_str(PricePoint::OUTCOMES.next);
    push_points(&point.outcomes, format, out);
    out.push('}');
}

fn push_points(outcomes: &[PointOutcome], format: Format, out: &mut String) {
    let outcomes = outcomes.iter().map(|outcome| (&*outcome.name, outcome.quote, outcome.point));
    push_outcomes(outcomes, format, out);
}

fn push_reason(reason: Option<&str>, out: &mut String) {
    match reason {
        Some(reason) => push_plain(reason, out),
        None => out.push_str("null"),
    }
}

fn push_millis(at: Timestamp, out: &mut String) {
    out.push('"');
    out.extend(at.millis_text().map(char::from));
    out.push('"');
}

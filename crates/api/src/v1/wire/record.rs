//! Odds records.
//!
//! A record is rendered when it changes, once for all formats. `last_update` changes with every heartbeat, so it is
//! not part of the rendered text: it is written into its place when a response is assembled (D28).

use domain::{Catalogue, Format, Line, Quote};
use market::book::Outcome as Offer;
use market::rendered::Rendered;
use market::snapshot::{EventRow, RecordRow};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::v1::wire::object::{
    event_id, id, list, object, one_of, push_plain, push_text, schema, text,
};

object!(OddsRecord: "One bookmaker's prices for one market of an event." {
    ID: "id" = id("odd_", "The record's id; it stays the same while price and line move."),
    SPORT_KEY: "sport_key" = text("Sport key."),
    EVENT_ID: "event_id" = event_id(),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    MARKET: "market" = schema("MarketKey", "The market."),
    FORMAT: "format" = one_of(
        Format::ALL.map(Format::key),
        "Format of `price`: the requested `odds_format`.",
    ),
    LAST_UPDATE: "last_update" = schema(
        "Timestamp",
        "Time at which this price was last confirmed, changed or not.",
    ),
    OUTCOMES: "outcomes" = list("Outcome", "The outcomes offered."),
});

object!(Outcome: "One outcome and its price." {
    NAME: "name" = text("Participant or side; `Over` and `Under` for totals."),
    PRICE: "price" = schema("Price", "The price."),
    POINT: "point" = json!({
        "type": ["number", "null"],
        "multipleOf": 0.25,
        "description": "The signed handicap or the total; null for markets without one.",
    }),
});

/// Placeholder for the time of the last update.
const NO_STAMP: &str = "0000-00-00T00:00:00Z";

/// A rendered record: the part up to the format, then the rest once per format.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordText<'a>(pub(super) &'a Rendered);

pub(super) fn render(catalogue: &Catalogue, event: &EventRow, row: &RecordRow) -> Rendered {
    let mut out = String::with_capacity(512);
    out.push_str(OddsRecord::ID.first);
    out.push('"');
    row.id.push_to(&mut out);
    out.push('"');
    out.push_str(OddsRecord::SPORT_KEY.next);
    push_plain(&catalogue.sport(event.details.sport).key, &mut out);
    out.push_str(OddsRecord::EVENT_ID.next);
    out.push('"');
    event.id.push_to(&mut out);
    out.push('"');
    out.push_str(OddsRecord::BOOKMAKER.next);
    push_plain(&catalogue.bookmaker(row.bookmaker).key, &mut out);
    out.push_str(OddsRecord::MARKET.next);
    push_plain(row.market.key(), &mut out);
    out.push_str(OddsRecord::FORMAT.next);
    out.push('"');
    let head_end = end(&out);
    let [american_end, decimal_end, _] = Format::ALL.map(|format| {
        push_rest(event, &row.record.outcomes, format, &mut out);
        end(&out)
    });
    let hash = xxh3_64(out.as_bytes());
    let bytes = out.into_boxed_str().into_boxed_bytes();
    Rendered { bytes, ends: [head_end, american_end, decimal_end], hash }
}

/// The part of a record that depends on the format, from the format's name on.
fn push_rest(event: &EventRow, outcomes: &[Offer], format: Format, out: &mut String) {
    out.push_str(format.key());
    out.push('"');
    out.push_str(OddsRecord::LAST_UPDATE.next);
    push_plain(NO_STAMP, out);
    out.push_str(OddsRecord::OUTCOMES.next);
    let priced = |outcome: &Offer| (event.outcome_text(outcome.name), outcome.quote, outcome.point);
    push_outcomes(outcomes.iter().map(priced), format, out);
    out.push('}');
}

/// Appends a list of outcomes, each with its name, price and point.
pub(super) fn push_outcomes<'a>(
    outcomes: impl Iterator<Item = (&'a str, Quote, Option<Line>)>,
    format: Format,
    out: &mut String,
) {
    out.push('[');
    for (i, (name, quote, point)) in outcomes.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(Outcome::NAME.first);
        push_text(name, out);
        out.push_str(Outcome::PRICE.next);
        quote.write_json(format, out);
        out.push_str(Outcome::POINT.next);
        match point {
            Some(point) => point.write_json(out),
            None => out.push_str("null"),
        }
        out.push('}');
    }
    out.push(']');
}

impl<'a> RecordText<'a> {
    /// Length of the quotes and the field name between the format and the time.
    const BEFORE_STAMP: usize = 1 + OddsRecord::LAST_UPDATE.next.len() + 1;

    /// Number of bytes that [`RecordText::write`] appends.
    pub(super) fn len(self, format: Format) -> usize {
        self.head().len() + self.rest(format).len()
    }

    /// Appends the whole record in one format with its freshness.
    pub(super) fn write(self, format: Format, last_update: &[u8; 20], out: &mut Vec<u8>) {
        out.extend_from_slice(self.head());
        let stamp_at = out.len() + format.key().len() + Self::BEFORE_STAMP;
        out.extend_from_slice(self.rest(format));
        if let Some(stamp) = out.get_mut(stamp_at..stamp_at + last_update.len()) {
            stamp.copy_from_slice(last_update);
        }
    }

    fn head(self) -> &'a [u8] {
        self.piece(0, Some(self.0.ends[0]))
    }

    fn rest(self, format: Format) -> &'a [u8] {
        let [head_end, american_end, decimal_end] = self.0.ends;
        match format {
            Format::American => self.piece(head_end, Some(american_end)),
            Format::Decimal => self.piece(american_end, Some(decimal_end)),
            Format::Fractional => self.piece(decimal_end, None),
        }
    }

    fn piece(self, from: u32, to: Option<u32>) -> &'a [u8] {
        let at = |end: u32| usize::try_from(end).unwrap_or(0);
        let to = to.map_or(self.0.bytes.len(), at);
        self.0.bytes.get(at(from)..to).unwrap_or_default()
    }
}

fn end(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

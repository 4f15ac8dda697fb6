//! The grouped shape: the moneyline of a fight sport, by bout (D7).

use domain::{Catalogue, Format};
use market::Snapshot;
use market::select::BoutSelection;
use market::snapshot::{EventRow, RecordRow};

use crate::v1::wire::object::{
    count, flag, list, object, push_plain, push_text, push_time, schema, text,
};

object!(GroupedBouts: "The moneyline of a fight sport, grouped by bout (`group_by=bout`)." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    SOURCES: "sources" = list(
        "BoutSource",
        "The sport's sources that pass the bookmaker and region filter.",
    ),
    BOUTS: "bouts" = list("Bout", "Bouts with a price for the filter, in the order of events."),
});

object!(BoutSource: "One bookmaker's feed for the sport." {
    BOOK: "book" = text("Bookmaker key."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time of the last good read."),
    STALE: "stale" = flag("True if the source had no good read recently."),
    LATENCY_MS: "latency_ms" = count(
        "Duration of the last good read (polled sources) or its delay (pushed sources).",
    ),
});

object!(Bout: "A bout." {
    HOME: "home" = text("One fighter."),
    AWAY: "away" = text("The other fighter."),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "Start time."),
    BOOKS: "books" = list("BoutBook", "Each bookmaker's moneyline."),
});

object!(BoutBook: "A bookmaker's moneyline of a bout." {
    BOOK: "book" = text("Bookmaker key."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which this price was last confirmed."),
    OUTCOMES: "outcomes" = list("BoutOutcome", "The fighters, and the draw if it is offered."),
});

object!(BoutOutcome: "A fighter and the price of a win." {
    NAME: "name" = text("The fighter."),
    PRICE: "price" = schema("Price", "The price."),
});

/// Appends a page of bouts.
pub(super) fn push(
    selection: &BoutSelection,
    format: Format,
    snapshot: &Snapshot,
    bouts: &[(&EventRow, Vec<&RecordRow>)],
    out: &mut String,
) {
    let catalogue = snapshot.catalogue();
    out.push_str(GroupedBouts::SPORT.first);
    push_plain(&catalogue.sport(selection.sport).key, out);
    out.push_str(GroupedBouts::GENERATED_AT.next);
    out.push('"');
    out.extend(snapshot.cut_at.millis_text().map(char::from));
    out.push('"');
    push_sources(selection, snapshot, out);
    out.push_str(GroupedBouts::BOUTS.next);
    out.push('[');
    for (i, (event, rows)) in bouts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_bout(catalogue, format, event, rows, out);
    }
    out.push_str("]}");
}

fn push_sources(selection: &BoutSelection, snapshot: &Snapshot, out: &mut String) {
    let sources = snapshot.sport(selection.sport).sources.iter();
    let shown = sources.filter(|row| selection.bookmakers.contains(row.bookmaker));
    out.push_str(GroupedBouts::SOURCES.next);
    out.push('[');
    for (i, row) in shown.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(BoutSource::BOOK.first);
        push_plain(&snapshot.catalogue().bookmaker(row.bookmaker).key, out);
        out.push_str(BoutSource::LAST_UPDATE.next);
        push_time(row.source.read_at, out);
        out.push_str(BoutSource::STALE.next);
        out.push_str(if row.stale { "true" } else { "false" });
        out.push_str(BoutSource::LATENCY_MS.next);
        out.push_str(&row.source.latency_ms.to_string());
        out.push('}');
    }
    out.push(']');
}

fn push_bout(
    catalogue: &Catalogue,
    format: Format,
    event: &EventRow,
    rows: &[&RecordRow],
    out: &mut String,
) {
    for (key, side) in
        [(Bout::HOME.first, &event.details.home), (Bout::AWAY.next, &event.details.away)]
    {
        out.push_str(key);
        push_text(side.as_deref().unwrap_or_default(), out);
    }
    out.push_str(Bout::COMMENCE_TIME.next);
    push_time(event.commence_time, out);
    out.push_str(Bout::BOOKS.next);
    out.push('[');
    for (i, row) in rows.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(BoutBook::BOOK.first);
        push_plain(&catalogue.bookmaker(row.bookmaker).key, out);
        out.push_str(BoutBook::LAST_UPDATE.next);
        push_time(row.last_update, out);
        out.push_str(BoutBook::OUTCOMES.next);
        out.push('[');
        for (j, outcome) in row.record.outcomes.iter().enumerate() {
            if j > 0 {
                out.push(',');
            }
            out.push_str(BoutOutcome::NAME.first);
            push_text(event.outcome_text(outcome.name), out);
            out.push_str(BoutOutcome::PRICE.next);
            outcome.quote.write_json(format, out);
            out.push('}');
        }
        out.push_str("]}");
    }
    out.push_str("]}");
}

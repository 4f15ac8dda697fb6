//! The bodies of v1: renders a selection of a snapshot as JSON, with exactly the interface's fields (D12).
//!
//! Every field name occurs once, in the table of its object, for both the writer and the OpenAPI document.

mod analysis;
mod bout;
pub(crate) mod coverage;
mod csv;
pub(crate) mod cursor;
mod delta;
mod event;
pub(crate) mod event_fragment;
pub(crate) mod object;
mod page;
pub(crate) mod path;
pub(crate) mod path_selection;
mod record;
mod score;
mod service;
pub(crate) mod stream;

#[cfg(test)]
mod tests;

use domain::{Catalogue, World};
use market::analysis::Analysis;
use market::coverage::ExplainSelection;
use market::rendered::{Rendered, WireSlot};
use market::snapshot::{EventRow, RecordRow};
use market::{Snapshot, Wire};

use crate::answers::{Answer, List, Selector};
use crate::error::ApiError;
use crate::position::LogPosition;
use crate::v1::query::event_not_found;
use crate::v1::wire::event_fragment::Fragments;
use crate::v1::wire::page::OddsPage;
use engine::Published;
use http::Body;

use analysis::analyse;
pub(crate) use analysis::{
    Arbitrage, ArbitrageLeg, Arbitrages, BestLine, BestLines, BestOutcome, FairLine, FairLines,
    FairOutcome, FairSource, Middle, MiddleLeg, Middles, RefusedLines, RefusedOffers, Value,
    Values,
};
pub(crate) use bout::{Bout, BoutBook, BoutOutcome, BoutSource, GroupedBouts};
pub(crate) use coverage::{
    CellState, Coverage, CoveredBook, CoveredMarket, ExplainedBook, Explanation,
};
pub(crate) use delta::{Between, Delta, EventsDelta, OddsDelta, Removed, ScoresDelta};
pub(crate) use event::Event;
pub(crate) use path::{ClosingLine, ClosingRecord, OpeningLine, PricePath, PricePoint};
pub(crate) use record::{OddsRecord, Outcome};
pub(crate) use score::{Period, ScoreRecord};
pub(crate) use service::{
    Bookmaker, HistoryGap, HistoryReach, RateLimit, ServiceStatus, Sport, SportList, history,
    status,
};

/// Renders rows for v1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct V1;

impl Wire for V1 {
    fn slot(&self) -> WireSlot {
        const SLOT: WireSlot = WireSlot::new(0);
        SLOT
    }

    fn render_event(&self, catalogue: &Catalogue, event: &EventRow) -> Rendered {
        event::render(catalogue, event)
    }

    fn render_record(
        &self,
        catalogue: &Catalogue,
        event: &EventRow,
        record: &RecordRow,
    ) -> Rendered {
        record::render(catalogue, event, record)
    }
}

/// Refuses an event that the snapshot does not have.
pub(crate) fn check_found(selector: &Selector, published: &Published) -> Result<(), ApiError> {
    match selector {
        Selector::Event(sport, id)
        | Selector::Explain(ExplainSelection { sport, event: id, .. }) => {
            let found = published.snapshot.sport(*sport).event(*id);
            found.map(drop).ok_or_else(event_not_found)
        }
        Selector::Sports
        | Selector::Books
        | Selector::Coverage(_)
        | Selector::List(_)
        | Selector::Bouts(..)
        | Selector::Analysis(..)
        | Selector::Delta(..)
        // Selections of the past have their own checks.
        | Selector::Path(_)
        | Selector::Closing(_)
        | Selector::V4(_) => Ok(()),
        Selector::Csv(selector) => check_found(selector, published),
    }
}

/// The response to a selection of a world, with the headers of its publication.
pub(crate) fn answer(
    world: World,
    selector: &Selector,
    snapshot: &Snapshot,
    fragments: &Fragments,
) -> Answer {
    let cursor = cursor_of(world, snapshot, selector);
    let answer = make(selector, snapshot, fragments);
    answer.of_publication(snapshot.cut_at, cursor.as_deref())
}

/// The response to a selection that takes longer: an analysis, a table of any response, or a search.
///
/// # Errors
/// A response is not JSON of the shape given by its table, which no input can cause.
pub(crate) fn slow_answer(
    world: World,
    selector: &Selector,
    snapshot: &Snapshot,
    fragments: &Fragments,
    lines: &Analysis,
) -> serde_json::Result<Answer> {
    if let Selector::Analysis(selection, format) = selector {
        let answer = analyse(selection, *format, snapshot, lines);
        return Ok(answer.of_publication(snapshot.cut_at, None));
    }
    if let Selector::Csv(selector) = selector {
        let answer = slow_answer(world, selector, snapshot, fragments, lines)?;
        let cursor = cursor_of(world, snapshot, selector);
        let table = csv::tabulate(selector, &answer)?;
        return Ok(table.of_publication(snapshot.cut_at, cursor.as_deref()));
    }
    Ok(answer(world, selector, snapshot, fragments))
}

/// The cursor of a list; other responses have none.
fn cursor_of(world: World, snapshot: &Snapshot, selector: &Selector) -> Option<String> {
    let Selector::List(list) = selector else { return None };
    Some(LogPosition::of(world, snapshot, list).encode())
}

fn make(selector: &Selector, snapshot: &Snapshot, fragments: &Fragments) -> Answer {
    let texts = |event| event::texts(snapshot.rendered_event(&V1, event));
    let (body, next) = match selector {
        Selector::Sports => (service::sports(snapshot).into_bytes(), None),
        Selector::Books => (service::books(snapshot.catalogue()).into_bytes(), None),
        Selector::Coverage(selection) => {
            (coverage::coverage(selection, snapshot).into_bytes(), None)
        }
        Selector::Explain(selection) => (coverage::explain(selection, snapshot).into_bytes(), None),
        Selector::List(List::Odds(odds, format, _)) => {
            let page = OddsPage::new(odds, *format, snapshot, fragments);
            let next = page.next.as_ref().map(cursor::encode);
            let body = Body::of_pieces(page.pieces);
            let empty = body.len() == b"[]".len();
            return Answer::hashed(page.content_hash, body, next).noting_empty(empty);
        }
        Selector::Bouts(bouts, format) => {
            let page = bouts.select(snapshot);
            let mut text = String::new();
            bout::push(bouts, *format, snapshot, &page.items, &mut text);
            let next = page.next.as_ref().map(cursor::encode);
            let empty = page.items.is_empty();
            return Answer::new(text.into_bytes(), next).noting_empty(empty);
        }
        Selector::List(List::Scores(scores)) => {
            let page = scores.select(snapshot);
            (page::array(page.items.into_iter().map(|event| texts(event).1)), page.next)
        }
        Selector::List(List::Events(events)) => {
            let page = events.select(snapshot);
            (page::array(page.items.into_iter().map(|event| texts(event).0)), page.next)
        }
        Selector::Event(sport, id) => {
            let event = snapshot.sport(*sport).event(*id);
            (event.map(|event| texts(event).0.to_vec()).unwrap_or_default(), None)
        }
        // Rendered by `slow_answer`, from two publications, from history, and by the wire of `/v4`.
        Selector::Analysis(..)
        | Selector::Csv(_)
        | Selector::Delta(..)
        | Selector::Path(_)
        | Selector::Closing(_)
        | Selector::V4(_) => (Vec::new(), None),
    };
    Answer::new(body, next.as_ref().map(cursor::encode))
}

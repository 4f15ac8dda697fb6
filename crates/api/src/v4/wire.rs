//! The bodies of `/v4`: renders a selection of a snapshot as JSON, with exactly the contract's fields (V13 to V15).

mod event;
mod fragment;
mod index;
mod list;
mod odds;
mod window;

use bytes::Bytes;
use domain::{Catalogue, EventId, Status, World};
use market::rendered::{Rendered, WireSlot};
use market::snapshot::{EventRow, RecordRow};
use market::{Snapshot, Wire};

use crate::answers::Answer;
use crate::v4::selection::{Neighbours, Selection, SportFilter, Style, What};
use crate::v4::wire::index::Index;
use http::Body;

pub(crate) use event::{Event, Score, ScoreRecord};
pub(crate) use index::Publication;
pub(crate) use list::{Participant, Sport};
pub(crate) use odds::{
    Bookmaker, EventMarkets, EventOdds, Market, MarketName, MarketsBookmaker, Outcome,
};
pub(crate) use odds::{EventBookmaker, OddsEvent};

/// Renders rows for `/v4`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct V4(pub(crate) World);

impl V4 {
    pub(crate) const LIVE: Self = Self(World::Live);
    pub(crate) const SANDBOX: Self = Self(World::Sandbox);
}

impl Wire for V4 {
    fn slot(&self) -> WireSlot {
        const SLOT: WireSlot = WireSlot::new(1);
        SLOT
    }

    fn render_event(&self, catalogue: &Catalogue, event: &EventRow) -> Rendered {
        event::render(catalogue, self.0, event)
    }

    fn render_record(
        &self,
        catalogue: &Catalogue,
        event: &EventRow,
        record: &RecordRow,
    ) -> Rendered {
        odds::render(catalogue, event, record)
    }
}

/// The times of a historical response, before its `data`.
pub(crate) const HISTORICAL_TIMES: [&str; 3] =
    ["timestamp", "previous_timestamp", "next_timestamp"];

/// Input of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) wire: V4,
    pub(crate) publication: &'a Publication,
}

impl<'a> Source<'a> {
    pub(crate) fn index(&self) -> &'a Index {
        self.publication.index(self.snapshot, self.wire)
    }

    /// Finds an open event of the sport by id.
    pub(crate) fn find_event(
        &self,
        sport: &SportFilter,
        id: EventId,
    ) -> Option<(usize, &'a EventRow)> {
        let (SportFilter::Whole(id_of) | SportFilter::Key(id_of, _)) = sport else { return None };
        let view = self.snapshot.sport(*id_of);
        let at = view.event_position(id)?;
        let row = view.events.get(at).filter(|row| row.status != Status::Final)?;
        let of_key = match sport {
            SportFilter::Key(_, key) => self.index().contains(key, at),
            SportFilter::All | SportFilter::Whole(_) | SportFilter::Upcoming(_) => true,
        };
        of_key.then_some((at, row))
    }

    /// Renders the response to a selection.
    pub(crate) fn make(&self, selection: &Selection) -> Answer {
        let answer = self.make_current(selection);
        match selection.neighbours {
            Some(neighbours) => self.of_the_past(&answer, neighbours, selection.style),
            None => answer,
        }
    }

    /// Wraps a response as historical data, with its time and those of the adjacent publications.
    fn of_the_past(&self, answer: &Answer, neighbours: Neighbours, style: Style) -> Answer {
        let mut body = Vec::with_capacity(answer.body().len() + 160);
        let times = [Some(self.snapshot.cut_at), neighbours.previous, neighbours.next];
        for (name, time) in HISTORICAL_TIMES.into_iter().zip(times) {
            body.push(if body.is_empty() { b'{' } else { b',' });
            body.extend_from_slice(format!("\"{name}\":").as_bytes());
            match time {
                None => body.extend_from_slice(b"null"),
                Some(time) => event::put_time(time, style, &mut body),
            }
        }
        body.extend_from_slice(b",\"data\":");
        body.extend_from_slice(&answer.body());
        body.push(b'}');
        Answer::new(body, None).with_units(answer.units)
    }

    fn make_current(&self, selection: &Selection) -> Answer {
        match selection.what {
            What::Sports { all } => list::sports(self, all),
            What::Participants => list::participants(self, &selection.sport),
            What::Events => event::events(self, selection),
            What::Scores { days } => event::scores(self, selection, days),
            What::Odds => fragment::odds(self, selection),
            What::EventOdds(id) | What::EventMarkets(id) => {
                fragment::event_odds(self, selection, id)
            }
        }
    }
}

/// A JSON array of texts, each followed by a comma.
fn array(mut texts: Vec<u8>, count: usize) -> Answer {
    texts.insert(0, b'[');
    if count > 0 {
        texts.pop();
    }
    texts.push(b']');
    Answer::new(texts, None).with_units(u32::from(count > 0))
}

/// A response of pieces with a known content hash.
fn of_pieces(content_hash: u128, pieces: Vec<Bytes>, units: u32) -> Answer {
    Answer::hashed(content_hash, Body::of_pieces(pieces), None).with_units(units)
}

//! Builds snapshots from a complete one and from partial ones with later changes.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::EventId;

use super::{EventRow, RecordRow, Snapshot, SportView};

/// A snapshot, and the events that it covers.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    pub snapshot: &'a Snapshot,
    /// `None`: all events. A covered event that it lacks was not listed.
    pub ids: Option<&'a BTreeSet<EventId>>,
}

/// A found event, with its sport's number and view.
type FoundRow<'a> = (usize, &'a SportView, &'a EventRow);

impl Layer<'_> {
    fn is_about(&self, id: EventId) -> bool {
        self.ids.is_none_or(|ids| ids.contains(&id))
    }
}

impl Snapshot {
    /// Builds a snapshot in which each event comes from the last layer that covers it; the oldest layer comes first.
    ///
    /// It has the time of the last layer and the sources of the first. `None` if there are no layers.
    pub fn gather(layers: &[Layer<'_>], ids: Option<&BTreeSet<EventId>>) -> Option<Self> {
        let (first, last) = (layers.first()?.snapshot, layers.last()?.snapshot);
        let mut rows = match ids {
            Some(ids) => ids.iter().filter_map(|id| find(layers, *id)).collect(),
            None => all(layers),
        };
        rows.sort_unstable_by_key(|(sport, _, row)| (*sport, row.commence_time, row.id));
        let sources = |sport: usize| match ids {
            Some(_) => Vec::new(),
            None => first.sports.get(sport).map_or_else(Vec::new, |view| view.sources.clone()),
        };
        let mut sports: Vec<Arc<SportView>> = match ids {
            Some(_) => vec![Arc::default(); last.sports.len()],
            None => {
                let empty = |sport| SportView::new(&last.catalogue, 0, sources(sport));
                (0..last.sports.len()).map(|sport| Arc::new(empty(sport))).collect()
            }
        };
        for of_sport in rows.chunk_by(|(one, ..), (other, ..)| one == other) {
            let Some((sport, ..)) = of_sport.first() else { continue };
            let mut view = SportView::new(&last.catalogue, of_sport.len(), sources(*sport));
            for (_, from, row) in of_sport {
                view.add(from, row);
            }
            if let Some(place) = sports.get_mut(*sport) {
                *place = Arc::new(view.count_bookmakers());
            }
        }
        let (catalogue, feeds) = (Arc::clone(&last.catalogue), first.feeds.clone());
        let Self { cut_at, stale_after, seq, writer, .. } = *last;
        Some(Self { cut_at, stale_after, seq, writer, catalogue, sports, feeds })
    }
}

/// An event in the last layer that covers it.
fn find<'a>(layers: &[Layer<'a>], id: EventId) -> Option<FoundRow<'a>> {
    let layer = layers.iter().rev().find(|layer| layer.is_about(id))?;
    let mut views = layer.snapshot.sports.iter().enumerate();
    views.find_map(|(sport, view)| {
        let row = view.event(id).filter(|row| row.id == id)?;
        Some((sport, &**view, row))
    })
}

/// All events, each from the last layer that covers it.
fn all<'a>(layers: &[Layer<'a>]) -> Vec<FoundRow<'a>> {
    let (mut rows, mut known) = (Vec::new(), HashSet::new());
    for layer in layers.iter().rev() {
        for (sport, view) in layer.snapshot.sports.iter().enumerate() {
            let new = view.events.iter().filter(|row| !known.contains(&row.id));
            rows.extend(new.map(|row| (sport, &**view, row)));
        }
        match layer.ids {
            Some(ids) => known.extend(ids.iter().copied()),
            None => break,
        }
    }
    rows
}

impl SportView {
    /// Adds an event of another view, with its records.
    fn add(&mut self, from: &Self, row: &EventRow) {
        let event = u32::try_from(self.events.len()).unwrap_or(u32::MAX);
        let start = self.next_record();
        for record in row.records.clone().filter_map(|at| from.record(at)) {
            self.push_record(RecordRow { event, ..record.clone() });
        }
        self.push_event(EventRow { records: start..self.next_record(), ..row.clone() });
    }
}

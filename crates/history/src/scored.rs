//! The scores that publications show, so that `scores` also has those that were not reported: the first of a new
//! event, and that of an event that was joined with another.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use domain::{EventId, Timestamp};
use market::Book;
use market::book::Event;

use crate::Entry;
use crate::frame::Frame;
use crate::priced::SinceCut;
use crate::rows;

/// Hashes of the scores that the last publication shows.
#[derive(Debug, Default)]
pub(crate) struct Scored(HashMap<EventId, u64>);

impl Scored {
    /// The scores of a book that was just published.
    pub(crate) fn of(book: &Book) -> Self {
        let listed = book.events().filter(|event| event.is_listed());
        Self(listed.map(|event| (event.id, look_of(event))).collect())
    }

    /// Adds rows for differences to the previous publication that no report explains.
    pub(crate) fn note(
        &mut self,
        scores: &mut Frame,
        book: &Book,
        since: &SinceCut,
        (entry, cut): (&Entry, Timestamp),
    ) {
        let ids: BTreeSet<EventId> = match since.any {
            true => book.events().map(|event| event.id).chain(self.0.keys().copied()).collect(),
            false => since.touched.keys().copied().collect(),
        };
        for id in ids {
            let Some(event) = book.event(id).filter(|event| event.is_listed()) else {
                self.0.remove(&id);
                continue;
            };
            let look = look_of(event);
            let same = self.0.insert(id, look) == Some(look);
            let reported = since.scores.get(&id);
            if !same && reported.is_none_or(|reported| reported.look != look) {
                let (seq, at) = since.cause(id, reported.map(|reported| reported.seq), entry);
                rows::push_shown_score(scores, (seq, at, cut), event, book);
            }
        }
    }
}

/// The entries of reports whose scores a publication shows: nothing has changed them since.
pub(crate) fn shown_reports(book: &Book, since: &SinceCut) -> impl Iterator<Item = u64> {
    let shown = since.scores.iter().filter(|(id, reported)| {
        book.event(**id).is_some_and(|event| look_of(event) == reported.look)
    });
    shown.map(|(_, reported)| reported.seq)
}

/// A hash of the score.
pub(crate) fn look_of(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&*event.score, event.details().score_changed).hash(&mut hasher);
    hasher.finish()
}

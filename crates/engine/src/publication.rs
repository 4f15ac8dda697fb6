//! A publication of a world: a snapshot, the time until which it is current, and the caches that belong to it.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use domain::{EventId, Timestamp};
use market::{Layer, Snapshot};

/// A published snapshot.
#[derive(Debug)]
pub struct Published {
    pub snapshot: Arc<Snapshot>,
    /// Time at which the next one is due.
    pub until: Timestamp,
    /// True if it was not published, but shown between two publications to clients that follow live.
    pub is_between: bool,
    /// A superset of the events that differ from the previous one; `None`: not known.
    touched: Option<Arc<BTreeSet<EventId>>>,
    /// True if it has those events alone.
    is_part: bool,
    /// True if it was assembled from parts, which do not have the freshness of untouched records.
    is_gathered: bool,
    /// Weight of the book that it was cut from; 0 for a part.
    pub(crate) weight: u64,
    /// Maximum size in bytes of the answers made from it, if it is less than for the present.
    pub answer_bytes_max: Option<usize>,
    kept: Slot,
}

/// The first of a list with one value of each type.
type Slot = OnceLock<Box<Kept>>;

struct Kept {
    value: Box<dyn Any + Send + Sync>,
    next: Slot,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Published {
    pub(crate) fn new(snapshot: Snapshot, until: Timestamp) -> Self {
        let snapshot = Arc::new(snapshot);
        Self {
            snapshot,
            until,
            is_between: false,
            touched: None,
            is_part: false,
            is_gathered: false,
            weight: 0,
            answer_bytes_max: None,
            kept: Slot::new(),
        }
    }

    /// The same as a past publication, without its caches.
    pub(crate) fn of_the_past(&self, answer_bytes_max: usize) -> Self {
        let (snapshot, answer_bytes_max) = (Arc::clone(&self.snapshot), Some(answer_bytes_max));
        let Self { until, is_between, is_part, is_gathered, weight, .. } = *self;
        let (touched, kept) = (self.touched.clone(), Slot::new());
        Self {
            snapshot,
            until,
            is_between,
            touched,
            is_part,
            is_gathered,
            weight,
            answer_bytes_max,
            kept,
        }
    }

    /// The same with the weight of its book.
    pub(crate) fn of_weight(self, weight: u64) -> Self {
        Self { weight, ..self }
    }

    /// The same as a live snapshot, in which these events differ from the previous one.
    pub(crate) fn between(self, touched: Option<BTreeSet<EventId>>) -> Self {
        Self { is_between: true, touched: touched.map(Arc::new), ..self }
    }

    /// The same in place of another, with the events touched for both.
    pub(crate) fn after(self, other: &Self) -> Self {
        let both = self.touched().zip(other.touched());
        let touched = both.map(|(one, other)| Arc::new(one.union(other).copied().collect()));
        Self { touched, ..self }
    }

    /// The same as a part with those events alone.
    pub(crate) fn into_part(self) -> Self {
        Self { is_part: self.touched.is_some(), ..self }
    }

    /// The same with all events.
    pub(crate) fn completed(&self, whole: Snapshot) -> Self {
        let snapshot = Arc::new(whole);
        Self { snapshot, is_part: false, is_gathered: true, ..self.of_the_past(0) }
    }

    /// True if it has all events.
    pub fn is_whole(&self) -> bool {
        !self.is_part
    }

    /// True if it has all events and the freshness of each record.
    pub fn is_exact(&self) -> bool {
        !self.is_part && !self.is_gathered
    }

    pub(crate) fn touched(&self) -> Option<&BTreeSet<EventId>> {
        self.touched.as_deref()
    }

    pub(crate) fn layer(&self) -> Layer<'_> {
        Layer { snapshot: &self.snapshot, ids: self.touched().filter(|_| self.is_part) }
    }

    /// The last log entry that is in it; 0 before any.
    pub fn seq(&self) -> u64 {
        self.snapshot.seq
    }

    /// The value of a type that belongs to this publication, made on first use: ready answers, screens. It is dropped
    /// with the publication, so nothing made from a snapshot ever has to be invalidated.
    pub fn per_publication<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> &T {
        let mut slot = &self.kept;
        loop {
            // Another thread may put another type here first; then the place after it is tried.
            let kept =
                slot.get_or_init(|| Box::new(Kept { value: Box::new(make()), next: Slot::new() }));
            match kept.value.downcast_ref() {
                Some(value) => return value,
                None => slot = &kept.next,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::cell::Cell;

    use domain::Catalogue;
    use market::{Book, Ids};

    #[test]
    fn every_type_has_one_value_that_is_made_once() {
        let book = Book::new(Arc::new(Catalogue::load(None).unwrap()), Ids::Minted { salt: 0 });
        let at = Timestamp::from_millis(0);
        let published =
            Published::new(Snapshot::cut(&book, 0, at, std::time::Duration::ZERO, &[]), at);
        let made = Cell::new(0);
        let number = || {
            made.set(made.get() + 1);
            7_u32
        };
        assert_eq!(published.per_publication(number), &7);
        assert_eq!(published.per_publication(|| "text"), &"text");
        assert_eq!(published.per_publication(number), &7);
        assert_eq!(published.per_publication(|| "another"), &"text");
        assert_eq!(made.get(), 1);
    }
}

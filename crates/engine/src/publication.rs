//! What a world publishes: a snapshot, until when it counts, and what others keep for it.

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
    /// When the next one is due.
    pub until: Timestamp,
    /// It was not published, but shown between two publications to those who follow live.
    pub is_between: bool,
    /// The events that differ from what was shown before it, at most; `None`: that is not known.
    touched: Option<Arc<BTreeSet<EventId>>>,
    /// Whether it has those events alone.
    is_part: bool,
    /// Whether it was put together from parts: how fresh a record is that was not touched, those do not say.
    is_gathered: bool,
    /// What answers made from it may take, in bytes, where that is less than for the present.
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
            answer_bytes_max: None,
            kept: Slot::new(),
        }
    }

    /// The same as one of many of the past, without what is kept for it.
    pub(crate) fn of_the_past(&self, answer_bytes_max: usize) -> Self {
        let (snapshot, answer_bytes_max) = (Arc::clone(&self.snapshot), Some(answer_bytes_max));
        let Self { until, is_between, is_part, is_gathered, .. } = *self;
        let (touched, kept) = (self.touched.clone(), Slot::new());
        Self { snapshot, until, is_between, touched, is_part, is_gathered, answer_bytes_max, kept }
    }

    /// The same as one between two publications, in which these events differ from what was shown before.
    pub(crate) fn between(self, touched: Option<BTreeSet<EventId>>) -> Self {
        Self { is_between: true, touched: touched.map(Arc::new), ..self }
    }

    /// The same in the place of another, with what was touched for both.
    pub(crate) fn after(self, other: &Self) -> Self {
        let both = self.touched().zip(other.touched());
        let touched = both.map(|(one, other)| Arc::new(one.union(other).copied().collect()));
        Self { touched, ..self }
    }

    /// The same as one that has those events alone.
    pub(crate) fn into_part(self) -> Self {
        Self { is_part: self.touched.is_some(), ..self }
    }

    /// The same with all events.
    pub(crate) fn completed(&self, whole: Snapshot) -> Self {
        let snapshot = Arc::new(whole);
        Self { snapshot, is_part: false, is_gathered: true, ..self.of_the_past(0) }
    }

    /// Whether it has all events.
    pub fn is_whole(&self) -> bool {
        !self.is_part
    }

    /// Whether it has all events and says how fresh each record is.
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

    /// The value of a type that belongs to this publication, made when first asked for: ready answers, screens. It
    /// goes with the publication, so nothing made from a snapshot ever has to be invalidated.
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

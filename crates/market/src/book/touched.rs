//! The events that changed since the last request, so that updating what is shown costs only what changed.

use std::collections::BTreeSet;

use domain::EventId;

use super::Book;

/// If more events than this changed, all are reported.
const EVENTS_MAX: usize = 4096;

/// Events whose visible data may have changed; freshness alone does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    All,
    Events(BTreeSet<EventId>),
}

impl Book {
    /// True if nothing changed since the last request.
    pub fn is_untouched(&self) -> bool {
        matches!(&self.touched, Touched::Events(ids) if ids.is_empty())
    }

    /// The events that changed since the last call; all of them on the first.
    pub fn take_touched(&mut self) -> Touched {
        std::mem::replace(&mut self.touched, Touched::Events(BTreeSet::new()))
    }

    pub(super) fn touch(&mut self, id: EventId) {
        if let Touched::Events(ids) = &mut self.touched {
            ids.insert(id);
            if ids.len() > EVENTS_MAX {
                self.touched = Touched::All;
            }
        }
    }
}

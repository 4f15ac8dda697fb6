//! Which events differ since that was last asked, so that showing the book again costs what changed.

use std::collections::BTreeSet;

use domain::EventId;

use super::Book;

/// More events than these are reported as all of them.
const EVENTS_MAX: usize = 4096;

/// Events in which something may differ that clients see; freshness alone does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    All,
    Events(BTreeSet<EventId>),
}

impl Book {
    /// Whether nothing was touched since that was last asked for.
    pub fn is_untouched(&self) -> bool {
        matches!(&self.touched, Touched::Events(ids) if ids.is_empty())
    }

    /// What was touched since this was last asked; everything, the first time.
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

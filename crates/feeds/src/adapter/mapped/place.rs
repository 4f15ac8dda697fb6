//! Positions of faults, for messages.

use std::fmt;

use crate::adapter::Drift;

/// A field of an item and its fault.
pub(super) type Fault = (&'static str, String);

/// A position in the mapping and the input; its path is formatted only when needed.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    within: Option<&'p Place<'p>>,
    name: &'static str,
    index: Option<usize>,
}

impl Place<'_> {
    pub(super) fn of(name: &'static str, index: usize) -> Self {
        Self { within: None, name, index: Some(index) }
    }

    pub(super) fn named<'p>(&'p self, name: &'static str) -> Place<'p> {
        Place { within: Some(self), name, index: None }
    }

    pub(super) fn part<'p>(&'p self, name: &'static str, index: usize) -> Place<'p> {
        Place { within: Some(self), name, index: Some(index) }
    }

    pub(super) fn fault(&self, (field, reason): Fault) -> Drift {
        Drift::new(format!("{self}.{field}"), reason)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = self.within {
            write!(f, "{within}")?;
        }
        let point = if self.within.is_some() && !self.name.is_empty() { "." } else { "" };
        write!(f, "{point}{}", self.name)?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

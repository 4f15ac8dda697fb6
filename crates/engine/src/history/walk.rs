//! Successive publications of the past: one book, rolled forward from each to the next.

use std::sync::Arc;

use domain::Timestamp;

use super::steps::Steps;
use super::turns::{TurnWait, Work};
use super::{History, HistoryError, Place, Source};
use crate::publication::Published;

/// The position of a reader of every publication.
#[derive(Debug)]
pub struct Walk {
    pub(super) history: Arc<History>,
    pub(super) steps: Box<Steps>,
}

impl History {
    /// Starts after a client's position; `current` is the time of the present publication. `None`: there is none that
    /// can be shown. `key`: the requesting key.
    pub(crate) async fn walk(
        self: &Arc<Self>,
        place: Place,
        current: Timestamp,
        key: u64,
    ) -> Result<Option<Walk>, HistoryError> {
        let mut wait = TurnWait::default();
        let found = self.find_place(place, current, &mut wait).await?;
        let Some(found) = found else { return Ok(None) };
        let begin = move |source: &Source| match source {
            Source::Simulated(past) => Ok(past.book(found.at)),
            Source::Logged(past) => past.book(found),
            Source::Nothing => Err(HistoryError::Off),
        };
        let book = self.on_source(Work::Rebuild, Some(key), &mut wait, begin).await?;
        let steps = Box::new(Steps::new(book, found));
        Ok(Some(Walk { history: Arc::clone(self), steps }))
    }
}

impl Walk {
    /// The next publication; `current` is the time of the present one. `None`: there is none yet.
    ///
    /// # Errors
    /// It cannot be rebuilt now, or history ends here.
    pub async fn next(
        self,
        current: Timestamp,
    ) -> Result<(Self, Option<Arc<Published>>), HistoryError> {
        let Self { history, mut steps } = self;
        let step = move |source: &Source| {
            let next = match source {
                Source::Simulated(past) => Ok(past.next(&mut steps, current)),
                Source::Logged(past) => past.next(&mut steps),
                Source::Nothing => Err(HistoryError::Off),
            };
            next.map(|next| (steps, next))
        };
        let wait = &mut TurnWait::default();
        let (steps, next) = history.on_source(Work::Read, None, wait, step).await?;
        let next = next.map(|next| Arc::new(next.of_the_past(0)));
        Ok((Self { history, steps }, next))
    }
}

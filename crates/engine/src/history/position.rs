//! Publications by the position of a client (S7).

use std::sync::Arc;

use domain::Timestamp;

use super::index::IN_LOG;
use super::logged::{EntryFound, LoggedPast};
use super::turns::{TurnWait, Work};
use super::{Found, History, HistoryError, IsSought, Place, Source};
use crate::publication::Published;

impl History {
    /// The publication at a client's position, and the time of the next one; `current` is the present publication.
    /// `None`: there is none that can be shown. It may have another catalogue. Those in memory satisfy `is`; the one in
    /// the log may not.
    pub(crate) async fn publication_at(
        self: &Arc<Self>,
        current: Arc<Published>,
        (place, is): (Place, IsSought<'_>),
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        let is_current = place.is_of(&current.snapshot);
        if is_current && is(&current.snapshot) {
            return Ok(Some((current, None)));
        }
        let recent = self.recent().find(|held| place.is_of(&held.snapshot) && is(&held.snapshot));
        // If the next one is not known here, the log has it.
        if let Some((recent, next @ Some(_))) = recent {
            return Ok(Some((recent, next)));
        }
        let mut wait = TurnWait::default();
        let found = match self.find_place(place, current.snapshot.cut_at, &mut wait).await {
            Err(HistoryError::Busy | HistoryError::Unreadable(_)) if recent.is_some() => {
                return Ok(recent);
            }
            found => found?,
        };
        match found {
            Some(found) if is_current && found.at == current.snapshot.cut_at => {
                Ok(Some((current, None)))
            }
            Some(found) => {
                let past = self.remake(found, key, wait).await?;
                Ok(Some((past.published, past.next)))
            }
            None => Ok(None),
        }
    }

    /// True if a position or time, also one between two publications, has to be read from the archive: it is not kept
    /// in memory, and the log no longer reaches back to it.
    pub(crate) async fn is_archived(self: &Arc<Self>, current: &Published, past: Place) -> bool {
        let is_kept = past.is_of(&current.snapshot)
            || self.recent().find(|held| past.is_of(&held.snapshot)).is_some();
        if is_kept || self.archive().is_none() {
            return false;
        }
        if let (Source::Logged(logged), Place::Entry(seq)) = (&self.source, past)
            && let Some((_, lineage)) = logged.find_entry_at_once(seq)
        {
            return lineage != IN_LOG;
        }
        // If it cannot be read, the request for it fails later.
        let wait = &mut TurnWait::default();
        self.look_up(wait, move |logged| logged.is_archived(past)).await.unwrap_or(false)
    }

    /// Finds a client's position; `None`: history does not have it.
    pub(super) async fn find_place(
        self: &Arc<Self>,
        place: Place,
        current: Timestamp,
        wait: &mut TurnWait,
    ) -> Result<Option<Found>, HistoryError> {
        let found = match (&self.source, place) {
            (Source::Simulated(past), Place::Time(at)) => past.find_place(at, current).map(Some),
            (Source::Logged(past), Place::Entry(seq)) => match past.find_entry_at_once(seq) {
                Some((found, _)) => Ok(Some(found)),
                None => self.find_entry(seq, wait).await,
            },
            (Source::Simulated(_) | Source::Logged(_) | Source::Nothing, _) => Ok(None),
        };
        match found {
            Ok(found) => Ok(found.filter(|found| place.is(found.seq, found.at))),
            Err(HistoryError::NotKept(_) | HistoryError::Off) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn find_entry(
        self: &Arc<Self>,
        seq: u64,
        wait: &mut TurnWait,
    ) -> Result<Option<Found>, HistoryError> {
        match self.look_up(wait, move |past| past.find_entry(seq)).await? {
            EntryFound::Known(found) => Ok(found),
            EntryFound::Archived { next } => {
                let find = move |past: &LoggedPast| past.find_archived(seq, next);
                self.on_logged(Work::StoreRead, wait, find).await
            }
        }
    }
}

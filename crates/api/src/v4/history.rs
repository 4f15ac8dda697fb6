//! Responses of current data as of a past second (V17).

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use engine::{HistoryError, PastPublication, WorldHandle};
use xxhash_rust::xxh3::xxh3_64;

use super::{Admitted, Answered};
use crate::admission::refusal::refused_by_history;
use crate::admission::world_of;
use crate::answers::{HashedSelector, Selector};
use crate::v4::error::{Code, Refused};
use crate::v4::parsed::Parsed;
use crate::v4::query::Values;
use crate::v4::selection::Neighbours;
use crate::v4::target_path::TargetPath;
use crate::v4::wire::{Source, V4};

/// Times are whole seconds here, so that the time in a response leads back to its publication.
const WITHIN_SECOND: Duration = Duration::from_millis(999);

impl Admitted<'_> {
    /// The response as of the publication at `date`; `current` is the current data.
    pub(super) async fn past(
        &self,
        target: TargetPath<'_>,
        handle: &WorldHandle,
        current: &Source<'_>,
    ) -> Answered {
        // A sport of the past may not exist now; whether it existed is known once its time is known.
        let known = match self.open_sport(target, current) {
            Ok(known) => Some(known),
            Err(refused) if refused.code == Code::UnknownSport => None,
            Err(refused) => return Err(refused),
        };
        if !handle.history.is_on() {
            known.ok_or_else(super::unknown_sport)?;
            let text = ": this service keeps no history; current data is under /v4/sports";
            return Err(Refused::new(Code::HistoricalUnavailable, text));
        }
        let is_known = known.is_some();
        // A fault of the sport is reported before other faults.
        let after_sport =
            |refused: Refused| if is_known { refused } else { super::unknown_sport() };
        let read = Values::new(self.query, target).and_then(|read| Ok((read.date()?, read)));
        let (date, read) = read.map_err(after_sport)?;
        let at = date.plus(WITHIN_SECOND).min(handle.latest(self.now));
        // Checked before a publication is rebuilt.
        if let Some((sport, _)) = &known
            && let Err(refused) = read.selection(target, sport.clone(), &self.api.catalogue)
            && !self.has_other_names(at, handle).await?
        {
            return Err(refused);
        }
        let past = self.publication_of(at, handle).await.map_err(|refused| {
            let is_temporary = refused.code.status() == 503;
            if is_temporary { refused } else { after_sport(refused) }
        })?;
        let world = world_of(&self.entry.grant);
        let answers = self.api.answers(world, &past.published);
        let (snapshot, publication) = (&past.published.snapshot, &answers.v4);
        let source = Source { snapshot, wire: V4(world), publication };
        // Names have the meaning they had at that time.
        let catalogue = snapshot.catalogue();
        let known = known.filter(|_| Arc::ptr_eq(catalogue, current.snapshot.catalogue()));
        let (sport, lasting) = match (self.open_sport(target, &source), known) {
            (Err(refused), Some(known)) if refused.code == Code::UnknownSport => known,
            (opened, _) => opened?,
        };
        let (mut selection, price) = read.selection(target, sport, catalogue)?;
        selection.neighbours = Some(self.neighbours(&past, handle).await?);
        let selector = Selector::V4(selection);
        let asked = HashedSelector::new(selector);
        let parsed = Parsed { operation: target.operation, lasting, asked, price };
        self.select(&parsed, &past.published, answers, &source, Some(&past)).await
    }

    /// True if names of an instant may be others than the present ones: its publication has another catalogue.
    async fn has_other_names(&self, at: Timestamp, handle: &WorldHandle) -> Result<bool, Refused> {
        match handle.other_catalogue(at).await {
            Ok(other) => Ok(other.is_some()),
            Err(unread @ (HistoryError::Unreadable(_) | HistoryError::Busy)) => {
                Err(refused_by_history(&unread).into())
            }
            Err(_) => Ok(false),
        }
    }

    /// The last publication at or before an instant.
    async fn publication_of(
        &self,
        at: Timestamp,
        handle: &WorldHandle,
    ) -> Result<PastPublication, Refused> {
        let key = xxh3_64(self.entry.grant.key_id.as_str().as_bytes());
        handle.as_of(at, key).await.map_err(|error| match error {
            HistoryError::NotKept(reach) => {
                let text = format!(
                    ": there is no publication of that time; history reaches from {} to {}",
                    reach.from, reach.to
                );
                Refused::new(Code::InvalidHistoricalTimestamp, &text)
            }
            HistoryError::Off
            | HistoryError::Busy
            | HistoryError::NoCatalogue
            | HistoryError::TooFar
            | HistoryError::TooMuch
            | HistoryError::Unreadable(_) => refused_by_history(&error).into(),
        })
    }

    /// The publications next to one. It is the last of its second; others of that second may precede it.
    async fn neighbours(
        &self,
        past: &PastPublication,
        handle: &WorldHandle,
    ) -> Result<Neighbours, Refused> {
        let second = past.published.snapshot.cut_at.as_secs();
        let mut previous = past.previous;
        if previous.is_some_and(|previous| previous.as_secs() == second) {
            let before = Timestamp::from_secs(second).minus(Duration::from_millis(1));
            let before = handle.published_before(before).await;
            previous = before.map_err(|error| refused_by_history(&error))?;
        }
        Ok(Neighbours { previous, next: past.next })
    }
}

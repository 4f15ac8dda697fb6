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
        let known = self.open_sport(target, current);
        if !handle.history.is_on() {
            known?;
            let text = ": this service keeps no history; current data is under /v4/sports";
            return Err(Refused::new(Code::HistoricalUnavailable, text));
        }
        let read = Values::new(self.query, target);
        let date = match (&known, read.as_ref().map(Values::date)) {
            (_, Ok(Ok(date))) => date,
            // A fault of the sport is reported before other faults.
            (Err(_), _) => return Err(known.err().unwrap_or_else(super::unknown_sport)),
            (Ok(_), Ok(Err(refused))) => return Err(refused),
            (Ok(_), Err(_)) => return Err(read.err().unwrap_or_else(super::unknown_sport)),
        };
        let past = self.publication_of(date, handle).await;
        let past = match (past, known.is_ok()) {
            (Ok(past), _) => past,
            (Err(refused), is_known) if is_known || refused.code.status() == 503 => {
                return Err(refused);
            }
            (Err(_), _) => return Err(super::unknown_sport()),
        };
        let world = world_of(&self.entry.grant);
        let answers = self.api.answers(world, &past.published);
        let (snapshot, publication) = (&past.published.snapshot, &answers.v4);
        let source = Source { snapshot, wire: V4(world), publication };
        // Names have the meaning they had at that time.
        let catalogue = snapshot.catalogue();
        let known =
            known.and_then(|known| match Arc::ptr_eq(catalogue, current.snapshot.catalogue()) {
                true => Ok(known),
                false => Err(super::unknown_sport()),
            });
        let (sport, lasting) = self.open_sport(target, &source).or(known)?;
        let (mut selection, price) = read?.selection(target, sport, catalogue)?;
        selection.neighbours = Some(self.neighbours(&past, handle).await?);
        let selector = Selector::V4(selection);
        let asked = HashedSelector::new(selector);
        let parsed = Parsed { operation: target.operation, lasting, asked, price };
        self.select(&parsed, &past.published, answers, &source, Some(&past)).await
    }

    /// The last publication in a second or before it.
    async fn publication_of(
        &self,
        date: Timestamp,
        handle: &WorldHandle,
    ) -> Result<PastPublication, Refused> {
        let at = date.plus(WITHIN_SECOND).min(handle.latest(self.now));
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

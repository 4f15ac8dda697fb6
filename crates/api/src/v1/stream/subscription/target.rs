//! The publication to which a stream advances.

use std::sync::Arc;

use engine::{Published, WorldHandle};

use super::Subscription;
use crate::position::{LogPlace, sought};
use crate::v1::changes::Base;
use crate::v1::stream::selection::Followed;
use crate::v1::stream::shared::NotRendered;
use crate::v1::wire::stream::{Mode, Reset};

impl Subscription {
    /// The last publication to send: the current one, or that of `until`.
    pub(super) async fn last(
        &self,
        handle: &WorldHandle,
        present: &Arc<Published>,
        key: u64,
    ) -> Result<Arc<Published>, NotRendered> {
        match self.until {
            Some(until) if until < present.snapshot.cut_at => {
                let past = handle.as_of(until, key).await;
                // It existed when the stream began; a restart would not bring it back.
                past.map(|past| past.published).map_err(|_| NotRendered::Later)
            }
            Some(_) | None => Ok(Arc::clone(present)),
        }
    }

    /// The next step from a position: the last publication or, if that is far, one in between.
    pub(super) async fn on_the_way(
        &mut self,
        handle: &WorldHandle,
        place: LogPlace,
        last: Result<Arc<Published>, NotRendered>,
        key: u64,
    ) -> Result<Arc<Published>, NotRendered> {
        let last = last?;
        // A screen is not a sum of changes: from an unknown one the browser reloads the page.
        if let Followed::Screen(_) = self.selection.followed {
            return Ok(last);
        }
        let step = handle.step_from(sought(handle.world, place.0), &last.snapshot).await?;
        self.is_far = step.is_some();
        let Some(step) = step else { return Ok(last) };
        let found = handle.publication_at(step, key).await?;
        found.map(|(step, _)| step).ok_or(NotRendered::Reset(Reset::Expired))
    }
}

/// The publication at a position.
pub(super) async fn past(
    handle: &WorldHandle,
    place: LogPlace,
    key: u64,
) -> Result<Arc<Published>, NotRendered> {
    match Base::find(handle, place, Mode::Publication, key).await {
        Ok(Base::Held(held, _)) => Ok(held),
        Ok(Base::Expired | Base::Unknown) => Err(NotRendered::Reset(Reset::Expired)),
        Ok(Base::Ahead) | Err(_) => Err(NotRendered::Later),
    }
}

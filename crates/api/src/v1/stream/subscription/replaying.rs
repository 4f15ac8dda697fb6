//! Next events of a stream that replays the past.

use std::sync::Arc;

use engine::{Published, Reached, WorldHandle};

use super::{KeyRight, Subscription};
use crate::position::LogPlace;
use crate::v1::stream::end::End;
use crate::v1::stream::render::Rendered;
use crate::v1::stream::replay::{Replayer, Step};

impl Subscription {
    /// The publication after a position, for streams that replay every publication.
    pub(super) async fn replay_step(
        &mut self,
        handle: &WorldHandle,
        place: LogPlace,
        last: &Arc<Published>,
    ) -> Result<Option<Arc<Rendered>>, End> {
        let Some(KeyRight { entry, .. }) = self.right.clone() else { return Ok(None) };
        let Some(mut replay) = self.replay.take() else { return Ok(None) };
        let by = Replayer { api: &self.api, entry: &entry };
        let step = replay.step(by, handle, &self.selection, place, last).await;
        self.replay = Some(replay);
        if let Ok(step) = &step {
            self.pay_for(step).await?;
        }
        self.rendered(step.map(|step| step.rendered))
    }

    /// The change or the publication after a position, for streams that replay every change. `has_shown`: everything
    /// up to `until` was shown before.
    pub(super) async fn replay_change(
        &mut self,
        handle: &WorldHandle,
        place: LogPlace,
        present: &Arc<Published>,
        has_shown: bool,
    ) -> Result<Option<Arc<Rendered>>, End> {
        let Some(KeyRight { entry, .. }) = self.right.clone() else { return Ok(None) };
        let Some(mut replay) = self.replay.take() else { return Ok(None) };
        let by = Replayer { api: &self.api, entry: &entry };
        let reached = Reached {
            seq: handle.last_entry(),
            published: present.snapshot.cut_at,
            now: self.api.clock.now(),
        };
        let from = (place, self.start(place));
        let step = replay.change(by, (handle, reached), &self.selection, from, self.until).await;
        let step = step.transpose();
        self.replay = Some(replay);
        let Some(step) = step else { return self.caught_up(present, has_shown) };
        if let Ok(step) = &step {
            let is_later = |until| until < step.rendered.cut_at;
            if self.until.is_some_and(is_later) {
                return Err(End::done());
            }
            self.pay_for(step).await?;
        }
        self.rendered(step.map(|step| step.rendered))
    }

    async fn pay_for(&self, step: &Step) -> Result<(), End> {
        if step.costs { self.charge().await } else { Ok(()) }
    }
}

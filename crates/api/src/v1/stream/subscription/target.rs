//! The publication to which a stream advances.

use std::sync::Arc;

use engine::{Published, Stride, WorldHandle};
use tokio::time::Instant;

use super::{KeyRight, LATER_MAX, Subscription};
use crate::position::{LogPlace, sought};
use crate::v1::changes::Base;
use crate::v1::stream::end::End;
use crate::v1::stream::render::Rendered;
use crate::v1::stream::replay::{Replay, Replayer};
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

    /// Waits for what follows its position, or ends. `has_shown`: everything up to `until` was shown before it was
    /// looked for. Changes that nobody followed are shown a moment after the stream has begun.
    pub(super) fn caught_up(
        &mut self,
        present: &Published,
        has_shown: bool,
    ) -> Result<Option<Arc<Rendered>>, End> {
        if !self.is_done(present) {
            self.later_since = None;
            self.turn = None;
            // One with exact freshness joins the live states only at a publication: until then it keeps its book.
            let is_whole = self.selection.wants_whole();
            self.replay.iter_mut().filter(|_| !is_whole).for_each(Replay::rest);
            return Ok(None);
        }
        if has_shown {
            return Err(End::done());
        }
        // The next publication shows it in any case.
        let since = *self.later_since.get_or_insert_with(Instant::now);
        let interval = self.api.world(self.selection.world).refresh_interval();
        match since.elapsed() < interval + LATER_MAX {
            true => Ok(None),
            false => self.rendered(Err(NotRendered::Later)),
        }
    }

    /// True if nothing more can come before `until`. A publication that is due by then is waited for.
    fn is_done(&self, present: &Published) -> bool {
        let now = self.api.clock.now();
        self.until.is_some_and(|until| {
            let waited = now.since(until) >= LATER_MAX;
            until <= now && (until < present.until || waited)
        })
    }

    /// The events of the next step from a position.
    ///
    /// If more was quoted in the step than can be looked through, it is taken publication by publication: between two
    /// successive ones nothing is looked up.
    pub(super) async fn step(
        &mut self,
        handle: &WorldHandle,
        place: LogPlace,
        last: Result<Arc<Published>, NotRendered>,
        key: u64,
    ) -> Result<Arc<Rendered>, NotRendered> {
        let last = last?;
        let to = self.on_the_way(handle, place, &last, key).await?;
        match self.events_to(handle, place, &to, key).await {
            Err(NotRendered::TooMuch) => {}
            events => return events,
        }
        // As costly as a replay.
        if self.turn.is_none()
            && let Some(KeyRight { entry, .. }) = &self.right
        {
            let by = Replayer { api: &self.api, entry };
            self.turn = Some(by.take_turn().await.ok_or(NotRendered::Later)?);
        }
        // Not without a turn: the next attempt would go on publication by publication, and not ask for one again.
        self.slow_to = Some(self.selection.place_of(&to.snapshot).0);
        let to = self.on_the_way(handle, place, &last, key).await?;
        self.events_to(handle, place, &to, key).await
    }

    async fn events_to(
        &self,
        handle: &WorldHandle,
        place: LogPlace,
        to: &Arc<Published>,
        key: u64,
    ) -> Result<Arc<Rendered>, NotRendered> {
        let renders = self.api.streams.renders(&self.selection);
        renders.events(handle, &self.selection, self.start(place), to, key).await
    }

    /// The next publication from a position: the last one or, if that is far, one in between.
    async fn on_the_way(
        &mut self,
        handle: &WorldHandle,
        place: LogPlace,
        last: &Arc<Published>,
        key: u64,
    ) -> Result<Arc<Published>, NotRendered> {
        // A screen is not a sum of changes: from an unknown one the browser reloads the page.
        if let Followed::Screen(_) = self.selection.followed {
            return Ok(Arc::clone(last));
        }
        let is_slow = self.slow_to.is_some_and(|end| place.0 < end);
        let stride = if is_slow { Stride::One } else { Stride::Long };
        let step = handle.step_from(sought(handle.world, place.0), &last.snapshot, stride).await?;
        self.is_far = step.is_some();
        let Some(step) = step else { return Ok(Arc::clone(last)) };
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

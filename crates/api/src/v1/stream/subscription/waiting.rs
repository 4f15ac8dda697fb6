//! Waiting of a stream that has nothing to send: in its group, or alone.

use std::time::Duration;

use tokio::time::Instant;

use super::{Begin, LATER_MAX, Subscription};
use crate::position::LogPlace;
use crate::v1::stream::waiter::Waiting;
use crate::v1::wire::stream::Mode;

/// Interval of further attempts, in addition to each publication.
const LATER_EVERY: Duration = Duration::from_millis(500);

/// Reason why a waiting stream continues.
pub(super) enum Woken {
    Changed,
    Heartbeat,
}

impl Subscription {
    /// Waits until there is something to do.
    pub(super) async fn wait(&mut self) -> Woken {
        if !self.first.is_empty() {
            return Woken::Changed;
        }
        if let Begin::At(place) = self.begin
            && self.is_like_others(place)
        {
            return self.wait_with_others(place).await;
        }
        Box::pin(self.wait_alone()).await
    }

    /// Waits, also for events that concern this stream only.
    async fn wait_alone(&mut self) -> Woken {
        let heartbeat = self.heartbeat_at();
        let later = self.later_since.map(|_| Instant::now() + LATER_EVERY);
        let until = [later, self.until_end(), self.key_end()].into_iter().flatten();
        let until = until.fold(heartbeat, Instant::min);
        let live = async {
            match &mut self.live {
                Some(live) => live.changed().await,
                None => std::future::pending().await,
            }
        };
        // A closed channel means that the service ends, which `check` finds.
        tokio::select! {
            _ = live => Woken::Changed,
            _ = self.publications.changed() => Woken::Changed,
            _ = self.endings.changed() => Woken::Changed,
            _ = self.losses.changed() => Woken::Changed,
            _ = self.stopping.changed() => Woken::Changed,
            _ = self.slow.changed() => Woken::Changed,
            () = tokio::time::sleep_until(until) => {
                if until == heartbeat { Woken::Heartbeat } else { Woken::Changed }
            }
        }
    }

    /// Time at which it has to look whether it has come to `until`.
    fn until_end(&self) -> Option<Instant> {
        let (until, now) = (self.until?, self.api.clock.now());
        if now < until {
            return Some(Instant::now() + until.since(now));
        }
        // Once that has passed, it would try again without a pause.
        if self.later_since.is_some() {
            return None;
        }
        // When the publication of that time is overdue.
        Some(Instant::now() + until.plus(LATER_MAX).since(now))
    }

    /// True if it waits for the next events and for nothing of its own.
    fn is_like_others(&self, place: LogPlace) -> bool {
        let (ends, past) = (self.until.is_some(), self.replay.is_some() || self.turn.is_some());
        // Others were not sent what it may have.
        let is_alone = ends || past || self.elsewhere_to.is_some() || self.is_between(place);
        !is_alone && self.later_since.is_none()
    }

    /// True if it follows publications, and its position is not that of the current one: `live` was left there. The
    /// state of such a position may have to be rebuilt, for which a group would wait.
    fn is_between(&self, place: LogPlace) -> bool {
        let handle = self.api.world(self.selection.world);
        match self.selection.mode {
            Mode::Live => false,
            Mode::Publication => self.selection.place_of(&handle.published().snapshot) != place,
        }
    }

    /// Waits in its group, which writes events for it.
    async fn wait_with_others(&mut self, place: LogPlace) -> Woken {
        let waiting =
            Waiting { right: self.right.clone(), place, paid: self.paid, sent_at: self.sent_at };
        let registered = self.member.waiter.register(waiting);
        self.member.wait_at(place, &self.api);
        let handle = self.api.world(self.selection.world);
        // Events before the registration were written to the others only.
        if self.selection.next_after(place, handle).is_none() {
            let heartbeat = self.heartbeat_at();
            let until = self.key_end().map_or(heartbeat, |end| end.min(heartbeat));
            tokio::select! {
                () = registered.called() => {}
                _ = self.endings.changed() => {}
                _ = self.losses.changed() => {}
                _ = self.stopping.changed() => {}
                _ = self.slow.changed() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
        let (waiting, given) = registered.leave();
        self.given = given;
        if let Some(Waiting { place: at, paid, sent_at, .. }) = waiting {
            self.begun |= at != place;
            (self.begin, self.paid, self.sent_at) = (Begin::At(at), paid, sent_at);
        }
        let is_silent = self.given.is_none() && self.heartbeat_at() <= Instant::now();
        if is_silent { Woken::Heartbeat } else { Woken::Changed }
    }

    pub(super) fn heartbeat_at(&self) -> Instant {
        self.sent_at + Duration::from_secs(self.heartbeat_s.into())
    }
}

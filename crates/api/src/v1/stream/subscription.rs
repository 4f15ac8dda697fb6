//! One stream: its position, its reasons to wait, and its next events.

mod ending;
mod replaying;
mod target;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use domain::Timestamp;
use engine::{Published, WholeSnapshots};
use http::ByteSource;
use market::Snapshot;
use tokio::sync::watch;
use tokio::time::Instant;

pub(super) use self::ending::Held;
use self::ending::Overdue;
use self::target::past;
use self::waiting::Woken;
use super::end::End;
use super::group::Member;
use super::metrics::StreamMetrics;
use super::render::Rendered;
use super::replay::{Replay, ReplayTurn, key_number};
use super::selection::Selection;
use super::shared::{NotRendered, StartFrom};
use super::slots::KeyRight;
use super::unread::Chunk;
use super::waiter::{Given, Waiter};
use crate::admission::refusal::charged;
use crate::context::Api;
use crate::error::ApiError;
use crate::position::LogPlace;
use crate::v1::changes::never_comes;
use crate::v1::wire::stream::{self as wire, EndCode, Event, Mode, Reset};

/// Maximum time for a node to reach a position, or to rebuild its publication.
const LATER_MAX: Duration = Duration::from_secs(10);

/// Start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With a snapshot of the current publication.
    Now,
    /// With a snapshot of a past publication.
    Past(LogPlace),
    /// With the changes since a position.
    At(LogPlace),
}

/// Events being sent, which other streams share, and the number of chunks already sent.
#[derive(Debug)]
struct Outgoing {
    rendered: Arc<Rendered>,
    sent: usize,
}

/// One stream.
pub(super) struct Subscription {
    api: Arc<Api>,
    /// `None` if anybody may follow.
    right: Option<KeyRight>,
    _held: Held,
    selection: Arc<Selection>,
    begin: Begin,
    /// Set if every publication is sent.
    replay: Option<Replay>,
    /// The right to read its position from the archive, until the stream has caught up.
    turn: Option<ReplayTurn>,
    /// True if further steps follow the next one.
    is_far: bool,
    /// Up to this position it takes one publication at a time.
    slow_to: Option<u64>,
    /// The stream ends at this time: later publications are not sent.
    until: Option<Timestamp>,
    /// The publication up to which the quota is paid.
    paid: Timestamp,
    /// True if a snapshot or a cut was sent: everything before is paid with the request.
    begun: bool,
    /// The position up to which its client may have a part of what another connection has sent: in `live`, until a
    /// publication is passed, since live states differ from node to node.
    elsewhere_to: Option<u64>,
    heartbeat_s: u32,
    /// Number of streams opened before it.
    number: u64,
    /// Events for this stream only.
    first: VecDeque<Bytes>,
    outgoing: Option<Outgoing>,
    /// Events that its group left to it.
    given: Option<Given>,
    /// Time since when it waits for something that may be possible in a moment.
    later_since: Option<Instant>,
    sent_at: Instant,
    publications: watch::Receiver<()>,
    /// Notifies of states shown between publications; `None` if only publications are followed.
    live: Option<watch::Receiver<()>>,
    /// Set if those have to be whole snapshots.
    _whole: Option<WholeSnapshots>,
    endings: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    /// The end code, if an end was sent.
    end_code: Option<EndCode>,
    /// True if its client was dropped because it does not read.
    slow: watch::Receiver<bool>,
    /// Its membership in the group of its selection.
    member: Member,
    /// Notifies when slots of this node may be lost.
    losses: watch::Receiver<u64>,
    /// Set while its client does not accept the bytes sent.
    overdue: Option<Overdue>,
}

impl Subscription {
    pub(super) fn new(
        api: &Arc<Api>,
        right: Option<KeyRight>,
        held: Held,
        member: Member,
        begin: Begin,
    ) -> Self {
        let selection = Arc::clone(member.selection());
        let handle = api.world(selection.world);
        Self {
            number: api.streams.metrics(&selection).note_begin(),
            live: (selection.mode == Mode::Live).then(|| handle.live_changes()),
            elsewhere_to: elsewhere_to(api, &selection, begin),
            _whole: selection.wants_whole().then(|| handle.want_whole()),
            publications: handle.publications(),
            endings: api.accounts.endings(),
            stopping: api.server.stopping(),
            paid: handle.published().snapshot.cut_at,
            api: Arc::clone(api),
            right,
            _held: held,
            selection,
            member,
            begin,
            begun: false,
            until: None,
            replay: None,
            turn: None,
            is_far: false,
            slow_to: None,
            heartbeat_s: 0,
            first: VecDeque::new(),
            outgoing: None,
            given: None,
            later_since: None,
            sent_at: Instant::now(),
            end_code: None,
            // Replaced by `noting` when the sender exists.
            slow: watch::channel(false).1,
            losses: api.accounts.streams.losses(),
            overdue: None,
        }
    }

    /// Adds its first event, and the reason for not starting at the requested position.
    pub(super) fn saying(mut self, hello: &Event, reset: Option<Reset>, heartbeat_s: u32) -> Self {
        self.heartbeat_s = heartbeat_s;
        self.first.push_back(hello.encode(self.selection.transport).into());
        if let Some(reason) = reset {
            self.note_reset(reason);
        }
        self
    }

    pub(super) fn replaying(mut self, replay: Option<Replay>) -> Self {
        self.replay = replay;
        self
    }

    pub(super) fn resuming(mut self, turn: Option<ReplayTurn>) -> Self {
        self.turn = turn;
        self
    }

    pub(super) fn ending_at(mut self, until: Option<Timestamp>) -> Self {
        self.until = until;
        self
    }

    /// Adds the receiver that reports that its client was dropped.
    pub(super) fn noting(mut self, slow: watch::Receiver<bool>) -> Self {
        self.slow = slow;
        self
    }

    /// Its waiter.
    pub(super) fn waiter(&self) -> Arc<Waiter> {
        Arc::clone(&self.member.waiter)
    }

    async fn next(&mut self) -> Result<Bytes, End> {
        // The rest of a partly sent event.
        if let Some(rest) = self.take_rest() {
            return Ok(rest);
        }
        loop {
            // Before every event, regardless of the reason to wait: nothing is sent to a key that has ended.
            self.check()?;
            if let Some(bytes) = self.first.pop_front() {
                self.note(&bytes, 1);
                return Ok(bytes);
            }
            if let Some(chunk) = self.next_chunk()? {
                self.note(&chunk.bytes, chunk.events);
                return Ok(chunk.bytes);
            }
            // Boxed, or every waiting stream would hold the memory for making events.
            let wait = match Box::pin(self.paid_events()).await? {
                Some(rendered) => {
                    if rendered.chunks.count() == 0 {
                        self.move_to(&rendered);
                    } else {
                        self.outgoing = Some(Outgoing { rendered, sent: 0 });
                    }
                    continue;
                }
                None => self.wait().await,
            };
            if let Some(rest) = self.take_rest() {
                return Ok(rest);
            }
            if matches!(wait, Woken::Heartbeat) {
                self.check()?;
                return Ok(self.selection.transport.heartbeat(self.heartbeat_s));
            }
        }
    }

    /// Checks that the stream may still be sent anything.
    fn check(&mut self) -> Result<(), End> {
        if *self.slow.borrow() {
            return Err(End::slow());
        }
        if *self.stopping.borrow() {
            return Err(End::stopping(self.number));
        }
        self.check_right()
    }

    /// The next chunk of the events being sent. With the last one, the position moves.
    fn next_chunk(&mut self) -> Result<Option<Chunk>, End> {
        let Some(outgoing) = self.outgoing.as_mut() else { return Ok(None) };
        let now = std::time::Instant::now();
        let Some(chunk) = outgoing.rendered.chunks.take(outgoing.sent, now) else {
            let made_again = outgoing.sent == 0 && self.replay.is_none();
            self.outgoing = None;
            return if made_again { Ok(None) } else { Err(End::given_up()) };
        };
        outgoing.sent += 1;
        if outgoing.sent >= outgoing.rendered.chunks.count() {
            let rendered = Arc::clone(&outgoing.rendered);
            self.outgoing = None;
            self.move_to(&rendered);
            let metrics = self.metrics();
            metrics.note_lag(self.api.clock.now().since(rendered.cut_at));
            metrics.conflated.fetch_add(u64::from(rendered.conflated), Ordering::Relaxed);
        }
        Ok(Some(chunk))
    }

    fn move_to(&mut self, rendered: &Rendered) {
        // The steps after a snapshot of the past are not known yet.
        let is_past = matches!(self.begin, Begin::Past(_));
        let stays = |to: &u64| {
            rendered.is_between && rendered.to.0 < *to && matches!(self.begin, Begin::At(_))
        };
        self.elsewhere_to = self.elsewhere_to.filter(stays);
        self.begin = Begin::At(rendered.to);
        if !self.is_far && !is_past {
            self.turn = None;
        }
        self.begun = true;
    }

    /// The rest of an event that its group began to write.
    fn take_rest(&mut self) -> Option<Bytes> {
        let (rendered, rest) = match self.given.take()? {
            Given::Rest(rendered, rest) => (rendered, rest),
            events @ Given::Events(_) => {
                self.given = Some(events);
                return None;
            }
        };
        if let Some(chunk) = rendered.chunks.only() {
            let lag = self.api.clock.now().since(rendered.cut_at);
            self.metrics().note_written(1, chunk, rendered.conflated, lag);
        }
        Some(rest)
    }

    /// The next events, paid for; `None` if there are none yet. If the stream has to end meanwhile, it does not wait
    /// for them.
    async fn paid_events(&mut self) -> Result<Option<Arc<Rendered>>, End> {
        let mut sent_at = self.sent_at;
        let ended = self.ended(&mut sent_at);
        let events = async {
            let events = self.events().await?;
            if let Some(rendered) = &events {
                self.pay(rendered).await?;
            }
            Ok(events)
        };
        let events = tokio::select! {
            biased;
            events = events => events,
            end = ended => Err(end),
        };
        self.sent_at = sent_at;
        events
    }

    /// The next events; `None` if there are none yet.
    async fn events(&mut self) -> Result<Option<Arc<Rendered>>, End> {
        if let Some(Given::Events(rendered)) = self.given.take() {
            return Ok(Some(rendered));
        }
        let api = Arc::clone(&self.api);
        let handle = api.world(self.selection.world);
        self.publications.borrow_and_update();
        if let Some(live) = &mut self.live {
            live.borrow_and_update();
        }
        // Before the state that is shown now: it may be shown meanwhile.
        let has_shown = self.until.is_none_or(|until| self.selection.has_shown(until, handle));
        // Read first: at that time every earlier publication is current, so none is skipped.
        let shown = self.selection.shown(handle);
        let present = Arc::clone(&handle.published());
        let key = self.right.as_ref().map_or(0, |right| key_number(&right.entry));
        if let (Begin::At(place), Mode::Live, Some(_)) =
            (self.begin, self.selection.mode, &self.replay)
        {
            return self.replay_change(handle, place, &present, has_shown).await;
        }
        let last = self.last(handle, &present, key).await;
        let (from, to) = match (self.begin, last) {
            (Begin::At(place), Ok(last)) if self.has_reached(place, &last, &present) => {
                match shown.filter(|shown| self.follows(place, &shown.snapshot)) {
                    Some(shown) => (self.start(place), Ok(shown)),
                    None => return self.caught_up(&present, has_shown),
                }
            }
            (Begin::At(place), Ok(last)) if self.replay.is_some() => {
                return self.replay_step(handle, place, &last).await;
            }
            (Begin::At(place), last) => {
                let events = self.step(handle, place, last, key).await;
                return self.rendered(events);
            }
            (Begin::Now, last) => (StartFrom::Nothing, last),
            (Begin::Past(place), _) => (StartFrom::Nothing, past(handle, place, key).await),
        };
        let events = match to {
            Ok(to) => {
                let renders = api.streams.renders(&self.selection);
                renders.events(handle, &self.selection, from, &to, key).await
            }
            Err(error) => Err(error),
        };
        self.rendered(events)
    }

    /// The starting point of the next events, at a position.
    fn start(&self, place: LogPlace) -> StartFrom {
        match self.elsewhere_to.is_some() {
            true => StartFrom::Elsewhere(place),
            false => StartFrom::Here(place),
        }
    }

    /// Handles the result of rendering: events, a restart, another attempt, or an end.
    fn rendered(
        &mut self,
        events: Result<Arc<Rendered>, NotRendered>,
    ) -> Result<Option<Arc<Rendered>>, End> {
        match events {
            Ok(rendered) => {
                self.later_since = None;
                Ok(Some(rendered))
            }
            Err(NotRendered::Reset(reason)) => {
                self.begin = Begin::Now;
                self.is_far = false;
                self.note_reset(reason);
                Ok(None)
            }
            // Even of the shortest step.
            Err(NotRendered::TooMuch) => self.rendered(Err(NotRendered::Reset(Reset::Expired))),
            Err(why @ (NotRendered::Later | NotRendered::Ahead)) => {
                let since = *self.later_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= LATER_MAX {
                    let handle = self.api.world(self.selection.world);
                    let is_ahead = matches!(why, NotRendered::Ahead);
                    if is_ahead && never_comes(handle, self.api.clock.now()) {
                        self.later_since = None;
                        self.begin = Begin::Now;
                        self.note_reset(Reset::Unknown);
                        return Ok(None);
                    }
                    let text = "this node is behind the position of the stream, or too busy to make its events";
                    return Err(ApiError::unavailable(text).into());
                }
                Ok(None)
            }
            Err(NotRendered::Failed) => Err(ApiError::internal().into()),
        }
    }

    /// True if a position is that of the last publication, between it and the next, or after the last one that the
    /// stream sends.
    fn has_reached(&self, place: LogPlace, last: &Published, present: &Published) -> bool {
        let ends_before = last.snapshot.cut_at < present.snapshot.cut_at;
        let handle = self.api.world(self.selection.world);
        self.selection.has_reached(place, &last.snapshot, handle)
            || (ends_before && place.0 >= self.selection.place_of(&last.snapshot).0)
    }

    /// True if there is something to send after a position.
    fn follows(&self, place: LogPlace, shown: &Snapshot) -> bool {
        let ended = self.until.is_some_and(|until| until < shown.cut_at);
        !ended && self.selection.place_of(shown).0 > place.0
    }

    /// Charges changes, once for each publication, as polling would.
    async fn pay(&mut self, rendered: &Rendered) -> Result<(), End> {
        let is_first = !self.begun && self.begin == Begin::Now;
        if !is_first && rendered.has_changes && rendered.paid_until > self.paid {
            self.charge().await?;
        }
        if is_first || rendered.has_changes {
            self.paid = self.paid.max(rendered.paid_until);
        }
        Ok(())
    }

    /// Charges one request.
    async fn charge(&self) -> Result<(), End> {
        let Some(KeyRight { entry, .. }) = &self.right else { return Ok(()) };
        charged(self.api.accounts.charge_quota(entry, self.api.clock.now()).await)?;
        Ok(())
    }

    fn metrics(&self) -> &StreamMetrics {
        self.api.streams.metrics(&self.selection)
    }

    fn note_reset(&mut self, reason: Reset) {
        self.first.push_back(wire::reset(reason).encode(self.selection.transport).into());
        self.metrics().resets.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, bytes: &Bytes, events: u32) {
        let metrics = self.metrics();
        metrics.events.fetch_add(events.into(), Ordering::Relaxed);
        metrics.bytes.fetch_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Encodes the last event.
    fn finish(&mut self, End { code, message, retry_after_s, retry_ms, close_code }: End) -> Bytes {
        self.end_code = Some(code);
        let transport = self.selection.transport;
        let mut bytes = wire::end(code, &message, retry_after_s, retry_ms).encode(transport);
        bytes.extend(transport.closing(close_code));
        let bytes = bytes.into();
        self.note(&bytes, 1);
        bytes
    }
}

impl ByteSource for Subscription {
    async fn next_bytes(&mut self) -> Option<Bytes> {
        self.note_taken();
        let next = match self.end_code {
            Some(_) => None,
            None => Some(self.next().await.unwrap_or_else(|end| self.finish(end))),
        };
        self.sent_at = Instant::now();
        next
    }

    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_end_overdue(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let slow = self.slow.borrow().then_some(EndCode::Slow);
        self.metrics().note_end(self.end_code.or(slow));
    }
}

/// The position up to which a client that resumes at another one may have a part of what was sent to it.
fn elsewhere_to(api: &Api, selection: &Selection, begin: Begin) -> Option<u64> {
    let (Mode::Live, Begin::At((at, _))) = (selection.mode, begin) else { return None };
    let handle = api.world(selection.world);
    // What was sent was in the log. A node that does not write it may be behind.
    let to = if handle.leads() { handle.last_place(api.clock.now()) } else { u64::MAX };
    Some(to).filter(|to| at < *to)
}

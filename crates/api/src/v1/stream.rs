//! `GET /v1/stream`: changes as they are published, over Server-Sent Events or a WebSocket (S1 to S16).
//!
//! The flow, from a publication to a client:
//!
//! 1. A connection has a `Subscription`: its position in the log and no more. It waits for the next publication, for
//!    the end of a key or of the service, or for its heartbeat.
//! 2. It requests the events from its position to the current publication. They are rendered once for all streams of
//!    the same `Selection` at the same position, off the request threads, and shared within a bound of memory
//!    (`shared`). The publication at its position is either still kept or read from history.
//! 3. It sends the events one by one, at the pace of its client, and checks the key before each. The position of a
//!    slow client is older afterwards, and its next events are the sum of the missed changes.
//!
//!    In `live` it does the same for changes that the engine shows between two publications, and it stops at each
//!    publication in between: none is skipped.
//! 4. If its position is not known, it reports that (`reset`) and begins with a snapshot: there is no silent gap.

mod end;
mod event_stream;
mod group;
mod metrics;
mod render;
mod replay;
mod screen;
mod selection;
mod shared;
mod slots;
mod subscription;
mod unread;
mod viewer;
mod waiter;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use accounts::StreamRefusal;
use domain::{Catalogue, SportId, World};
use engine::{Place, Published, Reached};
use http::{Head, Reply};
use tokio::time::timeout;

use self::event_stream::EventStream;
use self::group::Groups;
use self::metrics::{Metrics, StreamMetrics};
use self::replay::{Replay, ReplayTurn, Replayer, Replays, key_number};
use self::selection::{Followed, Selection};
use self::shared::Renders;
use self::slots::{KeyRight, NodeSlots, Refused, StreamSlot};
use self::subscription::{Begin, Held, Subscription};
use self::websocket::WebSocket;
use super::changes::{Base, has_come_to};
use super::{Admitted, Answered};
use crate::admission::refusal::{charged, check_permission, not_yet, refused_by_history};
use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;
use crate::position::{LogPosition, sought};
use crate::v1::param::Param;
use crate::v1::query::stream::{Since, StreamParams};
use crate::v1::wire::stream::{Hello, Mode, Reset, Transport, hello};

pub use crate::position::{LogPlace, place_of};

pub use self::screen::{MakingStep, Screen, ScreenStep, screen_cursor};
pub use self::viewer::follow_screen;

/// Settings of streams.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    pub enabled: bool,
    /// True if changes may be followed before they are published.
    pub live: bool,
    /// Maximum number of open streams of one key, over all nodes.
    pub per_key_max: usize,
    /// Maximum number of open streams on this node.
    pub connections_max: usize,
    /// Maximum number of concurrent replays of the past on this node.
    pub replays_max: usize,
    /// Maximum memory of rendered events.
    pub memory_max: usize,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            live: true,
            per_key_max: 5,
            connections_max: 7500,
            replays_max: 4,
            memory_max: 64 << 20,
        }
    }
}

/// Time after which a client with too many streams should retry.
const TOO_MANY_RETRY_S: u32 = 5;
/// Maximum time for which changes are looked at before a stream begins.
const LOOK_AHEAD_MAX: Duration = Duration::from_secs(5);
/// Time after which every entry of an instant is stored.
const STORED_WITHIN: Duration = Duration::from_secs(2);

/// All streams of a node.
#[derive(Debug)]
pub struct Streams {
    pub(super) settings: StreamSettings,
    slots: Arc<NodeSlots>,
    renders: Renders,
    replays: Replays,
    metrics: Metrics,
    /// Rendered separately, so that screens take no capacity from streams of lists.
    screen_renders: Renders,
    screen_metrics: StreamMetrics,
    /// By world: groups of list streams, by mode, and those of screens.
    groups: [[Arc<Groups>; 3]; 2],
}

impl Streams {
    pub(crate) fn new(settings: StreamSettings, catalogue: Arc<Catalogue>) -> Self {
        let (slots, metrics) = (Arc::default(), Metrics::default());
        let replays = Replays::new(settings.replays_max);
        let lists_max = settings.connections_max;
        let groups = [World::Live, World::Sandbox].map(|world| {
            [
                Groups::new(world, Mode::Publication, lists_max),
                Groups::new(world, Mode::Live, lists_max),
                Groups::new(world, Mode::Publication, screen::SCREENS_MAX),
            ]
        });
        let screen_renders = Renders::new(screen::BYTES_MAX, Arc::clone(&catalogue));
        let renders = Renders::new(settings.memory_max, catalogue);
        let screen_metrics = StreamMetrics::default();
        Self { settings, slots, renders, replays, metrics, screen_renders, screen_metrics, groups }
    }

    /// The groups of a selection's mode.
    fn groups(&self, selection: &Selection) -> &Arc<Groups> {
        let [live, sandbox] = &self.groups;
        let [publication, between, screens] = match selection.world {
            World::Live => live,
            World::Sandbox => sandbox,
        };
        match (&selection.followed, selection.mode) {
            (Followed::Screen(_), _) => screens,
            (Followed::Lists(..), Mode::Publication) => publication,
            (Followed::Lists(..), Mode::Live) => between,
        }
    }

    /// The renderer for a selection's events.
    fn renders(&self, selection: &Selection) -> &Renders {
        match selection.followed {
            Followed::Lists(..) => &self.renders,
            Followed::Screen(_) => &self.screen_renders,
        }
    }
}

/// Start of a stream.
#[derive(Debug)]
struct Start {
    begin: Begin,
    /// Reason for not starting at the requested position.
    reset: Option<Reset>,
    /// The right to read the past, if needed.
    turn: Option<ReplayTurn>,
}

impl Start {
    /// Starts with a snapshot of the current publication.
    fn anew(reset: Option<Reset>) -> Self {
        Self { begin: Begin::Now, reset, turn: None }
    }
}

impl Admitted<'_> {
    /// Opens a stream. Every possible refusal happens before the first event.
    pub(super) async fn open_stream(&self) -> Answered {
        let world = self.world();
        let sports = self.stream_sports()?;
        let values =
            self.query.values(Operation::GetStream, self.api.settings.query_key_enabled)?;
        let params = values.stream(&sports, self.api.lookup())?;
        if params.mode == Mode::Live && !self.api.streams.settings.live {
            let text = "this service has no live streams; leave `mode` out to follow publications";
            return Err(ApiError::new(ErrorCode::Forbidden, text));
        }
        let handle = self.api.world(world);
        if !handle.has_begun() {
            return Err(not_yet());
        }
        let accept = websocket::accept(self.request)?;
        let transport = match accept {
            Some(_) => Transport::WebSocket,
            None => Transport::ServerSentEvents,
        };
        let StreamParams { mode, freshness, .. } = params;
        let lists = params.lists.clone();
        let selection = Selection::new(world, lists, mode, freshness, transport, self.api);
        let selection = Arc::new(selection);
        self.check_since(&params, &selection)?;
        let last = self.last_until(&params).await?;
        let is_over = |begin| {
            transport == Transport::ServerSentEvents
                && self.has_come_to_end(&params, &selection, begin, last.as_deref())
        };
        // Needs no turn, and no slot.
        if self.at_last(&selection, last.as_deref()).is_some_and(is_over) {
            return Ok((no_more(), None));
        }
        // Before the replay turn: a client without a slot must not take one.
        let slot = self.take_stream_slot().await?;
        let Start { begin, reset, mut turn } = self.begin(&params, &selection).await?;
        let has_all = self.has_every_change(&params, &selection, begin, last.as_deref());
        let has_all = timeout(LOOK_AHEAD_MAX, Box::pin(has_all));
        if is_over(begin) || matches!(has_all.await, Ok(Some(true))) {
            return Ok((no_more(), None));
        }
        let replay = match turn.take() {
            Some(turn) if params.replays_all => Some(Replay::new(turn)),
            None if params.replays_all => Some(Replay::new(self.take_turn().await?)),
            resumes => {
                turn = resumes;
                None
            }
        };
        let member = self.api.streams.groups(&selection).join(&selection);
        let member = member.ok_or_else(node_is_full)?;
        let standing = charged(self.api.accounts.charge_quota(self.entry, self.now).await)?;
        let catalogue = &self.api.catalogue;
        let id = self.api.next_request_id().to_string();
        let first = hello(&Hello {
            id: id.replacen("req_", "str_", 1),
            mode,
            sports: sports.iter().map(|sport| &*catalogue.sport(*sport).key).collect(),
            channels: &params.channels,
            resumed: matches!(begin, Begin::At(_)),
            heartbeat_s: params.heartbeat_s,
            interval_ms: handle.refresh_interval().as_millis(),
        });
        let entry = Arc::clone(self.entry);
        let held = Held::Key { _hold: self.api.accounts.keys.hold(&entry) };
        let right = KeyRight { entry, slot: Arc::new(slot) };
        let subscription = Subscription::new(self.api, Some(right), held, member, begin);
        let subscription = subscription.saying(&first, reset, params.heartbeat_s);
        let subscription = subscription.ending_at(params.until).replaying(replay).resuming(turn);
        Ok((into_reply(EventStream::new(subscription), accept.as_deref()), Some(standing)))
    }

    /// The followed sports, in the catalogue's order: those named, or all that the key covers.
    fn stream_sports(&self) -> Result<Vec<SportId>, ApiError> {
        let named = self.query.first(Param::Sports.name()).filter(|keys| !keys.is_empty());
        let mut sports = Vec::new();
        match named {
            Some(keys) => {
                // An unknown sport is reported before one that the key may not read (D3).
                for key in keys.split(',') {
                    sports.push(self.known_sport(key)?);
                }
                for sport in sports.iter().copied() {
                    self.admit(sport)?;
                }
            }
            None => {
                check_permission(&self.entry.grant)?;
                let all = self.api.catalogue.sports();
                let covered = all.filter(|(_, sport)| self.entry.grant.covers_group(&sport.group));
                sports.extend(covered.map(|(sport, _)| sport));
            }
        }
        if sports.is_empty() {
            let text = "this key is restricted to sport groups that have no sports";
            return Err(ApiError::new(ErrorCode::Forbidden, text));
        }
        sports.sort_unstable_by_key(|sport| sport.index());
        sports.dedup();
        Ok(sports)
    }

    /// The last publication before `until`, if that has passed. Refuses an end before the beginning, and one that
    /// history does not cover.
    async fn last_until(&self, params: &StreamParams) -> Result<Option<Arc<Published>>, ApiError> {
        let Some(until) = params.until else { return Ok(None) };
        let name = Param::Until.name();
        match params.since {
            Some(Since::Time(at)) if until < at => {
                return Err(ApiError::param(name, "`until` is earlier than `since`"));
            }
            None if until < self.now && self.request.page.last_event_id.is_none() => {
                let text = "`until` is in the past; say with `since` from when on";
                return Err(ApiError::param(name, text));
            }
            Some(_) | None => {}
        }
        let handle = self.api.world(self.world());
        let present = Arc::clone(&handle.published());
        if until < present.snapshot.cut_at {
            let past = handle.as_of(until, self.key_number()).await;
            return Ok(Some(past.map_err(|error| refused_by_history(&error))?.published));
        }
        Ok((until <= self.now && until < present.until).then_some(present))
    }

    /// The start of a client that reconnects with the cursor of the last publication up to `until`.
    fn at_last(&self, selection: &Selection, last: Option<&Published>) -> Option<Begin> {
        let (last, id) = (last?, self.request.page.last_event_id?);
        let cursor = selection.cursor(&last.snapshot);
        (id == cursor.as_bytes()).then(|| Begin::At(selection.place_of(&last.snapshot)))
    }

    /// True if a client that reconnects already has everything up to `until`. `last`: the last publication up to then.
    fn has_come_to_end(
        &self,
        params: &StreamParams,
        selection: &Selection,
        begin: Begin,
        last: Option<&Published>,
    ) -> bool {
        let (Some(last), Some(until), Some(_), Begin::At((at, _))) =
            (last, params.until, self.request.page.last_event_id, begin)
        else {
            return false;
        };
        let (world, snapshot) = (self.world(), &last.snapshot);
        let handle = self.api.world(world);
        // Changes accepted after the publication belong to a replay of every change, and to a live stream as long as
        // there is no later publication.
        let may_follow = || {
            let is_present = handle.published().snapshot.cut_at <= snapshot.cut_at;
            // What nobody followed was not shown yet. What was shown is later than `until`, or nothing follows.
            let has_shown = selection.has_shown(until, handle);
            let follows = selection.shown(handle).is_some_and(|shown| {
                shown.snapshot.cut_at <= until && selection.place_of(&shown.snapshot).0 > at
            });
            is_present && at < handle.last_place(until) && (follows || !has_shown)
        };
        let is_all = params.mode != Mode::Live
            || until == snapshot.cut_at
            || !(params.replays_all || may_follow());
        let (last, _) = place_of(world, snapshot);
        is_all && at >= last && has_come_to(handle, at)
    }

    /// True if a client that reconnects to a replay of every change already has those up to `until`; `None` if that is
    /// not known. `last`: the last publication up to then. Reads what follows the client's position, for which the
    /// replay has its turn.
    async fn has_every_change(
        &self,
        params: &StreamParams,
        selection: &Arc<Selection>,
        begin: Begin,
        last: Option<&Published>,
    ) -> Option<bool> {
        let (until, _, Begin::At(place)) = (params.until?, self.request.page.last_event_id?, begin)
        else {
            return None;
        };
        let is_near = place.0 >= selection.place_of(&last?.snapshot).0;
        let is_asked = selection.transport == Transport::ServerSentEvents
            && params.mode == Mode::Live
            && params.replays_all;
        if !(is_asked && is_near) {
            return None;
        }
        let (handle, key) = (self.api.world(self.world()), self.key_number());
        let Base::Held(held, _) = Base::find(handle, place, Mode::Live, key).await.ok()? else {
            return None;
        };
        // What this node stores from now on is later than `until`. Others may have stored more.
        let is_stored = until.plus(STORED_WITHIN) < self.now;
        let is_complete = is_stored && handle.leads() && handle.is_up_to_date(self.now);
        let published = handle.published().snapshot.cut_at;
        let reached = Reached { seq: handle.last_entry(), published, now: self.now };
        let from = sought(handle.world, place.0);
        let walk = handle.walk_changes(from, &held, selection.wants_whole(), key).await;
        let mut walk = walk.ok()??;
        loop {
            let (walked, next) = walk.next(reached).await.ok()?;
            let Some(next) = next else { return Some(is_complete || until < published) };
            if until < next.shown.snapshot.cut_at {
                return Some(true);
            }
            // A change outside the selection has no events.
            let rendered = self.api.streams.renders(selection).render_change(selection, next).await;
            if rendered.ok()?.chunks.count() > 0 {
                return Some(false);
            }
            walk = walked;
        }
    }

    /// Finds the start of a stream, once `check_since` has found nothing wrong with it.
    async fn begin(&self, params: &StreamParams, selection: &Selection) -> Result<Start, ApiError> {
        if let Some(id) = self.request.page.last_event_id {
            let position = std::str::from_utf8(id).ok().and_then(LogPosition::decode);
            return match position {
                Some(position) if position.selection == selection.check => {
                    self.resume(position, params).await
                }
                Some(_) => Ok(Start::anew(Some(Reset::Selection))),
                None => Ok(Start::anew(Some(Reset::Unknown))),
            };
        }
        match params.since {
            None => Ok(Start::anew(None)),
            Some(Since::Cursor(position)) => self.resume(position, params).await,
            Some(Since::Time(at)) => {
                let handle = self.api.world(self.world());
                let turn = self.turn_for(Place::Time(at), params).await?;
                let past = handle.as_of(at, self.key_number()).await;
                let past = past.map_err(|error| refused_by_history(&error))?;
                let begin = Begin::Past(place_of(handle.world, &past.published.snapshot));
                Ok(Start { begin, reset: None, turn })
            }
        }
    }

    async fn resume(
        &self,
        position: LogPosition,
        params: &StreamParams,
    ) -> Result<Start, ApiError> {
        if position.world != self.world() {
            return Ok(Start::anew(Some(Reset::Unknown)));
        }
        let place = (position.at, position.check);
        let handle = self.api.world(position.world);
        let turn = self.turn_for(sought(position.world, position.at), params).await?;
        let base = Base::find(handle, place, Mode::Publication, self.key_number()).await;
        Ok(match base.map_err(|error| refused_by_history(&error))? {
            // A node that is behind waits for the position within the stream.
            Base::Held(..) | Base::Ahead => Start { begin: Begin::At(place), reset: None, turn },
            Base::Expired => Start { turn, ..Start::anew(Some(Reset::Expired)) },
            Base::Unknown => Start { turn, ..Start::anew(Some(Reset::Unknown)) },
        })
    }

    /// Refuses a replay without a starting position, and a position that cannot be one. Before the slot: what is wrong
    /// with a request does not depend on it.
    fn check_since(&self, params: &StreamParams, selection: &Selection) -> Result<(), ApiError> {
        let name = Param::Since.name();
        if self.request.page.last_event_id.is_some() {
            return Ok(());
        }
        match params.since {
            None if params.replays_all => {
                let text = "`replay=all` needs `since`: the cursor or the time from which on everything is sent";
                Err(ApiError::param(Param::Replay.name(), text))
            }
            Some(Since::Cursor(position)) if position.selection != selection.check => {
                let text = "`since` is the cursor of another selection; leave it out to begin with a snapshot";
                Err(ApiError::param(name, text))
            }
            Some(Since::Time(at)) if at > self.api.world(self.world()).latest(self.now) => {
                let text = "`since` is later than now; leave it out for the present";
                Err(ApiError::param(name, text))
            }
            None | Some(Since::Cursor(_) | Since::Time(_)) => Ok(()),
        }
    }

    /// Waits for the replay turn if the stream replays every publication, or if its position is only in the archive.
    async fn turn_for(
        &self,
        place: Place,
        params: &StreamParams,
    ) -> Result<Option<ReplayTurn>, ApiError> {
        let handle = self.api.world(self.world());
        if params.replays_all || handle.is_archived(place).await {
            return self.take_turn().await.map(Some);
        }
        Ok(None)
    }

    async fn take_turn(&self) -> Result<ReplayTurn, ApiError> {
        let turn = Replayer { api: self.api, entry: self.entry }.take_turn().await;
        turn.ok_or_else(|| {
            let text = "too many replays are running, of this key or on this node; try again";
            ApiError::unavailable(text)
        })
    }

    fn key_number(&self) -> u64 {
        key_number(self.entry)
    }

    async fn take_stream_slot(&self) -> Result<StreamSlot, ApiError> {
        let Streams { settings, slots, .. } = &self.api.streams;
        let grant = &self.entry.grant;
        let key_max = self.api.streams_max(grant.streams);
        let of = &self.api.accounts.streams;
        let taken = slots.take(settings.connections_max, of, &grant.key_id, key_max).await;
        taken.map_err(|refused| match refused {
            Refused::Key(StreamRefusal::Limit) => {
                let text = format!(
                    "this key has {key_max} streams open, which is its limit; close one first"
                );
                ApiError::new(ErrorCode::TooManyStreams, text).retry_after(TOO_MANY_RETRY_S)
            }
            Refused::Key(StreamRefusal::Unavailable) => {
                ApiError::unavailable("the streams of this key cannot be counted now; try again")
            }
            Refused::Node => node_is_full(),
        })
    }
}

/// The response to a client that has everything. An `EventSource` reconnects after `done`, too; only a 204 stops it.
fn no_more() -> Reply {
    let mut head = Head::default();
    head.put("cache-control", "no-store");
    Reply::empty(204, head)
}

fn node_is_full() -> ApiError {
    ApiError::unavailable("this node has as many streams as it takes; try again")
}

/// The response head of a stream: the WebSocket handshake, or the head of Server-Sent Events.
fn into_reply(events: EventStream, accept: Option<&str>) -> Reply {
    let Some(accept) = accept else {
        let mut reply = Reply::new(200, "text/event-stream", "");
        reply.head.put("cache-control", "no-store");
        // Otherwise nginx buffers events.
        reply.head.put("x-accel-buffering", "no");
        return Reply { stream: Some(Box::new(events)), ..reply };
    };
    let mut head = Head::default();
    head.put("connection", "Upgrade");
    head.put("upgrade", "websocket");
    head.put("sec-websocket-accept", accept);
    Reply { stream: Some(Box::new(WebSocket::new(events))), ..Reply::empty(101, head) }
}

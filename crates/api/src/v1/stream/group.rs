//! Groups of streams with the same selection: a few tasks render the next events once and write them to all clients,
//! without waking the streams' tasks (`waiter`).

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::World;
use http::DirectSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::render::Rendered;
use super::selection::Selection;
use super::shared::StartFrom;
use super::waiter::{Delivery, Waiter};
use crate::context::Api;
use crate::position::LogPlace;
use crate::v1::wire::stream::Mode;

/// Number of waiters written to in one turn of a worker: about half a millisecond.
const WAITERS_AT_ONCE: usize = 64;
/// Delay before checking which clients do not read: early enough before a client counts as vanished, and one check
/// covers all writes until then.
const LOOK_AFTER: Duration = Duration::from_secs(4);

/// The groups of a world and a mode, and the task that waits for publications while there are any.
#[derive(Debug)]
pub(super) struct Groups {
    world: World,
    mode: Mode,
    max: usize,
    state: Mutex<GroupsState>,
}

#[derive(Debug, Default)]
struct GroupsState {
    groups: HashMap<Arc<Selection>, Arc<Group>>,
    listens: bool,
}

/// The streams of one selection.
#[derive(Debug)]
struct Group {
    selection: Arc<Selection>,
    state: Mutex<GroupState>,
}

#[derive(Debug, Default)]
struct GroupState {
    waiters: BTreeMap<u64, Arc<Waiter>>,
    /// The waiters as a slice, built for one publication and reused for the next if no stream joined or left.
    in_a_row: Option<Arc<[Arc<Waiter>]>>,
    next_number: u64,
    /// Position of most waiters.
    at: Option<LogPlace>,
    /// True if a task writes to the group; `again` if new events arrived meanwhile.
    is_served: bool,
    again: bool,
    /// True if a check for clients that do not read is scheduled.
    looks: bool,
}

/// A stream's membership in its group; ends when dropped.
#[derive(Debug)]
pub(super) struct Member {
    all: Arc<Groups>,
    group: Arc<Group>,
    number: u64,
    pub(super) waiter: Arc<Waiter>,
}

impl Groups {
    pub(super) fn new(world: World, mode: Mode, max: usize) -> Arc<Self> {
        Arc::new(Self { world, mode, max, state: Mutex::default() })
    }

    /// Adds a stream; `None` if it would be the first of a group and the number of groups is at its limit.
    pub(super) fn join(self: &Arc<Self>, selection: &Arc<Selection>) -> Option<Member> {
        let mut all = self.lock();
        if all.groups.len() >= self.max && !all.groups.contains_key(selection) {
            return None;
        }
        let group = all.groups.entry(Arc::clone(selection)).or_insert_with_key(|selection| {
            Arc::new(Group { selection: Arc::clone(selection), state: Mutex::default() })
        });
        let (group, waiter) = (Arc::clone(group), Arc::new(Waiter::default()));
        let number = {
            let mut state = group.lock();
            state.next_number += 1;
            let number = state.next_number;
            state.waiters.insert(number, Arc::clone(&waiter));
            state.in_a_row = None;
            number
        };
        drop(all);
        Some(Member { all: Arc::clone(self), group, number, waiter })
    }

    /// Starts the task that waits for publications, unless it runs.
    fn listen(self: &Arc<Self>, api: &Arc<Api>) {
        let mut all = self.lock();
        if !all.listens {
            all.listens = true;
            let listening = Listening { all: Arc::clone(self), ends: false };
            tokio::spawn(listening.run(Arc::clone(api)));
        }
    }

    fn groups(&self) -> Vec<Arc<Group>> {
        self.lock().groups.values().map(Arc::clone).collect()
    }

    fn lock(&self) -> MutexGuard<'_, GroupsState> {
        // No code under the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that waits for publications.
struct Listening {
    all: Arc<Groups>,
    /// True if no groups are left.
    ends: bool,
}

impl Listening {
    async fn run(mut self, api: Arc<Api>) {
        let handle = api.world(self.all.world);
        let mut publications = handle.publications();
        let mut live = (self.all.mode == Mode::Live).then(|| handle.live_changes());
        loop {
            publications.borrow_and_update();
            if let Some(live) = &mut live {
                live.borrow_and_update();
            }
            for group in self.all.groups() {
                group.begin(&api);
            }
            if self.is_over() {
                return;
            }
            let changed = async {
                match &mut live {
                    Some(live) => live.changed().await,
                    None => std::future::pending().await,
                }
            };
            let changed = tokio::select! {
                changed = changed => changed,
                changed = publications.changed() => changed,
            };
            // The world was dropped.
            if changed.is_err() {
                return;
            }
        }
    }

    fn is_over(&mut self) -> bool {
        let mut all = self.all.lock();
        self.ends = all.groups.is_empty();
        all.listens = !self.ends;
        self.ends
    }
}

/// However the task ends, no stream waits for it in vain.
impl Drop for Listening {
    fn drop(&mut self) {
        if !self.ends {
            self.all.lock().listens = false;
            for group in self.all.groups() {
                group.call_all();
            }
        }
    }
}

impl Group {
    /// Starts writing the next events to all, if there are any.
    fn begin(self: &Arc<Self>, api: &Arc<Api>) {
        let mut state = self.lock();
        if state.is_served {
            state.again = true;
            return;
        }
        let handle = api.world(self.selection.world);
        if state.at.is_some_and(|at| self.selection.next_after(at, handle).is_some()) {
            state.is_served = true;
            drop(state);
            tokio::spawn(Serving(Arc::clone(self)).run(Arc::clone(api)));
        }
    }

    /// Writes the next events, if there are any, and returns their position.
    async fn serve(self: &Arc<Self>, api: &Arc<Api>, from: LogPlace) -> Option<LogPlace> {
        let handle = api.world(self.selection.world);
        let to = self.selection.next_after(from, handle)?;
        let renders = api.streams.renders(&self.selection);
        // Next to nothing of the past is rebuilt for a group: the state at its position is kept, unless this node has
        // missed publications.
        let events = renders.events(handle, &self.selection, StartFrom::Here(from), &to, 0).await;
        let Ok(rendered) = events else {
            self.lock().at = None;
            self.call_all();
            return None;
        };
        let at = rendered.to;
        self.lock().at = Some(at);
        let waiters = self.waiters();
        if waiters.len() <= WAITERS_AT_ONCE {
            self.deliver(api, from, &rendered, &waiters);
            self.look_later();
            return Some(at);
        }
        let mut turns = JoinSet::new();
        for begin in (0..waiters.len()).step_by(WAITERS_AT_ONCE) {
            let (group, api, waiters) = (Arc::clone(self), Arc::clone(api), Arc::clone(&waiters));
            let rendered = Arc::clone(&rendered);
            turns.spawn(async move {
                let end = waiters.len().min(begin + WAITERS_AT_ONCE);
                let some = waiters.get(begin..end).unwrap_or_default();
                group.deliver(&api, from, &rendered, some);
            });
        }
        drop(waiters);
        turns.join_all().await;
        self.look_later();
        Some(at)
    }

    fn deliver(
        &self,
        api: &Api,
        from: LogPlace,
        rendered: &Arc<Rendered>,
        waiters: &[Arc<Waiter>],
    ) {
        let (now, instant) = (api.clock.now(), Instant::now());
        let delivery = Delivery { api, from, rendered, now, instant };
        // Reading the sockets in one pass overlaps their cache misses; otherwise each write would incur its own.
        let sockets = waiters.iter().filter_map(|waiter| waiter.socket());
        black_box(sockets.map(DirectSocket::number).fold(0, i32::wrapping_add));
        let written = waiters.iter().filter(|waiter| waiter.deliver(&delivery)).count();
        if let Some(chunk) = rendered.chunks.only() {
            let metrics = api.streams.metrics(&self.selection);
            metrics.note_written(written, chunk, rendered.conflated, now.since(rendered.cut_at));
        }
    }

    /// Checks after a delay which clients do not read, and repeats this while there are any.
    fn look_later(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().looks, true) {
            return;
        }
        let group = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_AFTER).await;
                // Later writes are checked by another task.
                group.lock().looks = false;
                let waiters = group.waiters();
                for some in waiters.chunks(WAITERS_AT_ONCE) {
                    DirectSocket::look_at_all(some.iter().filter_map(|waiter| waiter.socket()));
                    tokio::task::yield_now().await;
                }
                let mut sockets = waiters.iter().filter_map(|waiter| waiter.socket());
                let behind = sockets.any(DirectSocket::is_behind);
                if !behind || std::mem::replace(&mut group.lock().looks, true) {
                    return;
                }
            }
        });
    }

    fn call_all(&self) {
        for waiter in &*self.waiters() {
            waiter.call();
        }
    }

    fn waiters(&self) -> Arc<[Arc<Waiter>]> {
        let mut state = self.lock();
        let GroupState { waiters, in_a_row, .. } = &mut *state;
        let row = in_a_row.get_or_insert_with(|| waiters.values().map(Arc::clone).collect());
        Arc::clone(row)
    }

    fn lock(&self) -> MutexGuard<'_, GroupState> {
        // No code under the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that writes to a group.
struct Serving(Arc<Group>);

impl Serving {
    async fn run(self, api: Arc<Api>) {
        loop {
            let at = self.0.lock().at;
            let next = match at {
                Some(at) => self.0.serve(&api, at).await,
                None => None,
            };
            if next.is_none() && self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        let mut state = self.0.lock();
        state.is_served = std::mem::take(&mut state.again);
        !state.is_served
    }
}

/// If the task panics, the next publication starts a new one.
impl Drop for Serving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_served = false;
            self.0.call_all();
        }
    }
}

impl Member {
    /// Registers the position from which the stream waits, and ensures that it is notified of new events.
    pub(super) fn wait_at(&self, place: LogPlace, api: &Arc<Api>) {
        self.group.lock().at.get_or_insert(place);
        self.all.listen(api);
    }

    /// The selection, shared by the whole group.
    pub(super) fn selection(&self) -> &Arc<Selection> {
        &self.group.selection
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        let mut group = self.group.lock();
        group.waiters.remove(&self.number);
        group.in_a_row = None;
        if group.waiters.is_empty() {
            all.groups.remove(&self.group.selection);
        }
    }
}

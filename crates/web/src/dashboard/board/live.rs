//! Boards that people look at: each screen made once for a publication, whoever asks for it, and what changed sent to
//! everybody who watches.
//!
//! A watcher has a short queue. Whoever does not keep up with it is let go rather than waited for: the browser comes
//! back by itself, says what it saw last, and gets what it missed or is told to take the page afresh.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use domain::{Catalogue, EventId, Timestamp};
use tokio::sync::mpsc;

use crate::context::Web;
use crate::dashboard::board::choice::Choice;
use crate::dashboard::board::delta;
use crate::dashboard::board::screen::{Scene, Screen};
use api::Asset;
use http::{Slot, SlotLimits, Slots, StreamBody};

/// Screens kept at the same time, and views watched at the same time.
const SCREENS_MAX: usize = 256;
/// Pages kept ready at the same time; the largest takes half a megabyte with its encodings.
const PAGES_MAX: usize = 128;
/// Publications that can be told again to who comes back.
const DELTAS_MAX: usize = 12;
/// Frames that may wait for one watcher.
const QUEUE_MAX: usize = 8;
/// What a browser waits before it comes back, in milliseconds.
const RETRY: &str = "retry: 3000\n\n";

/// What is looked at: a sport's market, or one event's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) choice: Choice,
    pub(crate) event: Option<EventId>,
}

/// Which page of a view: the outcome whose path is drawn, and whether the service is closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    pub(crate) view: View,
    pub(crate) outcome: String,
    pub(crate) maintenance: bool,
}

#[derive(Debug)]
struct Shown {
    screen: Arc<Screen>,
    /// Earlier publications: from which cut, and the frame that leads on.
    deltas: VecDeque<(Timestamp, Bytes)>,
    watchers: Vec<mpsc::Sender<Bytes>>,
}

/// Pages of one publication.
#[derive(Debug, Default)]
struct Pages {
    cut: Option<Timestamp>,
    ready: HashMap<PageKey, Arc<Asset>>,
}

/// All boards that are looked at.
#[derive(Debug, Default)]
pub(crate) struct Gallery {
    shown: Mutex<HashMap<View, Arc<Mutex<Option<Shown>>>>>,
    pages: Mutex<Pages>,
    places: Arc<Slots>,
    dropped: AtomicU64,
    refused: AtomicU64,
    closed: AtomicBool,
}

/// Somebody who watches a board.
#[derive(Debug)]
pub(crate) struct Watch {
    first: VecDeque<Bytes>,
    rest: mpsc::Receiver<Bytes>,
    _place: Slot,
}

impl StreamBody for Watch {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.first.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => self.rest.poll_recv(context),
        }
    }
}

impl Gallery {
    /// The screen of the snapshot in force.
    pub(crate) fn screen(&self, web: &Web, view: View) -> Option<Arc<Screen>> {
        let place = self.place(view);
        let mut shown = lock(&place);
        Some(Arc::clone(&self.renewed(web, view, &mut shown)?.screen))
    }

    /// Begins to watch. `since` is what the browser shows; what changed after it comes first. Makes the screen where
    /// nobody looked at it before: not for a thread that answers requests.
    ///
    /// # Errors
    /// So many watch already, in all or from this source, that there is no place; or the service stops.
    pub(crate) fn watch(
        &self,
        web: &Web,
        view: View,
        since: Option<Timestamp>,
        source: Option<IpAddr>,
    ) -> Result<Watch, NoPlace> {
        let pages = &web.settings;
        let max = SlotLimits {
            all: pages.board_watchers_max,
            source: pages.board_watchers_per_source_max,
        };
        let Some(place) = self.places.take(source, max) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NoPlace);
        };
        let (sender, rest) = mpsc::channel(QUEUE_MAX);
        let Some(held) = self.place_to_watch(view) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NoPlace);
        };
        let mut shown = lock(&held);
        let shown = self.renewed(web, view, &mut shown).ok_or(NoPlace)?;
        let mut first = VecDeque::from([Bytes::from_static(RETRY.as_bytes())]);
        if since != Some(shown.screen.cut) {
            let missed = shown.deltas.iter().position(|(from, _)| Some(*from) == since);
            match missed {
                Some(at) => {
                    first.extend(shown.deltas.iter().skip(at).map(|(_, frame)| frame.clone()));
                }
                None => first.push_back(whole(shown.screen.cut)),
            }
        }
        // Looked at with the view held, so that closing either sees this watcher or is seen.
        if self.closed.load(Ordering::SeqCst) {
            return Err(NoPlace);
        }
        shown.watchers.push(sender);
        Ok(Watch { first, rest, _place: place })
    }

    /// Tells all watchers what the newest publication changed, and forgets screens that nobody watches.
    pub(crate) fn renew(&self, web: &Web) {
        let views: Vec<(View, Arc<Mutex<Option<Shown>>>)> =
            lock(&self.shown).iter().map(|(view, held)| (*view, Arc::clone(held))).collect();
        for (view, held) in views {
            let mut shown = lock(&held);
            let watched = shown.as_mut().is_some_and(|shown| {
                shown.watchers.retain(|watcher| !watcher.is_closed());
                !shown.watchers.is_empty()
            });
            if watched {
                self.renewed(web, view, &mut shown);
            } else {
                lock(&self.shown).remove(&view);
            }
        }
    }

    /// Lets all watchers go.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let held: Vec<_> = lock(&self.shown).drain().map(|(_, held)| held).collect();
        for shown in held {
            *lock(&shown) = None;
        }
    }

    pub(crate) fn watchers(&self) -> usize {
        self.places.taken()
    }

    /// Watchers let go because they were slow, and turned away because there was no place.
    pub(crate) fn losses(&self) -> [&AtomicU64; 2] {
        [&self.dropped, &self.refused]
    }

    /// A page made before for the same publication.
    pub(crate) fn page(&self, cut: Timestamp, key: &PageKey) -> Option<Arc<Asset>> {
        let pages = lock(&self.pages);
        (pages.cut == Some(cut)).then(|| pages.ready.get(key).cloned()).flatten()
    }

    pub(crate) fn keep_page(&self, cut: Timestamp, key: PageKey, page: &Arc<Asset>) {
        let mut pages = lock(&self.pages);
        if pages.cut != Some(cut) {
            *pages = Pages { cut: Some(cut), ready: HashMap::new() };
        }
        if pages.ready.len() < PAGES_MAX {
            pages.ready.insert(key, Arc::clone(page));
        }
    }

    fn place(&self, view: View) -> Arc<Mutex<Option<Shown>>> {
        let mut shown = lock(&self.shown);
        if let Some(held) = shown.get(&view) {
            return Arc::clone(held);
        }
        if shown.len() >= SCREENS_MAX {
            forget_unwatched(&mut shown);
        }
        Arc::clone(shown.entry(view).or_default())
    }

    /// The same for who comes to stay. Every view that is watched is made anew with each publication, so there are only
    /// so many; one that is watched already takes any number of watchers.
    fn place_to_watch(&self, view: View) -> Option<Arc<Mutex<Option<Shown>>>> {
        let mut shown = lock(&self.shown);
        if shown.len() >= SCREENS_MAX {
            forget_unwatched(&mut shown);
            if shown.len() >= SCREENS_MAX && !shown.contains_key(&view) {
                return None;
            }
        }
        Some(Arc::clone(shown.entry(view).or_default()))
    }

    /// Brings a view to the snapshot in force and tells its watchers.
    fn renewed<'a>(
        &self,
        web: &Web,
        view: View,
        held: &'a mut Option<Shown>,
    ) -> Option<&'a mut Shown> {
        let world = web.api.world(web.settings.board?);
        let published = world.published();
        if held.as_ref().is_none_or(|shown| shown.screen.cut != published.snapshot.cut_at) {
            let history = web.board.history.read().unwrap_or_else(PoisonError::into_inner);
            let scene = Scene {
                snapshot: &published.snapshot,
                history: &history,
                stale_after: world.stale_after(),
            };
            let screen = Arc::new(Screen::new(&scene, &view.choice, view.event));
            drop(history);
            match held {
                Some(shown) => self.advance(&web.api.catalogue, view, shown, screen),
                None => {
                    *held = Some(Shown { screen, deltas: VecDeque::new(), watchers: Vec::new() });
                }
            }
        }
        held.as_mut()
    }

    fn advance(&self, catalogue: &Catalogue, view: View, shown: &mut Shown, screen: Arc<Screen>) {
        let from = shown.screen.cut;
        let query = view.choice.query(catalogue);
        let delta = delta::between(&shown.screen, &screen, &query, view.event.is_none());
        shown.screen = screen;
        let cut = shown.screen.cut;
        let frame = match delta {
            Some(delta) => frame(cut, "delta", &delta),
            None => {
                // What came before leads to a page that is not there any more.
                shown.deltas.clear();
                whole(cut)
            }
        };
        if shown.deltas.len() >= DELTAS_MAX {
            shown.deltas.pop_front();
        }
        shown.deltas.push_back((from, frame.clone()));
        shown.watchers.retain(|watcher| match watcher.try_send(frame.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                false
            }
        });
    }
}

/// Whoever watches has the place; a screen that was only looked at is made again when needed.
fn forget_unwatched(shown: &mut HashMap<View, Arc<Mutex<Option<Shown>>>>) {
    shown.retain(|_, held| match held.try_lock() {
        Ok(held) => held
            .as_ref()
            .is_some_and(|shown| shown.watchers.iter().any(|watcher| !watcher.is_closed())),
        // Somebody is at it this moment.
        Err(_) => true,
    });
}

/// There is no place for another watcher.
#[derive(Debug)]
pub(crate) struct NoPlace;

/// Tells a browser to take the page afresh.
fn whole(cut: Timestamp) -> Bytes {
    frame(cut, "whole", "{}")
}

fn frame(cut: Timestamp, event: &str, data: &str) -> Bytes {
    Bytes::from(format!("id: {}\nevent: {event}\ndata: {data}\n\n", cut.as_millis()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

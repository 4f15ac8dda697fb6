//! Boards that people look at: each screen made once for a publication, whoever asks for it, and what changed sent to
//! everybody who watches.
//!
//! Somebody who watches is at a publication, as a client of `/v1/stream` is, and is sent what leads from there to the
//! present one. Whoever is slow gets the sum of what they missed. Where the screen that a browser shows is not kept any
//! more, it takes the page afresh.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::{EventId, Timestamp};
use engine::{MadeOnce, Published};
use tokio::sync::watch;

use crate::dashboard::board::Board;
use crate::dashboard::board::choice::Choice;
use crate::dashboard::board::delta;
use crate::dashboard::board::screen::{Screen, ScreenInput};
use crate::dashboard::board::worker_slots::NoWorkerSlot;
use api::Asset;
use http::{ByteSource, Slot, Slots, SourceBody};

/// Views watched at the same time: each is made anew with every publication.
const VIEWS_MAX: usize = 256;
/// Screens kept at the same time, of several publications.
const SCREENS_MAX: usize = 2048;
const SCREEN_BYTES_MAX: usize = 64 << 20;
/// What leads from one screen to another, kept at the same time.
const FRAMES_MAX: usize = 4096;
const FRAME_BYTES_MAX: usize = 16 << 20;
/// Pages kept ready at the same time; the largest takes half a megabyte with its encodings.
const PAGES_MAX: usize = 128;
/// How long a watcher waits before it asks for a screen again that could not be made now.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
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

/// Pages of one publication.
#[derive(Debug, Default)]
struct Pages {
    cut: Option<Timestamp>,
    ready: HashMap<PageKey, Arc<Asset>>,
}

/// All boards that are looked at.
#[derive(Debug)]
pub(crate) struct BoardHub {
    screens: MadeOnce<(View, Timestamp), Screen>,
    /// What leads from one publication to another.
    frames: MadeOnce<(View, Timestamp, Timestamp), Bytes>,
    pages: Mutex<Pages>,
    /// How many watch each view.
    views: Mutex<HashMap<View, usize>>,
    slots: Arc<Slots>,
    dropped: AtomicU64,
    refused: AtomicU64,
}

impl Default for BoardHub {
    fn default() -> Self {
        Self {
            screens: MadeOnce::new(SCREEN_BYTES_MAX, SCREENS_MAX),
            frames: MadeOnce::new(FRAME_BYTES_MAX, FRAMES_MAX),
            pages: Mutex::default(),
            views: Mutex::default(),
            slots: Arc::default(),
            dropped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }
}

impl BoardHub {
    /// The screen of a publication.
    pub(crate) async fn screen(
        &self,
        board: &Arc<Board>,
        view: View,
        published: &Arc<Published>,
    ) -> Result<Arc<Screen>, NoWorkerSlot> {
        let key = (view, published.snapshot.cut_at);
        let made = self.screens.get(&key, async || {
            let (making, published) = (Arc::clone(board), Arc::clone(published));
            let screen = board.workers.take(move || make_screen(&making, view, &published)).await?;
            let bytes = screen.bytes();
            Ok((screen, bytes))
        });
        made.await
    }

    /// What leads a browser from the screen that it shows to that of a publication.
    async fn frame(
        &self,
        board: &Arc<Board>,
        view: View,
        from: Option<Timestamp>,
        published: &Arc<Published>,
    ) -> Result<Arc<Bytes>, NoWorkerSlot> {
        let new = self.screen(board, view, published).await?;
        let old = from.and_then(|from| self.screens.find(&(view, from)));
        let Some(old) = old else { return Ok(Arc::new(whole(new.cut))) };
        let key = (view, old.cut, new.cut);
        let made = self.frames.get(&key, async || {
            let query = view.choice.query(&board.api.catalogue);
            let work = move || match delta::between(&old, &new, &query, view.event.is_none()) {
                Some(delta) => frame(new.cut, "delta", &delta),
                None => whole(new.cut),
            };
            let frame = board.workers.take(work).await?;
            let bytes = frame.len();
            Ok((frame, bytes))
        });
        made.await
    }

    /// Begins to watch. `since` is what the browser shows; what changed after it comes first.
    ///
    /// # Errors
    /// The limit of viewers, of viewers from this source or of views is reached.
    pub(crate) fn watch(
        board: &Arc<Board>,
        view: View,
        since: Option<Timestamp>,
        source: Option<IpAddr>,
    ) -> Result<Watch, NoSlot> {
        let hub = &board.hub;
        let world = board.world.ok_or(NoSlot)?;
        let slot = hub.slots.take(source, board.watchers_max);
        let Some(slot) = slot.filter(|_| hub.enter(view)) else {
            hub.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NoSlot);
        };
        let (sender, slow) = watch::channel(false);
        let watcher = Watcher {
            publications: board.api.world(world).publications(),
            stopping: board.api.server.stopping(),
            board: Arc::clone(board),
            view,
            at: since,
            greeted: false,
            slow,
            _slot: slot,
        };
        Ok(SourceBody::new(watcher, sender))
    }

    pub(crate) fn watchers(&self) -> usize {
        self.slots.taken()
    }

    /// Watchers let go because they did not read, and turned away because there was no slot.
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

    /// Counts a watcher of a view, unless it would be one view too many; one that is watched already takes any number.
    fn enter(&self, view: View) -> bool {
        let mut views = lock(&self.views);
        if views.len() >= VIEWS_MAX && !views.contains_key(&view) {
            return false;
        }
        *views.entry(view).or_default() += 1;
        true
    }

    fn leave(&self, view: View) {
        let mut views = lock(&self.views);
        if let Some(watchers) = views.get_mut(&view) {
            *watchers = watchers.saturating_sub(1);
            if *watchers == 0 {
                views.remove(&view);
            }
        }
    }
}

fn make_screen(board: &Board, view: View, published: &Published) -> Screen {
    // The keeper may not have come to this publication yet.
    board.note(&published.snapshot);
    let history = board.history.read().unwrap_or_else(PoisonError::into_inner);
    let stale_after = board.world.map(|world| board.api.world(world).stale_after());
    let input = ScreenInput {
        snapshot: &published.snapshot,
        history: &history,
        stale_after: stale_after.unwrap_or_default(),
    };
    Screen::new(&input, &view.choice, view.event)
}

/// A board as a connection sends it.
pub(crate) type Watch = SourceBody<Watcher>;

/// Somebody who watches a board.
pub(crate) struct Watcher {
    board: Arc<Board>,
    view: View,
    /// The publication that the browser shows.
    at: Option<Timestamp>,
    /// Whether it was sent when to come back.
    greeted: bool,
    publications: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    /// Whether it is given up, because it does not read.
    slow: watch::Receiver<bool>,
    _slot: Slot,
}

impl ByteSource for Watcher {
    async fn next_bytes(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            return Some(Bytes::from_static(RETRY.as_bytes()));
        }
        let board = Arc::clone(&self.board);
        let world = board.api.world(board.world?);
        while !*self.stopping.borrow_and_update() {
            self.publications.borrow_and_update();
            let published = Arc::clone(&world.published());
            let cut = published.snapshot.cut_at;
            let hub = &board.hub;
            let made = if self.at == Some(cut) {
                // What comes next is compared with it.
                hub.screen(&board, self.view, &published).await.map(|_| None)
            } else {
                hub.frame(&board, self.view, self.at, &published).await.map(Some)
            };
            let again_after = match made {
                Ok(Some(frame)) => {
                    self.at = Some(cut);
                    return Some(Bytes::clone(&frame));
                }
                Ok(None) => None,
                Err(NoWorkerSlot::Busy) => Some(AGAIN_AFTER),
                Err(NoWorkerSlot::Failed(error)) => {
                    tracing::error!(event = "board.failed", %error, "a board could not be made");
                    return None;
                }
            };
            self.wait(again_after).await?;
        }
        None
    }
}

impl Watcher {
    /// Waits for a publication, or for this long; `None` where the service stops.
    async fn wait(&mut self, again_after: Option<Duration>) -> Option<()> {
        let again = async {
            match again_after {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.publications.changed() => told.ok(),
            told = self.stopping.changed() => told.ok(),
            () = again => Some(()),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let hub = &self.board.hub;
        hub.leave(self.view);
        if *self.slow.borrow() {
            hub.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// There is no slot for another watcher.
#[derive(Debug)]
pub(crate) struct NoSlot;

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

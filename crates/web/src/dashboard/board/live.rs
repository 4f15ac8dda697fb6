//! Watched boards: each screen is built once per publication, for all viewers.
//!
//! A viewer follows the screen in the same way as a stream of the API follows lists (`api::v1::stream`). This module
//! supplies the event from one publication to another. If the screen shown by a browser is not kept any more, the
//! browser reloads the page.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{EventId, Timestamp, World};
use engine::{MadeOnce, Published};

use crate::dashboard::board::Board;
use crate::dashboard::board::choice::Choice;
use crate::dashboard::board::delta;
use crate::dashboard::board::screen::{Screen, ScreenInput};
use crate::dashboard::board::worker_slots::NoWorkerSlot;
use crate::dashboard::page_error::PageError;
use api::Asset;
use api::v1::stream::{LogPlace, MakingStep, ScreenStep, follow_screen, place_of};
use http::{BodyStream, Slots};

/// Maximum number of screens kept, of several publications.
const SCREENS_MAX: usize = 2048;
const SCREEN_BYTES_MAX: usize = 64 << 20;
/// Maximum number of pages kept; the largest takes half a megabyte with its encodings.
const PAGES_MAX: usize = 128;

/// Subject of a board: a sport's market, or one event's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) world: World,
    pub(crate) choice: Choice,
    pub(crate) event: Option<EventId>,
}

/// Identifies a page of a view: the outcome whose path is drawn, and whether the service is closed.
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

/// All boards that are watched.
#[derive(Debug)]
pub(crate) struct BoardHub {
    screens: MadeOnce<(View, LogPlace), Screen>,
    pages: Mutex<Pages>,
    slots: Arc<Slots>,
    pub(crate) refused: AtomicU64,
}

impl Default for BoardHub {
    fn default() -> Self {
        Self {
            screens: MadeOnce::new(SCREEN_BYTES_MAX, SCREENS_MAX),
            pages: Mutex::default(),
            slots: Arc::default(),
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
        let key = (view, place_of(view.world, &published.snapshot));
        let made = self.screens.get(&key, async || {
            let (making, published) = (Arc::clone(board), Arc::clone(published));
            let screen = board.workers.take(move || make_screen(&making, view, &published)).await?;
            let bytes = screen.bytes();
            Ok((screen, bytes))
        });
        made.await
    }

    /// Starts watching. `cursor` is that of the screen in the browser; the changes since then come first.
    ///
    /// # Errors
    /// The limit of viewers, of viewers from this source or of views is reached, or the screen cannot be made.
    pub(crate) async fn watch(
        board: &Arc<Board>,
        view: View,
        cursor: &str,
        source: Option<IpAddr>,
    ) -> Result<BodyStream, NotWatched> {
        let (hub, world) = (&board.hub, view.world);
        let refused = || {
            hub.refused.fetch_add(1, Ordering::Relaxed);
            NotWatched::NoSlot
        };
        let slot = hub.slots.take(source, board.watchers_max).ok_or_else(refused)?;
        // The first event is a comparison with this publication.
        let published = Arc::clone(&board.api.world(world).published());
        hub.screen(board, view, &published).await?;
        let watched = Watched { board: Arc::clone(board), view, name: format!("{view:?}") };
        follow_screen(&board.api, world, Arc::new(watched), cursor, slot).ok_or_else(refused)
    }

    pub(crate) fn watchers(&self) -> usize {
        self.slots.taken()
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
}

fn make_screen(board: &Board, view: View, published: &Published) -> Screen {
    // The keeper may not have reached this publication yet.
    board.note(&published.snapshot);
    let history = board.history.read().unwrap_or_else(PoisonError::into_inner);
    let input = ScreenInput {
        snapshot: &published.snapshot,
        history: &history,
        stale_after: board.api.world(view.world).stale_after(),
        world: view.world,
    };
    Screen::new(&input, &view.choice, view.event)
}

/// Reason why a board cannot be watched.
#[derive(Debug)]
pub(crate) enum NotWatched {
    PageError(PageError),
    NoSlot,
}

impl From<PageError> for NotWatched {
    fn from(error: PageError) -> Self {
        Self::PageError(error)
    }
}

impl From<NoWorkerSlot> for NotWatched {
    fn from(why: NoWorkerSlot) -> Self {
        Self::PageError(why.into())
    }
}

/// A view that is watched.
#[derive(Debug)]
struct Watched {
    board: Arc<Board>,
    view: View,
    /// Unique name of the view.
    name: String,
}

impl api::v1::stream::Screen for Watched {
    fn name(&self) -> &str {
        &self.name
    }

    fn step<'a>(&'a self, from: Option<LogPlace>, to: &'a Arc<Published>) -> MakingStep<'a> {
        Box::pin(async move {
            let made = self.make_step(from, to).await;
            let made = made.inspect_err(|why| {
                if let NoWorkerSlot::Failed(error) = why {
                    tracing::error!(event = "board.failed", %error, "a board could not be made");
                }
            });
            made.ok()
        })
    }
}

impl Watched {
    async fn make_step(
        &self,
        from: Option<LogPlace>,
        to: &Arc<Published>,
    ) -> Result<ScreenStep, NoWorkerSlot> {
        let Self { board, view, .. } = self;
        let new = board.hub.screen(board, *view, to).await?;
        let mut delta = None;
        if let Some(old) = from.and_then(|from| board.hub.screens.find(&(*view, from))) {
            let (query, linked) = (view.choice.query(&board.api.catalogue), view.event.is_none());
            let work = move || delta::between(&old, &new, &query, linked);
            delta = board.workers.take(work).await?;
        }
        Ok(match delta {
            Some(data) => ScreenStep { event: "delta", data },
            // The browser reloads the page.
            None => ScreenStep { event: "whole", data: "{}".to_owned() },
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under the lock panics half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Who keeps the boards and the record of freshness up to date: one task that wakes with every publication.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use change_log::LogView;
use domain::{Timestamp, World};
use market::{Book, Change, Ids, Snapshot};
use tokio::sync::watch;

use crate::app::App;
use crate::server;
use crate::world::{Past, play_back};

/// How far back the sandbox's paths begin: a function of the seed, so any past can be had.
const SANDBOX_BACK: Duration = Duration::from_secs(3 * 3600);
/// How far apart the looks at the past are.
const BACK_STEP: Duration = Duration::from_secs(300);
/// How often sources are looked at, beside the publications.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Keeps boards and status up to date until the service stops.
pub async fn keep_pages(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    let board = app.settings.dashboard.board.filter(|_| app.settings.dashboard.enabled);
    let mut news = board.map(|world| app.world(world).news());
    if let Some(world) = board {
        blocking(&app, move |app| look_back(app, world)).await;
    }
    app.status.restore(&app).await;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let told = async {
            match &mut news {
                Some(news) => news.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        // A publication that is missed while another is worked on is seen with the next: `changed` remembers.
        tokio::select! {
            told = told => {
                if !told {
                    break;
                }
                if let Some(world) = board {
                    blocking(&app, move |app| renew(app, world)).await;
                }
            }
            _ = looks.tick() => {}
            () = server::stopped(&mut stopping) => break,
        }
        app.status.look(&app).await;
    }
    app.board.gallery.close();
    app.status.save(&app).await;
}

async fn blocking(app: &Arc<App>, work: impl FnOnce(&App) + Send + 'static) {
    let app = Arc::clone(app);
    if let Err(error) = tokio::task::spawn_blocking(move || work(&app)).await {
        tracing::error!(%error, "the boards could not be renewed");
    }
}

fn renew(app: &App, world: World) {
    note(app, &app.world(world).published().snapshot);
    app.board.gallery.renew(app);
}

fn note(app: &App, snapshot: &Snapshot) {
    app.board.history.write().unwrap_or_else(PoisonError::into_inner).note(snapshot);
}

/// Where the prices of this start came from: from the log since its last checkpoint, or, in the sandbox, from its
/// seed. A past that cannot be read is no past; the board begins with the present.
fn look_back(app: &App, world: World) {
    let handle = app.world(world);
    let until = handle.published().snapshot.cut_at;
    let stale_after = handle.stale_after();
    let book = Book::new(Arc::clone(&app.catalogue), Ids::Minted { salt: 0 });
    match &handle.past.simulation {
        Some(simulation) => {
            let mut book = Book::new(Arc::clone(&app.catalogue), crate::world::SANDBOX_IDS);
            let mut at = until.minus(SANDBOX_BACK);
            let mut messages = simulation.world_at(at);
            while at < until {
                for message in &messages {
                    play_back(&mut book, message, at);
                }
                note(app, &Snapshot::cut(&book, at, stale_after));
                let next = at.plus(BACK_STEP);
                messages = simulation.between(at, next);
                at = next;
            }
        }
        None => {
            if let Err(error) = read_back(app, &handle.past, book, until, stale_after) {
                let error = &*error as &dyn std::error::Error;
                tracing::warn!(error, "price paths begin now: the log's past cannot be read");
            }
        }
    }
    note(app, &handle.published().snapshot);
}

fn read_back(
    app: &App,
    past: &Past,
    fresh: Book,
    until: Timestamp,
    stale_after: Duration,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let log = LogView::open(&past.folder)?;
    let (mut book, mut from) = (fresh, log.first_seq());
    if let Some(seq) = log.checkpoints().last() {
        let held = log.checkpoint(*seq)?;
        book = Book::from_image(held.version, &held.payload, Arc::clone(&app.catalogue))?;
        from = seq + 1;
    }
    let mut noted: Option<Timestamp> = None;
    for entry in log.read_from(from)? {
        let entry = entry?;
        let change = Change::decode(entry.version, &entry.payload)?;
        book.absorb(&change, Timestamp::from_millis(entry.at_ms));
        if let Change::Cut { at } = change {
            let due = noted.is_none_or(|noted| at.since(noted) >= BACK_STEP);
            if due && at < until {
                note(app, &Snapshot::cut(&book, at, stale_after));
                noted = Some(at);
            }
        }
    }
    Ok(())
}

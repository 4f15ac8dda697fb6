//! Who keeps the boards and the record of freshness up to date: one task that wakes with every publication.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{Timestamp, World};
use engine::{Base, Logged, Replay, WorldError, play_back};
use market::{Book, Change, Snapshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::Web;
use crate::dashboard::board::history::History;

/// How far back the sandbox's paths begin: it is a function of an instant, so any past can be had.
const SANDBOX_BACK: Duration = Duration::from_secs(3 * 3600);
/// How far apart the looks at the past are.
const BACK_STEP: Duration = Duration::from_secs(900);
/// A book that holds more is not made a second time to look back: there is memory for one.
const READ_BACK_RECORDS_MAX: u64 = 100_000;
/// The same in a log, which has what was published only since its last checkpoint.
const LOG_STEP: Duration = Duration::from_secs(60);
/// How often sources are looked at, beside the publications.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Keeps boards and status up to date until the service stops.
pub async fn keep_pages(web: Arc<Web>, stopping: CancellationToken) {
    let board = web.settings.board.filter(|_| web.settings.enabled);
    let mut news = board.map(|world| web.api.world(world).publications());
    let mut back = JoinSet::new();
    if let Some(world) = board {
        blocking(&web, move |web| renew(web, world)).await;
        back.spawn(look_back(Arc::clone(&web), world));
    }
    web.status.restore(&web).await;
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
                    blocking(&web, move |web| renew(web, world)).await;
                }
            }
            _ = looks.tick() => {}
            Some(_) = back.join_next() => {}
            () = stopping.cancelled() => break,
        }
        web.status.look(&web).await;
        web.traffic.look(&web.api.metrics, web.api.clock.now());
    }
    web.board.gallery.close();
    back.shutdown().await;
    web.status.save(&web).await;
}

async fn blocking(web: &Arc<Web>, work: impl FnOnce(&Web) + Send + 'static) {
    let web = Arc::clone(web);
    if let Err(error) = tokio::task::spawn_blocking(move || work(&web)).await {
        tracing::error!(%error, "the boards could not be renewed");
    }
}

fn renew(web: &Web, world: World) {
    note(web, &web.api.world(world).published().snapshot);
    web.board.gallery.renew(web);
}

fn note(web: &Web, snapshot: &Snapshot) {
    web.board.history.write().unwrap_or_else(PoisonError::into_inner).note(snapshot);
}

/// Where the prices of this start came from: from the log since its last checkpoint, or, in the sandbox, from its
/// seed. A past that cannot be read is no past; the board begins with the present. Goes on beside the present, in
/// steps, so that a service that stops need not wait for it.
async fn look_back(web: Arc<Web>, world: World) {
    let past = Arc::new(Mutex::new(History::default()));
    let until = web.api.world(world).published().snapshot.cut_at;
    if web.api.world(world).past.simulation.is_some() {
        let mut at = until.minus(SANDBOX_BACK);
        while at < until {
            let past = Arc::clone(&past);
            blocking(&web, move |web| play_at(web, world, at, &past)).await;
            at = at.plus(BACK_STEP);
        }
    } else {
        let past = Arc::clone(&past);
        blocking(&web, move |web| {
            if let Err(error) = read_back(web, world, until, &past) {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "price paths begin now: the log's past cannot be read");
            }
        })
        .await;
    }
    let past = std::mem::take(&mut *past.lock().unwrap_or_else(PoisonError::into_inner));
    web.board.history.write().unwrap_or_else(PoisonError::into_inner).lead_in(past);
}

fn play_at(web: &Web, world: World, at: Timestamp, past: &Mutex<History>) {
    let handle = web.api.world(world);
    let Some(simulation) = &handle.past.simulation else { return };
    let mut book = Book::new(Arc::clone(&web.api.catalogue), engine::SANDBOX_IDS);
    for message in simulation.world_at(at) {
        play_back(&mut book, &message, at);
    }
    let snapshot = Snapshot::cut(&book, 0, at, handle.stale_after(), &[]);
    past.lock().unwrap_or_else(PoisonError::into_inner).note(&snapshot);
}

fn read_back(
    web: &Web,
    world: World,
    until: Timestamp,
    past: &Mutex<History>,
) -> Result<(), WorldError> {
    let handle = web.api.world(world);
    if handle.stats.load.load().records > READ_BACK_RECORDS_MAX {
        tracing::info!(%world, "price paths begin now: the book is too large to be made a second time");
        return Ok(());
    }
    let Some(mut log) = handle.past.log.view()? else { return Ok(()) };
    let mut base = Base::newest(&mut *log, &web.api.catalogue)?;
    let mut noted: Option<Timestamp> = None;
    for logged in Replay::after(&*log, &base)? {
        let Logged { seq, at, change, .. } = logged?;
        base.book.absorb(&change, at);
        if let Change::Cut { at } = change {
            let due = noted.is_none_or(|noted| at.since(noted) >= LOG_STEP);
            if due && at < until {
                let snapshot = Snapshot::cut(&base.book, seq, at, handle.stale_after(), &[]);
                past.lock().unwrap_or_else(PoisonError::into_inner).note(&snapshot);
                noted = Some(at);
            }
        }
    }
    Ok(())
}

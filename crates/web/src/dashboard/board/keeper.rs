//! Keeps price paths and the record of freshness up to date: one task that wakes with every publication.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::World;
use engine::PriceHistory;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::Web;

/// Start of the sandbox's paths before now: the sandbox is a function of an instant, so any past can be computed.
const SANDBOX_BACK: Duration = Duration::from_secs(3 * 3600);
/// Interval between past states of the sandbox.
const BACK_STEP: Duration = Duration::from_secs(900);
/// Interval of checks of sources, in addition to publications.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Keeps boards and status up to date until the service stops.
pub async fn keep_pages(web: Arc<Web>, stopping: CancellationToken) {
    let board = web.settings.board.filter(|_| web.settings.enabled);
    let mut news = board.map(|world| web.api.world(world).publications());
    let mut back = JoinSet::new();
    if let Some(world) = board {
        blocking(&web, move |web| note(web, world)).await;
        back.spawn(look_back(Arc::clone(&web), world));
    }
    web.status.restore(&web.api).await;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let published = async {
            match &mut news {
                Some(news) => news.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        // A publication missed during work on another is seen with the next: `changed` remembers it.
        tokio::select! {
            published = published => {
                if !published {
                    break;
                }
                if let Some(world) = board {
                    blocking(&web, move |web| note(web, world)).await;
                }
            }
            _ = looks.tick() => {}
            Some(_) = back.join_next() => {}
            () = stopping.cancelled() => break,
        }
        web.status.look(&web.api).await;
        web.traffic.look(&web.api.metrics, web.api.clock.now());
    }
    back.shutdown().await;
    web.status.save(&web.api).await;
}

async fn blocking(web: &Arc<Web>, work: impl FnOnce(&Web) + Send + 'static) {
    let web = Arc::clone(web);
    if let Err(error) = tokio::task::spawn_blocking(move || work(&web)).await {
        tracing::error!(event = "board.update_failed", %error, "price paths could not be brought up to date");
    }
}

fn note(web: &Web, world: World) {
    web.board.note(&web.api.world(world).published().snapshot);
}

/// Reads the price history before this start: from the log since its last checkpoint, or, in the sandbox, from its
/// seed.
///
/// If it cannot be read, the board begins with the current publication. Runs in steps, concurrently with updates, so
/// that a stopping service need not wait for it.
async fn look_back(web: Arc<Web>, world: World) {
    let past = Arc::new(Mutex::new(PriceHistory::default()));
    let until = web.api.world(world).published().snapshot.cut_at;
    if web.api.world(world).past.simulation.is_some() {
        let mut at = until.minus(SANDBOX_BACK);
        while at < until {
            let past = Arc::clone(&past);
            blocking(&web, move |web| {
                let mut past = past.lock().unwrap_or_else(PoisonError::into_inner);
                past.note_simulated(web.api.world(world), &web.api.catalogue, at);
            })
            .await;
            at = at.plus(BACK_STEP);
        }
    } else {
        let past = Arc::clone(&past);
        blocking(&web, move |web| {
            let mut past = past.lock().unwrap_or_else(PoisonError::into_inner);
            let read = past.read_log(web.api.world(world), &web.api.catalogue, until);
            if let Err(error) = read {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    event = "board.past_unreadable",
                    error,
                    "price paths begin now: the log's past cannot be read"
                );
            }
        })
        .await;
    }
    let past = std::mem::take(&mut *past.lock().unwrap_or_else(PoisonError::into_inner));
    web.board.history.write().unwrap_or_else(PoisonError::into_inner).lead_in(past);
}

//! An event's prices since it was listed, read from history (H10); the board itself keeps only the last changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::{EventId, Market, RecordId};
use engine::{MadeOnce, PathError, PathRequest, PricePath, Published, RecordPath};

use crate::dashboard::board::Board;
use crate::dashboard::board::live::View;
use crate::dashboard::board::screen::Row;

/// Time for which a read stays valid: less than it takes to produce more changes than the board keeps.
const GOOD_FOR: Duration = Duration::from_secs(600);
/// Maximum time a page waits for the read. The read completes in any case, for the next page.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Reader id for history; API keys use other ids.
const READER: u64 = 0;
const EVENTS_MAX: usize = 256;
const BYTES_MAX: usize = 32 << 20;
/// Approximate memory per change, with its outcomes, in bytes.
const POINT_BYTES: usize = 256;

/// Cache of events whose prices were read from history.
#[derive(Debug)]
pub(crate) struct EventPasts(MadeOnce<(EventId, Market, u128), EventPast>);

/// The history of the prices of an event's market.
#[derive(Debug)]
pub(crate) struct EventPast(HashMap<RecordId, RecordPath>);

impl Default for EventPasts {
    fn default() -> Self {
        Self(MadeOnce::new(BYTES_MAX, EVENTS_MAX))
    }
}

impl EventPasts {
    /// History of an event; `None` if there is none, history is off, or reading takes too long.
    pub(crate) async fn find(
        board: &Arc<Board>,
        view: View,
        published: &Arc<Published>,
    ) -> Option<Arc<EventPast>> {
        let event = view.event?;
        let (board, published) = (Arc::clone(board), Arc::clone(published));
        let reading = tokio::spawn(async move { read(&board, view, event, &published).await });
        let read = tokio::time::timeout(WAIT_MAX, reading).await.ok()?;
        read.unwrap_or_else(|error| {
            tracing::error!(event = "board.path_failed", %error, "the price path of an event could not be read");
            None
        })
    }
}

async fn read(
    board: &Board,
    view: View,
    event: EventId,
    published: &Published,
) -> Option<Arc<EventPast>> {
    let View { choice, .. } = view;
    let world = board.api.world(view.world);
    let age = u128::try_from(published.snapshot.cut_at.as_millis()).unwrap_or(0);
    let key = (event, choice.market, age / GOOD_FOR.as_millis());
    let request = PathRequest {
        sport: board.api.catalogue.sport(choice.sport).key.clone(),
        event,
        bookmakers: None,
        market: Some(choice.market),
        from: None,
        to: None,
        all: false,
        limit: usize::MAX,
        after: None,
    };
    let made = board.pasts.0.get(&key, async || {
        let mut found = world.event_paths(request, published, READER).await?;
        // A truncated path would lack the latest changes; the board has those itself.
        if found.end.is_some() {
            found.paths.clear();
        }
        let points: usize = found.paths.iter().map(|path| path.points.len() + 1).sum();
        let paths = found.paths.into_iter().map(|path| (path.head.record, path)).collect();
        Ok::<_, PathError>((EventPast(paths), points.saturating_mul(POINT_BYTES)))
    });
    match made.await {
        Ok(past) => Some(past),
        // The board has the latest changes itself.
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(event = "board.path_missing", error, event_id = %event, "no price path from history");
            None
        }
    }
}

impl EventPast {
    /// The price path of a row's outcome at a bookmaker, with the changes noted by the board since the read.
    pub(crate) fn path(
        &self,
        record: RecordId,
        row: &Row,
        noted: Option<&PricePath>,
    ) -> Option<PricePath> {
        let path =
            PricePath::of_record(self.0.get(&record)?, |outcome| match row.outcome.side_key() {
                Some(side) => outcome.side == Some(side),
                None => *outcome.name == *row.name,
            })?;
        let later = noted.into_iter().flat_map(|noted| noted.points.iter().copied());
        Some(path.followed_by(later))
    }
}

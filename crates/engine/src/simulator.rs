//! The messages of the simulator, applied to a book.

use std::time::Duration;

use domain::Timestamp;
use domain::message::{Body, FeedMessage};
use market::{Book, Ids};

use crate::entries::Entries;

/// The feed name of the simulator; pushed feeds are in the other world.
pub(crate) const SANDBOX_FEED: &str = "sandbox";

/// The sandbox's ids are derived from the refs of the seed's schedule alone, so that they are the same everywhere.
pub const SANDBOX_IDS: Ids = Ids::Derived { salt: 0x5a4d_b0c5 };

/// Applies one message of the simulator. A rejected one is a fault of the simulator and is logged.
pub(crate) fn play(book: &mut Book, message: &FeedMessage, at: Timestamp, entries: &mut Entries) {
    match book.apply(SANDBOX_FEED, message, arrival(message, at)) {
        Ok(decision) => {
            for change in decision.change.iter().chain(&decision.follow) {
                entries.push(change);
            }
        }
        Err(reject) => {
            tracing::warn!(event = "sandbox.message_refused", code = reject.code.slug(), %reject, "sandbox message refused");
        }
    }
}

/// Applies one message of the simulator to a book that is only read.
pub fn play_back(book: &mut Book, message: &FeedMessage, at: Timestamp) {
    play(book, message, at, &mut Entries::default());
}

/// Arrival time of a simulated message: a function of the message, like everything in the sandbox. Each bookmaker has
/// a delay of its own.
pub(crate) fn arrival(message: &FeedMessage, at: Timestamp) -> Timestamp {
    let delay_ms = match &message.body {
        Body::Odds(odds) => 40 + 37 * odds.bookmaker.index() % 400,
        Body::Heartbeat { bookmaker, .. } => 40 + 37 * bookmaker.index() % 400,
        Body::Event { .. } | Body::Score(_) | Body::Remove { .. } => 0,
    };
    let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
    message.ts.map_or(at, |ts| ts.plus(delay))
}

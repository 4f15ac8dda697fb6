//! Streams of viewers of pages.

use std::sync::Arc;

use domain::World;
use http::{BodyStream, Slot};

use super::Streams;
use super::event_stream::EventStream;
use super::screen::{SCREEN_CHECK, Screen};
use super::selection::Selection;
use super::subscription::{Begin, Held, Subscription};
use crate::context::Api;
use crate::position::LogPosition;
use crate::v1::wire::stream::{EndCode, greeting};

const HEARTBEAT_S: u32 = 15;

/// Starts following a screen from a cursor, with a slot of the viewer; `None` if too many screens are followed.
pub fn follow_screen(
    api: &Arc<Api>,
    world: World,
    screen: Arc<dyn Screen>,
    cursor: &str,
    slot: Slot,
) -> Option<BodyStream> {
    let selection = Arc::new(Selection::of_screen(world, screen));
    let member = api.streams.groups(&selection).join(&selection)?;
    let position = LogPosition::decode(cursor)
        .filter(|position| (position.world, position.selection) == (world, SCREEN_CHECK));
    let begin = position.map_or(Begin::Now, |position| Begin::At((position.at, position.check)));
    let held = Held::Place { _slot: slot };
    let subscription = Subscription::new(api, None, held, member, begin);
    let subscription = subscription.saying(&greeting(), None, HEARTBEAT_S);
    Some(Box::new(EventStream::new(subscription)))
}

impl Streams {
    /// Number of viewers of screens that were dropped because they did not read.
    pub fn slow_viewers(&self) -> u64 {
        self.screen_metrics.ended(EndCode::Slow)
    }
}

//! Pages for people, kept up to date by the mechanism of streams.
//!
//! They have a position, events rendered once for all viewers of the same page, heartbeats, and an explicit end. The
//! owner of a page supplies the event from one publication to another, and decides who may watch.

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;

use domain::World;
use engine::Published;
use market::Snapshot;

use crate::position::{LogPlace, LogPosition, place_of};

/// Maximum number of screens followed at the same time: each is rebuilt with every publication.
pub(super) const SCREENS_MAX: usize = 256;
/// Maximum memory of the events of screens.
pub(super) const BYTES_MAX: usize = 32 << 20;
/// Checksum in the cursors of screens, in place of a selection's.
pub(super) const SCREEN_CHECK: u32 = 0;

/// Contents of a page about a world, as of each publication.
pub trait Screen: fmt::Debug + Send + Sync + 'static {
    /// Unique name of the screen.
    fn name(&self) -> &str;

    /// The event that brings a browser from what it shows to a publication; without a position, what it shows is
    /// unknown. `None` if the event cannot be built now.
    fn step<'a>(&'a self, from: Option<LogPlace>, to: &'a Arc<Published>) -> MakingStep<'a>;
}

pub type MakingStep<'a> = Pin<Box<dyn Future<Output = Option<ScreenStep>> + Send + 'a>>;

/// An event of a screen.
#[derive(Debug)]
pub struct ScreenStep {
    pub event: &'static str,
    /// One line of JSON.
    pub data: String,
}

impl PartialEq for dyn Screen {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Screen {}

impl Hash for dyn Screen {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// The cursor of a page that shows a publication.
pub fn screen_cursor(world: World, snapshot: &Snapshot) -> String {
    let (at, check) = place_of(world, snapshot);
    LogPosition { world, at, check, selection: SCREEN_CHECK }.encode()
}

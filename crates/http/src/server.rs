//! State shared by all listeners of a service, and the phases of its shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use domain::Clock;
use tokio::sync::watch;

use crate::load_shedding::LoadShedding;
use crate::proxy::Proxies;
use crate::slots::Slots;
use crate::unread::Unread;

/// The operator's settings for connections.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Maximum number of open connections.
    pub connections_max: usize,
    /// The same for one source that is not a trusted proxy.
    pub connections_per_source_max: usize,
    /// Time for which connections are still accepted once the service stops.
    pub drain: Duration,
    /// The proxies in front of the main listener.
    pub proxies: Proxies,
    /// Maximum lateness of the service before it refuses answers that are not ready.
    pub shed_after: Duration,
}

/// State shared by all listeners of a service.
#[derive(Debug)]
pub struct Server {
    pub clock: Arc<dyn Clock>,
    pub settings: ServerSettings,
    pub counters: Counters,
    pub load: LoadShedding,
    /// Connections by source.
    pub(crate) sources: Arc<Slots>,
    stopping: watch::Sender<bool>,
}

/// Figures of all connections, for `/metrics`.
#[derive(Debug, Default)]
pub struct Counters {
    pub open: AtomicI64,
    pub total: AtomicU64,
    pub refused: AtomicU64,
    pub refused_source: AtomicU64,
    pub cut_slow_head: AtomicU64,
    pub cut_slow_reader: AtomicU64,
    /// Bytes that clients occupy by not reading them.
    pub(crate) unread: Unread,
}

impl Counters {
    /// Bytes of answers that only a slow client still holds.
    pub fn unread_bytes(&self) -> usize {
        self.unread.bytes()
    }
}

impl Server {
    pub fn new(clock: Arc<dyn Clock>, settings: ServerSettings) -> Arc<Self> {
        Arc::new(Self {
            clock,
            load: LoadShedding::new(settings.shed_after),
            settings,
            counters: Counters::default(),
            sources: Arc::default(),
            stopping: watch::Sender::new(false),
        })
    }

    /// Notes that the service is about to stop: requests should go elsewhere, and those that arrive are answered.
    pub fn note_stop(&self) {
        self.stopping.send_replace(true);
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Signals that the service is about to stop, which ends answers without an end of their own.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

/// The phases of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// New connections are still accepted; every answer is the last of its connection.
    Draining,
    /// Connections without a request under way are closed.
    Closing,
}

/// Returns when the shutdown has reached a phase.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // A dropped sender means the same.
    drop(phase.wait_for(|phase| *phase >= wanted).await);
}

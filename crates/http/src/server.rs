//! What all listeners of a service share, and how far its end has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use domain::Clock;
use tokio::sync::watch;

use crate::load_shedding::LoadShedding;
use crate::proxy::Proxies;
use crate::slots::Slots;
use crate::unread::Unread;

/// What the operator decided about connections.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Connections open at the same time at the most.
    pub connections_max: usize,
    /// The same from one source that is no trusted proxy.
    pub connections_per_source_max: usize,
    /// How long connections are still taken once the service stops.
    pub drain: Duration,
    /// Which proxies stand before the main listener.
    pub proxies: Proxies,
    /// How late the service may be before it refuses what is not ready.
    pub shed_after: Duration,
}

/// What all listeners of a service share.
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
    /// What clients hold by not reading it.
    pub(crate) unread: Unread,
}

impl Counters {
    /// Bytes of answers that only a client which is slow to read holds.
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

    /// The service is about to stop: requests should go elsewhere, and those that come are answered.
    pub fn note_stop(&self) {
        self.stopping.send_replace(true);
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Says when the service is about to stop: an answer without an end of its own comes to one.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

/// How far the end of the service has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// New connections are still taken; every answer is its connection's last.
    Draining,
    /// Connections without a request under way end.
    Closing,
}

/// Comes back when the end has come so far.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The sender going away means the same.
    drop(phase.wait_for(|phase| *phase >= wanted).await);
}

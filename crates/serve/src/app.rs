//! Everything an answer may need, shared by all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use accounts::{AccountError, Accounts, People, QuotaAlert};
use domain::{Catalogue, Clock, World};
use tokio::sync::Mutex;

use crate::answers::{Answers, Figures};
use crate::dashboard::{Board, DashboardSettings, StatusRecord};
use crate::docs::Pages;
use crate::ingest::{Budget, PushLimits};
use crate::metrics::Metrics;
use crate::places::Places;
use crate::pressure::Pressure;
use crate::proxy::Proxies;
use crate::request_id::{RequestId, RequestIds};
use crate::v1::Shelf;
use crate::v1::endpoint::Endpoint;
use crate::v1::region::RegionTable;
use engine::{Published, WorldHandle, Worlds};

/// Owners of keys who could not be told of their quotas and are remembered; the others see the banner.
const UNTOLD_MAX: usize = 1000;

/// What the operator decided about the API.
#[derive(Clone, Debug)]
pub struct Settings {
    pub query_key_enabled: bool,
    /// When the query form of the key ends, as an HTTP date.
    pub query_key_sunset: String,
    /// Whether the push door is on the main listener.
    pub ingest_on_main: bool,
    /// Connections open at the same time at the most.
    pub connections_max: usize,
    /// How much memory pushes may take.
    pub pushes: PushLimits,
    /// The same from one source that is no trusted proxy.
    pub connections_per_source_max: usize,
    /// How long connections are still taken once the service stops.
    pub drain: Duration,
    pub dashboard: DashboardSettings,
    /// Which proxies stand before the main listener.
    pub proxies: Proxies,
    /// How late the service may be before it refuses what is not ready.
    pub shed_after: Duration,
}

/// The service.
#[derive(Debug)]
pub struct App {
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub accounts: Accounts,
    pub people: People,
    pub settings: Settings,
    worlds: Worlds,
    pub(crate) metrics: Metrics,
    pub(crate) pressure: Pressure,
    pub(crate) pushes: Arc<Budget>,
    /// Who has connections.
    pub(crate) sources: Arc<Places>,
    /// Who is sending forms.
    pub(crate) forms: Arc<Places>,
    stops: AtomicBool,
    pub(crate) pages: Pages,
    pub(crate) board: Board,
    pub(crate) status: StatusRecord,
    /// Quotas running low whose owners could not be told yet.
    untold: Mutex<Vec<QuotaAlert>>,
    /// How ready answers come and go, in each world.
    pub(crate) figures: [Arc<Figures>; World::ALL.len()],
    regions: RegionTable,
    request_ids: RequestIds,
}

/// The parts an [`App`] is made of.
#[derive(Debug)]
pub struct Parts {
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub accounts: Accounts,
    pub people: People,
    pub settings: Settings,
    pub worlds: Worlds,
}

impl App {
    pub fn new(parts: Parts) -> Self {
        let Parts { catalogue, clock, accounts, people, settings, worlds } = parts;
        Self {
            regions: RegionTable::new(&catalogue),
            pressure: Pressure::new(settings.shed_after),
            pushes: Budget::new(settings.pushes),
            catalogue,
            clock,
            accounts,
            people,
            settings,
            worlds,
            metrics: Metrics::default(),
            sources: Arc::default(),
            forms: Arc::default(),
            stops: AtomicBool::new(false),
            pages: Pages::default(),
            board: Board::default(),
            status: StatusRecord::default(),
            untold: Mutex::default(),
            figures: Default::default(),
            request_ids: RequestIds::default(),
        }
    }

    pub fn world(&self, world: World) -> &WorldHandle {
        self.worlds.get(world)
    }

    /// Whether requests should come here: it is not about to stop, no other node could show anything newer, and keys
    /// are let in.
    pub fn is_ready(&self) -> bool {
        let now = self.clock.now();
        !self.stops()
            && self.vouches()
            && self.accounts.can_count()
            && World::ALL.iter().all(|world| self.world(*world).is_abreast(now))
    }

    /// The service is about to stop: requests should go elsewhere, and those that come are answered.
    pub fn note_stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Whether this node may let keys in.
    pub(crate) fn vouches(&self) -> bool {
        self.accounts.key_lease().is_none_or(|lease| lease.left_ms > 0)
    }

    /// Writes down what keys were used for since the last time.
    ///
    /// # Errors
    /// The store cannot be written; it is tried again with the next call.
    pub async fn write_usage(&self) -> Result<(), AccountError> {
        self.accounts.write_usage(&Endpoint::names()).await
    }

    /// Writes to the owners of keys whose quota runs low, once for each share and window. Who cannot be told now is
    /// told with the next call.
    pub async fn tell_quotas(&self) {
        let mut untold = self.untold.lock().await;
        untold.extend(self.accounts.take_quota_alerts().await);
        *untold = self.people.mail_alerts(std::mem::take(&mut *untold)).await;
        untold.truncate(UNTOLD_MAX);
    }

    /// The ready answers of a publication.
    pub(crate) fn answers<'a>(&self, world: World, published: &'a Published) -> &'a Answers {
        published.per_publication(|| Answers::counted_in(self.figures(world)))
    }

    /// How ready answers come and go in a world.
    pub(crate) fn figures(&self, world: World) -> &Arc<Figures> {
        let [live, sandbox] = &self.figures;
        match world {
            World::Live => live,
            World::Sandbox => sandbox,
        }
    }

    /// Where names in queries are looked up.
    pub(crate) fn shelf(&self) -> Shelf<'_> {
        Shelf { catalogue: &self.catalogue, regions: &self.regions }
    }

    pub(crate) fn next_request_id(&self) -> RequestId {
        self.request_ids.next()
    }
}

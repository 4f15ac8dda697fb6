//! State and settings of the API, shared by all connections.

use std::sync::{Arc, OnceLock};

use accounts::{AccountError, Accounts};
use domain::{Catalogue, Clock, MetricsText, Timestamp, World};
use engine::feed_stats::FeedStats;
use engine::{Published, WorldHandle, Worlds};
use tokio::sync::Semaphore;

use http::{RequestId, RequestIds, Server};

use crate::answers::{Answers, Figures};
use crate::asset::Asset;
use crate::ingest::budget::{Budget, PushLimits};
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::v1::query::Lookup;
use crate::v1::region::RegionTable;
use crate::v1::stream::{StreamSettings, Streams};
use crate::v4::settings::V4Settings;

/// Operator settings of the API.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    pub query_key_enabled: bool,
    /// End of support for the key in the query, as an HTTP date.
    pub query_key_sunset: String,
    /// Memory limits of pushes.
    pub pushes: PushLimits,
    pub v4: V4Settings,
    pub stream: StreamSettings,
}

/// State of the upstream adapters, on whatever node they run.
pub trait AdapterReports: Send + Sync + std::fmt::Debug {
    /// One object per adapter.
    fn to_json(&self) -> Vec<serde_json::Value>;

    /// Inputs of an adapter that were not in the expected format, newest first, as far as this node knows them.
    fn samples(&self, name: &str) -> Vec<serde_json::Value>;

    /// True if an adapter has been failing for longer than allowed.
    fn is_degraded(&self, now: Timestamp) -> bool;

    fn render(&self, page: &mut MetricsText);
}

/// Maximum number of analyses computed at the same time. Each occupies a processor for some milliseconds; further ones
/// wait.
const ANALYSES_MAX: usize = 2;

/// Shared state of the API.
#[derive(Debug)]
pub struct Api {
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub accounts: Accounts,
    pub worlds: Worlds,
    pub settings: ApiSettings,
    pub server: Arc<Server>,
    pub metrics: Metrics,
    /// Statistics of each feed's messages.
    pub feed_stats: FeedStats,
    pub pushes: Arc<Budget>,
    pub streams: Streams,
    /// Set if there are adapters.
    pub adapters: OnceLock<Arc<dyn AdapterReports>>,
    pub(crate) openapi: OnceLock<Asset>,
    pub(crate) openapi_v4: OnceLock<Asset>,
    /// Permits to compute an analysis.
    pub(crate) analyses: Arc<Semaphore>,
    /// Cache figures of each world.
    figures: [Arc<Figures>; World::ALL.len()],
    regions: RegionTable,
    request_ids: RequestIds,
}

impl Api {
    pub fn new(
        catalogue: Arc<Catalogue>,
        accounts: Accounts,
        worlds: Worlds,
        settings: ApiSettings,
        server: Arc<Server>,
    ) -> Arc<Self> {
        Arc::new(Self {
            regions: RegionTable::new(&catalogue),
            pushes: Budget::new(settings.pushes),
            streams: Streams::new(settings.stream, Arc::clone(&catalogue)),
            catalogue,
            clock: Arc::clone(&server.clock),
            accounts,
            worlds,
            settings,
            server,
            metrics: Metrics::default(),
            feed_stats: FeedStats::default(),
            adapters: OnceLock::new(),
            openapi: OnceLock::new(),
            openapi_v4: OnceLock::new(),
            analyses: Arc::new(Semaphore::new(ANALYSES_MAX)),
            figures: Default::default(),
            request_ids: RequestIds::default(),
        })
    }

    pub fn world(&self, world: World) -> &WorldHandle {
        self.worlds.get(world)
    }

    /// Writes the usage of keys since the last call to the store.
    ///
    /// # Errors
    /// The store cannot be written; the next call retries.
    pub async fn write_usage(&self) -> Result<(), AccountError> {
        self.accounts.write_usage(&Operation::names()).await
    }

    pub fn next_request_id(&self) -> RequestId {
        self.request_ids.next()
    }

    /// The answer cache of a publication.
    pub(crate) fn answers<'a>(&self, world: World, published: &'a Published) -> &'a Answers {
        Answers::of(published, self.figures(world))
    }

    /// The cache figures of a world.
    pub(crate) fn figures(&self, world: World) -> &Arc<Figures> {
        let [live, sandbox] = &self.figures;
        match world {
            World::Live => live,
            World::Sandbox => sandbox,
        }
    }

    /// Figures for `/metrics`: bytes of cached answers and of event fragments, answers made and answers evicted.
    pub fn answer_figures(&self, world: World) -> [u64; 4] {
        let published = self.world(world).published();
        let answers = self.answers(world, &published);
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let [made, evicted] = self.figures(world).read();
        let fragments = answers.fragments.kept_bytes() + answers.v4.kept_bytes();
        [bytes(answers.kept_bytes()), bytes(fragments), made, evicted]
    }

    /// Maximum number of open streams of a key over all nodes; `own` is the key's own limit.
    pub fn streams_max(&self, own: Option<u32>) -> u32 {
        own.unwrap_or_else(|| u32::try_from(self.settings.stream.per_key_max).unwrap_or(u32::MAX))
    }

    /// Lookup tables for names in queries.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup { catalogue: &self.catalogue, regions: &self.regions }
    }
}

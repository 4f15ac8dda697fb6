//! Everything an answer of the API may need, shared by all connections.

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

/// What the operator decided about the API.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    pub query_key_enabled: bool,
    /// When the query form of the key ends, as an HTTP date.
    pub query_key_sunset: String,
    /// How much memory pushes may take.
    pub pushes: PushLimits,
    pub v4: V4Settings,
    pub stream: StreamSettings,
}

/// What is known of the upstream adapters, wherever they run.
pub trait AdapterReports: Send + Sync + std::fmt::Debug {
    /// One object for each adapter.
    fn to_json(&self) -> Vec<serde_json::Value>;

    /// Input of an adapter that was not in the expected format, the newest first, as far as this node knows.
    fn samples(&self, name: &str) -> Vec<serde_json::Value>;

    /// Whether an adapter has not been well for longer than it may be.
    fn is_degraded(&self, now: Timestamp) -> bool;

    fn render(&self, page: &mut MetricsText);
}

/// Analyses that are computed at a time. Each takes one processor for some milliseconds; further ones wait.
const ANALYSES_MAX: usize = 2;

/// The API.
#[derive(Debug)]
pub struct Api {
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub accounts: Accounts,
    pub worlds: Worlds,
    pub settings: ApiSettings,
    pub server: Arc<Server>,
    pub metrics: Metrics,
    /// What each feed has sent and what became of it.
    pub feed_stats: FeedStats,
    pub pushes: Arc<Budget>,
    pub streams: Streams,
    /// Set where there are adapters.
    pub adapters: OnceLock<Arc<dyn AdapterReports>>,
    pub(crate) openapi: OnceLock<Asset>,
    pub(crate) openapi_v4: OnceLock<Asset>,
    /// Turns to compute an analysis.
    pub(crate) analyses: Arc<Semaphore>,
    /// How ready answers come and go, in each world.
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

    /// Writes down what keys were used for since the last time.
    ///
    /// # Errors
    /// The store cannot be written; it is tried again with the next call.
    pub async fn write_usage(&self) -> Result<(), AccountError> {
        self.accounts.write_usage(&Operation::names()).await
    }

    pub fn next_request_id(&self) -> RequestId {
        self.request_ids.next()
    }

    /// The ready answers of a publication.
    pub(crate) fn answers<'a>(&self, world: World, published: &'a Published) -> &'a Answers {
        Answers::of(published, self.figures(world))
    }

    /// How ready answers come and go in a world.
    pub(crate) fn figures(&self, world: World) -> &Arc<Figures> {
        let [live, sandbox] = &self.figures;
        match world {
            World::Live => live,
            World::Sandbox => sandbox,
        }
    }

    /// For `/metrics`: bytes of the answers and of the event fragments that are kept ready, answers made and answers
    /// that had to go.
    pub fn answer_figures(&self, world: World) -> [u64; 4] {
        let published = self.world(world).published();
        let answers = self.answers(world, &published);
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let [made, evicted] = self.figures(world).read();
        let fragments = answers.fragments.kept_bytes() + answers.v4.kept_bytes();
        [bytes(answers.kept_bytes()), bytes(fragments), made, evicted]
    }

    /// How many streams a key may have open over all nodes, whose own limit is given.
    pub fn streams_max(&self, own: Option<u32>) -> u32 {
        own.unwrap_or_else(|| u32::try_from(self.settings.stream.per_key_max).unwrap_or(u32::MAX))
    }

    /// Where names in queries are looked up.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup { catalogue: &self.catalogue, regions: &self.regions }
    }
}

//! Everything a page may need.
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use accounts::{People, QuotaAlert};
use api::Api;
use domain::{MetricsText, Timestamp, World};
use http::{SlotLimits, Slots};
use tokio::sync::Mutex;

use crate::dashboard::board::Board;
use crate::dashboard::console::traffic::Traffic;
use crate::dashboard::status::record::Record;
use crate::docs::site::Site;

/// Owners of keys who could not be notified of their quotas and are remembered; the others see the banner.
const UNSENT_MAX: usize = 1000;

/// How often a warning that strangers can cause is logged at most.
const WARN_EVERY_S: i64 = 60;

/// Something that is done once a minute at most.
#[derive(Debug, Default)]
pub(crate) struct Seldom(AtomicI64);

impl Seldom {
    /// Whether it is time; the next time is a minute later.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let (now_s, last_s) = (now.as_secs(), self.0.load(Ordering::Relaxed));
        let due = last_s == 0 || now_s.saturating_sub(last_s) >= WARN_EVERY_S;
        due && self.0.compare_exchange(last_s, now_s, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// What the operator decided about the pages.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Whether there are pages at all.
    pub enabled: bool,
    /// Where people reach the service, where that is not where it listens: `https://odds.example.com`.
    pub public_url: Option<String>,
    /// Whether the status page is open to everybody.
    pub status_page: bool,
    /// Which market the board shows to everybody; `None`: there is no board.
    pub board: Option<World>,
    /// Browsers that may watch boards at the same time.
    pub board_watchers_max: usize,
    /// The same from one source.
    pub board_watchers_per_source_max: usize,
    /// Whether the API's reference is open to everybody.
    pub docs: bool,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            public_url: None,
            status_page: true,
            board: Some(World::Sandbox),
            board_watchers_max: 1000,
            board_watchers_per_source_max: 100,
            docs: true,
        }
    }
}

/// The pages.
#[derive(Debug)]
pub struct Web {
    pub api: Arc<Api>,
    pub people: People,
    pub settings: WebSettings,
    /// Forms on their way in.
    pub(crate) forms: Arc<Slots>,
    /// The documentation, once it was asked for.
    pub(crate) site: OnceLock<Site>,
    pub(crate) board: Arc<Board>,
    pub(crate) status: Record,
    /// Requests of the last hour.
    pub(crate) traffic: Traffic,
    pub(crate) started: Timestamp,
    /// When a form's address was last warned of.
    pub(crate) origin_warned: Seldom,
    /// Quotas running low whose owners could not be notified yet.
    unsent: Mutex<Vec<QuotaAlert>>,
}

impl Web {
    pub fn new(api: Arc<Api>, people: People, settings: WebSettings) -> Arc<Self> {
        let watchers_max = SlotLimits {
            all: settings.board_watchers_max,
            source: settings.board_watchers_per_source_max,
        };
        let board = Board::new(Arc::clone(&api), watchers_max);
        Arc::new(Self {
            started: api.clock.now(),
            traffic: Traffic::default(),
            api,
            people,
            settings,
            forms: Arc::default(),
            site: OnceLock::new(),
            board: Arc::new(board),
            status: Record::default(),
            origin_warned: Seldom::default(),
            unsent: Mutex::default(),
        })
    }

    /// Writes to the owners of keys whose quota runs low, once for each share and window. Who cannot be notified now is
    /// with the next call.
    pub async fn send_quota_alerts(&self) {
        let mut unsent = self.unsent.lock().await;
        unsent.extend(self.api.accounts.take_quota_alerts().await);
        *unsent = self.people.mail_alerts(std::mem::take(&mut *unsent)).await;
        unsent.truncate(UNSENT_MAX);
    }
    /// Writes the series of `/metrics`.
    pub fn render_metrics(&self, page: &mut MetricsText) {
        let name = "linesman_board_watchers";
        page.family(name, "gauge", "Browsers that watch a board now.");
        page.line(format_args!("{name} {}", self.board.hub.watchers()));
        let name = "linesman_board_watchers_dropped_total";
        page.family(
            name,
            "counter",
            "Watchers let go because they did not keep up; they come back.",
        );
        page.line(format_args!("{name} {}", self.api.streams.slow_viewers()));
        let name = "linesman_board_watchers_refused_total";
        page.family(name, "counter", "Watchers turned away because too many watched.");
        page.line(format_args!("{name} {}", self.board.hub.refused.load(Ordering::Relaxed)));
        let name = "linesman_board_paths";
        page.family(
            name,
            "gauge",
            "Outcomes at bookmakers whose price changes are kept in memory.",
        );
        page.line(format_args!("{name} {}", self.board.paths()));
    }
}

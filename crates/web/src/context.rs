//! Shared state and settings of the web pages.
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

/// Maximum number of quota alerts kept for owners who could not be notified; further owners see only the banner.
const UNSENT_MAX: usize = 1000;

/// Minimum interval between warnings that unauthenticated requests can cause.
const WARN_EVERY_S: i64 = 60;

/// Rate limit of one event per minute.
#[derive(Debug, Default)]
pub(crate) struct Seldom(AtomicI64);

impl Seldom {
    /// True if a minute has passed since the last event; starts a new minute.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let (now_s, last_s) = (now.as_secs(), self.0.load(Ordering::Relaxed));
        let due = last_s == 0 || now_s.saturating_sub(last_s) >= WARN_EVERY_S;
        due && self.0.compare_exchange(last_s, now_s, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Operator settings of the web pages.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// True if the web pages are enabled.
    pub enabled: bool,
    /// Public URL of the service if it differs from the listen address: `https://odds.example.com`.
    pub public_url: Option<String>,
    /// True if the status page is public.
    pub status_page: bool,
    /// Market shown on the public board; `None` disables the board.
    pub board: Option<World>,
    /// Maximum number of concurrent board watchers.
    pub board_watchers_max: usize,
    /// Maximum number of concurrent board watchers per source address.
    pub board_watchers_per_source_max: usize,
    /// True if the API reference is public.
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

/// State of the web pages.
#[derive(Debug)]
pub struct Web {
    pub api: Arc<Api>,
    pub people: People,
    pub settings: WebSettings,
    /// Slots for forms being received.
    pub(crate) forms: Arc<Slots>,
    /// The documentation, built at the first request for it.
    pub(crate) site: OnceLock<Site>,
    pub(crate) board: Arc<Board>,
    pub(crate) status: Record,
    /// Requests of the last hour.
    pub(crate) traffic: Traffic,
    pub(crate) started: Timestamp,
    /// Limits warnings about form origins.
    pub(crate) origin_warned: Seldom,
    /// Quota alerts whose owners could not be notified yet.
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

    /// Emails the owners of keys whose quota runs low, once per threshold and window. Failed emails are retried at the
    /// next call.
    pub async fn send_quota_alerts(&self) {
        let mut unsent = self.unsent.lock().await;
        unsent.extend(self.api.accounts.take_quota_alerts().await);
        *unsent = self.people.mail_alerts(std::mem::take(&mut *unsent)).await;
        unsent.truncate(UNSENT_MAX);
    }
    /// Writes the series of `/metrics`.
    pub fn render_metrics(&self, page: &mut MetricsText) {
        let name = "linesman_board_watchers";
        page.family(name, "gauge", "Browsers now watching a board.");
        page.line(format_args!("{name} {}", self.board.hub.watchers()));
        let name = "linesman_board_watchers_dropped_total";
        page.family(
            name,
            "counter",
            "Watchers disconnected because they did not keep up; browsers reconnect.",
        );
        page.line(format_args!("{name} {}", self.api.streams.slow_viewers()));
        let name = "linesman_board_watchers_refused_total";
        page.family(name, "counter", "Watchers refused because the limit was reached.");
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

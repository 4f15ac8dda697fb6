//! What an operator's Prometheus reads. Counters are plain atomics; everything else is looked up when asked.
//!
//! Names are `linesman_<subject>_<what>_<unit>`; every label has a bounded set of values: endpoints, codes,
//! worlds, sports and bookmakers of the catalogue, feeds the operator made.

mod node;

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use domain::World;

use crate::app::App;
use crate::error::ErrorCode;
use crate::ledger::Ledger;
use crate::pressure::Pressure;
use crate::reply::Reply;
use crate::unread::Unread;
use crate::v1::endpoint::Endpoint;
use crate::world::WorldHandle;

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 10] =
    [50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 500_000, 2_000_000];

/// Counters of requests, connections and pushes.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    endpoints: [EndpointCounts; Endpoint::ALL.len()],
    refusals: [AtomicU64; ErrorCode::ALL.len()],
    pub(crate) connections_open: AtomicI64,
    pub(crate) connections_total: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) connections_refused_source: AtomicU64,
    pub(crate) cut_slow_head: AtomicU64,
    pub(crate) cut_slow_reader: AtomicU64,
    /// What clients hold by not reading it.
    pub(crate) unread: Unread,
    pub(crate) panics: AtomicU64,
    pub(crate) ledger: Ledger,
}

#[derive(Debug, Default)]
struct EndpointCounts {
    ok: AtomicU64,
    not_modified: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
}

impl Metrics {
    pub(crate) fn note_answer(&self, endpoint: Endpoint, reply: &Reply, took: Duration) {
        let Some(counts) = self.endpoints.get(endpoint.index()) else { return };
        let counter = match reply.status {
            304 => &counts.not_modified,
            200..=299 => &counts.ok,
            500.. => &counts.failed,
            _ => &counts.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.micros.fetch_add(micros, Ordering::Relaxed);
        let bucket = BUCKETS_US.partition_point(|bound| *bound < micros);
        if let Some(bucket) = counts.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.note_refusal(reply);
    }

    pub(crate) fn note_refusal(&self, reply: &Reply) {
        let position = reply.code.and_then(|code| ErrorCode::ALL.iter().position(|c| *c == code));
        if let Some(counter) = position.and_then(|at| self.refusals.get(at)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One family of series in the text format.
pub(crate) struct Page(String);

impl Page {
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    pub(crate) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let written = writeln!(self.0, "{line}");
        debug_assert!(written.is_ok());
    }
}

/// The `/metrics` page.
pub(crate) fn render(app: &App) -> String {
    let mut page = Page(String::with_capacity(32 << 10));
    requests(&mut page, &app.metrics);
    connections(&mut page, &app.metrics);
    pressure(&mut page, &app.pressure);
    app.pushes.render(&mut page);
    app.metrics.ledger.render(&mut page);
    app.metrics.ledger.render_pace(&mut page);
    paused(&mut page, app);
    worlds(&mut page, app);
    feed_records(&mut page, app);
    node::render(&mut page, app);
    sources(&mut page, app);
    accounts(&mut page, app);
    boards(&mut page, app);
    page.0
}

fn requests(page: &mut Page, metrics: &Metrics) {
    page.family(
        "linesman_requests_total",
        "counter",
        "Requests under /v1 by endpoint and outcome.",
    );
    for (endpoint, counts) in Endpoint::ALL.iter().zip(&metrics.endpoints) {
        let name = endpoint.name();
        for (outcome, counter) in [
            ("ok", &counts.ok),
            ("not_modified", &counts.not_modified),
            ("refused", &counts.refused),
            ("failed", &counts.failed),
        ] {
            let count = counter.load(Ordering::Relaxed);
            page.line(format_args!(
                "linesman_requests_total{{endpoint=\"{name}\",outcome=\"{outcome}\"}} {count}"
            ));
        }
    }
    page.family("linesman_refusals_total", "counter", "Refused requests by error code and status.");
    for (code, counter) in ErrorCode::ALL.iter().zip(&metrics.refusals) {
        let (slug, status) = (code.slug(), code.status());
        let count = counter.load(Ordering::Relaxed);
        page.line(format_args!(
            "linesman_refusals_total{{code=\"{slug}\",status=\"{status}\"}} {count}"
        ));
    }
    let name = "linesman_request_duration_seconds";
    page.family(name, "histogram", "Time to answer a request under /v1, without sending it.");
    for (endpoint, counts) in Endpoint::ALL.iter().zip(&metrics.endpoints) {
        let endpoint = endpoint.name();
        let mut total = 0;
        for (bound, bucket) in BUCKETS_US.iter().map(Some).chain([None]).zip(&counts.buckets) {
            total += bucket.load(Ordering::Relaxed);
            let bound = bound.map_or("+Inf".to_owned(), |us| seconds(*us));
            page.line(format_args!(
                "{name}_bucket{{endpoint=\"{endpoint}\",le=\"{bound}\"}} {total}"
            ));
        }
        let sum = seconds(counts.micros.load(Ordering::Relaxed));
        page.line(format_args!("{name}_sum{{endpoint=\"{endpoint}\"}} {sum}"));
        page.line(format_args!("{name}_count{{endpoint=\"{endpoint}\"}} {total}"));
    }
}

fn pressure(page: &mut Page, pressure: &Pressure) {
    let lag = seconds(pressure.lag_us());
    page.family("linesman_lag_seconds", "gauge", "How late the service was at its last pulse.");
    page.line(format_args!("linesman_lag_seconds {lag}"));
    let name = "linesman_requests_shed_total";
    page.family(name, "counter", "Requests refused because the service was late.");
    page.line(format_args!("{name} {}", read(pressure.shed())));
}

fn connections(page: &mut Page, metrics: &Metrics) {
    let open = metrics.connections_open.load(Ordering::Relaxed);
    page.family("linesman_connections_open", "gauge", "Connections open now.");
    page.line(format_args!("linesman_connections_open {open}"));
    let name = "linesman_answers_unread_bytes";
    page.family(name, "gauge", "Bytes of answers that only a client which is slow to read holds.");
    page.line(format_args!("{name} {}", metrics.unread.bytes()));
    for (name, help, counter) in [
        ("linesman_connections_total", "Connections accepted.", &metrics.connections_total),
        (
            "linesman_connections_refused_total",
            "Connections refused because too many were open.",
            &metrics.connections_refused,
        ),
        (
            "linesman_connections_refused_source_total",
            "Connections refused because too many were open from their address.",
            &metrics.connections_refused_source,
        ),
        (
            "linesman_connections_cut_slow_head_total",
            "Connections cut because a request's head did not arrive in time.",
            &metrics.cut_slow_head,
        ),
        (
            "linesman_connections_cut_slow_reader_total",
            "Connections cut because an answer was not taken in time.",
            &metrics.cut_slow_reader,
        ),
        ("linesman_panics_total", "Requests that panicked; every one is a bug.", &metrics.panics),
    ] {
        page.family(name, "counter", help);
        page.line(format_args!("{name} {}", counter.load(Ordering::Relaxed)));
    }
}

type Reading = fn(&App, &WorldHandle) -> String;

/// Name, type, help and reading of every series that has one value for each world.
const WORLD_SERIES: [(&str, &str, &str, Reading); 25] = [
    ("linesman_snapshot_events", "gauge", "Events in the snapshot in force.", |_, w| {
        w.records().0.to_string()
    }),
    ("linesman_snapshot_records", "gauge", "Odds records in the snapshot in force.", |_, w| {
        w.records().1.to_string()
    }),
    (
        "linesman_market_records_weight",
        "gauge",
        "What the book holds, counted as market.records_max counts it.",
        |_, w| w.stats.load.load().records.to_string(),
    ),
    (
        "linesman_market_records_max",
        "gauge",
        "What the book may hold (market.records_max).",
        |_, w| w.limits.records_max.to_string(),
    ),
    (
        "linesman_snapshot_age_seconds",
        "gauge",
        "Time since the snapshot in force was cut.",
        |app, w| {
            let age = app.clock.now().since(w.published().snapshot.cut_at);
            seconds(u64::try_from(age.as_micros()).unwrap_or(u64::MAX))
        },
    ),
    (
        "linesman_snapshot_cut_seconds",
        "gauge",
        "How long the last snapshot took to make.",
        |_, w| seconds(w.stats.cut_us_last.load(Ordering::Relaxed)),
    ),
    ("linesman_snapshots_total", "counter", "Snapshots published.", |_, w| {
        read(&w.stats.snapshots)
    }),
    ("linesman_answers_kept_bytes", "gauge", "Ready answers kept for the epoch.", |_, w| {
        w.published().answers.kept_bytes().to_string()
    }),
    (
        "linesman_answers_shared_bytes",
        "gauge",
        "Events' shares of answers kept for the epoch.",
        |_, w| w.published().answers.fragments.kept_bytes().to_string(),
    ),
    (
        "linesman_answers_made_total",
        "counter",
        "Answers made; all others were kept ready.",
        |_, w| read(&w.stats.answers.made),
    ),
    (
        "linesman_answers_evicted_total",
        "counter",
        "Kept answers that went to make room before their epoch was over.",
        |_, w| read(&w.stats.answers.evicted),
    ),
    (
        "linesman_matching_joins_total",
        "counter",
        "Refs taken for an event that another feed lists.",
        |_, w| read(&w.stats.joins),
    ),
    (
        "linesman_matching_merged_ids",
        "gauge",
        "Ids of events that turned out to be another.",
        |_, w| read(&w.stats.merged_ids),
    ),
    (
        "linesman_matching_unsure_pairs",
        "gauge",
        "Pairs of events that may be one; `linesman events unsure` lists them.",
        |_, w| read(&w.stats.unsure_pairs),
    ),
    ("linesman_matching_aliases", "gauge", "Names learnt.", |_, w| read(&w.stats.aliases)),
    ("linesman_log_seq", "gauge", "Number of the newest log entry.", |_, w| read(&w.stats.log_seq)),
    ("linesman_log_bytes", "gauge", "Size of the log's segments.", |_, w| read(&w.stats.log_bytes)),
    ("linesman_log_entries_total", "counter", "Entries appended.", |_, w| {
        read(&w.stats.log_entries)
    }),
    ("linesman_log_appends_total", "counter", "Durable writes.", |_, w| read(&w.stats.appends)),
    ("linesman_log_append_seconds_total", "counter", "Time spent in durable writes.", |_, w| {
        seconds(w.stats.append_us.load(Ordering::Relaxed))
    }),
    (
        "linesman_log_failures_total",
        "counter",
        "Writes that failed; their batches were refused.",
        |_, w| read(&w.stats.log_failures),
    ),
    (
        "linesman_log_read_backs_total",
        "counter",
        "How often the book was read back because it held what could not be written.",
        |_, w| read(&w.stats.read_backs),
    ),
    (
        "linesman_disk_full",
        "gauge",
        "1 while the disk is full: the reserve is given up and pushes are refused.",
        |_, w| u8::from(w.is_disk_full()).to_string(),
    ),
    (
        "linesman_log_lost_entries",
        "gauge",
        "Log entries lost to damage, as far back as the log is kept; found at the start.",
        |_, w| read(&w.stats.log_lost),
    ),
    ("linesman_log_checkpoints_total", "counter", "Checkpoints written.", |_, w| {
        read(&w.stats.checkpoints)
    }),
];

fn worlds(page: &mut Page, app: &App) {
    for (name, kind, help, reading) in WORLD_SERIES {
        page.family(name, kind, help);
        for world in World::ALL {
            let value = reading(app, app.world(world));
            page.line(format_args!("{name}{{world=\"{world}\"}} {value}"));
        }
    }
}

fn feed_records(page: &mut Page, app: &App) {
    let live = app.world(World::Live);
    let name = "linesman_market_feed_records_weight";
    page.family(name, "gauge", "What a feed makes the book hold, counted likewise.");
    for (feed, records) in &live.stats.load.load().feeds {
        page.line(format_args!("{name}{{feed=\"{feed}\"}} {records}"));
    }
    let name = "linesman_market_feed_records_max";
    let help = "What one feed may make the book hold (market.records_per_feed_max).";
    page.family(name, "gauge", help);
    page.line(format_args!("{name} {}", live.limits.records_per_feed_max));
}

fn sources(page: &mut Page, app: &App) {
    let now = app.clock.now();
    for (name, help) in [
        ("linesman_source_age_seconds", "Time since a bookmaker's last good read in a sport."),
        ("linesman_source_stale", "1 when the source has had no good read for market.stale_after."),
        ("linesman_source_latency_seconds", "How late the last good read arrived."),
    ] {
        page.family(name, "gauge", help);
        for world in World::ALL {
            let handle = app.world(world);
            for (sport, bookmaker, source) in &handle.vitals().sources {
                let value = match name {
                    "linesman_source_stale" => {
                        u8::from(source.is_stale(now, handle.stale_after())).to_string()
                    }
                    "linesman_source_latency_seconds" => {
                        seconds(u64::from(source.latency_ms) * 1000)
                    }
                    _ => seconds(
                        u64::try_from(now.since(source.read_at).as_micros()).unwrap_or(u64::MAX),
                    ),
                };
                page.line(format_args!(
                    "{name}{{world=\"{world}\",sport=\"{}\",bookmaker=\"{}\"}} {value}",
                    app.catalogue.sport(*sport).key,
                    app.catalogue.bookmaker(*bookmaker).key,
                ));
            }
        }
    }
}

fn paused(page: &mut Page, app: &App) {
    let name = "linesman_feed_paused";
    page.family(name, "gauge", "1 while an operator has the feed's pushes refused.");
    for feed in app.accounts.feeds.list() {
        let paused = u8::from(feed.paused_at.is_some());
        page.line(format_args!("{name}{{feed=\"{}\"}} {paused}", feed.name));
    }
}

/// Only a node of several has to ask for the right to let keys in.
fn trust(page: &mut Page, app: &App) {
    let Some(figures) = app.accounts.trust() else { return };
    let name = "linesman_key_trust_seconds_left";
    let help = "How long keys are let in from now on if nobody vouches any more; 0 means they are refused with 503.";
    page.family(name, "gauge", help);
    page.line(format_args!("{name} {}", seconds(figures.left_ms.saturating_mul(1000))));
    let name = "linesman_key_change_number";
    page.family(name, "gauge", "The last change of keys that is in force on this node.");
    page.line(format_args!("{name} {}", figures.number));
    let name = "linesman_key_confirmations_total";
    page.family(name, "counter", "How often a witness vouched for this node's keys.");
    for (witness, count) in [("database", figures.by_store), ("nats", figures.by_herald)] {
        page.line(format_args!("{name}{{witness=\"{witness}\"}} {count}"));
    }
    let name = "linesman_key_changes_unconfirmed_total";
    let help = "Changes of keys made here that not every node confirmed; each was told to whoever made it.";
    page.family(name, "counter", help);
    page.line(format_args!("{name} {}", figures.unconfirmed));
}

fn accounts(page: &mut Page, app: &App) {
    let keys = app.accounts.keys.len();
    page.family("linesman_keys", "gauge", "API keys that are let in.");
    page.line(format_args!("linesman_keys {keys}"));
    let leases = app.accounts.leases();
    page.family("linesman_quota_leases_total", "counter", "Slices of limits taken from the store.");
    page.line(format_args!("linesman_quota_leases_total {}", leases.granted));
    page.family("linesman_quota_lease_failures_total", "counter", "Leases the store did not give.");
    page.line(format_args!("linesman_quota_lease_failures_total {}", leases.failed));
    trust(page, app);
    let mail = app.people.mail_figures();
    page.family("linesman_mail_queued", "gauge", "Letters that wait for the mail server.");
    page.line(format_args!("linesman_mail_queued {}", mail.queued));
    page.family("linesman_mail_letters_total", "counter", "Letters by what became of them.");
    for (outcome, count) in
        [("sent", mail.sent), ("failed", mail.failed), ("dropped", mail.dropped)]
    {
        page.line(format_args!("linesman_mail_letters_total{{outcome=\"{outcome}\"}} {count}"));
    }
    let closed = u8::from(app.accounts.maintenance() != accounts::Maintenance::Off);
    page.family("linesman_maintenance", "gauge", "1 while the service is closed for maintenance.");
    page.line(format_args!("linesman_maintenance {closed}"));
}

fn boards(page: &mut Page, app: &App) {
    let name = "linesman_board_watchers";
    page.family(name, "gauge", "Browsers that watch a board now.");
    page.line(format_args!("{name} {}", app.board.gallery.watchers()));
    let [dropped, refused] = app.board.gallery.losses();
    let name = "linesman_board_watchers_dropped_total";
    page.family(name, "counter", "Watchers let go because they did not keep up; they come back.");
    page.line(format_args!("{name} {}", read(dropped)));
    let name = "linesman_board_watchers_refused_total";
    page.family(name, "counter", "Watchers turned away because too many watched.");
    page.line(format_args!("{name} {}", read(refused)));
    let name = "linesman_board_paths";
    page.family(name, "gauge", "Outcomes at bookmakers whose price changes are kept in memory.");
    page.line(format_args!("{name} {}", app.board.paths()));
}

fn read(counter: &AtomicU64) -> String {
    counter.load(Ordering::Relaxed).to_string()
}

/// Microseconds as decimal seconds, exactly.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

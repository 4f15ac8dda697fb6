//! The metrics for Prometheus. Counters are plain atomics; all other values are read at the time of the request.
//!
//! Names are `linesman_<subject>_<what>_<unit>`; every label has a bounded set of values: endpoints, codes, worlds,
//! sports and bookmakers of the catalogue, feeds that the operator created.

mod node;

use std::sync::atomic::{AtomicU64, Ordering};

use api::Api;
use api::metrics::seconds;
use domain::{MetricsText, World};
use engine::WorldHandle;
use http::{Counters, LoadShedding};

use crate::service::Service;

/// The `/metrics` page.
pub(crate) fn render(service: &Service) -> String {
    let mut page = MetricsText::default();
    let api = &*service.api;
    api::metrics::render(&mut page, &api.metrics);
    connections(&mut page, &api.server.counters, &api.metrics.panics);
    load(&mut page, &api.server.load);
    service.agents.render(&mut page);
    api.streams.render(&mut page);
    api.pushes.render(&mut page);
    api.feed_stats.render(&mut page);
    api.feed_stats.render_latency(&mut page);
    if let Some(adapters) = api.adapters.get() {
        adapters.render(&mut page);
    }
    paused(&mut page, api);
    worlds(&mut page, api);
    feed_records(&mut page, api);
    node::render(&mut page, api);
    sources(&mut page, api);
    accounts(&mut page, service);
    service.web.render_metrics(&mut page);
    page.finish()
}

fn load(page: &mut MetricsText, load: &LoadShedding) {
    let lag = seconds(load.lag_us());
    page.family("linesman_lag_seconds", "gauge", "Delay of the last pulse, which measures load.");
    page.line(format_args!("linesman_lag_seconds {lag}"));
    let name = "linesman_requests_shed_total";
    page.family(name, "counter", "Requests refused because of overload.");
    page.line(format_args!("{name} {}", read(load.shed())));
}

fn connections(page: &mut MetricsText, counters: &Counters, panics: &AtomicU64) {
    let open = counters.open.load(Ordering::Relaxed);
    page.family("linesman_connections_open", "gauge", "Connections open now.");
    page.line(format_args!("linesman_connections_open {open}"));
    let name = "linesman_answers_unread_bytes";
    page.family(name, "gauge", "Bytes of answers kept only for clients that are slow to read.");
    page.line(format_args!("{name} {}", counters.unread_bytes()));
    for (name, help, counter) in [
        ("linesman_connections_total", "Connections accepted.", &counters.total),
        (
            "linesman_connections_refused_total",
            "Connections refused because too many were open.",
            &counters.refused,
        ),
        (
            "linesman_connections_refused_source_total",
            "Connections refused because too many were open from their address.",
            &counters.refused_source,
        ),
        (
            "linesman_connections_cut_slow_head_total",
            "Connections cut because a request's head did not arrive in time.",
            &counters.cut_slow_head,
        ),
        (
            "linesman_connections_cut_slow_reader_total",
            "Connections cut because an answer was not read in time.",
            &counters.cut_slow_reader,
        ),
        ("linesman_panics_total", "Requests that panicked; every one is a bug.", panics),
    ] {
        page.family(name, "counter", help);
        page.line(format_args!("{name} {}", counter.load(Ordering::Relaxed)));
    }
}

/// Bytes of kept answers and of fragments, answers computed, answers evicted.
fn answer_figure(api: &Api, world: &WorldHandle, which: usize) -> String {
    api.answer_figures(world.world).get(which).map(u64::to_string).unwrap_or_default()
}

type Reading = fn(&Api, &WorldHandle) -> String;

/// Name, type, help and reading of every series that has one value for each world.
const WORLD_SERIES: [(&str, &str, &str, Reading); 40] = [
    ("linesman_snapshot_events", "gauge", "Events in the current snapshot.", |_, w| {
        w.records().0.to_string()
    }),
    ("linesman_snapshot_records", "gauge", "Odds records in the current snapshot.", |_, w| {
        w.records().1.to_string()
    }),
    (
        "linesman_market_records_weight",
        "gauge",
        "Records in the book, counted as for market.records_max.",
        |_, w| w.stats.load.load().records.to_string(),
    ),
    (
        "linesman_market_records_max",
        "gauge",
        "Maximum of records in the book (market.records_max).",
        |_, w| w.limits.records_max.to_string(),
    ),
    (
        "linesman_snapshot_age_seconds",
        "gauge",
        "Time since the current snapshot was cut.",
        |api, w| {
            let age = api.clock.now().since(w.published().snapshot.cut_at);
            seconds(u64::try_from(age.as_micros()).unwrap_or(u64::MAX))
        },
    ),
    (
        "linesman_snapshot_cut_seconds",
        "gauge",
        "Time that cutting the last snapshot took.",
        |_, w| seconds(w.stats.cut_us_last.load(Ordering::Relaxed)),
    ),
    ("linesman_snapshots_total", "counter", "Snapshots published.", |_, w| {
        read(&w.stats.snapshots)
    }),
    ("linesman_answers_kept_bytes", "gauge", "Ready answers kept for the epoch.", |api, w| {
        answer_figure(api, w, 0)
    }),
    (
        "linesman_answers_shared_bytes",
        "gauge",
        "Fragments of answers, by event, kept for the epoch.",
        |api, w| answer_figure(api, w, 1),
    ),
    (
        "linesman_answers_made_total",
        "counter",
        "Answers computed; all others were kept ready.",
        |api, w| answer_figure(api, w, 2),
    ),
    (
        "linesman_answers_evicted_total",
        "counter",
        "Kept answers that were evicted before the end of their epoch.",
        |api, w| answer_figure(api, w, 3),
    ),
    (
        "linesman_matching_joins_total",
        "counter",
        "Refs matched with an event that another feed lists.",
        |_, w| read(&w.stats.joins),
    ),
    (
        "linesman_matching_merged_ids",
        "gauge",
        "Ids of events that were merged into others.",
        |_, w| read(&w.stats.merged_ids),
    ),
    (
        "linesman_matching_unsure_pairs",
        "gauge",
        "Pairs of events that may be the same; `linesman events unsure` lists them.",
        |_, w| read(&w.stats.unsure_pairs),
    ),
    ("linesman_matching_aliases", "gauge", "Names that were learned.", |_, w| {
        read(&w.stats.aliases)
    }),
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
        "Number of times that the book was read back because it had changes that could not be written.",
        |_, w| read(&w.stats.read_backs),
    ),
    (
        "linesman_disk_full",
        "gauge",
        "1 while the disk is full: the reserve is deleted and pushes are refused.",
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
    (
        "linesman_history_rebuilds_total",
        "counter",
        "Past publications that were rebuilt.",
        |_, w| read(&w.history.stats.rebuilds),
    ),
    (
        "linesman_history_rebuild_failures_total",
        "counter",
        "Past publications that could not be rebuilt.",
        |_, w| read(&w.history.stats.rebuild_failures),
    ),
    (
        "linesman_history_rebuild_seconds",
        "counter",
        "Time spent on rebuilding past publications.",
        |_, w| seconds(w.history.stats.rebuild_us.load(Ordering::Relaxed)),
    ),
    (
        "linesman_history_rebuilds_waiting",
        "gauge",
        "Requests that wait for a past publication to be rebuilt.",
        |_, w| read(&w.history.stats.waiting),
    ),
    (
        "linesman_history_memory_bytes",
        "gauge",
        "Estimated memory of what is kept of the past (history.memory_mb).",
        |_, w| w.history.memory_bytes().to_string(),
    ),
    (
        "linesman_history_lag_seconds",
        "gauge",
        "Age of the oldest publication that is not in the archive; 0 if there is none, or if another node writes it.",
        |api, w| {
            let lag = w.archive_lag(api.clock.now());
            seconds(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX))
        },
    ),
    ("linesman_history_commits_total", "counter", "Parts added to the archive.", |_, w| {
        read(&w.history.stats.commits)
    }),
    (
        "linesman_history_commit_failures_total",
        "counter",
        "Failed attempts to add to the archive; the log keeps its entries until one succeeds.",
        |_, w| read(&w.history.stats.commit_failures),
    ),
    (
        "linesman_history_compaction_failures_total",
        "counter",
        "Failed attempts to merge files of the archive, or to remove those past history.retention.",
        |_, w| read(&w.history.stats.compaction_failures),
    ),
    (
        "linesman_history_panics_total",
        "counter",
        "Panics of the task that writes the archive; each one is a bug.",
        |_, w| read(&w.history.stats.archive_panics),
    ),
    ("linesman_history_bytes", "gauge", "Size of the archive's files.", |_, w| {
        read(&w.history.stats.archive_bytes)
    }),
    ("linesman_history_files", "gauge", "Files in the archive.", |_, w| {
        read(&w.history.stats.archive_files)
    }),
    (
        "linesman_history_compactions_total",
        "counter",
        "Commits of the archive that merged files or removed data older than history.retention.",
        |_, w| read(&w.history.stats.compactions),
    ),
    (
        "linesman_history_export_bytes_total",
        "counter",
        "Bytes of the archive's files that were sent to clients.",
        |_, w| read(&w.history.stats.export_bytes),
    ),
    (
        "linesman_history_export_failures_total",
        "counter",
        "Files of the archive whose transfer was cut off.",
        |_, w| read(&w.history.stats.export_failures),
    ),
];

fn worlds(page: &mut MetricsText, api: &Api) {
    for (name, kind, help, reading) in WORLD_SERIES {
        page.family(name, kind, help);
        for world in World::ALL {
            let value = reading(api, api.world(world));
            page.line(format_args!("{name}{{world=\"{world}\"}} {value}"));
        }
    }
}

fn feed_records(page: &mut MetricsText, api: &Api) {
    let live = api.world(World::Live);
    let name = "linesman_market_feed_records_weight";
    page.family(name, "gauge", "Records of a feed in the book, counted likewise.");
    for (feed, records) in &live.stats.load.load().feeds {
        page.line(format_args!("{name}{{feed=\"{feed}\"}} {records}"));
    }
    let name = "linesman_market_feed_records_max";
    let help = "Maximum of records of one feed in the book (market.records_per_feed_max).";
    page.family(name, "gauge", help);
    page.line(format_args!("{name} {}", live.limits.records_per_feed_max));
}

fn sources(page: &mut MetricsText, api: &Api) {
    let now = api.clock.now();
    for (name, help) in [
        ("linesman_source_age_seconds", "Time since a bookmaker's last good read in a sport."),
        ("linesman_source_stale", "1 when the source has had no good read for market.stale_after."),
        ("linesman_source_latency_seconds", "Delay between the last good read and its arrival."),
    ] {
        page.family(name, "gauge", help);
        for world in World::ALL {
            let handle = api.world(world);
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
                    api.catalogue.sport(*sport).key,
                    api.catalogue.bookmaker(*bookmaker).key,
                ));
            }
        }
    }
}

fn paused(page: &mut MetricsText, api: &Api) {
    let name = "linesman_feed_paused";
    page.family(name, "gauge", "1 while the feed is paused by an operator.");
    for feed in api.accounts.feeds.list() {
        let paused = u8::from(feed.paused_at.is_some());
        page.line(format_args!("{name}{{feed=\"{}\"}} {paused}", feed.name));
    }
}

/// Only a node of a cluster needs a lease to accept keys.
fn key_lease(page: &mut MetricsText, api: &Api) {
    let Some(figures) = api.accounts.key_lease() else { return };
    let name = "linesman_key_trust_seconds_left";
    let help = "How long keys are accepted if neither the database nor NATS confirms them; 0: they are refused with 503.";
    page.family(name, "gauge", help);
    page.line(format_args!("{name} {}", seconds(figures.left_ms.saturating_mul(1000))));
    let name = "linesman_key_change_number";
    page.family(name, "gauge", "The last change of keys that is effective on this node.");
    page.line(format_args!("{name} {}", figures.number));
    let name = "linesman_key_confirmations_total";
    page.family(name, "counter", "How often the database or NATS confirmed the keys of this node.");
    for (witness, count) in [("database", figures.by_store), ("nats", figures.by_register)] {
        page.line(format_args!("{name}{{witness=\"{witness}\"}} {count}"));
    }
    let name = "linesman_key_changes_unconfirmed_total";
    let help =
        "Changes of keys made here that not every node confirmed; each was reported to its author.";
    page.family(name, "counter", help);
    page.line(format_args!("{name} {}", figures.unconfirmed));
}

/// Only a node of a cluster has its streams counted by the database.
fn stream_slots(page: &mut MetricsText, api: &Api) {
    let Some(figures) = api.accounts.streams.stats() else { return };
    let name = "linesman_stream_slots_seconds_left";
    let help = "How long streams stay open if the database stops answering; 0: none is opened.";
    page.family(name, "gauge", help);
    page.line(format_args!("{name} {}", seconds(figures.left_ms.saturating_mul(1000))));
    let name = "linesman_stream_slots_failed_total";
    page.family(name, "counter", "Failed writes of this node's streams to the database.");
    page.line(format_args!("{name} {}", figures.failed));
    let name = "linesman_stream_slots_lost_total";
    let help = "How often all streams of this node ended because they could not be counted.";
    page.family(name, "counter", help);
    page.line(format_args!("{name} {}", figures.lost));
}

fn accounts(page: &mut MetricsText, service: &Service) {
    let api = &*service.api;
    let keys = api.accounts.keys.len();
    page.family("linesman_keys", "gauge", "API keys that are accepted.");
    page.line(format_args!("linesman_keys {keys}"));
    let leases = api.accounts.leases();
    page.family("linesman_quota_leases_total", "counter", "Leases of quota taken from the store.");
    page.line(format_args!("linesman_quota_leases_total {}", leases.granted));
    page.family(
        "linesman_quota_lease_failures_total",
        "counter",
        "Leases that the store did not grant.",
    );
    page.line(format_args!("linesman_quota_lease_failures_total {}", leases.failed));
    key_lease(page, api);
    stream_slots(page, api);
    let mail = service.web.people.mail_stats();
    page.family("linesman_mail_queued", "gauge", "Emails that wait for the mail server.");
    page.line(format_args!("linesman_mail_queued {}", mail.queued));
    page.family("linesman_mail_letters_total", "counter", "Emails by outcome.");
    for (outcome, count) in
        [("sent", mail.sent), ("failed", mail.failed), ("dropped", mail.dropped)]
    {
        page.line(format_args!("linesman_mail_letters_total{{outcome=\"{outcome}\"}} {count}"));
    }
    let closed = u8::from(api.accounts.maintenance() != accounts::Maintenance::Off);
    page.family("linesman_maintenance", "gauge", "1 while the service is closed for maintenance.");
    page.line(format_args!("linesman_maintenance {closed}"));
}

fn read(counter: &AtomicU64) -> String {
    counter.load(Ordering::Relaxed).to_string()
}

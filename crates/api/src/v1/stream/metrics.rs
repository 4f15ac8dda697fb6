//! How streams begin, go and end, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::MetricsText;

use super::Streams;
use crate::metrics::seconds;
use crate::v1::wire::stream::EndCode;

/// Mode and transport: there is one of each.
const LABELS: &str = "mode=\"publication\",transport=\"sse\"";

/// How a stream ends that its client closes.
const CLOSED: &str = "closed";

#[derive(Debug, Default)]
pub struct StreamMetrics {
    pub(super) opened: AtomicU64,
    /// By the code that was sent.
    ended: [AtomicU64; EndCode::ALL.len()],
    closed: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) conflated: AtomicU64,
    pub(super) resets: AtomicU64,
    lag_us: AtomicU64,
    lags: AtomicU64,
}

impl StreamMetrics {
    /// Notes an end, by its code or by the client.
    pub(super) fn note_end(&self, code: Option<EndCode>) {
        let codes = EndCode::ALL.iter().zip(&self.ended);
        let own = codes.filter(|(own, _)| Some(**own) == code).map(|(_, counter)| counter);
        own.last().unwrap_or(&self.closed).fetch_add(1, Ordering::Relaxed);
    }

    /// Notes how long after a publication its last event was handed over.
    pub(super) fn note_lag(&self, lag: Duration) {
        let micros = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        self.lag_us.fetch_add(micros, Ordering::Relaxed);
        self.lags.fetch_add(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// Writes the series of `/metrics`.
    pub fn render(&self, page: &mut MetricsText) {
        let metrics = &self.metrics;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let name = "linesman_stream_open";
        page.family(name, "gauge", "Streams open now.");
        page.line(format_args!("{name}{{{LABELS}}} {}", self.open()));
        for (name, help, counter) in [
            ("linesman_stream_opened_total", "Streams begun.", &metrics.opened),
            ("linesman_stream_events_total", "Events handed over to clients.", &metrics.events),
            ("linesman_stream_bytes_total", "Bytes of events handed over.", &metrics.bytes),
            (
                "linesman_stream_conflated_total",
                "Changes of several publications sent as one, to clients that were behind.",
                &metrics.conflated,
            ),
            (
                "linesman_stream_resets_total",
                "Clients that had to begin anew: their cursor could not be used.",
                &metrics.resets,
            ),
        ] {
            page.family(name, "counter", help);
            page.line(format_args!("{name}{{{LABELS}}} {}", read(counter)));
        }
        let name = "linesman_stream_ended_total";
        page.family(
            name,
            "counter",
            "Streams ended, by the code that was sent; `slow`: the client did not read; `closed`: by the client.",
        );
        let codes = EndCode::ALL.map(EndCode::key).into_iter().zip(&metrics.ended);
        for (code, counter) in codes.chain([(CLOSED, &metrics.closed)]) {
            page.line(format_args!("{name}{{{LABELS},code=\"{code}\"}} {}", read(counter)));
        }
        let name = "linesman_stream_lag_seconds";
        page.family(
            name,
            "summary",
            "From a publication to its last event handed over to a client.",
        );
        page.line(format_args!("{name}_sum{{{LABELS}}} {}", seconds(read(&metrics.lag_us))));
        page.line(format_args!("{name}_count{{{LABELS}}} {}", read(&metrics.lags)));
    }
}

//! Metrics of streams, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::MetricsText;

use super::Streams;
use super::selection::{Followed, Selection};
use super::unread::Chunk;
use crate::metrics::seconds;
use crate::v1::wire::stream::{EndCode, Mode, Transport};

/// A series of each kind of stream: name, type, help, and counter.
type Family = (&'static str, &'static str, &'static str, fn(&StreamMetrics) -> &AtomicU64);

const FAMILIES: [Family; 6] = [
    ("linesman_stream_open", "gauge", "Streams open now.", |metrics| &metrics.open),
    ("linesman_stream_opened_total", "counter", "Streams begun.", |metrics| &metrics.opened),
    ("linesman_stream_events_total", "counter", "Events handed over to clients.", |metrics| {
        &metrics.events
    }),
    ("linesman_stream_bytes_total", "counter", "Bytes of events handed over.", |metrics| {
        &metrics.bytes
    }),
    (
        "linesman_stream_conflated_total",
        "counter",
        "Changes of several publications, or of several batches in `live`, sent as one, to clients that were behind.",
        |metrics| &metrics.conflated,
    ),
    (
        "linesman_stream_resets_total",
        "counter",
        "Clients that had to start again: their cursor could not be used.",
        |metrics| &metrics.resets,
    ),
];

/// Label of a stream that its client closed.
const CLOSED: &str = "closed";

/// Counters of the streams of one mode and transport.
#[derive(Debug, Default)]
pub(super) struct StreamMetrics {
    open: AtomicU64,
    opened: AtomicU64,
    /// By end code.
    ended: [AtomicU64; EndCode::ALL.len()],
    closed: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) conflated: AtomicU64,
    pub(super) resets: AtomicU64,
    lag_us: AtomicU64,
    lags: AtomicU64,
}

/// Counters of all streams: by mode, then by transport.
#[derive(Debug, Default)]
pub(super) struct Metrics([[StreamMetrics; 2]; 2]);

impl StreamMetrics {
    /// Counts a new stream, and returns the number of streams before it.
    pub(super) fn note_begin(&self) -> u64 {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.opened.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts an end, by its code or as closed by the client.
    pub(super) fn note_end(&self, code: Option<EndCode>) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        let codes = EndCode::ALL.iter().zip(&self.ended);
        let own = codes.filter(|(own, _)| Some(**own) == code).map(|(_, counter)| counter);
        own.last().unwrap_or(&self.closed).fetch_add(1, Ordering::Relaxed);
    }

    /// Number of streams that ended with a code.
    pub(super) fn ended(&self, code: EndCode) -> u64 {
        let codes = EndCode::ALL.iter().zip(&self.ended);
        codes.filter(|(own, _)| **own == code).map(|(_, own)| own.load(Ordering::Relaxed)).sum()
    }

    /// Counts events written to several clients, with their delay after the publication.
    pub(super) fn note_written(
        &self,
        clients: usize,
        chunk: &Chunk,
        conflated: bool,
        lag: Duration,
    ) {
        let clients = u64::try_from(clients).unwrap_or(u64::MAX);
        let bytes = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
        self.events.fetch_add(clients * u64::from(chunk.events), Ordering::Relaxed);
        self.bytes.fetch_add(clients.saturating_mul(bytes), Ordering::Relaxed);
        self.conflated.fetch_add(clients * u64::from(conflated), Ordering::Relaxed);
        let micros = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        self.lag_us.fetch_add(micros.saturating_mul(clients), Ordering::Relaxed);
        self.lags.fetch_add(clients, Ordering::Relaxed);
    }

    /// Records the delay between a publication and the sending of its last event.
    pub(super) fn note_lag(&self, lag: Duration) {
        let micros = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        self.lag_us.fetch_add(micros, Ordering::Relaxed);
        self.lags.fetch_add(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// The counters of the streams of a selection.
    pub(super) fn metrics(&self, selection: &Selection) -> &StreamMetrics {
        match selection.followed {
            Followed::Lists(..) => self.metrics_of(selection.mode, selection.transport),
            Followed::Screen(_) => &self.screen_metrics,
        }
    }

    fn metrics_of(&self, mode: Mode, transport: Transport) -> &StreamMetrics {
        let Metrics([publication, live]) = &self.metrics;
        let [sse, websocket] = match mode {
            Mode::Publication => publication,
            Mode::Live => live,
        };
        match transport {
            Transport::ServerSentEvents => sse,
            Transport::WebSocket => websocket,
        }
    }

    /// Writes the series of `/metrics`.
    pub fn render(&self, page: &mut MetricsText) {
        let all = Mode::ALL.map(|mode| {
            Transport::ALL.map(|transport| {
                let (way, mode_key) = (transport.key(), mode.key());
                let labels = format!("mode=\"{mode_key}\",transport=\"{way}\"");
                (labels, self.metrics_of(mode, transport))
            })
        });
        let all = all.as_flattened();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, kind, help, counter) in FAMILIES {
            page.family(name, kind, help);
            for (labels, metrics) in all {
                page.line(format_args!("{name}{{{labels}}} {}", read(counter(metrics))));
            }
        }
        let name = "linesman_stream_ended_total";
        page.family(
            name,
            "counter",
            "Streams ended, by the code that was sent; `slow`: the client did not read; `closed`: by the client.",
        );
        for (labels, metrics) in all {
            let codes = EndCode::ALL.map(EndCode::key).into_iter().zip(&metrics.ended);
            for (code, counter) in codes.chain([(CLOSED, &metrics.closed)]) {
                page.line(format_args!("{name}{{{labels},code=\"{code}\"}} {}", read(counter)));
            }
        }
        let name = "linesman_stream_lag_seconds";
        page.family(
            name,
            "summary",
            "From a publication, or from when a change was stored in `live`, to the last event handed over to a client.",
        );
        for (labels, metrics) in all {
            page.line(format_args!("{name}_sum{{{labels}}} {}", seconds(read(&metrics.lag_us))));
            page.line(format_args!("{name}_count{{{labels}}} {}", read(&metrics.lags)));
        }
    }
}

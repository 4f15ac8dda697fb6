//! Request metrics: number, outcome and latency of each operation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::MetricsText;
use http::Reply;

use crate::error::ErrorCode;
use crate::operation::Operation;
use crate::v4::error::Code;

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 10] =
    [50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 500_000, 2_000_000];

/// Counters of requests, connections and pushes.
#[derive(Debug, Default)]
pub struct Metrics {
    operations: [OperationCounts; Operation::COUNT],
    refusals: [AtomicU64; ErrorCode::ALL.len()],
    v4_refusals: V4Refusals,
    pub panics: AtomicU64,
}

/// Requests by outcome: 2xx and 304, 4xx, 5xx.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub answered: u64,
    pub refused: u64,
    pub failed: u64,
}

impl Totals {
    pub fn all(self) -> u64 {
        self.answered + self.refused + self.failed
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            refused: self.refused + other.refused,
            failed: self.failed + other.failed,
        }
    }

    /// The difference to an earlier reading.
    #[must_use]
    pub fn minus(self, earlier: Self) -> Self {
        Self {
            answered: self.answered.saturating_sub(earlier.answered),
            refused: self.refused.saturating_sub(earlier.refused),
            failed: self.failed.saturating_sub(earlier.failed),
        }
    }
}

#[derive(Debug)]
struct V4Refusals([AtomicU64; Code::ALL.len()]);

impl Default for V4Refusals {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

#[derive(Debug, Default)]
struct OperationCounts {
    ok: AtomicU64,
    not_modified: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
}

impl Metrics {
    pub fn note_answer(&self, operation: Operation, reply: &Reply, took: Duration) {
        let Some(counts) = self.operations.get(operation.index()) else { return };
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

    /// All requests by outcome since the start.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.operations.iter().fold(Totals::default(), |sum, counts| {
            sum.plus(Totals {
                answered: read(&counts.ok) + read(&counts.not_modified),
                refused: read(&counts.refused),
                failed: read(&counts.failed),
            })
        })
    }

    pub fn note_refusal(&self, reply: &Reply) {
        if reply.code.is_none() {
            return;
        }
        let code = reply.code.and_then(|code| ErrorCode::find(code, reply.status));
        let position = code.and_then(|code| ErrorCode::ALL.iter().position(|own| *own == code));
        let is_v4 = |own: &Code| Some(own.slug()) == reply.code && own.status() == reply.status;
        let counter = match position {
            Some(at) => self.refusals.get(at),
            None => Code::ALL.iter().position(is_v4).and_then(|at| self.v4_refusals.0.get(at)),
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes the series of `/metrics`.
pub fn render(page: &mut MetricsText, metrics: &Metrics) {
    page.family(
        "linesman_requests_total",
        "counter",
        "Requests under /v1 and /v4 by endpoint and outcome.",
    );
    for (operation, counts) in Operation::all().zip(&metrics.operations) {
        let name = operation.name();
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
    let codes = ErrorCode::ALL.map(|code| (code.slug(), code.status())).into_iter();
    let codes = codes.zip(&metrics.refusals);
    let of_v4 = Code::ALL.map(|code| (code.slug(), code.status())).into_iter();
    for ((slug, status), counter) in codes.chain(of_v4.zip(&metrics.v4_refusals.0)) {
        let count = counter.load(Ordering::Relaxed);
        page.line(format_args!(
            "linesman_refusals_total{{code=\"{slug}\",status=\"{status}\"}} {count}"
        ));
    }
    let name = "linesman_request_duration_seconds";
    page.family(
        name,
        "histogram",
        "Time to answer a request under /v1 and /v4, without sending it.",
    );
    for (operation, counts) in Operation::all().zip(&metrics.operations) {
        let operation = operation.name();
        let mut total = 0;
        for (bound, bucket) in BUCKETS_US.iter().map(Some).chain([None]).zip(&counts.buckets) {
            total += bucket.load(Ordering::Relaxed);
            let bound = bound.map_or("+Inf".to_owned(), |us| seconds(*us));
            page.line(format_args!(
                "{name}_bucket{{endpoint=\"{operation}\",le=\"{bound}\"}} {total}"
            ));
        }
        let sum = seconds(counts.micros.load(Ordering::Relaxed));
        page.line(format_args!("{name}_sum{{endpoint=\"{operation}\"}} {sum}"));
        page.line(format_args!("{name}_count{{endpoint=\"{operation}\"}} {total}"));
    }
}

/// Microseconds as seconds.
pub fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

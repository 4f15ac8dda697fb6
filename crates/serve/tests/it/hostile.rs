//! Attacks of a hostile feed, disk or client, which must not affect the others.

mod accounts;
pub(crate) mod failing_log;
mod feeds;
mod http2;
mod malformed;
mod overload;
mod push_memory;
mod sharing;
mod sources;
mod stop;
mod unread;

use std::time::{Duration, Instant};

use crate::harness::TestApp;

/// The value of a series in the metrics.
async fn metric(app: &TestApp, series: &str) -> u64 {
    let page = app.get_operator("/metrics").await;
    let line = page.text().lines().find(|line| line.starts_with(&format!("{series} ")));
    let line = line.unwrap_or_else(|| panic!("no {series}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Maximum time of any condition before a test fails: megabytes without optimisation, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until the value of a series satisfies a condition.
async fn wait_for_metric(app: &TestApp, series: &str, is_so: impl Fn(u64) -> bool) {
    let begun = Instant::now();
    while !is_so(metric(app, series).await) {
        assert!(begun.elapsed() < PATIENCE, "{series} did not come there");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

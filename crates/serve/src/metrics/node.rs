//! Metrics of a node of a cluster whose nodes share a log; none for a single process.

use std::sync::atomic::Ordering;

use api::Api;
use api::metrics::seconds;
use domain::{MetricsText, World};

use crate::metrics::read;
use engine::{Shared, WorldHandle};

type Reading = fn(&Api, &WorldHandle, &Shared) -> String;

/// Name, type, help and reading of every series of a world that is shared.
const SERIES: [(&str, &str, &str, Reading); 9] = [
    (
        "linesman_follower_lag_seconds",
        "gauge",
        "Time by which the next snapshot is overdue.",
        |api, w, _| {
            let lag = w.lag(api.clock.now());
            seconds(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX))
        },
    ),
    (
        "linesman_follower_lag_entries",
        "gauge",
        "Entries of the log that were unread at this node's last check.",
        |_, _, shared| read(&shared.lag_entries),
    ),
    (
        "linesman_follower_stuck",
        "gauge",
        "1 if the log cannot be read: it is damaged, or a newer program wrote it.",
        |_, _, shared| u8::from(shared.stuck.load(Ordering::Relaxed)).to_string(),
    ),
    (
        "linesman_follower_connects_total",
        "counter",
        "Number of times this node began to follow the log.",
        |_, _, shared| read(&shared.connects),
    ),
    (
        "linesman_follower_catch_up_seconds",
        "gauge",
        "Time of the last initial read of checkpoint and log.",
        |_, _, shared| seconds(shared.catch_up_us.load(Ordering::Relaxed)),
    ),
    ("linesman_leader", "gauge", "1 while this node writes the log.", |_, w, _| {
        u8::from(w.leads()).to_string()
    }),
    (
        "linesman_leader_term",
        "gauge",
        "The term of this node's leadership, incremented with every change of the leader; 0 if it does not lead.",
        |_, _, shared| shared.term.load(Ordering::Relaxed).to_string(),
    ),
    (
        "linesman_forwards_total",
        "counter",
        "Parts of pushes that were forwarded to the leader and confirmed.",
        |_, _, shared| read(&shared.forwarded),
    ),
    (
        "linesman_forward_failures_total",
        "counter",
        "Parts of pushes that the leader did not confirm; they were refused.",
        |_, _, shared| read(&shared.forward_failures),
    ),
];

pub(super) fn render(page: &mut MetricsText, api: &Api) {
    let shared = World::ALL.into_iter().filter_map(|world| {
        let handle = api.world(world);
        Some((world, handle, handle.shared.as_ref()?))
    });
    let shared: Vec<_> = shared.collect();
    if shared.is_empty() {
        return;
    }
    for (name, kind, help, reading) in SERIES {
        page.family(name, kind, help);
        for (world, handle, shared) in &shared {
            let value = reading(api, handle, shared);
            page.line(format_args!("{name}{{world=\"{world}\"}} {value}"));
        }
    }
}

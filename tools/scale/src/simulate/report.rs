//! The report of a run.

use super::{Plan, clock::SECOND_US, record::Record};

/// The results as a table.
pub(super) fn text(plan: &Plan, record: &Record) -> String {
    let seconds = u64::from(plan.seconds.max(1));
    let load = &record.load;
    let took_us = record.revocations_us();
    let at = |part: usize| took_us.get(took_us.len().saturating_sub(1) * part / 100).copied();
    let milliseconds =
        |us: Option<i64>| us.map_or("none".to_owned(), |us| format!("{} ms", us / 1000));
    let faults = record.faults;
    let busiest = load.by_second.iter().max().copied().unwrap_or_default();
    let rows = [
        (
            "nodes, keys, seconds",
            format!("{}, {}, {}", plan.nodes, shell::thousands(plan.keys), plan.seconds),
        ),
        ("requests a second", shell::thousands(record.requests / seconds)),
        ("accepted and counted", shell::thousands(record.granted)),
        ("refused at a limit", shell::thousands(record.refused)),
        ("refused: no lease in time", shell::thousands(record.unavailable)),
        ("refused: node had no key lease", shell::thousands(record.untrusted)),
        (
            "nodes killed / stopped in order",
            format!("{} / {}", faults.crashes - faults.orderly, faults.orderly),
        ),
        (
            "nodes cut off / paused / clock set",
            format!("{} / {} / {}", faults.cuts, faults.pauses, faults.steps),
        ),
        ("windows counted", shell::thousands(record.windows)),
        ("**windows overdrawn**", shell::thousands(record.overdrawn)),
        ("windows that lost something when a node ended", shell::thousands(record.losses)),
        ("largest such loss, in leases", hundredths(record.loss_percent_max)),
        ("**losses larger than two leases**", shell::thousands(record.losses_too_large)),
        (
            "revocations: median, 99th percentile, longest",
            format!(
                "{}, {}, {}",
                milliseconds(at(50)),
                milliseconds(at(99)),
                milliseconds(at(100))
            ),
        ),
        (
            "**requests accepted after a revocation returned**",
            shell::thousands(record.let_in_after_revocation),
        ),
        ("lease transactions a second", shell::thousands(load.lease_transactions / seconds)),
        ("leases in a transaction", ratio(load.lease_rows, load.lease_transactions)),
        ("queries for changes of keys a second", shell::thousands(load.questions / seconds)),
        ("confirmations of changes a second", shell::thousands(load.confirmations / seconds)),
        ("polls of revocations a second", shell::thousands(load.looks / seconds)),
        ("all transactions, busiest second", shell::thousands(busiest)),
        (
            "database busy",
            format!("{} %", load.busy_us * 100 / (i64::from(plan.seconds.max(1)) * SECOND_US)),
        ),
        ("longest wait in its queue", milliseconds(Some(load.queued_us_max))),
        ("longest wait of a request for a lease", milliseconds(Some(record.waited_us_max))),
    ];
    let mut page = String::from("| simulated | found |\n|---|---|\n");
    for (what, found) in rows {
        page.push_str(&format!("| {what} | {found} |\n"));
    }
    page
}

/// The violated invariants.
pub(super) fn broken(plan: &Plan, record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    must(record.overdrawn == 0, "a window gave more than its limit or than was leased of it");
    must(record.losses_too_large == 0, "a node's end lost more than it can have in hand");
    must(record.let_in_after_revocation == 0, "a key was accepted after its revocation returned");
    let longest_us = record.revocations_us().last().copied().unwrap_or_default();
    // The key lease, the margin, a check, and the queue of the database.
    let bound_us = plan.trust_us + plan.margin_us + SECOND_US + 2 * record.load.queued_us_max;
    must(longest_us <= bound_us, "a revocation took too long");
    broken
}

fn hundredths(n: u32) -> String {
    format!("{}.{:02}", n / 100, n % 100)
}

fn ratio(all: u64, parts: u64) -> String {
    let tenths = (all * 10).checked_div(parts).unwrap_or_default();
    format!("{}.{}", tenths / 10, tenths % 10)
}

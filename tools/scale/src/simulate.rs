//! Simulation of leases and revocation with many nodes and keys in one thread. The meters are the real ones
//! ([`accounts::MeterSimulation`]), and so is the size of leases (`LeaseRequest::grant`); the database, the network,
//! the clocks and the faults are simulated. The same seed gives the same run.

mod clock;
mod database;
mod load;
mod node;
mod queue;
mod record;
mod report;
mod run;
mod trust;

use accounts::KeyLeaseSimulation;
use anyhow::{Result, ensure};

use self::{clock::SECOND_US, database::Costs, run::Run};

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: u32,
    pub(crate) keys: u32,
    pub(crate) seconds: u32,
    pub(crate) seed: u64,
    costs: Costs,
    /// Validity of a node's key lease, by its own clock.
    trust_us: i64,
    /// Additional wait of a revocation, because clocks run at slightly different speeds.
    margin_us: i64,
    /// Interval at which a node asks for changes.
    ask_every_us: i64,
    fault_every_us: i64,
}

impl Plan {
    pub(crate) fn new(nodes: u32, keys: u32, seconds: u32, seed: u64) -> Self {
        Self {
            nodes: nodes.max(2),
            keys,
            seconds,
            seed,
            costs: Costs { transaction_us: 100, row_us: 10, read_us: 30 },
            trust_us: 5 * SECOND_US,
            margin_us: i64::try_from(1000 * KeyLeaseSimulation::MARGIN_MS).unwrap_or(i64::MAX),
            ask_every_us: SECOND_US,
            fault_every_us: SECOND_US / 2,
        }
    }
}

/// Runs the simulation and returns its report.
///
/// # Errors
/// A bound was violated.
pub(crate) fn simulate(plan: Plan) -> Result<String> {
    let record = Run::new(plan).finish()?;
    let broken = report::broken(&plan, &record);
    let page = report::text(&plan, &record);
    ensure!(broken.is_empty(), "{page}\n{}", broken.join("\n"));
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small enough for an unoptimised build.
    fn small(seed: u64) -> Plan {
        Plan { fault_every_us: SECOND_US / 4, ..Plan::new(20, 400, 125, seed) }
    }

    #[test]
    fn no_window_is_overdrawn_and_no_revoked_key_is_let_in() {
        for seed in 0..3 {
            let record = Run::new(small(seed)).finish().unwrap();
            assert_eq!(report::broken(&small(seed), &record), [""; 0], "seed {seed}");
            // Faults must have occurred.
            let faults = record.faults;
            assert!(faults.crashes > faults.orderly && faults.orderly > 0 && faults.cuts > 0);
            assert!(faults.pauses > 0 && faults.steps > 0 && record.losses > 0);
            assert!(record.refused > 1000 && record.revoked > 0 && record.untrusted > 0);
            assert!(record.revocations_us().last() > Some(&SECOND_US), "none waited for a node");
        }
    }

    #[test]
    fn the_same_seed_plays_the_same_run() {
        let [one, two, other] = [7, 7, 8].map(|seed| simulate(Plan::new(5, 50, 40, seed)).unwrap());
        assert_eq!(one, two);
        assert_ne!(one, other);
    }

    #[test]
    fn nodes_that_trust_themselves_for_longer_than_the_database_says_are_found_out() {
        let plan = Plan { margin_us: -4 * SECOND_US, fault_every_us: SECOND_US / 10, ..small(1) };
        let record = Run::new(plan).finish().unwrap();
        assert!(record.let_in_after_revocation > 0);
    }
}

//! The checker: compares the clients' observations and the log with the promises.
//!
//! Each rule is a plain function from records to a [`Finding`], tested with histories in which it is broken.

mod answers;
mod availability;
mod keys;
mod observed_log;
mod pushes;
mod repeats;
mod streams;

use super::{
    load::{FEW, FEW_KEY},
    record::{Kind, Records},
};

pub(super) use self::{answers::ends_alike, availability::Score, observed_log::ObservedLog};

/// Maximum number of violations shown; all of them can be found in the records.
const EVIDENCE_MAX: usize = 20;

/// The result of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) rule: &'static str,
    pub(super) figures: String,
    /// One sentence for each violation.
    pub(super) broken: Vec<String>,
    pub(super) broken_count: usize,
    /// True if the result depends on how much processor time the machine gives us.
    pub(super) is_timed: bool,
}

impl Finding {
    pub(super) fn new(rule: &'static str) -> Self {
        Self { rule, ..Self::default() }
    }

    fn timed(rule: &'static str) -> Self {
        Self { is_timed: true, ..Self::new(rule) }
    }

    pub(super) fn violate(&mut self, evidence: impl FnOnce() -> String) {
        self.broken_count += 1;
        if self.broken.len() < EVIDENCE_MAX {
            self.broken.push(evidence());
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.broken_count == 0
    }
}

/// Every rule, in the order of the report; `builds` is the number of different programs that nodes ran.
pub(super) fn all(records: &Records, log: &ObservedLog, builds: usize) -> Vec<Finding> {
    vec![
        pushes::none_lost(&records.pushes, log),
        pushes::none_twice(log),
        pushes::in_order(log),
        answers::one_body(&records.reads),
        answers::one_tag(&records.reads, &records.walks, builds),
        answers::as_the_log(&records.reads, &records.bodies, log),
        answers::whole_walks(&records.walks),
        keys::revoked_are_out(&records.reads, &records.revocations),
        keys::within_limits(&records.reads, &records.limits),
        repeats::as_seen(&records.repeats),
        streams::as_the_log(&records.cuts, &records.bodies, log),
        streams::within_limit(&records.streams, FEW_KEY, FEW),
        streams::within_quota(&records.streams, &records.stream_limits),
        streams::revoked_are_silent(&records.streams, &records.revocations),
        availability::reads(
            records,
            Kind::Single,
            "reads through the balancer, one fault at a time: 99.9 %",
        ),
        availability::reads(records, Kind::NoDatabase, "PostgreSQL down: known keys go on, 99.9 %"),
        availability::reads(records, Kind::NoLog, "NATS down: the last snapshot is served, 99.9 %"),
        availability::degraded(records),
        availability::caught_up(&records.episodes),
        availability::no_process_ended(&records.exits),
    ]
}

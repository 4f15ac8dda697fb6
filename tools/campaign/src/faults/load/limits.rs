//! Runs into limits on purpose, on all nodes at once.

use std::time::Duration;

use super::{Bench, reader::Asker};
use crate::{
    cluster::{pace::nap, unit::APIS},
    faults::{chance::Chance, record::Limits},
};

/// A sort of key, renewed when it has been spent for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sort {
    pub(super) name: &'static str,
    per_minute: u64,
    per_day: u64,
    /// After so many refusals in a row there is nothing more to learn from a key; minutes renew themselves.
    refusals_max: u32,
}

/// One that meets its minute, one that meets its day.
pub(super) const SORTS: [Sort; 2] = [
    Sort { name: "minute", per_minute: 60, per_day: 1_000_000, refusals_max: u32::MAX },
    Sort { name: "day", per_minute: 100_000, per_day: 150, refusals_max: 40 },
];
const PATH: &str = "/v1/sports/mma/odds?odds_format=decimal&limit=500";
const PAUSE: Duration = Duration::from_millis(60);
/// A node that is held still must not keep it from the others.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Spender {
    bench: Bench,
    sort: Sort,
    askers: Vec<Asker>,
    chance: Chance,
    made: u32,
    refusals: u32,
    /// Name and secret.
    key: Option<(String, String)>,
}

impl Spender {
    pub(super) fn new(bench: &Bench, sort: Sort, chance: Chance) -> Self {
        let nodes = [None].into_iter().chain(APIS.map(Some));
        let askers = nodes.map(|node| Asker::new(bench, node, PATIENCE)).collect();
        Self { bench: bench.clone(), sort, askers, chance, made: 0, refusals: 0, key: None }
    }

    pub(super) fn run(&mut self) {
        while self.bench.goes_on() {
            if self.key.is_none() || self.refusals > self.sort.refusals_max {
                self.renew();
            }
            self.spend();
            nap(PAUSE);
        }
    }

    /// While the database is gone there are no new keys; the old one has to do.
    fn renew(&mut self) {
        self.refusals = 0;
        self.made += 1;
        let (Sort { name, per_minute, per_day, .. }, made) = (self.sort, self.made);
        let name = format!("{name}-{made}");
        if let Ok(key) = self.bench.new_key(&name, per_minute, per_day) {
            self.bench.journal.note_limits(Limits { key: name.clone(), per_minute, per_day });
            self.key = Some((name, key));
        }
    }

    fn spend(&mut self) {
        let Some((name, key)) = self.key.clone() else { return };
        let at = self.chance.below(self.askers.len());
        let Some(asker) = self.askers.get_mut(at) else { return };
        let answer = asker.ask(PATH, (&name, &key), None);
        let is_refused = answer.is_some_and(|answer| answer.status == 429);
        self.refusals = if is_refused { self.refusals.saturating_add(1) } else { 0 };
    }
}

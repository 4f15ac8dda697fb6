//! Reaches limits on purpose, on all nodes at once.

use std::time::Duration;

use shell::random::Random;

use super::{LoadContext, reader::Requester};
use crate::{cluster::unit::APIS, faults::record::Limits};

/// A key with limits, replaced when it has been exhausted for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyProfile {
    pub(super) name: &'static str,
    per_minute: u64,
    per_day: u64,
    /// Successive refusals after which the key is replaced; the minute's limit renews itself.
    refusals_max: u32,
}

/// One key that reaches its limit for a minute, and one for a day.
pub(super) const PROFILES: [KeyProfile; 2] = [
    KeyProfile { name: "minute", per_minute: 60, per_day: 1_000_000, refusals_max: u32::MAX },
    KeyProfile { name: "day", per_minute: 100_000, per_day: 150, refusals_max: 40 },
];
const PATH: &str = "/v1/sports/mma/odds?odds_format=decimal&limit=500";
const PAUSE: Duration = Duration::from_millis(60);
/// A paused node must not keep it from the others.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct LimitClient {
    context: LoadContext,
    profile: KeyProfile,
    requesters: Vec<Requester>,
    random: Random,
    made: u32,
    refusals: u32,
    /// Name and secret.
    key: Option<(String, String)>,
}

impl LimitClient {
    pub(super) fn new(context: &LoadContext, profile: KeyProfile, random: Random) -> Self {
        let nodes = [None].into_iter().chain(APIS.map(Some));
        let requesters = nodes.map(|node| Requester::new(context, node, TIMEOUT)).collect();
        Self {
            context: context.clone(),
            profile,
            requesters,
            random,
            made: 0,
            refusals: 0,
            key: None,
        }
    }

    pub(super) fn run(&mut self) {
        while self.context.goes_on() {
            if self.key.is_none() || self.refusals > self.profile.refusals_max {
                self.renew();
            }
            self.spend();
            shell::sleep(PAUSE);
        }
    }

    /// While the database is unreachable there are no new keys; the old one stays in use.
    fn renew(&mut self) {
        self.refusals = 0;
        self.made += 1;
        let (KeyProfile { name, per_minute, per_day, .. }, made) = (self.profile, self.made);
        let name = format!("{name}-{made}");
        if let Ok(key) = self.context.new_key(&name, per_minute, per_day) {
            let limits = Limits { key: name.clone(), per_minute, per_day };
            self.context.journal.note("limits", limits, |records| &mut records.limits);
            self.key = Some((name, key));
        }
    }

    fn spend(&mut self) {
        let Some((name, key)) = self.key.clone() else { return };
        let at = self.random.index(self.requesters.len());
        let Some(requester) = self.requesters.get_mut(at) else { return };
        let answer = requester.ask(PATH, (&name, &key), None);
        let is_refused = answer.is_some_and(|answer| answer.status == 429);
        self.refusals = if is_refused { self.refusals.saturating_add(1) } else { 0 };
    }
}

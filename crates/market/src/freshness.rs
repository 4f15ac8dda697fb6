//! The freshness of sources (D22, D28).
//!
//! A source is one bookmaker's feed for one sport. The time of a good read is that of its message (`ts`), so a
//! message that took an hour to arrive confirms the prices of an hour ago.

use std::time::Duration;

use domain::{BookmakerId, SportId, Timestamp};

/// The state of one bookmaker in one sport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The newest good read.
    pub read_at: Timestamp,
    /// The newest heartbeat, which confirms every market that was open when it arrived.
    pub beat_at: Timestamp,
    /// Delay between the `ts` of the newest good read and its arrival.
    pub latency_ms: u32,
    /// Seconds for which it is fresh after its newest read, if longer than for others.
    pub fresh_for_s: u32,
}

impl Source {
    /// A source that was never read.
    pub(crate) const NEVER: Self = Self {
        read_at: Timestamp::from_millis(i64::MIN),
        beat_at: Timestamp::from_millis(i64::MIN),
        latency_ms: 0,
        fresh_for_s: 0,
    };

    pub(crate) fn read(&mut self, ts: Timestamp, at: Timestamp) {
        if ts >= self.read_at {
            self.read_at = ts;
            self.latency_ms = u32::try_from(at.since(ts).as_millis()).unwrap_or(u32::MAX);
        }
    }

    pub(crate) fn beat(&mut self, ts: Timestamp, at: Timestamp) {
        self.read(ts, at);
        self.beat_at = self.beat_at.max(ts);
    }

    pub fn is_stale(&self, now: Timestamp, stale_after: Duration) -> bool {
        now.since(self.read_at) > self.fresh_for(stale_after)
    }

    /// Time for which its newest read keeps it fresh, if others are stale after `stale_after`.
    pub fn fresh_for(&self, stale_after: Duration) -> Duration {
        stale_after.max(Duration::from_secs(self.fresh_for_s.into()))
    }
}

/// The data from which the freshness of a record's prices is computed, together with the newest heartbeat of their
/// source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Time of the prices according to the source.
    pub ts: Timestamp,
    /// The source's newest heartbeat when they arrived: only a later one confirms them.
    pub beat_seen: Timestamp,
}

impl Confirmed {
    /// Time of the last confirmation (D28), if `beat_at` is the newest heartbeat.
    pub fn last_update(self, beat_at: Timestamp) -> Timestamp {
        if beat_at > self.beat_seen { self.ts.max(beat_at) } else { self.ts }
    }
}

/// The current freshness of every source, small enough to be published with every batch; `status` is answered from
/// it.
#[derive(Clone, Debug, Default)]
pub struct Vitals {
    pub sources: Vec<(SportId, BookmakerId, Source)>,
}

/// A world's health at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    pub degraded: bool,
    pub sports_active: u32,
}

impl Vitals {
    /// Any stale source degrades the world; a sport is active while one of its sources is fresh.
    pub fn health(&self, now: Timestamp, stale_after: Duration) -> Health {
        let mut degraded = false;
        let mut active: Vec<SportId> = Vec::new();
        for (sport, _, source) in &self.sources {
            if source.is_stale(now, stale_after) {
                degraded = true;
            } else if !active.contains(sport) {
                active.push(*sport);
            }
        }
        Health { degraded, sports_active: u32::try_from(active.len()).unwrap_or(u32::MAX) }
    }
}

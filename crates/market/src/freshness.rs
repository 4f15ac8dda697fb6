//! How fresh the sources are (D22, D28).
//!
//! A source is one bookmaker's feed for one sport. A good read happened when its message says (`ts`), so a
//! message that was an hour on its way confirms what stood an hour ago.

use std::time::Duration;

use domain::{BookmakerId, SportId, Timestamp};

/// What is known of one bookmaker in one sport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The newest good read.
    pub read_at: Timestamp,
    /// The newest heartbeat, which confirms every market open when it came.
    pub beat_at: Timestamp,
    /// How late the newest good read arrived after its `ts`.
    pub latency_ms: u32,
    /// For how long after its newest read it is fresh, in seconds, where that is longer than for others.
    pub fresh_for_s: u32,
}

impl Source {
    /// Never heard of.
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

    /// How long its newest read keeps it fresh, where others are stale after `stale_after`.
    pub fn fresh_for(&self, stale_after: Duration) -> Duration {
        stale_after.max(Duration::from_secs(self.fresh_for_s.into()))
    }
}

/// What the freshness of a record's prices follows from, together with the newest heartbeat of their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// When the source says that they stood.
    pub ts: Timestamp,
    /// The source's newest heartbeat when they came: only a later one confirms them.
    pub beat_seen: Timestamp,
}

impl Confirmed {
    /// When they were last confirmed (D28), where `beat_at` is the newest heartbeat.
    pub fn last_update(self, beat_at: Timestamp) -> Timestamp {
        if beat_at > self.beat_seen { self.ts.max(beat_at) } else { self.ts }
    }
}

/// The freshness of every source at this moment, small enough to be published with every batch: what
/// `status` is answered from.
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

//! The message rate and the latency of a feed: of the last minutes for pages, since the start for Prometheus.

use std::collections::VecDeque;

use domain::Timestamp;

use crate::batch::Lines;

/// Length of the slots in which the last minutes are counted.
const SLOT_MS: i64 = 10_000;
/// Number of slots: five minutes.
const SLOTS_MAX: usize = 30;
/// Seconds over which the message rate is measured.
const RATE_S: i64 = 60;
/// Below this, every millisecond has a bucket of its own; above, every octave has this number of buckets.
const FINE: u64 = 8;
/// Number of buckets; they reach to 2^32 ms, which is 49 days.
const BUCKETS: usize = 240;
/// Upper bounds of the buckets that Prometheus reads, in milliseconds.
pub(crate) const BOUNDS_MS: [u64; 14] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];

/// Times of the messages of a push according to its source: each instant with the number of consecutive messages at
/// it.
#[derive(Debug, Default)]
pub struct Stamps(Vec<(Option<Timestamp>, u32)>);

impl Stamps {
    /// Those of a push's lines.
    pub fn of(lines: &Lines) -> Self {
        let mut stamps = Self::default();
        for message in lines.iter().filter_map(|(_, line)| line.as_ref().ok()) {
            stamps.add(message.ts);
        }
        stamps
    }

    fn add(&mut self, ts: Option<Timestamp>) {
        match self.0.last_mut() {
            Some((last, count)) if *last == ts => *count += 1,
            _ => self.0.push((ts, 1)),
        }
    }
}

/// The rate and the latencies of a feed.
#[derive(Debug, Default)]
pub(crate) struct FeedRate {
    slots: VecDeque<Slot>,
    /// Messages by second, the newest last.
    seconds: VecDeque<(i64, u64)>,
    pub buckets: [u64; BOUNDS_MS.len() + 1],
    pub sum_ms: u64,
    pub count: u64,
}

#[derive(Debug)]
struct Slot {
    number: i64,
    buckets: Box<[u32; BUCKETS]>,
}

/// The rate and the latency of the last minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// Messages in the last minute.
    pub a_minute: u64,
    /// Latency that 50 and 95 of 100 messages of the last five minutes did not exceed.
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
}

impl FeedRate {
    /// Counts the messages of a push that arrived and became durable at these instants.
    pub(crate) fn note(&mut self, stamps: &Stamps, arrived: Timestamp, durable: Timestamp) {
        let now_ms = durable.as_millis();
        let number = now_ms.div_euclid(SLOT_MS);
        if self.slots.back().is_none_or(|slot| slot.number != number) {
            self.slots.push_back(Slot { number, buckets: Box::new([0; BUCKETS]) });
        }
        while self.slots.len() > SLOTS_MAX {
            self.slots.pop_front();
        }
        let mut messages = 0;
        for (ts, count) in &stamps.0 {
            // A source's clock may be a little ahead of ours.
            let since = now_ms.saturating_sub(ts.unwrap_or(arrived).as_millis());
            let late_ms = u64::try_from(since).unwrap_or(0);
            messages += u64::from(*count);
            if let Some(held) =
                self.slots.back_mut().and_then(|slot| slot.buckets.get_mut(bucket(late_ms)))
            {
                *held = held.saturating_add(*count);
            }
            let at = BOUNDS_MS.partition_point(|bound| *bound < late_ms);
            if let Some(held) = self.buckets.get_mut(at) {
                *held += u64::from(*count);
            }
            self.sum_ms = self.sum_ms.saturating_add(late_ms.saturating_mul(u64::from(*count)));
        }
        self.count += messages;
        self.note_rate(now_ms.div_euclid(1000), messages);
    }

    fn note_rate(&mut self, second: i64, messages: u64) {
        match self.seconds.back_mut() {
            Some((last, count)) if *last == second => *count += messages,
            _ => self.seconds.push_back((second, messages)),
        }
        while self.seconds.front().is_some_and(|(first, _)| *first <= second - RATE_S) {
            self.seconds.pop_front();
        }
    }

    pub(crate) fn recent(&self, now: Timestamp) -> Recent {
        let (second, slot) =
            (now.as_millis().div_euclid(1000), now.as_millis().div_euclid(SLOT_MS));
        let oldest = slot - i64::try_from(SLOTS_MAX).unwrap_or(i64::MAX);
        let mut totals = [0_u64; BUCKETS];
        for held in self.slots.iter().filter(|held| held.number > oldest) {
            for (total, count) in totals.iter_mut().zip(&*held.buckets) {
                *total += u64::from(*count);
            }
        }
        let minute = self.seconds.iter().filter(|(at, _)| *at > second - RATE_S);
        Recent {
            a_minute: minute.map(|(_, count)| count).sum(),
            p50_ms: quantile(&totals, 50),
            p95_ms: quantile(&totals, 95),
        }
    }
}

/// The upper bound of the bucket that holds the message of this rank. `None`: there are no messages.
fn quantile(totals: &[u64; BUCKETS], percent: u64) -> Option<u64> {
    let all: u64 = totals.iter().sum();
    let rank = all.saturating_mul(percent).div_ceil(100).max(1);
    let mut seen = 0;
    let reaches = |count: &u64| {
        seen += count;
        seen >= rank
    };
    totals.iter().position(reaches).map(upper_ms)
}

/// The bucket of a latency: an eighth of its octave.
fn bucket(ms: u64) -> usize {
    let ms = ms.min(u64::from(u32::MAX));
    let at = if ms < FINE {
        ms
    } else {
        let octave = u64::from(ms.ilog2()) - 3;
        FINE + octave * FINE + ((ms >> octave) & (FINE - 1))
    };
    usize::try_from(at).unwrap_or(0)
}

/// The largest latency in a bucket.
fn upper_ms(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(0);
    if bucket < FINE {
        return bucket;
    }
    let (octave, part) = ((bucket - FINE) / FINE, (bucket - FINE) % FINE);
    ((FINE + part + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + ms)
    }

    fn stamps(all: impl IntoIterator<Item = Option<Timestamp>>) -> Stamps {
        let mut stamps = Stamps::default();
        all.into_iter().for_each(|ts| stamps.add(ts));
        stamps
    }

    #[test]
    fn every_latency_is_in_a_bucket_that_is_at_most_an_eighth_wide() {
        for ms in (0..5_000).chain([10_000, 123_456, 86_400_000, u64::from(u32::MAX), u64::MAX]) {
            let (held, capped) = (bucket(ms), ms.min(u64::from(u32::MAX)));
            assert!(held < BUCKETS, "{ms}");
            assert!(upper_ms(held) >= capped, "{ms} is in a bucket up to {}", upper_ms(held));
            assert!(upper_ms(held) <= capped + capped / 8, "{ms}: {}", upper_ms(held));
            assert!(held == 0 || upper_ms(held - 1) < capped, "{ms} belongs lower");
        }
    }

    #[test]
    fn half_and_nearly_all_are_told_of_the_last_five_minutes_only() {
        let mut rate = FeedRate::default();
        assert_eq!(rate.recent(at(0)), Recent::default());
        // A hundred messages, 1 to 100 ms late.
        rate.note(&stamps((1..=100).map(|late| Some(at(100 - late)))), at(90), at(100));
        let recent = rate.recent(at(200));
        assert_eq!(recent.a_minute, 100);
        assert_eq!((recent.p50_ms, recent.p95_ms), (Some(51), Some(95)));
        // Without a time of their own, from their arrival.
        rate.note(&stamps([None, None, None]), at(59_000), at(59_007));
        assert_eq!(rate.recent(at(59_900)).a_minute, 103);
        assert_eq!(rate.recent(at(60_100)).a_minute, 3);
        assert_eq!(rate.recent(at(330_000)).p95_ms, Some(7), "the first are forgotten");
        assert_eq!(rate.recent(at(400_000)), Recent::default());
        assert_eq!((rate.count, rate.buckets.iter().sum::<u64>()), (103, 103));
        assert_eq!(rate.sum_ms, 5050 + 21);
    }

    #[test]
    fn a_source_whose_clock_is_ahead_is_not_late() {
        let mut rate = FeedRate::default();
        rate.note(&stamps([Some(at(900))]), at(0), at(10));
        assert_eq!(rate.recent(at(20)).p95_ms, Some(0));
    }

    #[test]
    fn a_thousand_quiet_hours_take_no_more_room_than_five_minutes() {
        let mut rate = FeedRate::default();
        for hour in 0..1000 {
            rate.note(&stamps([None]), at(hour * 3_600_000), at(hour * 3_600_000 + 1));
        }
        assert!(rate.slots.len() <= SLOTS_MAX && rate.seconds.len() <= 61);
    }
}

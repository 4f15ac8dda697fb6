//! Counts of the messages of each feed by result, with their latency and samples of rejected and odd ones.

mod rate;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::message::RejectCode;
use domain::{MetricsText, Timestamp};
use market::Oddity;
use serde_json::{Value, json};

use crate::piece::Piece;
use crate::receipt::Receipt;
use rate::{BOUNDS_MS, FeedRate};
pub use rate::{Recent, Stamps};

/// Samples kept for each feed, the newest.
const SAMPLES_MAX: usize = 20;
/// Maximum length of a sample's text, whose content a feed determines.
const SAMPLE_CHARS_MAX: usize = 300;

/// The statistics of every feed.
#[derive(Debug, Default)]
pub struct FeedStats(Mutex<BTreeMap<String, FeedCounts>>);

#[derive(Debug, Default)]
struct FeedCounts {
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    rejected: BTreeMap<&'static str, u64>,
    odd: BTreeMap<&'static str, u64>,
    samples: VecDeque<Sample>,
    rate: FeedRate,
    /// Pushes refused because the feed was paused.
    paused: u64,
    last_push: Option<Timestamp>,
}

/// A rejected line or an anomaly.
#[derive(Clone, Debug)]
pub struct Sample {
    pub at: Timestamp,
    pub line: usize,
    pub code: &'static str,
    /// The reason.
    pub text: String,
    /// The line as it was sent; empty if it is not known any more.
    pub sent: String,
}

/// The data of a push that the statistics need.
#[derive(Debug)]
pub struct Push<'a> {
    pub receipt: &'a Receipt,
    pub stamps: &'a Stamps,
    /// Time of arrival.
    pub arrived: Timestamp,
    /// Time at which all of it was durable.
    pub durable: Timestamp,
    /// The lines as they were sent.
    pub piece: &'a Piece,
}

/// The statistics of a feed, since the start unless stated otherwise.
#[derive(Clone, Debug, Default)]
pub struct FeedFigures {
    pub taken: u64,
    /// Reject codes with their counts.
    pub rejected: Vec<(&'static str, u64)>,
    pub odd: Vec<(&'static str, u64)>,
    pub recent: Recent,
    pub paused: u64,
    pub last_push: Option<Timestamp>,
}

impl FeedStats {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, FeedCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, feed: &str, push: &Push<'_>) {
        let (receipt, at) = (push.receipt, push.durable);
        let samples = push.samples();
        let mut feeds = self.lock();
        let counts = feeds.entry(feed.to_owned()).or_default();
        counts.rate.note(push.stamps, push.arrived, at);
        counts.last_push = Some(at);
        counts.accepted += receipt.accepted;
        counts.unchanged += receipt.unchanged;
        counts.superseded += receipt.superseded;
        for (_, reject) in &receipt.rejected {
            *counts.rejected.entry(reject.code.slug()).or_default() += 1;
        }
        for odd in &receipt.odd {
            *counts.odd.entry(odd.what.slug()).or_default() += 1;
        }
        samples.into_iter().for_each(|sample| counts.keep(sample));
    }

    /// Counts a push that was refused because its feed is paused.
    pub fn note_paused(&self, feed: &str) {
        self.lock().entry(feed.to_owned()).or_default().paused += 1;
    }

    pub fn figures(&self, feed: &str, now: Timestamp) -> FeedFigures {
        let counted = |counts: &BTreeMap<&'static str, u64>| {
            let mut counts: Vec<_> = counts.iter().map(|(code, count)| (*code, *count)).collect();
            counts.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(*count));
            counts
        };
        self.lock().get(feed).map_or_else(FeedFigures::default, |counts| FeedFigures {
            taken: counts.accepted + counts.unchanged + counts.superseded,
            rejected: counted(&counts.rejected),
            odd: counted(&counts.odd),
            recent: counts.rate.recent(now),
            paused: counts.paused,
            last_push: counts.last_push,
        })
    }

    /// Samples of a feed's rejected lines and anomalies, the newest first.
    pub fn samples(&self, feed: &str) -> Vec<Sample> {
        let feeds = self.lock();
        feeds
            .get(feed)
            .map_or_else(Vec::new, |counts| counts.samples.iter().rev().cloned().collect())
    }

    pub fn render(&self, page: &mut MetricsText) {
        let feeds = self.lock();
        page.family(
            "linesman_feed_messages_total",
            "counter",
            "Pushed messages by feed and verdict.",
        );
        for (feed, counts) in &*feeds {
            for (verdict, count) in [
                ("accepted", counts.accepted),
                ("unchanged", counts.unchanged),
                ("superseded", counts.superseded),
                ("rejected", counts.rejected.values().sum()),
            ] {
                page.line(format_args!(
                    "linesman_feed_messages_total{{feed=\"{feed}\",verdict=\"{verdict}\"}} {count}"
                ));
            }
        }
        let (name, help) = ("linesman_feed_rejects_total", "Rejected messages by feed and code.");
        page.family(name, "counter", help);
        for (feed, counts) in &*feeds {
            for code in RejectCode::ALL.map(RejectCode::slug) {
                if let Some(count) = counts.rejected.get(code) {
                    page.line(format_args!("{name}{{feed=\"{feed}\",code=\"{code}\"}} {count}"));
                }
            }
        }
        let name = "linesman_feed_oddities_total";
        page.family(
            name,
            "counter",
            "Listings that a correct source rarely sends, by feed and kind.",
        );
        for (feed, counts) in &*feeds {
            for kind in Oddity::ALL.map(Oddity::slug) {
                if let Some(count) = counts.odd.get(kind) {
                    page.line(format_args!("{name}{{feed=\"{feed}\",kind=\"{kind}\"}} {count}"));
                }
            }
        }
    }

    /// Renders the latency of messages, and the pushes of paused feeds.
    pub fn render_latency(&self, page: &mut MetricsText) {
        let feeds = self.lock();
        let name = "linesman_feed_latency_seconds";
        page.family(
            name,
            "histogram",
            "Time from a message's own time, or from its arrival if it has none, until it was durable.",
        );
        for (feed, FeedCounts { rate, .. }) in &*feeds {
            let mut total = 0;
            for (bound, count) in BOUNDS_MS.iter().map(Some).chain([None]).zip(&rate.buckets) {
                total += count;
                let bound = bound.map_or("+Inf".to_owned(), |ms| seconds(*ms));
                page.line(format_args!("{name}_bucket{{feed=\"{feed}\",le=\"{bound}\"}} {total}"));
            }
            page.line(format_args!("{name}_sum{{feed=\"{feed}\"}} {}", seconds(rate.sum_ms)));
            page.line(format_args!("{name}_count{{feed=\"{feed}\"}} {}", rate.count));
        }
        let name = "linesman_feed_pushes_paused_total";
        page.family(name, "counter", "Pushes refused because their feed is paused.");
        for (feed, counts) in &*feeds {
            page.line(format_args!("{name}{{feed=\"{feed}\"}} {}", counts.paused));
        }
    }

    /// The statistics of every feed as JSON, the newest samples first.
    pub fn to_json(&self) -> Value {
        let feeds = self.lock();
        let feeds = feeds.iter().map(|(feed, counts)| {
            let samples = counts.samples.iter().rev().map(|sample| {
                json!({
                    "at": sample.at.to_string(), "line": sample.line,
                    "code": sample.code, "message": sample.text, "sent": sample.sent,
                })
            });
            json!({
                "feed": feed,
                "accepted": counts.accepted,
                "unchanged": counts.unchanged,
                "superseded": counts.superseded,
                "rejected": counts.rejected,
                "odd": counts.odd,
                "pushes_while_paused": counts.paused,
                "samples": samples.collect::<Vec<_>>(),
            })
        });
        json!({ "feeds": feeds.collect::<Vec<_>>() })
    }
}

impl Push<'_> {
    /// Its last rejected and odd lines.
    fn samples(&self) -> Vec<Sample> {
        let Receipt { rejected, odd, .. } = self.receipt;
        let rejected =
            rejected.iter().map(|(line, reject)| (*line, reject.code.slug(), &*reject.message));
        let odd = odd.iter().map(|odd| (odd.line, odd.what.slug(), &*odd.text));
        let mut samples: Vec<(usize, &'static str, &str)> = rejected.chain(odd).collect();
        samples.sort_unstable();
        let samples = samples.split_off(samples.len().saturating_sub(SAMPLES_MAX));
        let mut sent = self.piece.lines().peekable();
        let sample = |(line, code, text): (usize, _, &str)| {
            while sent.next_if(|(number, _)| *number < line).is_some() {}
            let sent = sent.peek().filter(|(number, _)| *number == line);
            Sample {
                at: self.durable,
                line,
                code,
                text: cut(text),
                sent: sent
                    .map_or_else(String::new, |(_, sent)| cut(&String::from_utf8_lossy(sent))),
            }
        };
        samples.into_iter().map(sample).collect()
    }
}

impl FeedCounts {
    fn keep(&mut self, sample: Sample) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

/// A feed's text, cut to the maximum length.
fn cut(text: &str) -> String {
    text.chars().take(SAMPLE_CHARS_MAX).collect()
}

/// Milliseconds as decimal seconds, exactly.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use domain::message::Reject;

    use super::*;

    #[test]
    fn the_last_refused_lines_of_a_push_are_kept_as_they_were_sent() {
        let text: String = (1..=50).map(|line| format!("line {line}\n\n")).collect();
        let pieces = Piece::all(&Bytes::from(text));
        assert_eq!(pieces.len(), 1);
        let reject = |line| (line, Reject::new(RejectCode::UnknownType, "no such type"));
        let receipt =
            Receipt { rejected: (1..=99).step_by(2).map(reject).collect(), ..Receipt::default() };
        let now = Timestamp::from_secs(1_800_000_000);
        let stamps = &Stamps::default();
        let push =
            Push { receipt: &receipt, stamps, arrived: now, durable: now, piece: &pieces[0] };
        let stats = FeedStats::default();
        stats.note("a", &push);
        let kept: Vec<_> =
            stats.samples("a").into_iter().map(|sample| (sample.line, sample.sent)).collect();
        let last: Vec<_> =
            (31..=50).rev().map(|line| (line * 2 - 1, format!("line {line}"))).collect();
        assert_eq!(kept, last);
    }
}

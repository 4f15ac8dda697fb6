//! Counts of the messages of each feed by result, with their latency and samples of rejected and odd ones.

mod rate;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::message::RejectCode;
use domain::{MetricsText, Timestamp};
use market::Oddity;
use serde_json::{Value, json};

use crate::receipt::Receipt;
use rate::{BOUNDS_MS, FeedRate};
pub use rate::{Recent, Stamps};

/// Samples kept for each feed, the newest.
pub const SAMPLES_MAX: usize = 20;
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
    /// Lines as they were sent, by number, for the samples.
    pub sent: &'a [(usize, String)],
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
    fn accounts(&self) -> MutexGuard<'_, BTreeMap<String, FeedCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, feed: &str, push: &Push<'_>) {
        let (receipt, at) = (push.receipt, push.durable);
        let mut accounts = self.accounts();
        let account = accounts.entry(feed.to_owned()).or_default();
        account.rate.note(push.stamps, push.arrived, at);
        account.last_push = Some(at);
        account.accepted += receipt.accepted;
        account.unchanged += receipt.unchanged;
        account.superseded += receipt.superseded;
        let rejected = receipt.rejected.iter().map(|(line, reject)| {
            *account.rejected.entry(reject.code.slug()).or_default() += 1;
            (*line, reject.code.slug(), &*reject.message)
        });
        let odd = receipt.odd.iter().map(|odd| {
            *account.odd.entry(odd.what.slug()).or_default() += 1;
            (odd.line, odd.what.slug(), &*odd.text)
        });
        let mut samples: Vec<(usize, &'static str, &str)> = rejected.chain(odd).collect();
        samples.sort_unstable();
        // Only the last ones are kept.
        for (line, code, text) in samples.split_off(samples.len().saturating_sub(SAMPLES_MAX)) {
            let sent = push.sent.iter().find(|(number, _)| *number == line);
            account.keep(Sample {
                at,
                line,
                code,
                text: cut(text),
                sent: sent.map_or_else(String::new, |(_, sent)| sent.clone()),
            });
        }
    }

    /// Counts a push that was refused because its feed is paused.
    pub fn note_paused(&self, feed: &str) {
        self.accounts().entry(feed.to_owned()).or_default().paused += 1;
    }

    pub fn figures(&self, feed: &str, now: Timestamp) -> FeedFigures {
        let counted = |counts: &BTreeMap<&'static str, u64>| {
            let mut counts: Vec<_> = counts.iter().map(|(code, count)| (*code, *count)).collect();
            counts.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(*count));
            counts
        };
        self.accounts().get(feed).map_or_else(FeedFigures::default, |account| FeedFigures {
            taken: account.accepted + account.unchanged + account.superseded,
            rejected: counted(&account.rejected),
            odd: counted(&account.odd),
            recent: account.rate.recent(now),
            paused: account.paused,
            last_push: account.last_push,
        })
    }

    /// Samples of a feed's rejected lines and anomalies, the newest first.
    pub fn samples(&self, feed: &str) -> Vec<Sample> {
        let accounts = self.accounts();
        accounts
            .get(feed)
            .map_or_else(Vec::new, |account| account.samples.iter().rev().cloned().collect())
    }

    pub fn render(&self, page: &mut MetricsText) {
        let accounts = self.accounts();
        page.family(
            "linesman_feed_messages_total",
            "counter",
            "Pushed messages by feed and verdict.",
        );
        for (feed, account) in &*accounts {
            for (verdict, count) in [
                ("accepted", account.accepted),
                ("unchanged", account.unchanged),
                ("superseded", account.superseded),
                ("rejected", account.rejected.values().sum()),
            ] {
                page.line(format_args!(
                    "linesman_feed_messages_total{{feed=\"{feed}\",verdict=\"{verdict}\"}} {count}"
                ));
            }
        }
        let (name, help) = ("linesman_feed_rejects_total", "Rejected messages by feed and code.");
        page.family(name, "counter", help);
        for (feed, account) in &*accounts {
            for code in RejectCode::ALL.map(RejectCode::slug) {
                if let Some(count) = account.rejected.get(code) {
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
        for (feed, account) in &*accounts {
            for kind in Oddity::ALL.map(Oddity::slug) {
                if let Some(count) = account.odd.get(kind) {
                    page.line(format_args!("{name}{{feed=\"{feed}\",kind=\"{kind}\"}} {count}"));
                }
            }
        }
    }

    /// Renders the latency of messages, and the pushes of paused feeds.
    pub fn render_latency(&self, page: &mut MetricsText) {
        let accounts = self.accounts();
        let name = "linesman_feed_latency_seconds";
        page.family(
            name,
            "histogram",
            "Time from a message's own time, or from its arrival if it has none, until it was durable.",
        );
        for (feed, FeedCounts { rate, .. }) in &*accounts {
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
        for (feed, account) in &*accounts {
            page.line(format_args!("{name}{{feed=\"{feed}\"}} {}", account.paused));
        }
    }

    /// The statistics of every feed as JSON, the newest samples first.
    pub fn to_json(&self) -> Value {
        let accounts = self.accounts();
        let feeds = accounts.iter().map(|(feed, account)| {
            let samples = account.samples.iter().rev().map(|sample| {
                json!({
                    "at": sample.at.to_string(), "line": sample.line,
                    "code": sample.code, "message": sample.text, "sent": sample.sent,
                })
            });
            json!({
                "feed": feed,
                "accepted": account.accepted,
                "unchanged": account.unchanged,
                "superseded": account.superseded,
                "rejected": account.rejected,
                "odd": account.odd,
                "pushes_while_paused": account.paused,
                "samples": samples.collect::<Vec<_>>(),
            })
        });
        json!({ "feeds": feeds.collect::<Vec<_>>() })
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
pub fn cut(text: &str) -> String {
    text.chars().take(SAMPLE_CHARS_MAX).collect()
}

/// Milliseconds as decimal seconds, exactly.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

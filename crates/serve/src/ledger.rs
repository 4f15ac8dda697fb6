//! What each feed has sent and what became of it, with samples of what was refused or odd.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::Timestamp;
use domain::message::RejectCode;
use market::Oddity;
use serde_json::{Value, json};

use crate::metrics::Page;
use crate::world::Receipt;

/// Samples kept of each feed, the newest.
const SAMPLES_MAX: usize = 20;
/// A sample's text is cut here: a feed decides what is in it.
const SAMPLE_CHARS_MAX: usize = 300;

/// An account for every feed.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<String, Account>>);

#[derive(Debug, Default)]
struct Account {
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    rejected: BTreeMap<&'static str, u64>,
    odd: BTreeMap<&'static str, u64>,
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    at: Timestamp,
    line: usize,
    code: &'static str,
    text: String,
}

/// A message that was taken although a sound source rarely sends such.
#[derive(Debug)]
pub(crate) struct Odd {
    pub(crate) line: usize,
    pub(crate) what: Oddity,
    pub(crate) text: String,
}

impl Ledger {
    fn accounts(&self) -> MutexGuard<'_, BTreeMap<String, Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, feed: &str, receipt: &Receipt, at: Timestamp) {
        let mut accounts = self.accounts();
        let account = accounts.entry(feed.to_owned()).or_default();
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
        for (line, code, text) in samples {
            account.keep(at, line, code, text);
        }
    }

    /// Lines of a feed taken since the start, and lines refused with their reasons.
    pub(crate) fn figures(&self, feed: &str) -> (u64, Vec<(&'static str, u64)>) {
        self.accounts().get(feed).map_or((0, Vec::new()), |account| {
            let taken = account.accepted + account.unchanged + account.superseded;
            (taken, account.rejected.iter().map(|(reason, count)| (*reason, *count)).collect())
        })
    }

    pub(crate) fn render(&self, page: &mut Page) {
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
        let (name, help) = ("linesman_feed_rejects_total", "Refused messages by feed and code.");
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
            "Listings that a sound source rarely sends, by feed and kind.",
        );
        for (feed, account) in &*accounts {
            for kind in Oddity::ALL.map(Oddity::slug) {
                if let Some(count) = account.odd.get(kind) {
                    page.line(format_args!("{name}{{feed=\"{feed}\",kind=\"{kind}\"}} {count}"));
                }
            }
        }
    }

    /// Every feed's account as JSON, the newest samples first.
    pub(crate) fn to_json(&self) -> Value {
        let accounts = self.accounts();
        let feeds = accounts.iter().map(|(feed, account)| {
            let samples = account.samples.iter().rev().map(|sample| {
                json!({
                    "at": sample.at.to_string(), "line": sample.line,
                    "code": sample.code, "message": sample.text,
                })
            });
            json!({
                "feed": feed,
                "accepted": account.accepted,
                "unchanged": account.unchanged,
                "superseded": account.superseded,
                "rejected": account.rejected,
                "odd": account.odd,
                "samples": samples.collect::<Vec<_>>(),
            })
        });
        json!({ "feeds": feeds.collect::<Vec<_>>() })
    }
}

impl Account {
    fn keep(&mut self, at: Timestamp, line: usize, code: &'static str, text: &str) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        let text = text.chars().take(SAMPLE_CHARS_MAX).collect();
        self.samples.push_back(Sample { at, line, code, text });
    }
}

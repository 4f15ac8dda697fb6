//! The observations: every request, push and revocation with its answer, every fault. Kept in memory for the checker
//! and written to `records.jsonl` as they happen, for people.

use std::{
    collections::HashMap,
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{BufWriter, Write as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::json;
use shell::random::Random;

use crate::cluster::unit::Unit;

/// Maximum number of records that are looked at to find an answer.
const TRIES_MAX: usize = 20;

/// Milliseconds since 1970 by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "clients see the time of the machine")]
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A request and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Read {
    pub(super) sent_ms: i64,
    pub(super) done_ms: i64,
    /// True if it was sent through the load balancer.
    pub(super) balanced: bool,
    /// The node that answered, as far as known.
    pub(super) node: Option<Unit>,
    /// The key's name; never the key.
    pub(super) key: String,
    pub(super) path: String,
    /// 0 if there was no answer.
    pub(super) status: u16,
    /// The server's own time.
    pub(super) date_ms: Option<i64>,
    /// `x-requests-used`
    pub(super) used: Option<u64>,
    pub(super) etag: Option<String>,
    /// `x-published-at`
    pub(super) published_at: Option<String>,
    /// A hash of the body of a 200.
    #[serde(serialize_with = "hexadecimal")]
    pub(super) body: Option<u64>,
    /// The failure, or the error's code.
    pub(super) error: Option<String>,
}

impl Read {
    /// True if it is an answer from before an instant that can be requested again by its publication.
    fn is_repeatable(&self, before_ms: i64) -> bool {
        let published: Option<Timestamp> =
            self.published_at.as_deref().and_then(|at| at.parse().ok());
        // A clock that was stepped ahead may have made publications of the future.
        self.status == 200
            && self.done_ms < before_ms
            && self.etag.is_some()
            && self.body.is_some()
            && published.is_some_and(|at| at.as_millisecond() < before_ms)
    }
}

/// An earlier answer that was requested again with `as_of`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Repeat {
    pub(super) sent_ms: i64,
    pub(super) done_ms: i64,
    /// `None` is the load balancer.
    pub(super) node: Option<Unit>,
    /// With `as_of`.
    pub(super) path: String,
    /// The tag and the hash of the body of the earlier answer.
    pub(super) seen_etag: Option<String>,
    #[serde(serialize_with = "hexadecimal")]
    pub(super) seen_body: Option<u64>,
    /// 0 if there was no answer.
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    #[serde(serialize_with = "hexadecimal")]
    pub(super) body: Option<u64>,
    pub(super) error: Option<String>,
}

/// A batch, sent once. All its lines have the number `n`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Push {
    pub(super) pusher: usize,
    pub(super) n: u32,
    pub(super) sent_ms: i64,
    pub(super) done_ms: i64,
    /// `None` is the load balancer.
    pub(super) node: Option<Unit>,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Outcome {
    /// Every line was accepted, or known already.
    Taken,
    /// Answered, and at least one line was not accepted.
    Partly(String),
    /// Answered with an error.
    Refused(u16),
    /// Not answered: it may have been accepted or not.
    Unknown(String),
}

/// All pages of a listing, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Walk {
    pub(super) begun_ms: i64,
    pub(super) path: String,
    pub(super) ids: Vec<String>,
}

/// A stream, from its first byte to its last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StreamRun {
    pub(super) key: String,
    pub(super) node: Unit,
    pub(super) mode: &'static str,
    pub(super) opened_ms: i64,
    pub(super) last_ms: i64,
    /// The latest time of a cut.
    pub(super) last_cut_ms: Option<i64>,
    /// Cuts with changes, without the first.
    pub(super) changes: u64,
    /// The code that it ended with, if known.
    pub(super) end: Option<String>,
}

/// The state folded from a stream up to a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StreamCut {
    pub(super) node: Unit,
    pub(super) mode: &'static str,
    pub(super) at_ms: i64,
    pub(super) published: bool,
    /// A hash of the records.
    pub(super) body: u64,
}

/// A revoked key, according to the client that revoked it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Revocation {
    pub(super) key: String,
    pub(super) called_ms: i64,
    pub(super) returned_ms: i64,
}

/// A key's limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Limits {
    pub(super) key: String,
    pub(super) per_minute: u64,
    pub(super) per_day: u64,
}

/// A fault with its start and end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Episode {
    pub(super) fault: String,
    pub(super) kind: Kind,
    pub(super) began_ms: i64,
    pub(super) healed_ms: i64,
    /// Time of the full recovery; `None` if there was none.
    pub(super) caught_up_ms: Option<i64>,
}

/// Faults with special promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Kind {
    /// One part fails.
    Single,
    /// PostgreSQL is unreachable for all.
    NoDatabase,
    /// The log cannot be written.
    NoLog,
}

/// All observations.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) reads: Vec<Read>,
    pub(super) repeats: Vec<Repeat>,
    pub(super) pushes: Vec<Push>,
    pub(super) walks: Vec<Walk>,
    pub(super) revocations: Vec<Revocation>,
    pub(super) limits: Vec<Limits>,
    pub(super) streams: Vec<StreamRun>,
    pub(super) cuts: Vec<StreamCut>,
    /// Limits of keys that are used by streams.
    pub(super) stream_limits: Vec<Limits>,
    pub(super) episodes: Vec<Episode>,
    pub(super) bodies: HashMap<u64, Vec<u8>>,
    /// Wake-up delays of a thread, in milliseconds.
    pub(super) stalls: Vec<u64>,
    /// Parts that ended though the campaign had not ended them.
    pub(super) exits: Vec<String>,
}

/// The journal that all workers write to.
#[derive(Debug)]
pub(super) struct Journal {
    records: Mutex<Records>,
    file: Mutex<BufWriter<File>>,
}

impl Journal {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let file =
            File::create(folder.join("records.jsonl")).context("cannot write the records")?;
        Ok(Self { records: Mutex::default(), file: Mutex::new(BufWriter::new(file)) })
    }

    /// Notes a record: `list` is its place in memory.
    pub(super) fn note<T: Serialize>(
        &self,
        what: &str,
        record: T,
        list: impl FnOnce(&mut Records) -> &mut Vec<T>,
    ) {
        let line = json!({ what: &record });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk is reported when the file is flushed at the end.
        writeln!(file, "{line}").unwrap_or_default();
        drop(file);
        list(&mut self.lock()).push(record);
    }

    /// Stores a body once, and returns its hash.
    pub(super) fn keep_body(&self, body: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let name = hasher.finish();
        self.lock().bodies.entry(name).or_insert_with(|| body.to_vec());
        name
    }

    /// An answer from before an instant, chosen at random.
    pub(super) fn earlier_answer(&self, random: &mut Random, before_ms: i64) -> Option<Read> {
        let records = self.lock();
        let mut tries = (0..TRIES_MAX).filter_map(|_| random.pick(&records.reads));
        tries.find(|read| read.is_repeatable(before_ms)).cloned()
    }

    /// Returns all records, once nothing writes any more.
    ///
    /// # Errors
    /// The file cannot be written to its end.
    pub(super) fn finish(&self) -> Result<Records> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.flush().context("cannot write the records")?;
        Ok(std::mem::take(&mut *self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In the format of the names of the bodies' files.
fn hexadecimal<S: Serializer>(body: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    body.map(|body| format!("{body:016x}")).serialize(serializer)
}

//! What was seen: every request, push and revocation with its answer, every fault. Kept in memory for the checker and
//! written to `records.jsonl` as it happens, for people.

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

use crate::cluster::unit::Unit;

/// Milliseconds since 1970 by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "clients see the time of the machine")]
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A request and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Read {
    pub(super) sent_ms: i64,
    pub(super) done_ms: i64,
    /// Asked through the load balancer.
    pub(super) balanced: bool,
    /// Who answered, as far as known.
    pub(super) node: Option<Unit>,
    /// The key's name; never the key.
    pub(super) key: String,
    pub(super) path: String,
    /// 0 where no answer came.
    pub(super) status: u16,
    /// The server's own time.
    pub(super) date_ms: Option<i64>,
    /// `x-requests-used`
    pub(super) used: Option<u64>,
    pub(super) etag: Option<String>,
    /// `x-published-at`
    pub(super) published_at: Option<String>,
    /// Stands for the body of a 200.
    #[serde(serialize_with = "hexadecimal")]
    pub(super) body: Option<u64>,
    /// What went wrong, or the error's code.
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
    /// Answered, and at least one line was not taken.
    Partly(String),
    /// Answered with an error.
    Refused(u16),
    /// Not answered: it may be taken or not.
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
    /// Cuts with changes, but for the first.
    pub(super) changes: u64,
    /// The code it ended with, where it is known.
    pub(super) end: Option<String>,
}

/// What was folded from a stream up to a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StreamCut {
    pub(super) node: Unit,
    pub(super) mode: &'static str,
    pub(super) at_ms: i64,
    pub(super) published: bool,
    /// Stands for the records.
    pub(super) body: u64,
}

/// A key is out of force, says whoever called for it.
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

/// What was broken, from when until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Episode {
    pub(super) fault: String,
    pub(super) kind: Kind,
    pub(super) began_ms: i64,
    pub(super) healed_ms: i64,
    /// When everything was as before; `None` where it never was.
    pub(super) caught_up_ms: Option<i64>,
}

/// Faults in which something particular is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Kind {
    /// One part fails.
    Single,
    /// Nobody has PostgreSQL.
    NoDatabase,
    /// Nobody can write the log.
    NoLog,
}

/// Everything together.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) reads: Vec<Read>,
    pub(super) pushes: Vec<Push>,
    pub(super) walks: Vec<Walk>,
    pub(super) revocations: Vec<Revocation>,
    pub(super) limits: Vec<Limits>,
    pub(super) streams: Vec<StreamRun>,
    pub(super) cuts: Vec<StreamCut>,
    /// Of keys that are spent by streams.
    pub(super) stream_limits: Vec<Limits>,
    pub(super) episodes: Vec<Episode>,
    pub(super) bodies: HashMap<u64, Vec<u8>>,
    /// How late a thread was that only wanted to wake up, in milliseconds.
    pub(super) stalls: Vec<u64>,
    /// Parts that ended though nobody had ended them.
    pub(super) exits: Vec<String>,
}

/// Where everybody writes.
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

    /// Notes a record: `list` is where it is kept in memory.
    pub(super) fn note<T: Serialize>(
        &self,
        what: &str,
        record: T,
        list: impl FnOnce(&mut Records) -> &mut Vec<T>,
    ) {
        let line = json!({ what: &record });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk shows when the file is flushed at the end.
        writeln!(file, "{line}").unwrap_or_default();
        drop(file);
        list(&mut self.lock()).push(record);
    }

    /// Keeps a body once, and gives what stands for it.
    pub(super) fn keep_body(&self, body: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let name = hasher.finish();
        self.lock().bodies.entry(name).or_insert_with(|| body.to_vec());
        name
    }

    /// Takes everything out, once nobody writes any more.
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

/// As the files of bodies are named.
fn hexadecimal<S: Serializer>(body: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    body.map(|body| format!("{body:016x}")).serialize(serializer)
}

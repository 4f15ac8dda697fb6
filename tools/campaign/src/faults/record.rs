//! What was seen: every request, push and revocation with its answer, every fault. Kept in memory for the checker and
//! written to `records.jsonl` as it happens, for people.

use std::{
    collections::HashMap,
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{BufWriter, Write as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::cluster::{time::now_ms, unit::Unit};

/// A request and what came of it.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Stands for the body of a 200.
    pub(super) body: Option<u64>,
    /// What went wrong, or the error's code.
    pub(super) error: Option<String>,
}

/// A batch, sent once. All its lines have the number `n`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Push {
    pub(super) pusher: usize,
    pub(super) n: u32,
    pub(super) sent_ms: i64,
    pub(super) done_ms: i64,
    /// `None` is the load balancer.
    pub(super) node: Option<Unit>,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    pub(super) begun_ms: i64,
    pub(super) path: String,
    pub(super) ids: Vec<String>,
}

/// A key is out of force, says whoever called for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revocation {
    pub(super) key: String,
    pub(super) called_ms: i64,
    pub(super) returned_ms: i64,
}

/// A key's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) key: String,
    pub(super) per_minute: u64,
    pub(super) per_day: u64,
}

/// What was broken, from when until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Episode {
    pub(super) fault: String,
    pub(super) kind: Kind,
    pub(super) began_ms: i64,
    pub(super) healed_ms: i64,
    /// When everything was as before; `None` where it never was.
    pub(super) caught_up_ms: Option<i64>,
}

/// Faults in which something particular is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(super) episodes: Vec<Episode>,
    pub(super) bodies: HashMap<u64, Vec<u8>>,
    /// How late a thread was that only wanted to wake up, in milliseconds.
    pub(super) stalls: Vec<u128>,
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

    pub(super) fn note_read(&self, read: Read) {
        self.write(&json!({
            "what": "read", "sent_ms": read.sent_ms, "done_ms": read.done_ms, "balanced": read.balanced,
            "node": read.node.map(|node| node.to_string()), "key": read.key, "path": read.path,
            "status": read.status, "date_ms": read.date_ms, "used": read.used, "etag": read.etag,
            "body": read.body.map(|body| format!("{body:016x}")), "error": read.error,
        }));
        self.lock().reads.push(read);
    }

    /// Keeps a body once, and gives what stands for it.
    pub(super) fn keep_body(&self, body: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let name = hasher.finish();
        self.lock().bodies.entry(name).or_insert_with(|| body.to_vec());
        name
    }

    pub(super) fn note_push(&self, push: Push) {
        self.write(&json!({
            "what": "push", "sent_ms": push.sent_ms, "done_ms": push.done_ms, "pusher": push.pusher, "n": push.n,
            "node": push.node.map(|node| node.to_string()), "outcome": format!("{:?}", push.outcome),
        }));
        self.lock().pushes.push(push);
    }

    pub(super) fn note_walk(&self, walk: Walk) {
        self.write(&json!({
            "what": "walk", "begun_ms": walk.begun_ms, "path": walk.path, "ids": walk.ids,
        }));
        self.lock().walks.push(walk);
    }

    pub(super) fn note_revocation(&self, revocation: Revocation) {
        self.write(&json!({
            "what": "revocation", "key": revocation.key, "called_ms": revocation.called_ms,
            "returned_ms": revocation.returned_ms,
        }));
        self.lock().revocations.push(revocation);
    }

    pub(super) fn note_limits(&self, limits: Limits) {
        self.write(&json!({
            "what": "limits", "key": limits.key, "per_minute": limits.per_minute, "per_day": limits.per_day,
        }));
        self.lock().limits.push(limits);
    }

    pub(super) fn note_episode(&self, episode: Episode) {
        self.write(&json!({
            "what": "fault", "fault": episode.fault, "began_ms": episode.began_ms, "healed_ms": episode.healed_ms,
            "caught_up_ms": episode.caught_up_ms,
        }));
        self.lock().episodes.push(episode);
    }

    pub(super) fn note_stall(&self, late: Duration) {
        self.write(&json!({ "what": "stall", "at_ms": now_ms(), "late_ms": late.as_millis() }));
        self.lock().stalls.push(late.as_millis());
    }

    pub(super) fn note_exit(&self, exit: String) {
        self.write(&json!({ "what": "exit", "of": exit }));
        self.lock().exits.push(exit);
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

    fn write(&self, line: &Value) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A disk that is full shows when the file is flushed at the end.
        writeln!(file, "{line}").unwrap_or_default();
    }
}

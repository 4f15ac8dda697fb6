//! `linesman migrate`: copies a data folder to the database and the log of a cluster.
//!
//! The log is copied first and can be resumed after an interruption. The rows of the store follow in one transaction.
//! The folder is only read.

use std::io::ErrorKind;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use change_log::{Checkpoint, Entry, LogError, LogView, StreamLocation, StreamLog};
use domain::World;
use tokio::runtime::Runtime;

use crate::cli::{MigrateArgs, output};
use crate::cluster::{self, LOG_CREATED};
use crate::config::{Config, is_database_url};
use crate::folder::Folder;

/// Number of entries copied in one batch.
const ENTRIES_AT_ONCE: usize = 5000;
/// Approximate bytes of entries in one batch.
const BYTES_AT_ONCE: usize = 4 << 20;

pub(crate) fn run(config: &Config, args: &MigrateArgs) -> anyhow::Result<()> {
    let folder = Folder::at(&args.from);
    let path = folder.accounts();
    ensure!(path.is_file(), "{} is not a linesman data folder", args.from.display());
    ensure!(
        is_database_url(args.to.reveal()),
        "--to must have the form postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    );
    let configured = config.cluster.as_ref();
    let nats_url = args
        .nats
        .as_ref()
        .or_else(|| configured.map(|cluster| &cluster.nats_url))
        .context("no NATS servers for the log: give --nats, or set `cluster.nats_url`")?;
    let location = cluster::log_at(
        nats_url.reveal().to_owned(),
        configured.and_then(|cluster| cluster.replicas),
    );
    // Several threads: this one waits for the log while the runtime's tasks talk to the servers.
    let runtime = Runtime::new()?;
    let _lock = runtime.block_on(folder.lock())?;
    let entries =
        move_log(&runtime, &folder, &location).context("the log was not copied completely")?;
    let begun = Instant::now();
    let mut report = |moved: store::Transferred| {
        let (done, all) = (moved.rows, moved.of);
        output::draw_progress(&output::progress(done, all, "rows", begun.elapsed()));
    };
    // If the log is missing on the servers later, it is lost: no node creates another one.
    let settings = [(LOG_CREATED, "yes")];
    let settings = if entries > 0 { &settings[..] } else { &[] };
    let moved = runtime.block_on(store::transfer(&path, args.to.reveal(), settings, &mut report));
    output::draw_progress("");
    let rows = moved.context("the log was copied, the rows were not")?.rows;
    output::print_line(&format!("copied {entries} log entries and {rows} rows"))
}

/// Copies the live world's log and its checkpoints; returns the number of entries.
fn move_log(runtime: &Runtime, folder: &Folder, location: &StreamLocation) -> anyhow::Result<u64> {
    let view = match LogView::open(&folder.log(World::Live)) {
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let first = view.first_seq();
    let mut checkpoints = CheckpointPositions::of(&view);
    ensure!(
        first == 1 || checkpoints.ahead.iter().any(|mark| mark.seq + 1 >= first),
        "the log begins with entry {first} and has no readable checkpoint before it; start the service on the folder once, which writes one"
    );
    let mut log = StreamLog::open(runtime.handle(), location)
        .context("cannot reach the servers of --nats")?;
    if log.last_seq() == 0 {
        log.begin_after(first - 1)?;
    }
    let there = (log.last_seq() + 1).saturating_sub(first);
    check_beginning(&view, &log, first)?;
    let all = count(&view)?;
    let (begun, mut done) = (Instant::now(), 0);
    let mut batch = Vec::new();
    let mut bytes = 0;
    for entry in view.read_from(first)? {
        let entry = entry?;
        checkpoints.pass(entry.seq, first + done - 1);
        done += 1;
        if done <= there {
            continue;
        }
        bytes += entry.payload.len();
        batch.push(entry);
        if batch.len() >= ENTRIES_AT_ONCE || bytes >= BYTES_AT_ONCE {
            log.copy(&batch)?;
            batch.clear();
            bytes = 0;
            output::draw_progress(&output::progress(done, all, "entries", begun.elapsed()));
        }
    }
    log.copy(&batch)?;
    output::draw_progress("");
    checkpoints.pass(u64::MAX, first + done - 1);
    for (seq, checkpoint) in checkpoints.passed {
        if seq > log.checkpoint_seq() {
            log.write_checkpoint(seq, checkpoint.version, &checkpoint.payload)?;
        }
    }
    Ok(all)
}

/// The new positions of checkpoints. A gap in the numbers, as damage leaves it, is closed on the servers.
struct CheckpointPositions {
    /// Checkpoints not yet reached, newest first.
    ahead: Vec<Checkpoint>,
    passed: Vec<(u64, Checkpoint)>,
}

impl CheckpointPositions {
    /// Damaged checkpoints are skipped, as at a start.
    fn of(view: &LogView) -> Self {
        let ahead = view.checkpoints().iter().rev().filter_map(|seq| view.checkpoint(*seq).ok());
        Self { ahead: ahead.collect(), passed: Vec::new() }
    }

    /// Called before entry `seq` is copied; `moved` is the number on the servers of the previous entry.
    fn pass(&mut self, seq: u64, moved: u64) {
        while let Some(mark) = self.ahead.pop_if(|mark| mark.seq < seq) {
            self.passed.push((moved, mark));
        }
    }
}

fn count(view: &LogView) -> anyhow::Result<u64> {
    let mut all = 0;
    for entry in view.read_from(view.first_seq())? {
        entry?;
        all += 1;
    }
    Ok(all)
}

/// A log on the servers must be a prefix of this one, from an earlier attempt.
fn check_beginning(view: &LogView, log: &StreamLog, first: u64) -> anyhow::Result<()> {
    if log.last_seq() < first {
        return Ok(());
    }
    let theirs = log.read_from(log.first_seq())?;
    let mut ours = view.read_from(first)?;
    for entry in theirs {
        let (theirs, ours): (Entry, _) = (entry?, ours.next().transpose()?);
        let same = |ours: &Entry| ours.payload == theirs.payload && ours.at_ms == theirs.at_ms;
        if !ours.as_ref().is_some_and(same) {
            bail!("the servers hold another log already; use servers without one");
        }
    }
    Ok(())
}

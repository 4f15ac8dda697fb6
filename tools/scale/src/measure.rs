//! Throughput of a cluster's servers on this machine. For information: no check depends on it.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use accounts::{Accounts, Actor, KeyKind, NewKey, Registry};
use anyhow::{Context as _, Result};
use change_log::{StreamLocation, StreamLog};
use domain::{ManualClock, Timestamp};
use store::{LeaseRequest, Store, Window};
use test_servers::{Nats, Postgres};
use tokio::{runtime::Runtime, task::JoinSet};

/// Duration of each measurement.
const ROUND: Duration = Duration::from_secs(4);
/// Approximate size of a price change in the log, in bytes.
const ENTRY_BYTES: usize = 60;
const KEYS: usize = 100_000;

/// Runs all measurements and returns a table.
///
/// # Errors
/// A server is not installed or fails.
pub(crate) fn measure() -> Result<String> {
    let runtime = Runtime::new().context("no runtime")?;
    let mut page = String::from("| measured | figure |\n|---|---|\n");
    runtime.block_on(leases(&mut page))?;
    for replicas in [1, 3] {
        log(&runtime, replicas, &mut page)?;
    }
    runtime.block_on(keys(&mut page))?;
    Ok(page)
}

/// Lease transactions of many nodes at once, each with its own connection and different keys.
async fn leases(page: &mut String) -> Result<()> {
    let server = Postgres::start_durable()?;
    let url = server.create_database("scale")?;
    for (nodes, rows) in [(1_u32, 1_u32), (16, 1), (16, 16), (8, 512)] {
        let counted = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for node in 0..nodes {
            let store = Store::connect(&url).await?;
            let counted = Arc::clone(&counted);
            tasks.spawn(async move {
                let begun = Instant::now();
                let mut turn = 0_u32;
                while begun.elapsed() < ROUND {
                    let asks: Vec<_> = (0..rows).map(|row| ask(node, row, turn)).collect();
                    store.lease(&asks).await?;
                    counted.fetch_add(1, Ordering::Relaxed);
                    turn += 1;
                }
                store.close().await;
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.context("a node ended early")??;
        }
        let transactions = counted.load(Ordering::Relaxed) / ROUND.as_secs();
        let leased = transactions * u64::from(rows);
        writeln!(
            page,
            "| PostgreSQL, {nodes} nodes, {rows} leases in a transaction | {transactions} transactions/s, {leased} leases/s |"
        )?;
    }
    Ok(())
}

/// A lease request for a key that only this node uses; the minute changes every 60th turn.
fn ask(node: u32, row: u32, turn: u32) -> LeaseRequest {
    LeaseRequest {
        meter_id: format!("key-{node}-{row}-{}", turn % 60).into(),
        window: Window::Minute,
        start_ms: i64::from(turn / 60) * 60_000,
        limit: 60,
        divisor: 4,
        lease_max: 10_000,
        least: 1,
    }
}

/// Appends to a log on these servers, one batch after the other like the writer, and reads it back.
fn log(runtime: &Runtime, replicas: usize, page: &mut String) -> Result<()> {
    let nats = Nats::start(replicas)?;
    let mut log = open(runtime, &nats, replicas)?;
    let payload = [7_u8; ENTRY_BYTES];
    for batch in [1_usize, 100, 5000] {
        let (begun, before) = (Instant::now(), log.bytes());
        let mut batches = 0_u64;
        while begun.elapsed() < ROUND {
            log.append(0, std::iter::repeat_n((1, &payload[..]), batch))?;
            batches += 1;
        }
        let entries = batches * u64::try_from(batch)?;
        let bytes = (log.bytes() - before) / entries.max(1);
        let (appends, entries) = (batches / ROUND.as_secs(), entries / ROUND.as_secs());
        writeln!(
            page,
            "| JetStream, {replicas} replicas, {batch} changes in a batch | {appends} batches/s, {entries} changes/s, {bytes} bytes a change |"
        )?;
    }
    let begun = Instant::now();
    let mut read = 0_u64;
    for entry in log.read_from(log.first_seq())? {
        entry?;
        read += 1;
        if begun.elapsed() >= ROUND {
            break;
        }
    }
    let millis = u64::try_from(begun.elapsed().as_millis())?.max(1);
    writeln!(
        page,
        "| JetStream, {replicas} replicas, one reader | {} changes/s |",
        read * 1000 / millis
    )?;
    Ok(())
}

/// Servers that have just started need a moment to elect a leader.
fn open(runtime: &Runtime, nats: &Nats, replicas: usize) -> Result<StreamLog> {
    let place = StreamLocation {
        url: nats.url(),
        name: "scale".into(),
        replicas: Some(replicas),
        entry_bytes_max: 1 << 20,
    };
    let begun = Instant::now();
    loop {
        match StreamLog::open(runtime.handle(), &place) {
            Ok(log) => return Ok(log),
            Err(error) if begun.elapsed() > Duration::from_secs(60) => return Err(error.into()),
            Err(_) => runtime.block_on(tokio::time::sleep(Duration::from_millis(200))),
        }
    }
}

/// Memory of a node for each key.
async fn keys(page: &mut String) -> Result<()> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let store = Store::open(folder.path().join("accounts.db")).await?;
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_796_083_110)));
    let registry = Registry::new(store.clone(), Arc::clone(&clock) as Arc<dyn domain::Clock>);
    for _ in 0..KEYS / 10_000 {
        registry
            .create_keys(&NewKey::of_kind(KeyKind::Production), 10_000, &Actor::command_line())
            .await?;
    }
    let before = shell::resident_bytes(std::process::id())?;
    let begun = Instant::now();
    let (accounts, worker) = Accounts::load(store, clock).await?;
    let took = begun.elapsed().as_millis();
    let each =
        shell::resident_bytes(std::process::id())?.saturating_sub(before) / u64::try_from(KEYS)?;
    writeln!(page, "| {KEYS} keys in memory | {each} bytes each, read in {took} ms |")?;
    drop((accounts, worker));
    Ok(())
}

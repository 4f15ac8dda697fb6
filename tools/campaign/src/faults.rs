//! `cargo xtask faults`: a cluster under load with one fault at a time; then everything that its clients saw is
//! checked against the promises.
//!
//! See `docs/operations/faults.md`. The parts: [`cluster_setup`] is the cluster, [`fault`] the list of faults,
//! [`load`] the clients, [`record`] their observations, [`check`] the rules. Only processes that the campaign itself
//! has ended are restarted.

mod builds;
mod check;
mod cluster_setup;
mod compaction;
mod fault;
mod load;
mod market;
mod past;
mod proxies;
mod record;
mod report;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cluster::{
        self,
        http::Client,
        layout::ClusterLayout,
        ready_nodes,
        unit::{APIS, NATS, NODES, Unit},
    },
    faults::{
        builds::Builds,
        check::{Finding, ObservedLog},
        cluster_setup::TestCluster,
        compaction::Orders,
        fault::Fault,
        load::{Credentials, Load, LoadContext, STATUS},
        record::{Episode, Journal, Kind, now_ms},
    },
};
use shell::{random::Random, repository::Repository, servers};

/// Maximum time of a full recovery after a fault.
const CATCH_UP_MAX: Duration = Duration::from_secs(60);
const MINUTE: Duration = Duration::from_secs(60);
/// Time that PostgreSQL takes to start, and nodes to reconnect.
const DATABASE_START: Duration = Duration::from_secs(8);
/// Above the priority of interactive programs (0); inherited by every part of the cluster and every client.
const PRIORITY: i32 = -10;
/// Pause between two faults.
const CALM: Duration = Duration::from_secs(2);
/// Maximum age of a current snapshot; one is cut every second.
const SNAPSHOT_AGE_MAX_MS: i64 = 5000;
const GROUPED: &str = "/v1/sports/mma/odds?group_by=bout&odds_format=decimal";
const WHOLE: [&str; 2] = [
    "/v1/sports/mma/odds?odds_format=decimal&limit=500",
    "/v1/sports/tennis/odds?odds_format=decimal&limit=500",
];

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent of each other"
)]
pub(crate) struct Options {
    /// Duration of the faults in minutes
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Seed of the order of faults and of the clients' choices; the same seed gives the same campaign
    #[arg(long)]
    seed: Option<u64>,
    /// Only faults whose names contain one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Run each fault once, in the order of `--list`, however long it takes
    #[arg(long)]
    once: bool,
    /// Run the most significant faults once, in a fixed order
    #[arg(long, conflicts_with = "only")]
    short: bool,
    /// Another build of `linesman`: two nodes of five run this one, the others that, and nodes are exchanged
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// Print the names of all faults
    #[arg(long)]
    list: bool,
    /// Check only what must never happen, and not what depends on the speed of the machine
    #[arg(long)]
    ignore_timing: bool,
    /// Use the program that the tests have built
    #[arg(long, hide = true)]
    with_tests: bool,
}

pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let repository = if options.with_tests { &repository.with_tests() } else { repository };
    run_judged(repository, options, |finding| !(options.ignore_timing && finding.is_timed))
}

fn run_judged(
    repository: &Repository,
    options: &Options,
    counts: impl Fn(&Finding) -> bool,
) -> Result<()> {
    let mut plan = if options.short { fault::short() } else { fault::all() };
    if options.beside.is_some() {
        plan.extend(fault::exchanges());
    }
    if options.list {
        let names: Vec<String> = plan.iter().map(ToString::to_string).collect();
        return shell::print(&format!("{}\n", names.join("\n")));
    }
    let seed = options.seed.unwrap_or_else(|| now_ms().unsigned_abs() % 1_000_000);
    if !options.only.is_empty() {
        plan.retain(|fault| {
            options.only.iter().any(|part| fault.to_string().contains(part.as_str()))
        });
        ensure!(!plan.is_empty(), "no fault has such a name; --list prints them");
    } else {
        // NATS then removes the log by itself (docs/operations/faults.md), so this fault must be named explicitly.
        plan.retain(|fault| *fault != Fault::DiskFull(None));
    }
    let time = Duration::from_secs(60 * options.minutes);
    let once = options.short || options.once;
    let plan = Plan { seed, faults: plan, time, once, beside: options.beside.clone() };
    let findings = campaign(repository, &plan)?;
    let broken = findings.iter().filter(|finding| counts(finding) && !finding.holds()).count();
    ensure!(
        broken == 0,
        "{broken} rules are broken (seed {seed}); see {}",
        folder(repository)?.display()
    );
    Ok(())
}

#[derive(Debug)]
struct Plan {
    seed: u64,
    faults: Vec<Fault>,
    time: Duration,
    /// Once in this order, rather than shuffled until the time is over.
    once: bool,
    /// Another build.
    beside: Option<PathBuf>,
}

fn folder(repository: &Repository) -> Result<PathBuf> {
    Ok(repository.target()?.join("faults"))
}

fn campaign(repository: &Repository, plan: &Plan) -> Result<Vec<Finding>> {
    servers::ensure_cluster_installed(repository)?;
    if !servers::try_install(repository, cluster_setup::CLOCK_PACKAGE) {
        shell::say("   libfaketime is not installed: no clock will be stepped");
    }
    shell::say("building the program");
    let (program, reader) = build(repository)?;
    // Compilers on the same machine must not starve it: a node that is isolated for five seconds must refuse keys.
    if rustix::process::setpriority_process(None, PRIORITY).is_err() {
        shell::say("   only root can raise the priority: run nothing else on this machine");
    }
    let folder = folder(repository)?;
    cluster_setup::clear(&folder)?;
    shell::say(&format!("seed {}: setting up a cluster in {}", plan.seed, folder.display()));
    let builds = Builds::copy(&folder, &program, plan.beside.as_deref())?;
    let mut cluster = TestCluster::set_up(&folder.join("cluster"), builds, plan.seed)?;
    let nats = cluster.layout.nats()?.to_string();
    shell::say(&format!("   the log is kept by {nats}"));
    let context = LoadContext::new(cluster.layout.clone(), Journal::new(&folder)?);
    let stop = Arc::new(AtomicBool::new(false));
    let (layout, stopped) = (cluster.layout.clone(), Arc::clone(&stop));
    let watch = thread::spawn(move || {
        ready_nodes::keep_nodes(&layout, || !stopped.load(Ordering::Relaxed));
    });
    let credentials = Credentials::create(&context)?;
    let judge = Judge { key: credentials.steady.clone() };
    let mut load = Load::begin(&context, &credentials, plan.seed)?;
    judge.wait_until_full(&cluster.layout).context("the cluster does not start")?;
    load.begin_to_read(&credentials, plan.seed)?;
    let broken = run_faults(plan, &mut cluster, &context, &judge);
    load.end()?;
    let compacted = broken?;
    let read = || read_log(&reader, &cluster.layout, &folder);
    let (log, last) = judge.wait_for_all(&cluster.layout, read);
    let records = context.journal.finish()?;
    let history = past::judge(&cluster.layout, &judge.key, &records, log.entries);
    stop.store(true, Ordering::Relaxed);
    watch.join().map_err(|_| anyhow!("the thread that watches the nodes has failed"))?;
    let mut findings = check::all(&records, &log, cluster.builds.count());
    findings.push(last);
    findings.extend(history);
    findings.push(compaction::happened(&compacted));
    let about = format!("{}{nats}\nseed {}\n", cluster.builds.tell()?, plan.seed);
    report::tell(&folder, &about, &records, &findings)?;
    Ok(findings)
}

/// Runs the faults, and counts the archive merges carried out meanwhile.
fn run_faults(
    plan: &Plan,
    cluster: &mut TestCluster,
    context: &LoadContext,
    judge: &Judge,
) -> Result<compaction::Count> {
    let begun = Instant::now();
    let mut compacted = compaction::Count::default();
    let mut random = Random::new(plan.seed);
    let possible = |fault: &Fault| match fault {
        Fault::DiskFull(_) => cluster.has_disks(),
        Fault::Clock(..) => cluster.has_clocks(),
        Fault::Kill(_)
        | Fault::Stop(_)
        | Fault::Exchange(_)
        | Fault::Pause(_)
        | Fault::Link(..)
        | Fault::NoLog
        | Fault::NoArchive => true,
    };
    let (faults, left_out): (Vec<Fault>, Vec<Fault>) =
        plan.faults.iter().copied().partition(possible);
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        shell::say(&format!("   not possible here, and left out: {}", names.join(", ")));
    }
    ensure!(!faults.is_empty(), "none of these faults is possible on this machine");
    loop {
        let mut round = faults.clone();
        if !plan.once {
            random.shuffle(&mut round);
        }
        for fault in round {
            shell::sleep(CALM);
            if !plan.once && begun.elapsed() > plan.time {
                return Ok(compacted);
            }
            let orders = Orders::give(&cluster.layout)?;
            let episode = run_fault(fault, cluster, context, judge)?;
            compacted.faults += 1;
            compacted.carried_out += orders.carried_out()?;
            let goes_on = episode.caught_up_ms.is_some();
            context.journal.note("fault", episode, |records| &mut records.episodes);
            // An unhealed fault would be blamed on every fault that follows.
            if !goes_on {
                shell::say(&format!("   no recovery from `{fault}`: the campaign ends here"));
                return Ok(compacted);
            }
        }
        if plan.once {
            return Ok(compacted);
        }
    }
}

fn run_fault(
    fault: Fault,
    cluster: &mut TestCluster,
    context: &LoadContext,
    judge: &Judge,
) -> Result<Episode> {
    wait_for_the_minute(fault);
    shell::say(&format!("   {fault}"));
    let began_ms = now_ms();
    fault.inject(cluster).with_context(|| format!("`{fault}` cannot be done"))?;
    shell::sleep(fault.lasts());
    fault.heal(cluster).with_context(|| format!("`{fault}` cannot be healed"))?;
    let healed_ms = now_ms();
    let caught_up = judge.wait_until_whole(&cluster.layout);
    if let Err(error) = &caught_up {
        shell::say(&format!("   {error:#}"));
    }
    for unit in cluster.take_ended() {
        let words = cluster::last_output(&cluster.layout, unit);
        let exit = format!("{unit} ended during `{fault}`; {words}");
        context.journal.note("exit", exit, |records| &mut records.exits);
    }
    let caught_up_ms = caught_up.is_ok().then(now_ms);
    Ok(Episode { fault: fault.to_string(), kind: fault.kind(), began_ms, healed_ms, caught_up_ms })
}

/// Without the database a key can only use the rest of its node's lease for the minute, so such a fault must end
/// within one.
fn wait_for_the_minute(fault: Fault) {
    if fault.kind() != Kind::NoDatabase {
        return;
    }
    let needed = fault.lasts() + DATABASE_START;
    let into = Duration::from_millis(now_ms().rem_euclid(60_000).unsigned_abs());
    if into + needed > MINUTE {
        shell::sleep(MINUTE.saturating_sub(into) + CALM);
    }
}

/// Checks the state of the cluster from outside.
#[derive(Debug)]
struct Judge {
    key: String,
}

impl Judge {
    /// Waits until every node is ready, every api node reports ok and shows a current snapshot, and every server of
    /// the log has all of it.
    fn wait_until_whole(&self, layout: &ClusterLayout) -> Result<()> {
        let mut missing = String::new();
        let waited = shell::wait_until("all is as before", CATCH_UP_MAX, || {
            match self.find_missing(layout) {
                Some(found) => missing = found,
                None => return true,
            }
            false
        });
        waited.with_context(|| missing.clone())
    }

    /// Waits until every api node shows a price for every series.
    fn wait_until_full(&self, layout: &ClusterLayout) -> Result<()> {
        let all = market::all_series().len();
        shell::wait_until("every node shows every price", CATCH_UP_MAX, || {
            APIS.into_iter().all(|api| {
                let bodies = WHOLE.map(|path| self.ask(layout, api, path));
                let counts = bodies.iter().flatten().filter_map(Value::as_array).map(Vec::len);
                counts.sum::<usize>() == all
            })
        })
    }

    fn find_missing(&self, layout: &ClusterLayout) -> Option<String> {
        if let Some(node) = NODES.into_iter().find(|node| !cluster::is_ready(layout.port(*node))) {
            return Some(format!("{node} is not ready"));
        }
        for api in APIS {
            let status = self.ask(layout, api, STATUS);
            let said = status.as_ref().and_then(|status| status.get("status")?.as_str());
            if said != Some("ok") {
                return Some(format!("{api} says {said:?}"));
            }
            let shown = self.ask(layout, api, GROUPED);
            let at = shown.as_ref().and_then(|shown| shown.get("generated_at")?.as_str());
            let at: Option<Timestamp> = at.and_then(|at| at.parse().ok());
            let age_ms = at.map(|at| now_ms() - at.as_millisecond());
            if age_ms.is_none_or(|age_ms| age_ms.abs() > SNAPSHOT_AGE_MAX_MS) {
                return Some(format!("the snapshot of {api} is {age_ms:?} ms old"));
            }
        }
        // A fault of another server before this one has caught up would make two faults at once.
        NATS.into_iter().find_map(|nats| {
            cluster::nats_problem(layout, nats).map(|lack| format!("{nats} is not whole: {lack}"))
        })
    }

    fn ask(&self, layout: &ClusterLayout, api: Unit, path: &str) -> Option<Value> {
        let mut client = Client::new(layout.port(api), Duration::from_secs(2));
        let headers = format!("x-api-key: {}\r\nconnection: close\r\n", self.key);
        let answer = client.get(path, &headers).ok().filter(|answer| answer.status == 200)?;
        serde_json::from_slice(&answer.body).ok()
    }

    /// Waits until every api node shows everything in the log, now that the pushers have stopped; returns the log.
    ///
    /// A push that was given up may still be written, so the log is read again each time. A lost log breaks every rule
    /// that uses it; the other rules are checked all the same.
    fn wait_for_all(
        &self,
        layout: &ClusterLayout,
        read: impl Fn() -> Result<ObservedLog>,
    ) -> (ObservedLog, Finding) {
        let (mut log, mut finding, mut unread) = (ObservedLog::default(), Finding::default(), None);
        let waited = shell::wait_until("every node shows all", CATCH_UP_MAX, || {
            match read() {
                Ok(read) => (log, unread) = (read, None),
                Err(error) => unread = Some(error),
            }
            finding = check::ends_alike(&self.last_bodies(layout), &log);
            unread.is_none() && finding.holds()
        });
        if let Some(error) = unread {
            shell::say(&format!("   the log cannot be read at the end: {error:#}"));
        }
        if let Err(error) = waited {
            shell::say(&format!("   {error:#}"));
        }
        (log, finding)
    }

    /// The last bodies of each api node.
    fn last_bodies(&self, layout: &ClusterLayout) -> Vec<(Unit, Value)> {
        let all = APIS.into_iter().flat_map(|api| WHOLE.map(|path| (api, path)));
        all.map(|(api, path)| (api, self.ask(layout, api, path).unwrap_or_default())).collect()
    }
}

/// The program, and the reader of its log; of the whole workspace, as the tests are built, because each set of
/// features is built separately.
fn build(repository: &Repository) -> Result<(PathBuf, PathBuf)> {
    let words = ["build", "-q", "--workspace", "--bin", "linesman", "--example", "log_entries"];
    shell::run(shell::cargo(repository).args(words))?;
    let folder = repository.target()?.join("debug");
    Ok((folder.join("linesman"), folder.join("examples").join("log_entries")))
}

/// Prints the live world's log into a file, and reads that.
fn read_log(reader: &Path, layout: &ClusterLayout, folder: &Path) -> Result<ObservedLog> {
    let mut command = shell::command(reader, folder);
    let text = shell::output(command.args([&layout.nats_url(), "live"]))?;
    fs::write(folder.join("log.jsonl"), &text)?;
    ObservedLog::read(&text)
}

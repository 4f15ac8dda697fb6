//! `cargo xtask cluster up|down`: a whole cluster on one machine, for development.
//!
//! Three NATS servers, PostgreSQL, two ingest and three api nodes, and nginx in front of these, all in
//! `target/cluster`. `up` starts the processes that are not running, so it can be repeated, even after an
//! interruption.

pub(crate) mod http;
pub(crate) mod layout;
mod nginx;
pub(crate) mod process;
pub(crate) mod ready_nodes;
pub(crate) mod unit;

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use test_servers::GroupMember;

use crate::cluster::{
    http::Client,
    layout::{ClusterLayout, ClusterOptions, Lifetime},
    unit::{ALL, NATS, NODES, Unit},
};
use shell::{repository::Repository, servers};

/// Maximum time until everything serves, on a machine with other load.
const START_TIME_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start the cluster, or its missing parts, and print its addresses
    Up,
    /// Stop the cluster and remove all its data
    Down,
    /// Update the list of nodes behind nginx; `up` starts this
    #[command(hide = true)]
    Watch { folder: PathBuf },
}

pub(crate) fn run(repository: &Repository, verb: &Verb) -> Result<()> {
    match verb {
        Verb::Up => up(repository),
        Verb::Down => down(repository),
        Verb::Watch { folder } => watch(folder),
    }
}

fn folder(repository: &Repository) -> Result<PathBuf> {
    Ok(repository.target()?.join("cluster"))
}

fn options() -> ClusterOptions {
    ClusterOptions {
        lifetime: Lifetime::UntilStopped,
        settings: String::new(),
        environment: Vec::new(),
        advertises: true,
        syncs: true,
    }
}

fn up(repository: &Repository) -> Result<()> {
    servers::ensure_cluster_installed(repository)?;
    shell::say("building the program");
    let built = repository.build_program()?;
    let folder = folder(repository)?;
    fs::create_dir_all(&folder)?;
    // A copy, so that the next build does not change a running cluster.
    let program = folder.join("linesman");
    if !program.is_file() {
        let fresh = folder.join("linesman.fresh");
        fs::copy(built, &fresh)?;
        fs::rename(fresh, &program)?;
    }
    let layout = ClusterLayout::at(&folder, &program, options())?;
    start_all(&layout)?;
    wait_for_nats_group(&layout, |nats| {
        process::end(&layout, nats)?;
        layout.start(nats).map(drop)
    })?;
    start_watch(&layout)?;
    wait_until_ready(&layout)?;
    shell::print(&greeting(&layout)?)
}

/// Starts the processes that are not running; the database is created once PostgreSQL answers.
fn start_all(layout: &ClusterLayout) -> Result<()> {
    for unit in ALL {
        if process::find(layout, unit).is_none() {
            shell::say(&format!("starting {unit}"));
            layout.prepare(unit)?;
            layout.start(unit)?;
        }
        if unit == Unit::Postgres {
            wait_for_postgres(layout)?;
            layout.create_database()?;
        }
    }
    Ok(())
}

pub(crate) fn wait_for_postgres(layout: &ClusterLayout) -> Result<()> {
    let waited = shell::wait_until("PostgreSQL answers", START_TIME_MAX, || {
        layout
            .ask_postgres("pg_isready")
            .and_then(|mut ask| Ok(ask.arg("-q").output()?.status.success()))
            .unwrap_or(false)
    });
    waited.with_context(|| last_output(layout, Unit::Postgres))
}

/// Waits until the NATS servers have formed a group; restarts missing ones.
pub(crate) fn wait_for_nats_group(
    layout: &ClusterLayout,
    mut start_again: impl FnMut(Unit) -> Result<()>,
) -> Result<()> {
    let member =
        |nats: Unit| GroupMember { name: nats.to_string(), monitor: layout.health_port(nats) };
    test_servers::wait_for_nats_group(&NATS.map(member), |place| {
        let nats = *NATS.get(place).context("there is no such server")?;
        shell::say(&format!("{nats} is missing from the group; restarting it"));
        start_again(nats)
    })
}

/// Waits until every node serves.
///
/// # Errors
/// A node does not; the message has its last output.
pub(crate) fn wait_until_ready(layout: &ClusterLayout) -> Result<()> {
    for nats in NATS {
        let answers = || TcpStream::connect(("127.0.0.1", layout.port(nats))).is_ok();
        shell::wait_until(&format!("{nats} answers"), START_TIME_MAX, answers)
            .with_context(|| last_output(layout, nats))?;
    }
    for node in NODES.into_iter().chain([Unit::Nginx]) {
        let is_ready = || is_ready(layout.port(node));
        shell::wait_until(&format!("{node} is ready"), START_TIME_MAX, is_ready)
            .with_context(|| last_output(layout, node))?;
    }
    Ok(())
}

/// Whether the node at a port is ready.
pub(crate) fn is_ready(port: u16) -> bool {
    let mut client = Client::new(port, Duration::from_secs(2));
    client.get("/readyz", "connection: close\r\n").is_ok_and(|answer| answer.status == 200)
}

/// The problem that a NATS server reports; `None` once its copies of all streams are current.
pub(crate) fn nats_problem(layout: &ClusterLayout, nats: Unit) -> Option<String> {
    let mut client = Client::new(layout.health_port(nats), Duration::from_secs(2));
    match client.get("/healthz?details=true", "connection: close\r\n") {
        Ok(answer) if answer.status == 200 => None,
        Ok(answer) => problem_in(&answer.body),
        Err(error) => Some(error.to_string()),
    }
}

/// The problem in a health report. Missing consumers are ignored: nodes create new ones, and 2.10 reports for minutes
/// those that were requested while it was cut off.
fn problem_in(health: &[u8]) -> Option<String> {
    let report = || String::from_utf8_lossy(health).into_owned();
    let said: Value = serde_json::from_slice(health).unwrap_or_default();
    // Servers before 2.10 report only the first problem, without its type.
    let Some(errors) = said.get("errors").and_then(Value::as_array) else { return Some(report()) };
    let of_consumer = |error: &Value| error.get("type").is_some_and(|it| it == "CONSUMER");
    (errors.is_empty() || !errors.iter().all(of_consumer)).then(report)
}

/// The last output of a process.
pub(crate) fn last_output(layout: &ClusterLayout, unit: Unit) -> String {
    let output = layout.folder_of(unit).join("output");
    let text = fs::read_to_string(&output).unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().rev().take(10).collect();
    lines.reverse();
    format!("{} ends with:\n{}", output.display(), lines.join("\n"))
}

/// Starts a copy of this program that updates the list of nodes behind nginx.
fn start_watch(layout: &ClusterLayout) -> Result<()> {
    let home = layout.folder.join("watch");
    if watch_pid(layout).is_some() {
        return Ok(());
    }
    fs::create_dir_all(&home)?;
    let program = layout.folder.join("watcher");
    let fresh = layout.folder.join("watcher.fresh");
    fs::copy(std::env::current_exe().context("this program does not know where it is")?, &fresh)?;
    fs::rename(fresh, &program)?;
    let output = fs::File::options().create(true).append(true).open(home.join("output"))?;
    let mut command = Command::new("setsid");
    command
        .args(["sh", "-c", "echo $$ > pid; exec \"$@\"", "sh"])
        .arg(program)
        .args(["cluster", "watch"])
        .arg(&layout.folder)
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    command.spawn().context("cannot start the process that watches the nodes")?;
    Ok(())
}

fn watch_pid(layout: &ClusterLayout) -> Option<Pid> {
    process::find_in(layout, &layout.folder.join("watch"))
}

fn watch(folder: &Path) -> Result<()> {
    let layout = ClusterLayout::at(folder, &folder.join("linesman"), options())?;
    ready_nodes::keep_nodes(&layout, || true);
    Ok(())
}

fn down(repository: &Repository) -> Result<()> {
    let folder = folder(repository)?;
    if !folder.is_dir() {
        shell::say("no cluster is up");
        return Ok(());
    }
    let layout = ClusterLayout::at(&folder, &folder.join("linesman"), options());
    // Without its file of ports nothing was started.
    if let Ok(layout) = layout {
        if let Some(pid) = watch_pid(&layout) {
            process::signal(pid, Signal::TERM)?;
        }
        for unit in ALL.into_iter().rev() {
            process::end(&layout, unit)?;
        }
    }
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    shell::say("the cluster is removed");
    Ok(())
}

/// A secret that is created once and kept in the cluster's folder.
fn secret(layout: &ClusterLayout, name: &str, words: &[&str]) -> Result<String> {
    let file = layout.folder.join(name);
    if let Ok(kept) = fs::read_to_string(&file) {
        return Ok(kept);
    }
    let made = shell::output(&mut layout.verb(words)?)?.trim().to_owned();
    ensure!(!made.is_empty(), "`linesman {}` printed nothing", words.join(" "));
    fs::write(&file, &made)?;
    Ok(made)
}

fn greeting(layout: &ClusterLayout) -> Result<String> {
    let kind = |kind| ["keys", "create", "--name", "cluster", "--kind", kind];
    let sandbox = secret(layout, "sandbox-key", &kind("sandbox"))?;
    let production = secret(layout, "production-key", &kind("production"))?;
    let token = secret(layout, "feed-token", &["feeds", "create", "cluster"])?;
    let front = format!("http://127.0.0.1:{}", layout.port(Unit::Nginx));
    let mut text =
        format!("\nThe cluster is up; all its data is in {}\n\n", layout.folder.display());
    text += &format!("  service         {front}   (nginx, before the api nodes)\n");
    for node in NODES {
        let name = node.to_string();
        let (port, metrics) = (layout.port(node), layout.side_port(node));
        text += &format!(
            "  {name:<15} http://127.0.0.1:{port}   (metrics: http://127.0.0.1:{metrics}/metrics)\n"
        );
    }
    text += &format!(
        "  postgres        postgres://postgres@127.0.0.1:{}/linesman\n",
        layout.port(Unit::Postgres)
    );
    text += &format!("  nats            {}   ({})\n\n", layout.nats_url(), layout.nats()?);
    text += &format!(
        "  sandbox key     {sandbox}\n  production key  {production}\n  feed token      {token}\n\n"
    );
    text += &format!("Try it:\n  curl -H 'X-API-Key: {sandbox}' {front}/v1/sports\n\n");
    text += "End it:\n  cargo xtask cluster down\n";
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_misses_only_consumers_is_whole() {
        let consumer =
            r#"{"type":"CONSUMER","account":"$G","stream":"s","consumer":"c","error":"not found"}"#;
        let stream = r#"{"type":"STREAM","account":"$G","stream":"s","error":"not current"}"#;
        let health = |errors: &str| {
            format!(r#"{{"status":"error","status_code":503,"errors":[{errors}]}}"#).into_bytes()
        };
        assert_eq!(problem_in(&health(&format!("{consumer},{consumer}"))), None);
        assert!(
            problem_in(&health(&format!("{consumer},{stream}"))).unwrap().contains("not current")
        );
        assert!(problem_in(&health("")).is_some());
    }

    #[test]
    fn a_server_that_does_not_say_what_it_misses_is_not_whole() {
        let old = r#"{"status":"unavailable","error":"JetStream stream 's' is not current"}"#;
        assert_eq!(problem_in(old.as_bytes()).unwrap(), old);
        assert!(problem_in(b"").is_some());
    }
}

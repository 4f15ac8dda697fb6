//! Processes of a cluster, also of an earlier run: found by their pid files, stopped by their pids.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::{layout::ClusterLayout, unit::Unit};

/// Maximum time of an orderly stop.
const END_TIME_MAX: Duration = Duration::from_secs(30);

/// The running process of a part, if any. A reused pid does not count: our processes run in the cluster's folder.
pub(crate) fn find(layout: &ClusterLayout, unit: Unit) -> Option<Pid> {
    find_in(layout, &layout.folder_of(unit))
}

/// The same for the folder that a process was started in.
pub(crate) fn find_in(layout: &ClusterLayout, folder: &Path) -> Option<Pid> {
    let text = fs::read_to_string(folder.join("pid")).ok()?;
    let pid: i32 = text.trim().parse().ok()?;
    let stands = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    stands.starts_with(fs::canonicalize(&layout.folder).ok()?).then(|| Pid::from_raw(pid))?
}

pub(crate) fn signal(pid: Pid, signal: Signal) -> Result<()> {
    kill_process(pid, signal)
        .with_context(|| format!("process {} cannot be signalled", pid.as_raw_nonzero()))
}

/// Stops a process in an orderly way, or kills it after a while.
pub(crate) fn end(layout: &ClusterLayout, unit: Unit) -> Result<()> {
    let Some(pid) = find(layout, unit) else { return Ok(()) };
    // A paused process does not receive other signals.
    signal(pid, Signal::CONT)?;
    signal(pid, if unit == Unit::Postgres { Signal::INT } else { Signal::TERM })?;
    let begun = Instant::now();
    while test_kill_process(pid).is_ok() && !is_zombie(pid) {
        if begun.elapsed() > 2 * END_TIME_MAX {
            bail!("{unit} (process {}) does not end", pid.as_raw_nonzero());
        }
        if begun.elapsed() > END_TIME_MAX {
            signal(pid, Signal::KILL)?;
        }
        shell::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A process and its children, parents first; PostgreSQL works in children.
pub(crate) fn family(pid: Pid) -> Vec<Pid> {
    let mut family = vec![pid];
    let Ok(entries) = fs::read_dir("/proc") else { return family };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> =
        pids.filter_map(|pid| Some((pid, stat_field(pid, 1)?.parse().ok()?))).collect();
    let mut seen = 0;
    while let Some(parent) = family.get(seen).map(|pid| pid.as_raw_nonzero().get()) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        family.extend(children.filter_map(|(child, _)| Pid::from_raw(*child)));
        seen += 1;
    }
    family
}

fn is_zombie(pid: Pid) -> bool {
    stat_field(pid.as_raw_nonzero().get(), 0).is_none_or(|state| state == "Z")
}

/// A field of `/proc/PID/stat` after the name, which may contain any character.
fn stat_field(pid: i32, index: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    rest.split(' ').nth(index).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_family_has_the_children_of_children() {
        let script = "sh -c 'sleep 60; true' & wait";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        shell::wait_until("three processes", Duration::from_secs(30), || family(pid).len() == 3)
            .unwrap();
        for pid in family(pid) {
            signal(pid, Signal::KILL).unwrap();
        }
        child.wait().unwrap();
    }
}

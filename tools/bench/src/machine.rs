//! Process statistics from the kernel, and the assignment of cores.

use std::fs;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Core of the servers under test.
pub(super) const SERVER_CORE: usize = 0;
/// Core of this program.
const OWN_CORE: usize = 1;
/// Clock ticks a second in `/proc`; the same on every Linux.
const TICKS: f64 = 100.0;

/// Keeps this program off the servers' core.
pub(super) fn pin_self() -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(OWN_CORE);
    sched_setaffinity(None, &cores).context("this needs a machine with at least two cores")?;
    // Ten thousand connections need as many descriptors.
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum })
        .context("the limit of open files cannot be raised")
}

/// Processor time of a process and its children so far, in seconds.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut ticks = 0.0;
    for pid in family(pid)? {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name may contain spaces; the fields after its bracket are numbers.
        let rest = stat.rsplit_once(')').context("/proc is not as expected")?.1;
        for field in rest.split_whitespace().skip(11).take(2) {
            ticks += field.parse::<f64>()?;
        }
    }
    Ok(ticks / TICKS)
}

/// The same in nanoseconds, for durations below a tick. Time of ended threads is not included.
pub(super) fn running_seconds(pid: u32) -> Result<f64> {
    let mut seconds = 0.0;
    for pid in family(pid)? {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end meanwhile.
            let Ok(stat) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
            let nanos = stat.split_whitespace().next().context("/proc is not as expected")?;
            seconds += nanos.parse::<f64>()? / 1e9;
        }
    }
    Ok(seconds)
}

/// A process and its children.
fn family(pid: u32) -> Result<Vec<u32>> {
    let mut family = vec![pid];
    family.extend(children(pid)?);
    Ok(family)
}

pub(super) fn children(pid: u32) -> Result<Vec<u32>> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    children.split_whitespace().map(|child| Ok(child.parse()?)).collect()
}

/// Sends a process the signal to terminate.
pub(super) fn terminate(pid: u32) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(pid)?).context("no such process")?;
    kill_process(pid, Signal::TERM).context("cannot end a process")
}

//! A second measurement with a well-known generator. It copies every body, so it saturates before a fast server does,
//! and only processor time is taken from it.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::machine::cpu_seconds;
use super::rounds::median;

/// A server, its path and its process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) at: SocketAddr,
    pub(super) path: &'a str,
    pub(super) pid: u32,
}

/// The reference's processor time per request, divided by the service's.
pub(super) fn cpu_ratio(
    folder: &Path,
    key: &str,
    service: Target<'_>,
    measure: Target<'_>,
) -> Result<f64> {
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let (ours, theirs) = (cpu_us(folder, key, service)?, cpu_us(folder, key, measure)?);
        ratios.push(theirs / ours);
    }
    Ok(median(ratios))
}

fn cpu_us(folder: &Path, key: &str, target: Target<'_>) -> Result<f64> {
    let before = cpu_seconds(target.pid)?;
    let mut wrk = shell::command("wrk", folder);
    wrk.args(["-t1", "-c64", "-d1s", "-H"]).arg(format!("X-API-Key: {key}"));
    let said = shell::output(wrk.arg(format!("http://{}{}", target.at, target.path)))?;
    let cpu = cpu_seconds(target.pid)? - before;
    let done = said.lines().find_map(|line| line.trim().split_once(" requests in"));
    let done: f64 = done.context("wrk does not say how many")?.0.parse()?;
    Ok(cpu * 1e6 / done)
}

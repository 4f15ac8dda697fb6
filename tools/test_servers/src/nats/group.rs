//! Waits until new servers have formed one group.
//!
//! Seen with 2.10.27, about one time in fifty on a busy machine: two of three new servers elect a leader and never add
//! the third, although all are connected and report that they are healthy. Then no stream can be placed on three
//! servers (`no suitable peers for placement`). The missing one joins after a restart.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::pause;

/// Maximum time for servers to form one group, including restarts.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum time for a server to be missing from a group with a leader: normally a fraction of a second.
const LEFT_OUT_MAX: Duration = Duration::from_secs(4);
/// Maximum time for an answer, and maximum size of it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A server's name in the group, and its monitoring port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// Its `server_name`.
    pub name: String,
    /// Its `http_port`.
    pub monitor: u16,
}

/// Waits until new servers have formed one group; restarts missing ones, given by index.
///
/// # Errors
/// They do not form one group, or a server cannot be restarted.
pub fn wait_for_nats_group(
    members: &[GroupMember],
    mut start_again: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let begun = Instant::now();
    let mut whole_by = Instant::now() + LEFT_OUT_MAX;
    loop {
        let group =
            members.iter().find_map(|member| ask(member.monitor).ok().as_ref().and_then(led));
        let Some(group) = group else {
            // Without a leader no server counts as missing.
            whole_by = Instant::now() + LEFT_OUT_MAX;
            fail_after(begun, "no leader")?;
            pause();
            continue;
        };
        let left_out: Vec<usize> = (0..members.len())
            .filter(|place| members.get(*place).is_some_and(|it| !group.contains(&it.name)))
            .collect();
        if left_out.is_empty() {
            return Ok(());
        }
        fail_after(begun, &format!("only {group:?} belong to it"))?;
        if Instant::now() > whole_by {
            for place in left_out {
                start_again(place)?;
            }
            whole_by = Instant::now() + LEFT_OUT_MAX;
        }
        pause();
    }
}

fn fail_after(begun: Instant, how: &str) -> Result<()> {
    if begun.elapsed() > TIMEOUT {
        bail!("the NATS servers are no group after {} s: {how}", TIMEOUT.as_secs());
    }
    Ok(())
}

/// A server's own report.
fn ask(port: u16) -> Result<Value> {
    let mut stream = TcpStream::connect_timeout(
        &SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        ANSWER_TIME_MAX,
    )?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(b"GET /jsz HTTP/1.0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    Ok(serde_json::from_str(body)?)
}

/// The members of the group that a server leads, including itself; `None` if it is not the leader.
fn led(said: &Value) -> Option<BTreeSet<String>> {
    let group = said.get("meta_cluster")?;
    let name = |of: Option<&Value>| of.and_then(Value::as_str).map(str::to_owned);
    // Only the leader reports the others.
    let others = group.get("replicas")?.as_array()?;
    let here = |other: &&Value| other.get("offline").is_none_or(|offline| offline != true);
    let others = others.iter().filter(here).filter_map(|other| name(other.get("name")));
    Some(others.chain(name(group.get("leader"))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_who_leads_says_who_belongs_to_it() {
        let follows = json!({"meta_cluster": {"leader": "n0", "cluster_size": 2}});
        assert_eq!((led(&follows), led(&json!({}))), (None, None));
        let leads = json!({"meta_cluster": {"leader": "n0", "replicas": [
            {"name": "n2", "current": true},
            {"name": "n1", "current": false, "offline": true},
        ]}});
        assert_eq!(led(&leads), Some(BTreeSet::from(["n0".to_owned(), "n2".to_owned()])));
    }
}

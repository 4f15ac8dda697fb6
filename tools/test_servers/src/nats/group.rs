//! Whether servers that were started are the group that they should be.
//!
//! Seen with 2.10.27, about one time in fifty where the machine is busy: two of three new servers choose who leads and
//! never take in the third, though all of them are connected and call themselves healthy. Nothing can be placed
//! on three servers then (`no suitable peers for placement`). The one left out is taken in once it is started again.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::pause;

/// How long servers may take to become one group, with all that are started again for it.
const TIMEOUT: Duration = Duration::from_secs(90);
/// How long one may be left out by those who have chosen a leader: it takes a fraction of a second where it goes well.
const LEFT_OUT_MAX: Duration = Duration::from_secs(4);
/// How long a server may take to answer, and how long its answer may be.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A server as it is known to the others, and the port where it tells how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// Its `server_name`.
    pub name: String,
    /// Its `http_port`.
    pub monitor: u16,
}

/// Waits until new servers are one group; starts those again, by their place in the list, that are left out.
///
/// # Errors
/// They do not become one, or one cannot be started again.
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
            // Nobody leads yet, so nobody is left out.
            whole_by = Instant::now() + LEFT_OUT_MAX;
            fail_after(begun, "nobody leads them")?;
            pause();
            continue;
        };
        let left_out: Vec<usize> = (0..members.len())
            .filter(|place| members.get(*place).is_some_and(|it| !group.contains(&it.name)))
            .collect();
        if left_out.is_empty() {
            return Ok(());
        }
        fail_after(begun, &format!("only {group:?} are one"))?;
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

/// What a server says of itself.
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

/// The names of the group that a server leads, its own among them; `None` where another one leads, or nobody.
fn led(said: &Value) -> Option<BTreeSet<String>> {
    let group = said.get("meta_cluster")?;
    let name = |of: Option<&Value>| of.and_then(Value::as_str).map(str::to_owned);
    // Only who leads tells of the others.
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

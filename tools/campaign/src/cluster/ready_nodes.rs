//! The list of api nodes behind nginx.
//!
//! nginx only notices a dead node by a failed request. So [`keep_nodes`] queries every node's `/readyz`, writes the
//! list of those that are ready, and makes nginx reload it. If none is ready all stay listed: an old snapshot, marked
//! as old, is better than nothing.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::Result;
use rustix::process::Signal;

use super::{
    http::Client,
    layout::ClusterLayout,
    nginx::nodes_text,
    process,
    unit::{APIS, Unit},
};

/// Interval of the queries.
const WATCH_EVERY: Duration = Duration::from_millis(250);
/// Maximum time of a node's answer.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(750);
/// Successive failures after which a node is removed; one success restores it.
const FAILURES_MAX: u32 = 2;

/// Keeps the list of nodes behind nginx up to date.
pub(crate) fn keep_nodes(layout: &ClusterLayout, goes_on: impl Fn() -> bool) {
    let mut watch = Watch { failures: BTreeMap::new(), listed: APIS.to_vec() };
    while goes_on() {
        match watch.check(layout) {
            Ok(false) => {}
            Ok(true) => {
                let nodes: Vec<String> = watch.listed.iter().map(ToString::to_string).collect();
                shell::say(&format!("     behind nginx: {}", nodes.join(" ")));
            }
            Err(error) => shell::say(&format!("     {error:#}")),
        }
        shell::sleep(WATCH_EVERY);
    }
}

/// Successive failures of the nodes, and the nodes listed for nginx: all at first.
struct Watch {
    failures: BTreeMap<Unit, u32>,
    listed: Vec<Unit>,
}

impl Watch {
    /// Queries every node once and notifies nginx of changes; returns whether there were any.
    fn check(&mut self, layout: &ClusterLayout) -> Result<bool> {
        for api in APIS {
            // Through nginx's own link: a node that nginx cannot reach is removed, too.
            let mut client = Client::new(layout.port_from(Unit::Nginx, api), ANSWER_TIME_MAX);
            let is_ready = client
                .get("/readyz", "connection: close\r\n")
                .is_ok_and(|answer| answer.status == 200);
            let count = self.failures.entry(api).or_default();
            *count = if is_ready { 0 } else { count.saturating_add(1) };
        }
        let listed = choose(&self.failures);
        if listed == self.listed {
            return Ok(false);
        }
        let home = layout.folder_of(Unit::Nginx);
        fs::write(
            home.join("nodes.fresh"),
            nodes_text(&listed, |node| layout.port_from(Unit::Nginx, node)),
        )?;
        fs::rename(home.join("nodes.fresh"), home.join("nodes.conf"))?;
        if let Some(pid) = process::find(layout, Unit::Nginx) {
            process::signal(pid, Signal::HUP)?;
        }
        self.listed = listed;
        Ok(true)
    }
}

/// The nodes that are ready; all if none is.
fn choose(failures: &BTreeMap<Unit, u32>) -> Vec<Unit> {
    let is_ready = |api: &Unit| failures.get(api).copied().unwrap_or_default() < FAILURES_MAX;
    let ready: Vec<Unit> = APIS.into_iter().filter(is_ready).collect();
    if ready.is_empty() { APIS.to_vec() } else { ready }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_out_after_two_failures_and_all_are_in_where_none_is_ready() {
        let counts = |counts: [u32; 3]| APIS.into_iter().zip(counts).collect();
        assert_eq!(choose(&counts([0, 1, 0])), APIS);
        assert_eq!(choose(&counts([0, 2, 5])), [Unit::Api(1)]);
        assert_eq!(choose(&counts([2, 2, 9])), APIS);
    }
}

//! Has files of the archive put together while something is broken: in the minutes of a campaign no day ends, and few
//! parts add up.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result};

use super::check::Finding;
use crate::cluster::{layout::ClusterLayout, unit::INGESTS};

/// What was ordered of the nodes that may lead; whoever does carries it out, and the others refuse.
#[derive(Debug)]
pub(super) struct Orders(Vec<Child>);

impl Orders {
    pub(super) fn give(layout: &ClusterLayout) -> Result<Self> {
        let order = |node| {
            let mut verb = layout.verb_at(node, &["history", "compact"]);
            let child = verb.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            child.with_context(|| format!("cannot order anything of {node}"))
        };
        Ok(Self(INGESTS.into_iter().map(order).collect::<Result<_>>()?))
    }

    /// Waits for them, and says how many were carried out.
    pub(super) fn carried_out(self) -> Result<usize> {
        let mut done = 0;
        for mut order in self.0 {
            done += usize::from(order.wait().context("an order does not end")?.success());
        }
        Ok(done)
    }
}

/// That the rules of history were judged of an archive that was put together, too.
pub(super) fn happened(done: usize) -> Finding {
    let mut finding = Finding::new("files of the archive are put together beside faults");
    finding.figures = format!("{done} orders carried out");
    if done == 0 {
        finding.violate(|| "no order was carried out".to_owned());
    }
    finding
}

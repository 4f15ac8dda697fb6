//! Merges files of the archive during faults: a campaign lasts minutes, so no day ends and few parts accumulate.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result};

use super::check::Finding;
use crate::cluster::{layout::ClusterLayout, unit::INGESTS};

/// Faults after which at least one command must have been carried out: during a few, there may be no leader.
const FAULTS_MIN: usize = 3;

/// What was counted during a campaign.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) faults: usize,
    /// Commands that were carried out.
    pub(super) carried_out: usize,
}

/// Commands sent to all possible leaders; the leader carries them out, and the others refuse.
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

    /// Waits for the commands, and returns the number carried out.
    pub(super) fn carried_out(self) -> Result<usize> {
        let mut done = 0;
        for mut order in self.0 {
            done += usize::from(order.wait().context("an order does not end")?.success());
        }
        Ok(done)
    }
}

/// Reports whether the rules of history were also checked on a merged archive.
pub(super) fn happened(count: &Count) -> Finding {
    let mut finding = Finding::new("files of the archive are put together beside faults");
    let Count { faults, carried_out } = count;
    finding.figures = format!("{carried_out} orders carried out during {faults} faults");
    if *carried_out == 0 && *faults >= FAULTS_MIN {
        finding.violate(|| "no order was carried out".to_owned());
    }
    finding
}

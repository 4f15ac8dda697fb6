//! The faults, and how each is healed.

use std::{fmt, time::Duration};

use anyhow::Result;

use super::{
    cluster_setup::{DiskContent, TestCluster},
    proxies::LinkFault,
    record::Kind,
};
use crate::cluster::unit::{ALL, APIS, INGESTS, NATS, NODES, Unit};

/// One fault; there is never another at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Killed, and started again.
    Kill(Unit),
    /// Stopped in an orderly way, and started again.
    Stop(Unit),
    /// Stopped in an orderly way, and started with the other of two builds, as in an upgrade.
    Exchange(Unit),
    /// Paused (SIGSTOP), and resumed.
    Pause(Unit),
    /// The connections of a part to all parts of one kind.
    Link(LinkFault, Between),
    /// All servers of the log are killed at once.
    NoLog,
    /// The disk of one server of the log is full, or of all.
    DiskFull(Option<Unit>),
    /// A node's clock is off by some seconds.
    Clock(Unit, i32),
    /// The folder of history is unusable for all nodes, like a failing share.
    NoArchive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// A node and every server of the log.
    Log(Unit),
    /// A node and the database.
    Database(Unit),
    /// The load balancer and an api node.
    Front(Unit),
    /// A server of the log and the others.
    Routes(Unit),
    /// A node and all servers.
    Servers(Unit),
}

impl Between {
    fn pairs(self) -> Vec<(Unit, Unit)> {
        match self {
            Self::Log(node) => NATS.map(|nats| (node, nats)).to_vec(),
            Self::Database(node) => vec![(node, Unit::Postgres)],
            Self::Front(api) => vec![(Unit::Nginx, api)],
            Self::Routes(nats) => {
                NATS.into_iter().filter(|other| *other != nats).map(|other| (nats, other)).collect()
            }
            Self::Servers(node) => {
                let servers = NATS.into_iter().chain([Unit::Postgres]);
                servers.map(|server| (node, server)).collect()
            }
        }
    }
}

impl Fault {
    /// The kind of fault, which decides about the promises.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::NoLog | Self::DiskFull(None) => Kind::NoLog,
            Self::Kill(Unit::Postgres)
            | Self::Stop(Unit::Postgres)
            | Self::Pause(Unit::Postgres) => Kind::NoDatabase,
            Self::Kill(_)
            | Self::Stop(_)
            | Self::Exchange(_)
            | Self::Pause(_)
            | Self::Link(..)
            | Self::DiskFull(Some(_))
            | Self::Clock(..)
            | Self::NoArchive => Kind::Single,
        }
    }

    /// Its duration: longer than a node may accept keys from memory (5 s), and than an ingest's lease, so that a part
    /// that was paused or cut off finds the state changed.
    pub(super) fn lasts(self) -> Duration {
        Duration::from_secs(match self.kind() {
            Kind::NoLog => 16,
            Kind::NoDatabase => 10,
            Kind::Single => match self {
                Self::Kill(_) | Self::Stop(_) | Self::Exchange(_) => 6,
                Self::Pause(_) | Self::Link(..) | Self::Clock(..) => 9,
                // Longer than `history.part_interval`.
                Self::NoLog | Self::DiskFull(_) | Self::NoArchive => 10,
            },
        })
    }

    pub(super) fn inject(self, cluster: &mut TestCluster) -> Result<()> {
        match self {
            Self::Kill(unit) => cluster.kill(unit),
            Self::Stop(unit) | Self::Exchange(unit) => cluster.stop(unit),
            Self::Pause(unit) => cluster.pause(unit),
            Self::Link(kind, between) => {
                for (one, other) in between.pairs() {
                    cluster.proxies.apply(one, other, kind);
                }
                Ok(())
            }
            Self::NoLog => NATS.into_iter().try_for_each(|nats| cluster.kill(nats)),
            Self::DiskFull(Some(nats)) => cluster.fill_disk(nats),
            Self::DiskFull(None) => NATS.into_iter().try_for_each(|nats| cluster.fill_disk(nats)),
            Self::Clock(node, seconds) => cluster.step_clock(node, seconds),
            Self::NoArchive => cluster.take_archive_away(),
        }
    }

    pub(super) fn heal(self, cluster: &mut TestCluster) -> Result<()> {
        match self {
            Self::Kill(unit) | Self::Stop(unit) => cluster.start(unit),
            Self::Exchange(node) => cluster.start_other(node),
            Self::Pause(unit) => cluster.resume(unit),
            Self::Link(_, between) => {
                for (one, other) in between.pairs() {
                    cluster.proxies.restore(one, other);
                }
                Ok(())
            }
            Self::NoLog => NATS.into_iter().try_for_each(|nats| cluster.start(nats)),
            Self::DiskFull(Some(nats)) => cluster.free_disk(nats, DiskContent::Deleted),
            Self::DiskFull(None) => {
                NATS.into_iter().try_for_each(|nats| cluster.free_disk(nats, DiskContent::Kept))
            }
            Self::Clock(node, _) => cluster.step_clock(node, 0),
            Self::NoArchive => cluster.bring_archive_back(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(unit) => write!(f, "kill {unit}"),
            Self::Stop(unit) => write!(f, "stop {unit}"),
            Self::Exchange(node) => write!(f, "exchange {node}"),
            Self::Pause(unit) => write!(f, "pause {unit}"),
            Self::Link(kind, between) => {
                let verb = match kind {
                    LinkFault::Cut => "cut",
                    LinkFault::Stalled => "still",
                    LinkFault::Slow => "slow",
                };
                match between {
                    Between::Log(node) => write!(f, "{verb} {node} from nats"),
                    Between::Database(node) => write!(f, "{verb} {node} from postgres"),
                    Between::Front(api) => write!(f, "{verb} {api} from nginx"),
                    Between::Routes(nats) => write!(f, "{verb} {nats} from nats"),
                    Between::Servers(node) => write!(f, "{verb} {node} from all servers"),
                }
            }
            Self::NoLog => f.write_str("kill all nats"),
            Self::DiskFull(Some(nats)) => write!(f, "disk full at {nats}"),
            Self::DiskFull(None) => f.write_str("disk full at all nats"),
            Self::Clock(node, seconds) => write!(f, "clock of {node} {seconds:+} s"),
            Self::NoArchive => f.write_str("archive away"),
        }
    }
}

/// All faults.
pub(super) fn all() -> Vec<Fault> {
    let broken = ALL.into_iter().filter(|unit| *unit != Unit::Nginx);
    let mut all: Vec<Fault> = broken.clone().map(Fault::Kill).collect();
    all.extend(broken.map(Fault::Pause));
    all.extend([Unit::Postgres, Unit::Ingest(1), Unit::Ingest(2), Unit::Api(2)].map(Fault::Stop));
    for kind in [LinkFault::Cut, LinkFault::Stalled, LinkFault::Slow] {
        let log = NODES.map(Between::Log);
        let database = NODES.map(Between::Database);
        let betweens = log.into_iter().chain(database);
        let betweens = betweens.chain(APIS.map(Between::Front)).chain(NATS.map(Between::Routes));
        let betweens = betweens.chain(NODES.map(Between::Servers));
        all.extend(betweens.map(|between| Fault::Link(kind, between)));
    }
    all.push(Fault::NoLog);
    all.extend(NATS.map(|nats| Fault::DiskFull(Some(nats))));
    all.push(Fault::DiskFull(None));
    for node in INGESTS.into_iter().chain(APIS) {
        all.extend([Fault::Clock(node, 90), Fault::Clock(node, -90)]);
    }
    all.push(Fault::NoArchive);
    all
}

/// Further faults with two builds: every node changes to the other one.
pub(super) fn exchanges() -> [Fault; 5] {
    NODES.map(Fault::Exchange)
}

/// The most significant faults, for a run of two minutes.
pub(super) fn short() -> Vec<Fault> {
    vec![
        Fault::Kill(Unit::Ingest(1)),
        Fault::Pause(Unit::Ingest(2)),
        Fault::Link(LinkFault::Stalled, Between::Log(Unit::Api(1))),
        Fault::Link(LinkFault::Stalled, Between::Database(Unit::Api(2))),
        Fault::Link(LinkFault::Cut, Between::Servers(Unit::Api(3))),
        Fault::Kill(Unit::Api(1)),
        Fault::Kill(Unit::Nats(1)),
        Fault::Kill(Unit::Postgres),
        Fault::NoArchive,
        Fault::NoLog,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own_and_the_short_ones_are_among_them() {
        let all: Vec<Fault> = all().into_iter().chain(exchanges()).collect();
        let names: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), all.len());
        assert!(short().iter().all(|fault| names.contains(&fault.to_string())));
        assert!(!names.contains("kill nginx"), "it is the way by which availability is measured");
    }
}

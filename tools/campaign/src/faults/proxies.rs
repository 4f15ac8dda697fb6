//! Every connection between two parts goes through a proxy that can be cut.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result};
use test_servers::Proxy;
use tokio::runtime::Runtime;

use crate::cluster::{
    layout::{ClusterLayout, Links},
    unit::{APIS, NATS, NODES, Unit},
};

/// The fault of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkFault {
    /// Connections are closed, new ones at once.
    Cut,
    /// Nothing is passed on and no connection is closed.
    Stalled,
    /// All bytes are delayed.
    Slow,
}

/// Long enough to exceed timeouts of less than a second, and no others.
const DELAY: Duration = Duration::from_millis(150);

#[derive(Debug)]
pub(super) struct Proxies {
    proxies: BTreeMap<(Unit, Unit), Proxy>,
    /// Last, since the proxies run on it.
    _runtime: Runtime,
}

impl Proxies {
    /// Starts all proxies of a layout and stores their ports as its links.
    pub(super) fn start(layout: &mut ClusterLayout) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("no runtime")?;
        let mut proxies = BTreeMap::new();
        for (from, to) in pairs() {
            // Without links yet, this is the other's own port.
            let proxy = runtime.block_on(Proxy::start(layout.port_from(from, to)))?;
            proxies.insert((from, to), proxy);
        }
        let links: Links = proxies.iter().map(|(pair, proxy)| (*pair, proxy.port())).collect();
        layout.links = links;
        Ok(Self { proxies, _runtime: runtime })
    }

    /// Applies a fault to the proxies between two parts, in both directions.
    pub(super) fn apply(&self, one: Unit, other: Unit, fault: LinkFault) {
        for proxy in self.between(one, other) {
            match fault {
                LinkFault::Cut => proxy.cut(),
                LinkFault::Stalled => proxy.stall(),
                LinkFault::Slow => proxy.slow_down(DELAY),
            }
        }
    }

    pub(super) fn restore(&self, one: Unit, other: Unit) {
        for proxy in self.between(one, other) {
            proxy.restore();
        }
    }

    fn between(&self, one: Unit, other: Unit) -> impl Iterator<Item = &Proxy> {
        [(one, other), (other, one)].into_iter().filter_map(|pair| self.proxies.get(&pair))
    }
}

fn pairs() -> Vec<(Unit, Unit)> {
    let servers = NATS.into_iter().chain([Unit::Postgres]);
    let nodes = NODES.into_iter().flat_map(|node| servers.clone().map(move |to| (node, to)));
    let front = APIS.into_iter().map(|api| (Unit::Nginx, api));
    let routes = NATS.into_iter().flat_map(|from| NATS.into_iter().map(move |to| (from, to)));
    nodes.chain(front).chain(routes.filter(|(from, to)| from != to)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_proxy_wherever_parts_talk() {
        let pairs = pairs();
        assert_eq!(pairs.len(), 5 * 4 + 3 + 6);
        assert!(pairs.contains(&(Unit::Ingest(2), Unit::Postgres)));
        assert!(pairs.contains(&(Unit::Nats(3), Unit::Nats(1))));
        assert!(!pairs.contains(&(Unit::Nginx, Unit::Ingest(1))));
    }
}

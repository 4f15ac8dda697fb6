//! The load: keys with limits, and clients with request patterns.

use accounts::Limits;

use shell::random::Random;

use super::clock::SECOND_US;

/// The request pattern of a key, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One client that sends a request every 30 s, as documented, on one persistent connection.
    Poller,
    /// Four clients on four nodes, about ten requests a second in total.
    Busy,
    /// Far more requests than allowed, on any node: its limits decide.
    Greedy,
}

/// Number of keys of each kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) greedy: u32,
    pub(super) busy: u32,
    pub(super) all: u32,
}

impl Keys {
    /// One key in a hundred thousand is greedy, one in a thousand busy; at least a few.
    pub(super) fn of(all: u32) -> Self {
        let greedy = (all / 100_000).max(2);
        Self { greedy, busy: greedy + (all / 1000).max(10), all: all.max(20) }
    }

    pub(super) fn kind(self, key: u32) -> Kind {
        if key < self.greedy {
            Kind::Greedy
        } else if key < self.busy {
            Kind::Busy
        } else {
            Kind::Poller
        }
    }

    pub(super) fn limits(self, key: u32) -> Limits {
        match self.kind(key) {
            Kind::Poller => Limits::DEFAULT,
            Kind::Busy => Limits {
                burst_per_minute: 1200,
                requests_per_day: 1_000_000,
                requests_per_month: Some(20_000_000),
            },
            Kind::Greedy => Limits {
                burst_per_minute: 600,
                requests_per_day: 1500,
                requests_per_month: Some(2500),
            },
        }
    }
}

/// A client with the requests of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) key: u32,
    /// The node it is connected to; `None` for another one each time.
    pub(super) node: Option<u32>,
    pub(super) every_us: i64,
}

pub(super) fn clients(keys: Keys, nodes: u32, random: &mut Random) -> Vec<Client> {
    let mut clients = Vec::new();
    for key in 0..keys.all {
        let (count, every_us) = match keys.kind(key) {
            Kind::Poller => (1, 30 * SECOND_US),
            Kind::Busy => (4, 400_000),
            Kind::Greedy => (1, 5000),
        };
        for _ in 0..count {
            let node = (keys.kind(key) != Kind::Greedy).then(|| random.below(nodes));
            clients.push(Client { key, node, every_us });
        }
    }
    clients
}

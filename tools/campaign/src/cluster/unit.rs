//! The parts of a cluster, each a process.

use std::fmt;

use serde::{Serialize, Serializer};

/// A process of the cluster. Numbers start at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Unit {
    Postgres,
    Nats(u8),
    Ingest(u8),
    Api(u8),
    Nginx,
}

pub(crate) const NATS: [Unit; 3] = [Unit::Nats(1), Unit::Nats(2), Unit::Nats(3)];
pub(crate) const INGESTS: [Unit; 2] = [Unit::Ingest(1), Unit::Ingest(2)];
pub(crate) const APIS: [Unit; 3] = [Unit::Api(1), Unit::Api(2), Unit::Api(3)];
/// The nodes, which run our program.
pub(crate) const NODES: [Unit; 5] =
    [Unit::Ingest(1), Unit::Ingest(2), Unit::Api(1), Unit::Api(2), Unit::Api(3)];
/// All parts, in an order for readers of the output; the parts themselves need none.
pub(crate) const ALL: [Unit; 10] = [
    Unit::Postgres,
    Unit::Nats(1),
    Unit::Nats(2),
    Unit::Nats(3),
    Unit::Ingest(1),
    Unit::Ingest(2),
    Unit::Api(1),
    Unit::Api(2),
    Unit::Api(3),
    Unit::Nginx,
];

impl Unit {
    /// The value for `serve --role`; `None` for other programs.
    pub(crate) fn role(self) -> Option<&'static str> {
        match self {
            Self::Ingest(_) => Some("ingest"),
            Self::Api(_) => Some("api"),
            Self::Postgres | Self::Nats(_) | Self::Nginx => None,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres => f.write_str("postgres"),
            Self::Nats(n) => write!(f, "nats-{n}"),
            Self::Ingest(n) => write!(f, "ingest-{n}"),
            Self::Api(n) => write!(f, "api-{n}"),
            Self::Nginx => f.write_str("nginx"),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

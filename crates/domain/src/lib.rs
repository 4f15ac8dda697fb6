//! The domain types: exact prices, lines, markets, the catalogue of sports and bookmakers, scores, identifiers,
//! instants and the messages that feeds push. No I/O, no async, no clock.

pub mod catalogue;
pub mod id;
mod keyed;
pub mod line;
pub mod market;
pub mod message;
mod metrics_text;
pub mod price;
pub mod score;
pub mod suggest;
pub mod time;

pub use catalogue::{
    Bookmaker, BookmakerId, BookmakerSet, Catalogue, Region, Shape, Sport, SportId, v4,
};
pub use id::{EventId, RecordId};
pub use line::Line;
pub use market::{Market, MarketAlias, OutcomeRule};
pub use metrics_text::MetricsText;
pub use price::{Format, Price, Quote};
pub use score::{Period, Score, Side, Status};
pub use time::{Clock, ManualClock, Timestamp};

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;

/// Simulated and real data never mix (D19): two books, two logs; a key's kind selects the world once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum World {
    Live,
    Sandbox,
}

keyed!(World, key {
    Live = "live",
    Sandbox = "sandbox",
});

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// The source that limits count an address under: an IPv6 /64 network is one source, as a host may use all its
/// addresses.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

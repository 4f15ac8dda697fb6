//! What the configuration and the connection have to know of the stream.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::adapter::Names;

/// The exchange's numbers and names.
const TABLES: &str = include_str!("../betfair.toml");

/// What the configuration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Smallest size behind a price, in whole units of the account's currency.
    pub min_size: u64,
    /// At most one message per market in this time.
    pub emit_every: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_size: 10, emit_every: Duration::from_secs(1) }
    }
}

/// A line that is for the connection, not for the market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// The server is ready for the authentication.
    Connected,
    /// The answer to a request.
    Status {
        id: Option<u64>,
        success: bool,
        /// `INVALID_CLOCK`, `SUBSCRIPTION_LIMIT_EXCEEDED` and others; empty on success.
        error: String,
        closed: bool,
    },
}

/// The exchange's names and ours: what the operator's own are laid over.
pub fn own_names() -> Names {
    #[derive(Default, Deserialize)]
    struct Tables {
        sports: BTreeMap<String, String>,
        markets: BTreeMap<String, String>,
    }
    let tables: Tables = toml::from_str(TABLES).unwrap_or_default();
    Names { bookmakers: BTreeMap::new(), sports: tables.sports, markets: tables.markets }
}

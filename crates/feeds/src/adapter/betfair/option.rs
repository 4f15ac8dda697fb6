//! The parts of the translator that the configuration and the connection use.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::adapter::Names;

/// The exchange's numbers and names.
const TABLES: &str = include_str!("../betfair.toml");

/// The options from the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Minimum size offered at a price, in whole units of the account's currency.
    pub min_size: u64,
    /// Minimum interval between two messages of one market.
    pub emit_every: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_size: 10, emit_every: Duration::from_secs(1) }
    }
}

/// A line that concerns the connection, not a market.
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

/// The built-in table from the exchange's names to ours, which the operator's entries override.
pub fn own_names() -> Names {
    #[derive(Default, Deserialize)]
    struct Tables {
        sports: BTreeMap<String, String>,
        markets: BTreeMap<String, String>,
    }
    let tables: Tables = toml::from_str(TABLES).unwrap_or_default();
    Names { bookmakers: BTreeMap::new(), sports: tables.sports, markets: tables.markets }
}

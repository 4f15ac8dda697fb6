//! Arithmetic over the prices of a snapshot: lines and offers, best prices, fair probabilities, arbitrage, expected
//! value, middles; for the board also a bookmaker's margin and a record's main line.
//!
//! Prices stay exact and so does every decision ([`exact`]); only fair probabilities use doubles ([`Method`]).
//! Everything is a pure function of a snapshot.

mod arbitrage;
mod best;
pub mod exact;
mod fair;
mod filter;
mod line;
mod main_line;
mod method;
mod middle;
mod probability;
mod value;

pub use arbitrage::{Ages, Arbitrage, ArbitrageSelection, Ranking, StakedLeg, can_arbitrage};
pub use best::{Best, BestLine, BestSelection, LinePage};
pub use fair::{Fair, FairLine, FairOutcome, FairSelection, FairSource, Reference};
pub use filter::{Filter, Leg, LineCursor, Refused, Scope};
pub use line::{Analysis, MarketLine, Offer, PartialOffer, Priced, SportLines, is_field};
pub use main_line::main_outcome;
pub use method::{Method, WithoutMargin};
pub use middle::{Landing, Middle, MiddleSelection, can_middle};
pub use probability::{
    Probability, WHOLE, implied_probability, margin, median, winners, without_margin,
};
pub use value::{Value, ValueSelection};

/// A request to the analysis, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnalysisSelection {
    Best(BestSelection),
    Fair(FairSelection),
    Arbitrage(ArbitrageSelection),
    Value(ValueSelection),
    Middle(MiddleSelection),
}

impl AnalysisSelection {
    pub fn filter(&self) -> &Filter {
        match self {
            Self::Best(best) => &best.filter,
            Self::Fair(fair) => &fair.filter,
            Self::Arbitrage(arbitrage) => &arbitrage.filter,
            Self::Value(value) => &value.filter,
            Self::Middle(middle) => &middle.filter,
        }
    }
}

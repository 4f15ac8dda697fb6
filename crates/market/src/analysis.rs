//! Arithmetic over prices: the probability a price implies, a bookmaker's margin, a record's main line.
//!
//! Probabilities are whole numbers of billionths: for looking at, never for paying out. Prices themselves stay exact.

pub mod exact;
mod main_line;
mod method;
mod probability;

pub use main_line::main_outcome;
pub use method::{Method, WithoutMargin};
pub use probability::{
    Probability, WHOLE, implied_probability, margin, median, winners, without_margin,
};

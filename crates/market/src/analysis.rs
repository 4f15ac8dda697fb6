//! Arithmetic over prices: the probability a price implies, a bookmaker's margin, the best price.
//!
//! Probabilities are whole numbers of billionths: for looking at, never for paying out. Prices themselves stay exact.

mod best;
mod probability;

pub use best::{best_price, main_outcome, usual_line};
pub use probability::{
    Probability, WHOLE, implied_probability, margin, median, winners, without_margin,
};

//! The rules of a compiled mapping: the values of each event, market, outcome and score.

use domain::price::Format;

use super::path::Path;
use super::value::{Condition, Value};

#[derive(Clone, Debug)]
pub(super) struct EventRule {
    pub(super) each: Option<Path>,
    pub(super) group: Option<Value>,
    pub(super) when: Vec<Condition>,
    pub(super) list: Vec<Condition>,
    pub(super) reference: Value,
    pub(super) sport: Value,
    pub(super) competition: Option<Value>,
    pub(super) commence_time: Option<Value>,
    pub(super) home: Option<Value>,
    pub(super) away: Option<Value>,
    pub(super) title: Option<Value>,
}

#[derive(Clone, Debug)]
pub(super) struct MarketRule {
    pub(super) each: Option<Path>,
    pub(super) join: Option<Value>,
    pub(super) when: Vec<Condition>,
    pub(super) bookmaker: Option<Value>,
    pub(super) key: Value,
    pub(super) group: Option<Value>,
    pub(super) format: PriceFormat,
    pub(super) suspended: Vec<Condition>,
    pub(super) ts: Option<Value>,
    pub(super) outcomes: Vec<OutcomeRule>,
}

#[derive(Clone, Debug)]
pub(super) enum PriceFormat {
    Is(Format),
    Auto,
    Named(Value),
}

#[derive(Clone, Debug)]
pub(super) struct OutcomeRule {
    pub(super) each: Option<Path>,
    pub(super) when: Vec<Condition>,
    pub(super) name: Value,
    pub(super) price: Value,
    pub(super) point: Option<Value>,
}

#[derive(Clone, Debug)]
pub(super) struct ScoreRule {
    pub(super) when: Vec<Condition>,
    pub(super) status: Value,
    pub(super) home_score: Option<Value>,
    pub(super) away_score: Option<Value>,
    pub(super) winner: Option<Value>,
}

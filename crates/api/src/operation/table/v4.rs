//! The operations of `/v4`.

use super::HISTORY;
use crate::operation::{Cost, Operation, Params, Row, Schema};
use crate::v4::param::Param;

const ODDS_AND_SCORES: &str = "Odds, events and scores";
const CATALOGUE: &str = "Sports and participants";

pub(super) const SPORTS: Row = Row {
    operation: Operation::V4Sports,
    name: "v4_sports",
    path: Some("/v4/sports"),
    title: "Sports (v4)",
    meaning: "The sports with scheduled or live events; with `all=true`, also sports that are out of season. Free.",
    tag: CATALOGUE,
    answer: "The sports, in the order of their keys.",
    schemas: &[Schema::ListOf("Sport")],
    params: Params::V4(&[Param::All]),
    cost: Cost::Request,
};

pub(super) const EVENTS: Row = Row {
    operation: Operation::V4Events,
    name: "v4_events",
    path: Some("/v4/sports/{sport}/events"),
    title: "Events (v4)",
    meaning: "Scheduled and live events, without prices. Free.",
    tag: ODDS_AND_SCORES,
    answer: "Events.",
    schemas: &[Schema::ListOf("Event")],
    params: Params::V4(&[
        Param::DateFormat,
        Param::EventIds,
        Param::CommenceTimeFrom,
        Param::CommenceTimeTo,
        Param::IncludeRotationNumbers,
    ]),
    cost: Cost::Request,
};

pub(super) const ODDS: Row = Row {
    operation: Operation::V4Odds,
    name: "v4_odds",
    path: Some("/v4/sports/{sport}/odds"),
    title: "Odds (v4)",
    meaning: "Scheduled and live events with their prices. Costs one credit for each requested market and region; \
             free if there are no prices.",
    tag: ODDS_AND_SCORES,
    answer: "Events with prices.",
    schemas: &[Schema::ListOf("OddsEvent")],
    params: Params::V4(&[
        Param::Regions,
        Param::Bookmakers,
        Param::Markets,
        Param::OddsFormat,
        Param::DateFormat,
        Param::EventIds,
        Param::CommenceTimeFrom,
        Param::CommenceTimeTo,
        Param::IncludeLinks,
        Param::IncludeSids,
        Param::IncludeBetLimits,
        Param::IncludeRotationNumbers,
    ]),
    cost: Cost::Request,
};

pub(super) const SCORES: Row = Row {
    operation: Operation::V4Scores,
    name: "v4_scores",
    path: Some("/v4/sports/{sport}/scores"),
    title: "Scores (v4)",
    meaning: "Scheduled and live events with their scores; with `daysFrom`, also final events. Costs one credit, \
             two with `daysFrom`.",
    tag: ODDS_AND_SCORES,
    answer: "Events with scores.",
    schemas: &[Schema::ListOf("ScoreRecord")],
    params: Params::V4(&[Param::DaysFrom, Param::DateFormat, Param::EventIds]),
    cost: Cost::Request,
};

pub(super) const EVENT_ODDS: Row = Row {
    operation: Operation::V4EventOdds,
    name: "v4_event_odds",
    path: Some("/v4/sports/{sport}/events/{eventId}/odds"),
    title: "Event odds (v4)",
    meaning: "One event with its prices. Costs one credit for each requested region and each market in the answer.",
    tag: ODDS_AND_SCORES,
    answer: "The event with prices.",
    schemas: &[Schema::One("EventOdds")],
    params: Params::V4(&[
        Param::Regions,
        Param::Bookmakers,
        Param::Markets,
        Param::OddsFormat,
        Param::DateFormat,
        Param::IncludeLinks,
        Param::IncludeSids,
        Param::IncludeBetLimits,
        Param::IncludeRotationNumbers,
        Param::IncludeMultipliers,
    ]),
    cost: Cost::Request,
};

pub(super) const EVENT_MARKETS: Row = Row {
    operation: Operation::V4EventMarkets,
    name: "v4_event_markets",
    path: Some("/v4/sports/{sport}/events/{eventId}/markets"),
    title: "Event markets (v4)",
    meaning: "The markets that bookmakers offer for one event. Costs one credit.",
    tag: ODDS_AND_SCORES,
    answer: "The event with its markets.",
    schemas: &[Schema::One("EventMarkets")],
    params: Params::V4(&[Param::Regions, Param::Bookmakers, Param::DateFormat]),
    cost: Cost::Request,
};

pub(super) const PARTICIPANTS: Row = Row {
    operation: Operation::V4Participants,
    name: "v4_participants",
    path: Some("/v4/sports/{sport}/participants"),
    title: "Participants (v4)",
    meaning: "The participants of the sport's events; for golf, players with a price. Costs one credit.",
    tag: CATALOGUE,
    answer: "The participants, in the order of their names.",
    schemas: &[Schema::ListOf("Participant")],
    params: Params::V4(&[]),
    cost: Cost::Request,
};

pub(super) const HISTORICAL: Row = Row {
    operation: Operation::V4Historical,
    name: "v4_historical",
    path: Some("/v4/historical/sports/{sport}/odds"),
    title: "Historical data (v4)",
    meaning: "The answer for current data as of the last publication at or before `date`, with the times of the \
             previous and next publication. Costs the same as current data; events cost one credit.",
    tag: HISTORY,
    answer: "Historical data.",
    schemas: &[],
    params: Params::V4(&[Param::Date]),
    cost: Cost::Request,
};

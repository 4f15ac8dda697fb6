//! The operations of the API, one row each. Routing, checks, metrics, usage, the OpenAPI document and the pages are
//! derived from the row.

use crate::v1::param::Param;

/// An operation, or what is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    ListSports,
    GetOdds,
    GetScores,
    ListEvents,
    GetEvent,
    GetBest,
    GetFair,
    ListArbitrages,
    ListEv,
    ListMiddles,
    ListBooks,
    GetStatus,
    GetCoverage,
    ExplainEvent,
    V4Sports,
    V4Events,
    V4Odds,
    V4Scores,
    V4EventOdds,
    V4EventMarkets,
    V4Participants,
    V4Historical,
    /// Requests that named no operation, or were refused before that was known.
    Unknown,
}

/// What an operation is.
#[derive(Debug)]
pub struct Row {
    operation: Operation,
    /// In the reference, metrics and usage.
    pub name: &'static str,
    /// As the reference writes it (the first, where there are several); what is no operation has none.
    pub path: Option<&'static str>,
    pub title: &'static str,
    /// What a reader of the reference needs to know of it.
    pub meaning: &'static str,
    /// The chapter of the reference.
    pub tag: &'static str,
    /// What a good answer is, in words and by its schemas.
    pub answer: &'static str,
    pub schemas: &'static [Schema],
    /// Query parameters of `/v1`; `api_key` goes with every operation. Those of `/v4` are in `v4::param`.
    pub params: &'static [Param],
    pub cost: Cost,
}

/// What an answer may be.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    One(&'static str),
    ListOf(&'static str),
}

/// What a good answer takes of the key's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One request. Closed during maintenance.
    Request,
    /// Nothing of the quota. Closed during maintenance.
    Unmetered,
    /// Nothing. Open also when the quota is spent and during maintenance, and never kept.
    Free,
}

const ODDS: &str = "Odds and events";
const ANALYTICS: &str = "Analytics";
const CATALOGUE: &str = "Catalogue";
const SERVICE: &str = "Service";

const V4_ODDS: &str = "Odds, events and scores";
const V4_CATALOGUE: &str = "Sports and participants";
const V4_HISTORY: &str = "History";

const ROWS: [Row; 23] = [
    Row {
        operation: Operation::ListSports,
        name: "list_sports",
        path: Some("/v1/sports"),
        title: "List sports",
        meaning: "The sports carried, with how many events and bookmakers each has. `events` counts scheduled and \
                  live ones.",
        tag: CATALOGUE,
        answer: "The sports.",
        schemas: &[Schema::One("SportList")],
        params: &[Param::ApiKey],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::GetOdds,
        name: "get_odds",
        path: Some("/v1/sports/{sport_key}/odds"),
        title: "Get odds",
        meaning: "Current prices: one record for each bookmaker and market of the matching events. For fight \
                  sports, `group_by=bout` gives the moneyline bout by bout instead. Needs `odds:read`.",
        tag: ODDS,
        answer: "Odds records; with `group_by=bout`, the bouts.",
        schemas: &[Schema::ListOf("OddsRecord"), Schema::One("GroupedBouts")],
        params: &[
            Param::Market,
            Param::Bookmaker,
            Param::Regions,
            Param::Region,
            Param::OddsFormat,
            Param::EventIds,
            Param::GroupBy,
            Param::Limit,
            Param::Cursor,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::GetScores,
        name: "get_scores",
        path: Some("/v1/sports/{sport_key}/scores"),
        title: "Get scores",
        meaning: "Scores with period detail, one record for each event. `status=live` follows what is in \
                  progress. Needs `odds:read`.",
        tag: ODDS,
        answer: "Score records.",
        schemas: &[Schema::ListOf("ScoreRecord")],
        params: &[Param::Status, Param::EventIds, Param::Limit, Param::Cursor, Param::ApiKey],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::ListEvents,
        name: "list_events",
        path: Some("/v1/sports/{sport_key}/events"),
        title: "List events",
        meaning: "Events with the markets offered for each. Needs `odds:read`.",
        tag: ODDS,
        answer: "Events.",
        schemas: &[Schema::ListOf("Event")],
        params: &[
            Param::Status,
            Param::EventIds,
            Param::CommenceFrom,
            Param::CommenceTo,
            Param::Limit,
            Param::Cursor,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::GetEvent,
        name: "get_event",
        path: Some("/v1/sports/{sport_key}/events/{event_id}"),
        title: "Get event",
        meaning: "One event. An id that turned out to be the same event as another answers with that one's record. \
                  An unknown, cancelled or removed event is 404 `event_not_found`. Needs `odds:read`.",
        tag: ODDS,
        answer: "The event.",
        schemas: &[Schema::One("Event")],
        params: &[Param::ApiKey],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::GetBest,
        name: "get_best",
        path: Some("/v1/sports/{sport_key}/best"),
        title: "Get best prices",
        meaning: "The highest price of every outcome, line by line: bets on the same thing, with the same point and \
                  the same set of outcomes. Stale and partial offers are refused and counted. Needs `odds:read`.",
        tag: ANALYTICS,
        answer: "Lines with the best price of each outcome.",
        schemas: &[Schema::One("BestLines")],
        params: &[
            Param::Market,
            Param::Bookmakers,
            Param::Regions,
            Param::Region,
            Param::OddsFormat,
            Param::EventIds,
            Param::Status,
            Param::CommenceFrom,
            Param::CommenceTo,
            Param::MaxAge,
            Param::Limit,
            Param::Cursor,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::GetFair,
        name: "get_fair",
        path: Some("/v1/sports/{sport_key}/fair"),
        title: "Get fair prices",
        meaning: "Fair probabilities and prices: the margin is removed from each source by one of five published \
                  methods, and each outcome gets the median of the sources. Needs `odds:read`.",
        tag: ANALYTICS,
        answer: "Lines with the fair probability of each outcome and the sources.",
        schemas: &[Schema::One("FairLines")],
        params: &[
            Param::Market,
            Param::OddsFormat,
            Param::EventIds,
            Param::Status,
            Param::CommenceFrom,
            Param::CommenceTo,
            Param::MaxAge,
            Param::Method,
            Param::Reference,
            Param::MinBooks,
            Param::Limit,
            Param::Cursor,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::ListArbitrages,
        name: "list_arbitrages",
        path: Some("/v1/sports/{sport_key}/arbitrage"),
        title: "List arbitrages",
        meaning: "Lines whose best prices add up to less than one: bets on all outcomes that win whatever happens, \
                  with the stakes, the largest profit first. Not for fields, which nothing guarantees to be \
                  complete. Needs `odds:read`.",
        tag: ANALYTICS,
        answer: "Arbitrages, the most profitable first.",
        schemas: &[Schema::One("Arbitrages")],
        params: &[
            Param::Market,
            Param::Bookmakers,
            Param::Regions,
            Param::Region,
            Param::OddsFormat,
            Param::EventIds,
            Param::Status,
            Param::CommenceFrom,
            Param::CommenceTo,
            Param::MaxAge,
            Param::MinProfit,
            Param::Stake,
            Param::Limit,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::ListEv,
        name: "list_ev",
        path: Some("/v1/sports/{sport_key}/ev"),
        title: "List positive expected values",
        meaning: "Offered prices that pay more than the fair probability of the reference without that bookmaker, \
                  the largest expected value first. Needs `odds:read`.",
        tag: ANALYTICS,
        answer: "Prices with a positive expected value, the largest first.",
        schemas: &[Schema::One("Values")],
        params: &[
            Param::Market,
            Param::Bookmakers,
            Param::Regions,
            Param::Region,
            Param::OddsFormat,
            Param::EventIds,
            Param::Status,
            Param::CommenceFrom,
            Param::CommenceTo,
            Param::MaxAge,
            Param::Method,
            Param::Reference,
            Param::MinBooks,
            Param::MinEv,
            Param::Limit,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::ListMiddles,
        name: "list_middles",
        path: Some("/v1/sports/{sport_key}/middles"),
        title: "List middles",
        meaning: "Two bets on different points of a spread or a total that both win when the result lands between \
                  them, the cheapest first. Needs `odds:read`.",
        tag: ANALYTICS,
        answer: "Middles, the cheapest first.",
        schemas: &[Schema::One("Middles")],
        params: &[
            Param::Market,
            Param::Bookmakers,
            Param::Regions,
            Param::Region,
            Param::OddsFormat,
            Param::EventIds,
            Param::Status,
            Param::CommenceFrom,
            Param::CommenceTo,
            Param::MaxAge,
            Param::MaxCost,
            Param::Limit,
            Param::ApiKey,
        ],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::ListBooks,
        name: "list_books",
        path: Some("/v1/books"),
        title: "List bookmakers",
        meaning: "Every bookmaker covered, with the regions it is offered in.",
        tag: CATALOGUE,
        answer: "The bookmakers, in the order of their keys.",
        schemas: &[Schema::ListOf("Bookmaker")],
        params: &[Param::ApiKey],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::GetStatus,
        name: "get_status",
        path: Some("/v1/status"),
        title: "API status",
        meaning: "How the service is, as this key sees it, and the key's limits. Spends no quota, and answers \
                  when the quota is spent and during maintenance.",
        tag: SERVICE,
        answer: "The status.",
        schemas: &[Schema::One("ServiceStatus")],
        params: &[Param::ApiKey],
        cost: Cost::Free,
    },
    Row {
        operation: Operation::GetCoverage,
        name: "get_coverage",
        path: Some("/v1/sports/{sport_key}/coverage"),
        title: "Get coverage",
        meaning: "How many prices each bookmaker has for the scheduled and live events, and why the others are \
                  missing. The parameters restrict the rows; there is no default region. Spends no quota. Needs \
                  `odds:read`.",
        tag: ODDS,
        answer: "The coverage.",
        schemas: &[Schema::One("Coverage")],
        params: &[Param::Market, Param::Bookmaker, Param::Regions, Param::Region, Param::ApiKey],
        cost: Cost::Unmetered,
    },
    Row {
        operation: Operation::ExplainEvent,
        name: "explain_event",
        path: Some("/v1/sports/{sport_key}/events/{event_id}/explain"),
        title: "Explain an event",
        meaning: "Why each bookmaker's price of an event is there or missing, one state for each market. The \
                  parameters mean what they mean for odds: a price that they exclude is `filtered`. Spends no \
                  quota. Needs `odds:read`.",
        tag: ODDS,
        answer: "The states.",
        schemas: &[Schema::One("Explanation")],
        params: &[Param::Market, Param::Bookmaker, Param::Regions, Param::Region, Param::ApiKey],
        cost: Cost::Unmetered,
    },
    Row {
        operation: Operation::V4Sports,
        name: "v4_sports",
        path: Some("/v4/sports"),
        title: "Sports (v4)",
        meaning: "The sports with scheduled or live events; with `all=true`, also those that are out of \
                  season. Free.",
        tag: V4_CATALOGUE,
        answer: "The sports, in the order of their keys.",
        schemas: &[Schema::ListOf("Sport")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4Events,
        name: "v4_events",
        path: Some("/v4/sports/{sport}/events"),
        title: "Events (v4)",
        meaning: "Scheduled and live events, without prices. Free.",
        tag: V4_ODDS,
        answer: "Events.",
        schemas: &[Schema::ListOf("Event")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4Odds,
        name: "v4_odds",
        path: Some("/v4/sports/{sport}/odds"),
        title: "Odds (v4)",
        meaning: "Scheduled and live events with their prices. Costs one credit for each market and region \
                  that is asked for; without a single price, nothing.",
        tag: V4_ODDS,
        answer: "Events with prices.",
        schemas: &[Schema::ListOf("OddsEvent")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4Scores,
        name: "v4_scores",
        path: Some("/v4/sports/{sport}/scores"),
        title: "Scores (v4)",
        meaning: "Scheduled and live events with their scores; with `daysFrom`, also final ones. Costs one \
                  credit, two with `daysFrom`.",
        tag: V4_ODDS,
        answer: "Events with scores.",
        schemas: &[Schema::ListOf("ScoreRecord")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4EventOdds,
        name: "v4_event_odds",
        path: Some("/v4/sports/{sport}/events/{eventId}/odds"),
        title: "Event odds (v4)",
        meaning: "One event with its prices. Costs one credit for each region that is asked for and each \
                  market in the answer.",
        tag: V4_ODDS,
        answer: "The event with prices.",
        schemas: &[Schema::One("EventOdds")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4EventMarkets,
        name: "v4_event_markets",
        path: Some("/v4/sports/{sport}/events/{eventId}/markets"),
        title: "Event markets (v4)",
        meaning: "The markets that bookmakers offer for one event. Costs one credit.",
        tag: V4_ODDS,
        answer: "The event with its markets.",
        schemas: &[Schema::One("EventMarkets")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4Participants,
        name: "v4_participants",
        path: Some("/v4/sports/{sport}/participants"),
        title: "Participants (v4)",
        meaning: "Everyone in the events of the sport; for golf, everyone with a price. Costs one credit.",
        tag: V4_CATALOGUE,
        answer: "The participants, in the order of their names.",
        schemas: &[Schema::ListOf("Participant")],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::V4Historical,
        name: "v4_historical",
        path: Some("/v4/historical/sports/{sport}/odds"),
        title: "Historical data (v4)",
        meaning: "This service keeps no history: the answer is always 401 \
                  `HISTORICAL_UNAVAILABLE_ON_FREE_USAGE_PLAN`.",
        tag: V4_HISTORY,
        answer: "Never given.",
        schemas: &[],
        params: &[],
        cost: Cost::Request,
    },
    Row {
        operation: Operation::Unknown,
        name: "unknown",
        path: None,
        title: "Unknown",
        meaning: "No operation at all.",
        tag: SERVICE,
        answer: "",
        schemas: &[],
        params: &[Param::ApiKey],
        cost: Cost::Request,
    },
];

impl Operation {
    pub const COUNT: usize = ROWS.len();

    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.operation)
    }

    /// The names in the order of [`Operation::index`].
    pub fn names() -> [&'static str; Self::COUNT] {
        ROWS.each_ref().map(|row| row.name)
    }

    /// The operations of `/v1`.
    pub fn v1() -> impl Iterator<Item = Self> {
        Self::all().filter(|operation| operation.is_of("/v1/"))
    }

    /// The operations of `/v4`.
    pub fn v4() -> impl Iterator<Item = Self> {
        Self::all().filter(|operation| operation.is_of("/v4/"))
    }

    fn is_of(self, version: &str) -> bool {
        self.row().path.is_some_and(|path| path.starts_with(version))
    }

    pub fn by_name(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.operation)
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    #[expect(clippy::indexing_slicing, reason = "every operation has its row; a test looks")]
    pub const fn row(self) -> &'static Row {
        &ROWS[self.index()]
    }

    pub const fn name(self) -> &'static str {
        self.row().name
    }

    pub const fn is_free(self) -> bool {
        matches!(self.row().cost, Cost::Free)
    }

    /// Whether a good answer is counted to the quota.
    pub const fn is_metered(self) -> bool {
        matches!(self.row().cost, Cost::Request)
    }

    /// Whether its path names a sport.
    pub fn is_in_sport(self) -> bool {
        self.row().path.is_some_and(|path| path.contains("{sport"))
    }

    pub fn is_paged(self) -> bool {
        self.row().params.contains(&Param::Cursor)
    }
}

// Every operation has a counter of a key's usage.
const _: () = assert!(Operation::COUNT <= accounts::OPERATIONS_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_finds_its_own_row() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!((row.operation.index(), row.operation.name()), (at, row.name));
            assert_eq!(Operation::by_name(row.name), Some(row.operation));
        }
    }
}

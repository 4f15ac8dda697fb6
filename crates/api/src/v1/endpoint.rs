//! The endpoints, as data: what routing, parameter checks, metrics and the OpenAPI document agree on.

use crate::v1::param::Param;

/// The seven operations, and a place for what is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    Sports,
    Odds,
    Scores,
    Events,
    Event,
    Books,
    Status,
    Unknown,
}

impl Endpoint {
    pub const ALL: [Self; 8] = [
        Self::Sports,
        Self::Odds,
        Self::Scores,
        Self::Events,
        Self::Event,
        Self::Books,
        Self::Status,
        Self::Unknown,
    ];

    /// The names in the order of [`Endpoint::index`].
    pub fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Sports => "list_sports",
            Self::Odds => "get_odds",
            Self::Scores => "get_scores",
            Self::Events => "list_events",
            Self::Event => "get_event",
            Self::Books => "list_books",
            Self::Status => "get_status",
            Self::Unknown => "unknown",
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its path as the reference writes it; what is no endpoint has none.
    pub const fn template(self) -> Option<&'static str> {
        match self {
            Self::Sports => Some("/v1/sports"),
            Self::Odds => Some("/v1/sports/{sport_key}/odds"),
            Self::Scores => Some("/v1/sports/{sport_key}/scores"),
            Self::Events => Some("/v1/sports/{sport_key}/events"),
            Self::Event => Some("/v1/sports/{sport_key}/events/{event_id}"),
            Self::Books => Some("/v1/books"),
            Self::Status => Some("/v1/status"),
            Self::Unknown => None,
        }
    }

    /// Its title in the reference.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sports => "List sports",
            Self::Odds => "Get odds",
            Self::Scores => "Get scores",
            Self::Events => "List events",
            Self::Event => "Get event",
            Self::Books => "List bookmakers",
            Self::Status => "API status",
            Self::Unknown => "Unknown",
        }
    }

    /// What a reader of the reference needs to know of it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Sports => {
                "The sports carried, with how many events and bookmakers each has. `events` counts scheduled and \
                 live ones."
            }
            Self::Odds => {
                "Current prices: one record for each bookmaker and market of the matching events. For fight \
                 sports, `group_by=bout` gives the moneyline bout by bout instead. Needs `odds:read`."
            }
            Self::Scores => {
                "Scores with period detail, one record for each event. `status=live` follows what is in \
                 progress. Needs `odds:read`."
            }
            Self::Events => "Events with the markets offered for each. Needs `odds:read`.",
            Self::Event => {
                "One event. An id that turned out to be the same event as another answers with that one's record. An unknown, cancelled or removed event is 404 `event_not_found`. Needs `odds:read`."
            }
            Self::Books => "Every bookmaker covered, with the regions it is offered in.",
            Self::Status => {
                "How the service is, as this key sees it, and the key's limits. Spends no quota, and answers \
                 when the quota is spent and during maintenance."
            }
            Self::Unknown => "No endpoint at all.",
        }
    }

    /// Query parameters it takes; `api_key` goes with every one.
    pub const fn params(self) -> &'static [Param] {
        match self {
            Self::Odds => &[
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
            Self::Scores => {
                &[Param::Status, Param::EventIds, Param::Limit, Param::Cursor, Param::ApiKey]
            }
            Self::Events => &[
                Param::Status,
                Param::EventIds,
                Param::CommenceFrom,
                Param::CommenceTo,
                Param::Limit,
                Param::Cursor,
                Param::ApiKey,
            ],
            Self::Sports | Self::Event | Self::Books | Self::Status | Self::Unknown => {
                &[Param::ApiKey]
            }
        }
    }
}

// Every endpoint has a place in a key's books.
const _: () = assert!(Endpoint::ALL.len() <= accounts::OPERATIONS_MAX);

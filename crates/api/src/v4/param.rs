//! The query parameters of `/v4` as data. The parameters of an operation are in its row.

use crate::v4::error::Code;

/// Every parameter of any operation, without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    All,
    Regions,
    Bookmakers,
    Markets,
    OddsFormat,
    DateFormat,
    EventIds,
    CommenceTimeFrom,
    CommenceTimeTo,
    DaysFrom,
    IncludeLinks,
    IncludeSids,
    IncludeBetLimits,
    IncludeRotationNumbers,
    IncludeMultipliers,
    Date,
}

/// The names of the key's parameter; the first takes precedence.
pub(crate) const KEY_PARAMS: [&str; 2] = ["apiKey", "api_key"];
/// Maximum number of items of `eventIds`.
pub(crate) const EVENT_IDS_MAX: usize = 200;

use Param::{
    All, Bookmakers, CommenceTimeFrom, CommenceTimeTo, Date, DateFormat, DaysFrom, EventIds,
    IncludeBetLimits, IncludeLinks, IncludeMultipliers, IncludeRotationNumbers, IncludeSids,
    Markets, OddsFormat, Regions,
};

impl Param {
    pub const COUNT: usize = 16;

    pub const fn name(self) -> &'static str {
        match self {
            All => "all",
            Regions => "regions",
            Bookmakers => "bookmakers",
            Markets => "markets",
            OddsFormat => "oddsFormat",
            DateFormat => "dateFormat",
            EventIds => "eventIds",
            CommenceTimeFrom => "commenceTimeFrom",
            CommenceTimeTo => "commenceTimeTo",
            DaysFrom => "daysFrom",
            IncludeLinks => "includeLinks",
            IncludeSids => "includeSids",
            IncludeBetLimits => "includeBetLimits",
            IncludeRotationNumbers => "includeRotationNumbers",
            IncludeMultipliers => "includeMultipliers",
            Date => "date",
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// True if the value is a comma-separated list.
    pub const fn is_list(self) -> bool {
        matches!(self, Regions | Bookmakers | Markets | EventIds)
    }

    /// Error code for an invalid value.
    pub const fn code(self) -> Code {
        match self {
            All => Code::InvalidAllSportsParam,
            Regions => Code::InvalidRegion,
            Bookmakers => Code::InvalidBookmakers,
            Markets => Code::InvalidMarket,
            OddsFormat => Code::InvalidOddsFormat,
            DateFormat => Code::InvalidDateFormat,
            EventIds => Code::InvalidEventIds,
            CommenceTimeFrom => Code::InvalidCommenceTimeFrom,
            CommenceTimeTo => Code::InvalidCommenceTimeTo,
            DaysFrom => Code::InvalidScoresDaysFrom,
            IncludeLinks => Code::InvalidIncludeLinks,
            IncludeSids => Code::InvalidIncludeSids,
            IncludeBetLimits => Code::InvalidIncludeBetLimits,
            IncludeRotationNumbers => Code::InvalidIncludeRotationNumbers,
            IncludeMultipliers => Code::InvalidIncludeMultipliers,
            Date => Code::InvalidHistoricalTimestamp,
        }
    }

    /// Description for the reference.
    pub const fn meaning(self) -> &'static str {
        match self {
            All => "`true`: also sports that are out of season.",
            Regions => "Only bookmakers offered in one of these regions, comma-separated.",
            Bookmakers => {
                "Only these bookmakers, comma-separated; takes precedence over `regions`. Every ten of them, or part \
                 of ten, count as one region."
            }
            Markets => "The markets, comma-separated; the default is h2h, for golf outrights.",
            OddsFormat => "Format of prices.",
            DateFormat => "Format of times: text, or seconds since 1970.",
            EventIds => "Only these events, comma-separated. Unknown IDs match nothing.",
            CommenceTimeFrom => "Only events that start at this time or later.",
            CommenceTimeTo => "Only events that start at this time or earlier.",
            DaysFrom => "Also final events that started at most this many days ago.",
            IncludeLinks => "Adds `link` to bookmakers, markets and outcomes; always null.",
            IncludeSids => "Adds `sid` to bookmakers, markets and outcomes; it is always null.",
            IncludeBetLimits => "Adds `bet_limit` to outcomes; it is always null.",
            IncludeRotationNumbers => {
                "Adds `home_rotation` and `away_rotation` to events; they are always null."
            }
            IncludeMultipliers => "Accepted and without effect.",
            Date => "The time of the historical data.",
        }
    }
}

//! The query parameters, as data.

/// Every parameter any operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    Market,
    Bookmaker,
    Regions,
    Region,
    OddsFormat,
    EventIds,
    GroupBy,
    Status,
    CommenceFrom,
    CommenceTo,
    Limit,
    Cursor,
    ApiKey,
}

/// Records in a page unless asked otherwise, and at the most.
pub(crate) const LIMIT_DEFAULT: usize = 100;
pub(crate) const LIMIT_MAX: usize = 500;
/// Ids in `event_ids` at the most.
pub(crate) const EVENT_IDS_MAX: usize = 200;
/// What `regions` is when neither it nor `bookmaker` is sent.
pub(crate) const REGION_DEFAULT: domain::Region = domain::Region::Us;
/// The one value of `group_by`.
pub(crate) const GROUP_BY_BOUT: &str = "bout";

impl Param {
    pub const COUNT: usize = 13;

    pub const fn name(self) -> &'static str {
        match self {
            Self::Market => "market",
            Self::Bookmaker => "bookmaker",
            Self::Regions => "regions",
            Self::Region => "region",
            Self::OddsFormat => "odds_format",
            Self::EventIds => "event_ids",
            Self::GroupBy => "group_by",
            Self::Status => "status",
            Self::CommenceFrom => "commence_from",
            Self::CommenceTo => "commence_to",
            Self::Limit => "limit",
            Self::Cursor => "cursor",
            Self::ApiKey => "api_key",
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// What a reader of the reference needs to know of it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Market => {
                "Only this market; one that the sport does not have matches nothing. The prior names h2h, spreads, \
                 totals and outrights are accepted; records carry the service's own keys. With `group_by=bout`, only \
                 moneyline."
            }
            Self::Bookmaker => {
                "Only this bookmaker, in whichever region it is offered unless `regions` is sent too."
            }
            Self::Regions => {
                "Only bookmakers offered in one of these regions, comma-separated; `us` unless this or `bookmaker` is sent."
            }
            Self::Region => {
                "Alias of `regions` for the transition; `regions` wins when both are sent."
            }
            Self::OddsFormat => "How prices are written.",
            Self::EventIds => {
                "Only these events, at most 200 ids, comma-separated. Unknown ids match nothing."
            }
            Self::GroupBy => {
                "`bout` groups the moneyline by bout; fight sports only. `limit` then counts bouts."
            }
            Self::Status => "Only events that stand so; all when absent.",
            Self::CommenceFrom => "Only events that start at this instant or later.",
            Self::CommenceTo => "Only events that start before this instant.",
            Self::Limit => "Most records in the answer.",
            Self::Cursor => {
                "Where the previous page ended: taken from its `Link` header, as it is."
            }
            Self::ApiKey => {
                "The key, for the transition; the header X-API-Key is preferred and wins."
            }
        }
    }
}

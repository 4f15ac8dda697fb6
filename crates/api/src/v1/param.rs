//! The query parameters as data.

/// Every parameter of any operation.
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
    Name,
    Bookmakers,
    MaxAge,
    Method,
    Reference,
    MinBooks,
    MinEv,
    MinProfit,
    MaxCost,
    Stake,
    AsOf,
    Since,
    Until,
    Replay,
    Sports,
    Channels,
    Mode,
    Freshness,
    Heartbeat,
    From,
    To,
    Changes,
    Lineage,
    Limit,
    /// `limit` of operations that count points.
    PointLimit,
    Cursor,
    Format,
    ApiKey,
}

/// Bounds for the number of characters of `name`.
pub(crate) const NAME_CHARS_MIN: usize = 2;
pub(crate) const NAME_CHARS_MAX: usize = 80;
/// Default and maximum number of records per page.
pub(crate) const LIMIT_DEFAULT: usize = 100;
pub(crate) const LIMIT_MAX: usize = 500;
/// Default and maximum number of points per page of price paths.
pub(crate) const POINTS_DEFAULT: usize = 1000;
pub(crate) const POINTS_MAX: usize = 10_000;
/// Maximum number of a lineage.
pub(crate) const LINEAGE_MAX: usize = 65_535;
/// The values of `changes`.
pub(crate) const CHANGES: [&str; 2] = ["published", "all"];
/// Maximum number of ids in `event_ids`.
pub(crate) const EVENT_IDS_MAX: usize = 200;
/// Value of `regions` if neither it nor `bookmaker` is sent.
pub(crate) const REGION_DEFAULT: domain::Region = domain::Region::Us;
/// The only value of `group_by`.
pub(crate) const GROUP_BY_BOUT: &str = "bout";
/// The values of `format`.
pub(crate) const FORMAT_JSON: &str = "json";
pub(crate) const FORMAT_CSV: &str = "csv";
/// Maximum number of bookmakers in `bookmakers` and in `reference`.
pub(crate) const BOOKMAKERS_MAX: usize = 50;
pub(crate) const REFERENCES_MAX: usize = 10;
/// Value of `reference` if no bookmaker is named.
pub(crate) const CONSENSUS: &str = "consensus";
/// Default number of sources a fair probability needs if no bookmakers are named, and the maximum that can be
/// requested.
pub(crate) const MIN_BOOKS_DEFAULT: u32 = 2;
pub(crate) const MIN_BOOKS_MAX: u32 = 50;
/// One day.
pub(crate) const MAX_AGE_S_MAX: u32 = 86_400;
/// Maximum number of decimal places of `min_ev`, `min_profit` and `max_cost`.
pub(crate) const PLACES_MAX: usize = 6;
/// In billionths: 0.05.
pub(crate) const MAX_COST_DEFAULT: u32 = 50_000_000;
/// Whole units of any currency.
pub(crate) const STAKE_DEFAULT: u32 = 100;
pub(crate) const STAKE_MAX: u32 = 1_000_000;

/// Seconds without an event before a comment is sent.
pub(crate) const HEARTBEAT_S_DEFAULT: u32 = 15;
pub(crate) const HEARTBEAT_S_MIN: u32 = 5;
pub(crate) const HEARTBEAT_S_MAX: u32 = 60;

impl Param {
    pub const COUNT: usize = 38;

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
            Self::Name => "name",
            Self::Bookmakers => "bookmakers",
            Self::MaxAge => "max_age",
            Self::Method => "method",
            Self::Reference => "reference",
            Self::MinBooks => "min_books",
            Self::MinEv => "min_ev",
            Self::MinProfit => "min_profit",
            Self::MaxCost => "max_cost",
            Self::Stake => "stake",
            Self::AsOf => "as_of",
            Self::Since => "since",
            Self::Until => "until",
            Self::Replay => "replay",
            Self::Sports => "sports",
            Self::Channels => "channels",
            Self::Mode => "mode",
            Self::Freshness => "freshness",
            Self::Heartbeat => "heartbeat",
            Self::From => "from",
            Self::To => "to",
            Self::Changes => "changes",
            Self::Lineage => "lineage",
            Self::Limit | Self::PointLimit => "limit",
            Self::Cursor => "cursor",
            Self::Format => "format",
            Self::ApiKey => "api_key",
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// Description for the reference.
    #[expect(clippy::too_many_lines, reason = "a table with one entry for each parameter")]
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
                "Only bookmakers offered in one of these regions, comma-separated; `us` unless this, `bookmaker` or \
                 `bookmakers` is sent."
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
            Self::Status => {
                "Only events that stand so. When absent: all, and of arbitrage, ev and middles those that are \
                 scheduled."
            }
            Self::CommenceFrom => "Only events that start at this instant or later.",
            Self::CommenceTo => "Only events that start before this instant.",
            Self::Name => {
                "Only events with a participant, tournament or competition in which a word begins with this, whatever \
                 the case and the accents: `proch` finds Jiří Procházka. Several words must follow each other."
            }
            Self::Bookmakers => {
                "Only prices of these bookmakers, at most 50, comma-separated, in whichever region they are offered \
                 unless `regions` is sent too. The reference is not filtered."
            }
            Self::MaxAge => {
                "The oldest price that is used, in seconds; the service's own limit for a stale source when absent."
            }
            Self::Method => "How margins are removed. `shin` is for markets with one winner.",
            Self::Reference => {
                "Whose prices the fair probabilities come from: `consensus` (everybody's), which is meant when absent, \
                 or up to 10 bookmakers, comma-separated."
            }
            Self::MinBooks => {
                "Sources that a fair probability needs at least: 2 when absent, or 1 with bookmakers in `reference`."
            }
            Self::MinEv => "Only values with an expected value above this; up to six places.",
            Self::MinProfit => "Only arbitrages with a profit above this; up to six places.",
            Self::MaxCost => {
                "Only middles whose break-even probability is at most this; up to six places."
            }
            Self::Stake => "What is divided between the legs of an arbitrage, in whole units.",
            Self::AsOf => {
                "The answer as it was at this instant: that of the last publication at or before it, byte for byte. \
                 Costs the same as the present."
            }
            Self::Since => {
                "Only what changed since this cursor (`x-cursor` of an answer to the same selection): new and changed \
                 records, and what is gone. 204 and free where nothing did. A stream goes on from it, and takes an \
                 RFC 3339 timestamp, too: it then begins with the publication of that time."
            }
            Self::Until => {
                "When the stream ends, with `done`: after the last publication at or before this instant. In the past \
                 it needs `since`, which is earlier."
            }
            Self::Replay => {
                "After `since`: `net` brings the client up to date in one step; `all` sends every publication since then \
                 (in `live`, every change), one after the other, for one request of the quota per 500 publications."
            }
            Self::Sports => {
                "Only these sports, comma-separated; all that the key covers when absent."
            }
            Self::Channels => {
                "What is followed of each sport, comma-separated: the records of odds, scores or events. `odds` when \
                 absent."
            }
            Self::Mode => {
                "When changes are sent: `publication`, with each publication, or `live`, as soon as they are stored. \
                 Between publications a `cut` of `live` has `published` false."
            }
            Self::Freshness => {
                "`sources`: how fresh each bookmaker is, with each publication. `records`: beside that, which records \
                 were confirmed, so that `last_update` of all of them is known. `none`: nothing."
            }
            Self::Heartbeat => "Seconds without an event before a comment is sent.",
            Self::From => "Only changes that were published at this instant or later.",
            Self::To => "Only changes that were published before this instant.",
            Self::Changes => {
                "`published`: the changes that a client sees who reads every publication. `all`: also those that were \
                 replaced before the next publication; their `published_at` is null."
            }
            Self::Lineage => {
                "Which of the day's files, where there are several because a log was lost or restored: `Link` leads \
                 from each to the next. The first when absent."
            }
            Self::Limit => "Most records in the answer.",
            Self::PointLimit => {
                "Most points in the answer. A path that is cut off goes on in the next page, with the fields around \
                 its points repeated; a very long answer may end earlier."
            }
            Self::Cursor => {
                "Where the previous page ended: taken from its `Link` header, as it is."
            }
            Self::Format => {
                "How the answer is written. `csv` is a table with a header row: a row is an outcome or a leg, with the \
                 fields around it repeated. Not with `since` or `group_by`. Errors are JSON."
            }
            Self::ApiKey => {
                "The key, for the transition; the header X-API-Key is preferred and wins."
            }
        }
    }
}

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
                "Only this market; a market that the sport does not have matches nothing. The prior names h2h, \
                spreads, totals and outrights are accepted; records have the service's own keys. With \
                `group_by=bout`, only moneyline."
            }
            Self::Bookmaker => "Only this bookmaker, in any region unless `regions` is sent too.",
            Self::Regions => {
                "Only bookmakers that operate in one of these regions, comma-separated. The default is `us`, unless \
                `bookmaker` or `bookmakers` is sent."
            }
            Self::Region => "Alias of `regions`, for migration; `regions` wins if both are sent.",
            Self::OddsFormat => "Format of prices.",
            Self::EventIds => {
                "Only these events, at most 200 ids, comma-separated. Unknown ids match nothing."
            }
            Self::GroupBy => {
                "`bout` groups the moneyline by bout; fight sports only. `limit` then counts bouts."
            }
            Self::Status => {
                "Only events with this status. If absent, all events; for arbitrage, ev and middles, scheduled \
                events."
            }
            Self::CommenceFrom => "Only events that start at this instant or later.",
            Self::CommenceTo => "Only events that start before this instant.",
            Self::Name => {
                "Only events with a participant, tournament or competition in which a word begins with this text, \
                ignoring case and accents: `proch` finds Jiří Procházka. Several words must be adjacent."
            }
            Self::Bookmakers => {
                "Only prices of these bookmakers, at most 50, comma-separated, in any region unless `regions` is \
                sent too. The reference is not filtered."
            }
            Self::MaxAge => {
                "Maximum age of the prices used, in seconds; if absent, the service's limit for a stale source."
            }
            Self::Method => {
                "The method by which margins are removed. `shin` is for markets with one winner."
            }
            Self::Reference => {
                "The source of the fair probabilities: `consensus` (all bookmakers), which is the default, or up to \
                10 bookmakers, comma-separated."
            }
            Self::MinBooks => {
                "Minimum number of sources of a fair probability. The default is 2, or 1 with bookmakers in \
                `reference`."
            }
            Self::MinEv => {
                "Only values with an expected value above this, with up to six decimal places."
            }
            Self::MinProfit => {
                "Only arbitrages with a profit above this, with up to six decimal places."
            }
            Self::MaxCost => {
                "Only middles with a break-even probability of at most this, with up to six decimal places."
            }
            Self::Stake => {
                "The total stake of an arbitrage, which is divided between its legs, in whole units."
            }
            Self::AsOf => {
                "The answer as of this instant: that of the last publication at or before it, byte for byte. Costs \
                the same as a current answer."
            }
            Self::Since => {
                "Only changes since this cursor (`x-cursor` of an answer to the same selection): new, changed and \
                removed records. Without changes the answer is 204 and free. A stream resumes at the cursor; it \
                also accepts an RFC 3339 timestamp and then begins with the publication of that time."
            }
            Self::Until => {
                "End of the stream: after the last publication at or before this instant, with the code `done`. \
                An instant in the past needs an earlier `since`."
            }
            Self::Replay => {
                "How changes since `since` are sent. `net`: the net difference in one step. `all`: every \
                publication since then (in `live`, every change), one after the other, for one request of the quota \
                per 500 publications."
            }
            Self::Sports => {
                "Only these sports, comma-separated; if absent, all sports that the key covers."
            }
            Self::Channels => {
                "The record types to follow for each sport, comma-separated: odds, scores or events. The default is \
                `odds`."
            }
            Self::Mode => {
                "When changes are sent. `publication`: with each publication. `live`: as soon as they are stored; a \
                `cut` between publications then has `published` false."
            }
            Self::Freshness => {
                "Freshness data sent with each publication. `sources`: the freshness of each bookmaker. `records`: \
                also the ids of the confirmed records, so that the `last_update` of every record is known. `none`: \
                nothing."
            }
            Self::Heartbeat => "Seconds without an event before a comment is sent.",
            Self::From => "Only changes that were published at this instant or later.",
            Self::To => "Only changes that were published before this instant.",
            Self::Changes => {
                "`published`: the changes seen by a client that reads every publication. `all`: also changes that \
                were replaced before the next publication; their `published_at` is null."
            }
            Self::Lineage => {
                "Number of the file of that day, if there are several because a log was lost or restored; `Link` \
                leads from each to the next. The default is the first."
            }
            Self::Limit => "Maximum number of records in the answer.",
            Self::PointLimit => {
                "Maximum number of points in the answer. A path that does not fit continues on the next page, with \
                the fields around its points repeated; a very long answer may end earlier."
            }
            Self::Cursor => {
                "End of the previous page: the value from its `Link` header, unchanged."
            }
            Self::Format => {
                "Format of the answer. `csv` is a table with a header row; a row is an outcome or a leg, with the \
                fields around it repeated. Not with `since` or `group_by`. Errors are JSON."
            }
            Self::ApiKey => "The key, for migration; the header X-API-Key is preferred and wins.",
        }
    }
}

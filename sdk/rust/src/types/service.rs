//! Status, history, coverage, and the receipt of a push.

use crate::macros::{open_enum, record};
use crate::types::{Market, Region, Status};

open_enum! {
    /// The state of the service.
    ServiceState {
        Ok = "ok",
        Degraded = "degraded",
        Maintenance = "maintenance",
    }
}

open_enum! {
    /// Why a price is present or missing.
    CellState {
        Priced = "priced",
        Filtered = "filtered",
        Ended = "ended",
        Suspended = "suspended",
        Withdrawn = "withdrawn",
        NoSource = "no_source",
        SourceStale = "source_stale",
        Unsure = "unsure",
        NotListed = "not_listed",
        NotOffered = "not_offered",
    }
}

open_enum! {
    /// The parameter that excludes a price.
    FilteredBy {
        Market = "market",
        Bookmaker = "bookmaker",
        Regions = "regions",
    }
}

open_enum! {
    /// Why a line of a push was rejected.
    RejectedCode {
        InvalidJson = "invalid_json",
        InvalidMessage = "invalid_message",
        UnknownType = "unknown_type",
        UnknownSport = "unknown_sport",
        UnknownBookmaker = "unknown_bookmaker",
        WrongBookmaker = "wrong_bookmaker",
        UnknownMarket = "unknown_market",
        MarketNotInSport = "market_not_in_sport",
        InvalidPrice = "invalid_price",
        InvalidPoint = "invalid_point",
        UnknownRef = "unknown_ref",
        UnknownOutcome = "unknown_outcome",
        FutureTs = "future_ts",
        IllegalTransition = "illegal_transition",
        TooLarge = "too_large",
    }
}

record! {
    /// The state of the service, as seen by the key.
    ServiceStatus {
        /// `degraded`: at least one source is stale, its prices still served. `maintenance`: every other endpoint
        /// answers 503.
        status: ServiceState,
        /// The version of the API.
        api_version: String,
        /// The current time.
        server_time: String,
        /// The limits of the calling key.
        rate_limit: RateLimit,
        /// Sports with a source that is not stale.
        sports_active: u64,
    }
}

record! {
    /// The limits of the calling key.
    RateLimit {
        /// Requests in one UTC minute.
        burst_per_minute: u64,
        /// Requests in one UTC day.
        requests_per_day: u64,
    }
}

record! {
    /// The range of history.
    HistoryReach {
        /// The first publication that `as_of` finds.
        from: String,
        /// The last publication.
        to: String,
        /// Number of publications in between, both included.
        publications: u64,
        /// Number of seconds for which publications are kept.
        retention_s: u64,
        /// The last day whose files are final.
        exported_to: Option<String>,
        /// Times whose publications are missing.
        gaps: Vec<HistoryGap>,
    }
}

record! {
    /// A time range whose publications are missing.
    HistoryGap {
        /// The first missing publication.
        from: String,
        /// The next publication that is present.
        to: String,
    }
}

record! {
    /// The number of prices of a sport, and the reasons for missing ones.
    Coverage {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// Scheduled and live events.
        events: u64,
        /// Bookmakers with a source, in the order of their keys.
        books: Vec<CoveredBook>,
        /// Bookmakers without a feed in this sport.
        no_source: Vec<String>,
    }
}

record! {
    /// A bookmaker's coverage of a sport.
    CoveredBook {
        /// Bookmaker key.
        bookmaker: String,
        /// The regions in which it is offered.
        regions: Vec<Region>,
        /// The last good read.
        last_read: String,
        /// Whole seconds from the last good read to `generated_at`.
        age_s: u64,
        /// True if there was no good read from it recently.
        stale: bool,
        /// Delay of the last good read.
        latency_ms: u64,
        /// The sport's markets, in the order of their keys.
        markets: Vec<CoveredMarket>,
    }
}

record! {
    /// A bookmaker's market; the counts of states add up to `events`.
    CoveredMarket {
        /// The market.
        market: Market,
        /// Events with a price.
        priced: u64,
        /// Closed by a source that still lists the event.
        suspended: u64,
        /// Was priced by a source that no longer lists the event.
        withdrawn: u64,
        /// Not read recently, so the state is unknown.
        source_stale: u64,
        /// The source lists an event that may be this one.
        unsure: u64,
        /// The source does not list the event.
        not_listed: u64,
        /// The source lists the event but never had this market for it.
        not_offered: u64,
        /// The age of the oldest price, in whole seconds; null without a price.
        oldest_age_s: Option<u64>,
    }
}

record! {
    /// Why each price of an event is present or missing.
    Explanation {
        /// Sport key.
        sport: String,
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The status of the event.
        status: Status,
        /// Bookmakers, in the order of their keys.
        books: Vec<ExplainedBook>,
        /// Bookmakers without a feed in this sport.
        no_source: Vec<String>,
    }
}

record! {
    /// A bookmaker's prices of an event.
    ExplainedBook {
        /// Bookmaker key.
        bookmaker: String,
        /// The regions in which it is offered.
        regions: Vec<Region>,
        /// One cell for each market of the sport, in the order of their keys.
        cells: Vec<Cell>,
    }
}

record! {
    /// Why a price is present or missing.
    Cell {
        /// The market.
        market: Market,
        /// The first of these that applies.
        state: CellState,
    } absent {
        /// `priced`: number of odds records; several if a market has pairings.
        records: u64,
        /// `priced`: when the price was last confirmed.
        last_update: String,
        /// `priced`: whole seconds from then to `generated_at`.
        age_s: u64,
        /// `priced`: an old price that odds show and analytics exclude.
        stale: bool,
        /// `filtered`: the parameter that excludes the price.
        by: FilteredBy,
        /// `suspended`, `withdrawn`: time since when.
        since: String,
        /// The source's last good read.
        last_read: String,
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        may_be: String,
    }
}

record! {
    /// The result of a push.
    PushReceipt {
        /// Lines that changed something.
        accepted: u64,
        /// Lines that repeat the stored state.
        unchanged: u64,
        /// Lines older than the stored state.
        superseded: u64,
        /// Rejected lines, listed or not.
        rejected_total: u64,
        /// The first 1000 rejected lines, in their order.
        rejected: Vec<RejectedLine>,
    }
}

record! {
    /// A rejected line, and the reason.
    RejectedLine {
        /// Counted from 1.
        line: u64,
        /// For programs.
        code: RejectedCode,
        /// For people.
        message: String,
    }
}

//! The objects that the API returns and accepts: a struct for each, with the names of the reference. Times are texts
//! in UTC, such as `2026-11-14T23:38:00Z`.

mod analysis;
mod changes;
mod feed;
mod odds;
mod paths;
mod service;

use crate::macros::open_enum;

pub use self::{analysis::*, changes::*, feed::*, odds::*, paths::*, service::*};

open_enum! {
    /// A market.
    Market {
        Matchup = "matchup",
        Moneyline = "moneyline",
        Outright = "outright",
        RoundLeader = "round_leader",
        Spread = "spread",
        ThreeBall = "three_ball",
        Top10 = "top10",
        Top20 = "top20",
        Top5 = "top5",
        TotalPoints = "total_points",
        TotalRounds = "total_rounds",
    }
}

open_enum! {
    /// The status of an event.
    Status {
        Scheduled = "scheduled",
        Live = "live",
        Final = "final",
    }
}

open_enum! {
    /// A region in which a bookmaker is offered.
    Region {
        Us = "us",
        Uk = "uk",
        Eu = "eu",
        Au = "au",
    }
}

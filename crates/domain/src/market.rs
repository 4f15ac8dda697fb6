//! Market keys, and the meaning of a point in each market.

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;

/// The interface's market keys, declared in the order of their keys, so that `Ord` is the order of answers (D15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Market {
    Matchup,
    Moneyline,
    Outright,
    RoundLeader,
    Spread,
    ThreeBall,
    Top10,
    Top20,
    Top5,
    TotalPoints,
    TotalRounds,
}

/// Whether an outcome carries a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointRule {
    /// Never.
    None,
    /// A signed handicap.
    Signed,
    /// A total, above zero.
    Total,
}

/// The kind of outcomes that a market has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeRule {
    /// The event's participants, and the draw if the sport has one.
    Sides,
    /// Over and under.
    OverUnder,
    /// Players of a field.
    Entrants,
    /// Players of a field in one pairing, or a tie.
    Pairing,
}

keyed!(Market, key {
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
});

impl Market {
    /// Position in [`Market::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    pub const fn point_rule(self) -> PointRule {
        match self {
            Self::Spread => PointRule::Signed,
            Self::TotalPoints | Self::TotalRounds => PointRule::Total,
            Self::Matchup
            | Self::Moneyline
            | Self::Outright
            | Self::RoundLeader
            | Self::ThreeBall
            | Self::Top10
            | Self::Top20
            | Self::Top5 => PointRule::None,
        }
    }

    pub const fn outcome_rule(self) -> OutcomeRule {
        match self {
            Self::Moneyline | Self::Spread => OutcomeRule::Sides,
            Self::TotalPoints | Self::TotalRounds => OutcomeRule::OverUnder,
            Self::Outright | Self::RoundLeader | Self::Top10 | Self::Top20 | Self::Top5 => {
                OutcomeRule::Entrants
            }
            Self::Matchup | Self::ThreeBall => OutcomeRule::Pairing,
        }
    }
}

/// The prior interface's names (D16). `totals` means a different market in each sport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketAlias {
    Is(Market),
    TheSportsTotals,
}

impl MarketAlias {
    pub const KEYS: [&'static str; 4] = ["h2h", "spreads", "totals", "outrights"];

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "h2h" => Some(Self::Is(Market::Moneyline)),
            "spreads" => Some(Self::Is(Market::Spread)),
            "totals" => Some(Self::TheSportsTotals),
            "outrights" => Some(Self::Is(Market::Outright)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markets_are_declared_in_the_order_of_their_keys() {
        assert!(
            Market::ALL.windows(2).all(|pair| pair[0] < pair[1] && pair[0].key() < pair[1].key())
        );
        assert!(Market::ALL.iter().enumerate().all(|(i, market)| market.index() == i));
    }
}

//! Paths under `/v1`.

use crate::v1::endpoint::Endpoint;
use http::cut;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    Sports,
    Books,
    Status,
    Odds(&'a str),
    Scores(&'a str),
    Events(&'a str),
    Event(&'a str, &'a str),
}

impl<'a> Place<'a> {
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix("/v1/")?;
        let Some(in_sport) = rest.strip_prefix("sports/") else {
            return match rest {
                "sports" => Some(Self::Sports),
                "books" => Some(Self::Books),
                "status" => Some(Self::Status),
                _ => None,
            };
        };
        let (sport, rest) = cut(in_sport, b'/')?;
        if sport.is_empty() {
            return None;
        }
        match rest {
            "odds" => Some(Self::Odds(sport)),
            "scores" => Some(Self::Scores(sport)),
            "events" => Some(Self::Events(sport)),
            _ => {
                let event = rest.strip_prefix("events/")?;
                (!event.is_empty() && !event.contains('/')).then_some(Self::Event(sport, event))
            }
        }
    }

    pub(crate) fn endpoint(self) -> Endpoint {
        match self {
            Self::Sports => Endpoint::Sports,
            Self::Books => Endpoint::Books,
            Self::Status => Endpoint::Status,
            Self::Odds(_) => Endpoint::Odds,
            Self::Scores(_) => Endpoint::Scores,
            Self::Events(_) => Endpoint::Events,
            Self::Event(_, _) => Endpoint::Event,
        }
    }

    pub(crate) fn sport(self) -> Option<&'a str> {
        match self {
            Self::Sports | Self::Books | Self::Status => None,
            Self::Odds(sport)
            | Self::Scores(sport)
            | Self::Events(sport)
            | Self::Event(sport, _) => Some(sport),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_seven_paths_lead_somewhere() {
        assert_eq!(Place::parse("/v1/sports"), Some(Place::Sports));
        assert_eq!(Place::parse("/v1/sports/mma/odds"), Some(Place::Odds("mma")));
        assert_eq!(Place::parse("/v1/sports/mma/events/evt_1"), Some(Place::Event("mma", "evt_1")));
        for nowhere in [
            "/v1",
            "/v1/",
            "/v1/sports/",
            "/v1/sports/mma",
            "/v1/sports/mma/",
            "/v1/sports//odds",
            "/v1/sports/mma/odds/",
            "/v1/sports/mma/events/",
            "/v1/sports/mma/events/a/b",
            "/v1/Books",
            "/v1/books/",
            "/v2/books",
        ] {
            assert_eq!(Place::parse(nowhere), None, "{nowhere}");
        }
    }
}

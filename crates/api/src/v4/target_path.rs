//! Paths under `/v4`.

use crate::operation::Operation;

/// A path that names an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetPath<'a> {
    pub(crate) operation: Operation,
    /// The operation on current data that a historical one is the past of; of any other, itself.
    pub(crate) of: Operation,
    /// Empty where the operation is of no sport.
    pub(crate) sport: &'a str,
    pub(crate) event: Option<&'a str>,
}

impl<'a> TargetPath<'a> {
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix("/v4/")?;
        // One slash at the end is as good as none.
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut rest = path.split('/');
        let parts: [&str; 6] = std::array::from_fn(|_| rest.next().unwrap_or_default());
        if rest.next().is_some() {
            return None;
        }
        let [sports, sport, what, event, more, end] = parts;
        let of = |operation| Some(Self { operation, of: operation, sport, event: None });
        let of_event = |operation| {
            let event = Some(event).filter(|event| !event.is_empty())?;
            Some(Self { operation, of: operation, sport, event: Some(event) })
        };
        let found = match (sports, sport, what, event, more, end) {
            ("sports", "", "", "", "", "") => of(Operation::V4Sports),
            ("sports", _, "events", "", "", "") => of(Operation::V4Events),
            ("sports", _, "odds", "", "", "") => of(Operation::V4Odds),
            ("sports", _, "scores", "", "", "") => of(Operation::V4Scores),
            ("sports", _, "participants", "", "", "") => of(Operation::V4Participants),
            ("sports", _, "odds-history", "", "", "") => {
                Self::historical([sports, "", sport, "odds", "", ""])
            }
            ("sports", _, "events", _, "odds", "") => of_event(Operation::V4EventOdds),
            ("sports", _, "events", _, "markets", "") => of_event(Operation::V4EventMarkets),
            ("historical", "sports", ..) => Self::historical(parts),
            _ => None,
        };
        // Empty parts in the middle or at the end are no path: `//`.
        found.filter(|found| {
            let named = found.operation == Operation::V4Sports || !found.sport.is_empty();
            named && !path.ends_with('/') && !path.contains("//")
        })
    }

    fn historical([_, _, sport, what, event, end]: [&'a str; 6]) -> Option<Self> {
        let (of, event) = match (what, event, end) {
            ("odds", "", "") => (Operation::V4Odds, None),
            ("events", "", "") => (Operation::V4Events, None),
            ("events", event, "odds") if !event.is_empty() => (Operation::V4EventOdds, Some(event)),
            _ => return None,
        };
        Some(Self { operation: Operation::V4Historical, of, sport, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_to_its_operation_with_and_without_a_slash() {
        for (path, operation, sport, event) in [
            ("/v4/sports", Operation::V4Sports, "", None),
            ("/v4/sports/x/events", Operation::V4Events, "x", None),
            ("/v4/sports/x/odds", Operation::V4Odds, "x", None),
            ("/v4/sports/x/scores", Operation::V4Scores, "x", None),
            ("/v4/sports/x/participants", Operation::V4Participants, "x", None),
            ("/v4/sports/x/odds-history", Operation::V4Historical, "x", None),
            ("/v4/sports/x/events/e/odds", Operation::V4EventOdds, "x", Some("e")),
            ("/v4/sports/x/events/e/markets", Operation::V4EventMarkets, "x", Some("e")),
            ("/v4/historical/sports/x/odds", Operation::V4Historical, "x", None),
            ("/v4/historical/sports/x/events", Operation::V4Historical, "x", None),
            ("/v4/historical/sports/x/events/e/odds", Operation::V4Historical, "x", Some("e")),
        ] {
            let of = if operation != Operation::V4Historical {
                operation
            } else if event.is_some() {
                Operation::V4EventOdds
            } else if path.ends_with("events") {
                Operation::V4Events
            } else {
                Operation::V4Odds
            };
            let expected = Some(TargetPath { operation, of, sport, event });
            assert_eq!(TargetPath::parse(path), expected, "{path}");
            let slashed = format!("{path}/");
            assert_eq!(TargetPath::parse(&slashed), expected, "{slashed}");
            assert_eq!(TargetPath::parse(&format!("{path}//")), None, "{path}//");
            assert_eq!(TargetPath::parse(&format!("{path}/y/z")), None, "{path}/y/z");
        }
        for nowhere in [
            "/v4",
            "/v4/",
            "/v4/sports/x",
            "/v4/sports//odds",
            "/v4/sports/x/events//odds",
            "/v4//sports",
            "/v4/Sports",
            "/v4/historical",
            "/v4/historical/sports",
            "/v4/historical/sports/odds",
            "/v4/historical/sports//odds",
            "/v4/historical/sports/x/scores",
            "/v3/sports",
        ] {
            assert_eq!(TargetPath::parse(nowhere), None, "{nowhere}");
        }
    }
}

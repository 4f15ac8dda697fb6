//! Paths under `/v4`. They are matched by hand, because one operation has several paths for the past, and a trailing
//! slash is ignored; a test compares them with the rows of the operations.

use crate::operation::Operation;
use crate::v4::param::Param;

/// A path that names an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetPath<'a> {
    pub(crate) operation: Operation,
    /// Subject of the response, current or historical.
    pub(crate) subject: Subject,
    /// Empty if the operation has no sport.
    pub(crate) sport: &'a str,
    pub(crate) event: Option<&'a str>,
}

/// Subject of a response, each with an operation on current data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Sports,
    Events,
    Odds,
    Scores,
    EventOdds,
    EventMarkets,
    Participants,
}

impl Subject {
    pub(crate) const fn operation(self) -> Operation {
        match self {
            Self::Sports => Operation::V4Sports,
            Self::Events => Operation::V4Events,
            Self::Odds => Operation::V4Odds,
            Self::Scores => Operation::V4Scores,
            Self::EventOdds => Operation::V4EventOdds,
            Self::EventMarkets => Operation::V4EventMarkets,
            Self::Participants => Operation::V4Participants,
        }
    }
}

impl<'a> TargetPath<'a> {
    /// The query parameters of the operation.
    pub(crate) fn params(self) -> impl Iterator<Item = Param> {
        self.operation.v4_params(self.subject.operation())
    }

    pub(crate) fn is_historical(self) -> bool {
        self.operation == Operation::V4Historical
    }

    fn current(subject: Subject, sport: &'a str, event: Option<&'a str>) -> Self {
        Self { operation: subject.operation(), subject, sport, event }
    }

    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix("/v4/")?;
        // One trailing slash is ignored.
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut rest = path.split('/');
        let parts: [&str; 6] = std::array::from_fn(|_| rest.next().unwrap_or_default());
        if rest.next().is_some() {
            return None;
        }
        let [sports, sport, what, event, more, end] = parts;
        let of = |subject| Some(Self::current(subject, sport, None));
        let of_event = |subject| {
            let event = Some(event).filter(|event| !event.is_empty())?;
            Some(Self::current(subject, sport, Some(event)))
        };
        let found = match (sports, sport, what, event, more, end) {
            ("sports", "", "", "", "", "") => of(Subject::Sports),
            ("sports", _, "events", "", "", "") => of(Subject::Events),
            ("sports", _, "odds", "", "", "") => of(Subject::Odds),
            ("sports", _, "scores", "", "", "") => of(Subject::Scores),
            ("sports", _, "participants", "", "", "") => of(Subject::Participants),
            ("sports", _, "odds-history", "", "", "") => {
                Self::historical([sports, "", sport, "odds", "", ""])
            }
            ("sports", _, "events", _, "odds", "") => of_event(Subject::EventOdds),
            ("sports", _, "events", _, "markets", "") => of_event(Subject::EventMarkets),
            ("historical", "sports", ..) => Self::historical(parts),
            _ => None,
        };
        // Empty segments in the middle or at the end are invalid: `//`.
        found.filter(|found| {
            let named = found.subject == Subject::Sports || !found.sport.is_empty();
            named && !path.ends_with('/') && !path.contains("//")
        })
    }

    fn historical([_, _, sport, what, event, end]: [&'a str; 6]) -> Option<Self> {
        let (subject, event) = match (what, event, end) {
            ("odds", "", "") => (Subject::Odds, None),
            ("events", "", "") => (Subject::Events, None),
            ("events", event, "odds") if !event.is_empty() => (Subject::EventOdds, Some(event)),
            _ => return None,
        };
        Some(Self { operation: Operation::V4Historical, subject, sport, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_every_row_leads_to_its_operation() {
        for operation in Operation::v4() {
            let template = operation.row().path.unwrap();
            let names = template.split(['{', '}']).skip(1).step_by(2);
            let path = names
                .fold(template.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), name));
            let found = TargetPath::parse(&path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(found.operation, operation, "{path}");
            let (sport, event) = (template.contains("{sport}"), template.contains("{eventId}"));
            assert_eq!((found.sport == "sport", found.event == Some("eventId")), (sport, event));
        }
    }

    #[test]
    fn every_path_leads_to_its_operation_with_and_without_a_slash() {
        for (path, operation, subject, sport, event) in [
            ("/v4/sports", Operation::V4Sports, Subject::Sports, "", None),
            ("/v4/sports/x/events", Operation::V4Events, Subject::Events, "x", None),
            ("/v4/sports/x/odds", Operation::V4Odds, Subject::Odds, "x", None),
            ("/v4/sports/x/scores", Operation::V4Scores, Subject::Scores, "x", None),
            (
                "/v4/sports/x/participants",
                Operation::V4Participants,
                Subject::Participants,
                "x",
                None,
            ),
            ("/v4/sports/x/odds-history", Operation::V4Historical, Subject::Odds, "x", None),
            (
                "/v4/sports/x/events/e/odds",
                Operation::V4EventOdds,
                Subject::EventOdds,
                "x",
                Some("e"),
            ),
            (
                "/v4/sports/x/events/e/markets",
                Operation::V4EventMarkets,
                Subject::EventMarkets,
                "x",
                Some("e"),
            ),
            ("/v4/historical/sports/x/odds", Operation::V4Historical, Subject::Odds, "x", None),
            ("/v4/historical/sports/x/events", Operation::V4Historical, Subject::Events, "x", None),
            (
                "/v4/historical/sports/x/events/e/odds",
                Operation::V4Historical,
                Subject::EventOdds,
                "x",
                Some("e"),
            ),
        ] {
            let expected = Some(TargetPath { operation, subject, sport, event });
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

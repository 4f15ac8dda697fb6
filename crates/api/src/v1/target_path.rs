//! Paths under `/v1`.

use http::cut;

use crate::operation::Operation;

/// A path that names an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetPath<'a> {
    pub(crate) operation: Operation,
    pub(crate) sport: Option<&'a str>,
    pub(crate) event: Option<&'a str>,
    pub(crate) table: Option<&'a str>,
    pub(crate) date: Option<&'a str>,
}

impl<'a> TargetPath<'a> {
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        Operation::v1().find_map(|operation| {
            let mut target = TargetPath::of(operation);
            target.read(operation.row().path?, path).then_some(target)
        })
    }

    const fn of(operation: Operation) -> Self {
        Self { operation, sport: None, event: None, table: None, date: None }
    }

    /// Reads the variable parts of a path; `false` if it does not match the template.
    fn read(&mut self, mut template: &'static str, mut path: &'a str) -> bool {
        while let Some((literal, rest)) = cut(template, b'{') {
            let (Some((name, after)), Some(value)) = (cut(rest, b'}'), path.strip_prefix(literal))
            else {
                return false;
            };
            let end = value.find('/').unwrap_or(value.len());
            let (value, rest) = value.split_at(end);
            if value.is_empty() {
                return false;
            }
            let part = match name {
                "sport_key" => &mut self.sport,
                "table" => &mut self.table,
                "date" => &mut self.date,
                _ => &mut self.event,
            };
            *part = Some(value);
            (template, path) = (after, rest);
        }
        template == path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_paths_of_operations_lead_somewhere() {
        for (path, operation, sport, event) in [
            ("/v1/sports", Operation::ListSports, None, None),
            ("/v1/sports/mma/odds", Operation::GetOdds, Some("mma"), None),
            ("/v1/sports/golf/best", Operation::GetBest, Some("golf"), None),
            ("/v1/sports/golf/ev", Operation::ListEv, Some("golf"), None),
            ("/v1/sports/mma/events", Operation::ListEvents, Some("mma"), None),
            ("/v1/sports/mma/events/evt_1", Operation::GetEvent, Some("mma"), Some("evt_1")),
        ] {
            assert_eq!(
                TargetPath::parse(path),
                Some(TargetPath { sport, event, ..TargetPath::of(operation) })
            );
        }
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
            assert_eq!(TargetPath::parse(nowhere), None, "{nowhere}");
        }
    }
}

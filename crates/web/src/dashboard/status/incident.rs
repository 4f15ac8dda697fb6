//! Groups delays with one cause into an incident: a feed that stops delays all of its bookmakers and sports within a
//! minute.
use std::collections::BTreeSet;
use std::time::Duration;

use domain::Timestamp;

use crate::dashboard::status::DelayShown;
use crate::dashboard::time_text::{TimeText, span};

/// Maximum difference between the starts, and between the ends, of delays of one incident.
const TOGETHER: Duration = Duration::from_secs(60);
/// Maximum number of names in a cell; the rest are counted.
const NAMES_MAX: usize = 4;

/// Delays that began together and, if they are over, ended together.
#[derive(Debug)]
pub(super) struct Incident {
    pub(super) began: TimeText,
    pub(super) ended: bool,
    pub(super) lasted: String,
    pub(super) sports: String,
    pub(super) bookmakers: String,
    pub(super) sources: usize,
}

/// The incidents of these delays: ongoing ones first, then the newest.
pub(super) fn group(delays: &[DelayShown], now: Timestamp) -> Vec<Incident> {
    let mut sorted: Vec<&DelayShown> = delays.iter().collect();
    sorted.sort_by_key(|shown| {
        (shown.delay.ended_ms.is_some(), std::cmp::Reverse(shown.delay.began_ms))
    });
    let mut groups: Vec<Vec<&DelayShown>> = Vec::new();
    for shown in sorted {
        let fits = |group: &&mut Vec<&DelayShown>| {
            group.first().is_some_and(|first| are_together(first, shown))
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(shown),
            None => groups.push(vec![shown]),
        }
    }
    groups.iter().filter_map(|group| incident(group, now)).collect()
}

fn are_together(one: &DelayShown, other: &DelayShown) -> bool {
    let near = |one: i64, other: i64| Duration::from_millis(one.abs_diff(other)) <= TOGETHER;
    let ends = match (one.delay.ended_ms, other.delay.ended_ms) {
        (Some(one), Some(other)) => near(one, other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    ends && near(one.delay.began_ms, other.delay.began_ms)
}

fn incident(group: &[&DelayShown], now: Timestamp) -> Option<Incident> {
    let began = Timestamp::from_millis(group.iter().map(|shown| shown.delay.began_ms).min()?);
    let last = group.iter().filter_map(|shown| shown.delay.ended_ms).max();
    let ended = last.map(Timestamp::from_millis);
    Some(Incident {
        began: TimeText::new(began, now),
        ended: ended.is_some(),
        lasted: span(ended.unwrap_or(now).since(began)),
        sports: names(&group.iter().map(|shown| shown.sport.as_str()).collect()),
        bookmakers: names(&group.iter().map(|shown| shown.bookmaker.as_str()).collect()),
        sources: group.len(),
    })
}

/// `bet365, FanDuel and 3 more`.
fn names(all: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = all.iter().copied().take(NAMES_MAX).collect();
    match all.len().saturating_sub(NAMES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::status::record::{Delay, Source};

    fn delay(sport: &str, bookmaker: &str, began_s: i64, ended_s: Option<i64>) -> DelayShown {
        let (began, now) = (Timestamp::from_secs(began_s), Timestamp::from_secs(10_000));
        let source =
            Source { world: "live".into(), sport: sport.into(), bookmaker: bookmaker.into() };
        DelayShown {
            bookmaker: bookmaker.to_owned(),
            sport: sport.to_owned(),
            began: TimeText::new(began, now),
            ended: ended_s.map(|at| TimeText::new(Timestamp::from_secs(at), now)),
            lasted: String::new(),
            delay: Delay {
                source,
                began_ms: began_s * 1000,
                ended_ms: ended_s.map(|at| at * 1000),
            },
        }
    }

    #[test]
    fn a_feed_that_stops_is_one_incident() {
        let delays = [
            delay("mma", "fanduel", 5000, Some(5600)),
            delay("mma", "bet365", 5030, Some(5601)),
            delay("tennis", "fanduel", 5010, Some(5600)),
            delay("golf", "fanduel", 5010, Some(9000)),
            delay("mma", "fanduel", 9400, None),
        ];
        let incidents = group(&delays, Timestamp::from_secs(10_000));
        let shown: Vec<_> = incidents
            .iter()
            .map(|own| {
                (
                    own.ended,
                    own.sources,
                    own.sports.as_str(),
                    own.bookmakers.as_str(),
                    own.lasted.as_str(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (false, 1, "mma", "fanduel", "10 min"),
                (true, 3, "mma, tennis", "bet365, fanduel", "10 min"),
                (true, 1, "golf", "fanduel", "1 h"),
            ]
        );
        assert_eq!(names(&["a", "b", "c", "d", "e", "f"].into()), "a, b, c, d and 2 more");
    }
}

//! Refused sign-ins in the audit log: one line per source and address, but bounded, since the log is never shortened
//! and an attack must not fill the disk.

use std::collections::HashMap;
use std::net::IpAddr;

use domain::Timestamp;

use crate::{Actor, AuditAction, Origin, People, PeopleError};

/// Maximum number of lines within an hour, per process. Further refusals are counted and logged in one line of the
/// next hour. An attack of a year makes some 260 MB.
const LINES_MAX: u32 = 100;
/// Maximum number of source and address pairs that are distinguished within a minute; the others are counted
/// together.
const DISTINCT_MAX: usize = 1000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// A kind of refusal: the action, the email address and the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refused {
    pub(super) action: AuditAction,
    pub(super) email: String,
    pub(super) source: Option<IpAddr>,
}

/// A line to log, with the number of refusals; `None` for all that were not distinguished.
type Line = (Option<Refused>, u64);

#[derive(Debug, Default)]
pub(super) struct Refusals {
    minute: i64,
    hour: i64,
    lines: u32,
    /// Refusals of this minute, with their number since they were logged.
    seen: HashMap<Refused, u64>,
    rest: u64,
}

impl Refusals {
    /// Counts one refusal and returns the lines to log now: the first of its kind within a minute.
    fn count(&mut self, refused: Refused, now: Timestamp) -> Vec<Line> {
        let mut due = self.turn(now);
        if let Some(times) = self.seen.get_mut(&refused) {
            *times += 1;
        } else if self.seen.len() < DISTINCT_MAX && self.has_line() {
            due.push((Some(refused.clone()), 1));
            self.seen.insert(refused, 0);
        } else {
            self.rest += 1;
        }
        due
    }

    /// The lines that are left to log for past minutes and hours.
    fn turn(&mut self, now: Timestamp) -> Vec<Line> {
        let now_ms = now.as_millis();
        let (minute, hour) = (now_ms.div_euclid(MINUTE_MS), now_ms.div_euclid(HOUR_MS));
        let mut due = Vec::new();
        if minute != self.minute {
            self.minute = minute;
            for (refused, times) in std::mem::take(&mut self.seen) {
                if times > 0 && self.has_line() {
                    due.push((Some(refused), times));
                } else {
                    self.rest += times;
                }
            }
        }
        if hour != self.hour {
            (self.hour, self.lines) = (hour, 0);
            if self.rest > 0 {
                due.push((None, std::mem::take(&mut self.rest)));
            }
        }
        due
    }

    fn has_line(&mut self) -> bool {
        let has = self.lines < LINES_MAX;
        self.lines += u32::from(has);
        has
    }
}

impl People {
    /// Logs that a sign-in was refused. A failure to log changes nothing for the client.
    pub(super) async fn note_refusal(&self, action: AuditAction, email: &str, from: &Origin) {
        let refused = Refused { action, email: email.to_owned(), source: from.source() };
        let now = self.clock.now();
        let due = self.refusals().count(refused, now);
        if let Err(error) = self.write_lines(&due, now).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(event = "audit.failed", error, "refused sign-in not in the audit log");
        }
    }

    /// Logs the counts of past minutes.
    pub(super) async fn write_refusals(&self, now: Timestamp) -> Result<(), PeopleError> {
        let due = self.refusals().turn(now);
        self.write_lines(&due, now).await
    }

    async fn write_lines(&self, lines: &[Line], now: Timestamp) -> Result<(), PeopleError> {
        let entries: Vec<_> = lines
            .iter()
            .map(|(refused, times)| {
                let address = refused.as_ref().and_then(|refused| refused.source);
                let from = Origin { address, agent: String::new(), device: None };
                let actor = Actor::stranger(&from);
                match refused {
                    Some(Refused { action, email, .. }) => {
                        let again = format!("{times} more within a minute");
                        let detail = if *times > 1 { again.as_str() } else { "" };
                        actor.entry(now, *action, email, detail)
                    }
                    None => {
                        let detail = format!("{times} more, not distinguished");
                        actor.entry(now, AuditAction::SignInRefused, "anybody", &detail)
                    }
                }
            })
            .collect();
        Ok(self.store.append_audit(&entries).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(n: u32) -> Refused {
        let email = "ann@example.com".to_owned();
        Refused {
            action: AuditAction::SignInRefused,
            email,
            source: Some(IpAddr::from(n.to_be_bytes())),
        }
    }

    #[test]
    fn hostile_a_flood_of_refusals_is_counted_and_not_written_line_by_line() {
        let mut refusals = Refusals::default();
        let begun = Timestamp::from_secs(36_000);
        let mut written = Vec::new();
        for second in 0..3600_i64 {
            let now = Timestamp::from_secs(36_000 + second);
            for n in 0..20 {
                written.extend(refusals.count(refused(n), now));
                // From many sources at once.
                let anew = u32::try_from(1000 + second).unwrap() * 20 + n;
                written.extend(refusals.count(refused(anew), now));
            }
            assert!(refusals.seen.len() <= DISTINCT_MAX);
        }
        assert_eq!(written.len(), usize::try_from(LINES_MAX).unwrap());
        written.extend(refusals.turn(begun.plus(std::time::Duration::from_secs(3600))));
        assert_eq!(written.len(), usize::try_from(LINES_MAX).unwrap() + 1);
        let times: u64 = written.iter().map(|(_, times)| times).sum();
        assert_eq!(times, 3600 * 40, "every refusal is counted");
    }

    #[test]
    fn hostile_refusals_of_one_source_and_address_are_two_lines_a_minute() {
        let mut refusals = Refusals::default();
        let at = Timestamp::from_secs;
        assert_eq!(refusals.count(refused(1), at(60)), [(Some(refused(1)), 1)]);
        for second in 61..100 {
            assert_eq!(refusals.count(refused(1), at(second)), []);
        }
        assert_eq!(refusals.count(refused(2), at(100)), [(Some(refused(2)), 1)]);
        assert_eq!(refusals.turn(at(119)), []);
        assert_eq!(refusals.turn(at(120)), [(Some(refused(1)), 39)]);
        assert_eq!(refusals.count(refused(1), at(121)), [(Some(refused(1)), 1)]);
    }
}

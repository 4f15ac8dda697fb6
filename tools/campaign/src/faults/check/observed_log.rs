//! The content of the log, read back entry by entry.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::faults::market::{self, Series};

/// The parts of the log that the checker needs: prices by the number of their batch, and the cuts of snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::faults) struct ObservedLog {
    /// Each series' numbers, in the order of the log.
    pub(super) quoted: BTreeMap<Series, Vec<u32>>,
    pub(super) cuts: Vec<Cut>,
    pub(in crate::faults) entries: u64,
}

/// A published snapshot: its time, and the number of each series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at_ms: i64,
    pub(super) shows: BTreeMap<Series, u32>,
}

impl ObservedLog {
    /// Reads a log that was printed as one JSON text a line.
    pub(in crate::faults) fn read(text: &str) -> Result<Self> {
        let mut log = Self::default();
        let mut homes: HashMap<u64, String> = HashMap::new();
        let mut shows = BTreeMap::new();
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line).context("the printed log is not JSON")?;
            let change = entry.get("change").context("an entry has no change")?;
            log.entries += 1;
            if let Some(listed) = change.get("Listed") {
                let event = listed.get("event").and_then(Value::as_u64).context("no event")?;
                let home = listed.pointer("/fixture/HeadToHead/home").and_then(Value::as_str);
                homes.insert(event, home.unwrap_or_default().to_owned());
            } else if let Some(quoted) = change.get("Quoted") {
                let (series, n) = read_quoted(quoted, &homes)
                    .with_context(|| format!("not a price that was pushed: {quoted}"))?;
                log.quoted.entry(series).or_default().push(n);
                shows.insert(series, n);
            } else if let Some(at_ms) = change.pointer("/Cut/at").and_then(Value::as_i64) {
                log.cuts.push(Cut { at_ms, shows: shows.clone() });
            }
        }
        Ok(log)
    }
}

fn read_quoted(quoted: &Value, homes: &HashMap<u64, String>) -> Option<(Series, u32)> {
    let home = homes.get(&quoted.get("event")?.as_u64()?)?;
    let bookmaker = quoted.pointer("/market/bookmaker")?.as_str()?;
    let market = match quoted.pointer("/market/market")?.as_str()? {
        "Moneyline" => "moneyline",
        "TotalRounds" => "total_rounds",
        "TotalPoints" => "total_points",
        _ => return None,
    };
    let number = |outcome: &Value| {
        let profit = outcome.pointer("/quote/price/profit")?.as_u64()?;
        let stake = outcome.pointer("/quote/price/stake")?.as_u64()?;
        market::number_of_ratio(profit, stake)
    };
    // The other outcome's price is too low to be a number.
    let n = quoted.get("outcomes")?.as_array()?.iter().find_map(number)?;
    Some((market::series_of(home, bookmaker, market)?, n))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A log with these numbers of one series, cut after each.
    pub(in crate::faults::check) fn log(series: Series, numbers: &[u32]) -> ObservedLog {
        let cut = |(at_s, n): (i64, &u32)| Cut {
            at_ms: 1000 * at_s,
            shows: BTreeMap::from([(series, *n)]),
        };
        ObservedLog {
            quoted: BTreeMap::from([(series, numbers.to_vec())]),
            cuts: (1..).zip(numbers).map(cut).collect(),
            entries: 2 * numbers.len() as u64,
        }
    }

    #[test]
    fn a_printed_log_is_read() {
        let text = r#"{"seq":1,"at_ms":1,"change":{"Listed":{"event":5,"fixture":{"HeadToHead":{"home":"Anton Berger","away":"Luis Calderon"}}}}}
{"seq":2,"at_ms":1,"change":{"Quoted":{"event":5,"market":{"bookmaker":"fanduel","market":"Moneyline","group":null},"outcomes":[{"quote":{"price":{"profit":1001,"stake":1000},"format":"Decimal"}},{"quote":{"price":{"profit":1,"stake":2},"format":"Decimal"}}],"ts":1}}}
{"seq":3,"at_ms":2,"change":{"Cut":{"at":2000}}}
"#;
        let observed = ObservedLog::read(text).unwrap();
        let series = Series { pusher: 0, line: 0 };
        assert_eq!(observed.quoted, BTreeMap::from([(series, vec![1])]));
        assert_eq!(observed.cuts, [Cut { at_ms: 2000, shows: BTreeMap::from([(series, 1)]) }]);
    }
}

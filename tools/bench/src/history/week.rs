//! Archive size of a generated past, and answers from a week of it.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use archive::{Archive, Compact, Outcome, Table};
use domain::{EventId, Timestamp};
use serde_json::Value;

use super::made::{self, EVENT_RECORDS, Outcomes, Plan, Reads};
use super::past::points_of;
use super::{bar, float, seconds};
use crate::Effort;
use crate::bar::{Bar, Unit};
use crate::rounds::median;
use crate::service::{self, Answer, Service, get};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Changes of 10,000 records at 100 a second.
const CHANGES: usize = 400_000;
/// Changes of the large market in a week.
const WEEK_CHANGES: usize = 1_500_000;
/// Part of that week removed by retention.
const RETIRED: Duration = Duration::from_secs(2 * 24 * 3600);
/// Number of events that start in that week.
const STARTS: usize = 120;
/// Number of requests after the first.
const REPEATS: usize = 5;

/// Bytes in the archive for each kind of entry.
pub(super) fn storage(folder: &Path, effort: Effort, bars: &mut Vec<Bar>) -> Result<()> {
    shell::say("history: making archives to weigh them");
    let part = if effort.records < 100_000 { 4 } else { 1 };
    let plain = Plan {
        sport: "tennis",
        records: super::RECORDS_FEW,
        // A past day, starting in the middle of it.
        from: Timestamp::from_secs(1_794_000_000),
        time: Duration::from_secs(4_000) / u32::try_from(part)?,
        changes: 0,
        reads: Reads::Never,
        outcomes: Outcomes::Two,
        starts: 0,
    };
    let make = |name: &str, plan: Plan| made::make(&folder.join(name), plan);
    let changes = CHANGES / part;
    let two = make("two", Plan { changes, ..plain })?;
    let begun = make("begun", plain)?;
    let each = float(two.bytes() - begun.bytes()) / float(two.changes);
    let name = "history: archive for each changed record with two outcomes";
    let note = format!(
        "{} changes of {} records, each on its own, files put together, all tables",
        shell::thousands(float(two.changes)),
        shell::thousands(float(super::count(super::RECORDS_FEW)))
    );
    bars.push(bar(name, Unit::Bytes, (25.0, 25.0), each, note));
    let outcomes = Outcomes::Three;
    let three = make("three", Plan { changes, outcomes, ..plain })?;
    let begun_three = make("begun-three", Plan { outcomes, ..plain })?;
    let own = float(three.bytes() - begun_three.bytes()) / float(three.changes);
    let name = "history: archive for a further outcome of a changed record";
    bars.push(bar(name, Unit::Bytes, (4.0, 4.0), own - each, String::new()));
    let read = make("read", Plan { changes, reads: Reads::Often, ..plain })?;
    ensure!(read.rows(Table::Reads) == read.confirmations, "not all was confirmed");
    let own = float(read.bytes().saturating_sub(two.bytes())) / float(read.confirmations);
    let name = "history: archive for each confirmation";
    let note = format!(
        "{} of them: each source is read as a whole every 30 s",
        shell::thousands(float(read.confirmations))
    );
    bars.push(bar(name, Unit::Bytes, (2.0, 2.0), own, note));
    Ok(())
}

/// Times of answers from a week.
pub(super) fn answers(
    program: &Path,
    folder: &Path,
    effort: Effort,
    bars: &mut Vec<Bar>,
) -> Result<()> {
    shell::say("history: making a week of the large market");
    let setup = service::setup(program, &folder.join("week"), "10s")?;
    let service = Service::start(&setup)?;
    let key = service.make_keys(1)?.pop().context("no key")?;
    service.stop()?;
    let data = setup.folder.join("data");
    fs::remove_dir_all(data.join("live"))?;
    if data.join("archive").exists() {
        fs::remove_dir_all(data.join("archive"))?;
    }
    // The service has just written there.
    let now = fs::metadata(&data)?.modified()?.duration_since(UNIX_EPOCH)?.as_secs();
    let time = 7 * DAY - Duration::from_secs(3600);
    let changes = WEEK_CHANGES * effort.records / 200_000;
    let plan = Plan {
        sport: "tennis",
        records: effort.records,
        from: Timestamp::from_secs(i64::try_from(now)?).minus(7 * DAY),
        time,
        changes,
        reads: Reads::Never,
        outcomes: Outcomes::Two,
        starts: STARTS,
    };
    made::make(&data.join("archive").join("live"), plan)?;
    let service = Service::start(&setup)?;
    let name = "history: price paths of an event over a week, the large market";
    let (took, note) = paths(&service, &key, effort)?;
    bars.push(seconds(name, (0.1, 0.1), took, format!("{note}, of {changes} changes")));
    let mut found = Vec::new();
    let mut lines = 0;
    for more in 0..REPEATS {
        // A different limit each time, so that no answer is cached.
        let limit = 300 + more;
        let path = format!("/v1/sports/tennis/odds/closing?bookmaker=fanduel&limit={limit}");
        let (answer, took) = timed(&service, &key, &path)?;
        let closed: Vec<Value> = serde_json::from_slice(&answer.body)?;
        (lines, found) = (closed.len(), [found, vec![took]].concat());
    }
    let first = found.first().copied().unwrap_or_default();
    let note = format!("{lines} lines, the large market; the first question {first:.2} s");
    let name = "history: closing lines of 100 events";
    bars.push(seconds(name, (0.3, 0.3), median(found), note));
    service.stop()?;
    retire(&data.join("archive").join("live"), plan.from.plus(RETIRED))?;
    let service = Service::start(&setup)?;
    let name = "history: price paths of an event older than retention, the large market";
    let (took, note) = paths(&service, &key, effort)?;
    bars.push(seconds(name, (0.1, 0.1), took, format!("{note}; they begin with the oldest book")));
    Ok(())
}

/// Removes everything before a time from an archive.
fn retire(root: &Path, oldest: Timestamp) -> Result<()> {
    let archive = Archive::create(root)?;
    let mut commit = archive.newest()?;
    let files = commit.files.len();
    while let Some(compacted) = archive.compact(&commit, &Compact::All, oldest)? {
        ensure!(compacted.outcome == Outcome::Committed, "somebody else writes the archive");
        commit = compacted.commit;
    }
    ensure!(commit.files.len() < files, "nothing of the archive is old enough");
    Ok(())
}

/// Sends one request to a service and measures its time.
fn timed(service: &Service, key: &str, path: &str) -> Result<(Answer, f64)> {
    let begun = std::time::Instant::now();
    let answer = get(service.address, path, &format!("x-api-key: {key}\r\n"))?;
    let took = begun.elapsed().as_secs_f64();
    ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.head);
    Ok((answer, took))
}

/// The time of price paths of events that have not started yet, so that they existed all week.
fn paths(service: &Service, key: &str, effort: Effort) -> Result<(f64, String)> {
    let last = effort.records / EVENT_RECORDS;
    let path_of = |back: usize| {
        let event = EventId::from_number(super::count(last.saturating_sub(back)));
        format!("/v1/sports/tennis/events/{event}/odds/history?bookmaker=fanduel")
    };
    let (answer, first) = timed(service, key, &path_of(0))?;
    let points = points_of(&answer)?;
    let mut others = Vec::new();
    for back in 1..=REPEATS {
        others.push(timed(service, key, &path_of(back))?.1);
    }
    Ok((median(others), format!("{points}; the first question {first:.2} s")))
}

//! Instructions: what a ready answer costs in user space, counted by callgrind. Unlike times, the count is the same on
//! a busy machine, so a change of a few percent is a change of the code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::load::{Plan, Run};
use super::service::{Market, ODDS, Service, Setup, request};
use shell::repository::Repository;

/// What was counted when somebody last looked.
const BASELINE: &str = "docs/performance/instructions.txt";
/// Functions in the baseline.
const HOTTEST: usize = 10;
/// Larger changes are marked.
const MOVED: f64 = 0.02;
/// Connections that ask at the same time, so that waiting for them is shared as it is under load.
const CONNECTIONS: usize = 16;
/// Requests on each.
const REQUESTS: usize = 64;
/// A few hundred records are a full answer; starting with more only takes longer.
const RECORDS: usize = 2_000;

/// Instructions for one request, by function, and in all.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) total: f64,
    by_function: BTreeMap<String, f64>,
}

/// Counts, compares with the baseline and tells; `update` makes what was counted the baseline.
pub(super) fn check(repository: &Repository, program: &Path, update: bool) -> Result<()> {
    let counts = count(program)?;
    let path = repository.root.join(BASELINE);
    let baseline = fs::read_to_string(&path).map(|text| parse(&text)).unwrap_or_default();
    let mut report = String::new();
    for (name, count) in counts.hottest() {
        let change = baseline.get(name).map(|before| count / before - 1.0);
        let word = match change {
            None => "  new".to_owned(),
            Some(change) if change.abs() > MOVED => format!("{:+6.1} %  moved", change * 100.0),
            Some(change) => format!("{:+6.1} %", change * 100.0),
        };
        writeln!(report, "{count:8.0}  {word:16}  {name}")?;
    }
    shell::print(&report)?;
    if update {
        fs::create_dir_all(repository.root.join(super::report::FOLDER))?;
        fs::write(&path, counts.to_text())?;
        shell::say(&format!("{BASELINE} holds these counts now"));
    }
    Ok(())
}

impl Counts {
    /// Those of functions whose names begin so.
    pub(super) fn of(&self, path: &str) -> f64 {
        let named = |name: &str| name.trim_start_matches(['<', '&']).starts_with(path);
        self.by_function.iter().filter(|(name, _)| named(name)).map(|(_, count)| count).sum()
    }

    /// The whole request, then its hottest functions.
    fn hottest(&self) -> Vec<(&str, f64)> {
        let mut functions: Vec<(&str, f64)> =
            self.by_function.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        functions.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        functions.truncate(HOTTEST);
        functions.insert(0, ("a ready answer of 100 records", self.total));
        functions
    }

    fn to_text(&self) -> String {
        let mut text = String::from(
            "# Instructions in user space for each request, by function, without those it calls.\n\
             # Written by `cargo xtask bench --instructions --update`.\n",
        );
        for (name, count) in self.hottest() {
            text.push_str(&format!("{count:.0} {name}\n"));
        }
        text
    }
}

fn parse(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (count, name) = line.split_once(' ')?;
            Some((name.to_owned(), count.parse().ok()?))
        })
        .collect()
}

/// Runs the service under callgrind, which starts to count when the answer is ready.
pub(super) fn count(program: &Path) -> Result<Counts> {
    let folder = tempfile::tempdir()?;
    let mut setup = super::service::setup(program, folder.path(), "100ms")?;
    let service = Service::start(&setup)?;
    let keys = service.make_keys(1)?;
    let key = keys.first().context("no key")?;
    Market::fill(&service, key, RECORDS)?;
    shell::sleep(Duration::from_millis(500));
    service.stop()?;
    let out = folder.path().join("callgrind.out");
    setup.refresh_interval = "1h";
    setup.under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--compress-strings=no"]
        .map(str::to_owned)
        .into();
    setup.under.push(format!("--callgrind-out-file={}", out.display()));
    let service = Service::start(&setup)?;
    ask(&service, &setup, key)?;
    drop(service);
    let counted =
        fs::read_to_string(format!("{}.1", out.display())).context("callgrind left no figures")?;
    Ok(sum(&counted, super::float(u64::try_from(CONNECTIONS * REQUESTS)?)))
}

fn ask(service: &Service, setup: &Setup, key: &str) -> Result<()> {
    let requests = [request(&format!("{ODDS}?limit=100"), &format!("x-api-key: {key}\r\n"))];
    let mut load = Run::open(Plan {
        to: service.address,
        requests: &requests,
        connections: CONNECTIONS,
        time: Duration::ZERO,
        rate: None,
        first: 0,
    })?;
    let control = |words: &[&str]| {
        let mut command = shell::command("callgrind_control", &setup.folder);
        shell::output(command.args(words).arg(service.pid().to_string())).map(drop)
    };
    (0..4).try_for_each(|_| load.ask_all())?;
    control(&["-i", "on"])?;
    load.ask_all()?;
    control(&["-z"])?;
    (0..REQUESTS).try_for_each(|_| load.ask_all())?;
    control(&["-d"])
}

/// Adds up what callgrind wrote: each `fn=` begins a function, a line of numbers is its own cost, and the line after
/// `calls=` is the cost of what it called, which is that function's.
fn sum(counted: &str, requests: f64) -> Counts {
    let mut by_function: BTreeMap<String, f64> = BTreeMap::new();
    let mut function = String::new();
    let mut called = false;
    for line in counted.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if line.starts_with("calls=") {
            called = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<f64>().ok());
            if !std::mem::take(&mut called) {
                *by_function.entry(function.clone()).or_default() += cost.unwrap_or_default();
            }
        }
    }
    by_function.values_mut().for_each(|count| *count /= requests);
    Counts { total: by_function.values().sum(), by_function }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers are exact")]
    fn a_functions_own_cost_is_summed_and_its_calls_are_not() {
        let counted = "version: 1\nevents: Ir\n\nfl=a.rs\nfn=hot\n10 100\nfi=b.rs\n+3 50\ncfn=cold\n\
                       calls=5 20\n12 1000\n* 10\n\nfn=cold\n20 40\n\ntotals: 200\n";
        let counts = sum(counted, 2.0);
        assert_eq!(counts.by_function.get("hot"), Some(&80.0));
        assert_eq!(counts.by_function.get("cold"), Some(&20.0));
        assert_eq!(counts.total, 100.0);
        assert_eq!(parse(&counts.to_text()).get("hot"), Some(&80.0));
    }
}

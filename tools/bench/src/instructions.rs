//! Instructions of a ready answer in user space, counted by callgrind. Unlike times, the count is the same on a busy
//! machine, so a change of a few percent is a change of the code.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::load::{Plan, Run};
use super::service::{Market, ODDS, Service, Setup, request};
use shell::repository::Repository;

/// The recorded counts.
const BASELINE: &str = "docs/performance/instructions.txt";
/// Number of functions in the baseline.
const HOTTEST: usize = 10;
/// Larger changes are marked.
const MOVED: f64 = 0.02;
/// Number of concurrent connections, so that waiting is shared as under load.
const CONNECTIONS: usize = 16;
/// Number of requests on each connection.
const REQUESTS: usize = 64;
/// Enough for a full answer; a larger market only takes longer to start.
const RECORDS: usize = 2_000;
/// Maximum number of streams counted at the same time.
const STREAMS_MAX: usize = 1_000;

/// Instructions, by function and in all.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) total: f64,
    by_function: BTreeMap<String, f64>,
    /// Counts of functions including everything they call.
    within: BTreeMap<String, Within>,
}

/// Counts of a function including everything it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Within {
    pub(super) instructions: f64,
    pub(super) system_calls: f64,
}

/// Counts, compares with the baseline and reports; `update` replaces the baseline.
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
    /// Counts of a function including everything it calls; zero if it was not called.
    pub(super) fn within(&self, function: &str) -> Within {
        self.within.get(function).copied().unwrap_or_default()
    }

    /// Instructions of all functions whose names start with a path.
    pub(super) fn of(&self, path: &str) -> f64 {
        let named = |name: &str| name.trim_start_matches(['<', '&']).starts_with(path);
        self.by_function.iter().filter(|(name, _)| named(name)).map(|(_, count)| count).sum()
    }

    /// The total, then the functions with the most instructions.
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

/// Instructions of a ready answer with a hundred records.
pub(super) fn count(program: &Path) -> Result<Counts> {
    let folder = tempfile::tempdir()?;
    let setup = super::service::setup(program, folder.path(), "1h")?;
    let (service, _, key) = Callgrind::with_market(setup, RECORDS)?;
    let asked = [request(&format!("{ODDS}?limit=100"), &format!("x-api-key: {key}\r\n"))];
    service.count_requests(&asked)
}

/// A service under callgrind, which counts on request.
pub(super) struct Callgrind {
    pub(super) service: Service,
    folder: PathBuf,
    out: PathBuf,
    /// Number of dumps so far.
    written: Cell<usize>,
}

impl Callgrind {
    /// Starts the service on a market that was filled beforehand without callgrind; returns a key for it, too.
    pub(super) fn with_market(mut setup: Setup, records: usize) -> Result<(Self, Market, String)> {
        let refresh_interval = std::mem::replace(&mut setup.refresh_interval, "100ms");
        let service = Service::start(&setup)?;
        let key = service.make_stream_key(STREAMS_MAX)?;
        let market = Market::fill(&service, &key, records)?;
        shell::sleep(Duration::from_millis(500));
        service.stop()?;
        setup.refresh_interval = refresh_interval;
        let (folder, out) = (setup.folder.clone(), setup.folder.join("callgrind.out"));
        setup.under = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            "--collect-systime=msec",
            "--compress-strings=no",
        ]
        .map(str::to_owned)
        .into();
        setup.under.push(format!("--callgrind-out-file={}", out.display()));
        let service = Service::start(&setup)?;
        let market = market.moved_to(&service);
        Ok((Self { service, folder, out, written: Cell::new(0) }, market, key))
    }

    /// Instructions per request, alternating between the requests, after a warm-up.
    pub(super) fn count_requests(&self, requests: &[Vec<u8>]) -> Result<Counts> {
        let plan = Plan {
            to: self.service.address,
            requests,
            connections: CONNECTIONS,
            time: Duration::ZERO,
            rate: None,
            first: 0,
        };
        let mut load = Run::open(plan)?;
        (0..4).try_for_each(|_| load.ask_all())?;
        self.begin()?;
        load.ask_all()?;
        let (mut counts, ()) = self.count(|| (0..REQUESTS).try_for_each(|_| load.ask_all()))?;
        let requests = super::float(u64::try_from(CONNECTIONS * REQUESTS)?);
        counts.by_function.values_mut().for_each(|count| *count /= requests);
        counts.total /= requests;
        Ok(counts)
    }

    /// Turns counting on.
    pub(super) fn begin(&self) -> Result<()> {
        self.control(&["-i", "on"])
    }

    /// Counts during some work.
    pub(super) fn count<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(Counts, T)> {
        self.control(&["-z"])?;
        let done = work()?;
        self.control(&["-d"])?;
        self.written.set(self.written.get() + 1);
        let out = format!("{}.{}", self.out.display(), self.written.get());
        let counted = fs::read_to_string(out).context("callgrind left no figures")?;
        Ok((sum(&counted), done))
    }

    fn control(&self, words: &[&str]) -> Result<()> {
        let mut command = shell::command("callgrind_control", &self.folder);
        shell::output(command.args(words).arg(self.service.pid().to_string())).map(drop)
    }
}

/// Sums callgrind's output.
///
/// Each `fn=` begins a function, a line of numbers is its own cost, and the line after `calls=` is the cost of the
/// function that `cfn=` names. The first number of a cost is instructions, the second system calls.
fn sum(counted: &str) -> Counts {
    let mut by_function: BTreeMap<String, f64> = BTreeMap::new();
    let mut within: BTreeMap<String, Within> = BTreeMap::new();
    let (mut function, mut callee) = (String::new(), String::new());
    let mut called = false;
    for line in counted.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name.to_owned();
        } else if line.starts_with("calls=") {
            called = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let mut costs = line.split_whitespace().skip(1).map(|cost| cost.parse().unwrap_or(0.0));
            let (instructions, calls) = (costs.next().unwrap_or(0.0), costs.next().unwrap_or(0.0));
            if std::mem::take(&mut called) {
                let within = within.entry(callee.clone()).or_default();
                within.instructions += instructions;
                within.system_calls += calls;
            } else {
                *by_function.entry(function.clone()).or_default() += instructions;
            }
        }
    }
    Counts { total: by_function.values().sum(), by_function, within }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers are exact")]
    fn a_functions_own_cost_is_summed_and_its_calls_are_not() {
        let counted = "version: 1\nevents: Ir\n\nfl=a.rs\nfn=hot\n10 100\nfi=b.rs\n+3 50\ncfn=cold\n\
                       calls=5 20\n12 1000 7\n* 10\n\nfn=cold\n20 40\n\ntotals: 200\n";
        let counts = sum(counted);
        assert_eq!(counts.by_function.get("hot"), Some(&160.0));
        assert_eq!(counts.by_function.get("cold"), Some(&40.0));
        assert_eq!(counts.total, 200.0);
        assert_eq!(counts.within("cold"), Within { instructions: 1000.0, system_calls: 7.0 });
        assert_eq!(counts.within("hot"), Within::default());
        assert_eq!(parse(&counts.to_text()).get("hot"), Some(&160.0));
    }
}

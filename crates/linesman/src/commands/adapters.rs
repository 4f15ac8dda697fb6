//! `linesman feeds check|translate|kinds|status|read|quarantine`: the upstream adapters of the configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use accounts::{Actor, Registry};
use adapters::KINDS;
use adapters::build::{Adapter, run_adapter};
use adapters::ledger::{Ledger, ReadAt, Rules};
use adapters::report::{Report, Reporter};
use adapters::runner::Context;
use adapters::settings::{AdapterSettings, KindSettings, Speed};
use adapters::sink::{Answer, NotTaken, OpenEvent, Receipt, Sink};
use adapters::tape::{Record, Tape};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use domain::suggest::did_you_mean;
use domain::{Catalogue, Clock as _, Timestamp};
use feeds::push::{self, Rights};
use market::{Book, Change, Ids, Verdict};
use serde_json::{Value, json};
use store::Store;

use crate::cli::{FeedsCheckArgs, FeedsTranslateArgs, output};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::upstream::{parse_report, to_open};
use crate::{catalogue, open};

/// Maximum number of rejected messages shown.
const REJECTS_SHOWN: usize = 20;

/// Finds an adapter of the configuration.
pub(crate) fn find<'a>(config: &'a Config, name: &str) -> anyhow::Result<&'a AdapterSettings> {
    let found = config.adapters.iter().find(|adapter| adapter.name == name);
    found.with_context(|| {
        let near = did_you_mean(name, config.adapters.iter().map(|adapter| adapter.name.as_str()));
        format!("there is no `[adapters.{name}]` in the configuration{near}")
    })
}

fn build_one(config: &Config, name: &str, catalogue: &Arc<Catalogue>) -> anyhow::Result<Adapter> {
    find(config, name)?;
    let built = config.build_adapters(catalogue)?;
    let found = built.into_iter().find(|adapter| adapter.settings.name == name);
    found.with_context(|| format!("`adapters.{name}` cannot be run"))
}

/// `feeds kinds`.
pub(crate) fn kinds(json: bool) -> anyhow::Result<()> {
    if json {
        let kinds = KINDS.iter().map(|row| {
            let keys: Vec<&str> = row.keys().collect();
            json!({ "kind": row.name, "about": row.about, "terms": row.terms, "keys": keys })
        });
        return output::print_line(&Value::from(kinds.collect::<Vec<_>>()).to_string());
    }
    let mut text = String::new();
    for row in &KINDS {
        let keys = row.own_keys.join(", ");
        // Writing to a `String` cannot fail.
        write!(text, "{}: {}\n  keys: {keys}\n  terms: {}\n", row.name, row.about, row.terms)?;
    }
    write!(text, "keys of all kinds: {}", adapters::settings::COMMON_KEYS.join(", "))?;
    output::print_line(&text)
}

/// `feeds status`.
pub(crate) async fn status(
    config: &Config,
    store: &Store,
    name: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    if let Some(name) = name {
        find(config, name)?;
    }
    let now = SystemClock.now();
    let rows = store.adapters().await?;
    let wanted = config.adapters.iter().filter(|own| name.is_none_or(|name| name == own.name));
    let reports: Vec<Report> = wanted
        .map(|settings| {
            let row = rows.iter().find(|row| row.name == settings.name && settings.enabled);
            let known = row.and_then(|row| parse_report(row, now)).map(|(_, report)| report);
            known.unwrap_or_else(|| Reporter::new(&settings.name, settings.row().name).report())
        })
        .collect();
    if json {
        return output::print_line(&json!({ "adapters": reports }).to_string());
    }
    let mut text =
        format!("{:<20} {:<14} {:<9} {:<22} message", "name", "kind", "state", "last good read");
    for report in &reports {
        let Report { name, kind, state, message, last_good_read, .. } = report;
        let last = last_good_read.as_deref().unwrap_or("never");
        write!(text, "\n{name:<20} {kind:<14} {:<9} {last:<22} {message}", state.key())?;
    }
    output::print_line(&text)
}

/// `feeds read`.
pub(crate) async fn read(config: &Config, registry: &Registry, name: &str) -> anyhow::Result<()> {
    let adapter = find(config, name)?;
    if !adapter.enabled {
        bail!("`adapters.{name}` is not enabled; set `enabled = true`");
    }
    registry.ask_adapter_read(name, &Actor::command_line()).await?;
    output::print_line("requested; `linesman feeds status` shows the read")
}

/// `feeds quarantine`.
pub(crate) async fn quarantine(
    config: &Config,
    store: &Store,
    name: &str,
    json: bool,
) -> anyhow::Result<()> {
    find(config, name)?;
    let samples = store.adapter_samples(name).await?;
    if json {
        let shown = samples.iter().map(|sample| {
            json!({
                "at": Timestamp::from_millis(sample.at_ms).to_string(), "unit": sample.unit, "path": sample.path,
                "reason": sample.reason, "body": String::from_utf8_lossy(&sample.body),
            })
        });
        return output::print_line(&Value::from(shown.collect::<Vec<_>>()).to_string());
    }
    if samples.is_empty() {
        return output::print_line("nothing is quarantined");
    }
    let mut text = String::new();
    for sample in samples {
        let at = Timestamp::from_millis(sample.at_ms);
        let body: String = String::from_utf8_lossy(&sample.body).chars().take(400).collect();
        write!(text, "{at} {} {}: {}\n{body}\n\n", sample.unit, sample.path, sample.reason)?;
    }
    output::print_line(&text)
}

/// `feeds translate`: bodies or tapes to messages.
pub(crate) fn translate(config: &Config, args: &FeedsTranslateArgs) -> anyhow::Result<()> {
    let catalogue = catalogue::load(config)?;
    let adapter = build_one(config, &args.name, &catalogue)?;
    let settings = &adapter.settings;
    let Some(mut translator) = adapter.translator() else {
        bail!("`adapters.{}` prints messages itself; there is nothing to translate", args.name);
    };
    let rules = Rules { remove_after: settings.remove_after, in_play: settings.in_play };
    let mut ledger = Ledger::default();
    for file in &args.files {
        for record in records(file)? {
            let record = record.with_context(|| format!("{} cannot be read", file.display()))?;
            if record.status.is_some_and(|status| status != 200) || record.unit == "sports" {
                continue;
            }
            let now = record.instant().unwrap_or_else(|| SystemClock.now());
            let read = translator.translate(&record.unit, &record.bytes()?, now);
            let read = read.with_context(|| format!("{}, unit {}", file.display(), record.unit))?;
            let at = ReadAt { unit: &record.unit, at: now, now, fresh_for_s: None, all_read: true };
            let mut text = String::new();
            for message in ledger.take(read, at, rules).messages {
                push::write_line(&message, &catalogue, &mut text);
            }
            if !text.is_empty() {
                output::print_line(&text)?;
            }
        }
    }
    Ok(())
}

/// The records of a tape, or a body as one record.
fn records(file: &Path) -> anyhow::Result<Box<dyn Iterator<Item = std::io::Result<Record>>>> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.contains(".tape") {
        let tape = Tape::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        return Ok(Box::new(tape));
    }
    let body = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let record = Record::new(SystemClock.now(), &unit_of_file(&stem), Some(200), &[], &body);
    Ok(Box::new(std::iter::once(Ok(record))))
}

/// `odds-KEY.json` is the unit `odds/KEY`.
fn unit_of_file(stem: &str) -> String {
    match stem.split_once('-') {
        Some((what @ ("odds" | "events" | "scores"), key)) => format!("{what}/{key}"),
        _ => stem.to_owned(),
    }
}

/// A copy of the book to which an adapter's messages are applied, with counts of the results.
#[derive(Debug)]
struct Copy {
    catalogue: Arc<Catalogue>,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    book: Book,
    listed: u64,
    new: u64,
    joined: u64,
    unsure: u64,
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    rejected: u64,
    rejects: BTreeMap<&'static str, u64>,
    samples: Vec<Value>,
}

impl Sink for Copy {
    fn submit<'a>(&'a self, feed: &'a str, body: Bytes) -> Answer<'a, Result<Receipt, NotTaken>> {
        let mut receipt = Receipt::default();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let rights = Rights { bookmaker: None, scores: true };
        for (number, line) in push::split_lines(&body) {
            let parsed = rights.parse(line, &self.catalogue);
            let decided =
                parsed.and_then(|message| counts.book.apply(feed, &message, SystemClock.now()));
            match decided {
                Ok(decision) => {
                    let count = match decision.verdict {
                        Verdict::Accepted => &mut receipt.accepted,
                        Verdict::Unchanged => &mut receipt.unchanged,
                        Verdict::Superseded => &mut receipt.superseded,
                    };
                    *count += 1;
                    counts.note(&decision.change, &decision.follow);
                }
                Err(reject) => {
                    *counts.rejects.entry(reject.code.slug()).or_default() += 1;
                    if counts.samples.len() < REJECTS_SHOWN {
                        let sent: String =
                            String::from_utf8_lossy(line).chars().take(300).collect();
                        let sample = json!({ "code": reject.code.slug(), "message": reject.message, "sent": sent });
                        counts.samples.push(sample);
                    }
                    receipt.rejected.push((number, reject));
                }
            }
        }
        counts.accepted += receipt.accepted;
        counts.unchanged += receipt.unchanged;
        counts.superseded += receipt.superseded;
        counts.rejected += u64::try_from(receipt.rejected.len()).unwrap_or(0);
        Box::pin(std::future::ready(Ok(receipt)))
    }

    fn open<'a>(&'a self, feed: &'a str) -> Answer<'a, Result<Vec<OpenEvent>, NotTaken>> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let open = counts.book.open_of(feed).into_iter().map(to_open).collect();
        Box::pin(std::future::ready(Ok(open)))
    }
}

impl Counts {
    fn note(&mut self, change: &Option<Change>, follow: &[Change]) {
        let Some(Change::Listed(_)) = change else { return };
        self.listed += 1;
        let has = |kind: fn(&Change) -> bool| follow.iter().any(kind);
        if has(|change| matches!(change, Change::Joined(_) | Change::Merged { .. })) {
            self.joined += 1;
        } else if has(|change| matches!(change, Change::Doubted { .. })) {
            self.unsure += 1;
        } else {
            self.new += 1;
        }
    }
}

/// `feeds check`: reads once and decides against a copy of the live book. Fails if nothing was read.
pub(crate) fn check(config: &Config, data: &Path, args: &FeedsCheckArgs) -> anyhow::Result<()> {
    let catalogue = catalogue::load(config)?;
    let mut adapter = build_one(config, &args.name, &catalogue)?;
    // A service that was never started has an empty book.
    let book = open::read_book(config, data)
        .unwrap_or_else(|_| Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 0 }));
    let scratch = played(&mut adapter, args)?;
    let counts = Counts {
        book,
        listed: 0,
        new: 0,
        joined: 0,
        unsure: 0,
        accepted: 0,
        unchanged: 0,
        superseded: 0,
        rejected: 0,
        rejects: BTreeMap::new(),
        samples: Vec::new(),
    };
    let copy = Arc::new(Copy { catalogue: Arc::clone(&catalogue), counts: Mutex::new(counts) });
    let reporter = Reporter::new(&adapter.settings.name, adapter.settings.row().name);
    let context = Context {
        settings: Arc::clone(&adapter.settings),
        catalogue,
        clock: Arc::new(SystemClock),
        sink: Arc::clone(&copy) as Arc<dyn Sink>,
        reporter: reporter.clone(),
        read_now: Arc::default(),
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let runs_on = matches!(&adapter.settings.kind, KindSettings::Exec(exec) if exec.every.is_none())
            || matches!(&adapter.settings.kind, KindSettings::Betfair(_));
        let task = tokio::spawn(run_adapter(adapter, context));
        let ended = tokio::time::timeout(args.time, wait_until_read(&reporter, runs_on));
        // A continuous adapter has used up its time; others did not end in time, which the report shows.
        drop(ended.await);
        task.abort();
        drop(task.await);
        tokio::task::spawn_blocking(adapters::wait_for_programs).await
    })?;
    if let Some(path) = scratch {
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    report(&reporter.report(), &copy, args.json)
}

/// Records the inputs of a check on a tape that is played instead of the network; returns a file to be removed.
fn played(adapter: &mut Adapter, args: &FeedsCheckArgs) -> anyhow::Result<Option<PathBuf>> {
    let mut settings = (*adapter.settings).clone();
    settings.record = None;
    let scratch = if let Some(tape) = &args.tape {
        (settings.tape, settings.speed) = (Some(tape.clone()), Speed::Max);
        None
    } else if args.input.is_empty() {
        None
    } else {
        let mut text = String::new();
        for file in &args.input {
            for record in records(file)? {
                text.push_str(&serde_json::to_string(&record?)?);
                text.push('\n');
            }
        }
        let name = format!("linesman-check-{}.tape", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        (settings.tape, settings.speed) = (Some(path.clone()), Speed::Max);
        Some(path)
    };
    adapter.settings = Arc::new(settings);
    Ok(scratch)
}

/// Waits until every unit was read once, or a tape has ended.
async fn wait_until_read(reporter: &Reporter, runs_on: bool) {
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let report = reporter.report();
        let reads = report.reads.ok + report.reads.unchanged + report.reads.failed;
        let next = report.next_read.as_deref().and_then(|next| Timestamp::parse(next).ok());
        let ended = report.message == adapters::report::TAPE_ENDED;
        let later = next.is_some_and(|next| next > SystemClock.now());
        if ended || (!runs_on && reads > 0 && later) {
            return;
        }
    }
}

fn report(report: &Report, copy: &Copy, json: bool) -> anyhow::Result<()> {
    let counts = copy.counts.lock().unwrap_or_else(PoisonError::into_inner);
    let add: Vec<String> = report
        .unmapped
        .iter()
        .map(|name| {
            let table = match name.what.as_str() {
                "bookmaker" => "bookmakers",
                "sport" => "sports",
                _ => "markets_map",
            };
            format!("{table} = {{ {} = \"…\" }}", Value::from(name.value.as_str()))
        })
        .collect();
    let whole = json!({
        "adapter": report.name,
        "state": report.state,
        "message": report.message,
        "reads": report.reads,
        "cost": report.budget,
        "events": { "listed": counts.listed, "new": counts.new, "joined": counts.joined, "unsure": counts.unsure },
        "messages": {
            "accepted": counts.accepted, "unchanged": counts.unchanged,
            "superseded": counts.superseded, "rejected": counts.rejected,
        },
        "rejects": counts.rejects,
        "samples": counts.samples,
        "dropped": report.dropped,
        "unmapped": report.unmapped,
        "add": add,
    });
    if json {
        output::print_line(&whole.to_string())?;
    } else {
        let text = serde_json::to_string_pretty(&whole)?;
        output::print_line(&text)?;
    }
    if report.reads.ok + report.reads.unchanged == 0 || report.quarantined > 0 {
        let why = if report.message.is_empty() { "nothing was read" } else { &report.message };
        bail!("the check of `{}` failed: {why}", report.name);
    }
    Ok(())
}

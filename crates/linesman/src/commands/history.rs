//! `linesman history`: inspects, verifies and updates the archive.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::BuildHasher as _;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use archive::{Archive, ArchiveError, Commit, Lineage, Location};
use domain::{Catalogue, Timestamp, World};
use engine::{ARCHIVE_NOTE_FILE, ArchiveNote, Sampled};
use serde::Serialize;

use crate::catalogue;
use crate::cli::{HistoryCommand, output};
use crate::config::Config;
use crate::control::{ControlCommand, ask_server};
use crate::folder::Folder;
use crate::worlds::live_options;

/// The output of `sql`, with placeholders for the root and the keys of fight sports.
const MACROS: &str = include_str!("history/macros.sql");

pub(crate) fn run(config: &Config, data: &Path, command: &HistoryCommand) -> anyhow::Result<()> {
    match command {
        HistoryCommand::Status(args) => {
            let status = Status::read(config, data)?;
            let text = match args.json {
                true => serde_json::to_string(&status)?,
                false => status.text(),
            };
            output::print_line(&text)
        }
        HistoryCommand::Flush => {
            let done = "everything that was published is in the archive";
            ask(data, &ControlCommand::FlushHistory, done)
        }
        HistoryCommand::Compact(args) => {
            let command = ControlCommand::CompactHistory { before: args.before.clone() };
            ask(data, &command, "the files of each table, sport and day are put together")
        }
        HistoryCommand::Verify(args) => verify(config, data, args.sample),
        HistoryCommand::Sql(args) => sql(config, data, args.root.as_deref()),
    }
}

/// Prints macros for `DuckDB`.
fn sql(config: &Config, data: &Path, root: Option<&str>) -> anyhow::Result<()> {
    let own = catalogue::load(config)?;
    let (root, catalogues) = match root {
        Some(root) => (root.trim_end_matches('/').to_owned(), Vec::new()),
        None => {
            let place = place_of(config, data)?;
            let root = match &place {
                Location::Folder(path) => std::path::absolute(path)?.display().to_string(),
                Location::Bucket(_) => place.to_string(),
            };
            (root, kept_catalogues(&place)?)
        }
    };
    let sports = catalogues.iter().chain([&*own]).flat_map(Catalogue::sports);
    let bouts = sports.filter(|(_, sport)| sport.bouts).map(|(_, sport)| quoted(&sport.key));
    let bouts: Vec<String> = bouts.collect::<BTreeSet<_>>().into_iter().collect();
    let text = MACROS.replace("{root}", &quoted(&root)).replace("{bouts}", &bouts.join(", "));
    output::print_line(text.trim_end())
}

/// Every catalogue stored in the archive.
pub(super) fn kept_catalogues(place: &Location) -> anyhow::Result<Vec<Catalogue>> {
    let archive = Archive::of(place);
    let mut catalogues = Vec::new();
    if archive.is_begun() {
        let commit = archive.newest().context("the archive cannot be read")?;
        for kept in &commit.catalogues {
            catalogues.extend(archive.catalogue(&commit, &kept.version)?);
        }
    }
    Ok(catalogues)
}

/// A text literal in SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Requests a write of the archive from the running server.
fn ask(data: &Path, command: &ControlCommand, done: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = Folder::at(data);
    let flushed = runtime.block_on(ask_server(&folder, command))?;
    ensure!(
        flushed.is_some(),
        "no server runs on {}; one that starts archives what was published",
        data.display()
    );
    output::print_line(done)
}

fn verify(config: &Config, data: &Path, samples: usize) -> anyhow::Result<()> {
    let (archive, mut commit) = open(config, data)?;
    let verified = loop {
        let verified = archive.verify(&commit);
        let newest = archive.newest().context("the archive cannot be read")?;
        // During the verification, files may have been replaced and, an hour later, deleted.
        if verified.faults.is_empty() || newest.commit == commit.commit {
            break verified;
        }
        commit = newest;
    };
    for fault in &verified.faults {
        output::print_error(&fault.to_string());
    }
    let (files, entries, bytes) = (verified.files, verified.entries, verified.bytes);
    ensure!(
        verified.faults.is_empty(),
        "the archive at {} has {} faults",
        archive.location(),
        verified.faults.len()
    );
    output::print_line(&format!(
        "commit {}: {files} files with {bytes} bytes are intact, and each of {entries} entries is present once",
        commit.commit
    ))?;
    if samples > 0 { sample(config, data, (&archive, &commit), samples) } else { Ok(()) }
}

/// Rebuilds some publications and compares them with the log.
fn sample(
    config: &Config,
    data: &Path,
    (archive, commit): (&Archive, &Commit),
    samples: usize,
) -> anyhow::Result<()> {
    // In a cluster, tasks read from the servers of the log while this thread waits.
    let runtime = tokio::runtime::Runtime::new()?;
    let _entered = runtime.enter();
    let options = live_options(config, &Folder::at(data))?;
    let publications = archive.publications(commit).context("the archive cannot be read")?;
    let (mut same, mut not_in_log, mut faults) = (0, 0, 0);
    for publication in choose(&publications, samples) {
        let at = publication.published_at;
        match engine::sample(&options, archive, commit, publication) {
            Ok(Sampled::Same) => same += 1,
            Ok(Sampled::NotInLog) => not_in_log += 1,
            Ok(Sampled::Differs) => {
                faults += 1;
                output::print_error(&format!("the publication of {at} differs from the log's"));
            }
            Err(error) => {
                faults += 1;
                let error = anyhow::Error::from(error);
                output::print_error(&format!("the publication of {at}: {error:#}"));
            }
        }
    }
    ensure!(faults == 0, "{faults} publications differ from the log");
    output::print_line(&format!(
        "{} publications were rebuilt: {same} are the same as in the log, {not_in_log} are older than the log",
        same + not_in_log
    ))
}

/// Splits a list into `parts` of about equal length and chooses one item of each at random.
fn choose<T>(all: &[T], parts: usize) -> impl Iterator<Item = &T> {
    let random = RandomState::new();
    let parts = parts.min(all.len());
    (0..parts).filter_map(move |part| {
        let (from, to) = (part * all.len() / parts, (part + 1) * all.len() / parts);
        let offset =
            usize::try_from(random.hash_one(part) % u64::try_from(to - from).ok()?).ok()?;
        all.get(from + offset)
    })
}

/// The location of the live world's archive.
pub(super) fn place_of(config: &Config, data: &Path) -> anyhow::Result<Location> {
    let Some(store) = Folder::at(data).archive_of(config) else {
        bail!(
            "a cluster has no archive unless `history.store` names a bucket, or a folder that all nodes share"
        )
    };
    Ok(store.join(World::Live.key()))
}

/// The archive of the live world, which must exist.
pub(super) fn open(config: &Config, data: &Path) -> anyhow::Result<(Archive, Commit)> {
    let place = place_of(config, data)?;
    let archive = Archive::of(&place);
    // A folder that cannot be reached is read, too: the error says why it cannot.
    let begun = archive.is_begun();
    let commit = if begun { archive.newest() } else { Ok(Commit::none()) };
    let commit = commit.context("the archive cannot be read")?;
    if commit.commit == 0 && !(begun && place.folder().is_some()) {
        check_noted(data, &place)?;
        ensure!(
            config.history.enabled,
            "there is no archive at {place}, and none is begun: history is off (`history.enabled`)"
        );
        bail!("there is no archive at {place} yet; a server begins one within a minute");
    }
    Ok((archive, commit))
}

/// Checks that an archive that was begun is in the configured place, and is there.
pub(super) fn check_noted(data: &Path, place: &Location) -> anyhow::Result<()> {
    match (ArchiveNote::read(data, place)?, place.folder()) {
        (ArchiveNote::Elsewhere(noted), _) => bail!(
            "the archive was begun in {noted}, but the settings of this command name {place}: run it with the settings \
             of the service (--config, or its environment); if the archive was moved, start the service there first"
        ),
        (ArchiveNote::Here, Some(path)) if !Archive::of(place).is_begun() => {
            let (path, noted) = (path.to_owned(), data.join(ARCHIVE_NOTE_FILE));
            Err(ArchiveError::Missing { path, noted }.into())
        }
        (ArchiveNote::Here | ArchiveNote::Nothing, _) => Ok(()),
    }
}

/// The output of `status`.
#[derive(Debug, Serialize)]
struct Status {
    root: String,
    commit: u64,
    from: Option<String>,
    to: Option<String>,
    publications: u64,
    /// `None`: nothing is archived yet, or the log cannot be read.
    lag_s: Option<u64>,
    gaps: Vec<Span>,
    lineages: Vec<Lineage>,
    entries: u64,
    bytes: u64,
    /// Number of entries that are not publications.
    changes: u64,
    /// Sum over all tables.
    bytes_per_change: u64,
    /// Number of whole books, from which past publications are rebuilt.
    books: u64,
    book_bytes: u64,
    days: Vec<Day>,
}

#[derive(Debug, Serialize)]
struct Span {
    from: String,
    to: String,
}

#[derive(Debug, Serialize)]
struct Day {
    date: String,
    table: &'static str,
    files: u64,
    rows: u64,
    bytes: u64,
}

impl Status {
    fn read(config: &Config, data: &Path) -> anyhow::Result<Self> {
        let (archive, commit) = open(config, data)?;
        let publications = archive.publications(&commit).context("the archive cannot be read")?;
        let times = || publications.iter().map(|publication| publication.published_at);
        let entries = commit.lineages.iter().map(|lineage| {
            let lost: u64 = lineage.missing.iter().map(|(first, last)| last - first + 1).sum();
            (lineage.last_seq + 1).saturating_sub(lineage.first_seq + lost)
        });
        let entries: u64 = entries.sum();
        let changes = entries.saturating_sub(u64::try_from(publications.len())?);
        let tables: u64 = commit.files.iter().map(|file| file.bytes).sum();
        let lag_s = lag_s(config, data, &commit).unwrap_or_else(|error| {
            output::print_error(&format!("its lag behind the log is unknown: {error:#}"));
            None
        });
        let gaps = commit.lineages.iter().flat_map(|lineage| &lineage.gaps);
        let text = |ms: i64| {
            let text = Timestamp::from_millis(ms).millis_text();
            String::from_utf8_lossy(&text).into_owned()
        };
        Ok(Self {
            root: archive.location().to_string(),
            commit: commit.commit,
            from: times().min().map(|at| text(at.as_millis())),
            to: times().max().map(|at| text(at.as_millis())),
            publications: u64::try_from(publications.len())?,
            lag_s,
            gaps: gaps.map(|(from, to)| Span { from: text(*from), to: text(*to) }).collect(),
            entries,
            bytes: commit.bytes(),
            changes,
            bytes_per_change: tables.checked_div(changes).unwrap_or(0),
            books: u64::try_from(commit.images.len())?,
            book_bytes: commit.images.iter().map(|image| image.file.bytes).sum(),
            days: days(&commit),
            lineages: commit.lineages,
        })
    }

    fn text(&self) -> String {
        let mut text = format!("archive       {} (commit {})\n", self.root, self.commit);
        // Writing to a text does not fail.
        let mut line = |name: &str, value: std::fmt::Arguments<'_>| {
            writeln!(text, "{name:<13} {value}").unwrap_or_default();
        };
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                line("publications", format_args!("{} from {from} to {to}", self.publications));
            }
            _ => line("publications", format_args!("none yet")),
        }
        if let Some(lag) = self.lag_s {
            line("lag", format_args!("{lag} s behind the log"));
        }
        line("lineages", format_args!("{}", self.lineages.len()));
        for Span { from, to } in &self.gaps {
            line("gap", format_args!("{from} to {to}"));
        }
        let (changes, each) = (self.changes, self.bytes_per_change);
        line("size", format_args!("{} bytes; {changes} changes, {each} bytes each", self.bytes));
        line("whole books", format_args!("{} with {} bytes", self.books, self.book_bytes));
        if !self.days.is_empty() {
            line("", format_args!(""));
            line(
                "day",
                format_args!("{:<9} {:>7} {:>12} {:>13}", "table", "files", "rows", "bytes"),
            );
        }
        for Day { date, table, files, rows, bytes } in &self.days {
            line(date, format_args!("{table:<9} {files:>7} {rows:>12} {bytes:>13}"));
        }
        text
    }
}

/// How much later the last publication in the log is than the last one in the archive.
fn lag_s(config: &Config, data: &Path, commit: &Commit) -> anyhow::Result<Option<u64>> {
    let Some(last) = commit.lineages.last() else { return Ok(None) };
    let newest =
        not_archived(config, data, commit)?.last().map_or(last.last_ms, |at| at.as_millis());
    Ok(Some(u64::try_from(newest.saturating_sub(last.last_ms) / 1000).unwrap_or(0)))
}

/// The times of the publications that are in the log but not in the archive.
pub(super) fn not_archived(
    config: &Config,
    data: &Path,
    commit: &Commit,
) -> anyhow::Result<Vec<Timestamp>> {
    // In a cluster, tasks read from the servers of the log while this thread waits.
    let runtime = tokio::runtime::Runtime::new()?;
    let _entered = runtime.enter();
    Ok(engine::not_archived(&live_options(config, &Folder::at(data))?, commit)?)
}

/// The files of each table and day, with their rows and bytes.
fn days(commit: &Commit) -> Vec<Day> {
    let mut days: BTreeMap<(String, archive::Table), (u64, u64, u64)> = BTreeMap::new();
    for file in &commit.files {
        let sums = days.entry((file.date().to_owned(), file.table)).or_default();
        *sums = (sums.0 + 1, sums.1 + file.rows, sums.2 + file.bytes);
    }
    let day = |((date, table), (files, rows, bytes)): ((String, archive::Table), _)| Day {
        date,
        table: table.key(),
        files,
        rows,
        bytes,
    };
    days.into_iter().map(day).collect()
}

//! `linesman export`: rows of the archive for other programs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use archive::{ArchiveError, Commit, Export, ExportFormat};
use domain::{Catalogue, Timestamp, World};

use super::history;
use crate::cli::{ExportArgs, output};
use crate::config::Config;
use crate::control::{ControlCommand, ask_server};
use crate::folder::Folder;
use crate::open::check_folder;

pub(crate) fn run(
    config: &Config,
    catalogue: &Catalogue,
    data: &Path,
    args: &ExportArgs,
) -> anyhow::Result<()> {
    ensure!(args.from < args.to, "`--from` must be earlier than `--to`");
    // An archive elsewhere is read without the folder.
    if config.history.store.is_none() && config.cluster.is_none() {
        check_folder(data)?;
    }
    if let Some(sport) = args.sport.as_deref().filter(|key| catalogue.sport_id(key).is_none()) {
        // Rows of one that is gone stay.
        let earlier = history::kept_catalogues(&history::place_of(config, data)?)?;
        let known = catalogue.with_earlier(earlier.iter()).sport_id(sport).is_some();
        ensure!(known, "there is no sport `{sport}`; {}", catalogue.sports_hint(sport));
    }
    let format = args.format();
    // Adds publications since the last part.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let flushed = runtime.block_on(ask_server(&Folder::at(data), &ControlCommand::FlushHistory));
    let (archive, commit) = history::open(config, data)?;
    let not_flushed = match flushed {
        Ok(Some(_)) => None,
        Ok(None) => Some("no server runs here that could add them".to_owned()),
        Err(error) => Some(format!("{error:#}")),
    };
    if let Some(why) = not_flushed {
        check_end(config, data, &commit, args).with_context(|| {
            format!(
                "the archive does not have all rows before --to ({why}); run this where the server runs that \
                 writes the archive, or name an earlier time"
            )
        })?;
    }
    let (table, sport) = (args.table.into(), args.sport.as_deref());
    let export = Export { table, from: args.from, to: args.to, sport, format };
    let Some(place) = &args.out else {
        ensure!(
            format != ExportFormat::Parquet || !io::stdout().is_terminal(),
            "Parquet is not for a terminal; name a file with --out"
        );
        return match archive.export(&commit, &export, BufWriter::new(io::stdout())) {
            // For example with `linesman export … | head`.
            Err(ArchiveError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            exported => Ok(exported.map(drop)?),
        };
    };
    // Renamed when it is complete.
    let part = part_of(place);
    let failed = || format!("cannot write {}", place.display());
    let file = File::create_new(&part).with_context(failed)?;
    let rows = archive.export(&commit, &export, BufWriter::new(&file));
    let rows = rows.and_then(|rows| {
        file.sync_all().map_err(ArchiveError::Output)?;
        Ok(rows)
    });
    let rows = rows.inspect_err(|_| fs::remove_file(&part).unwrap_or_default())?;
    let renamed = fs::rename(&part, place);
    renamed.inspect_err(|_| fs::remove_file(&part).unwrap_or_default()).with_context(failed)?;
    output::print_line(&format!("wrote {rows} rows of {} to {}", table.key(), place.display()))
}

/// The name of a file while it is written, which no other export uses.
fn part_of(place: &Path) -> PathBuf {
    let mut part: OsString = place.into();
    part.push(format!(".{:016x}.part", rand::random::<u64>()));
    part.into()
}

/// Checks that the archive has all publications of the time range, if no server could be asked to add them.
fn check_end(
    config: &Config,
    data: &Path,
    commit: &Commit,
    args: &ExportArgs,
) -> anyhow::Result<()> {
    let end = commit.lineages.last().map(|last| Timestamp::from_millis(last.last_ms));
    let ends_before = || match end {
        Some(end) => format!("its last publication is of {end}"),
        None => "it has no publication yet".to_owned(),
    };
    match history::not_archived(config, data, commit) {
        Ok(times) => {
            let missing = times.into_iter().find(|at| (args.from..args.to).contains(at));
            missing.map_or(Ok(()), |at| bail!("{}, the log has one of {at}", ends_before()))
        }
        // The requested range ends before the archive does.
        Err(_) if end.is_some_and(|end| args.to <= end) => Ok(()),
        // There is only the archive.
        Err(_) if config.cluster.is_none() && !has_log(config, data) => Ok(()),
        Err(error) => {
            Err(error).with_context(|| format!("{}, and the log cannot be read", ends_before()))
        }
    }
}

/// Whether there may be a log that the archive is a copy of. An archive elsewhere may belong to another machine.
fn has_log(config: &Config, data: &Path) -> bool {
    let log = Folder::at(data).log(World::Live);
    config.history.store.is_some() || log.try_exists().unwrap_or(true)
}

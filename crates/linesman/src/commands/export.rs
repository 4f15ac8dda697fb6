//! `linesman export`: rows of the archive for other programs.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _};
use std::path::Path;

use anyhow::{Context, ensure};
use archive::{ArchiveError, Export, ExportFormat};
use domain::Catalogue;

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
    if let Some(sport) = &args.sport {
        let known = catalogue.sport_id(sport).is_some();
        ensure!(known, "there is no sport `{sport}`; {}", catalogue.sports_hint(sport));
    }
    ensure!(args.from < args.to, "`--from` must be earlier than `--to`");
    // An archive elsewhere is read without the folder.
    if config.history.store.is_none() && config.cluster.is_none() {
        check_folder(data)?;
    }
    let format = args.format();
    // What was published since the last part. Without a server there is what it had archived.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let flushed = runtime.block_on(ask_server(&Folder::at(data), &ControlCommand::FlushHistory));
    if let Err(error) = flushed {
        output::print_error(&format!("rows since the last part are missing: {error:#}"));
    }
    let (archive, commit) = history::open(config, data)?;
    let (table, sport) = (args.table.into(), args.sport.as_deref());
    let export = Export { table, from: args.from, to: args.to, sport, format };
    let Some(place) = &args.out else {
        ensure!(
            format != ExportFormat::Parquet || !io::stdout().is_terminal(),
            "Parquet is not for a terminal; name a file with --out"
        );
        return match archive.export(&commit, &export, BufWriter::new(io::stdout())) {
            // As with `linesman export … | head`.
            Err(ArchiveError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            exported => Ok(exported.map(drop)?),
        };
    };
    // It appears under its name once it is complete.
    let part = place.with_extension("part");
    let failed = || format!("cannot write {}", place.display());
    let file = File::create(&part).with_context(failed)?;
    let rows = archive.export(&commit, &export, BufWriter::new(&file));
    let rows = rows.and_then(|rows| {
        file.sync_all().map_err(ArchiveError::Output)?;
        Ok(rows)
    });
    let rows = rows.inspect_err(|_| fs::remove_file(&part).unwrap_or_default())?;
    fs::rename(&part, place).with_context(failed)?;
    output::print_line(&format!("wrote {rows} rows of {} to {}", table.key(), place.display()))
}

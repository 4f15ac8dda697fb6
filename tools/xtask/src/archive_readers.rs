//! `DuckDB`, Polars and pandas read the archive of a running service as described in `docs/history.md`, and get the
//! same data as the API. The program is `e2e/archive/check.py`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use shell::repository::Repository;

use crate::packages;
use crate::schemathesis::{Server, make_key_of, with_data};

/// pandas reads Parquet with pyarrow. The command line of `DuckDB` is a separate package with its own versions.
const PACKAGES: [&str; 5] =
    ["duckdb==2.0.0", "duckdb-cli==1.5.6", "polars==2.1.0", "pandas==3.1.1", "pyarrow==26.0.1"];
/// Frequent publications, so that the run is short.
const SETTINGS: [(&str, &str); 2] =
    [("LINESMAN_MARKET__REFRESH_INTERVAL", "2s"), ("LINESMAN_MARKET__STALE_AFTER", "1m")];

/// Additional catalogue entries, present for part of the run.
const MORE: &str = r#"
[[sport]]
key = "kendo"
title = "Kendo"
group = "combat"

[[bookmaker]]
key = "zedbet"
title = "Zedbet"
regions = ["us"]
"#;

pub(crate) fn archive_readers(repository: &Repository, program: &Path) -> Result<()> {
    let python = packages::python(repository, "archive-readers", &PACKAGES)?.join("python");
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let file = folder.path().join("catalogue.toml");
    fs::write(&file, MORE).with_context(|| format!("cannot write {}", file.display()))?;
    let file = file.to_str().context("the temporary folder has a name in UTF-8")?;
    let with_more = [&SETTINGS[..], &[("LINESMAN_CATALOGUE__FILE", file)]].concat();
    let mut server = Server::start_with(program, folder.path(), &with_more)?;
    let key = make_key_of("production", program, folder.path())?;
    let mut feed = with_data(program, folder.path());
    let token = shell::output(feed.args(["feeds", "create", "readers"]))?;
    let check = |server: &Server, step: &[&str]| {
        let mut run = shell::command(&python, folder.path());
        run.arg(repository.root.join("e2e/archive/check.py"))
            .arg(program)
            .arg(folder.path().join("data"))
            .args([&server.address, &key, token.trim()])
            .arg(repository.root.join("docs/history.md"))
            .args(step);
        shell::run(&mut run).context("readers of the archive")
    };
    check(&server, &[])?;
    // A bookmaker and a sport are removed from the catalogue and added again.
    for settings in [&SETTINGS[..], &with_more] {
        drop(server);
        server = Server::start_with(program, folder.path(), settings)?;
        check(&server, &[])?;
    }
    // A backup of the log is restored after later publications.
    drop(server);
    let (log, backup) = (folder.path().join("data/live"), folder.path().join("backup"));
    shell::run(shell::command("cp", folder.path()).arg("-r").args([&log, &backup]))?;
    server = Server::start_with(program, folder.path(), &with_more)?;
    check(&server, &["lost"])?;
    drop(server);
    fs::remove_dir_all(&log).with_context(|| format!("cannot delete {}", log.display()))?;
    fs::rename(&backup, &log).with_context(|| format!("cannot write {}", log.display()))?;
    server = Server::start_with(program, folder.path(), &with_more)?;
    check(&server, &["restored"])?;
    // The log is lost: its data is no longer published, and the archive continues with a new log.
    drop(server);
    fs::remove_dir_all(&log).with_context(|| format!("cannot delete {}", log.display()))?;
    server = Server::start_with(program, folder.path(), &with_more)?;
    check(&server, &[])
}

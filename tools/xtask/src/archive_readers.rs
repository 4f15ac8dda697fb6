//! `DuckDB`, Polars and pandas read the archive of a running service as `docs/history.md` says, and find what the
//! API shows. The program is `e2e/archive/check.py`.

use std::path::Path;

use anyhow::{Context as _, Result};

use shell::repository::Repository;

use crate::packages;
use crate::schemathesis::{Server, make_key_of, with_data};

/// pandas reads Parquet with pyarrow.
const PACKAGES: [&str; 4] = ["duckdb==2.0.0", "polars==2.1.0", "pandas==3.1.1", "pyarrow==26.0.1"];
/// Publications come often, so that the run is short.
const SETTINGS: [(&str, &str); 2] =
    [("LINESMAN_MARKET__REFRESH_INTERVAL", "2s"), ("LINESMAN_MARKET__STALE_AFTER", "1m")];

pub(crate) fn archive_readers(repository: &Repository, program: &Path) -> Result<()> {
    let python = packages::python(repository, "archive-readers", &PACKAGES)?.join("python");
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Server::start_with(program, folder.path(), &SETTINGS)?;
    let key = make_key_of("production", program, folder.path())?;
    let mut feed = with_data(program, folder.path());
    let token = shell::output(feed.args(["feeds", "create", "readers"]))?;
    let mut run = shell::command(&python, folder.path());
    run.arg(repository.root.join("e2e/archive/check.py"))
        .arg(program)
        .arg(folder.path().join("data"))
        .args([&server.address, &key, token.trim()])
        .arg(repository.root.join("docs/history.md"));
    shell::run(&mut run).context("readers of the archive")
}

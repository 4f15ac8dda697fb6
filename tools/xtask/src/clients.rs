//! Clients that common tools generate from `openapi.json` work with the running service, and a linter finds no fault
//! in the document; public clients of streams and readers of the archive work, too. The programs are in `e2e/clients`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use shell::repository::Repository;

use crate::archive_readers::archive_readers;
use crate::other_bucket::other_bucket;
use crate::packages;
use crate::schemathesis::{Server, make_key, with_data};
use crate::stream_clients::stream_clients;

/// Generator for Python; those for TypeScript are in `e2e/clients/package.json`.
const PACKAGE: &str = "openapi-python-client==0.29.1";

pub(crate) fn clients(repository: &Repository) -> Result<()> {
    let document = repository.root.join("openapi.json");
    let typescript = install_typescript(repository)?;
    let generator = packages::python(repository, "openapi-python-client", &[PACKAGE])?
        .join("openapi-python-client");
    let tool =
        |name: &str| shell::command(typescript.join("node_modules/.bin").join(name), &typescript);
    let mut lint = tool("redocly");
    lint.args(["lint", "--extends=recommended-strict"]).arg(&document);
    shell::run(lint.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true"))?;

    let program = repository.build_program()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Server::start(&program, folder.path())?;
    let key = make_key(&program, folder.path())?;
    let mut feed = with_data(&program, folder.path());
    let token = shell::output(feed.args(["feeds", "create", "clients"]))?;

    shell::run(tool("openapi-typescript").arg(&document).args(["-o", "schema.ts"]))?;
    shell::run(
        tool("tsc").args(["--strict", "--target", "es2022", "--module", "nodenext", "check.ts"]),
    )?;
    shell::run(shell::command("node", &typescript).args(["check.js", &server.address, &key]))
        .context("the TypeScript client")?;

    let mut generate = shell::command(&generator, folder.path());
    generate.args(["generate", "--meta", "none", "--output-path", "linesman_client", "--path"]);
    // It warns about NDJSON, which it does not support.
    shell::output(generate.arg(&document))?;
    let check = folder.path().join("check.py");
    fs::copy(repository.root.join("e2e/clients/check.py"), &check)
        .context("cannot copy check.py")?;
    let mut python = shell::command(generator.with_file_name("python"), folder.path());
    shell::run(python.arg(&check).args([&server.address, &key, token.trim()]))
        .context("the Python client")?;
    archive_readers(repository, &program)?;
    other_bucket(repository)?;
    stream_clients(repository, &program, &typescript)
}

/// Installs the npm packages and the program under the build folder.
fn install_typescript(repository: &Repository) -> Result<PathBuf> {
    let (source, folder) =
        (repository.root.join("e2e/clients"), repository.target()?.join("clients"));
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    for name in ["package.json", "package-lock.json", "check.ts", "stream.mjs"] {
        fs::copy(source.join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    packages::npm(&folder)?;
    Ok(folder)
}

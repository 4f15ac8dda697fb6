//! Clients generated from `openapi.json` with the usual tools work against the running service, and a linter has
//! nothing to say about the document. The programs are in `e2e/clients`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use shell::{repository::Repository, servers};

use crate::schemathesis::{Server, VENV, make_key, with_data};

/// Other versions write other code, and a change that nobody made must not break the tests. Those of TypeScript are in
/// `e2e/clients/package.json`.
const PACKAGE: &str = "openapi-python-client==0.29.1";
const NODE: &str = "the TypeScript client needs Node.js 20 or later with npm (on Debian: apt-get install nodejs npm)";

pub(crate) fn clients(repository: &Repository) -> Result<()> {
    let document = repository.root.join("openapi.json");
    let typescript = install_typescript(repository)?;
    let generator = install_python(repository)?;
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
    // It warns about NDJSON, which it cannot write.
    shell::output(generate.arg(&document))?;
    let check = folder.path().join("check.py");
    fs::copy(repository.root.join("e2e/clients/check.py"), &check)
        .context("cannot copy check.py")?;
    let mut python = shell::command(generator.with_file_name("python"), folder.path());
    shell::run(python.arg(&check).args([&server.address, &key, token.trim()]))
        .context("the Python client")
}

/// The npm packages and the program, under the build folder.
fn install_typescript(repository: &Repository) -> Result<PathBuf> {
    let (source, folder) =
        (repository.root.join("e2e/clients"), repository.target()?.join("clients"));
    ensure!(shell::succeeds(shell::command("npm", &source).arg("--version")), NODE);
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    let is_new = |name: &str| {
        let read = |folder: &Path| fs::read(folder.join(name)).unwrap_or_default();
        read(&source) != read(&folder)
    };
    let changed = is_new("package-lock.json");
    for name in ["package.json", "package-lock.json", "check.ts"] {
        fs::copy(source.join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    if changed || !folder.join("node_modules").is_dir() {
        let mut npm = shell::command("npm", &folder);
        shell::run(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]))
            .context("the packages of e2e/clients cannot be installed")?;
    }
    Ok(folder)
}

/// The generator in a Python environment of its own under the build folder.
fn install_python(repository: &Repository) -> Result<PathBuf> {
    let folder = repository.target()?.join("openapi-python-client");
    let generator = folder.join("bin/openapi-python-client");
    let wanted = PACKAGE.replace("==", " version: ");
    let present = shell::output(shell::command(&generator, &repository.root).arg("--version"));
    if present.is_ok_and(|version| version.trim() == wanted) {
        return Ok(generator);
    }
    let mut venv = shell::command("python3", &repository.root);
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    if !shell::succeeds(&mut venv) {
        servers::install_missing(repository, &["python3-venv"], VENV)?;
        shell::run(&mut venv)?;
    }
    let mut pip = shell::command(folder.join("bin/pip"), &repository.root);
    shell::run(pip.args(["install", "-q", "--disable-pip-version-check", PACKAGE]))?;
    Ok(generator)
}

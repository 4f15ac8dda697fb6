//! The tests of the clients, with the program, sandbox data and a proxy; `sdk/testing/README.md` describes their
//! environment.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use shell::repository::Repository;

use super::examples;
use crate::packages;
use crate::schemathesis::{Server, make_key, with_data};

/// Dependencies of the Python client and its tests.
const PACKAGES: [&str; 10] = [
    "httpx2==2.16.0",
    "pandas==3.1.1",
    "polars==2.1.0",
    "pytest==9.2.0",
    "mypy==2.4.1",
    "pandas-stubs==3.1.0.261029",
    "pyright==1.1.414",
    "build==1.6.1",
    "hatchling==1.33.0",
    "twine==7.0.0",
];

const MCP_CLIENTS: [&str; 2] = ["mcp==1.30.0", "mcp==2.3.0"];

/// The data must stay the same while a test reads its pages.
const SETTINGS: [(&str, &str); 2] =
    [("LINESMAN_MARKET__REFRESH_INTERVAL", "1h"), ("LINESMAN_MARKET__STALE_AFTER", "3h")];

/// Runs the tests of every language.
pub(crate) fn test(repository: &Repository) -> Result<()> {
    let programs = packages::python(repository, "sdk-python", &PACKAGES)?;
    let typescript = repository.root.join("sdk/typescript");
    packages::npm(&typescript)?;
    let program = repository.build_program()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Server::start_with(&program, folder.path(), &SETTINGS)?;
    let proxy = Server::spawn(
        shell::command("python3", &repository.root)
            .arg("sdk/testing/proxy.py")
            .arg(&server.address),
    )?;
    let mut feed = with_data(&program, folder.path());
    let token = shell::output(feed.args(["feeds", "create", "sdk"]))?;
    let examples = examples::collect(repository, &server.address)?;
    let variables = [
        ("LINESMAN_URL", server.address.clone()),
        ("LINESMAN_KEY", make_key(&program, folder.path())?),
        ("LINESMAN_TEST_QUOTA_KEY", make_key(&program, folder.path())?),
        ("LINESMAN_TEST_FEED_TOKEN", token.trim().to_owned()),
        // The name that the examples use.
        ("FEED_TOKEN", token.trim().to_owned()),
        // Makes `examples/arbitrage-watch` end.
        ("ROUNDS", "1".to_owned()),
        ("LINESMAN_TEST_PROXY", proxy.address.clone()),
        ("LINESMAN_TEST_EXAMPLES", examples.display().to_string()),
    ];
    let with_variables = |mut command: Command| {
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command
    };
    agents(repository, &program, folder.path(), with_variables)
        .context("the API for agents, `linesman mcp` and /mcp")?;
    python(repository, &programs, folder.path(), with_variables)
        .context("the Python client in sdk/python")?;
    let mut npm = with_variables(shell::command("npm", &typescript));
    shell::run(npm.args(["test", "--silent", "--if-present"]))
        .context("the TypeScript client in sdk/typescript")?;
    rust(repository, &examples, with_variables).context("the Rust client in sdk/rust")
}

/// The official clients of the protocol, in both versions, and its inspector call every tool, over both transports and
/// with two nodes alternating.
fn agents(
    repository: &Repository,
    program: &Path,
    folder: &Path,
    with_variables: impl Fn(Command) -> Command,
) -> Result<()> {
    // A node with the same keys: a copy of the first one's data.
    let copy = tempfile::tempdir().context("cannot make a temporary folder")?;
    shell::output(with_data(program, folder).arg("backup").arg(copy.path().join("data")))?;
    let other = Server::start_with(program, copy.path(), &SETTINGS)?;
    for version in MCP_CLIENTS {
        let environment = format!("mcp-{}", version.trim_start_matches("mcp=="));
        let programs = packages::python(repository, &environment, &[version])?;
        let client = shell::command(programs.join("python"), &repository.root);
        let mut client = with_variables(client);
        client.arg("sdk/testing/mcp_client.py").arg(program);
        client.env("LINESMAN_TEST_OTHER_URL", &other.address);
        shell::run(client.env("LINESMAN_TEST_DATA", folder.join("data"))).context(version)?;
    }
    let inspector = repository.root.join("e2e/agents");
    packages::npm(&inspector)?;
    let mut inspect = with_variables(shell::command("node", &inspector));
    shell::run(inspect.arg("inspect.mjs").arg(program)).context("the inspector")
}

/// The tests that need the server, the programs of the documentation, and the package for `cargo publish`. The other
/// tests run with those of the workspace.
fn rust(
    repository: &Repository,
    examples: &Path,
    with_variables: impl Fn(Command) -> Command,
) -> Result<()> {
    let mut tests = with_variables(shell::cargo(repository));
    // With the features of the whole workspace, which are already built.
    shell::run(tests.args(["test", "-q", "--workspace", "--test", "scenarios"]))?;
    let programs = examples::build_rust(repository, examples)?;
    shell::output(&mut with_variables(shell::command(programs, &repository.root)))
        .context("a program of the documentation failed")?;
    let mut publish = shell::cargo(repository);
    publish.args(["publish", "-q", "-p", "linesman-client", "--dry-run", "--allow-dirty"]);
    shell::run(publish.arg("--no-verify"))
}

/// The tests, both type checkers, and the published archives.
fn python(
    repository: &Repository,
    programs: &Path,
    folder: &Path,
    with_variables: impl Fn(Command) -> Command,
) -> Result<()> {
    let source = repository.root.join("sdk/python");
    let tool = |name: &str| {
        let mut command = shell::command(programs.join(name), &source);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let mut tests = with_variables(tool("pytest"));
    shell::run(tests.args(["-q", "-p", "no:cacheprovider"]))?;
    shell::run(tool("mypy").arg("--cache-dir").arg(repository.target()?.join("sdk/mypy")))?;
    shell::run(tool("pyright").arg("--pythonpath").arg(programs.join("python")))?;
    let archives = folder.join("archives");
    let mut build = tool("python");
    build.args(["-m", "build", "--no-isolation", "--outdir"]).arg(&archives);
    shell::output(&mut build)?;
    let listed = fs::read_dir(&archives).context("nothing was built")?;
    let archives: Vec<_> = listed.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    shell::run(tool("twine").args(["check", "--strict"]).args(archives))
}

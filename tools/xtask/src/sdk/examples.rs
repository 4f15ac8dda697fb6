//! The programs shown in the documentation: collected from a running server for the tests of Python and TypeScript;
//! those in Rust are built and run here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use shell::repository::Repository;

/// Marks programs that use our client; the others are fragments and are wrapped in a function.
const OURS: &str = "linesman_client::";
/// Minimum number of programs; fewer indicate a fault in collecting them.
const PROGRAMS_MIN: usize = 30;

/// Collects the programs of all languages into a file.
pub(super) fn collect(repository: &Repository, address: &str) -> Result<PathBuf> {
    let file = repository.target()?.join("sdk/examples.json");
    fs::create_dir_all(file.parent().context("a file without a folder")?)
        .context("cannot make a folder")?;
    let mut collect = shell::command("python3", &repository.root);
    shell::run(collect.arg("sdk/testing/examples.py").arg(address).arg(&file))?;
    Ok(file)
}

/// Builds one program of all Rust examples, each a module, and returns its path. It is linked with the libraries of
/// the tests: a separate package would build everything again.
pub(super) fn build_rust(repository: &Repository, examples: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(examples).context("cannot read the examples")?;
    let examples: Vec<Value> = serde_json::from_str(&text).context("the examples are no list")?;
    let text_of = |one: &Value, name: &str| {
        one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let codes: Vec<String> = examples
        .iter()
        .filter(|one| text_of(one, "language") == "rust")
        .map(|one| text_of(one, "code"))
        .map(|code| if code.contains(OURS) { code } else { in_function(&code) })
        .collect();
    ensure!(codes.len() >= PROGRAMS_MIN, "only {} programs in Rust were found", codes.len());
    let modules = codes.iter().enumerate().map(|(n, code)| {
        let run = "pub(crate) fn run() {\n    main().unwrap();\n}";
        format!("mod example_{n} {{\n{code}\n\n{run}\n}}\n")
    });
    let modules: String = modules.collect();
    let calls: String = (0..codes.len()).map(|n| format!("    example_{n}::run();\n")).collect();
    let folder = repository.target()?.join("sdk");
    let source = folder.join("docs_examples.rs");
    fs::write(&source, format!("{modules}\nfn main() {{\n{calls}}}\n"))
        .context("cannot write the examples")?;
    let program = folder.join("docs_examples");
    let mut rustc = shell::command("rustc", &repository.root);
    rustc.args(["--edition", "2024", "-D", "warnings", "-o"]).arg(&program).arg(&source);
    let libraries = libraries(repository)?;
    for (name, library) in &libraries {
        rustc.arg("--extern").arg(format!("{name}={}", library.display()));
        let folder = library.parent().context("a library without a folder")?;
        rustc.arg("-L").arg(format!("dependency={}", folder.display()));
    }
    shell::run(&mut rustc).context("a program of the documentation does not compile")?;
    Ok(program)
}

fn in_function(code: &str) -> String {
    let result = "Result<(), Box<dyn std::error::Error>>";
    format!("#[tokio::main]\nasync fn main() -> {result} {{\n{code}\nOk(())\n}}")
}

/// The libraries that the programs use, as cargo built them for the tests.
fn libraries(repository: &Repository) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut cargo = shell::cargo(repository);
    cargo.args(["test", "-q", "--workspace", "--test", "scenarios", "--no-run"]);
    let messages = shell::output(cargo.args(["--message-format", "json"]))?;
    let messages: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let find = |name: &'static str| {
        let is_own = |message: &&Value| {
            message.pointer("/target/name").and_then(Value::as_str) == Some(name)
                && message.pointer("/target/kind/0").and_then(Value::as_str) == Some("lib")
        };
        let files = messages.iter().rev().find(is_own)?.get("filenames")?.as_array()?;
        let is_library = |file: &&str| file.ends_with(".rlib");
        files.iter().filter_map(Value::as_str).find(is_library).map(PathBuf::from)
    };
    let names = ["linesman_client", "reqwest", "tokio"].into_iter();
    names
        .map(|name| Ok((name, find(name).with_context(|| format!("cargo built no {name}"))?)))
        .collect()
}

//! Which crate may depend on which: data flows one way, so the arrows do too.
//!
//! Compared with what `cargo metadata` says, so that the picture in the documents can not drift from the
//! code. Only normal dependencies count; a test may reach for what it tests with.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use shell::repository::Repository;

use crate::cycles;

/// Each crate of the workspace with the crates it may depend on. A crate without a row is refused: adding
/// one means deciding where it stands.
const ALLOWED: [(&str, &[&str]); 18] = [
    (
        "linesman",
        &[
            "linesman-serve",
            "linesman-web",
            "linesman-api",
            "linesman-engine",
            "linesman-http",
            "linesman-accounts",
            "linesman-store",
            "linesman-feeds",
            "linesman-market",
            "linesman-change-log",
            "linesman-domain",
        ],
    ),
    (
        "linesman-serve",
        &[
            "linesman-web",
            "linesman-api",
            "linesman-engine",
            "linesman-http",
            "linesman-accounts",
            "linesman-domain",
        ],
    ),
    (
        "linesman-web",
        &[
            "linesman-api",
            "linesman-engine",
            "linesman-http",
            "linesman-accounts",
            "linesman-market",
            "linesman-domain",
        ],
    ),
    (
        "linesman-api",
        &[
            "linesman-engine",
            "linesman-http",
            "linesman-accounts",
            "linesman-market",
            "linesman-feeds",
            "linesman-domain",
        ],
    ),
    ("linesman-http", &["linesman-domain"]),
    (
        "linesman-engine",
        &["linesman-feeds", "linesman-market", "linesman-change-log", "linesman-domain"],
    ),
    ("linesman-feeds", &["linesman-domain"]),
    ("linesman-market", &["linesman-domain"]),
    ("linesman-change-log", &[]),
    ("linesman-accounts", &["linesman-store", "linesman-domain"]),
    ("linesman-store", &["linesman-domain"]),
    ("linesman-domain", &[]),
    ("linesman-test-servers", &[]),
    ("linesman-shell", &["linesman-test-servers"]),
    ("linesman-bench", &["linesman-shell"]),
    ("linesman-campaign", &["linesman-shell", "linesman-test-servers"]),
    (
        "linesman-scale",
        &[
            "linesman-accounts",
            "linesman-change-log",
            "linesman-store",
            "linesman-domain",
            "linesman-shell",
            "linesman-test-servers",
        ],
    ),
    ("xtask", &["linesman-shell"]),
];

/// Crates of the workspace and their normal dependencies within it.
type Graph = BTreeMap<String, Vec<String>>;

pub(crate) fn check(repository: &Repository) -> Result<()> {
    let mut complaints = complaints(&graph(&repository.metadata()?)?);
    complaints.extend(cycles::complaints(&repository.text_files()?));
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

fn graph(metadata: &Value) -> Result<Graph> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages = packages.context("cargo metadata lists no packages")?;
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut graph = Graph::new();
    for package in packages {
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        let within = dependencies
            .context("cargo metadata lists no dependencies")?
            .iter()
            // A normal dependency has no kind; one within the workspace has a path.
            .filter(|dependency| dependency.get("kind").is_none_or(Value::is_null))
            .filter(|dependency| dependency.get("path").is_some_and(Value::is_string))
            .filter_map(name)
            .collect();
        graph.insert(name(package).context("a package has no name")?, within);
    }
    Ok(graph)
}

fn complaints(graph: &Graph) -> Vec<String> {
    let mut complaints = Vec::new();
    for (package, dependencies) in graph {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == package) else {
            complaints.push(format!(
                "{package} has no row in the table of tools/xtask/src/layering.rs: decide what it may depend on"
            ));
            continue;
        };
        for dependency in dependencies.iter().filter(|name| !allowed.contains(&name.as_str())) {
            complaints.push(format!("{package} must not depend on {dependency}"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_forbidden_arrow_and_an_unknown_crate_are_told() {
        let metadata = json!({"packages": [
            {"name": "linesman-market", "dependencies": [
                {"name": "linesman-domain", "kind": null, "path": "crates/domain"},
                {"name": "linesman-serve", "kind": null, "path": "crates/serve"},
                {"name": "linesman-feeds", "kind": "dev", "path": "crates/feeds"},
                {"name": "serde", "kind": null},
            ]},
            {"name": "linesman-common", "dependencies": []},
        ]});
        let told = complaints(&graph(&metadata).unwrap());
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("linesman-common has no row"));
        assert_eq!(told[1], "linesman-market must not depend on linesman-serve");
    }

    #[test]
    fn the_table_has_no_circle() {
        // Taking away crates that depend on nothing that is left must take away all.
        let mut left: Vec<_> = ALLOWED.to_vec();
        while !left.is_empty() {
            let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
            let before = left.len();
            left.retain(|(_, allowed)| allowed.iter().any(|name| names.contains(name)));
            assert!(left.len() < before, "a circle among {names:?}");
        }
    }
}

//! The allowed dependencies between crates: data flows in one direction, and so do the arrows.
//!
//! Compared with `cargo metadata`, so that the table cannot drift from the code: an arrow that is not in the table
//! fails, and so does an unused arrow of the table. Only normal dependencies count; tests may use further crates.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use shell::repository::Repository;

use crate::cycles;

const THIS_FILE: &str = "tools/xtask/src/layering.rs";

/// Each crate of the workspace with its dependencies, without the prefix `linesman-`. A crate without a row is
/// refused, so that its place is decided when it is added.
const ARROWS: &str = "
linesman     → serve web api engine http adapters feeds market history change-log accounts store mcp client domain
serve        → web api engine http accounts mcp domain
web          → api engine http accounts market domain
api          → engine http accounts market feeds domain
http         → domain
engine       → feeds market change-log history domain
adapters     → feeds domain
feeds        → domain
history      → market domain
market       → domain
accounts     → store domain
store        →
change-log   →
domain       →
mcp          →
client       →
arbitrage-watch → client
test-servers →
shell        → test-servers
bench        → history market domain shell test-servers
campaign     → shell test-servers
scale        → accounts change-log store domain shell test-servers
xtask        → shell
";

/// Crates and their dependencies within the workspace.
type Graph = BTreeMap<String, Vec<String>>;

pub(crate) fn check(repository: &Repository) -> Result<()> {
    let mut complaints = complaints(&graph(&repository.metadata()?)?, &allowed(ARROWS));
    complaints.extend(cycles::complaints(&repository.text_files()?));
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

fn allowed(arrows: &str) -> Graph {
    let rows = arrows.lines().filter_map(|row| row.split_once('→'));
    rows.map(|(from, to)| {
        (from.trim().to_owned(), to.split_whitespace().map(str::to_owned).collect())
    })
    .collect()
}

fn graph(metadata: &Value) -> Result<Graph> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages = packages.context("cargo metadata lists no packages")?;
    let name = |value: &Value| {
        let name = value.get("name")?.as_str()?;
        Some(name.strip_prefix("linesman-").unwrap_or(name).to_owned())
    };
    let mut graph = Graph::new();
    for package in packages {
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        let within = dependencies
            .context("cargo metadata lists no dependencies")?
            .iter()
            // Normal dependencies have no kind; dependencies within the workspace have a path.
            .filter(|dependency| dependency.get("kind").is_none_or(Value::is_null))
            .filter(|dependency| dependency.get("path").is_some_and(Value::is_string))
            .filter_map(name)
            .collect();
        graph.insert(name(package).context("a package has no name")?, within);
    }
    Ok(graph)
}

fn complaints(graph: &Graph, allowed: &Graph) -> Vec<String> {
    let none = Vec::new();
    let mut complaints = Vec::new();
    for (package, dependencies) in graph {
        let Some(allowed) = allowed.get(package) else {
            complaints.push(format!("{THIS_FILE} has no row for {package}"));
            continue;
        };
        let refused = dependencies.iter().filter(|name| !allowed.contains(name));
        complaints.extend(refused.map(|name| format!("{package} must not depend on {name}")));
    }
    for (package, allowed) in allowed {
        let used = graph.get(package).unwrap_or(&none);
        let unused = allowed.iter().filter(|name| !used.contains(name));
        complaints.extend(unused.map(|name| {
            format!("{package} does not depend on {name}; take the arrow out of {THIS_FILE}")
        }));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forbidden_and_unused_arrows_and_unknown_crates_are_reported() {
        let metadata = json!({"packages": [
            {"name": "linesman-market", "dependencies": [
                {"name": "linesman-domain", "kind": null, "path": "crates/domain"},
                {"name": "linesman-serve", "kind": null, "path": "crates/serve"},
                {"name": "linesman-feeds", "kind": "dev", "path": "crates/feeds"},
                {"name": "serde", "kind": null},
            ]},
            {"name": "linesman-common", "dependencies": []},
        ]});
        let allowed = allowed("\nmarket → domain feeds\ndomain →\n");
        assert_eq!(
            complaints(&graph(&metadata).unwrap(), &allowed),
            [
                format!("{THIS_FILE} has no row for common"),
                "market must not depend on serve".to_owned(),
                format!("market does not depend on feeds; take the arrow out of {THIS_FILE}"),
            ]
        );
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Repeatedly removing crates without remaining dependencies must remove all.
        let mut left = allowed(ARROWS);
        while !left.is_empty() {
            let names: Vec<String> = left.keys().cloned().collect();
            left.retain(|_, allowed| allowed.iter().any(|name| names.contains(name)));
            assert!(left.len() < names.len(), "a cycle among {names:?}");
        }
    }
}

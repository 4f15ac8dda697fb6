//! Health, readiness and metrics.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::World;
use serde_json::Value;

use crate::harness::{Answer, TestApp};
use crate::test_market::TestMarket;

#[tokio::test]
async fn health_and_readiness_answer_on_every_listener_without_a_key() {
    let app = TestApp::start().await;
    for addr in [app.addr, app.push_addr, app.operator_addr] {
        for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
            let answer = Answer::of(app.client.get(format!("http://{addr}{path}"))).await;
            assert_eq!((answer.status, answer.text()), (200, body), "{path}");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
    }
    let metrics = app.get_without_key("/metrics").await;
    assert_eq!(metrics.refusal(), (404, "not_found".to_owned()), "metrics are the operator's");
    let api = app.get_operator("/v1/books").await;
    assert_eq!(api.refusal(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_world_whose_writer_died_is_not_ready_though_healthy() {
    let mut app = TestApp::start().await;
    app.stop_writer(World::Sandbox);
    app.advance(Duration::from_secs(96));
    app.publish().await;
    let ready = app.get_operator("/readyz").await;
    assert_eq!(ready.refusal(), (503, "unavailable".to_owned()));
    assert!(ready.header("retry-after").is_some());
    assert_eq!(app.get_operator("/healthz").await.status, 200);
}

/// The value of every series, after checking that the page is well-formed.
fn parse(page: &str) -> HashMap<String, f64> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    let mut helped = HashSet::new();
    let mut series = HashMap::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(helped.insert(name) && !text.is_empty(), "{name} is explained twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram", "summary"].contains(&kind), "{line}");
            assert!(helped.contains(name) && kinds.insert(name, kind).is_none(), "{line}");
        } else {
            let (id, value) = line.rsplit_once(' ').unwrap();
            let name = id.split('{').next().unwrap();
            assert!(name.starts_with("linesman_"), "{line}");
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| name.strip_suffix(suffix))
                .find(|family| matches!(kinds.get(family), Some(&("histogram" | "summary"))))
                .unwrap_or(name);
            assert!(kinds.contains_key(family), "{line} has no TYPE");
            if let Some(labels) = id.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let inner = labels.strip_prefix('{').and_then(|l| l.strip_suffix('}')).unwrap();
                for label in inner.split(',') {
                    let (_, value) = label.split_once('=').unwrap();
                    assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'));
                }
            }
            let fresh = series.insert(id.to_owned(), value.parse().unwrap()).is_none();
            assert!(fresh, "{id} comes twice");
        }
    }
    series
}

fn assert_is(series: &HashMap<String, f64>, id: &str, expected: f64) {
    let value = series.get(id).unwrap_or_else(|| panic!("no {id}"));
    assert!((value - expected).abs() < 1e-9, "{id} is {value}");
}

#[tokio::test]
async fn metrics_are_well_formed_and_count_what_happened() {
    let board = TestMarket::start().await;
    let books = board.app.get("/v1/books", &board.key).await;
    let tag = books.header("etag").unwrap();
    board.app.get_with("/v1/books", &board.key, &[("If-None-Match", tag)]).await;
    board.app.get("/v1/books?x=1", &board.key).await;
    board.app.get_without_key("/v1/books").await;
    board.app.push(&board.feed, "nonsense").await;
    let page = board.app.get_operator("/metrics").await;
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let series = parse(page.text());
    for (id, expected) in [
        ("linesman_requests_total{endpoint=\"list_books\",outcome=\"ok\"}", 1.0),
        ("linesman_requests_total{endpoint=\"list_books\",outcome=\"not_modified\"}", 1.0),
        ("linesman_requests_total{endpoint=\"list_books\",outcome=\"refused\"}", 1.0),
        ("linesman_requests_total{endpoint=\"unknown\",outcome=\"refused\"}", 1.0),
        ("linesman_refusals_total{code=\"authentication_failed\",status=\"401\"}", 1.0),
        ("linesman_request_duration_seconds_count{endpoint=\"list_books\"}", 3.0),
        ("linesman_feed_messages_total{feed=\"feed-0\",verdict=\"accepted\"}", 20.0),
        ("linesman_feed_messages_total{feed=\"feed-0\",verdict=\"rejected\"}", 1.0),
        ("linesman_feed_rejects_total{feed=\"feed-0\",code=\"invalid_json\"}", 1.0),
        ("linesman_snapshot_events{world=\"live\"}", 6.0),
        ("linesman_snapshot_events{world=\"sandbox\"}", 0.0),
        ("linesman_source_stale{world=\"live\",sport=\"mma\",bookmaker=\"fanduel\"}", 0.0),
        ("linesman_source_age_seconds{world=\"live\",sport=\"mma\",bookmaker=\"fanduel\"}", 24.75),
        ("linesman_panics_total", 0.0),
        ("linesman_history_panics_total{world=\"live\"}", 0.0),
        ("linesman_keys", 1.0),
        ("linesman_maintenance", 0.0),
    ] {
        assert_is(&series, id, expected);
    }
    board.app.publish_after(Duration::from_secs(120)).await;
    let series = parse(board.app.get_operator("/metrics").await.text());
    assert_is(
        &series,
        "linesman_source_stale{world=\"live\",sport=\"mma\",bookmaker=\"fanduel\"}",
        1.0,
    );
}

#[tokio::test]
async fn metrics_take_get_and_head_only() {
    let app = TestApp::start().await;
    let url = format!("http://{}/metrics", app.operator_addr);
    let posted = Answer::of(app.client.post(&url).body("x")).await;
    assert_eq!(posted.refusal(), (405, "method_not_allowed".to_owned()));
    assert_eq!(posted.header("allow"), Some("GET, HEAD"));
    assert_eq!(Answer::of(app.client.head(&url)).await.status, 200);
}

/// Texts in which an operator finds names of series: the documents and the deployment files.
fn operators_texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("docs"), root.join("deploy")];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                // Files that are not text are pictures.
                texts.push((path.display().to_string(), text));
            }
        }
    }
    texts.push(("README.md".into(), fs::read_to_string(root.join("README.md")).unwrap()));
    texts
}

/// Words with the prefix of all series.
fn series_names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("linesman_"))
}

/// Series that only a node of a cluster or the whole program prints: their names are in the sources, but not in this
/// page.
fn series_of_others(page: &str) -> HashSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = [folder.join("metrics.rs"), folder.join("../../adapters/src/report.rs")];
    let mut sources = files.map(|file| fs::read_to_string(file).unwrap()).to_vec();
    if let Ok(items) = fs::read_dir(folder.join("metrics")) {
        sources.extend(items.map(|item| fs::read_to_string(item.unwrap().path()).unwrap()));
    }
    let literals = sources.iter().flat_map(|source| source.split('"'));
    let names = literals.filter(|text| series_names(text).eq([*text]));
    names.filter(|name| !page.contains(*name)).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_series_that_is_named_anywhere_is_there() {
    let app = TestApp::start().await;
    let metrics = app.get_operator("/metrics").await;
    let of_others = series_of_others(metrics.text());
    let is_there = |name: &str| {
        let is_type =
            |name: &str, kind: &str| metrics.text().contains(&format!("# TYPE {name} {kind}"));
        let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|end| name.strip_suffix(end));
        // `linesman_feed_*` stands for all series with that prefix.
        let is_start = name.ends_with('_')
            && (metrics.text().contains(name)
                || of_others.iter().any(|held| held.starts_with(name)));
        is_start
            || of_others.contains(name)
            || is_type(name, "")
            || parts.into_iter().any(|name| is_type(name, "histogram"))
    };
    let mut named_in = HashSet::new();
    for (path, text) in operators_texts() {
        // The crate of the Rust client has the same prefix as series.
        for name in series_names(&text).filter(|name| *name != "linesman_client") {
            assert!(is_there(name), "{name} in {path} is not a series");
            named_in.insert(path.rsplit('/').next().unwrap().to_owned());
        }
    }
    for file in ["running.md", "failures.md", "linesman.rules.yaml", "linesman.json"] {
        assert!(named_in.contains(file), "{file} names no series");
    }
}

/// The units make everything outside of the data folder read-only, and files are readable by their owner only.
#[test]
fn units_and_documents_say_what_a_folder_of_the_archive_needs() {
    let texts = operators_texts();
    let text = |name: &str| &texts.iter().find(|(path, _)| path.ends_with(name)).unwrap().1;
    let (page, nodes) = (text("docs/history.md"), text("docs/operations/many-nodes.md"));
    for name in ["linesman.service", "linesman@.service"] {
        let unit = text(&format!("deploy/systemd/{name}"));
        for part in [
            "\nProtectSystem=strict\n",
            "\n#ReadWritePaths=-/",
            "`history.store`",
            "docs/history.md",
        ] {
            assert!(unit.contains(part), "{name} has no {part:?}");
        }
        assert!(page.contains(&format!("`{name}`")), "docs/history.md has no {name}");
    }
    let unit = text("deploy/systemd/linesman@.service");
    assert!(unit.contains("\n#User=linesman\n") && unit.contains("docs/operations/many-nodes.md"));
    assert!(text("linesman.sysusers.conf").contains("`history.store`"));
    for part in [
        "`history.store`",
        "systemd/linesman@.service",
        "`User=linesman`",
        "linesman.sysusers.conf",
        "uid",
    ] {
        assert!(nodes.contains(part), "docs/operations/many-nodes.md has no {part}");
    }
    for page in [page, nodes] {
        assert!(page.contains("`ReadWritePaths=`") && page.contains("0600"));
    }
}

#[test]
fn every_query_of_the_dashboard_and_every_alert_names_a_series() {
    let texts = operators_texts();
    let text = |name: &str| &texts.iter().find(|(path, _)| path.ends_with(name)).unwrap().1;
    let dashboard: Value = serde_json::from_str(text("linesman.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<&str> = queries.map(|query| query["expr"].as_str().unwrap()).collect();
    assert!(queries.len() > 20);
    for query in queries {
        assert!(series_names(query).next().is_some(), "{query}");
    }
    let rules = text("linesman.rules.yaml");
    let failures = text("failures.md");
    let mut alerts = 0;
    for alert in rules.split("- alert: ").skip(1) {
        alerts += 1;
        assert!(series_names(alert).next().is_some() || alert.contains("up{"), "{alert}");
        // An operator who gets an alert finds a heading with instructions.
        let (_, anchor) = alert.split_once("failures.md#").expect("where to read on");
        let anchor = anchor.lines().next().unwrap();
        assert!(failures.contains(&format!("<a id=\"{anchor}\"></a>")), "no {anchor}");
    }
    assert!(alerts > 10);
}

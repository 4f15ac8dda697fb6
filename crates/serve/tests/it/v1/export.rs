//! `/v1/sports/{sport_key}/export/{table}/{date}`: files of the archive as they are (H14).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use accounts::{KeyKind, NewKey};
use archive::{Archive, Location, Table, TableFile};
use bytes::Bytes;
use domain::World;
use engine::{Compact, ExportRequest, HistoryError};
use reqwest::{Client, Method};
use test_servers::{Proxy, S3};

use crate::harness::{Answer, TestApp, line, unlimited};
use crate::test_market::{ANN, BEA};

const DAY: Duration = Duration::from_secs(24 * 3600);
pub(crate) const ODDS: &str = "/v1/sports/mma/export/odds/2026-11-14";

pub(super) async fn export_key(app: &TestApp) -> String {
    app.key(NewKey { export_read: true, ..unlimited(KeyKind::Production) }).await
}

async fn flush(app: &TestApp) {
    let history = &app.service.api.world(World::Live).history;
    assert!(history.flush(Compact::Due).await.unwrap());
}

/// A service whose day, 2026-11-14, is over and archived.
pub(crate) async fn a_day_later(place: Option<Location>) -> (TestApp, String) {
    let app = match place {
        Some(place) => TestApp::builder().archived_in(place).start().await,
        None => TestApp::builder().archived().start().await,
    };
    let (feed, key) = (app.any_feed().await, export_key(&app).await);
    let listing = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
    ];
    app.push_all(&feed, &listing).await;
    app.publish().await;
    flush(&app).await;
    let answer = app.get(ODDS, &key).await;
    assert_eq!(answer.refusal(), (404, "not_in_history".to_owned()));
    assert!(answer.message().contains("no day has final files yet"), "{}", answer.message());
    // The same day again, so that there are files to merge.
    app.push_all(&feed, &[line::moneyline("a", "fanduel", (ANN, 140), (BEA, -160))]).await;
    app.publish().await;
    flush(&app).await;
    app.publish_after(DAY).await;
    flush(&app).await;
    (app, key)
}

/// The file of a table for 2026-11-14 according to the archive, and its content.
async fn only_file(archive: &Archive, table: Table) -> (TableFile, Bytes) {
    let archive = archive.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let commit = archive.newest().unwrap();
        let files = commit.day_files(table, "mma", "2026-11-14");
        assert_eq!(files.len(), 1, "{table:?}");
        (files[0].clone(), archive.read_range(files[0], 0..files[0].bytes).unwrap())
    });
    reading.await.unwrap()
}

/// A file of a day that is over, added without the service.
fn add_file(root: &Path, date: &str, lineage: usize, bytes: &[u8]) -> TableFile {
    let archive = Archive::at(root);
    let mut commit = archive.newest().unwrap();
    let name = format!("odds/sport=mma/date={date}/{lineage}");
    let blob = archive.put(&name, ".parquet", bytes).unwrap();
    let file = TableFile {
        table: Table::Odds,
        path: blob.path,
        rows: 1,
        bytes: blob.bytes,
        sha256: blob.sha256,
        first_seq: 1,
        last_seq: 1,
        lineage,
    };
    commit.files.push(file.clone());
    commit.commit += 1;
    assert_eq!(archive.commit(&commit).unwrap(), archive::Outcome::Committed);
    file
}

async fn check_file(app: &TestApp, key: &str, archive: &Archive) {
    let (file, held) = only_file(archive, Table::Odds).await;
    let used = app.get("/v1/status", key).await.requests_used();
    let answer = app.get(ODDS, key).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.body, held);
    assert!(answer.body.starts_with(b"PAR1"));
    let etag = format!("\"{}\"", file.sha256);
    for (name, value) in [
        ("etag", &*etag),
        ("content-type", "application/vnd.apache.parquet"),
        ("content-disposition", "attachment; filename=\"odds-mma-2026-11-14.parquet\""),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, no-cache"),
        ("vary", "X-API-Key"),
        ("content-length", &*held.len().to_string()),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!((answer.requests_used(), answer.header("link")), (used + 1, None));

    let head = app.head(ODDS, key).await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, answer.header("content-length"))
    );
    assert!(head.body.is_empty());
    let unchanged = app.get_with(ODDS, key, &[("If-None-Match", &etag)]).await;
    assert_eq!((unchanged.status, unchanged.header("etag")), (304, Some(&*etag)));
    let (length, used) = (held.len(), unchanged.requests_used());
    assert_eq!(used, answer.requests_used() + 1, "HEAD costs one, and 304 nothing");
    for (range, first, end) in [
        ("bytes=0-3".to_owned(), 0, 4),
        ("bytes=4-".to_owned(), 4, length),
        ("bytes=-4".to_owned(), length - 4, length),
        (format!("bytes=10-{}", length * 2), 10, length),
    ] {
        let part = app.get_with(ODDS, key, &[("Range", &range), ("If-Range", &etag)]).await;
        assert_eq!((part.status, &part.body[..]), (206, &held[first..end]), "{range}");
        let told = format!("bytes {first}-{}/{length}", end - 1);
        assert_eq!(part.header("content-range"), Some(&*told), "{range}");
    }
    let other = app.get_with(ODDS, key, &[("Range", "bytes=0-3"), ("If-Range", "\"x\"")]).await;
    assert_eq!((other.status, &other.body), (200, &held), "a part of another version is no part");
    let beyond = app.get_with(ODDS, key, &[("Range", &format!("bytes={length}-"))]).await;
    assert_eq!(beyond.refusal(), (416, "range_not_satisfiable".to_owned()));
    assert_eq!(beyond.header("content-range"), Some(&*format!("bytes */{length}")));
    assert_eq!(beyond.requests_used(), used + 5, "four parts and a whole one");

    for table in [Table::Events, Table::Epochs] {
        let path = ODDS.replace("/odds/", &format!("/{}/", table.key()));
        let answer = app.get(&path, key).await;
        assert_eq!(answer.body, only_file(archive, table).await.1, "{path}");
    }
}

#[tokio::test]
async fn a_day_that_is_over_is_the_archives_own_file() {
    let (app, key) = a_day_later(None).await;
    let root = app.dir().join("archive/live");
    check_file(&app, &key, &Archive::at(&root)).await;
    // A busy disk may keep the service from reading the newest commit within a second.
    let begun = Instant::now();
    while app.get("/v1/history", &key).await.json()["exported_to"] != "2026-11-14" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the day was never exported");
    }
    let metrics = app.get_operator("/metrics").await;
    let sent = metrics
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("linesman_history_export_bytes_total{world=\"live\"} "));
    assert!(sent.unwrap().parse::<u64>().unwrap() > 0);
}

/// The command of docs/history.md begins a download, and goes on with it after an interruption.
#[tokio::test]
async fn the_command_of_the_guide_goes_on_with_a_download() {
    let (app, key) = a_day_later(None).await;
    let page = include_str!("../../../../../docs/history.md");
    let mut commands = page.lines().map(str::trim).filter(|line| line.starts_with("curl "));
    let command = commands.find(|line| line.ends_with(ODDS)).expect("a command");
    let command = command.replace("http://localhost:8080", &format!("http://{}", app.addr));
    let download = async || {
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &command.replacen("curl", "curl -s --fail --noproxy '*'", 1)]);
        shell.env("LINESMAN_KEY", &key).current_dir(app.dir());
        let done = tokio::task::spawn_blocking(move || shell.status().unwrap()).await.unwrap();
        assert!(done.success(), "{command}");
        fs::read(app.dir().join("2026-11-14")).unwrap()
    };
    let whole = download().await;
    assert_eq!(whole, app.get(ODDS, &key).await.body);
    fs::write(app.dir().join("2026-11-14"), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(download().await, whole);
}

#[tokio::test]
async fn a_bucket_gives_the_same_files() {
    let server = S3::start().await.unwrap();
    let proxy = Proxy::start(server.port()).await.unwrap();
    let place = super::history::bucket(&proxy);
    let (app, key) = a_day_later(Some(place.clone())).await;
    check_file(&app, &key, &Archive::of(&place.join(World::Live.key()))).await;
    proxy.cut();
    let answer = app.get(ODDS, &key).await;
    assert_eq!(answer.refusal(), (503, "unavailable".to_owned()));
}

#[tokio::test]
async fn a_large_file_is_sent_in_pieces_and_a_damaged_one_breaks_off() {
    let (app, key) = a_day_later(None).await;
    let root = app.dir().join("archive/live");
    let bytes: Vec<u8> = (0..3_500_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let file = add_file(&root, "2026-11-01", 0, &bytes);
    let path = "/v1/sports/mma/export/odds/2026-11-01";
    let http2 = Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let ask = |client: &Client, range: &str| {
        let request = client.request(Method::GET, format!("http://{}{path}", app.addr));
        request.header("X-API-Key", &key).header("Range", range.to_owned())
    };
    for client in [&crate::harness::client(), &http2] {
        let whole = Answer::of(ask(client, "none")).await;
        assert_eq!((whole.status, whole.body.len()), (200, bytes.len()));
        assert!(whole.body == bytes);
        let part = Answer::of(ask(client, "bytes=1000000-2999999")).await;
        assert!(part.status == 206 && part.body == bytes[1_000_000..3_000_000]);
    }
    // The connection continues after it.
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\nrange: bytes=0-1999999\r\n\r\n"
    );
    let answers = app.raw(request.repeat(2).as_bytes(), 2).await;
    assert!(answers.len() == 2 && answers.iter().all(|part| part.body == bytes[..2_000_000]));

    let damaged = fs::OpenOptions::new().write(true).open(root.join(&file.path)).unwrap();
    damaged.set_len(2_500_000).unwrap();
    for client in [&crate::harness::client(), &http2] {
        let response = ask(client, "none").send().await.unwrap();
        assert_eq!(response.status(), 200, "that it is shorter is seen later");
        assert!(response.bytes().await.is_err());
    }
    let metrics = app.get_operator("/metrics").await;
    assert!(metrics.text().contains("linesman_history_export_failures_total{world=\"live\"} 2\n"));
}

#[tokio::test]
async fn a_file_that_is_not_what_was_committed_is_not_sent() {
    let (app, key) = a_day_later(None).await;
    let root = app.dir().join("archive/live");
    let file = add_file(&root, "2026-11-01", 0, b"PAR1 as it was");
    fs::write(root.join(&file.path), b"PAR1 as it is.").unwrap();
    let answer = app.get("/v1/sports/mma/export/odds/2026-11-01", &key).await;
    assert_eq!(answer.refusal(), (503, "unavailable".to_owned()));
}

#[tokio::test]
async fn files_of_several_lineages_lead_to_each_other() {
    let (app, key) = a_day_later(None).await;
    let root = app.dir().join("archive/live");
    for (lineage, bytes) in [(1, b"PAR1 one"), (3, b"PAR1 two")] {
        add_file(&root, "2026-11-01", lineage, bytes);
    }
    let path = "/v1/sports/mma/export/odds/2026-11-01";
    let first = app.get(path, &key).await;
    assert_eq!(first.text(), "PAR1 one");
    let next = first.next_page().unwrap();
    assert_eq!(next, format!("{path}?lineage=3"));
    let second = app.get(&next, &key).await;
    assert_eq!((second.text(), second.next_page()), ("PAR1 two", None));
    let none = app.get(&format!("{path}?lineage=0"), &key).await;
    assert_eq!(none.refusal(), (404, "not_in_history".to_owned()));
}

#[tokio::test]
async fn a_day_with_files_that_are_not_merged_is_refused_and_others_are_not() {
    let (app, key) = a_day_later(None).await;
    let root = app.dir().join("archive/live");
    for lineage in [0, 0, 1] {
        add_file(&root, "2026-11-01", lineage, b"PAR1");
    }
    let path = "/v1/sports/mma/export/odds/2026-11-01";
    let answer = app.get(path, &key).await;
    assert_eq!(answer.refusal(), (404, "not_in_history".to_owned()));
    assert!(answer.message().contains("not final"), "{}", answer.message());
    assert_eq!(app.get(&format!("{path}?lineage=1"), &key).await.status, 200);
    let later = app.get(ODDS, &key).await;
    assert_eq!(later.status, 200, "{}", later.text());
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_refused_and_costs_nothing() {
    let (app, key) = a_day_later(None).await;
    let used = app.get("/v1/status", &key).await.requests_used();
    let not_in_history = (404, "not_in_history".to_owned());
    for (path, words) in [
        ("/v1/sports/mma/export/odds/2026-11-15", "2026-11-14 is the last day whose files are"),
        ("/v1/sports/mma/export/odds/2027-01-01", "2026-11-14 is the last day whose files are"),
        ("/v1/sports/golf/export/odds/2026-11-14", "no such rows"),
        ("/v1/sports/mma/export/odds/2020-01-01", "no such rows"),
    ] {
        let answer = app.get(path, &key).await;
        assert_eq!(answer.refusal(), not_in_history, "{path}");
        assert!(answer.message().contains(words), "{path}: {}", answer.message());
    }
    for (rest, param) in [
        ("internal/2026-11-14", "table"),
        ("prices/2026-11-14", "table"),
        ("odds/2026-11-31", "date"),
        ("odds/yesterday", "date"),
        ("odds/2026-11-14?lineage=x", "lineage"),
        ("odds/2026-11-14?lineage=65536", "lineage"),
        ("odds/2026-11-14?limit=5", "limit"),
    ] {
        let answer = app.get(&format!("/v1/sports/mma/export/{rest}"), &key).await;
        assert_eq!((answer.status, answer.param().as_deref()), (400, Some(param)), "{rest}");
    }
    let answer = app.get(&ODDS.replace("mma", "chess"), &key).await;
    assert_eq!(answer.refusal(), (404, "sport_not_found".to_owned()));
    for path in ["/v1/sports/mma/export/odds", "/v1/sports/mma/export/odds/2026-11-14/x"] {
        assert_eq!(app.get(path, &key).await.refusal(), (404, "not_found".to_owned()), "{path}");
    }
    assert_eq!(app.get("/v1/status", &key).await.requests_used(), used);

    // No key has the permission by default, and sport groups apply here, too.
    let plain = app.live_key().await;
    let answer = app.get(ODDS, &plain).await;
    assert_eq!(answer.refusal(), (403, "forbidden".to_owned()));
    assert!(answer.message().contains("export:read"), "{}", answer.message());
    let golf = NewKey {
        export_read: true,
        groups: Some(vec!["golf".to_owned()]),
        ..unlimited(KeyKind::Production)
    };
    let golf = app.key(golf).await;
    assert_eq!(app.get(ODDS, &golf).await.refusal(), (403, "forbidden".to_owned()));
    // It is independent of the permission to read odds.
    let only =
        app.key(NewKey { export_read: true, odds_read: false, ..unlimited(KeyKind::Production) });
    let only = only.await;
    assert_eq!(app.get(ODDS, &only).await.status, 200);
    assert_eq!(app.get("/v1/sports/mma/odds", &only).await.status, 403);
    // The sandbox has no archive.
    let sandbox = app.key(NewKey { export_read: true, ..unlimited(KeyKind::Sandbox) }).await;
    assert_eq!(app.get(ODDS, &sandbox).await.refusal(), not_in_history);
    let off = TestApp::builder().without_history().start().await;
    assert_eq!(app.get(ODDS, &sandbox).await.refusal(), not_in_history);
    let key = export_key(&off).await;
    assert_eq!(off.get(ODDS, &key).await.refusal(), not_in_history);
}

#[tokio::test]
async fn a_key_has_a_few_files_sent_at_a_time() {
    let (app, _) = a_day_later(None).await;
    let history = &app.service.api.world(World::Live).history;
    let request = || ExportRequest {
        table: Table::Odds,
        sport: "mma".to_owned(),
        date: "2026-11-14".to_owned(),
        lineage: None,
    };
    let mut held = Vec::new();
    while held.len() < 4 {
        held.push(history.export(request(), 1).await.unwrap());
    }
    let refused = history.export(request(), 1).await.unwrap_err();
    assert!(matches!(refused, engine::ExportError::History(HistoryError::Busy)), "{refused:?}");
    history.export(request(), 2).await.unwrap();
    held.pop();
    history.export(request(), 1).await.unwrap();
}

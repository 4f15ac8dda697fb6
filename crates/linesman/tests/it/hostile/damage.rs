//! A damaged log: the service starts, reports the damage, and has everything from before it.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use crate::harness::{
    HOUR, Service, TestProgram, bout, clear_of_the_turn_of, moneyline, ndjson, wait_for,
};

const INTERVAL: &str = "LINESMAN_MARKET__REFRESH_INTERVAL";
const STALE_AFTER: &str = "LINESMAN_MARKET__STALE_AFTER";
const EVENTS: &str = "/v1/sports/mma/events";
const ODDS: &str = "/v1/sports/mma/odds";
const NAMES: [&str; 4] = ["Anderson", "Bellator", "Cormier", "Dillashaw"];

/// A folder with four bouts that were pushed one at a time, and nothing after them; with a key to read it.
async fn four_bouts() -> (TestProgram, String) {
    // Snapshots are entries too: with an hour between them the last entry is the last bout.
    clear_of_the_turn_of(HOUR).await;
    let program = TestProgram::new().set(INTERVAL, "1h").set(STALE_AFTER, "1h");
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    for name in NAMES {
        service.push_all(&token, &[bout(&format!("ref-{name}"), name, "Opponent")]).await;
    }
    service.stop().await;
    (program.set(INTERVAL, "100ms"), key)
}

fn newest(program: &TestProgram, prefix: &str) -> PathBuf {
    let files = fs::read_dir(program.data().join("live")).unwrap().map(|item| item.unwrap());
    let mut names: Vec<PathBuf> = files
        .filter(|item| item.file_name().to_string_lossy().starts_with(prefix))
        .map(|item| item.path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "log" || kind == "ckp"))
        .collect();
    names.sort();
    names.pop().unwrap_or_else(|| panic!("no {prefix}"))
}

fn damage(path: &PathBuf, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    how(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Starts, and checks that these bouts are present, and that new ones are accepted and kept.
async fn expect_bouts(program: &TestProgram, key: &str, names: &[&str]) {
    let service = program.start().await;
    let shown = |events: &[Value]| {
        let mut homes: Vec<String> =
            events.iter().map(|event| event["home_team"].as_str().unwrap().to_owned()).collect();
        homes.sort();
        homes
    };
    let events = service.records(EVENTS, key, names.len()).await;
    assert_eq!(shown(&events), names);
    let token = program.feed("after").await;
    service.push_all(&token, &[bout("new", "Zombie", "Opponent")]).await;
    let after = service.records(EVENTS, key, names.len() + 1).await;
    service.kill().await;
    let service = program.start().await;
    assert_eq!(service.records(EVENTS, key, names.len() + 1).await, after);
    service.stop().await;
}

fn warned(program: &TestProgram, text: &str) {
    let logs = program.logs();
    let told = logs.lines().any(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        matches!(line["level"].as_str(), Some("WARN" | "ERROR")) && line.to_string().contains(text)
    });
    assert!(told, "nothing said of {text:?}:\n{logs}");
}

#[tokio::test]
async fn a_torn_last_entry_is_cut_off() {
    let (program, key) = four_bouts().await;
    damage(&newest(&program, "segment-"), |bytes| bytes.truncate(bytes.len() - 3));
    expect_bouts(&program, &key, &NAMES[..3]).await;
    warned(&program, "change log cut at the last whole entry");
}

#[tokio::test]
async fn a_flipped_byte_in_the_tail_costs_that_entry_alone() {
    let (program, key) = four_bouts().await;
    damage(&newest(&program, "segment-"), |bytes| {
        let at = bytes.len() - 4;
        bytes[at] ^= 0x10;
    });
    expect_bouts(&program, &key, &NAMES[..3]).await;
    warned(&program, "change log cut at the last whole entry");
}

#[tokio::test]
async fn a_flipped_byte_amid_the_log_costs_that_entry_alone_and_is_told_until_it_is_gone() {
    let (program, key) = four_bouts().await;
    damage(&newest(&program, "segment-"), |bytes| {
        let name = b"ref-Cormier";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at] ^= 1;
    });
    expect_bouts(&program, &key, &[NAMES[0], NAMES[1], NAMES[3]]).await;
    warned(&program, "the log is damaged");
    // At every start, for as long as the log is kept.
    let service = program.start().await;
    expect_lost(&service, 1).await;
    // The damaged bytes are kept for examination.
    let aside = fs::read_dir(program.data().join("live")).unwrap().map(|item| item.unwrap().path());
    let aside: Vec<_> =
        aside.filter(|path| path.extension().is_some_and(|kind| kind == "damaged")).collect();
    assert_eq!(aside.len(), 1);
    assert!(fs::read(&aside[0]).unwrap().windows(8).any(|window| window == b"Opponent"));
    let recorded = program.run(&["record", "--world", "live"]).await;
    assert_eq!((recorded.code, recorded.stdout.lines().count()), (Some(0), 4));
    assert!(recorded.stderr.contains("the log is damaged: 1 entry is lost"), "{}", recorded.stderr);
    service.stop().await;
}

/// The service's report of the damage.
async fn expect_lost(service: &Service, entries: u64) {
    wait_for("the damage to be told", async || {
        let ready = service.get("/readyz", "").await;
        let metrics = reqwest::get(service.metrics()).await.unwrap().text().await.unwrap();
        let lost = format!("linesman_log_lost_entries{{world=\"live\"}} {entries}\n");
        let told = ready.text().contains("lost to damage") && ready.status == 200;
        (told && metrics.contains(&lost)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn garbage_after_the_log_is_cut_off() {
    for garbage in [
        &b"\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        b"this is no entry of any log, and is longer than a head",
    ] {
        let (program, key) = four_bouts().await;
        let log = newest(&program, "segment-");
        fs::File::options().append(true).open(log).unwrap().write_all(garbage).unwrap();
        expect_bouts(&program, &key, &NAMES).await;
        warned(&program, "change log cut at the last whole entry");
    }
}

#[tokio::test]
async fn an_emptied_segment_does_not_keep_the_service_from_starting() {
    let (program, key) = four_bouts().await;
    damage(&newest(&program, "segment-"), Vec::clear);
    expect_bouts(&program, &key, &[]).await;
}

/// Number of price changes, enough for a checkpoint.
const CHANGES: i64 = 60_000;
const RECORDS: i64 = 2_000;
const BATCH: i64 = 10_000;

fn change(number: i64) -> Value {
    let (event, price) = (number % RECORDS, 1000 + number);
    let names = (format!("Home {event}"), format!("Away {event}"));
    moneyline(&format!("e{event}"), "fanduel", &[(&names.0, price), (&names.1, -price)])
}

async fn start_timed(program: &TestProgram, what: &str) -> Service {
    let begun = Instant::now();
    let service = program.start().await;
    println!("{what}: serving after {:?} (unoptimised)", begun.elapsed());
    service
}

#[tokio::test]
async fn a_restart_after_many_changes_is_whole_with_and_without_its_checkpoint() {
    let program = TestProgram::new();
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let begun = Instant::now();
    let listings: Vec<Value> = (0..RECORDS)
        .map(|event| bout(&format!("e{event}"), &format!("Home {event}"), &format!("Away {event}")))
        .collect();
    service.push_all(&token, &listings).await;
    for batch in 0..CHANGES / BATCH {
        let lines: Vec<Value> = (batch * BATCH..(batch + 1) * BATCH).map(change).collect();
        let answer = service.post(&token, ndjson(&lines)).await.unwrap();
        assert_eq!(answer.json()["accepted"], BATCH);
    }
    println!("{CHANGES} changes taken in {:?} (unoptimised)", begun.elapsed());
    // The last message of every record, and the snapshot that causes the checkpoint.
    let last = bout("marker", "Marker Home", "Marker Away");
    service
        .push_all(
            &token,
            &[last, moneyline("marker", "fanduel", &[("Marker Home", 150), ("Marker Away", -200)])],
        )
        .await;
    let expected = usize::try_from(RECORDS).unwrap() + 1;
    // The first pages that show the marker may be of the publication before it: they are read again.
    service.records(&format!("{ODDS}?limit=500"), &key, expected).await;
    let odds = service.pages(&format!("{ODDS}?limit=500"), &key).await;
    let mut prices: Vec<i64> =
        odds.iter().map(|record| record["outcomes"][0]["price"].as_i64().unwrap()).collect();
    prices.sort_unstable();
    let held = (CHANGES - RECORDS..CHANGES).map(|number| 1000 + number);
    assert_eq!(prices, [150].into_iter().chain(held).collect::<Vec<_>>());
    service.kill().await;

    let service = start_timed(&program, "checkpoint and log").await;
    assert_eq!(service.pages(&format!("{ODDS}?limit=500"), &key).await, odds);
    service.stop().await;

    let damaged = newest(&program, "checkpoint-");
    damage(&damaged, |bytes| {
        let at = bytes.len() / 2;
        bytes[at] ^= 0x40;
    });
    let service = start_timed(&program, "damaged checkpoint, whole log").await;
    assert_eq!(service.pages(&format!("{ODDS}?limit=500"), &key).await, odds);
    warned(&program, "checkpoint");
    wait_for("another checkpoint", async || {
        (newest(&program, "checkpoint-") != damaged).then_some(())
    })
    .await;
    service.stop().await;

    // Damage in a part that no start reads because a checkpoint covers it.
    damage(&newest(&program, "segment-"), |bytes| bytes[5000] ^= 1);
    let service = start_timed(&program, "damage before the checkpoint").await;
    expect_lost(&service, 1).await;
    warned(&program, "the log is damaged");
    assert_eq!(service.pages(&format!("{ODDS}?limit=500"), &key).await.len(), expected);
}

/// More entries after the last snapshot than a start keeps decoded (`WAITING_MAX`).
const AFTER_THE_SNAPSHOT: i64 = 60_000;

#[tokio::test]
async fn a_restart_after_many_changes_within_an_epoch_shows_the_same_snapshot_and_has_lost_nothing()
{
    clear_of_the_turn_of(HOUR).await;
    let program = TestProgram::new().set(INTERVAL, "1h").set(STALE_AFTER, "1h");
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let listings: Vec<Value> = (0..RECORDS)
        .map(|event| bout(&format!("e{event}"), &format!("Home {event}"), &format!("Away {event}")))
        .collect();
    service.push_all(&token, &listings).await;
    let mut last = Vec::new();
    for batch in 0..AFTER_THE_SNAPSHOT / BATCH {
        last = (batch * BATCH..(batch + 1) * BATCH).map(change).collect();
        let answer = service.post(&token, ndjson(&last)).await.unwrap();
        assert_eq!(answer.json()["accepted"], BATCH);
    }
    let shown = service.get(EVENTS, &key).await.json();
    assert_eq!(shown, serde_json::json!([]), "all of it is after the snapshot");
    service.kill().await;

    let service = program.start().await;
    assert_eq!(service.get(EVENTS, &key).await.json(), shown);
    // The newest price of every record is present: pushing it again changes nothing.
    let newest = last.split_off(last.len() - usize::try_from(RECORDS).unwrap());
    let answer = service.post(&token, ndjson(&newest)).await.unwrap().json();
    assert_eq!(answer["unchanged"], RECORDS, "{answer}");
    service.stop().await;
}

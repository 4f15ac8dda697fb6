//! An id that clients have seen is never given to another event, whatever happens to the log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Service, TestProgram, bout};

const EVENTS: &str = "/v1/sports/mma/events?limit=500";

/// Unique names, so that no two bouts are matched.
fn names(set: char, number: usize) -> (String, String) {
    let word = |salt: usize| -> String {
        let letter = |n: usize| {
            char::from(b'a' + u8::try_from((number * 7 + salt * n * 5 + n) % 26).unwrap())
        };
        (1..9).map(letter).collect()
    };
    (format!("{set}{}", word(number + 1)), format!("{set}{}", word(number + 3)))
}

/// Lists ten new bouts, and returns all that are shown: the participants by id.
async fn list(
    program: &TestProgram,
    service: &Service,
    set: char,
    shown: usize,
) -> BTreeMap<String, String> {
    let token = program.feed(&format!("feed-{}", set.to_ascii_lowercase())).await;
    for number in 0..10 {
        let (one, other) = names(set, number);
        service.push_all(&token, &[bout(&format!("{set}{number}"), &one, &other)]).await;
    }
    let key = program.live_key().await;
    let events = service.records(EVENTS, &key, shown).await;
    let text = |event: &serde_json::Value, field: &str| event[field].as_str().unwrap().to_owned();
    events.iter().map(|event| (text(event, "id"), text(event, "home_team"))).collect()
}

#[track_caller]
fn expect_disjoint(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    for (id, home) in after {
        let held = before.get(id).unwrap_or(home);
        assert_eq!(held, home, "{id} was given twice");
    }
}

async fn after_damage(damage: impl FnOnce(&mut Vec<u8>)) {
    let program = TestProgram::new().set("LINESMAN_MARKET__REFRESH_INTERVAL", "1s");
    let service = program.start().await;
    let before = list(&program, &service, 'A', 10).await;
    assert_eq!(before.len(), 10);
    service.kill().await;
    let segment = fs::read_dir(program.data().join("live"))
        .unwrap()
        .map(|item| item.unwrap().path())
        .find(|path| path.extension().is_some_and(|kind| kind == "log"))
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    damage(&mut bytes);
    fs::write(&segment, bytes).unwrap();
    let service = program.start().await;
    let after = list(&program, &service, 'B', 10).await;
    assert!(after.len() >= 10);
    expect_disjoint(&before, &after);
}

fn position(bytes: &[u8], name: &str) -> usize {
    bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_flipped_bit_amid_the_log() {
    after_damage(|bytes| {
        let at = position(bytes, &names('A', 4).0);
        bytes[at] ^= 1;
    })
    .await;
}

#[tokio::test]
async fn a_log_that_lost_its_end() {
    after_damage(|bytes| {
        let at = position(bytes, &names('A', 3).0);
        bytes.truncate(at);
    })
    .await;
}

#[tokio::test]
async fn a_log_that_is_gone() {
    after_damage(Vec::clear).await;
}

/// Both folders continue from the same state, and no id is assigned by both.
async fn diverge(copy: impl AsyncFnOnce(&TestProgram, &Path)) {
    let program = TestProgram::new();
    let service = program.start().await;
    list(&program, &service, 'A', 10).await;
    let other = TestProgram::new();
    copy(&program, &other.data()).await;
    let here = list(&program, &service, 'B', 20).await;
    service.stop().await;
    let service = other.start().await;
    let there = list(&other, &service, 'C', 20).await;
    assert_eq!((here.len(), there.len()), (20, 20));
    expect_disjoint(&here, &there);
    assert_eq!(here.keys().filter(|id| there.contains_key(*id)).count(), 10);
}

#[tokio::test]
async fn a_backup_that_is_restored() {
    diverge(async |program, to| {
        program.ok(&[OsStr::new("backup"), to.as_os_str()]).await;
    })
    .await;
}

#[tokio::test]
async fn a_folder_that_is_copied_by_hand() {
    diverge(async |program, to| {
        let copied = Command::new("cp").arg("-a").arg(program.data()).arg(to).status().unwrap();
        assert!(copied.success());
    })
    .await;
}

//! A backup of a running service, as `docs/operations/backup.md` describes it, and a service started from it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{
    DAY, TestProgram, bout, clear_of_the_turn_of, client, moneyline, ndjson, post, wait_for,
};

const EVENTS: &str = "/v1/sports/mma/events?limit=500";
const ODDS: &str = "/v1/sports/mma/odds";
/// Number of events pushed one at a time before the backup; during it, as many as possible.
const BEFORE: usize = 40;

/// A unique name.
fn name(number: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    let word = [number, number / 26, number * 7, number * 11, number / 3].map(letter);
    let word: String = word.iter().collect();
    format!("{}{word}", letter(number).to_ascii_uppercase())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_service_has_keys_quotas_events_and_log() {
    clear_of_the_turn_of(DAY).await;
    let program = TestProgram::new();
    let service = program.start().await;
    let reader = program.live_key().await;
    let revoked = program.live_key().await;
    program.ok(&["keys", "revoke", &revoked]).await;
    let limited = ["keys", "create", "--kind", "production", "--requests-per-day", "160"];
    let limited = program.ok(&limited).await;
    for used in 1..=7 {
        assert_eq!(service.get("/v1/books", &limited).await.requests_used(), used);
    }
    let token = program.feed("one").await;
    let price = moneyline("r-0", "fanduel", &[(&name(0), 140), ("Opponent 0", -165)]);
    service.push_all(&token, &[bout("r-0", &name(0), "Opponent 0"), price]).await;
    let odds = service.records(ODDS, &reader, 1).await;

    // A feed that continues during the backup.
    let (taken, done) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicBool::new(false)));
    let pushing = {
        let (taken, done, base, token) =
            (Arc::clone(&taken), Arc::clone(&done), service.base.clone(), token.clone());
        tokio::spawn(async move {
            let client = client();
            while !done.load(Ordering::Acquire) {
                let n = taken.load(Ordering::Acquire);
                let line = bout(&format!("r-{n}"), &name(n), &format!("Opponent {n}"));
                let answer = post(&client, &base, &token, ndjson(&[line])).await.unwrap();
                assert_eq!(answer.status, 200);
                taken.fetch_add(1, Ordering::AcqRel);
            }
        })
    };
    wait_for("pushes", async || (taken.load(Ordering::Acquire) >= BEFORE).then_some(())).await;
    let before = taken.load(Ordering::Acquire);
    let place = program.path().join("backups of today");
    let to = place.to_str().unwrap();
    assert!(program.ok(&["backup", to]).await.contains("accounts.db"));
    done.store(true, Ordering::Release);
    pushing.await.unwrap();
    let again = program.run(&["backup", to]).await;
    assert!(again.sentence(1).contains("exists already"), "{}", again.stderr);
    // Later changes are not in it.
    let later = program.live_key().await;
    service.kill().await;

    let restored = TestProgram::new();
    fs::rename(&place, restored.data()).unwrap();
    let service = restored.start().await;
    assert_eq!(service.first_key(), None, "it is not a new installation");
    assert_eq!(service.get("/v1/status", &later).await.status, 401);
    assert_eq!(service.get("/v1/status", &revoked).await.status, 401);
    // Quota that was leased when the copy was made counts as used, less than two slices; the limit is never exceeded.
    let standing = service.get("/v1/books", &limited).await;
    assert!((8..=28).contains(&standing.requests_used()), "{}", standing.requests_used());
    let events = service.records(EVENTS, &reader, before).await;
    for number in 0..before {
        assert!(events.iter().any(|event| event["home_team"] == name(number)), "{number}");
    }
    assert_eq!(service.pages(ODDS, &reader).await[0]["id"], odds[0]["id"]);
    // The feed's refs are still known, and the log continues.
    let known = bout("r-1", &name(1), "Opponent 1");
    let answer = service.post(&token, ndjson(&[known])).await.unwrap();
    assert_eq!(
        answer.json()["accepted"].as_u64().unwrap() + answer.json()["unchanged"].as_u64().unwrap(),
        1
    );
    service.push_all(&token, &[bout("new", "Zombie", "Opponent")]).await;
    let recording = restored.ok(&["record", "--world", "live"]).await;
    assert!(recording.contains(&name(before - 1)) && recording.contains("Zombie"));
    service.stop().await;
    assert!(!restored.logs().contains("gap"), "{}", restored.logs());
}

#[tokio::test]
async fn a_backup_has_an_archive_that_is_in_a_folder_of_its_own_and_what_is_noted_of_gaps() {
    let program = TestProgram::new();
    let store = program.path().join("the store");
    let program = program.set("LINESMAN_HISTORY__STORE", store.display().to_string());
    let service = program.start().await;
    let token = program.feed("one").await;
    service.push_all(&token, &[bout("r-0", "Ann Archer", "Bea Bowen")]).await;
    program.ok(&["history", "flush"]).await;
    let place = program.path().join("backup");
    program.ok(&["backup", place.to_str().unwrap()]).await;
    service.kill().await;
    assert!(!program.data().join("archive").exists());
    let noted = fs::read(program.data().join("live/unlogged")).unwrap();
    assert_eq!(fs::read(place.join("live/unlogged")).unwrap(), noted);

    // Both are lost, and restored as the document describes.
    let restored = TestProgram::new();
    let store = restored.path().join("the store");
    let restored = restored.set("LINESMAN_HISTORY__STORE", store.display().to_string());
    fs::rename(&place, restored.data()).unwrap();
    fs::rename(restored.data().join("archive"), &store).unwrap();
    // It records the location of the archive, so that a missing one is noticed.
    let noted = fs::read_to_string(restored.data().join("archive-begun")).unwrap();
    assert!(noted.trim_end().ends_with("the store/live"), "{noted}");
    let before = restored.ok(&["history", "verify"]).await;
    assert!(before.contains("is present once") && !before.contains(" 0 entries"), "{before}");
    let service = restored.start().await;
    service.push_all(&token, &[bout("r-1", "Cat Cole", "Dee Dunn")]).await;
    restored.ok(&["history", "flush"]).await;
    service.stop().await;
    let status = restored.ok(&["history", "status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["lineages"].as_array().unwrap().len(), 1, "{status}");
    restored.ok(&["history", "verify", "--sample", "3"]).await;
}

#[tokio::test]
async fn a_backup_that_is_restored_without_its_archive_does_not_begin_another() {
    let program = TestProgram::new();
    let service = program.start().await;
    let token = program.feed("one").await;
    service.push_all(&token, &[bout("r-0", "Ann Archer", "Bea Bowen")]).await;
    program.ok(&["history", "flush"]).await;
    let place = program.path().join("backup");
    program.ok(&["backup", place.to_str().unwrap()]).await;
    service.kill().await;

    // In a different location.
    let restored = TestProgram::new();
    fs::rename(&place, restored.data()).unwrap();
    let [archive, elsewhere] = ["archive", "elsewhere"].map(|name| restored.data().join(name));
    fs::rename(&archive, &elsewhere).unwrap();
    let service = restored.start().await;
    service.push_all(&token, &[bout("r-1", "Cat Cole", "Dee Dunn")]).await;
    let told = restored.run(&["history", "flush"]).await;
    assert_ne!(told.code, Some(0), "{}", told.stdout);
    assert!(!archive.exists(), "it was begun anew");
    fs::rename(&elsewhere, &archive).unwrap();
    restored.ok(&["history", "flush"]).await;
    restored.ok(&["history", "verify", "--sample", "3"]).await;
    service.stop().await;
}

#[tokio::test]
async fn a_backup_that_would_lack_the_archive_is_refused() {
    let program = TestProgram::new();
    let [store, away, to] = ["share", "away", "backup"].map(|name| program.path().join(name));
    let place = store.display().to_string();
    let program = program.set("LINESMAN_HISTORY__STORE", &*place);
    let service = program.start().await;
    let note = program.data().join("archive-begun");
    wait_for("the archive", async || note.exists().then_some(())).await;
    service.stop().await;
    let backup = ["backup", to.to_str().unwrap()];
    // The share is not mounted.
    fs::rename(&store, &away).unwrap();
    let done = program.run(&backup).await;
    assert!(done.sentence(1).contains("share is not mounted, mount it"), "{}", done.stderr);
    fs::rename(&away, &store).unwrap();
    // Only the environment of the service names it.
    let program = program.unset("LINESMAN_HISTORY__STORE");
    let done = program.run(&backup).await;
    let sentence = format!("nothing was copied: the archive was begun in {place}/live, but");
    assert!(done.sentence(1).contains(&sentence), "{}", done.stderr);
    let left = ["backup", "backup.part"].map(|name| program.path().join(name).exists());
    assert_eq!(left, [false, false]);
    let program = program.set("LINESMAN_HISTORY__STORE", &*place);
    program.ok(&backup).await;
    assert!(to.join("archive/live/commit").is_dir());
}

#[tokio::test]
async fn damage_in_the_archive_is_reported_and_everything_else_is_backed_up() {
    let program = TestProgram::new();
    let service = program.start().await;
    let (token, key) = (program.feed("one").await, program.live_key().await);
    service.push_all(&token, &[bout("r-0", "Ann Archer", "Bea Bowen")]).await;
    service.records(EVENTS, &key, 1).await;
    program.ok(&["history", "flush"]).await;
    service.stop().await;
    let archive = program.data().join("archive/live");
    let list = fs::read(archive.join("files.json")).unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
    let files = list["files"].as_array().unwrap();
    let [damaged, missing] = [0, 1].map(|n: usize| files[n]["path"].as_str().unwrap());
    fs::write(archive.join(damaged), "damaged").unwrap();
    fs::remove_file(archive.join(missing)).unwrap();

    let place = program.path().join("backup");
    let done = program.run(&["backup", place.to_str().unwrap()]).await;
    assert_eq!((done.code, &*done.stdout), (Some(1), ""), "{}", done.stderr);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", done.stderr);
    for path in [damaged, missing] {
        assert!(lines[..2].iter().any(|line| line.contains(path)), "{}", done.stderr);
    }
    assert!(
        lines[2].contains("complete except for the archive, which has 2 faults"),
        "{}",
        lines[2]
    );

    let restored = TestProgram::new();
    fs::rename(&place, restored.data()).unwrap();
    let copy = restored.data().join("archive/live");
    assert_eq!(fs::read_to_string(copy.join(damaged)).unwrap(), "damaged");
    assert!(!copy.join(missing).exists());
    for file in files.iter().skip(2).map(|file| file["path"].as_str().unwrap()) {
        assert_eq!(fs::read(copy.join(file)).unwrap(), fs::read(archive.join(file)).unwrap());
    }
    let service = restored.start().await;
    service.records(EVENTS, &key, 1).await;
    service.stop().await;
}

#[tokio::test]
async fn a_folder_that_is_none_is_not_backed_up() {
    let program = TestProgram::new();
    let told = program.run(&["backup", program.path().join("to").to_str().unwrap()]).await;
    assert!(told.sentence(1).contains("there is no data folder at"), "{}", told.stderr);
    assert!(!program.path().join("to").exists());
}

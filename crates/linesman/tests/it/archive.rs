//! The archive of a real service that is killed: every entry is present exactly once (H17).

mod kills;

use std::fs;

use archive::Archive;
use domain::Catalogue;
use serde_json::Value;
use test_servers::S3;

use crate::harness::{Service, TestProgram, bout, wait_for};

#[tokio::test]
async fn the_archive_of_a_service_that_is_killed_again_and_again_has_every_entry_once() {
    let program = TestProgram::new().set("LINESMAN_HISTORY__PART_INTERVAL", "1s");
    program.init().await;
    let token = program.feed("pinnacle").await;
    let told = program.run(&["history", "status"]).await;
    assert!(told.sentence(1).contains("there is no archive at"), "{}", told.stderr);
    let told = program.run(&["history", "flush"]).await;
    assert!(told.sentence(1).contains("no server runs on"), "{}", told.stderr);
    for round in 0..4 {
        let service = program.start().await;
        for n in 0..5 {
            let (home, away) = (format!("Home {round} {n}"), format!("Away {round} {n}"));
            service.push_all(&token, &[bout(&format!("r-{round}-{n}"), &home, &away)]).await;
            match n {
                _ if n == round => drop(program.ok(&["history", "flush"]).await),
                4 if round > 1 => drop(program.ok(&["history", "compact"]).await),
                _ => {}
            }
        }
        // At any point of its work.
        service.kill().await;
        let checked = program.ok(&["history", "verify"]).await;
        assert!(checked.contains("is present once"), "{checked}");
    }
    let service = program.start().await;
    service.push_all(&token, &[bout("last", "Last Home", "Last Away")]).await;
    let told = program.run(&["history", "compact", "--before", "yesterday"]).await;
    assert!(told.stderr.contains("2026-11-14"), "{}", told.stderr);
    program.ok(&["history", "compact", "--before", "2020-01-01"]).await;
    let done = program.ok(&["history", "compact"]).await;
    assert!(done.contains("put together"), "{done}");
    let status: Value =
        serde_json::from_str(&program.ok(&["history", "status", "--json"]).await).unwrap();
    assert_eq!(status["lineages"].as_array().unwrap().len(), 1, "{status}");
    assert!(status["publications"].as_u64().unwrap() >= 5, "{status}");
    let tables: Vec<&str> = status["days"]
        .as_array()
        .unwrap()
        .iter()
        .map(|day| day["table"].as_str().unwrap())
        .collect();
    for table in ["events", "epochs", "internal"] {
        assert!(tables.contains(&table), "{status}");
    }
    assert!(program.ok(&["history", "status"]).await.contains("publications"));
    let sampled = program.ok(&["history", "verify", "--sample", "5"]).await;
    assert!(sampled.contains("5 publications were rebuilt: 5 are the same"), "{sampled}");
    export(&program).await;
    let archived_to = status["to"].as_str().unwrap();
    let program = refused_without_the_tail(program, service, &token, archived_to).await;

    // A backup contains it too, and can be verified as well.
    let copy = TestProgram::new();
    program.ok(&["backup", copy.data().to_str().unwrap()]).await;
    copy.ok(&["history", "verify"]).await;
    let files: Value =
        serde_json::from_slice(&fs::read(copy.data().join("archive/live/files.json")).unwrap())
            .unwrap();
    let path = files["files"][0]["path"].as_str().unwrap();
    fs::write(copy.data().join("archive/live").join(path), "damaged").unwrap();
    let told = copy.run(&["history", "verify"]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains(path), "{}", told.stderr);
}

/// Expects `history status` to fail with a sentence.
async fn expect(program: &TestProgram, sentence: &str) {
    let done = program.run(&["history", "status"]).await;
    assert!(done.sentence(1).contains(sentence), "{}", done.stderr);
}

#[tokio::test]
async fn an_archive_that_is_not_there_is_reported_with_the_reason() {
    let program = TestProgram::new();
    let [store, away] = ["share", "away"].map(|name| program.path().join(name));
    let place = store.display().to_string();
    let program = program.set("LINESMAN_HISTORY__STORE", &*place);
    program.init().await;
    expect(&program, "yet; a server begins one within a minute").await;
    let program = program.set("LINESMAN_HISTORY__ENABLED", "false");
    expect(&program, "history is off (`history.enabled`)").await;
    let service = program.start().await;
    let key = program.live_key().await;
    for path in ["/v1/history", "/v1/sports/mma/odds?as_of=2026-11-14T00:00:00Z"] {
        let refused = service.answered(path, &key).await;
        assert_eq!((refused.status, &*refused.code()), (404, "not_in_history"), "{path}");
    }
    service.stop().await;
    let program = program.unset("LINESMAN_HISTORY__ENABLED");
    let service = program.start().await;
    let note = program.data().join("archive-begun");
    wait_for("the archive", async || note.exists().then_some(())).await;
    service.stop().await;
    // A share that is not mounted: without and with its empty folder.
    fs::rename(&store, &away).unwrap();
    expect(&program, "if its disk or share is not mounted, mount it").await;
    fs::create_dir(&store).unwrap();
    expect(&program, "if its disk or share is not mounted, mount it").await;
    // Only the environment of the service names the folder.
    let program = program.unset("LINESMAN_HISTORY__STORE");
    expect(&program, &format!("the archive was begun in {place}/live, but the settings")).await;
    // A folder that cannot be looked into.
    fs::remove_dir(&store).unwrap();
    fs::write(&store, "").unwrap();
    let program = program.set("LINESMAN_HISTORY__STORE", &*place);
    expect(&program, "the archive cannot be read: cannot use").await;
    fs::remove_file(&store).unwrap();
    fs::rename(&away, &store).unwrap();
    program.ok(&["history", "status"]).await;
}

/// An export reports an error rather than omitting rows that only the log has. `to`: the end of the archive.
async fn refused_without_the_tail(
    program: TestProgram,
    service: Service,
    token: &str,
    to: &str,
) -> TestProgram {
    // This service would archive the publication within a second; the next one only a minute after its start.
    service.kill().await;
    let program = program.set("LINESMAN_HISTORY__PART_INTERVAL", "24h");
    let key = program.live_key().await;
    let service = program.start().await;
    service.push_all(token, &[bout("later", "Later Home", "Later Away")]).await;
    wait_for("its publication", async || {
        let shown = service.pages("/v1/sports/mma/events?limit=500", &key).await;
        shown.iter().any(|event| event["home_team"] == "Later Home").then_some(())
    })
    .await;
    service.stop().await;
    let (early, late) = (["--from", "2020-01-01T00:00:00Z"], ["--to", "2100-01-01T00:00:00Z"]);
    let export = ["export", "--table", "events"];
    let told = program.run(&[&export[..], &early, &late].concat()).await;
    assert!(
        told.sentence(1).contains("the archive does not have all rows before --to"),
        "{told:?}"
    );
    let until = ["--to", to];
    program.ok(&[&export[..], &early, &until].concat()).await;
    program
}

#[tokio::test]
async fn macros_for_duckdb_name_the_archive_that_they_are_for() {
    let program = TestProgram::new();
    program.init().await;
    let own = program.ok(&["history", "sql"]).await;
    let place = program.data().join("archive/live");
    assert!(own.contains(&format!("'{}'", place.display())), "{own}");
    for name in ["odds_at", "scores_at", "events_at"] {
        assert!(own.contains(&format!("MACRO {name}(t)")), "{own}");
    }
    assert!(
        own.contains("'boxing'") && !own.contains("{bouts}") && !own.contains("{root}"),
        "{own}"
    );
    // A name with a quote is still one SQL text.
    let other = program.ok(&["history", "sql", "--root", "s3://odds/o'neill/live/"]).await;
    assert!(other.contains("'s3://odds/o''neill/live' || '/files.json'"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_does_not_start_on_a_bucket_that_does_not_decide_between_two_writers() {
    let server = S3::start().await.unwrap();
    let program = in_bucket(&server);
    // One server rejects the header as unknown, the other ignores it.
    server.refuse_conditions(400);
    let refused = async || {
        let told = program.run(&["serve", "--listen", "127.0.0.1:0"]).await;
        assert_eq!(told.code, Some(1), "{}", told.stderr);
        let last = told.stderr.lines().last().unwrap_or_default();
        assert!(last.contains("`history.store` cannot be used; name another place"), "{last}");
        assert!(
            last.contains("the bucket `s3://odds/shared/live` cannot hold an archive"),
            "{last}"
        );
    };
    refused().await;
    server.refuse_conditions(0);
    server.ignore_conditions();
    refused().await;
}

/// A program whose archive is in a bucket.
fn in_bucket(server: &S3) -> TestProgram {
    TestProgram::new()
        .set("LINESMAN_HISTORY__STORE", format!("s3://{}/shared", S3::BUCKET))
        .set("LINESMAN_HISTORY__S3_ENDPOINT", format!("http://127.0.0.1:{}", server.port()))
        .set("LINESMAN_HISTORY__S3_ALLOW_HTTP", "true")
        .set("LINESMAN_HISTORY__S3_REGION", "us-east-1")
        .set("LINESMAN_HISTORY__S3_ACCESS_KEY_ID", S3::ACCESS_KEY_ID)
        .set("LINESMAN_HISTORY__S3_SECRET_ACCESS_KEY", S3::SECRET_ACCESS_KEY)
}

const SUMO: &str = r#"
[[sport]]
key = "sumo"
title = "Sumo"
group = "combat"
"#;

#[tokio::test]
async fn rows_of_a_sport_that_is_gone_from_the_catalogue_are_exported() {
    let program = TestProgram::new();
    program.init().await;
    let export = ["export", "--table", "odds", "--sport", "sumo", "--from", "2020-01-01T00:00:00Z"];
    let export = [&export[..], &["--to", "2020-01-02T00:00:00Z"]].concat();
    let told = program.run(&export).await;
    assert!(told.sentence(1).contains("there is no sport `sumo`"), "{}", told.stderr);
    let archive = Archive::create(&program.data().join("archive/live")).unwrap();
    archive.keep_catalogue(&Catalogue::load(Some(SUMO)).unwrap()).unwrap();
    let table = program.ok(&export).await;
    assert!(table.starts_with("seq,at,ts,published_at,") && table.lines().count() == 1, "{table}");
}

/// Rows of the running service, in a file and in a pipe.
async fn export(program: &TestProgram) {
    let times = ["--from", "2020-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
    let export = [&["export", "--table", "events"], &times[..]].concat();
    let table = program.ok(&[&export[..], &["--sport", "mma"]].concat()).await;
    assert!(table.starts_with("seq,at,published_at,"), "{table}");
    assert!(table.contains("Last Home"), "what was published is there");
    let folder = program.path().join("exports");
    fs::create_dir(&folder).unwrap();
    // Others export to the same folder at the same time.
    let other = ["events.part", "events.ndjson.part"].map(|name| folder.join(name));
    other.iter().for_each(|path| fs::write(path, "another export's").unwrap());
    let out = folder.join("events.ndjson");
    let to_file = [&export[..], &["--out", out.to_str().unwrap()]].concat();
    let (one, two) = tokio::join!(program.ok(&to_file), program.ok(&to_file));
    assert!([one, two].iter().all(|done| done.contains("rows of events to")));
    let text = fs::read_to_string(out).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["sport"], "mma");
    for path in other {
        assert_eq!(fs::read_to_string(path).unwrap(), "another export's");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "no temporary file is left");
    let told = program.run(&[&export[..], &["--sport", "chess"]].concat()).await;
    assert!(told.sentence(1).contains("there is no sport `chess`"), "{}", told.stderr);
    let nowhere = TestProgram::new();
    let told = nowhere.run(&export).await;
    assert!(told.sentence(1).contains("there is no data folder at"), "{}", told.stderr);
}

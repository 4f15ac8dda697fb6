//! Publications made with an earlier catalogue are answered as they were (H4, H25).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use archive::Archive;
use domain::Catalogue;
use engine::Compact;
use serde_json::{Value, json};

use super::export::export_key;
use super::history::{PATHS, Seen, live};
use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA};

/// A sport and a bookmaker before all others, so that every internal number changes.
const MORE: &str = r#"
[[sport]]
key = "aikido"
title = "Aikido"
group = "combat"

[[bookmaker]]
key = "aaabet"
title = "Aaabet"
regions = ["us"]
"#;

const PATHS_OF_MORE: [&str; 4] = [
    "/v1/sports/aikido/odds",
    "/v1/sports/aikido/events",
    "/v1/sports/mma/odds?bookmaker=aaabet",
    "/v1/sports/mma/coverage",
];

pub(super) fn wider() -> Catalogue {
    let usual = Catalogue::load(None).unwrap();
    Catalogue::from_source(&format!("{MORE}\u{1e}{}", usual.source())).unwrap()
}

async fn seen(app: &TestApp, key: &str, paths: &[&str]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for path in paths {
        seen.push(Seen::new(path, &app.get(path, key).await));
    }
    seen.extend(Seen::events(app, key, "mma").await);
    seen
}

async fn check(app: &TestApp, key: &str, seen: &[Seen]) {
    for one in seen {
        one.check(app, key, std::slice::from_ref(&one.published_at)).await;
    }
}

#[tokio::test]
async fn what_an_earlier_catalogue_published_is_answered_with_its_bytes_and_tags() {
    let app = TestApp::builder().archived().catalogue(wider()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(
        &feed,
        &[
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
            line::moneyline("a", "aaabet", (ANN, 150), (BEA, -170)),
            line::event("b", "aikido", ANN, BEA),
            line::moneyline("b", "draftkings", (ANN, 120), (BEA, -140)),
        ],
    )
    .await;
    app.publish().await;
    let more: Vec<&str> = PATHS.iter().chain(&PATHS_OF_MORE).copied().collect();
    let first = seen(&app, &key, &more).await;

    // The archive stores a catalogue before any publication made with it.
    let begun = Instant::now();
    let archive = app.service.api.world(domain::World::Live).history.archive().unwrap();
    let archive = Archive::of(&archive);
    while !archive.is_begun() || archive.newest().unwrap().catalogues.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no catalogue is kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);

    // From the log.
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    check(&app, &key, &first).await;
    for path in [PATHS_OF_MORE[0], PATHS_OF_MORE[2]] {
        let present = app.get(path, &key).await;
        assert!([400, 404].contains(&present.status), "{path}: {}", present.text());
        let mark = if path.contains('?') { '&' } else { '?' };
        let present = app.get(&format!("{path}{mark}as_of=2020-01-01T00:00:00Z"), &key).await;
        assert!([400, 404].contains(&present.status), "{path}: {}", present.text());
    }
    app.push_all(&feed, &[line::moneyline("a", "draftkings", (ANN, 145), (BEA, -165))]).await;
    app.publish().await;
    let second = seen(&app, &key, &PATHS).await;

    // From the archive, which one process wrote for both, before and after files are merged.
    for compact in [Compact::Due, Compact::All] {
        assert!(live(&app).history.flush(compact).await.unwrap());
        check(&app, &key, &first).await;
        check(&app, &key, &second).await;
    }
    let commit = archive.newest().unwrap();
    assert_eq!(commit.catalogues.len(), 2);
    let faults = archive.verify(&commit).faults;
    assert!(faults.is_empty(), "{faults:?}");

    // From the archive alone, with any catalogue.
    let (mut now, mut dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    for catalogue in [wider(), Catalogue::load(None).unwrap()] {
        let again = TestApp::builder().archived().catalogue(catalogue).starting_at(now);
        let app = again.on(dir).start().await;
        check(&app, &key, &first).await;
        check(&app, &key, &second).await;
        (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    }
}

/// H6: what was there is not denied while nobody can say what it was called.
#[tokio::test]
async fn names_of_an_earlier_catalogue_are_unavailable_while_they_cannot_be_read() {
    let app = TestApp::builder().archived().catalogue(wider()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let lines = [
        line::event("b", "aikido", ANN, BEA),
        line::moneyline("b", "draftkings", (ANN, 120), (BEA, -140)),
    ];
    app.push_all(&feed, &lines).await;
    app.publish().await;
    let at = app.now();
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let [folder, elsewhere] = ["archive", "elsewhere"].map(|name| dir.path().join(name));
    let paths = [
        format!("/v1/sports/aikido/odds?as_of={at}"),
        format!("/v1/sports/mma/odds?bookmaker=aaabet&as_of={at}"),
        "/v1/sports/aikido/odds/closing".to_owned(),
        format!("/v4/historical/sports/aikido/odds?regions=us&date={at}"),
    ];
    fs::rename(&folder, &elsewhere).unwrap();
    fs::write(&folder, "no folder").unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    app.publish().await;
    for path in &paths {
        let answer = app.get(path, &key).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
    }
    // Nor can what was published with that catalogue be shown under names of the present.
    assert_eq!(app.get(&format!("/v1/sports/mma/odds?as_of={at}"), &key).await.status, 503);
    assert_eq!(app.get("/v1/sports/mma/odds", &key).await.status, 200);
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_file(&folder).unwrap();
    fs::rename(&elsewhere, &folder).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    for path in &paths {
        let answer = app.get(path, &key).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

fn checkpoints(app: &TestApp) -> BTreeSet<OsString> {
    let held = fs::read_dir(app.dir().join("live")).unwrap();
    let names = held.map(|file| file.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".ckp")).collect()
}

/// Continues until the log has dropped the checkpoint that its process started from.
async fn replace_checkpoints(app: &TestApp) {
    let (then, begun) = (checkpoints(app), Instant::now());
    while checkpoints(app).len() < 2 || checkpoints(app).iter().any(|held| then.contains(held)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoints are written");
        app.publish_after(Duration::from_secs(3601)).await;
    }
}

/// The state that a process derives from its log at its start depends on the last checkpoint: a bookmaker that was
/// missing from the catalogue for a while returns with its earlier prices, unless a checkpoint was written without
/// them.
#[tokio::test]
async fn what_a_catalogue_drops_and_has_again_is_answered_as_it_was() {
    let more: Vec<&str> = PATHS.iter().chain(&PATHS_OF_MORE).copied().collect();
    for (checkpoint, in_parts) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut app = TestApp::builder().archived().catalogue(wider()).start().await;
        let (feed, key) = (app.any_feed().await, app.live_key().await);
        let lines = [
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
            line::moneyline("a", "aaabet", (ANN, 150), (BEA, -170)),
            line::event("b", "aikido", ANN, BEA),
            line::moneyline("b", "draftkings", (ANN, 120), (BEA, -140)),
        ];
        app.push_all(&feed, &lines).await;
        app.publish().await;
        let mut all = seen(&app, &key, &more).await;
        for (catalogue, paths) in
            [(Catalogue::load(None).unwrap(), &PATHS[..]), (wider(), &more[..])]
        {
            if in_parts {
                live(&app).history.flush(Compact::Due).await.unwrap();
            }
            let (now, dir) = (app.now().plus(Duration::from_secs(60)), app.stop().await);
            let next = TestApp::builder().archived().catalogue(catalogue).starting_at(now);
            app = next.on(dir).start().await;
            if checkpoint && paths.len() == PATHS.len() {
                app.publish_after(Duration::from_secs(3601)).await;
            }
            app.publish().await;
            all.extend(seen(&app, &key, paths).await);
        }
        let present = app.get("/v1/sports/mma/odds?bookmaker=aaabet", &key).await.json();
        assert_eq!(present.as_array().unwrap().len(), usize::from(!checkpoint), "{present}");
        app.push_all(&feed, &[line::moneyline("a", "fanduel", (ANN, 145), (BEA, -165))]).await;
        app.publish().await;
        all.extend(seen(&app, &key, &more).await);
        if !in_parts {
            assert!(live(&app).history.flush(Compact::Due).await.unwrap());
            replace_checkpoints(&app).await;
            let (now, dir) = (app.now().plus(Duration::from_secs(60)), app.stop().await);
            let again = TestApp::builder().archived().catalogue(wider()).starting_at(now);
            app = again.on(dir).start().await;
            check(&app, &key, &all[all.len() - more.len()..]).await;
        }
        check(&app, &key, &all).await;
        // From the first directly to the last, whose book could be derived from that of the first.
        check(&app, &key, &all[..1]).await;
        check(&app, &key, &all[all.len() - more.len()..]).await;
        for compact in [Compact::Due, Compact::All] {
            assert!(live(&app).history.flush(compact).await.unwrap());
            check(&app, &key, &all).await;
        }
        let event = app.get("/v1/sports/mma/events", &key).await.json();
        let event = event[0]["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sports/mma/events/{event}/odds/history?bookmaker=aaabet");
        let points = app.get(&path, &key).await.json()[0]["points"].clone();
        let reasons: Vec<Option<&str>> =
            points.as_array().unwrap().iter().map(|point| point["reason"].as_str()).collect();
        let expected = [None, Some("removed"), None];
        assert_eq!(reasons, expected[..if checkpoint { 2 } else { 3 }], "{points}");
        // From the archive alone.
        let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
        fs::remove_dir_all(dir.path().join("live")).unwrap();
        let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
        check(&app, &key, &all).await;
        check(&app, &key, &all[..1]).await;
        check(&app, &key, &all[all.len() - more.len()..]).await;
    }
}

/// The prior interface also resolves names with the catalogue of that time.
#[tokio::test]
async fn the_prior_interface_answers_with_an_earlier_catalogue_too() {
    const SPORT: &str = "sports/mma_mixed_martial_arts/odds?regions=us";
    let app = TestApp::builder().archived().catalogue(wider()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        line::moneyline("a", "aaabet", (ANN, 150), (BEA, -170)),
    ];
    app.push_all(&feed, &lines).await;
    app.publish().await;
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let present = app.get(&format!("/v4/{SPORT}"), &key).await;
    assert!(present.text().contains("aaabet"), "{}", present.text());
    let then = crate::harness::at(present.header("x-published-at").unwrap());
    let targets =
        ["", "&bookmakers=aaabet"].map(|more| format!("/v4/historical/{SPORT}{more}&date={then}"));
    let mut seen = Vec::new();
    for target in &targets {
        seen.push(app.get(target, &key).await.json()["data"].clone());
    }
    assert_eq!(seen[0], present.json());
    let (mut now, mut dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    for log in ["kept", "gone"] {
        if log == "gone" {
            fs::remove_dir_all(dir.path().join("live")).unwrap();
        }
        let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
        app.publish().await;
        for (target, seen) in targets.iter().zip(&seen) {
            let answer = app.get(target, &key).await;
            assert_eq!(answer.status, 200, "{target}: {}", answer.text());
            assert_eq!(answer.json()["data"], *seen, "{target}");
        }
        let present = app.get(&format!("/v4/{SPORT}"), &key).await;
        assert!(!present.text().contains("aaabet"), "{}", present.text());
        (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    }
}

/// H4: the scope of a key is the current one. The group that a sport had then applies only if the sport is gone.
#[tokio::test]
async fn the_present_group_of_a_sport_decides_who_reads_its_past() {
    let regrouped = wider().source().replacen("group = \"combat\"", "group = \"cage\"", 2);
    let regrouped = Catalogue::from_source(&regrouped).unwrap();
    let app = TestApp::builder().archived().catalogue(regrouped).start().await;
    let feed = app.any_feed().await;
    let [cage, combat] =
        [app.key_for_groups(&["cage"]).await, app.key_for_groups(&["combat"]).await];
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        line::event("b", "aikido", ANN, BEA),
        line::moneyline("b", "fanduel", (ANN, 120), (BEA, -140)),
    ];
    app.push_all(&feed, &lines).await;
    app.publish().await;
    let at = app.now();
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    app.publish().await;
    for (sport, key, status) in [
        ("aikido", &cage, 200),
        ("aikido", &combat, 403),
        ("mma", &cage, 403),
        ("mma", &combat, 200),
    ] {
        for path in [
            format!("/v1/sports/{sport}/odds?as_of={at}"),
            format!("/v4/historical/sports/{sport}/odds?regions=us&date={at}"),
        ] {
            let answer = app.get(&path, key).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
        }
    }
}

/// H10, H13 and H14 name past records, with names that the catalogue may no longer have.
#[tokio::test]
async fn prices_under_names_that_are_gone_are_still_looked_up() {
    let app = TestApp::builder().archived().catalogue(wider()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let (others, files) = (app.key_for_groups(&["motor"]).await, export_key(&app).await);
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        line::moneyline("a", "aaabet", (ANN, 150), (BEA, -170)),
        line::event("b", "aikido", ANN, BEA),
        line::moneyline("b", "draftkings", (ANN, 120), (BEA, -140)),
    ];
    app.push_all(&feed, &lines).await;
    app.publish().await;
    app.push_all(&feed, &[line::score("a", "live", 1, 0), line::score("b", "live", 1, 0)]).await;
    app.publish().await;
    let id = |event: &Value| event[0]["id"].as_str().unwrap().to_owned();
    let mma = id(&app.get("/v1/sports/mma/events", &key).await.json());
    let aikido = id(&app.get("/v1/sports/aikido/events", &key).await.json());
    let targets = [
        "/v1/sports/aikido/odds/closing".to_owned(),
        "/v1/sports/mma/odds/closing".to_owned(),
        "/v1/sports/mma/odds/closing?bookmaker=aaabet".to_owned(),
        format!("/v1/sports/aikido/events/{aikido}/odds/history"),
        format!("/v1/sports/mma/events/{mma}/odds/history?bookmaker=aaabet"),
        format!("/v1/sports/mma/events/{mma}/odds/history?limit=1"),
    ];
    let look = async |app: &TestApp| {
        let mut seen = Vec::new();
        for target in &targets {
            let answer = app.get(target, &key).await;
            assert_eq!(answer.status, 200, "{target}: {}", answer.text());
            seen.push(answer.json());
        }
        seen
    };
    let mut first = look(&app).await;
    assert_eq!(first[1].as_array().unwrap().len(), 2);
    assert_eq!((&first[2][0], &first[4][0]["bookmaker"]), (&first[1][0], &json!("aaabet")));
    app.publish_after(Duration::from_secs(24 * 3600)).await;
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let day = &first[0][0]["close"]["start"].as_str().unwrap()[.."2026-11-14".len()];
    let file = format!("/v1/sports/aikido/export/odds/{day}");
    let tag = app.get(&file, &files).await.header("etag").unwrap().to_owned();
    // Prices of the bookmaker and the sport end with the catalogue.
    for path in [3, 4] {
        first[path][0].as_object_mut().unwrap().remove("points");
    }
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);

    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    app.publish().await;
    for flushed in [false, true] {
        if flushed {
            assert!(live(&app).history.flush(Compact::All).await.unwrap());
            app.publish().await;
        }
        let mut then = look(&app).await;
        for path in [3, 4] {
            let points = then[path][0].as_object_mut().unwrap().remove("points").unwrap();
            let last = points.as_array().unwrap().last().map(|point| &point["reason"]);
            // Publications made with another catalogue are in a separate part.
            assert!(!flushed || last == Some(&json!("removed")), "{points}");
        }
        assert_eq!(then, first);
        assert_eq!(app.get(&file, &files).await.header("etag"), Some(&*tag));
        // Requests outside the key's scope, or for names that never existed, are refused as always.
        for target in targets.iter().chain([&file]) {
            let answer = app.get(target, &others).await;
            assert_eq!(answer.status, 403, "{target}: {}", answer.text());
        }
        assert_eq!(app.get("/v1/sports/kendo/odds/closing", &key).await.status, 404);
        let unknown = "/v1/sports/mma/odds/closing?bookmaker=zedbet";
        assert_eq!(app.get(unknown, &key).await.status, 400);
        // The present has none.
        assert_eq!(app.get("/v1/sports/aikido/odds", &key).await.status, 404);
    }
}

#[tokio::test]
async fn a_catalogue_that_is_not_kept_is_said_to_be_missing() {
    let app = TestApp::builder().catalogue(wider()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    app.publish().await;
    let first = Seen::new(PATHS[2], &app.get(PATHS[2], &key).await);
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    let refused = app.get(&first.target(&first.published_at), &key).await;
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    assert!(refused.message().contains("another catalogue"), "{}", refused.message());
}

//! `/v1/sports/{sport_key}/events/{event_id}/odds/history`: price histories (H10 to H12).

mod closing;
mod standing;

use std::fs;
use std::time::Duration;

use domain::{EventId, World};
use engine::Compact;
use market::Operation;
use serde_json::{Value, json};

use super::history::live;
use crate::harness::{Answer, TestApp, line};
use crate::test_market::{ANN, BEA};

/// Publications of a fight: priced, moved twice in one epoch, withdrawn at one bookmaker, live, over, gone.
struct FightHistory {
    event: String,
    /// Time of each.
    times: Vec<String>,
}

impl FightHistory {
    async fn publish(&mut self, app: &TestApp, key: &str) {
        app.publish().await;
        let answer = app.get("/v1/sports", key).await;
        self.times.push(answer.header("x-published-at").unwrap().to_owned());
    }

    async fn new(app: &TestApp, feed: &str, key: &str) -> Self {
        let mut history = Self { event: String::new(), times: Vec::new() };
        let listing = [
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
            line::moneyline("a", "draftkings", (ANN, 150), (BEA, -170)),
        ];
        app.push_all(feed, &listing).await;
        history.publish(app, key).await;
        let events = app.get("/v1/sports/mma/events", key).await.json();
        history.event = events[0]["id"].as_str().unwrap().to_owned();
        let moved = [
            line::moneyline("a", "fanduel", (ANN, 100), (BEA, -110)),
            line::moneyline("a", "fanduel", (ANN, 140), (BEA, -160)),
        ];
        app.push_all(feed, &moved).await;
        history.publish(app, key).await;
        let empty = json!({
            "type": "odds", "ref": "a", "bookmaker": "draftkings", "market": "moneyline", "outcomes": [],
        });
        app.push_all(feed, &[empty]).await;
        history.publish(app, key).await;
        app.push_all(feed, &[line::score("a", "live", 1, 0)]).await;
        history.publish(app, key).await;
        app.push_all(feed, &[line::score("a", "final", 1, 0)]).await;
        history.publish(app, key).await;
        app.push_all(feed, &[json!({"type": "remove", "ref": "a"})]).await;
        history.publish(app, key).await;
        history
    }

    fn target(&self, query: &str) -> String {
        format!("/v1/sports/mma/events/{}/odds/history{query}", self.event)
    }

    async fn get(&self, app: &TestApp, key: &str, query: &str) -> Value {
        let answer = app.get(&self.target(query), key).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        answer.json()
    }
}

fn times_of(path: &Value) -> Vec<&str> {
    path["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["published_at"].as_str())
        .collect()
}

fn prices_of(path: &Value) -> Vec<&Value> {
    path["points"].as_array().unwrap().iter().map(|one| &one["outcomes"][0]["price"]).collect()
}

fn check(history: &FightHistory, paths: &Value) {
    let paths = paths.as_array().unwrap();
    let books: Vec<&Value> = paths.iter().map(|path| &path["bookmaker"]).collect();
    assert_eq!(books, ["draftkings", "fanduel"]);
    let [draftkings, fanduel] = &paths[..] else { panic!("{paths:?}") };
    let at = |n: usize| history.times[n].as_str();
    assert_eq!(times_of(fanduel), [at(0), at(1), at(4)]);
    assert_eq!(prices_of(fanduel), [&json!(135), &json!(140), &Value::Null]);
    assert_eq!(fanduel["points"][2]["reason"], "final");
    assert_eq!(fanduel["open"]["published_at"], at(0));
    assert_eq!(fanduel["open"]["exact"], true);
    assert_eq!(fanduel["open"]["outcomes"][0], json!({"name": ANN, "price": 135, "point": null}));
    let close = &fanduel["close"];
    assert_eq!(close["start"], at(3));
    assert_eq!((&close["by"], &close["active"]), (&json!("live"), &json!(true)));
    assert_eq!((&close["published_at"], &close["reason"]), (&json!(at(1)), &Value::Null));
    assert_eq!(close["outcomes"][0]["price"], 140);
    assert_eq!(times_of(draftkings), [at(0), at(2)]);
    let close = &draftkings["close"];
    assert_eq!((&close["active"], &close["reason"]), (&json!(false), &json!("no_prices")));
    assert_eq!((&close["published_at"], &close["start"]), (&json!(at(0)), &json!(at(3))));
    assert_eq!(close["outcomes"][0]["price"], 150);
}

#[tokio::test]
async fn every_change_that_was_published_is_a_point() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let history = FightHistory::new(&app, &feed, &key).await;
    check(&history, &history.get(&app, &key, "").await);

    let all = history.get(&app, &key, "?changes=all&bookmaker=fanduel").await;
    let expected = [json!(135), json!(100), json!(140), Value::Null];
    assert_eq!(prices_of(&all[0]), expected.iter().collect::<Vec<_>>());
    assert_eq!(all[0]["points"][1]["published_at"], Value::Null);
    let decimal =
        history.get(&app, &key, "?odds_format=decimal&market=h2h&bookmaker=fanduel").await;
    assert_eq!(prices_of(&decimal[0])[0], &json!(2.35));
    let (from, to) = (&history.times[1], &history.times[4]);
    let some = history.get(&app, &key, &format!("?from={from}&to={to}")).await;
    assert_eq!((times_of(&some[0]), times_of(&some[1])), (vec![&*history.times[2]], vec![&**from]));
    assert_eq!(some[1]["open"]["published_at"], json!(history.times[0]));
    assert_eq!(history.get(&app, &key, "?regions=au").await, json!([]));
}

#[tokio::test]
async fn prices_of_a_listing_that_is_withdrawn_end_when_that_was_accepted() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
    ];
    app.push_all(&feed, &lines).await;
    app.publish().await;
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let event = events[0]["id"].as_str().unwrap();
    app.advance(Duration::from_secs(7));
    let withdrawn = app.now().to_string();
    app.push_all(&feed, &[json!({"type": "remove", "ref": "a"})]).await;
    app.publish().await;
    for archived in [false, true] {
        if archived {
            assert!(live(&app).history.flush(Compact::Due).await.unwrap());
        }
        let target = format!("/v1/sports/mma/events/{event}/odds/history");
        let point = app.get(&target, &key).await.json()[0]["points"][1].clone();
        assert_eq!(point["reason"], "removed", "{point}");
        let at = point["at"].as_str().unwrap();
        assert_eq!(at.get(..19), withdrawn.get(..19), "archived: {archived}");
    }
}

#[tokio::test]
async fn a_path_is_the_same_from_the_log_and_from_the_archive() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let flush = async |app: &TestApp, which: Compact| {
        assert!(app.service.api.world(World::Live).history.flush(which).await.unwrap());
    };
    flush(&app, Compact::Due).await;
    let history = FightHistory::new(&app, &feed, &key).await;
    let queries = ["", "?changes=all", "?odds_format=fractional"];
    let mut before = Vec::new();
    for query in queries {
        before.push(history.get(&app, &key, query).await);
    }
    check(&history, &before[0]);
    for which in [Compact::Due, Compact::All] {
        flush(&app, which).await;
        app.publish().await;
        for (query, before) in queries.iter().zip(&before) {
            assert_eq!(history.get(&app, &key, query).await, *before);
        }
    }
    // Also without the log.
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    app.publish().await;
    for (query, before) in queries.iter().zip(&before) {
        assert_eq!(history.get(&app, &key, query).await, *before);
    }
}

/// The end of a path is built from the event alone, and from those that it was joined with.
#[tokio::test]
async fn a_path_goes_through_events_that_are_joined_before_and_after_it_is_archived() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let world = app.service.api.world(World::Live);
    let price = |reference: &str, bookmaker: &str, price: i32| {
        line::moneyline(reference, bookmaker, (ANN, price), (BEA, -price - 20))
    };
    let younger = |price: i32| {
        let (carla, rose) = (("Carla Esparza", price), ("Rose Namajunas", -price - 40));
        line::moneyline("b", "draftkings", carla, rose)
    };
    let listings = [
        line::event("a", "mma", ANN, BEA),
        line::event("b", "mma", "Carla Esparza", "Rose Namajunas"),
        price("a", "fanduel", 135),
        younger(200),
    ];
    app.push_all(&feed, &listings).await;
    app.publish().await;
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let id = |home: &str| {
        let event =
            events.as_array().unwrap().iter().find(|event| event["home_team"] == home).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    let ids = [id(ANN), id("Carla Esparza")];
    assert!(world.history.flush(Compact::Due).await.unwrap());
    app.push_all(&feed, &[price("a", "fanduel", 140), younger(210)]).await;
    app.publish().await;
    let paths = async || {
        let mut paths = Vec::new();
        for id in &ids {
            let target = format!("/v1/sports/mma/events/{id}/odds/history");
            let answer = app.get(&target, &key).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            paths.push(answer.json());
        }
        paths
    };
    // Data kept for one event alone is useless once it is joined with another.
    assert_eq!(prices_of(&paths().await[0][0]), [&json!(135), &json!(140)]);
    let [one, other] = ids.each_ref().map(|id| EventId::parse(id).unwrap());
    world.operate(Operation::Merge { one, other }).await.unwrap();
    app.publish().await;
    app.push_all(&feed, &[price("a", "fanduel", 150)]).await;
    app.publish().await;
    let before = paths().await;
    let books: Vec<&Value> =
        before[0].as_array().unwrap().iter().map(|path| &path["bookmaker"]).collect();
    assert_eq!(books, ["draftkings", "fanduel"], "{before:?}");
    assert_eq!(before[1][0]["points"][2]["reason"], "merged", "{before:?}");
    // D21: under another sport there is no such event, although no book has it any more.
    let tennis = app.key_for_groups(&["tennis"]).await;
    for id in &ids {
        let answer = app.get(&format!("/v1/sports/tennis/events/{id}/odds/history"), &tennis).await;
        assert_eq!(answer.refusal(), (404, "event_not_found".to_owned()), "{}", answer.text());
    }
    for which in [Compact::Due, Compact::All] {
        assert!(world.history.flush(which).await.unwrap());
        app.publish().await;
        assert_eq!(paths().await, before);
    }
}

/// All pages of a target; a path that was split between pages is joined again.
async fn all_pages(app: &TestApp, key: &str, target: &str) -> (usize, Vec<Value>) {
    let (mut pages, mut paths): (usize, Vec<Value>) = (0, Vec::new());
    let mut target = target.to_owned();
    loop {
        let answer = app.get(&target, key).await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        pages += 1;
        for path in answer.json().as_array().unwrap() {
            match paths.last_mut().filter(|last| last["id"] == path["id"]) {
                Some(last) => {
                    let more = path["points"].as_array().unwrap();
                    assert!(!more.is_empty());
                    let points = last["points"].as_array_mut().unwrap();
                    points.extend(more.iter().cloned());
                    let mut around = path.clone();
                    around["points"] = last["points"].clone();
                    assert_eq!(*last, around, "the fields around points are repeated");
                }
                None => paths.push(path.clone()),
            }
        }
        match next(&answer) {
            Some(next) => target = next,
            None => return (pages, paths),
        }
    }
}

fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link")?;
    let target = link.strip_prefix('<')?.split('>').next()?;
    link.contains("rel=\"next\"").then(|| target.to_owned())
}

#[tokio::test]
async fn pages_of_points_add_up_to_one_long_page() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let history = FightHistory::new(&app, &feed, &key).await;
    let (pages, whole) = all_pages(&app, &key, &history.target("?changes=all")).await;
    assert_eq!(pages, 1);
    let points: usize = whole.iter().map(|path| path["points"].as_array().unwrap().len()).sum();
    for limit in 1..=points {
        let target = history.target(&format!("?changes=all&limit={limit}"));
        let (pages, paths) = all_pages(&app, &key, &target).await;
        assert_eq!(paths, whole, "{limit}");
        assert_eq!(pages, points.div_ceil(limit), "{limit}");
    }
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let history = FightHistory::new(&app, &feed, &key).await;
    for (query, param) in [
        ("?limit=0", "limit"),
        ("?limit=10001", "limit"),
        ("?limit=x", "limit"),
        ("?changes=some", "changes"),
        ("?from=yesterday", "from"),
        ("?to=", "to"),
        ("?cursor=AAAA", "cursor"),
        ("?bookmaker=nobody", "bookmaker"),
        ("?as_of=2026-11-14T23:38:00Z", "as_of"),
        ("?format=csv", "format"),
    ] {
        let answer = app.get(&history.target(query), &key).await;
        assert_eq!((answer.status, &*answer.code()), (400, "invalid_parameter"), "{query}");
        assert_eq!(answer.json()["error"]["param"], param, "{query}");
    }
    let elsewhere = history.target("").replace("/mma/", "/boxing/");
    let others =
        ["evt_00000000001", "x"].map(|id| format!("/v1/sports/mma/events/{id}/odds/history"));
    for target in others.iter().chain([&elsewhere]) {
        let answer = app.get(target, &key).await;
        assert_eq!((answer.status, &*answer.code()), (404, "event_not_found"), "{target}");
    }
    let off = TestApp::builder().without_history().start().await;
    let key = off.live_key().await;
    for target in &others {
        let answer = off.get(target, &key).await;
        assert_eq!((answer.status, &*answer.code()), (404, "not_in_history"), "{target}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_for_its_publication_and_costs_one_request() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let history = FightHistory::new(&app, &feed, &key).await;
    let used = app.get("/v1/sports", &key).await.requests_used();
    let answer = app.get(&history.target(""), &key).await;
    assert_eq!(answer.requests_used(), used + 1);
    assert_eq!(answer.header("x-published-at"), history.times.last().map(String::as_str));
    let etag = answer.header("etag").unwrap().to_owned();
    let again = app.request(reqwest::Method::GET, &history.target("")).header("X-API-Key", &key);
    let again = again.header("If-None-Match", etag).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 304);
}

/// Compares each price of the sandbox as of some publications with its path.
#[tokio::test]
async fn a_path_of_the_sandbox_is_what_its_publications_show() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    app.publish_both().await;
    let target = "/v1/sports/boxing/events?status=final&limit=3";
    let events = app.get(target, &key).await.json();
    let mut seen = 0;
    for event in events.as_array().unwrap() {
        let id = event["id"].as_str().unwrap();
        let target = format!("/v1/sports/boxing/events/{id}/odds/history?limit=10000");
        let (_, paths) = all_pages(&app, &key, &target).await;
        assert!(!paths.is_empty(), "{event}");
        let points = || paths.iter().flat_map(|path| path["points"].as_array().unwrap());
        assert!(points().count() > 10);
        assert!(paths.iter().any(|path| path["close"]["by"] == "live"), "{paths:?}");
        let changed: Vec<&str> =
            points().filter_map(|point| point["published_at"].as_str()).collect();
        for nth in [changed.len() / 4, changed.len() / 2, changed.len() * 3 / 4] {
            let at = changed[nth];
            let odds = format!("/v1/sports/boxing/odds?event_ids={id}&limit=500&as_of={at}");
            let odds = app.get(&odds, &key).await.json();
            let shown: Vec<(&Value, &Value)> =
                odds.as_array().unwrap().iter().map(|one| (&one["id"], &one["outcomes"])).collect();
            let history: Vec<(&Value, &Value)> = paths
                .iter()
                .filter_map(|path| {
                    let mut points = path["points"].as_array().unwrap().iter();
                    let last = points.rfind(|one| one["published_at"].as_str().unwrap() <= at)?;
                    Some((&path["id"], &last["outcomes"]))
                })
                .filter(|(_, outcomes)| **outcomes != json!([]))
                .collect();
            assert_eq!(shown, history, "{id} as of {at}");
            seen += shown.len();
        }
    }
    assert!(seen > 0);
}

/// The times and reasons of the points of an event's only record.
async fn points_of(app: &TestApp, key: &str, event: &str) -> Vec<(String, Value)> {
    let path = format!("/v1/sports/mma/events/{event}/odds/history");
    let answer = app.get(&path, key).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let paths = answer.json();
    assert_eq!(paths.as_array().unwrap().len(), 1, "{paths}");
    let points = paths[0]["points"].as_array().unwrap().iter();
    points
        .map(|one| (one["published_at"].as_str().unwrap().into(), one["reason"].clone()))
        .collect()
}

/// H10: its listing is past retention, while the event is shown as always.
#[tokio::test]
async fn an_event_that_was_listed_before_retention_has_a_path() {
    let day = Duration::from_secs(24 * 3600);
    let app = TestApp::builder().archived().history_retention(day * 2).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    for price in [135, 140, 145, 150, 155] {
        app.push_all(&feed, &[line::moneyline("a", "fanduel", (ANN, price), (BEA, -190))]).await;
        app.publish_after(day).await;
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    }
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let event = events[0]["id"].as_str().unwrap();
    let target = format!("/v1/sports/mma/events/{event}/odds/history");
    let first = |path: &Value| path["open"]["outcomes"][0]["price"].as_i64().unwrap();
    let answer = app.get(&target, &key).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let paths = answer.json();
    assert!(first(&paths[0]) > 135, "the first prices are past retention: {paths}");
    assert_eq!(paths[0]["open"]["exact"], false);
    let opened = first(&paths[0]);
    // Its first remaining row is of today, and its remaining prices stay.
    app.push_all(&feed, &[line::score("a", "live", 1, 0)]).await;
    app.publish().await;
    for flushed in [false, true] {
        let paths = app.get(&target, &key).await.json();
        assert_eq!(first(&paths[0]), opened, "flushed: {flushed}");
        assert_eq!(paths[0]["close"]["outcomes"][0]["price"], 155);
        let closing = app.get("/v1/sports/mma/odds/closing", &key).await.json();
        assert_eq!(first(&closing[0]), opened);
        assert_eq!(closing[0]["open"]["exact"], false);
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    }
}

async fn published_at(app: &TestApp, key: &str) -> String {
    app.get("/v1/sports", key).await.header("x-published-at").unwrap().to_owned()
}

#[tokio::test]
async fn prices_that_only_a_lost_log_had_end_with_the_first_publication_after_it() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let fight = |name: &str, home: &str, away: &str| {
        [
            line::event(name, "mma", home, away),
            line::moneyline(name, "fanduel", (home, 135), (away, -155)),
        ]
    };
    app.push_all(&feed, &fight("a", ANN, BEA)).await;
    app.publish().await;
    let (first, backup) = (published_at(&app, &key).await, app.copy_of_disk());
    app.push_all(&feed, &fight("b", "Cleo Clark", "Dora Dunn")).await;
    app.publish().await;
    let second = published_at(&app, &key).await;
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let id_of = |name: &str| {
        let event = events.as_array().unwrap().iter().find(|event| event["home_team"] == name);
        event.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (ann, cleo) = (id_of(ANN), id_of("Cleo Clark"));
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);

    // The log is restored from a backup that has one of them, and then it is lost.
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    fs::rename(backup.path().join("live"), dir.path().join("live")).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    let removed = |at: &str| (at.to_owned(), json!("removed"));
    let priced = |at: &str| (at.to_owned(), Value::Null);
    let third = published_at(&app, &key).await;
    // From the log, and then from the archive.
    for compact in [None, Some(Compact::Due), Some(Compact::All)] {
        if let Some(compact) = compact {
            assert!(live(&app).history.flush(compact).await.unwrap());
        }
        assert_eq!(points_of(&app, &key, &ann).await, [priced(&first)]);
        assert_eq!(points_of(&app, &key, &cleo).await, [priced(&second), removed(&third)]);
        app.publish().await;
    }
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    let fourth = published_at(&app, &key).await;
    for compact in [None, Some(Compact::Due), Some(Compact::All)] {
        if let Some(compact) = compact {
            assert!(live(&app).history.flush(compact).await.unwrap());
        }
        assert_eq!(points_of(&app, &key, &ann).await, [priced(&first), removed(&fourth)]);
        assert_eq!(points_of(&app, &key, &cleo).await, [priced(&second), removed(&third)]);
        app.publish().await;
    }
    let archive = live(&app).history.archive().unwrap();
    let archive = archive::Archive::of(&archive);
    let faults = archive.verify(&archive.newest().unwrap()).faults;
    assert!(faults.is_empty(), "{faults:?}");
}

//! `since`: changes, for clients that poll (S9).

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{EventId, World};
use market::Operation;
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp, line, ndjson};
use crate::test_market::{ANN, BEA};

/// The paths that can be followed, with the field that identifies their rows.
const PATHS: [&str; 6] = [
    "/v1/sports/mma/odds",
    "/v1/sports/mma/odds?odds_format=decimal",
    "/v1/sports/mma/odds?bookmaker=fanduel&market=moneyline",
    "/v1/sports/mma/scores",
    "/v1/sports/mma/events",
    "/v1/sports/mma/events?status=scheduled",
];

/// A client's state of a selection.
struct Follower {
    path: &'static str,
    cursor: String,
    rows: BTreeMap<String, Value>,
    /// Whether it skips publications: records that appeared and disappeared in them are then removed, too.
    skips: bool,
}

fn id(path: &str, row: &Value) -> String {
    let field = if path.contains("/scores") { "event_id" } else { "id" };
    row[field].as_str().unwrap().to_owned()
}

fn mark(path: &str) -> char {
    if path.contains('?') { '&' } else { '?' }
}

/// All pages of a selection, without freshness.
async fn whole(app: &TestApp, key: &str, path: &str) -> (String, BTreeMap<String, Value>) {
    let answer = app.get(&format!("{path}{}limit=500", mark(path)), key).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.header("link").unwrap_or_default().contains("next"), "{path}");
    let mut rows = BTreeMap::new();
    for row in answer.json().as_array().unwrap() {
        rows.insert(id(path, row), plain(row));
    }
    (answer.header("x-cursor").unwrap().to_owned(), rows)
}

fn plain(row: &Value) -> Value {
    let mut row = row.clone();
    row.as_object_mut().unwrap().remove("last_update");
    row
}

impl Follower {
    async fn start(app: &TestApp, key: &str, path: &'static str) -> Self {
        let (cursor, rows) = whole(app, key, path).await;
        Self { path, cursor, rows, skips: false }
    }

    async fn ask(&self, app: &TestApp, key: &str) -> Answer {
        app.get(&format!("{}{}since={}", self.path, mark(self.path), self.cursor), key).await
    }

    /// Applies the changes and compares the result with a complete read.
    async fn follow(&mut self, app: &TestApp, key: &str) -> u16 {
        let answer = self.ask(app, key).await;
        if answer.status == 200 {
            let delta = answer.json();
            assert_eq!(Some(delta["cursor"].as_str().unwrap()), answer.header("x-cursor"));
            assert_eq!(
                Some(delta["published_at"].as_str().unwrap()),
                answer.header("x-published-at")
            );
            for row in delta["upserts"].as_array().unwrap() {
                self.rows.insert(id(self.path, row), plain(row));
            }
            for gone in delta["removed"].as_array().unwrap() {
                let known = self.rows.remove(gone["id"].as_str().unwrap());
                assert!(known.is_some() || self.skips, "{gone}");
            }
        } else {
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{}", answer.text());
        }
        self.cursor = answer.header("x-cursor").unwrap().to_owned();
        let (cursor, rows) = whole(app, key, self.path).await;
        assert_eq!(self.rows, rows, "{}", self.path);
        assert_eq!(self.cursor, cursor, "{}", self.path);
        answer.status
    }
}

/// The lines pushed, by publication.
fn happenings() -> Vec<Vec<Value>> {
    vec![
        vec![line::moneyline("a", "fanduel", (ANN, 140), (BEA, -160))],
        // A confirmation only.
        vec![line::moneyline("a", "fanduel", (ANN, 140), (BEA, -160))],
        vec![line::event("b", "mma", "Cara Cole", "Dora Dunn")],
        vec![line::moneyline("b", "draftkings", ("Cara Cole", 120), ("Dora Dunn", -130))],
        vec![line::score("a", "live", 1, 0)],
        vec![
            json!({"type": "odds", "ref": "a", "bookmaker": "fanduel", "market": "moneyline", "outcomes": []}),
        ],
        vec![line::moneyline("a", "fanduel", (ANN, 150), (BEA, -170))],
        vec![json!({"type": "remove", "ref": "b"})],
        vec![line::score("a", "final", 2, 0)],
        vec![],
    ]
}

async fn opened(app: &TestApp, feed: &str) {
    app.push_all(
        feed,
        &[
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        ],
    )
    .await;
    app.publish().await;
}

#[tokio::test]
async fn whoever_takes_in_every_change_has_what_is_there() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    opened(&app, &feed).await;
    let mut followers = Vec::new();
    let mut late = Vec::new();
    for path in PATHS {
        followers.push(Follower::start(&app, &key, path).await);
        late.push(Follower::start(&app, &key, path).await);
    }
    let mut changed = [0; PATHS.len()];
    for lines in happenings() {
        let taken = app.push(&feed, ndjson(&lines)).await;
        assert_eq!(taken["rejected_total"], 0, "{taken}");
        app.publish().await;
        for (follower, changed) in followers.iter_mut().zip(&mut changed) {
            *changed += u32::from(follower.follow(&app, &key).await == 200);
        }
    }
    // A confirmed price is not a change.
    assert_eq!(changed[..3], [6, 6, 4], "{changed:?}");
    // A client that comes late gets everything in one step, even from a new process.
    let disk = app.copy_of_disk();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    for mut follower in late {
        follower.skips = true;
        assert_eq!(follower.follow(&again, &key).await, 200);
    }
}

#[tokio::test]
async fn what_is_gone_is_named_with_its_reason_and_nothing_changed_is_free() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    opened(&app, &feed).await;
    let odds = Follower::start(&app, &key, "/v1/sports/mma/odds").await;
    let scheduled = Follower::start(&app, &key, "/v1/sports/mma/events?status=scheduled").await;
    let used = app.get("/v1/books", &key).await.requests_used();
    let unchanged = odds.ask(&app, &key).await;
    assert_eq!((unchanged.status, unchanged.requests_used()), (204, used));
    assert_eq!(unchanged.header("x-cursor"), Some(&*odds.cursor));
    app.push_all(&feed, &[line::score("a", "live", 1, 0)]).await;
    app.push_all(
        &feed,
        &[json!({"type": "odds", "ref": "a", "bookmaker": "fanduel", "market": "moneyline", "outcomes": []})],
    )
    .await;
    app.publish().await;
    let delta = odds.ask(&app, &key).await;
    assert_eq!((delta.status, delta.requests_used()), (200, used + 1));
    assert_eq!(delta.json()["removed"][0]["reason"], "no_prices");
    let tag = delta.header("etag").unwrap();
    let path = format!("/v1/sports/mma/odds?since={}", odds.cursor);
    assert_eq!(app.get_with(&path, &key, &[("if-none-match", tag)]).await.status, 304);
    assert_eq!(scheduled.ask(&app, &key).await.json()["removed"][0]["reason"], "filter");
    // Another feed lists the event, too: data that only this feed has is removed with its listing.
    let other = app.any_feed().await;
    let lines = [
        line::event("x", "mma", ANN, BEA),
        line::moneyline("x", "betmgm", (ANN, 135), (BEA, -155)),
    ];
    app.push_all(&other, &lines).await;
    app.publish().await;
    let odds = Follower::start(&app, &key, "/v1/sports/mma/odds").await;
    app.push_all(&other, &[json!({"type": "remove", "ref": "x"})]).await;
    app.publish().await;
    assert_eq!(odds.ask(&app, &key).await.json()["removed"][0]["reason"], "removed");
    app.push_all(&feed, &[json!({"type": "remove", "ref": "a"})]).await;
    app.publish().await;
    let gone = scheduled.ask(&app, &key).await.json();
    assert_eq!(gone["removed"][0]["reason"], "removed");
    assert_eq!(gone["removed"][0]["id"], gone["removed"][0]["event_id"]);
}

/// The reasons that an event's end has, for its odds and for itself.
#[tokio::test]
async fn what_is_over_merged_or_expired_is_removed_with_that_reason() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    opened(&app, &feed).await;
    let others = [
        line::event("b", "mma", "Cara Cole", "Dora Dunn"),
        line::moneyline("b", "draftkings", ("Cara Cole", 120), ("Dora Dunn", -130)),
    ];
    app.push_all(&feed, &others).await;
    app.publish().await;
    let reasons = async |follower: &Follower| -> Vec<Value> {
        let delta = follower.ask(&app, &key).await;
        assert_eq!(delta.status, 200, "{}", delta.text());
        delta.json()["removed"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gone| gone["reason"].clone())
            .collect()
    };
    let follow = async |path| Follower::start(&app, &key, path).await;
    let lists = ["/v1/sports/mma/odds", "/v1/sports/mma/scores", "/v1/sports/mma/events"];
    let [odds, scores, events] = lists;
    // The record of an event that is merged into another is that event's record, under the same id or a new one.
    let before = [follow(scores).await, follow(events).await];
    let ids: Vec<EventId> = before[1].rows.keys().map(|id| EventId::parse(id).unwrap()).collect();
    let merge = Operation::Merge { one: ids[0], other: ids[1] };
    app.service.api.world(World::Live).operate(merge).await.unwrap();
    app.publish().await;
    for list in &before {
        assert_eq!(reasons(list).await, ["merged"], "{}", list.path);
    }
    let before = follow(odds).await;
    assert_eq!(before.rows.len(), 2);
    app.push_all(&feed, &[line::score("a", "final", 2, 0)]).await;
    app.publish().await;
    assert_eq!(reasons(&before).await, ["final", "final"]);
    let before = [follow(scores).await, follow(events).await];
    app.publish_after(Duration::from_secs(72 * 3600)).await;
    for list in &before {
        assert_eq!(reasons(list).await, ["expired"], "{}", list.path);
    }
}

#[tokio::test]
async fn a_cursor_of_another_selection_or_log_is_refused() {
    let app = TestApp::builder().sandbox(7).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    opened(&app, &feed).await;
    let cursor = app.get("/v1/sports/mma/odds", &key).await;
    let cursor = cursor.header("x-cursor").unwrap().to_owned();
    let betmgm = line::moneyline("a", "betmgm", (ANN, 140), (BEA, -160));
    app.push_all(&feed, &[betmgm]).await;
    app.publish().await;
    let page = app.get("/v1/sports/mma/odds?limit=1", &key).await.next_page().unwrap();
    let page = page.split("cursor=").nth(1).unwrap().split('&').next().unwrap();
    let ask = |target: String, key: String| {
        let app = &app;
        async move { app.get(&target, &key).await }
    };
    for (wrong, param) in [
        (format!("/v1/sports/mma/odds?since={cursor}&market=moneyline"), "since"),
        (format!("/v1/sports/mma/scores?since={cursor}"), "since"),
        (format!("/v1/sports/mma/odds?since={cursor}&limit=5"), "since"),
        (format!("/v1/sports/mma/odds?since={cursor}&cursor={page}"), "since"),
        (format!("/v1/sports/mma/odds?since={cursor}&group_by=bout"), "since"),
        (format!("/v1/sports/mma/odds?since={cursor}&as_of=2026-11-14T12:00:00Z"), "since"),
        ("/v1/sports/mma/odds?since=nonsense".to_owned(), "since"),
        (format!("/v1/sports/mma/best?since={cursor}"), "since"),
    ] {
        let refused = ask(wrong.clone(), key.clone()).await;
        assert_eq!(refused.refusal(), (400, "invalid_parameter".to_owned()), "{wrong}");
        assert_eq!(refused.param().as_deref(), Some(param), "{wrong}");
    }
    // The same selection of another installation, and of the other world.
    let other = TestApp::start().await;
    let other_feed = other.any_feed().await;
    opened(&other, &other_feed).await;
    let foreign = other.get("/v1/sports/mma/odds", &other.live_key().await).await;
    let foreign = foreign.header("x-cursor").unwrap().to_owned();
    let sandbox = app.sandbox_key().await;
    let simulated = ask("/v1/sports/mma/odds".to_owned(), sandbox).await;
    let simulated = simulated.header("x-cursor").unwrap().to_owned();
    for cursor in [foreign, simulated] {
        let refused = ask(format!("/v1/sports/mma/odds?since={cursor}"), key.clone()).await;
        assert_eq!(refused.refusal(), (410, "cursor_expired".to_owned()));
    }
}

#[tokio::test]
async fn a_default_key_follows_the_sandbox_on_another_node() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    let path = "/v1/sports/mma/events?status=live";
    let mut follower = Follower::start(&app, &key, path).await;
    follower.skips = true;
    app.publish_both().await;
    let later = app.now().plus(10 * app.refresh_interval);
    let other = TestApp::builder().sandbox(7).starting_at(later).start().await;
    let other_key = other.sandbox_key().await;
    follower.follow(&other, &other_key).await;
}

/// Each node publishes the sandbox by its own clock, some a moment later than others.
#[tokio::test]
async fn a_poll_of_a_sandbox_that_publishes_a_moment_later_waits_for_it() {
    let app = TestApp::builder().sandbox(7).start().await;
    let late = TestApp::builder().sandbox(7).starting_at(app.now()).start().await;
    app.publish_both().await;
    let path = "/v1/sports/mma/odds";
    let odds = app.get(path, &app.sandbox_key().await).await;
    let cursor = odds.header("x-cursor").unwrap();
    let key = late.sandbox_key().await;
    let behind = Duration::from_millis(100);
    late.advance(app.now().minus(behind).since(late.now()));
    let target = format!("{path}?since={cursor}");
    let publish = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        late.advance(behind);
    };
    let (answer, ()) = tokio::join!(late.get(&target, &key), publish);
    assert_eq!(
        (answer.status, answer.header("x-cursor")),
        (204, Some(cursor)),
        "{}",
        answer.text()
    );
}

/// A client reads page by page and keeps the cursor of the first page: records of later publications that the present
/// no longer has are removed or sent again.
#[tokio::test]
async fn what_a_later_page_showed_and_the_present_does_not_is_taken_back() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let odds = |bookmaker, price| line::moneyline("a", bookmaker, (ANN, price), (BEA, -155));
    let events =
        [line::event("a", "mma", ANN, BEA), line::event("b", "mma", "Cara Cole", "Dora Dunn")];
    app.push_all(&feed, &events).await;
    app.push_all(&feed, &[odds("fanduel", 135)]).await;
    app.publish().await;
    let path = "/v1/sports/mma/odds";
    let (cursor, first) = whole(&app, &key, path).await;
    let live = "/v1/sports/mma/scores?status=live";
    let (live_cursor, _) = whole(&app, &key, live).await;
    let begun = line::score("b", "live", 1, 0);
    app.push_all(&feed, &[odds("betmgm", 140), odds("fanduel", 150), begun]).await;
    app.publish().await;
    let (_, later) = whole(&app, &key, path).await;
    let passing = later.keys().find(|id| !first.contains_key(*id)).unwrap();
    let (_, scores) = whole(&app, &key, live).await;
    assert_eq!(scores.len(), 1);
    let empty = json!({"type": "odds", "ref": "a", "bookmaker": "betmgm", "market": "moneyline", "outcomes": []});
    let over = line::score("b", "final", 2, 0);
    app.push_all(&feed, &[empty, odds("fanduel", 135), over]).await;
    app.publish().await;
    let (_, now) = whole(&app, &key, path).await;
    assert_eq!(now, first, "nothing is left of it");
    let delta = app.get(&format!("{path}?since={cursor}"), &key).await;
    assert_eq!(delta.status, 200, "{}", delta.text());
    let delta = delta.json();
    assert_eq!(delta["removed"][0]["id"], json!(passing), "{delta}");
    assert_eq!(delta["removed"][0]["reason"], "no_prices");
    // Its price from the later page is not the current one.
    assert_eq!(delta["upserts"].as_array().unwrap().len(), 1, "{delta}");
    assert_eq!(delta["upserts"][0]["outcomes"][0]["price"], 135);
    let delta = app.get(&format!("{live}&since={live_cursor}"), &key).await;
    assert_eq!(delta.status, 200, "{}", delta.text());
    let delta = delta.json();
    assert_eq!(delta["removed"][0]["id"], json!(scores.keys().next().unwrap()), "{delta}");
    assert_eq!(delta["removed"][0]["reason"], "filter");
    // A request with the new cursor gets no changes.
    let next = delta["cursor"].as_str().unwrap();
    app.publish().await;
    app.publish().await;
    let nothing = app.get(&format!("{live}&since={next}"), &key).await;
    assert_eq!(nothing.status, 204, "{}", nothing.text());
}

//! `as_of` and `/v1/history`: every publication stays answerable, byte for byte (H1 to H9).

use std::fs;
use std::time::{Duration, Instant};

use archive::{BucketOptions, Credentials, Location};
use domain::{Timestamp, World};
use engine::{Compact, WorldHandle};
use serde_json::{Value, json};
use test_servers::{Proxy, S3};

use crate::harness::{Answer, TestApp, at, line};
use crate::test_market::{ANN, BEA};

pub(super) const PATHS: [&str; 15] = [
    "/v1/sports",
    "/v1/books",
    "/v1/sports/mma/odds",
    "/v1/sports/mma/odds?limit=1",
    "/v1/sports/mma/odds?group_by=bout",
    "/v1/sports/mma/odds?odds_format=decimal&bookmaker=fanduel",
    "/v1/sports/mma/scores",
    "/v1/sports/mma/events",
    "/v1/sports/mma/best",
    "/v1/sports/mma/fair",
    "/v1/sports/mma/arbitrage?regions=us,eu",
    "/v1/sports/mma/ev?regions=us,eu",
    "/v1/sports/mma/middles",
    "/v1/sports/mma/odds?format=csv",
    "/v1/sports/mma/best?format=csv",
];

/// Maximum time until a store that is back is used again.
const RECOVERY_MAX: Duration = Duration::from_secs(120);
/// Number of events of a sport whose answers are recorded.
const EVENTS_MAX: usize = 2;

/// An answer recorded at its time.
pub(super) struct Seen {
    path: String,
    pub(super) published_at: String,
    etag: String,
    cursor: Option<String>,
    body: String,
}

impl Seen {
    pub(super) fn new(path: &str, answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let header = |name: &str| answer.header(name).map(str::to_owned);
        Self {
            path: path.to_owned(),
            published_at: header("x-published-at").unwrap(),
            etag: header("etag").unwrap(),
            cursor: header("x-cursor"),
            body: answer.text().to_owned(),
        }
    }

    /// The answers of [`PATHS`], and then those of each event.
    pub(super) async fn all(app: &TestApp, key: &str) -> Vec<Self> {
        let mut all = Vec::new();
        for path in PATHS {
            all.push(Self::new(path, &app.get(path, key).await));
        }
        all.extend(Self::events(app, key, "mma").await);
        all
    }

    /// The answers of some events of a sport, which are listed at present.
    pub(super) async fn events(app: &TestApp, key: &str, sport: &str) -> Vec<Self> {
        let listed = format!("/v1/sports/{sport}/events?limit={EVENTS_MAX}");
        let events = app.get(&listed, key).await.json();
        let mut all = Vec::new();
        for event in events.as_array().unwrap() {
            let event = format!("/v1/sports/{sport}/events/{}", event["id"].as_str().unwrap());
            for path in [format!("{event}/explain"), event] {
                all.push(Self::new(&path, &app.get(&path, key).await));
            }
        }
        all
    }

    pub(super) fn target(&self, as_of: &str) -> String {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        format!("{}{mark}as_of={as_of}", self.path)
    }

    /// Checks that the answer as of every instant until the next publication is the same.
    pub(super) async fn check(&self, app: &TestApp, key: &str, instants: &[String]) {
        for as_of in instants {
            let answer = app.get(&self.target(as_of), key).await;
            let again = Self::new(&self.path, &answer);
            assert_eq!(again.body, self.body, "{} as of {as_of}", self.path);
            assert_eq!(again.etag, self.etag, "{} as of {as_of}", self.path);
            assert_eq!(again.cursor, self.cursor, "{} as of {as_of}", self.path);
            assert_eq!(again.published_at, self.published_at, "{} as of {as_of}", self.path);
        }
    }
}

pub(super) fn text(at: Timestamp) -> String {
    String::from_utf8(at.millis_text().to_vec()).unwrap()
}

/// A bookmaker's prices of the number of rounds.
fn rounds(bookmaker: &str, point: f64) -> Value {
    let prices = json!([
        { "name": "Over", "price": 105, "point": point },
        { "name": "Under", "price": -120, "point": point },
    ]);
    line::odds("a", bookmaker, "total_rounds", "american", &prices)
}

/// The answers of three publications of a live market.
pub(super) async fn published(app: &TestApp, feed: &str, key: &str) -> Vec<Vec<Seen>> {
    let mut seen = Vec::new();
    app.push_all(
        feed,
        &[
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
            line::moneyline("a", "draftkings", (ANN, 150), (BEA, -170)),
            // For every kind of analysis; it is of no default region.
            line::moneyline("a", "pinnacle", (ANN, 120), (BEA, 105)),
            rounds("fanduel", 1.5),
            rounds("draftkings", 2.5),
        ],
    )
    .await;
    app.publish().await;
    seen.push(Seen::all(app, key).await);
    app.push_all(
        feed,
        &[
            // Replaced before it was published.
            line::moneyline("a", "fanduel", (ANN, 100), (BEA, -110)),
            line::moneyline("a", "fanduel", (ANN, 140), (BEA, -160)),
            line::score("a", "live", 1, 0),
        ],
    )
    .await;
    app.publish().await;
    seen.push(Seen::all(app, key).await);
    app.push_all(feed, &[json!({"type": "remove", "ref": "a"})]).await;
    app.publish().await;
    seen.push(Seen::all(app, key).await);
    seen
}

#[tokio::test]
async fn every_publication_is_answered_again_with_its_bytes_and_tags() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    let now = text(app.now());
    let disk = app.copy_of_disk();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    // Another process has the same past, and continues from it.
    again.publish().await;
    for app in [&app, &again] {
        for (round, of_round) in seen.iter().enumerate() {
            for one in of_round {
                let begins = at(&one.published_at);
                let ends = begins.plus(app.refresh_interval - Duration::from_millis(1));
                let ends = if round + 1 == seen.len() { now.clone() } else { text(ends) };
                one.check(app, &key, &[one.published_at.clone(), ends]).await;
            }
        }
    }
    let bodies = |at: usize| seen.iter().map(|round| &*round[at].body).collect::<Vec<_>>();
    let odds = bodies(2);
    assert!(odds[0].contains("135") && odds[1].contains("140") && odds[2] == "[]", "{odds:?}");
    // Something is found by every kind of analysis.
    let kinds = ["mma/fair", "mma/arbitrage", "mma/ev?", "mma/middles"];
    for (at, path) in PATHS.iter().enumerate() {
        if kinds.iter().any(|kind| path.contains(kind)) {
            let found = bodies(at);
            assert_ne!(found[0], found[2], "{path}");
        }
    }
    assert_eq!([0, 1, 2].map(|round| seen[round].len() - PATHS.len()), [2, 2, 0], "of the event");
}

#[tokio::test]
async fn an_answer_of_the_past_says_what_is_next_to_it_and_may_be_kept() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    let times: Vec<&str> = seen.iter().map(|round| &*round[2].published_at).collect();
    let used = app.get("/v1/sports/mma/odds", &key).await.requests_used();
    let middle = app.get(&seen[1][2].target(times[1]), &key).await;
    assert_eq!(middle.requests_used(), used + 1, "as much as the present");
    assert_eq!(middle.header("x-previous-publication"), Some(times[0]));
    assert_eq!(middle.header("x-next-publication"), Some(times[2]));
    assert_eq!(middle.header("cache-control"), Some("private, max-age=86400, immutable"));
    let held = [("if-none-match", &*seen[1][2].etag)];
    let unchanged = app.get_with(&seen[1][2].target(times[1]), &key, &held).await;
    assert_eq!((unchanged.status, unchanged.requests_used()), (304, used + 1));
    assert_eq!(unchanged.header("x-published-at"), Some(times[1]));
    let last = app.get(&seen[2][2].target(times[2]), &key).await;
    assert_eq!(last.header("x-previous-publication"), Some(times[1]));
    assert_eq!(last.header("x-next-publication"), None);
    assert!(!last.header("cache-control").unwrap().contains("immutable"));
    let reach = app.get("/v1/history", &key).await.json();
    let from = reach["from"].as_str().unwrap();
    let first = app.get(&seen[0][2].target(from), &key).await;
    assert_eq!(first.header("x-published-at"), Some(from));
    assert_eq!(first.header("x-previous-publication"), None);
    assert_eq!(first.header("x-next-publication"), Some(times[0]));
}

#[tokio::test]
async fn pages_of_the_past_come_from_one_publication() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    let first = &seen[0];
    let all = serde_json::from_str::<Vec<Value>>(&first[2].body).unwrap();
    assert_eq!(all.len(), 4);
    let page = app.get(&first[3].target(&first[3].published_at), &key).await;
    let next = app.get(&page.next_page().unwrap(), &key).await;
    assert_eq!(page.json()[0], all[0]);
    assert_eq!(next.json()[0], all[1]);
    assert_eq!(next.header("x-published-at"), Some(&*first[2].published_at));
}

#[tokio::test]
async fn what_is_not_in_history_is_refused_and_never_guessed() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let first = app.get("/v1/sports", &key).await.header("x-published-at").unwrap().to_owned();
    published(&app, &feed, &key).await;
    let ask = |as_of: String| {
        let target = format!("/v1/sports/mma/odds?as_of={as_of}");
        let (app, key) = (&app, &key);
        async move { app.get(&target, key).await }
    };
    let before = ask(text(at(&first).minus(Duration::from_millis(1)))).await;
    assert_eq!(before.refusal(), (404, "not_in_history".to_owned()));
    assert!(before.message().contains(&first), "{}", before.message());
    let nobody = domain::EventId::from_number(5);
    let event = format!("/v1/sports/mma/events/{nobody}?as_of=2020-01-01T00:00:00Z");
    let event = app.get(&event, &key).await;
    assert_eq!(event.code(), "not_in_history", "before the event is looked for");
    // The same if the text is not an id.
    for (path, as_of, refusal) in [
        ("", "2020-01-01T00:00:00Z", (404, "not_in_history")),
        ("/explain", "2020-01-01T00:00:00Z", (404, "not_in_history")),
        ("", &first, (404, "event_not_found")),
        ("/explain", &first, (404, "event_not_found")),
        ("", "yesterday", (400, "invalid_parameter")),
        ("", "9000-01-01T00:00:00Z", (400, "invalid_parameter")),
    ] {
        let event = app.get(&format!("/v1/sports/mma/events/x{path}?as_of={as_of}"), &key).await;
        assert_eq!(event.refusal(), (refusal.0, refusal.1.to_owned()), "{path} {as_of}");
    }
    // Any year is a valid time, and history does not have it.
    for early in ["1776-07-04T00:00:00Z", "0001-01-01T00:00:00Z", "0000-02-29T00:00:00.5%2B01:00"] {
        let refused = ask(early.to_owned()).await;
        assert_eq!(refused.refusal(), (404, "not_in_history".to_owned()), "{early}");
    }
    for wrong in ["yesterday", "2026-11-14", "1900-02-29T00:00:00Z", "1776-02-30T00:00:00Z", ""] {
        let refused = ask(wrong.to_owned()).await;
        assert_eq!(refused.refusal(), (400, "invalid_parameter".to_owned()), "{wrong}");
        assert_eq!(refused.param().as_deref(), Some("as_of"));
    }
    let later = ask(text(app.now().plus(Duration::from_millis(1)))).await;
    assert_eq!(later.refusal(), (400, "invalid_parameter".to_owned()));
    let status = app.get(&format!("/v1/status?as_of={first}"), &key).await;
    assert_eq!(status.refusal(), (400, "invalid_parameter".to_owned()));
}

#[tokio::test]
async fn the_reach_of_history_is_public_to_keys_and_free() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let first = app.get("/v1/sports", &key).await;
    let first = first.header("x-published-at").unwrap().to_owned();
    let seen = published(&app, &feed, &key).await;
    let used = app.get("/v1/sports", &key).await.requests_used();
    let reach = app.get("/v1/history", &key).await;
    assert_eq!((reach.status, reach.requests_used()), (200, used));
    assert_eq!(reach.header("cache-control"), Some("no-store"));
    let last = &seen[2][2].published_at;
    let expected = json!({
        "from": first, "to": last, "publications": 4, "retention_s": 34_560_000,
        "exported_to": null, "gaps": [],
    });
    assert_eq!(reach.json(), expected);
}

#[tokio::test]
async fn the_past_of_the_sandbox_is_the_same_on_every_node_whenever_it_was_started() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        app.publish_both().await;
        seen.extend(Seen::all(&app, &key).await);
        app.publish_after(17 * app.refresh_interval).await;
    }
    let later = app.now().plus(Duration::from_secs(20 * 24 * 3600));
    let other = TestApp::builder().sandbox(7).starting_at(later).start().await;
    let other_key = other.sandbox_key().await;
    for one in &seen {
        let ends = at(&one.published_at).plus(app.refresh_interval - Duration::from_millis(1));
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
        one.check(&other, &other_key, &[one.published_at.clone(), text(ends)]).await;
    }
    let reach = other.get("/v1/history", &other_key).await.json();
    assert_eq!(reach["retention_s"], 30 * 24 * 3600);
    let from = at(reach["from"].as_str().unwrap());
    let oldest = format!("/v1/sports/mma/odds?as_of={}", text(from));
    assert_eq!(other.get(&oldest, &other_key).await.status, 200);
    let before = from.minus(Duration::from_millis(1));
    let before = format!("/v1/sports/mma/odds?as_of={}", text(before));
    assert_eq!(other.get(&before, &other_key).await.code(), "not_in_history");
}

/// H15: from the archive alone, with the log gone, every publication is served as before.
#[tokio::test]
async fn with_the_log_gone_the_archive_answers_with_the_same_bytes_and_tags() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    assert!(app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    for one in seen.iter().flatten() {
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
    }
    // Later publications come after the archived ones, even once they are archived themselves.
    app.publish().await;
    let times: Vec<&str> = seen.iter().map(|round| &*round[2].published_at).collect();
    for _ in 0..2 {
        let last = app.get(&seen[2][2].target(times[2]), &key).await;
        assert_eq!(last.header("x-previous-publication"), Some(times[1]));
        assert_eq!(last.header("x-next-publication"), Some(&*text(now)));
        let reach = app.get("/v1/history", &key).await.json();
        assert!(at(reach["from"].as_str().unwrap()) < at(times[0]), "{reach}");
        assert_eq!(reach["publications"], 6, "{reach}");
        assert!(app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    }
    // Merging files does not matter either.
    assert!(app.service.api.world(World::Live).history.flush(Compact::All).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    for one in seen.iter().flatten() {
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
    }

    // If the archive cannot be read, that time is unknown; times in the log are answered.
    let dir = app.stop().await;
    fs::rename(dir.path().join("archive"), dir.path().join("elsewhere")).unwrap();
    fs::write(dir.path().join("archive"), "no folder").unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    let answer = app.get(&seen[0][2].target(times[0]), &key).await;
    assert_eq!((answer.status, &*answer.code()), (503, "unavailable"));
    let answer = app.get(&seen[0][2].target(&text(now)), &key).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// H6: a time past retention is recognized without a previous request for the extent of history.
#[tokio::test]
async fn a_time_past_retention_is_refused_whoever_asked_before() {
    let app = TestApp::builder().history_retention(Duration::from_secs(600)).start().await;
    let key = app.live_key().await;
    app.publish().await;
    let first = app.get("/v1/sports", &key).await.header("x-published-at").unwrap().to_owned();
    app.publish().await;
    let target = format!("/v1/sports?as_of={first}");
    assert_eq!(app.get(&target, &key).await.status, 200);
    app.publish_after(Duration::from_secs(900)).await;
    let present = app.get("/v1/sports", &key).await.header("x-published-at").unwrap().to_owned();
    let refused = app.get(&target, &key).await;
    assert_eq!(refused.refusal(), (404, "not_in_history".to_owned()));
    assert!(refused.message().contains(&present), "{}", refused.message());
}

/// H6: a folder that has disappeared is not created anew, and its content is available again when it returns.
#[tokio::test]
async fn an_archive_that_is_not_mounted_is_missed_and_not_begun_anew() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let [folder, elsewhere] = ["archive", "elsewhere"].map(|name| dir.path().join(name));
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    fs::rename(&folder, &elsewhere).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    app.publish().await;
    assert!(!live(&app).history.flush(Compact::Due).await.unwrap());
    assert!(!folder.exists(), "it was begun anew");
    let first = &seen[0][2];
    let answer = app.get(&first.target(&first.published_at), &key).await;
    assert_eq!((answer.status, &*answer.code()), (503, "unavailable"));
    for path in ["odds/closing", "events/evt_LN4aaaaaaaa/odds/history"] {
        let answer = app.get(&format!("/v1/sports/mma/{path}"), &key).await;
        assert_eq!((answer.status, &*answer.code()), (503, "unavailable"), "{path}");
    }

    fs::rename(&elsewhere, &folder).unwrap();
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    for one in seen.iter().flatten() {
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
    }
}

/// H20: while the bucket is unreachable, current data is served, requests that need the archive are refused, and it
/// catches up.
#[tokio::test]
async fn a_bucket_answers_like_a_folder_and_what_it_misses_is_added_when_it_is_back() {
    check_bucket(Proxy::cut).await;
}

/// The same if the bucket does not answer instead of refusing connections.
#[tokio::test]
async fn a_bucket_that_stalls_is_waited_for_and_not_for_long() {
    check_bucket(Proxy::stall).await;
}

async fn check_bucket(break_off: impl Fn(&Proxy)) {
    let server = S3::start().await.unwrap();
    let proxy = Proxy::start(server.port()).await.unwrap();
    let place = bucket(&proxy);
    let app = TestApp::builder().archived_in(place.clone()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    assert!(live(&app).history.flush(Compact::All).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    let app = TestApp::builder().archived_in(place.clone()).starting_at(now).on(dir).start().await;
    for one in seen.iter().flatten() {
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
    }

    break_off(&proxy);
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let app = TestApp::builder().archived_in(place).starting_at(now).on(dir).start().await;
    app.publish().await;
    let current = app.get("/v1/sports/mma/odds", &key).await;
    assert_eq!(current.status, 200, "{}", current.text());
    let first = &seen[0][2];
    let answer = app.get(&first.target(&first.published_at), &key).await;
    assert_eq!((answer.status, &*answer.code()), (503, "unavailable"));
    // The extent of history is not known either; the publication before the current one is in the log.
    let reach = app.get("/v1/history", &key).await;
    assert_eq!((reach.status, &*reach.code()), (503, "unavailable"));
    let present = app.get(&first.target(&text(app.now())), &key).await;
    assert_eq!(present.status, 200, "{}", present.text());
    assert!(present.header("x-previous-publication").is_some());
    assert!(!live(&app).history.flush(Compact::Due).await.unwrap());
    // The log keeps everything that is not archived.
    assert_eq!(live(&app).history.keep_from(), 0);

    proxy.restore();
    let begun = Instant::now();
    while !live(&app).history.flush(Compact::Due).await.unwrap() {
        assert!(begun.elapsed() < RECOVERY_MAX, "it does not go on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(live(&app).history.keep_from() > 0);
    // Requests retry an unavailable store after a moment.
    let begun = Instant::now();
    while app.get(&first.target(&first.published_at), &key).await.status == 503 {
        assert!(begun.elapsed() < RECOVERY_MAX, "it is not read");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for one in seen.iter().flatten() {
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
    }
}

/// H4: another node, whose clock is ahead, may have shown the client a publication that this node has, too.
#[tokio::test]
async fn a_node_whose_clock_is_behind_answers_of_the_publications_that_it_holds() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    app.set_back(Duration::from_millis(200));
    for one in &seen[2] {
        one.check(&app, &key, std::slice::from_ref(&one.published_at)).await;
    }
    let later = at(&seen[2][2].published_at).plus(Duration::from_millis(1));
    let refused = app.get(&seen[2][2].target(&text(later)), &key).await;
    assert_eq!(refused.refusal(), (400, "invalid_parameter".to_owned()));
}

pub(super) fn live(app: &TestApp) -> &WorldHandle {
    app.service.api.world(World::Live)
}

pub(super) fn bucket(proxy: &Proxy) -> Location {
    Location::Bucket(Box::new(BucketOptions {
        bucket: S3::BUCKET.to_owned(),
        prefix: "archive/live".to_owned(),
        endpoint: format!("http://127.0.0.1:{}", proxy.port()),
        region: "us-east-1".to_owned(),
        credentials: Credentials {
            access_key_id: S3::ACCESS_KEY_ID.to_owned(),
            secret_access_key: S3::SECRET_ACCESS_KEY.to_owned(),
            session_token: None,
        },
    }))
}

/// H4: all pages are of one publication, and a time has one answer, regardless of when it is requested.
#[tokio::test]
async fn pages_name_their_publication_and_one_that_is_due_is_waited_for() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let market = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        line::moneyline("a", "draftkings", (ANN, 150), (BEA, -170)),
    ];
    app.push_all(&feed, &market).await;
    app.publish().await;
    let text = |at: Timestamp| String::from_utf8(at.millis_text().to_vec()).unwrap();
    let published = text(app.now());
    app.advance(app.refresh_interval / 2);
    let path = format!("/v1/sports/mma/odds?limit=1&as_of={}", text(app.now()));
    let page = app.get(&path, &key).await;
    let link = page.header("link").unwrap();
    assert!(link.contains(&format!("as_of={published}&cursor=")), "{link}");
    // The next publication is due, and the writer has not checked the clock yet.
    app.advance(app.refresh_interval / 2);
    let due = text(app.now());
    let path = format!("/v1/sports/mma/odds?as_of={due}");
    let (page, ()) = tokio::join!(app.get(&path, &key), app.wake_writer());
    assert_eq!(page.header("x-published-at"), Some(&*due));
}

/// H20: nodes without a shared archive have no history, and report that; positions of clients are found all the same.
#[tokio::test]
async fn without_a_shared_archive_times_of_the_past_cannot_be_asked_for() {
    let app = TestApp::builder().without_history().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let seen = published(&app, &feed, &key).await;
    let answer = app.get(&seen[0][2].target(&seen[0][2].published_at), &key).await;
    assert_eq!((answer.status, &*answer.code()), (404, "not_in_history"));
    let reach = app.get("/v1/history", &key).await;
    assert_eq!((reach.status, &*reach.code()), (404, "not_in_history"));
}

//! The operator's view and decisions: feeds, events and their identities, limits, the audit log.

use std::sync::Arc;
use std::time::Duration;

use accounts::{Cluster, MonotonicClock};
use domain::World;
use serde_json::{Value, json};

use super::browser::{Browser, account, account_id, between, nowhere};
use crate::api::key_authority::Silence;
use crate::harness::{Answer, TestApp, at, line};

const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";

fn ndjson(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

async fn push(app: &TestApp, token: &str, lines: &[Value]) -> Answer {
    let answer = app.post(token, ndjson(lines), None).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// Two feeds with two names for one fighter: only an operator can know.
async fn two_names(app: &TestApp) -> (String, String) {
    let (north, south) = (app.feed("north", None).await, app.feed("south", None).await);
    push(app, &north, &[line::event("n-1", "mma", "Bobby Vance", "Tom Reed")]).await;
    push(app, &south, &[line::event("s-1", "mma", "King Vance", "Tom Reed")]).await;
    app.publish().await;
    let identities = app.service.api.world(World::Live).identities();
    let [pair] = identities.unsure() else { panic!("{:?}", identities.unsure()) };
    (pair.one.to_string(), pair.other.to_string())
}

async fn actions(app: &TestApp) -> Vec<(String, String, String)> {
    let log = app.service.web.people.audit(None, None).await.unwrap();
    log.into_iter()
        .map(|row| (row.action, row.who, format!("{} {}", row.subject, row.detail)))
        .collect()
}

#[tokio::test]
async fn pairs_that_may_be_one_stand_next_to_each_other_and_are_merged() {
    let app = TestApp::start().await;
    let (one, other) = two_names(&app).await;
    let mut op = Browser::operator(&app).await;
    let page = op.get("/console/unsure").await;
    for told in [
        &*one,
        &*other,
        "Bobby Vance",
        "King Vance",
        "north:n-1",
        "south:s-1",
        "may be somebody else",
    ] {
        assert!(page.text().contains(told), "{told} is not told");
    }
    assert!(page.text().contains("class=\"differs\""), "what is not the same is marked");
    assert!(op.get("/console").await.text().contains("possible duplicates"));
    let merge = [("one", &*one), ("other", &*other), ("back", "unsure")];
    let merged = op.confirm("/console/events/merge", &merge, &["King Vance", &other]).await;
    assert_eq!(merged.header("location"), Some("/console/unsure?done=merged"));
    // Shown at once here, and to clients with the next snapshot.
    let after = op.get("/console/unsure?done=merged").await;
    assert!(
        after.text().contains("No possible duplicates")
            && after.text().contains("They are one event")
    );
    let event = op.get(&format!("/console/events/{other}")).await;
    assert_eq!(event.status, 200, "both ids lead there");
    assert!(event.text().contains("Other ids") && event.text().contains("King Vance"));
    app.publish().await;
    let key = app.live_key().await;
    assert_eq!(app.get("/v1/sports/mma/events", &key).await.json().as_array().unwrap().len(), 1);
    let split = [("feed", "south"), ("reference", "s-1")];
    let back = op
        .confirm(&format!("/console/events/{one}/split"), &split, &["south:s-1", "King Vance"])
        .await;
    assert_eq!(back.status, 303, "{}", back.text());
    app.publish().await;
    assert_eq!(app.get("/v1/sports/mma/events", &key).await.json().as_array().unwrap().len(), 2);
    let log = actions(&app).await;
    for (action, detail) in [
        ("events.merged", format!("{one} and {other} are one")),
        ("events.split", format!("{one} south:s-1 is another")),
    ] {
        let entry = (action.to_owned(), "op@example.com".to_owned(), detail);
        assert!(log.contains(&entry), "{entry:?} is not in {log:?}");
    }
}

/// C8: the cells of an event with the feeds and refs behind them, and these feeds' last rejected lines.
#[tokio::test]
async fn an_events_page_shows_its_cells_with_the_feeds_behind_them() {
    let app = TestApp::start().await;
    let (north, south) = (app.feed("north", None).await, app.feed("south", None).await);
    let (bob, tom) = ("Bobby Vance", "Tom Reed");
    push(
        &app,
        &north,
        &[
            line::event("n-1", "mma", bob, tom),
            line::moneyline("n-1", "fanduel", (bob, 140), (tom, -165)),
            line::moneyline("n-1", "pinnacle", (bob, 140), ("Tim Raid", -165)),
        ],
    )
    .await;
    let elsewhere = line::event("s-2", "mma", "Ana Testa", "Bea Probe");
    let odds = line::moneyline("s-2", "bet365", ("Ana Testa", 110), ("Bea Probe", -130));
    push(&app, &south, &[elsewhere, odds, json!({ "type": "rumour" })]).await;
    let nobody = app.feed("west", None).await;
    push(&app, &nobody, &[json!({ "type": "gossip" })]).await;
    app.publish().await;
    let key = app.live_key().await;
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let event = events.as_array().unwrap().iter().find(|own| own["home_team"] == bob).unwrap();
    let id = event["id"].as_str().unwrap();
    let mut op = Browser::operator(&app).await;
    let page = op.get(&format!("/console/events/{id}")).await;
    let text = page.text();
    let row = |title: &str| {
        between(text, &format!("data-label=\"Bookmaker\">{title}</th>"), "</tr>")
            .unwrap_or_default()
    };
    assert!(row("FanDuel").contains("<bdi>north:n-1</bdi>"), "{}", row("FanDuel"));
    assert!(row("FanDuel").contains("priced,"), "{}", row("FanDuel"));
    assert!(row("bet365").contains("<bdi>south</bdi>"), "it does not list the event");
    assert!(row("bet365").contains("not listed"), "{}", row("bet365"));
    for told in ["Rejected messages", "Tim Raid", "rumour", "href=\"/console/feeds/south\""] {
        assert!(text.contains(told), "{told} is not told: {text}");
    }
    assert!(!text.contains("gossip"), "a feed that is not behind the event");
}

#[tokio::test]
async fn two_that_are_two_leave_the_list_and_stay_two() {
    let app = TestApp::start().await;
    let (one, other) = two_names(&app).await;
    let mut op = Browser::operator(&app).await;
    let apart = [("one", &*one), ("other", &*other), ("back", "unsure")];
    let parted = op.post("/console/events/apart", &apart).await;
    assert_eq!(parted.header("location"), Some("/console/unsure?done=parted"));
    assert!(op.get("/console/unsure").await.text().contains("No possible duplicates"));
    assert_eq!(actions(&app).await[0].0, "events.parted");
    // A failed action is reported, and not logged as done.
    let before = actions(&app).await.len();
    for fields in [
        [("one", "evt_1"), ("other", "evt_2")],
        [("one", &*one), ("other", &*one)],
        [("one", "nonsense"), ("other", &*one)],
    ] {
        assert_eq!(op.post("/console/events/merge", &fields).await.status, 400, "{fields:?}");
    }
    let alone = [("feed", "north"), ("reference", "n-1")];
    assert_eq!(op.post(&format!("/console/events/{one}/split"), &alone).await.status, 400);
    assert_eq!(actions(&app).await.len(), before);
    assert_eq!(op.get("/console/events/evt_1").await.status, 404);
    assert_eq!(op.get("/console/events/nonsense").await.status, 404);
}

#[tokio::test]
async fn events_are_found_by_any_feeds_spelling_and_come_in_pages() {
    let app = TestApp::start().await;
    let (north, south) = (app.feed("north", None).await, app.feed("south", None).await);
    let many: Vec<Value> = (0..120)
        .map(|n| {
            line::event(&format!("n-{n}"), "mma", &format!("Adam Ab{n}"), &format!("Zed Yx{n}"))
        })
        .collect();
    push(&app, &north, &many).await;
    push(&app, &north, &[line::event("j-1", "mma", "Jiri Prochazka", "Alex Pereira")]).await;
    push(&app, &south, &[line::event("x/1 &", "mma", "Jiří Procházka", "Pereira, A.")]).await;
    push(&app, &south, &[line::event("t-1", "tennis", "Mia Long", "Zoe Short")]).await;
    app.publish().await;
    let mut op = Browser::operator(&app).await;
    let first = op.get("/console/events").await;
    let all = between(first.text(), "1–50 of ", "<").unwrap().to_owned();
    assert_eq!(all, "122");
    let next = between(first.text(), "href=\"/console/events?page=", "\"").unwrap().to_owned();
    assert_eq!(next, "2");
    let last = op.get("/console/events?page=3").await;
    assert!(last.text().contains("101–122 of 122") && !last.text().contains("rel=\"next\""));
    for (query, found) in [
        ("prochazka", true),
        ("PROCH%C3%81ZKA+pereira", true),
        ("south%3Ax%2F1", true),
        ("nobody", false),
        ("%25", false),
    ] {
        let page = op.get(&format!("/console/events?q={query}")).await;
        assert_eq!(page.text().contains("Jiri Prochazka v Alex Pereira"), found, "{query}");
        assert_eq!(page.text().contains("No such event"), !found, "{query}");
    }
    let tennis = op.get("/console/events?sport=tennis").await;
    assert!(tennis.text().contains("Mia Long") && !tennis.text().contains("Prochazka"));
    // A search with several pages keeps its terms.
    let pages = op.get("/console/events?q=adam+ab&sport=mma").await;
    assert!(
        pages.text().contains("/console/events?q=adam+ab&#38;sport=mma&#38;page=2"),
        "{}",
        pages.text()
    );
    for page in ["0", "99999999999999999999", "-1", "x"] {
        assert_eq!(op.get(&format!("/console/events?page={page}")).await.status, 200, "{page}");
    }
}

#[tokio::test]
async fn a_paused_feed_is_refused_and_counted_and_its_sources_go_stale() {
    let app = TestApp::builder().stale_after(Duration::from_secs(90)).start().await;
    let token = app.feed("north", None).await;
    let key = app.live_key().await;
    let said =
        [line::event("n-1", "mma", "Bobby Vance", "Tom Reed"), line::heartbeat("fanduel", "mma")];
    push(&app, &token, &said).await;
    let mut op = Browser::operator(&app).await;
    let paused = op.post("/console/feeds/north/pause", &[("back", "feed")]).await;
    assert_eq!(paused.header("location"), Some("/console/feeds/north?done=feed-paused"));
    let refused = app.post(&token, ndjson(&said), None).await;
    assert_eq!(refused.refusal(), (409, "feed_paused".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("60"));
    let page = op.get("/console/feeds/north").await;
    assert!(page.text().contains("1 so far") && page.text().contains("Resume"));
    let metrics = app.get_operator("/metrics").await;
    for series in [
        "linesman_feed_paused{feed=\"north\"} 1",
        "linesman_feed_pushes_paused_total{feed=\"north\"} 1",
    ] {
        assert!(metrics.text().contains(series), "{series}");
    }
    assert_eq!(app.get("/v1/status", &key).await.json()["status"], "ok");
    app.advance(Duration::from_secs(91));
    assert_eq!(
        app.get("/v1/status", &key).await.json()["status"],
        "degraded",
        "nothing is glossed over"
    );
    assert_eq!(op.post("/console/feeds/north/resume", &[]).await.status, 303);
    push(&app, &token, &[line::heartbeat("fanduel", "mma")]).await;
    assert_eq!(app.get("/v1/status", &key).await.json()["status"], "ok");
    let log: Vec<String> = actions(&app).await.into_iter().map(|action| action.0).collect();
    assert_eq!(log[..2], ["feed.resumed".to_owned(), "feed.paused".to_owned()]);
    assert_eq!(op.post("/console/feeds/nobody/pause", &[]).await.status, 404);
}

#[tokio::test]
async fn what_other_nodes_have_not_confirmed_is_in_the_audit_log_as_such() {
    let cluster = Cluster {
        register: Arc::new(Silence),
        steady: Arc::new(MonotonicClock::default()),
        lease: Duration::from_millis(100),
    };
    let app = TestApp::builder().one_of(cluster).start().await;
    app.feed("north", None).await;
    let mut op = Browser::operator(&app).await;
    app.list_silent_node().await;
    for verb in ["pause", "revoke"] {
        let told = op.post(&format!("/console/feeds/north/{verb}"), &[("confirmed", "yes")]).await;
        assert!(told.text().contains("1 node did not confirm it"), "{}", told.text());
    }
    let told = op
        .confirm("/console/maintenance", &[("state", "on"), ("minutes", "5")], &["503", "5 min"])
        .await;
    assert!(told.text().contains("1 node did not confirm it"), "{}", told.text());
    let log: Vec<(String, String)> =
        actions(&app).await.into_iter().take(6).map(|action| (action.0, action.2)).collect();
    let open = "stored, not confirmed by every node";
    let expected = [
        ("maintenance.on", format!("service try again in 300 s; {open}")),
        ("maintenance.on", "service try again in 300 s".to_owned()),
        ("feed.revoked", format!("north {open}")),
        ("feed.revoked", "north ".to_owned()),
        ("feed.paused", format!("north {open}")),
        ("feed.paused", "north ".to_owned()),
    ];
    assert_eq!(log, expected.map(|(action, detail)| (action.to_owned(), detail)));
}

#[tokio::test]
async fn a_feeds_latency_rate_and_refusals_are_told_with_samples() {
    let app = TestApp::start().await;
    let token = app.feed("north", None).await;
    let event = line::event("n-1", "mma", "Bobby Vance", "Tom Reed");
    push(&app, &token, &[event]).await;
    assert_eq!(app.now(), at("2026-11-14T12:00:05.250Z"));
    let beat = line::stamped(line::heartbeat("fanduel", "mma"), "2026-11-14T12:00:03.750Z");
    let mut bad = line::moneyline("n-9", "fanduel", ("A", 140), ("B", -165));
    bad["note"] = json!("as it was sent");
    push(&app, &token, &[beat, bad, json!({ "type": "rumour" })]).await;
    let mut op = Browser::operator(&app).await;
    let list = op.get("/console/feeds").await;
    assert!(list.text().contains("1.5 s") || list.text().contains("1.6 s"), "the 95th percentile");
    assert!(list.text().contains("until it is safely on disk"), "what latency means is told");
    let page = op.get("/console/feeds/north").await;
    for told in ["unknown_ref", "unknown_type", "as it was sent", "line 2 of a push", "rumour"] {
        assert!(page.text().contains(told), "{told}");
    }
    let metrics = app.get_operator("/metrics").await;
    for series in [
        "linesman_feed_latency_seconds_bucket{feed=\"north\",le=\"0.005\"} 2",
        "linesman_feed_latency_seconds_bucket{feed=\"north\",le=\"2.500\"} 3",
        "linesman_feed_latency_seconds_count{feed=\"north\"} 3",
        "linesman_feed_latency_seconds_sum{feed=\"north\"} 1.500",
    ] {
        assert!(metrics.text().contains(series), "{series} is not in {}", metrics.text());
    }
    let json = app.get_operator("/feeds").await.json();
    assert_eq!(json["feeds"][0]["samples"][0]["sent"], r#"{"type":"rumour"}"#);
}

#[tokio::test]
async fn the_overview_shows_requests_errors_keys_pushes_and_the_machine() {
    let app = TestApp::start().await;
    let mut op = Browser::operator(&app).await;
    let token = app.feed("north", None).await;
    push(&app, &token, &[line::event("n-1", "mma", "Bobby Vance", "Tom Reed")]).await;
    let (busy, idle) = (app.live_key().await, app.live_key().await);
    op.get("/console").await;
    for _ in 0..30 {
        assert_eq!(app.get("/v1/books", &busy).await.status, 200);
    }
    assert_eq!(app.get("/v1/sports/mma/odds?limit=0", &busy).await.status, 400);
    app.advance(Duration::from_secs(30));
    let page = op.get("/console").await;
    let text = page.text();
    for told in
        ["0.51</b> requests/s in the last minute", "4xx</span> <b class=\"num\">1<", "up 30 s"]
    {
        assert!(text.contains(told), "{told} is not in {text}");
    }
    assert!(text.contains("class=\"is-ok\"") && text.contains("class=\"is-refused\""), "drawn");
    assert!(text.contains(env!("CARGO_PKG_VERSION")) && text.contains("of disk free"));
    assert!(text.contains(&busy[..10]), "the busiest keys");
    assert_eq!(text.matches("sk_live_").count(), 1, "{idle} was not used");
    let pushes = between(text, "Last pushes", "</table>").unwrap();
    assert!(pushes.contains("/console/feeds/north") && pushes.contains("30 s ago"), "{pushes}");
}

#[tokio::test]
async fn an_operator_sees_and_changes_how_many_streams_a_key_may_have() {
    let app = TestApp::start().await;
    let mut op = Browser::operator(&app).await;
    let form = [("kind", "sandbox"), ("name", "demo"), ("streams", "12")];
    let made = op.post("/console/keys", &form).await;
    let key = between(made.text(), "id=\"secret\">", "<").unwrap().to_owned();
    let entry = || app.service.api.accounts.keys.authenticate(key.as_bytes(), app.now()).unwrap();
    assert_eq!(entry().grant.streams, Some(12));
    let path = format!("/console/keys/{}/streams", entry().grant.key_id.as_str());
    let page = op.get("/console/keys").await;
    assert!(page.text().contains(&format!("href=\"{path}\">12<")), "{}", page.text());
    assert!(op.get(&path).await.text().contains("value=\"12\""));
    let changed = op.post(&path, &[("streams", "3")]).await;
    assert_eq!(changed.header("location"), Some("/console/keys?done=key-limited"));
    assert_eq!(entry().grant.streams, Some(3));
    op.post(&path, &[("streams", "")]).await;
    assert_eq!(entry().grant.streams, None);
    for bad in ["0", "-1", "many"] {
        assert_eq!(op.post(&path, &[("streams", bad)]).await.status, 400, "{bad}");
    }
    assert_eq!(op.get("/console/keys/key_none/streams").await.status, 404);
    assert!(actions(&app).await.iter().any(|action| action.0 == "key.limited"));
}

#[tokio::test]
async fn an_operator_makes_a_key_for_somebody_with_limits_of_its_own() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let mut op = Browser::operator(&app).await;
    let id = account_id(&app, "ann@example.com").await;
    let page = op.get(&format!("/console/keys?for={id}")).await;
    assert!(page.text().contains("value=\"ann@example.com\""), "filled in");
    let newest = between(page.text(), "name=\"newest\" value=\"", "\"").unwrap().to_owned();
    let form = [
        ("owner", "Ann@example.com"),
        ("name", "gift"),
        ("kind", "production"),
        ("burst_per_minute", "7"),
        ("requests_per_day", ""),
        ("newest", &newest),
    ];
    let made = op.post("/console/keys", &form).await;
    let key = between(made.text(), "id=\"secret\">", "<").unwrap().to_owned();
    let limits = app.get("/v1/status", &key).await.json()["rate_limit"].clone();
    assert_eq!(limits, json!({ "burst_per_minute": 7, "requests_per_day": 10_000 }));
    assert!(ann.get("/dashboard").await.text().contains("gift"), "it is hers");
    let again = op.post("/console/keys", &form).await;
    assert_eq!(again.header("location"), Some("/console/keys?done=key-made"));
    for bad in
        [("owner", "nobody@example.com"), ("burst_per_minute", "many"), ("burst_per_minute", "0")]
    {
        assert_eq!(op.post("/console/keys", &[bad]).await.status, 400, "{bad:?}");
    }
    let free = op.post("/console/keys", &[("kind", "sandbox"), ("name", "demo")]).await;
    assert!(free.text().contains("sk_test_"));
    assert!(op.get("/console/keys").await.text().contains("nobody in particular"));
    let log = actions(&app).await;
    assert!(
        log.iter().any(|action| action.0 == "key.created" && action.1 == "op@example.com"),
        "{log:?}"
    );
}

#[tokio::test]
async fn an_accounts_limits_hold_at_once_for_the_keys_it_has_and_will_have() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let mut op = Browser::operator(&app).await;
    ann.post("/dashboard/access", &[("purpose", "A comparison page for readers.")]).await;
    let request = app.service.web.people.access_requests(None).await.unwrap()[0].id.clone();
    assert_eq!(op.post(&format!("/console/requests/{request}/approve"), &[]).await.status, 303);
    let secret = |page: &Answer| between(page.text(), "id=\"secret\">", "<").unwrap().to_owned();
    let key = secret(&ann.post("/dashboard/keys", &[("kind", "production")]).await);
    let sandbox = secret(&ann.post("/dashboard/keys", &[("kind", "sandbox")]).await);
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    let id = account_id(&app, "ann@example.com").await;
    let path = format!("/console/accounts/{id}/limits");
    let set = [("keys_max", "3"), ("burst_per_minute", "7"), ("requests_per_day", "4")];
    let done = op.post(&path, &set).await;
    assert_eq!(done.header("location"), Some(&*format!("/console/accounts/{id}?done=limited")));
    let limit = |answer: &Answer| answer.json()["rate_limit"].clone();
    let told = limit(&app.get("/v1/status", &key).await);
    assert_eq!(told, json!({ "burst_per_minute": 7, "requests_per_day": 4 }));
    let untouched = limit(&app.get("/v1/status", &sandbox).await);
    assert_eq!(untouched["requests_per_day"], 10_000, "sandbox keys have what everybody has");
    // One answer was given before; the leased units beyond the new limit are lost.
    let mut answers = 1;
    loop {
        let answer = app.get("/v1/books", &key).await;
        match answer.status {
            200 => answers += 1,
            _ => {
                assert_eq!(answer.refusal(), (429, "quota_exceeded".to_owned()));
                break;
            }
        }
    }
    assert!(answers <= 4, "{answers} answers of 4 a day");
    let third = secret(&ann.post("/dashboard/keys", &[("kind", "production")]).await);
    assert_eq!(limit(&app.get("/v1/status", &third).await)["requests_per_day"], 4);
    let fourth = ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    assert!(fourth.status == 400 && fourth.text().contains("at most 3 active keys"));
    assert_eq!(
        app.get("/v1/books", &third).await.refusal(),
        (429, "quota_exceeded".to_owned()),
        "the day is the account's"
    );
    // After the limit is raised, the key works again.
    app.advance(Duration::from_secs(60));
    assert_eq!(op.post(&path, &[("requests_per_day", "1000")]).await.status, 303);
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    for bad in ["0", "-1", "x", "4294967296"] {
        assert_eq!(op.post(&path, &[("requests_per_day", bad)]).await.status, 400, "{bad}");
    }
    assert_eq!(op.post(&path, &[("keys_max", "1001")]).await.status, 400);
    let log = actions(&app).await;
    let limited = log.iter().filter(|action| action.0 == "account.limited").count();
    assert_eq!(limited, 2, "{log:?}");
    let page = op.get(&format!("/console/accounts/{id}")).await;
    assert!(
        page.text().contains("value=\"1000\"") && page.text().contains("placeholder=\"10000\"")
    );
    assert_eq!(op.get("/console/accounts/acc_nobody").await.status, 404);
}

#[tokio::test]
async fn the_audit_log_is_searched_and_read_to_its_beginning() {
    let app = TestApp::start().await;
    let mut op = Browser::operator(&app).await;
    for n in 0..230 {
        let actor = accounts::Actor::command_line();
        let subject = format!("feed-{n}");
        app.service
            .web
            .people
            .note(&actor, accounts::AuditAction::FeedCreated, &subject, "100%_sure")
            .await
            .unwrap();
    }
    let first = op.get("/console/audit").await;
    let older = between(first.text(), "href=\"/console/audit?before=", "\"").unwrap().to_owned();
    let second = op.get(&format!("/console/audit?before={older}")).await;
    assert!(second.text().contains("account.created") && second.text().contains("Newest"));
    assert!(!second.text().contains("rel=\"next\""));
    let found = op.get("/console/audit?q=feed-117").await;
    assert_eq!(found.text().matches("<code>feed.created</code>").count(), 1);
    let none = op.get("/console/audit?q=feed-117&action=account.created").await;
    assert!(none.text().contains("No entries found"));
    let literal = op.get("/console/audit?q=100%25_sure&action=feed.created").await;
    assert_eq!(literal.text().matches("<code>feed.created</code>").count(), 200);
    assert!(literal.text().contains("q=100%25_sure&#38;action=feed.created&#38;before="));
    assert!(op.get("/console/audit?q=1__%25").await.text().contains("No entries found"));
}

/// Everything that other people can write into the console, with hostile content. Returns the events' ids.
async fn write_evil_everywhere(app: &TestApp) -> Vec<String> {
    let (one, other) = (app.feed("north", None).await, app.feed("south", None).await);
    let named = |reference: &str, home: &str| {
        let mut event = line::event(reference, "mma", home, &format!("Tom {EVIL} Reed"));
        event["competition"] = json!(EVIL);
        event
    };
    let first = named(&format!("n{EVIL}"), "Bobby Vance");
    push(app, &one, &[first]).await;
    let second = named(&format!("s{EVIL}"), "King Vance");
    push(app, &other, &[second, json!({ "type": EVIL }), json!({ "type": "remove", "ref": EVIL })])
        .await;
    let title = line::tournament(&format!("t{EVIL}"), EVIL);
    push(app, &one, &[title]).await;
    app.publish().await;
    app.service.web.people.sign_up(account("ann@example.com", EVIL), &nowhere()).await.unwrap();
    let mut ann = Browser::new(app);
    ann.sign_in("ann@example.com").await;
    ann.post("/dashboard/keys", &[("name", EVIL), ("kind", "sandbox")]).await;
    ann.post("/dashboard/access", &[("purpose", EVIL)]).await;
    let actor = accounts::Actor::command_line();
    app.service
        .web
        .people
        .note(&actor, accounts::AuditAction::KeyCreated, EVIL, EVIL)
        .await
        .unwrap();
    let identities = app.service.api.world(World::Live).identities();
    identities.events().map(|event| event.id.to_string()).collect()
}

#[tokio::test]
async fn what_feeds_and_people_write_is_text_on_every_page_of_the_console() {
    let app = TestApp::start().await;
    let ids = write_evil_everywhere(&app).await;
    let ann_id = account_id(&app, "ann@example.com").await;
    let mut op = Browser::operator(&app).await;
    let evil = super::browser::percent(EVIL);
    assert_eq!(ids.len(), 3);
    let mut paths: Vec<String> = [
        "",
        "/accounts",
        "/requests",
        "/keys",
        "/feeds",
        "/feeds/north",
        "/feeds/south",
        "/events",
        "/unsure",
        "/audit",
    ]
    .map(|path| format!("/console{path}"))
    .into();
    paths.extend(
        ["/accounts", "/keys", "/events", "/audit"].map(|path| format!("/console{path}?q={evil}")),
    );
    paths.push(format!("/console/accounts/{ann_id}"));
    paths.extend(ids.iter().map(|id| format!("/console/events/{id}")));
    paths.push(format!("/console/feeds/{evil}"));
    paths.push(format!("/console/events/{evil}"));
    let mut shown = 0;
    for path in paths {
        let page = op.get(&path).await;
        let text = page.text();
        assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{path}");
        assert!(!text.contains("\"'><img"), "{path} lets a text out of its attribute");
        shown += usize::from(text.contains("&#60;script&#62;alert(1)"));
    }
    assert!(shown >= 12, "only {shown} pages show what was written: this test has lost its sense");
    // And in the answer to a form.
    for path in ["/console/events/merge", "/console/events/apart", "/console/feeds"] {
        let fields = [("one", EVIL), ("other", EVIL), ("name", EVIL), ("bookmaker", "")];
        let page = op.post(path, &fields).await;
        assert!(page.status == 400 && !page.text().contains("<script>alert"), "{path}");
    }
    let split = [("feed", EVIL), ("reference", EVIL)];
    let page = op.post(&format!("/console/events/{}/split", ids[0]), &split).await;
    assert!(page.status == 400 && !page.text().contains("<script>alert"));
}

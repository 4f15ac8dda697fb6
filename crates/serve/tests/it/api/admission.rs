//! Keys: who is admitted, to which world and data (D18 to D21).

use std::time::Duration;

use accounts::{Actor, KeyKind, NewKey};
use serde_json::json;

use crate::harness::{Answer, Raw, TestApp, mistyped, unlimited};
use crate::test_market::TestMarket;

const IN_SPORT: [&str; 3] =
    ["/v1/sports/mma/odds", "/v1/sports/mma/scores", "/v1/sports/mma/events"];

#[tokio::test]
async fn keys_look_as_promised_and_a_mistyped_one_is_refused() {
    let app = TestApp::start().await;
    for (key, prefix) in [(app.live_key().await, "sk_live_"), (app.sandbox_key().await, "sk_test_")]
    {
        let secret = key.strip_prefix(prefix).unwrap();
        assert_eq!(secret.len(), 32);
        assert!(secret.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{secret}");
        assert_eq!(app.get("/v1/status", &key).await.status, 200);
        let other = if prefix == "sk_live_" { "sk_test_" } else { "sk_live_" };
        for wrong in [
            mistyped(&key),
            format!("{key}0"),
            format!("{other}{secret}"),
            key.to_uppercase(),
            secret.to_owned(),
            format!("Bearer {key}"),
        ] {
            assert_eq!(app.get("/v1/status", &wrong).await.status, 401, "{prefix}");
        }
    }
}

#[tokio::test]
async fn two_key_headers_are_no_valid_key_even_if_both_are_right() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let lines = format!("x-api-key: {key}\r\nX-Api-Key: {key}\r\n");
    let twice = format!("GET /v1/status HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
    assert_eq!(app.raw_one(twice).await.refusal(), (401, "authentication_failed".to_owned()));
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_even_on_a_connection_it_opened() {
    let app = TestApp::start().await;
    let (secret, record) = app
        .service
        .api
        .accounts
        .create_key(unlimited(KeyKind::Production), &Actor::command_line())
        .await
        .unwrap();
    let key = secret.expose();
    assert_eq!(app.get("/v1/books", key).await.status, 200);
    app.service.api.accounts.revoke_key(record.id.as_str(), &Actor::command_line()).await.unwrap();
    for path in ["/v1/books", "/v1/status", "/v1/nowhere"] {
        let answer = app.get(path, key).await;
        assert_eq!(answer.refusal(), (401, "authentication_failed".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_rotated_key_goes_on_with_limits_and_use_and_the_old_one_ends_on_time() {
    let app = TestApp::start().await;
    let limits =
        accounts::Limits { burst_per_minute: 100, requests_per_day: 5, requests_per_month: None };
    let new = NewKey { limits, ..NewKey::of_kind(KeyKind::Production) };
    let (old, _) = app.service.api.accounts.create_key(new, &Actor::command_line()).await.unwrap();
    assert_eq!(app.get("/v1/books", old.expose()).await.requests_used(), 1);
    let overlap = Some(Duration::from_secs(3600));
    let fresh = app
        .service
        .api
        .accounts
        .rotate_key(old.expose(), overlap, &Actor::command_line())
        .await
        .unwrap()
        .secret;
    assert_eq!(app.get("/v1/books", fresh.expose()).await.requests_used(), 2);
    assert_eq!(app.get("/v1/books", old.expose()).await.requests_used(), 3);
    app.advance(Duration::from_secs(3600));
    assert_eq!(app.get("/v1/books", old.expose()).await.status, 401);
    assert_eq!(app.get("/v1/books", fresh.expose()).await.requests_remaining(), 1);
    let last = app
        .service
        .api
        .accounts
        .rotate_key(fresh.expose(), None, &Actor::command_line())
        .await
        .unwrap()
        .secret;
    assert_eq!(app.get("/v1/books", fresh.expose()).await.status, 401);
    assert_eq!(app.get("/v1/books", last.expose()).await.status, 200);
    assert_eq!(app.get("/v1/books", last.expose()).await.status, 429);
}

#[tokio::test]
async fn sandbox_and_live_are_two_worlds() {
    let board = TestMarket::start().await;
    let sandbox = board.app.sandbox_key().await;
    let bout = board.bout_id().await;
    for path in IN_SPORT {
        assert_eq!(board.app.get(path, &sandbox).await.json(), json!([]), "{path}");
    }
    let sports = board.app.get("/v1/sports", &sandbox).await.json();
    assert!(sports["sports"].as_array().unwrap().iter().all(|sport| sport["events"] == 0));
    let event = board.app.get(&format!("/v1/sports/mma/events/{bout}"), &sandbox).await;
    assert_eq!(event.refusal(), (404, "event_not_found".to_owned()));
    let live = board.app.get("/v1/status", &board.key).await.json();
    let test = board.app.get("/v1/status", &sandbox).await.json();
    assert_eq!((&live["sports_active"], &test["sports_active"]), (&json!(5), &json!(0)));
}

#[tokio::test]
async fn the_query_form_of_the_key_is_accepted_everywhere_and_discouraged() {
    let board = TestMarket::start().await;
    let key = &board.key;
    let event = format!("/v1/sports/mma/events/{}", board.bout_id().await);
    let plain = ["/v1/sports", "/v1/books", "/v1/status", &event, "/v1/nowhere"];
    for path in plain.into_iter().chain(IN_SPORT) {
        let by_query = board.app.get_without_key(&format!("{path}?api_key={key}")).await;
        let by_header = board.app.get(path, key).await;
        assert_eq!(by_query.status, by_header.status, "{path}");
        if by_query.status == 200 {
            assert_eq!(by_query.body, by_header.body, "{path}");
        }
        assert_eq!(by_query.header("deprecation"), Some("@1793491200"), "{path}");
        assert_eq!(by_query.header("sunset"), Some("Sun, 01 Nov 2027 00:00:00 GMT"));
        assert_eq!(by_header.header("deprecation"), None);
        assert_eq!(by_header.header("sunset"), None);
    }
    let odds = format!("/v1/sports/mma/odds?market=moneyline&api_key={key}&limit=1");
    assert_eq!(board.app.get_without_key(&odds).await.status, 200);
    let twice = format!("/v1/books?api_key={key}&api_key={key}");
    let twice = board.app.get_without_key(&twice).await;
    assert_eq!(twice.refusal(), (400, "invalid_parameter".to_owned()));
    assert_eq!(twice.param().as_deref(), Some("api_key"));
    let encoded: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
    assert_eq!(
        board.app.get_without_key(&format!("/v1/books?api_key={encoded}")).await.status,
        200
    );
    let named = board.app.get_without_key(&format!("/v1/books?api%5Fkey={key}")).await;
    assert_eq!(named.status, 200, "an encoded name is the same name");
}

#[tokio::test]
async fn the_header_wins_over_the_query() {
    let board = TestMarket::start().await;
    let path = format!("/v1/books?api_key={}", board.key);
    let sandbox = board.app.sandbox_key().await;
    let both = board.app.get(&path, &sandbox).await;
    assert_eq!((both.status, both.header("deprecation")), (200, None));
    let odds = format!("/v1/sports/mma/odds?api_key={}", board.key);
    assert_eq!(board.app.get(&odds, &sandbox).await.json(), json!([]));
    assert_eq!(board.app.get(&path, "sk_live_nonsense").await.status, 401);
    assert_eq!(board.app.get("/v1/books?api_key=nonsense", &board.key).await.status, 200);
}

#[tokio::test]
async fn the_operator_can_switch_the_query_form_off() {
    let app = TestApp::builder().without_query_key().start().await;
    let key = app.live_key().await;
    let path = format!("/v1/books?api_key={key}");
    let alone = app.get_without_key(&path).await;
    assert_eq!(alone.refusal(), (401, "authentication_failed".to_owned()));
    assert_eq!(alone.header("deprecation"), None);
    let both = app.get(&path, &key).await;
    assert_eq!(both.refusal(), (400, "invalid_parameter".to_owned()));
    assert_eq!(both.param().as_deref(), Some("api_key"));
    assert!(!both.text().contains(key.as_str()));
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
}

#[tokio::test]
async fn without_odds_read_only_sports_books_and_status_answer() {
    let board = TestMarket::start().await;
    let key = board.app.key(NewKey { odds_read: false, ..unlimited(KeyKind::Production) }).await;
    for path in ["/v1/sports", "/v1/books", "/v1/status"] {
        assert_eq!(board.app.get(path, &key).await.status, 200, "{path}");
    }
    let event = format!("/v1/sports/mma/events/{}", board.bout_id().await);
    for path in IN_SPORT.into_iter().chain([event.as_str()]) {
        let answer = board.app.get(path, &key).await;
        assert_eq!(answer.refusal(), (403, "forbidden".to_owned()), "{path}");
        assert!(answer.message().contains("odds:read"));
    }
}

#[tokio::test]
async fn a_key_for_some_groups_reads_these_sports_and_sees_the_whole_list() {
    let board = TestMarket::start().await;
    let key = board.app.key_for_groups(&["combat", "golf"]).await;
    for (sport, status) in
        [("mma", 200), ("boxing", 200), ("golf", 200), ("tennis", 403), ("american_football", 403)]
    {
        for list in ["odds", "scores", "events"] {
            let answer = board.app.get(&format!("/v1/sports/{sport}/{list}"), &key).await;
            assert_eq!(answer.status, status, "{sport} {list}");
            if status == 403 {
                assert_eq!(answer.code(), "forbidden");
            }
        }
    }
    let restricted = board.app.get("/v1/sports", &key).await;
    assert_eq!(restricted.body, board.app.get("/v1/sports", &board.key).await.body);
}

#[tokio::test]
async fn a_connection_remembers_what_was_asked_and_not_who_may_ask() {
    let board = TestMarket::start().await;
    let narrow = board.app.key_for_groups(&["golf"]).await;
    let sandbox = board.app.sandbox_key().await;
    let mut raw = Raw::connect(board.app.addr).await;
    let mut bodies = Vec::new();
    // One connection, as behind a proxy; the same target with different keys, alternating.
    for (key, status) in
        [(&board.key, 200), (&narrow, 403), (&board.key, 200), (&sandbox, 200), (&narrow, 403)]
    {
        let head = format!("host: a\r\nx-api-key: {key}\r\n\r\n");
        raw.send(format!("GET /v1/sports/mma/odds?limit=2 HTTP/1.1\r\n{head}").as_bytes()).await;
        let answer = raw.read_answer().await.unwrap();
        assert_eq!(answer.status, status);
        bodies.push(answer.body);
    }
    assert_eq!(bodies[0], bodies[2]);
    assert_ne!(bodies[0], bodies[3], "the other world");
    // A refused target is not cached, and a valid one is not mistaken for it.
    for (target, status) in
        [("mma/odds?limit=0", 400), ("mma/odds?limit=2", 200), ("nope/odds", 404)]
    {
        let head = format!("host: a\r\nx-api-key: {}\r\n\r\n", board.key);
        raw.send(format!("GET /v1/sports/{target} HTTP/1.1\r\n{head}").as_bytes()).await;
        assert_eq!(raw.read_answer().await.unwrap().status, status, "{target}");
    }
}

#[tokio::test]
async fn a_request_without_any_key_is_refused_over_every_method() {
    let app = TestApp::start().await;
    for method in ["GET", "HEAD", "POST", "DELETE"] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = Answer::of(app.request(method, "/v1/books")).await;
        assert_eq!(answer.status, 401);
    }
}

//! The order of checks (D3): of two faults, the one that is reported.

use accounts::{Actor, Maintenance};
use reqwest::Method;

use crate::harness::{Answer, TestApp};
use crate::test_market::TestMarket;

const CLOSED: Maintenance = Maintenance::On { retry_after_s: 120 };

async fn close(app: &TestApp) {
    app.service.api.accounts.set_maintenance(CLOSED, &Actor::command_line()).await.unwrap();
}

#[tokio::test]
async fn without_a_valid_key_every_path_under_v1_is_401_so_nothing_can_be_probed() {
    let board = TestMarket::start().await;
    let bout = board.bout_id().await;
    close(&board.app).await;
    let event = format!("/v1/sports/mma/events/{bout}");
    for path in [
        "/v1",
        "/v1/",
        "/v1/nowhere",
        "/v1/sports",
        "/v1/status",
        "/v1/sports/chess/odds",
        "/v1/sports/mma/odds?limit=0&nonsense=1",
        &event,
    ] {
        for key in [None, Some("sk_live_nonsense"), Some("")] {
            let answer = match key {
                None => board.app.get_without_key(path).await,
                Some(key) => board.app.get(path, key).await,
            };
            assert_eq!(answer.refusal(), (401, "authentication_failed".to_owned()), "{path}");
            let expected = match key {
                Some("sk_live_nonsense") => "the API key is mistyped or cut off",
                _ => "a valid API key is needed in the request header X-API-Key",
            };
            assert!(answer.message().starts_with(expected), "{}", answer.message());
            assert!(answer.header("www-authenticate").is_some());
            assert!(answer.header("x-requests-used").is_none());
        }
    }
    let unread = board.app.raw_one("DELETE /v1/sports HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(unread.status, 401);
}

#[tokio::test]
async fn a_refused_key_is_told_which_mistake_it_is_and_never_repeated() {
    let app = TestApp::start().await;
    let (key, feed) = (app.live_key().await, app.feed("one", None).await);
    let unknown = TestApp::start().await.live_key().await;
    let bearer = format!("Bearer {key}");
    let mut mistyped = key.clone();
    let last = if mistyped.pop() == Some('a') { 'b' } else { 'a' };
    mistyped.push(last);
    let with =
        |name: &'static str, value: &str| app.request(Method::GET, "/v1/books").header(name, value);
    let query = |query: &str| app.request(Method::GET, &format!("/v1/books?{query}"));
    for (request, expected) in [
        (with("Authorization", &bearer), "an Authorization header was sent"),
        (with("X-API-Key", &mistyped), "mistyped or cut off"),
        (with("X-API-Key", &unknown), "of another installation, or revoked"),
        (with("X-API-Key", &feed), "a feed token (fk_…) only pushes"),
        (with("X-API-Key", &key).header("X-API-Key", &key), "more than once"),
        (query(&format!("apiKey={key}")), "`apiKey` is called `api_key` here"),
        (query(&format!("api_key={mistyped}")), "mistyped or cut off"),
        (query(""), "a valid API key is needed"),
    ] {
        let answer = Answer::of(request).await;
        assert_eq!(answer.refusal(), (401, "authentication_failed".to_owned()), "{expected}");
        assert!(answer.message().contains(expected), "{}", answer.message());
        for secret in [&key, &mistyped, &unknown, &feed] {
            assert!(!answer.text().contains(&secret[8..]), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn who_comes_from_elsewhere_is_told_what_it_is_called_here() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    for (path, expected) in [
        ("/v1/sports/americanfootball_nfl/odds", "did you mean `american_football`?"),
        ("/v1/sports/nfl/odds", "did you mean `american_football`?"),
        ("/v1/sports/mma_mixed_martial_arts/odds", "did you mean `mma`?"),
        ("/v1/sports/ufc/events", "did you mean `mma`?"),
        ("/v1/sports/boxing_boxing/odds", "did you mean `boxing`?"),
        ("/v1/sports/tennis_atp_wimbledon/odds", "did you mean `tennis`?"),
        ("/v1/sports/golf_pga_championship_winner/odds", "did you mean `golf`?"),
        ("/v1/sports/chess/odds", "the sports are mma, boxing, tennis, american_football, golf"),
        ("/v1/sports/mma/odds/", "leave out the slash at its end"),
        ("/v1/sports/", "leave out the slash at its end"),
        ("/healthz/", "leave out the slash at its end"),
        ("/v1/nowhere/", "/docs lists the endpoints"),
    ] {
        let answer = app.get(path, &key).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.message().contains(expected), "{path}: {}", answer.message());
    }
}

#[tokio::test]
async fn a_spent_burst_is_reported_before_an_unknown_path() {
    let app = TestApp::start().await;
    let key = app.limited_key(1, 100, None).await;
    assert_eq!(app.get("/v1/nowhere", &key).await.refusal(), (404, "not_found".to_owned()));
    assert_eq!(app.get("/v1/nowhere", &key).await.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(app.get("/v1/status", &key).await.refusal(), (429, "rate_limited".to_owned()));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_reported_even_in_maintenance() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    close(&app).await;
    assert_eq!(app.get("/v1/nowhere", &key).await.refusal(), (404, "not_found".to_owned()));
    let delete = format!("DELETE /v1/books HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    assert_eq!(app.raw_one(delete).await.refusal(), (405, "method_not_allowed".to_owned()));
    // Of these two, the path is reported first.
    let neither = format!("DELETE /v1/nowhere HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    assert_eq!(app.raw_one(neither).await.refusal(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn maintenance_is_reported_before_an_unknown_sport() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    close(&app).await;
    let answer = app.get("/v1/sports/chess/odds?limit=0", &key).await;
    assert_eq!(answer.refusal(), (503, "maintenance".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("120"));
}

#[tokio::test]
async fn an_unknown_sport_is_reported_before_the_scope_and_the_scope_before_the_parameters() {
    let app = TestApp::start().await;
    let key = app.key_for_groups(&["tennis"]).await;
    let unknown = app.get("/v1/sports/chess/odds?limit=0", &key).await;
    assert_eq!(unknown.refusal(), (404, "sport_not_found".to_owned()));
    assert!(unknown.message().contains("mma, boxing, tennis, american_football, golf"));
    let outside = app.get("/v1/sports/mma/odds?limit=0", &key).await;
    assert_eq!(outside.refusal(), (403, "forbidden".to_owned()));
    let inside = app.get("/v1/sports/tennis/odds?limit=0", &key).await;
    assert_eq!(inside.refusal(), (400, "invalid_parameter".to_owned()));
}

#[tokio::test]
async fn a_bad_parameter_is_reported_before_an_unknown_event() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    for id in ["evt_11111111111", "nonsense"] {
        let path = format!("/v1/sports/mma/events/{id}");
        let bad = app.get(&format!("{path}?limit=1"), &key).await;
        assert_eq!(bad.refusal(), (400, "invalid_parameter".to_owned()));
        assert_eq!(app.get(&path, &key).await.refusal(), (404, "event_not_found".to_owned()));
    }
}

#[tokio::test]
async fn an_unknown_event_is_reported_before_a_condition_is_checked() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let path = "/v1/sports/mma/events/evt_11111111111";
    let answer = app.get_with(path, &key, &[("If-None-Match", "*")]).await;
    assert_eq!(answer.refusal(), (404, "event_not_found".to_owned()));
}

#[tokio::test]
async fn what_the_client_holds_is_confirmed_even_when_the_quota_is_spent() {
    let app = TestApp::start().await;
    let key = app.limited_key(100, 1, None).await;
    let first = app.get("/v1/books", &key).await;
    let tag = first.header("etag").unwrap();
    assert_eq!(app.get("/v1/books", &key).await.refusal(), (429, "quota_exceeded".to_owned()));
    let held = app.get_with("/v1/books", &key, &[("If-None-Match", tag)]).await;
    assert_eq!(held.status, 304);
    // And every fault that is checked before the quota is still reported.
    let bad = app.get("/v1/sports/mma/odds?limit=0", &key).await;
    assert_eq!(bad.refusal(), (400, "invalid_parameter".to_owned()));
    let gone = app.get("/v1/sports/mma/events/evt_1", &key).await;
    assert_eq!(gone.refusal(), (404, "event_not_found".to_owned()));
}

#[tokio::test]
async fn status_answers_when_the_quota_is_spent_and_in_maintenance() {
    let app = TestApp::start().await;
    let key = app.limited_key(100, 1, Some(5)).await;
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    assert_eq!(app.get("/v1/books", &key).await.status, 429);
    close(&app).await;
    let status = app.get("/v1/status", &key).await;
    assert_eq!(status.status, 200);
    assert_eq!(status.json()["status"], "maintenance");
    assert_eq!((status.requests_used(), status.requests_remaining()), (1, 0));
}

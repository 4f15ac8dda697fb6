//! Historical data (V17).

use std::time::Duration;

use domain::Timestamp;
use serde_json::{Value, json};

use super::{last, message, refusal};
use crate::harness::{TestApp, at, line};
use crate::test_market::{ANN, BEA};

const ODDS: &str = "/v4/historical/sports/mma_mixed_martial_arts/odds";
const CURRENT: &str = "/v4/sports/mma_mixed_martial_arts/odds?regions=us";

/// A live market with three publications; the answers at each, and their times.
async fn published(app: &TestApp, key: &str) -> Vec<(Value, Timestamp)> {
    let feed = app.any_feed().await;
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    let mut seen = Vec::new();
    for price in [135, 140, 145] {
        let odds = line::moneyline("a", "fanduel", (ANN, price), (BEA, -155));
        app.push_all(&feed, &[odds]).await;
        app.publish().await;
        let answer = app.get(CURRENT, key).await;
        seen.push((answer.json(), at(answer.header("x-published-at").unwrap())));
    }
    seen
}

#[tokio::test]
async fn the_past_is_the_answer_of_then_between_its_neighbours() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let seen = published(&app, &key).await;
    let times: Vec<String> = seen.iter().map(|(_, at)| at.to_string()).collect();
    for (data, at) in &seen {
        let own = at.to_string();
        for date in [own.clone(), at.as_secs().to_string()] {
            let answer = app.get(&format!("{ODDS}?regions=us&date={date}"), &key).await;
            let body = answer.json();
            assert_eq!(
                super::keys(&body),
                ["timestamp", "previous_timestamp", "next_timestamp", "data"]
            );
            assert_eq!((&body["timestamp"], &body["data"]), (&json!(own), data));
            assert_eq!(last(&answer), 1, "as much as the present");
        }
    }
    let middle = format!("{ODDS}?regions=us&date={}", times[1]);
    let answer = app.get(&middle, &key).await;
    let body = answer.json();
    assert_eq!(body["previous_timestamp"], times[0]);
    assert_eq!(body["next_timestamp"], times[2]);
    assert_eq!(answer.header("cache-control"), Some("private, max-age=86400, immutable"));
    let held = [("if-none-match", answer.header("etag").unwrap())];
    let unchanged = app.get_with(&middle, &key, &held).await;
    assert_eq!((unchanged.status, last(&unchanged)), (304, 0));
    // Dates have a resolution of seconds, so a time between two gives the earlier one; the future gives the newest.
    let between = Timestamp::from_secs(at(&times[1]).as_secs() + 1);
    let body = app.get(&format!("{ODDS}?regions=us&date={between}"), &key).await.json();
    assert_eq!(body["timestamp"], times[1]);
    for future in ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "99999999999999"] {
        let body = app.get(&format!("{ODDS}?regions=us&date={future}"), &key).await.json();
        assert_eq!((&body["timestamp"], &body["data"]), (&json!(times[2]), &seen[2].0), "{future}");
        assert_eq!(
            (&body["previous_timestamp"], &body["next_timestamp"]),
            (&json!(times[1]), &Value::Null)
        );
    }
}

#[tokio::test]
async fn every_path_of_the_past_has_the_parameters_and_the_price_of_the_present() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let seen = published(&app, &key).await;
    let date = seen[0].1;
    let id = seen[0].0[0]["id"].as_str().unwrap();
    let sport = "mma_mixed_martial_arts";
    for (path, credits) in [
        (format!("/v4/sports/{sport}/odds-history/?date={date}&regions=us,uk"), 2),
        (format!("/v4/historical/sports/{sport}/events?date={date}&dateFormat=unix"), 1),
        (format!("/v4/historical/sports/{sport}/events/{id}/odds?date={date}&regions=us"), 1),
        (format!("{ODDS}?date={date}&regions=us&commenceTimeTo=1999-01-01T00:00:00Z"), 0),
        (format!("{ODDS}?date={date}&regions=us&commenceTimeFrom=0001-01-01T00:00:00Z"), 1),
    ] {
        let answer = app.get(&path, &key).await;
        assert_eq!((answer.status, last(&answer)), (200, credits), "{path}: {}", answer.text());
    }
    let unix = format!("/v4/historical/sports/{sport}/events?date={date}&dateFormat=unix");
    assert_eq!(app.get(&unix, &key).await.json()["timestamp"], date.as_secs());
    let zeros = "0".repeat(32);
    for (path, refused) in [
        (format!("{ODDS}?regions=us"), (422, "MISSING_HISTORICAL_TIMESTAMP")),
        (format!("{ODDS}?regions=us&date="), (422, "MISSING_HISTORICAL_TIMESTAMP")),
        (format!("{ODDS}?regions=us&date=yesterday"), (422, "INVALID_HISTORICAL_TIMESTAMP")),
        (format!("{ODDS}?regions=us&date=-5"), (422, "INVALID_HISTORICAL_TIMESTAMP")),
        (
            format!("{ODDS}?regions=us&date=2020-02-30T00:00:00Z"),
            (422, "INVALID_HISTORICAL_TIMESTAMP"),
        ),
        (
            format!("{ODDS}?regions=us&date=2020-01-01T00:00:00Z"),
            (422, "INVALID_HISTORICAL_TIMESTAMP"),
        ),
        (format!("{ODDS}?date={date}"), (422, "MISSING_REGION")),
        (
            format!("/v4/historical/sports/{sport}/events/{zeros}/odds?date={date}&regions=us"),
            (404, "EVENT_NOT_FOUND"),
        ),
        (format!("/v4/historical/sports/nowhere/odds?date={date}"), (404, "UNKNOWN_SPORT")),
        ("/v4/historical/sports/nowhere/odds?date=x".to_owned(), (404, "UNKNOWN_SPORT")),
        (format!("/v4/historical/sports/upcoming/odds?date={date}"), (404, "UNKNOWN_SPORT")),
    ] {
        let answer = app.get(&path, &key).await;
        assert_eq!(refusal(&answer), (refused.0, refused.1.to_owned()), "{path}");
        assert_eq!(last(&answer), 0);
    }
    let early = app.get(&format!("{ODDS}?regions=us&date=2020-01-01T00:00:00Z"), &key).await;
    assert!(message(&early).contains("history reaches from"), "{}", message(&early));
}

#[tokio::test]
async fn what_is_refused_at_any_time_is_refused_before_the_past_is_read() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let date = published(&app, &key).await[0].1.to_string();
    let tennis = app.key_for_groups(&["tennis"]).await;
    // History does not have the first date, which is another fault.
    for date in ["2020-01-01T00:00:00Z", &*date] {
        let forbidden = app.get(&format!("{ODDS}?regions=us&date={date}"), &tennis).await;
        assert_eq!(refusal(&forbidden), (403, "FORBIDDEN".to_owned()), "{date}");
        let incomplete = app.get(&format!("{ODDS}?date={date}"), &key).await;
        assert_eq!(refusal(&incomplete), (422, "MISSING_REGION".to_owned()), "{date}");
    }
}

#[tokio::test]
async fn a_sport_that_was_there_then_is_known_by_its_key() {
    let app = TestApp::start().await;
    let (key, feed) = (app.live_key().await, app.any_feed().await);
    let mut event = line::event("t", "tennis", ANN, BEA);
    event["competition"] = json!("Lakeside Challenger");
    app.push_all(&feed, &[event]).await;
    app.publish().await;
    let path = "/v4/sports/tennis_lakeside_challenger/events";
    let then = app.get(path, &key).await;
    assert_eq!(then.json().as_array().unwrap().len(), 1);
    let date = at(then.header("x-published-at").unwrap());
    app.push_all(&feed, &[json!({"type": "remove", "ref": "t"})]).await;
    app.publish().await;
    assert_eq!(refusal(&app.get(path, &key).await).1, "UNKNOWN_SPORT");
    let path = format!("/v4/historical/sports/tennis_lakeside_challenger/events?date={date}");
    let past = app.get(&path, &key).await;
    assert_eq!(past.json()["data"], then.json());
}

#[tokio::test]
async fn publications_of_one_second_are_one_in_the_past() {
    let half = Duration::from_millis(500);
    let app = TestApp::builder().refresh_interval(half).start().await;
    let key = app.live_key().await;
    let seen = published(&app, &key).await;
    let last_second = seen[2].1.as_secs();
    let body = app.get(&format!("{ODDS}?regions=us&date={last_second}"), &key).await.json();
    assert_eq!(body["data"], seen[2].0, "the last one of its second");
    let previous = at(body["previous_timestamp"].as_str().unwrap());
    assert!(previous.as_secs() < last_second, "of another second");
    let body = app.get(&format!("{ODDS}?regions=us&date={previous}"), &key).await.json();
    assert_eq!(body["timestamp"], previous.to_string(), "leads back to it");
}

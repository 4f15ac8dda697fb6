//! `/v1/sports/{sport_key}/events`: order and filters (D13).

use serde_json::{Value, json};

use crate::harness::line;
use crate::test_market::{ANN, TestMarket};

#[tokio::test]
async fn events_are_listed_by_start_with_inclusive_from_and_exclusive_to() {
    let board = TestMarket::start().await;
    let homes = async |query: &str| -> Vec<String> {
        let events = board.get(&format!("/v1/sports/mma/events?{query}")).await;
        let home = |event: &Value| event["home_team"].as_str().unwrap().to_owned();
        events.as_array().unwrap().iter().map(home).collect()
    };
    let (first, second) = ("2026-11-22T03:00:00Z", "2026-11-29T03:00:00Z");
    assert_eq!(homes("").await, [ANN, "Carla Cruz"]);
    assert_eq!(homes(&format!("commence_from={first}")).await, [ANN, "Carla Cruz"]);
    assert_eq!(homes(&format!("commence_to={second}")).await, [ANN]);
    assert_eq!(homes(&format!("commence_from={first}&commence_to={first}")).await, [""; 0]);
    assert_eq!(homes("commence_from=2026-11-22T03:00:00.001Z").await, ["Carla Cruz"]);
    assert_eq!(homes("commence_to=2026-11-22T04:00:01%2B01:00").await, [ANN], "offsets are taken");
    assert_eq!(homes("status=scheduled&limit=1").await, [ANN]);
    assert_eq!(homes("status=live").await, [""; 0]);
}

#[tokio::test]
async fn events_are_found_by_the_beginning_of_a_word_in_a_name() {
    let board = TestMarket::start().await;
    let mut card =
        line::event_at("f-1", "boxing", "Jiří Procházka", "Sean O'Malley", "2026-12-01T03:00:00Z");
    card["competition"] = "Señor's Night 12".into();
    board.push(&[card]).await;
    board.app.publish().await;
    let found = async |sport: &str, query: &str| -> Vec<String> {
        let events = board.get(&format!("/v1/sports/{sport}/events?{query}")).await;
        let named = |event: &Value| {
            event["home_team"].as_str().or(event["title"].as_str()).unwrap().to_owned()
        };
        events.as_array().unwrap().iter().map(named).collect()
    };
    let jiri = ["Jiří Procházka"];
    for name in [
        "proch",
        "PROCHAZKA",
        "Proch%C3%A1zka",
        "ji",
        "jiri%20pro",
        "jiri+proch",
        "omal",
        "O%27Mal",
        "o%E2%80%99malley",
        "senor",
        "se%C3%B1ors+night",
        "night+12",
        "12",
        "%20jiri%20",
    ] {
        assert_eq!(found("boxing", &format!("name={name}")).await, jiri, "{name}");
    }
    for name in ["rochazka", "prochazka+jiri", "malley", "jiri+x", "zz", "..", "%2A%2A"] {
        assert_eq!(found("boxing", &format!("name={name}")).await, [""; 0], "{name}");
    }
    assert_eq!(found("boxing", "name=proch&status=live").await, [""; 0], "filters are added");
    // A tournament is found by its title, its tour and every player with a price.
    for name in ["harbour", "open", "tour", "max", "noble", "ned+no"] {
        assert_eq!(found("golf", &format!("name={name}")).await, ["Harbour Open"], "{name}");
    }
}

#[tokio::test]
async fn pages_tables_and_changes_keep_the_name() {
    let board = TestMarket::start().await;
    let path = "/v1/sports/mma/events?name=cup&limit=1";
    let first = board.app.get(path, &board.key).await;
    let second = board.app.get(&first.next_page().unwrap(), &board.key).await;
    assert_eq!(second.json()[0]["home_team"], "Carla Cruz");
    assert_eq!(second.next_page(), None);
    let table = board.app.get("/v1/sports/mma/events?name=cruz&format=csv", &board.key).await;
    assert_eq!(table.text().lines().count(), 2, "{}", table.text());

    let cursor = async |query: &str| {
        let answer = board.app.get(&format!("/v1/sports/mma/events?{query}"), &board.key).await;
        answer.header("x-cursor").unwrap().to_owned()
    };
    let (all, some) = (cursor("").await, cursor("name=CRUZ").await);
    let since = async |query: &str| {
        board.app.get(&format!("/v1/sports/mma/events?name=cruz&since={query}"), &board.key).await
    };
    assert_eq!(since(&some).await.status, 204, "the name is the same once it is folded");
    assert_eq!(since(&all).await.refusal(), (400, "invalid_parameter".to_owned()));
    let (ivo, anton) = ("Ivo Cruz", "Anton Abel");
    let commence = "2026-12-06T03:00:00Z";
    let new = [
        line::event_at("n-1", "mma", ivo, "Dirk Dahl", commence),
        line::event_at("n-2", "mma", anton, "Bert Bolt", commence),
    ];
    board.push(&new).await;
    board.app.publish().await;
    let changes = since(&some).await.json();
    let upserts = changes["upserts"].as_array().unwrap();
    assert_eq!(upserts.iter().map(|event| &event["home_team"]).collect::<Vec<_>>(), [&json!(ivo)]);
}

#[tokio::test]
async fn a_name_has_2_to_80_characters() {
    let board = TestMarket::start().await;
    let (short, long) = ("%C3%A9".to_owned(), "x".repeat(81));
    for name in ["x".to_owned(), short, long, "%F0%9F%A5%8A".repeat(81)] {
        let answer = board.app.get(&format!("/v1/sports/mma/events?name={name}"), &board.key).await;
        assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{name}");
        assert_eq!(answer.message(), "`name` must have 2 to 80 characters");
    }
    let longest = "%F0%9F%A5%8A".repeat(80);
    assert_eq!(board.get(&format!("/v1/sports/mma/events?name={longest}")).await, json!([]));
    let elsewhere = board.app.get("/v1/sports/mma/odds?name=ann", &board.key).await;
    assert_eq!(elsewhere.param().as_deref(), Some("name"));
}

//! A feed is limited to its rights and its share of memory.

use accounts::{Actor, Scores};
use domain::World;
use market::{Limits, Operation};
use serde_json::{Value, json};

use crate::harness::{TestApp, line, ndjson};

const ANN: &str = "Ann Archer";
const BEA: &str = "Bea Baker";

fn codes(receipt: &Value) -> Vec<&str> {
    let rejected = receipt["rejected"].as_array().unwrap();
    rejected.iter().map(|reject| reject["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_bound_token_reports_scores_only_with_the_right_to() {
    let app = TestApp::start().await;
    let event = line::event("a", "mma", ANN, BEA);
    let live = line::score("a", "live", 1, 0);
    let bound = app.feed("bound", Some("fanduel")).await;
    let got = app.push(&bound, ndjson(&[event.clone(), live.clone()])).await;
    assert_eq!(codes(&got), ["wrong_bookmaker"], "{got}");
    let (accounts, by) = (&app.service.api.accounts, Actor::command_line());
    let made = accounts.create_feed("official", Some("fanduel"), Scores::Allowed, &by).await;
    let official = made.unwrap().0.expose().to_owned();
    let got = app.push(&official, ndjson(&[event.clone(), live.clone()])).await;
    assert_eq!((&got["accepted"], codes(&got)), (&json!(2), vec![]), "{got}");
    let free = app.any_feed().await;
    let more = line::score("a", "live", 2, 0);
    let got = app.push(&free, ndjson(&[event, more])).await;
    assert_eq!((&got["accepted"], codes(&got)), (&json!(2), vec![]), "{got}");
    let huge = line::score("a", "live", 2_147_483_647, 0);
    let got = app.push(&free, ndjson(&[huge])).await;
    assert_eq!(codes(&got), ["invalid_message"], "nothing can lock a score that high: {got}");
}

#[tokio::test]
async fn a_full_service_refuses_what_is_new_shows_it_and_gets_room_by_a_drop() {
    let limits = Limits { records_max: 60, records_per_feed_max: 40, ..Limits::DEFAULT };
    let app = TestApp::builder().limits(limits).start().await;
    let (one, two) = (app.feed("one", None).await, app.feed("two", None).await);
    let names = ["Ada", "Bob", "Cyd", "Dov", "Eve", "Fay", "Gus", "Hal", "Ivo", "Jon"];
    let listed = |reference: &str| {
        let bout = |(n, name): (usize, &&str)| {
            let away = names[(n + 5) % names.len()];
            line::event(
                &format!("{reference}{n}"),
                "mma",
                &format!("{name} {reference}{name}"),
                away,
            )
        };
        names.iter().enumerate().map(bout).collect::<Vec<_>>()
    };
    let lines: Vec<Value> = ["Alp", "Bet", "Gam", "Del"].iter().flat_map(|of| listed(of)).collect();
    let got = app.push(&one, ndjson(&lines)).await;
    assert!(codes(&got).iter().all(|code| *code == "too_large") && !codes(&got).is_empty());
    let text = got["rejected"][0]["message"].as_str().unwrap();
    assert!(text.contains("market.records_per_feed_max"), "{text}");
    let got = app.push(&two, ndjson(&listed("Eps"))).await;
    assert!(got["accepted"].as_u64() > Some(3), "another feed has room: {got}");
    app.publish().await;
    let answer = app.get_operator("/metrics").await;
    let metrics = answer.text();
    assert!(metrics.contains("linesman_market_records_max{world=\"live\"} 60"), "{metrics}");
    assert!(metrics.contains("linesman_market_feed_records_weight{feed=\"one\"}"), "{metrics}");
    let live = app.service.api.world(World::Live);
    live.operate(Operation::Drop { feed: "one".into() }).await.unwrap();
    assert!(live.operate(Operation::Drop { feed: "nobody".into() }).await.is_err());
    app.publish().await;
    let answer = app.get_operator("/metrics").await;
    let metrics = answer.text();
    assert!(!metrics.contains("linesman_market_feed_records_weight{feed=\"one\"}"), "{metrics}");
    assert!(
        !live.identities().events().any(|event| event.refs.iter().any(|held| &*held.feed == "one"))
    );
    let got = app.push(&one, ndjson(&listed("Zet"))).await;
    assert!(got["accepted"].as_u64() > Some(3), "and there is room again: {got}");
}

//! `feeds drop`, with and without a running server, and the rights of a new token.

use serde_json::{Value, json};

use crate::harness::{Service, TestProgram, bout, moneyline, wait_for};

async fn two_feeds(program: &TestProgram, service: &Service) {
    let (north, south) = (program.feed("north").await, program.feed("south").await);
    let ours = [
        bout("n-1", "Bobby Vance", "Tom Reed"),
        moneyline("n-1", "fanduel", &[("Bobby Vance", 140), ("Tom Reed", -165)]),
        bout("n-2", "Milan Dray", "Pavel Orsk"),
    ];
    service.push_all(&north, &ours).await;
    let theirs = [
        bout("s-1", "Bobby Vance", "Tom Reed"),
        moneyline("s-1", "bet365", &[("Bobby Vance", 150), ("Tom Reed", -180)]),
    ];
    service.push_all(&south, &theirs).await;
}

async fn shows(service: &Service, key: &str, events: usize, bookmakers: &[&str]) {
    wait_for("what is left", async || {
        let listed = service.pages("/v1/sports/mma/events", key).await;
        let odds = service.pages("/v1/sports/mma/odds", key).await;
        let named: Vec<&str> =
            odds.iter().map(|odds| odds["bookmaker"].as_str().unwrap()).collect();
        (listed.len() == events && named == bookmakers).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_a_feed_listed_is_dropped_while_the_service_runs_and_while_it_does_not() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = program.live_key().await;
    two_feeds(&program, &service).await;
    shows(&service, &key, 2, &["bet365", "fanduel"]).await;
    let unknown = program.run(&["feeds", "drop", "nobody"]).await;
    assert!(unknown.sentence(1).contains("no feed `nobody` has listed anything"));

    // Its token is gone, its listings are not.
    program.ok(&["feeds", "revoke", "north"]).await;
    program.ok(&["feeds", "drop", "north"]).await;
    shows(&service, &key, 1, &["bet365"]).await;
    service.stop().await;

    program.ok(&["feeds", "drop", "south"]).await;
    let unknown = program.run(&["feeds", "drop", "nobody"]).await;
    assert!(unknown.sentence(1).contains("no feed `nobody` has listed anything"));
    let service = program.start().await;
    shows(&service, &key, 0, &[]).await;
    // Ids continue: a new listing is a new event.
    let token = program.feed("west").await;
    service.push_all(&token, &[bout("w-1", "Bobby Vance", "Tom Reed")]).await;
    shows(&service, &key, 1, &[]).await;
    service.stop().await;
}

#[tokio::test]
async fn a_token_for_one_bookmaker_may_report_scores_where_it_was_made_so() {
    let program = TestProgram::new();
    program.init().await;
    program.ok(&["feeds", "create", "plain", "--bookmaker", "fanduel"]).await;
    program.ok(&["feeds", "create", "official", "--bookmaker", "fanduel", "--scores"]).await;
    program.ok(&["feeds", "create", "free"]).await;
    let listed: Value =
        serde_json::from_str(&program.ok(&["feeds", "list", "--json"]).await).unwrap();
    let rights: Vec<(&Value, &Value)> =
        listed.as_array().unwrap().iter().map(|feed| (&feed["name"], &feed["scores"])).collect();
    let expected = [("free", true), ("official", true), ("plain", false)];
    let expected = expected.map(|(name, scores)| (json!(name), json!(scores)));
    assert!(rights.into_iter().eq(expected.iter().map(|(name, scores)| (name, scores))));
}

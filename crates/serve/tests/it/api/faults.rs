//! Faults on request: a sandbox client can get every kind of failure without waiting for it.

use serde_json::Value;

use crate::harness::{Answer, TestApp};

const PATH: &str = "/v1/sports";

async fn asked(app: &TestApp, key: &str, fault: &str) -> Answer {
    app.get_with(PATH, key, &[("x-sandbox-fault", fault)]).await
}

fn code(answer: &Answer) -> String {
    let body: Value = serde_json::from_str(answer.text()).unwrap();
    body["error"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_sandbox_key_is_shown_the_refusal_it_asks_for_and_it_costs_no_quota() {
    let app = TestApp::start().await;
    let key = app.sandbox_key().await;
    for (fault, status, retry) in [
        ("rate_limited", 429, true),
        ("quota_exceeded", 429, true),
        ("maintenance", 503, true),
        ("internal", 500, false),
        ("unavailable", 503, true),
    ] {
        let answer = asked(&app, &key, fault).await;
        assert_eq!((answer.status, code(&answer)), (status, fault.to_owned()));
        assert_eq!(answer.headers.contains_key("retry-after"), retry, "{fault}");
        assert!(answer.headers.contains_key("x-request-id"), "{fault}");
    }
    let usual = app.get(PATH, &key).await;
    assert_eq!(usual.headers["x-requests-used"], "1");
}

#[tokio::test]
async fn the_headers_of_a_made_up_fault_tell_the_same_story_as_its_body() {
    let app = TestApp::start().await;
    let key = app.sandbox_key().await;
    let quota = asked(&app, &key, "quota_exceeded").await;
    assert_eq!(quota.headers["x-requests-remaining"], "0");
    let burst = asked(&app, &key, "rate_limited").await;
    let standing = burst.headers["ratelimit"].to_str().unwrap();
    assert!(standing.starts_with("\"burst\";r=0;"), "{standing}");
}

#[tokio::test]
async fn a_slow_answer_is_the_usual_one_and_costs_the_same() {
    let app = TestApp::start().await;
    let key = app.sandbox_key().await;
    let usual = app.get(PATH, &key).await;
    // The store has finished; from here on waiting takes no real time.
    tokio::time::pause();
    let slow = asked(&app, &key, "slow").await;
    assert_eq!((slow.status, slow.text()), (200, usual.text()));
    assert_eq!(slow.headers["x-requests-used"], "2");
}

#[tokio::test]
async fn live_keys_and_unknown_faults_are_refused() {
    let app = TestApp::start().await;
    let (live, sandbox) = (app.live_key().await, app.sandbox_key().await);
    for (key, fault) in [(&live, "internal"), (&sandbox, "fire"), (&sandbox, "")] {
        let answer = asked(&app, key, fault).await;
        assert_eq!(answer.status, 400, "{fault}");
        let body: Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!(body["error"]["code"], "invalid_parameter");
        assert_eq!(body["error"]["param"], "X-Sandbox-Fault");
    }
}

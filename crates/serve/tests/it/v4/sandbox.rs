//! The sandbox under `/v4`: keys that programs have hard-coded, every shape, and the document's guarantees (V8, V18).

use serde_json::Value;

use super::last;
use crate::harness::TestApp;

#[tokio::test]
async fn the_sandbox_has_hard_coded_keys_and_every_sport() {
    let app = TestApp::builder().sandbox(20_261_114).start().await;
    let key = app.sandbox_key().await;
    app.publish_both().await;
    let get = async |path: &str| {
        let answer = app.get(path, &key).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer
    };
    let sports = get("/v4/sports").await.json();
    let keys: Vec<&str> =
        sports.as_array().unwrap().iter().map(|sport| sport["key"].as_str().unwrap()).collect();
    for known in ["americanfootball_nfl", "americanfootball_ncaaf", "mma_mixed_martial_arts"] {
        assert!(keys.contains(&known), "{keys:?}");
    }
    for start in ["tennis_atp_", "golf_", "boxing_boxing"] {
        assert!(keys.iter().any(|key| key.starts_with(start)), "{keys:?}");
    }
    let document: Value = serde_json::from_str(&api::openapi::v4::document()).unwrap();
    for sport in keys {
        for what in ["odds?regions=us,uk,eu,au", "events", "scores?daysFrom=3", "participants"] {
            let path = format!("/v4/sports/{sport}/{what}");
            let answer = get(&path).await;
            let template = format!("/v4/sports/{{sport}}/{}", what.split('?').next().unwrap());
            check(&document, &template, &answer.json());
        }
        let events = get(&format!("/v4/sports/{sport}/odds?regions=us,uk,eu,au")).await.json();
        let Some(id) = events[0]["id"].as_str() else { continue };
        for what in ["odds", "markets"] {
            let path = format!("/v4/sports/{sport}/events/{id}/{what}?regions=us,uk,eu,au");
            let answer = get(&path).await;
            check(
                &document,
                &format!("/v4/sports/{{sport}}/events/{{eventId}}/{what}"),
                &answer.json(),
            );
            let priced =
                answer.json()["bookmakers"].as_array().is_some_and(|list| !list.is_empty());
            assert_eq!(last(&answer) > 0, priced, "{path}");
        }
    }
    check(&document, "/v4/sports", &sports);
}

/// Checks a body against the schema that the document has for it.
fn check(document: &Value, template: &str, body: &Value) {
    let ok = &document["paths"][template]["get"]["responses"]["200"];
    let schema = &ok["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{template}");
    crate::openapi::conform::check(document, schema, body)
        .unwrap_or_else(|error| panic!("{template}: {error}"));
}

#[tokio::test]
async fn the_document_of_v4_is_served_without_a_key() {
    let app = TestApp::start().await;
    let answer = app.get_without_key("/openapi/v4.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text(), api::openapi::v4::document());
}

#[test]
fn the_committed_document_of_v4_is_what_the_program_prints() {
    let committed = include_str!("../../../../../openapi-v4.json");
    let document = api::openapi::v4::document();
    if committed != document {
        let now = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi-v4.json");
        std::fs::write(&now, document).unwrap();
        panic!("openapi-v4.json is not {}; run `cargo xtask openapi`", now.display());
    }
}

//! Credits: counted as the prior interface does, all or none, shared with `/v1` (V5 to V7).

use api::v4::{Credits, V4Settings};

use super::{MMA, last, message, refusal};
use crate::harness::TestApp;
use crate::test_market::TestMarket;

#[tokio::test]
async fn odds_cost_markets_times_regions() {
    let board = TestMarket::start().await;
    for (query, credits) in [
        ("regions=us", 1),
        ("regions=us&markets=h2h", 1),
        ("regions=us&markets=h2h,totals", 2),
        ("regions=us,uk&markets=h2h,spreads,totals", 6),
        ("regions=us,us&markets=h2h,h2h", 1),
        ("regions=us&regions=uk&markets=h2h%2Ctotals", 4),
        ("regions=us,uk,eu,au,us2,us_ex,us_dfs,fr,se", 9),
        ("regions=us&markets=h2h,h2h_lay", 1),
        ("bookmakers=fanduel", 1),
        ("bookmakers=fanduel,draftkings&regions=us,uk,eu", 1),
        ("bookmakers=fanduel,kalshi,novig", 1),
        (
            "bookmakers=fanduel,draftkings,bet365,betmgm,betus,bovada,circa,coolbet,coral,espnbet,fliff",
            2,
        ),
        // Without any price the answer is free.
        ("regions=fr", 0),
        ("bookmakers=kalshi", 0),
        ("regions=us&markets=h2h_lay", 0),
        ("regions=us&eventIds=00000000000000000000000000000000", 0),
    ] {
        let answer = board.app.get(&format!("{MMA}/odds?{query}"), &board.key).await;
        assert_eq!((answer.status, last(&answer)), (200, credits), "{query}");
    }
}

#[tokio::test]
async fn a_response_is_charged_all_of_its_credits_or_none() {
    let board = TestMarket::start().await;
    let app = &board.app;
    let key = app.limited_key(1000, 5, None).await;
    let three = format!("{MMA}/odds?regions=us,uk,eu");
    let answer = app.get(&three, &key).await;
    assert_eq!((answer.status, answer.requests_used(), answer.requests_remaining()), (200, 3, 2));
    let answer = app.get(&three, &key).await;
    assert_eq!(refusal(&answer), (401, "OUT_OF_USAGE_CREDITS".to_owned()));
    let text = message(&answer);
    assert!(
        text.starts_with("Usage quota has been reached") && text.contains("usage limit"),
        "{text}"
    );
    assert!(answer.header("retry-after").is_some());
    assert_eq!((last(&answer), answer.requests_remaining()), (0, 2), "it keeps its two");
    // The quota is shared with /v1.
    assert_eq!(app.get("/v1/books", &key).await.requests_remaining(), 1);
    assert_eq!(app.get(&format!("{MMA}/odds?regions=us"), &key).await.requests_remaining(), 0);
    assert_eq!(app.get("/v1/books", &key).await.status, 429);
    // Free answers are still served.
    for free in ["/v4/sports", &format!("{MMA}/events"), &format!("{MMA}/odds?regions=fr")] {
        let answer = app.get(free, &key).await;
        assert_eq!(
            (answer.status, last(&answer), answer.requests_remaining()),
            (200, 0, 0),
            "{free}"
        );
    }
    let refused = app.get(&format!("{MMA}/odds?regions=us"), &key).await;
    assert_eq!(refusal(&refused).0, 401);
}

#[tokio::test]
async fn flat_every_response_that_is_not_free_costs_one() {
    let settings = V4Settings { credits: Credits::Flat, ..V4Settings::default() };
    let board = TestMarket::on(TestApp::builder().v4(settings).start().await).await;
    for (path, credits) in [
        ("odds?regions=us,uk&markets=h2h,totals", 1),
        ("scores?daysFrom=3", 1),
        ("odds?regions=fr", 0),
        ("events", 0),
    ] {
        let answer = board.app.get(&format!("{MMA}/{path}"), &board.key).await;
        assert_eq!((answer.status, last(&answer)), (200, credits), "{path}");
    }
}

#[tokio::test]
async fn every_authenticated_response_says_what_is_left_used_and_charged() {
    let board = TestMarket::start().await;
    let key = board.app.limited_key(1000, 50, Some(20)).await;
    let spent = board.app.get(&format!("{MMA}/scores?daysFrom=2"), &key).await;
    assert_eq!((spent.requests_used(), spent.requests_remaining(), last(&spent)), (2, 18, 2));
    for path in ["/v4/nowhere", "/v4/sports/x/odds", "/v4/sports?all=x", "/v4/sports"] {
        let answer = board.app.get(path, &key).await;
        let figures = (answer.requests_used(), answer.requests_remaining(), last(&answer));
        assert_eq!(figures, (2, 18, 0), "{path}");
    }
}

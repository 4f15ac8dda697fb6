//! A machine that is slow or paused is not overloaded: a client that sends one request at a time is answered.

use std::time::{Duration, Instant};

use crate::harness::TestApp;
use crate::test_market::TestMarket;

/// Keeps the one thread of a test busy.
fn stand_still(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[tokio::test]
async fn one_client_on_a_slow_machine_is_never_refused() {
    let app = TestApp::builder().shed_after(Duration::from_millis(10)).start().await;
    let board = TestMarket::on(app).await;
    let hog = tokio::spawn(async {
        loop {
            stand_still(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    });
    for limit in 1..40 {
        let path = format!("/v1/sports/mma/odds?limit={limit}");
        assert_eq!(board.app.get(&path, &board.key).await.status, 200, "{path}");
    }
    hog.abort();
    let metrics = board.app.get_operator("/metrics").await;
    assert!(metrics.text().contains("\nlinesman_requests_shed_total 0\n"));
}

#[tokio::test]
async fn a_machine_that_stood_still_goes_on_as_before() {
    let app = TestApp::builder().shed_after(Duration::from_millis(250)).start().await;
    let board = TestMarket::on(app).await;
    // Many clients send requests at once when it resumes.
    for round in 0..3 {
        let mut asking = tokio::task::JoinSet::new();
        for client in 0..40 {
            let path = format!("/v1/sports/mma/odds?limit={}", round * 40 + client + 1);
            let request = board.app.request(reqwest::Method::GET, &path);
            let request = request.header("X-API-Key", &board.key);
            asking.spawn(async { crate::harness::Answer::of(request).await.status });
        }
        tokio::task::yield_now().await;
        stand_still(Duration::from_millis(400));
        assert!(asking.join_all().await.iter().all(|status| *status == 200));
        // Until the queue is empty and a pulse was on time again.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

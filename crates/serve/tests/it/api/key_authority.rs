//! A node that was cut off for too long reports it, and does not report a wrong key instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use accounts::{Cluster, RegisterError, RegisterFuture, RevocationRegister, SteadyClock};

use crate::harness::TestApp;

#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl SteadyClock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Authorities that never answer.
#[derive(Debug)]
pub(crate) struct Silence;

impl RevocationRegister for Silence {
    fn announce(&self, _: i64) -> RegisterFuture<'_, Result<i64, RegisterError>> {
        Box::pin(async { Err("silence".into()) })
    }

    fn known(&self) -> RegisterFuture<'_, Result<Option<i64>, RegisterError>> {
        Box::pin(async { Err("silence".into()) })
    }

    fn hint(&self) -> RegisterFuture<'_, ()> {
        Box::pin(async {})
    }

    fn confirm(&self, _: i64) -> RegisterFuture<'_, Result<i64, RegisterError>> {
        Box::pin(async { Err("silence".into()) })
    }

    fn wait_for_hint(&self) -> RegisterFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_node_that_cannot_confirm_keys_answers_503_and_not_401() {
    let steady = Arc::new(Hand::default());
    let cluster = Cluster {
        register: Arc::new(Silence),
        steady: Arc::clone(&steady) as Arc<dyn SteadyClock>,
        lease: Duration::from_secs(5),
    };
    let app = TestApp::builder().one_of(cluster).start().await;
    let (key, token) = (app.live_key().await, app.feed("acme", None).await);
    let unknown = "sk_live_00000000000000000000000000000000";
    let metrics = async || app.get_operator("/metrics").await.text().to_owned();
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    assert_eq!(app.push(&token, "").await["accepted"], 0);
    assert!(metrics().await.contains("\nlinesman_key_trust_seconds_left 5"));
    assert_eq!(app.get_operator("/readyz").await.status, 200);

    steady.0.store(5000, Ordering::SeqCst);
    let answer = app.get("/v1/books", &key).await;
    assert_eq!(answer.refusal(), (503, "unavailable".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("1"));
    let pushed = app.post(&token, Vec::new(), None).await;
    assert_eq!(pushed.refusal(), (503, "unavailable".to_owned()));
    // A malformed key is refused as always.
    assert_eq!(app.get("/v1/books", unknown).await.status, 401);
    assert!(metrics().await.contains("\nlinesman_key_trust_seconds_left 0"));
    // Another node may be able to answer: the balancer should use it.
    let ready = app.get_operator("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("key authority lost"), "{}", ready.text());

    app.service.api.accounts.renew_from_store().await.unwrap();
    assert_eq!(app.get_operator("/readyz").await.status, 200);
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    assert_eq!(app.push(&token, "").await["accepted"], 0);
}

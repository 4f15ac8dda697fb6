//! A node that was cut off for too long reports it, and does not report a wrong key instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use accounts::{Cluster, RegisterError, RegisterFuture, RevocationRegister, SteadyClock};
use domain::World;
use reqwest::{Method, Response};

use crate::harness::{TestApp, line, wait_for};
use crate::test_market::{ANN, BEA};

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

/// A node whose authorities never answer.
async fn alone() -> (TestApp, Arc<Hand>) {
    let steady = Arc::new(Hand::default());
    let cluster = Cluster {
        register: Arc::new(Silence),
        steady: Arc::clone(&steady) as Arc<dyn SteadyClock>,
        lease: Duration::from_secs(5),
    };
    (TestApp::builder().one_of(cluster).start().await, steady)
}

#[tokio::test]
async fn a_node_that_cannot_confirm_keys_answers_503_and_not_401() {
    let (app, steady) = alone().await;
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

/// The text that a stream sends up to its next cut.
async fn up_to_cut(stream: &mut Response) -> String {
    let mut sent = String::new();
    while !(sent.contains("event: cut") && sent.ends_with("\n\n")) {
        let chunk = tokio::time::timeout(Duration::from_secs(60), stream.chunk()).await;
        let chunk = chunk.unwrap_or_else(|_| panic!("nothing follows: {sent}")).unwrap();
        let chunk = chunk.unwrap_or_else(|| panic!("{sent}"));
        sent += std::str::from_utf8(&chunk).unwrap();
    }
    sent
}

/// S14: the key may have ended elsewhere.
#[tokio::test]
async fn a_node_that_cannot_confirm_keys_sends_nothing_on_its_streams() {
    let (app, steady) = alone().await;
    let (key, token) = (app.live_key().await, app.any_feed().await);
    let quote = |price| line::moneyline("a", "fanduel", (ANN, price), (BEA, -155));
    app.push_all(&token, &[line::event("a", "mma", ANN, BEA), quote(135)]).await;
    app.publish().await;
    // Streams are counted in the store while the node follows it.
    let service = Arc::clone(&app.service);
    let following = tokio::spawn(async move { service.api.accounts.follow().await });
    let open = async |mode: &str| {
        // No heartbeat comes before the end.
        let path = format!("/v1/stream?sports=mma&mode={mode}&heartbeat=60");
        let mut stream =
            app.request(Method::GET, &path).header("X-API-Key", &key).send().await.unwrap();
        up_to_cut(&mut stream).await;
        stream
    };
    let (published, mut live) = (open("publication").await, open("live").await);
    following.abort();
    assert!(following.await.is_err_and(|error| error.is_cancelled()));
    // The feed needs the authority, too.
    app.push_all(&token, &[quote(140)]).await;
    let sent = up_to_cut(&mut live).await;
    assert!(sent.contains("event: delta"), "{sent}");
    steady.0.store(5000, Ordering::SeqCst);
    app.advance(app.refresh_interval);
    let world = app.service.api.world(World::Live);
    wait_for("the publication", || {
        world.published().snapshot.cut_at.plus(app.refresh_interval) > app.now()
    })
    .await;
    for stream in [published, live] {
        let rest = stream.text().await.unwrap();
        let end = rest
            .trim_start()
            .strip_prefix("event: end\ndata: ")
            .unwrap_or_else(|| panic!("{rest}"));
        assert!(end.contains("\"code\":\"unavailable\"") && !end.contains("event: "), "{rest}");
    }
}

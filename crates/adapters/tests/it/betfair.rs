//! Betfair over TLS: signing in, the subscription, names from the catalogue, and resuming where it was cut.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Clock as _;
use linesman_adapters::report::State;
use linesman_adapters::settings::{
    AdapterSettings, BetfairSettings, KindSettings, Secret, SecretSource,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::harness::{Reaction, RealClock, Running, TestSink, Upstream, ok, settings, wait_for};

/// Plays the exchange: what it was sent, connection by connection, and what it answers to each subscription.
struct Exchange {
    address: String,
    heard: Arc<Mutex<Vec<Value>>>,
}

fn definition(status: &str) -> Value {
    let start = RealClock.now().plus(Duration::from_secs(7200)).to_string();
    json!({
        "bspMarket": false, "turnInPlayEnabled": true, "eventId": "3001", "eventTypeId": "26420387",
        "marketType": "MATCH_ODDS", "marketTime": start, "openDate": start, "status": status, "inPlay": false,
        "version": 1, "timezone": "GMT", "bettingType": "ODDS", "numberOfWinners": 1, "numberOfActiveRunners": 2,
        "runners": [
            { "id": 11, "sortPriority": 1, "status": "ACTIVE" }, { "id": 12, "sortPriority": 2, "status": "ACTIVE" },
        ],
    })
}

fn image(clk: &str) -> Value {
    json!({
        "op": "mcm", "id": 2, "initialClk": "init", "clk": clk, "conflateMs": 0, "heartbeatMs": 5000,
        "pt": RealClock.now().as_millis(), "ct": "SUB_IMAGE",
        "mc": [{
            "id": "1.5", "img": true, "marketDefinition": definition("OPEN"),
            "rc": [{ "id": 11, "batb": [[0, 2.5, 100]] }, { "id": 12, "batb": [[0, 1.6, 100]] }],
        }],
    })
}

fn delta(clk: &str, price: f64) -> Value {
    json!({
        "op": "mcm", "id": 2, "clk": clk, "pt": RealClock.now().as_millis(), "ct": "RESUB_DELTA",
        "mc": [{ "id": "1.5", "rc": [{ "id": 11, "batb": [[0, price, 100]] }] }],
    })
}

impl Exchange {
    /// `react` gives the lines after the n-th subscription; the connection is closed after them where it says so.
    async fn start(
        dir: &Path,
        react: impl Fn(usize, &Value) -> (Vec<Value>, bool) + Send + Sync + 'static,
    ) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(dir.join("ca.pem"), made.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        let heard: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (seen, react) = (Arc::clone(&heard), Arc::new(react));
        tokio::spawn(async move {
            let mut subscriptions = 0;
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let Ok(stream) = acceptor.accept(socket).await else { continue };
                let (reader, mut writer) = tokio::io::split(stream);
                let mut lines = BufReader::new(reader).lines();
                let hello = "{\"op\":\"connection\",\"connectionId\":\"c\"}\r\n";
                writer.write_all(hello.as_bytes()).await.unwrap();
                while let Ok(Some(line)) = lines.next_line().await {
                    let message: Value = serde_json::from_str(&line).unwrap();
                    seen.lock().unwrap().push(message.clone());
                    let status = json!({ "op": "status", "id": message["id"], "statusCode": "SUCCESS", "connectionClosed": false });
                    let (answers, close) = if message["op"] == "marketSubscription" {
                        subscriptions += 1;
                        react(subscriptions, &message)
                    } else {
                        (Vec::new(), false)
                    };
                    let refused = answers.first().is_some_and(|line| line["op"] == "status");
                    let all = (!refused).then_some(status).into_iter().chain(answers);
                    for line in all {
                        writer.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
                    }
                    writer.flush().await.unwrap();
                    if close {
                        break;
                    }
                }
            }
        });
        Self { address, heard }
    }

    fn subscriptions(&self) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|message| message["op"] == "marketSubscription").cloned().collect()
    }
}

/// Signs in, and names the market.
async fn services() -> Upstream {
    Upstream::start(|request: &str, _| {
        if request.contains("/api/login") {
            let good = request.contains("username=u%40x&password=hunter2") || request.contains("username=u%40x&password=hunter2".replace("%40", "@").as_str());
            return match good {
                true => ok(r#"{"token":"session-secret","product":"p","status":"SUCCESS","error":""}"#),
                false => ok(r#"{"token":"","status":"FAIL","error":"INVALID_USERNAME_OR_PASSWORD"}"#),
            };
        }
        let start = RealClock.now().plus(Duration::from_secs(7200)).to_string();
        let catalogue = json!([{
            "marketId": "1.5", "marketName": "Match Odds", "marketStartTime": start,
            "description": { "marketType": "MATCH_ODDS" },
            "competition": { "id": "9", "name": "UFC 331" },
            "event": { "id": "3001", "name": "Jiri Prochazka v Alex Pereira", "openDate": start, "timezone": "GMT" },
            "eventType": { "id": "26420387", "name": "Mixed Martial Arts" },
            "runners": [
                { "selectionId": 11, "runnerName": "Jiri Prochazka", "sortPriority": 1 },
                { "selectionId": 12, "runnerName": "Alex Pereira", "sortPriority": 2 },
            ],
        }]);
        Reaction::Answer(200, Vec::new(), catalogue.to_string().into_bytes())
    })
    .await
}

fn betfair(
    dir: &Path,
    services: &Upstream,
    exchange: &Exchange,
    password: &str,
) -> AdapterSettings {
    let secret = |text: &str| Some(SecretSource::Given(Secret::from(text.to_owned())));
    let kind = KindSettings::Betfair(BetfairSettings {
        app_key: secret("app-secret"),
        username: secret("u@x"),
        password: secret(password),
        cert: None,
        login_url: Some(services.url.clone()),
        api_url: Some(services.url.clone()),
        stream: Some(exchange.address.clone()),
        min_size: 10,
        emit_every: Duration::ZERO,
        horizon: Duration::from_secs(14 * 86_400),
    });
    let mut settings = settings("betfair", kind);
    settings.access.ca_file = Some(dir.join("ca.pem"));
    settings
}

#[tokio::test]
async fn the_stream_is_subscribed_to_and_resumed_where_it_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, services) = (TestSink::new(), services().await);
    let exchange = Exchange::start(dir.path(), |n, _| match n {
        1 => (vec![image("clk-1")], false),
        _ => (vec![delta("clk-2", 2.75)], false),
    })
    .await;
    let running = Running::start(betfair(dir.path(), &services, &exchange, "hunter2"), &sink);
    wait_for("the prices", || (sink.open_markets("betfair") == 1).then_some(())).await;
    let first = exchange.subscriptions().remove(0);
    assert_eq!(first["heartbeatMs"], 5000);
    assert_eq!(first["segmentationEnabled"], true);
    assert_eq!(
        first["marketDataFilter"],
        json!({ "ladderLevels": 3, "fields": ["EX_BEST_OFFERS", "EX_MARKET_DEF"] })
    );
    assert!(first.get("clk").is_none());
    // The exchange is silent from here on: after two heartbeats the connection is made again.
    let second =
        wait_for("the second subscription", || exchange.subscriptions().get(1).cloned()).await;
    assert_eq!((&second["initialClk"], &second["clk"]), (&json!("init"), &json!("clk-1")));
    wait_for("the new price", || {
        sink.sent().iter().any(|line| line.contains("2.75")).then_some(())
    })
    .await;
    assert!(running.board.report().reconnects >= 1);
    let shown = format!("{:?}", running.board.report());
    assert!(
        !["hunter2", "session-secret", "app-secret"].iter().any(|secret| shown.contains(secret)),
        "{shown}"
    );
}

#[tokio::test]
async fn a_clock_that_is_not_known_starts_over_and_what_the_image_lacks_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, services) = (TestSink::new(), services().await);
    let empty = json!({
        "op": "mcm", "id": 2, "initialClk": "init2", "clk": "c", "heartbeatMs": 5000, "ct": "SUB_IMAGE",
        "pt": RealClock.now().as_millis(), "mc": [],
    });
    let refused = json!({
        "op": "status", "id": 2, "statusCode": "FAILURE", "errorCode": "INVALID_CLOCK", "connectionClosed": true,
    });
    let exchange = Exchange::start(dir.path(), move |n, message| match n {
        1 => (vec![image("clk-1")], false),
        _ if message.get("clk").is_some() => (vec![refused.clone()], true),
        _ => (vec![empty.clone()], false),
    })
    .await;
    let _running = Running::start(betfair(dir.path(), &services, &exchange, "hunter2"), &sink);
    wait_for("the prices", || (sink.open_markets("betfair") == 1).then_some(())).await;
    wait_for("the withdrawal", || (sink.open_markets("betfair") == 0).then_some(())).await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, services) = (TestSink::new(), services().await);
    let exchange = Exchange::start(dir.path(), |_, _| (Vec::new(), false)).await;
    let running = Running::start(betfair(dir.path(), &services, &exchange, "wrong-hunter3"), &sink);
    let report = running.until("the refusal", |report| report.state == State::Refused).await;
    assert!(
        report.message.contains("INVALID_USERNAME_OR_PASSWORD")
            && !report.message.contains("hunter3"),
        "{report:?}"
    );
    assert!(exchange.heard.lock().unwrap().is_empty());
}

//! Betfair over TLS: the sign-in, the subscription, names from the catalogue, and resuming a cut stream.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{Clock as _, Timestamp};
use linesman_adapters::report::State;
use linesman_adapters::settings::{
    AdapterSettings, BetfairSettings, KindSettings, Secret, SecretSource,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::harness::{
    Reaction, RealClock, Running, TestSink, Upstream, ok, settings, still_clock, wait_for,
};

/// A fake exchange that records the messages it receives.
struct Exchange {
    address: String,
    heard: Arc<Mutex<Vec<Value>>>,
}

fn definition(status: &str, event: &str, start: Timestamp) -> Value {
    let start = start.to_string();
    json!({
        "bspMarket": false, "turnInPlayEnabled": true, "eventId": event, "eventTypeId": "26420387",
        "marketType": "MATCH_ODDS", "marketTime": start, "openDate": start, "status": status, "inPlay": false,
        "version": 1, "timezone": "GMT", "bettingType": "ODDS", "numberOfWinners": 1, "numberOfActiveRunners": 2,
        "runners": [
            { "id": 11, "sortPriority": 1, "status": "ACTIVE" }, { "id": 12, "sortPriority": 2, "status": "ACTIVE" },
        ],
    })
}

fn image(clk: &str) -> Value {
    image_of(clk, &[("1.5", "3001", in_two_hours())])
}

/// An image of markets with their events and start times.
fn image_of(clk: &str, markets: &[(&str, &str, Timestamp)]) -> Value {
    let market = |(id, event, start): &(&str, &str, Timestamp)| {
        json!({
            "id": id, "img": true, "marketDefinition": definition("OPEN", event, *start),
            "rc": [{ "id": 11, "batb": [[0, 2.5, 100]] }, { "id": 12, "batb": [[0, 1.6, 100]] }],
        })
    };
    json!({
        "op": "mcm", "id": 2, "initialClk": "init", "clk": clk, "conflateMs": 0, "heartbeatMs": 5000,
        "pt": RealClock.now().as_millis(), "ct": "SUB_IMAGE", "mc": markets.iter().map(market).collect::<Vec<_>>(),
    })
}

fn delta(clk: &str, price: f64) -> Value {
    json!({
        "op": "mcm", "id": 2, "clk": clk, "pt": RealClock.now().as_millis(), "ct": "RESUB_DELTA",
        "mc": [{ "id": "1.5", "rc": [{ "id": 11, "batb": [[0, price, 100]] }] }],
    })
}

impl Exchange {
    /// `react` returns the lines after the n-th subscription, and whether the connection is closed after them.
    async fn start(
        dir: &Path,
        react: impl Fn(usize, &Value) -> (Vec<Value>, bool) + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(acceptor(dir, None), react).await
    }

    async fn start_with(
        acceptor: TlsAcceptor,
        react: impl Fn(usize, &Value) -> (Vec<Value>, bool) + Send + Sync + 'static,
    ) -> Self {
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

/// TLS of `localhost`, whose certificate is added to `ca.pem`. If `client` is given, clients must present it.
fn acceptor(dir: &Path, client: Option<CertificateDer<'static>>) -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let trusted = std::fs::read_to_string(dir.join("ca.pem")).unwrap_or_default();
    std::fs::write(dir.join("ca.pem"), trusted + &made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match client {
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.unwrap())
        }
        None => config.with_no_client_auth(),
    };
    let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A market as an entry of the catalogue.
fn named(market: &str, event: &str, home: &str, away: &str, start: Timestamp) -> Value {
    let start = start.to_string();
    json!({
        "marketId": market, "marketName": "Match Odds", "marketStartTime": start,
        "description": { "marketType": "MATCH_ODDS" },
        "competition": { "id": "9", "name": "UFC 331" },
        "event": { "id": event, "name": format!("{home} v {away}"), "openDate": start, "timezone": "GMT" },
        "eventType": { "id": "26420387", "name": "Mixed Martial Arts" },
        "runners": [
            { "selectionId": 11, "runnerName": home, "sortPriority": 1 },
            { "selectionId": 12, "runnerName": away, "sortPriority": 2 },
        ],
    })
}

fn in_two_hours() -> Timestamp {
    RealClock.now().plus(Duration::from_secs(7200))
}

/// Services that accept the sign-in and return this catalogue.
async fn services_with(catalogue: impl Fn() -> Value + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |request: &str, _| match request.contains("/api/login") {
        true => ok(r#"{"token":"session-secret","product":"p","status":"SUCCESS","error":""}"#),
        false => ok(&catalogue().to_string()),
    })
    .await
}

/// Services that check the sign-in and return a catalogue with one market.
async fn services() -> Upstream {
    Upstream::start(|request: &str, _| {
        if request.contains("/api/login") {
            let good = request.contains("username=u%40x&password=hunter2")
                || request.contains("username=u%40x&password=hunter2".replace("%40", "@").as_str());
            return match good {
                true => {
                    ok(r#"{"token":"session-secret","product":"p","status":"SUCCESS","error":""}"#)
                }
                false => {
                    ok(r#"{"token":"","status":"FAIL","error":"INVALID_USERNAME_OR_PASSWORD"}"#)
                }
            };
        }
        let catalogue =
            json!([named("1.5", "3001", "Jiri Prochazka", "Alex Pereira", in_two_hours())]);
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
    // The exchange is silent from here on: after two heartbeat intervals the adapter reconnects.
    let second =
        wait_for("the second subscription", || exchange.subscriptions().get(1).cloned()).await;
    assert_eq!((&second["initialClk"], &second["clk"]), (&json!("init"), &json!("clk-1")));
    wait_for("the new price", || {
        sink.sent().iter().any(|line| line.contains("2.75")).then_some(())
    })
    .await;
    assert!(running.reporter.report().reconnects >= 1);
    let shown = format!("{:?}", running.reporter.report());
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

#[tokio::test]
async fn a_certificate_signs_in_where_the_configuration_has_one() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, services) = (TestSink::new(), services().await);
    let client = rcgen::generate_simple_self_signed(vec!["linesman".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("client.crt"), dir.path().join("client.key"));
    std::fs::write(&cert, client.cert.pem()).unwrap();
    std::fs::write(&key, client.signing_key.serialize_pem()).unwrap();
    let tls = acceptor(dir.path(), Some(client.cert.der().clone()));
    let login = Upstream::start_with(Some(tls), |_: &str, n| match n {
        0 => ok(r#"{"loginStatus":"CERT_AUTH_REQUIRED"}"#),
        _ => ok(r#"{"sessionToken":"session-secret","loginStatus":"SUCCESS"}"#),
    })
    .await;
    let exchange = Exchange::start(dir.path(), |_, _| (vec![image("clk-1")], false)).await;
    let mut settings = betfair(dir.path(), &services, &exchange, "hunter2");
    let KindSettings::Betfair(own) = &mut settings.kind else { panic!() };
    (own.cert, own.login_url) = (Some((cert, key)), Some(login.url.clone()));
    let running = Running::start(settings.clone(), &sink);
    let report = running.until("the refusal", |report| report.state == State::Refused).await;
    assert!(report.message.contains("CERT_AUTH_REQUIRED"), "{report:?}");
    running.read_now.notify_one();
    wait_for("the prices", || (sink.open_markets("betfair") == 1).then_some(())).await;
    let asked = login.requests();
    assert!(asked.iter().all(|request| request.starts_with("POST /api/certlogin ")), "{asked:?}");
    assert_eq!(exchange.heard.lock().unwrap()[0]["session"], "session-secret");
    drop(running);
    // Without the certificate the server does not even read the request.
    let KindSettings::Betfair(own) = &mut settings.kind else { panic!() };
    own.cert = None;
    let running = Running::start(settings, &sink);
    running.until("the failure", |report| report.state == State::Retrying).await;
    assert_eq!(login.requests().len(), 2);
}

#[tokio::test]
async fn where_all_markets_are_too_many_those_that_start_soonest_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let second = Arc::new(AtomicBool::new(false));
    let is_second = Arc::clone(&second);
    let services = services_with(move || {
        let mut markets =
            vec![named("1.5", "3001", "Jiri Prochazka", "Alex Pereira", in_two_hours())];
        if is_second.load(Ordering::SeqCst) {
            markets.push(named("1.6", "3002", "Sean Strickland", "Paulo Costa", in_two_hours()));
        }
        Value::Array(markets)
    })
    .await;
    let exchange = Exchange::start(dir.path(), |_, message| {
        let ids = message["marketFilter"].get("marketIds").and_then(Value::as_array);
        let Some(ids) = ids else {
            let refused = json!({
                "op": "status", "id": 2, "statusCode": "FAILURE",
                "errorCode": "SUBSCRIPTION_LIMIT_EXCEEDED", "connectionClosed": true,
            });
            return (vec![refused], true);
        };
        let event = |id: &Value| if id == "1.5" { "3001" } else { "3002" };
        let markets: Vec<_> =
            ids.iter().map(|id| (id.as_str().unwrap(), event(id), in_two_hours())).collect();
        (vec![image_of("clk", &markets)], false)
    })
    .await;
    let running = Running::start(betfair(dir.path(), &services, &exchange, "hunter2"), &sink);
    wait_for("the prices", || (sink.open_markets("betfair") == 1).then_some(())).await;
    let asked = exchange.subscriptions();
    assert!(asked[0]["marketFilter"].get("eventTypeIds").is_some(), "{asked:?}");
    assert_eq!(asked[1]["marketFilter"], json!({ "marketIds": ["1.5"] }));
    let questions = services.requests();
    let soonest = questions.iter().find(|request| request.contains("marketStartTime")).unwrap();
    assert!(soonest.contains("\"sort\":\"FIRST_TO_START\""), "{soonest}");
    // The markets that start soonest change with time; a requested read queries the catalogue again.
    second.store(true, Ordering::SeqCst);
    running.read_now.notify_one();
    wait_for("the second market", || (sink.open_markets("betfair") == 2).then_some(())).await;
    let last = exchange.subscriptions().pop().unwrap();
    assert_eq!(last["marketFilter"], json!({ "marketIds": ["1.5", "1.6"] }));
    assert!(last.get("clk").is_none(), "another subscription begins with an image");
}

#[tokio::test]
async fn markets_beyond_the_horizon_are_read_once_they_have_come_near() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, clock) = (TestSink::new(), still_clock());
    let (near, day) = (in_two_hours(), Duration::from_secs(86_400));
    let far = near.plus(20 * day);
    let services = services_with(move || {
        json!([
            named("1.5", "3001", "Jiri Prochazka", "Alex Pereira", near),
            named("1.6", "3002", "Sean Strickland", "Paulo Costa", far),
        ])
    })
    .await;
    let exchange = Exchange::start(dir.path(), move |_, _| {
        (vec![image_of("clk", &[("1.5", "3001", near), ("1.6", "3002", far)])], false)
    })
    .await;
    let settings = betfair(dir.path(), &services, &exchange, "hunter2");
    let _running = Running::start_at(settings, &sink, Arc::clone(&clock) as _);
    wait_for("the near event", || (sink.open_markets("betfair") == 1).then_some(())).await;
    let until = clock.now().plus(14 * day).to_string();
    wait_for("the question for names", || {
        services.requests().iter().any(|request| request.contains(&until)).then_some(())
    })
    .await;
    assert_eq!(sink.listed("betfair"), 1, "the other is too far ahead");
    clock.advance(7 * day);
    wait_for("the other event", || (sink.open_markets("betfair") == 2).then_some(())).await;
    assert_eq!(sink.listed("betfair"), 2);
}

//! Settings, operations, lists, and the metadata of results.

use linesman_client::types::{Market, Region, ServiceState};
use linesman_client::{Client, ErrorCode, OddsFormat, Price};
use serde_json::{Value, json};

use crate::support::{FakeClock, Proxy, shown, variable};

pub(crate) async fn settings_from_environment() {
    let (key, other) = (variable("LINESMAN_KEY"), variable("LINESMAN_TEST_QUOTA_KEY"));
    let environment = Client::new().unwrap();
    environment.status().await.unwrap();
    let url = variable("LINESMAN_URL");
    assert_eq!(format!("{environment:?}"), format!("Client({url:?})"));
    let argument = Proxy::new(json!({})).await;
    argument.client().status().await.unwrap();
    argument.builder(&FakeClock::new(0.5)).key(&other).build().unwrap().status().await.unwrap();
    let sent = argument.requests().await;
    let keys: Vec<&Value> = sent.iter().map(|request| &request["headers"]["x-api-key"]).collect();
    assert_eq!(keys, [&json!(key), &json!(other)]);
    for url in [
        "127.0.0.1:8080",
        "ftp://127.0.0.1",
        "http://user:secret@127.0.0.1",
        "http://[::1",
        "http://a/?b=c",
        "x",
    ] {
        let error = Client::builder().url(url).build().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::InvalidConfiguration, "{url}");
        assert!(!error.to_string().contains("secret"));
    }
}

pub(crate) async fn key_in_header_only() {
    let (key, token) = (variable("LINESMAN_KEY"), variable("LINESMAN_TEST_FEED_TOKEN"));
    let proxy = Proxy::with_script(json!([
        {}, {}, {"fault": "internal"}, {"drop": true}, {"status": 418, "body": "tea"},
        {"status": 200, "body": "no JSON"},
    ]))
    .await;
    let clock = FakeClock::new(0.5);
    let builder = proxy.builder(&clock).key(&key).cache(false);
    let mut output = vec![format!("{builder:?}")];
    let client = builder.build().unwrap();
    let feed = proxy.feed(&clock);
    output.extend([format!("{client:?} {:#?}", client.odds("mma")), format!("{feed:?}")]);
    output.push(format!("{:?}", client.odds("mma").limit(1).max_items(1).all().await.unwrap()));
    output.push(format!("{:?}", client.status().await.unwrap()));
    for _ in 0..2 {
        output.extend(shown(&client.sports().await.unwrap_err()));
    }
    let drop = json!({"drop": true});
    let dead = Proxy::with_script(json!([drop, drop, drop])).await;
    output.extend(shown(&dead.client().status().await.unwrap_err()));
    let refusing = Proxy::with_script(json!([{"status": 400, "body": "{}"}])).await;
    let messages = [json!({"type": "heartbeat"})];
    output.extend(shown(&refusing.feed(&clock).push(messages).await.unwrap_err()));
    let malformed = Client::builder().key(format!("{key}\n")).build().unwrap_err();
    assert_eq!(*malformed.code(), ErrorCode::InvalidConfiguration);
    output.extend(shown(&malformed));
    for text in output {
        assert!(!text.contains(&key) && !text.contains(&token), "{text}");
    }
    for mut request in proxy.requests().await {
        let headers = request["headers"].as_object_mut().unwrap();
        assert_eq!(headers.remove("x-api-key"), Some(json!(key)));
        assert!(!request.to_string().contains(&key));
    }
}

pub(crate) async fn user_agent_names_client() {
    let proxy = Proxy::new(json!({})).await;
    proxy.client().status().await.unwrap();
    let agent = &proxy.requests().await[0]["headers"]["user-agent"];
    assert_eq!(agent, concat!("linesman-client-rust/", env!("CARGO_PKG_VERSION")));
}

pub(crate) async fn every_operation_has_a_method() {
    // src/document_tests.rs checks that each operation of openapi.json has a method; here they succeed.
    let client = Client::new().unwrap();
    let event =
        client.events("mma").status("scheduled").max_items(1).all().await.unwrap().remove(0);
    let ids = [
        client.sports().await.unwrap().meta,
        client.books().await.unwrap().meta,
        client.status().await.unwrap().meta,
        client.history().await.unwrap().meta,
        client.odds("mma").await.unwrap().meta,
        client.scores("mma").await.unwrap().meta,
        client.events("mma").await.unwrap().meta,
        client.event("mma", &event.id).await.unwrap().meta,
        client.best("mma").await.unwrap().meta,
        client.fair("mma").await.unwrap().meta,
        client.arbitrage("mma").await.unwrap().meta,
        client.ev("mma").await.unwrap().meta,
        client.middles("mma").await.unwrap().meta,
        client.coverage("mma").await.unwrap().meta,
        client.explain("mma", &event.id).await.unwrap().meta,
        client.closing("mma").await.unwrap().meta,
        client.price_path("mma", &event.id).await.unwrap().meta,
    ];
    assert!(ids.iter().all(|meta| meta.request_id.as_ref().unwrap().starts_with("req_")));
    let bouts = client.odds("mma").group_by_bout().limit(2).max_items(3).odds_format("decimal");
    let mut pages = bouts.pages();
    for _ in 0..2 {
        let page = pages.next().await.unwrap().unwrap();
        assert_eq!((page.data.sport.as_str(), page.data.bouts.len()), ("mma", 2));
        let price = &page.data.bouts[0].books[0].outcomes[0].price;
        assert!(matches!(price, Price::Decimal(_)), "{price:?}");
    }
    assert!(pages.next().await.is_none());
    let raw = client.path(&["sports", "mma", "odds"]).param("format", "csv").param("limit", 2);
    let page = raw.bodies().next().await.unwrap().unwrap();
    assert!(page.data.starts_with(b"event_id,sport_key,bookmaker,market,"));
}

pub(crate) async fn export_is_written_in_pieces() {
    let target = "/v1/sports/mma/export/odds/2026-11-14";
    let next = format!("<{target}?lineage=3>; rel=\"next\"");
    let whole = json!({
        "status": 200, "headers": { "ETag": "\"a\"", "Link": next }, "body": "PAR1".repeat(1000), "repeat": 300,
    });
    let mut broken = whole.clone();
    broken["broken"] = json!(true);
    let busy = json!({ "status": 503, "headers": { "Retry-After": "1" }, "body": "{}" });
    let proxy = Proxy::with_script(json!([busy, whole, broken])).await;
    let client = proxy.client();
    let mut file = client.export("mma", "odds", "2026-11-14").lineage(2).open().await.unwrap();
    assert_eq!((file.meta().etag.as_deref(), file.next_lineage()), (Some("\"a\""), Some(3)));
    let mut bytes = 0;
    while let Some(piece) = file.next().await.unwrap() {
        bytes += piece.len();
    }
    assert_eq!(bytes, 1_200_000);
    let asked = proxy.requests().await;
    let wanted = format!("{target}?lineage=2");
    assert_eq!(asked.iter().map(|one| &one["target"]).collect::<Vec<_>>(), [&*wanted, &*wanted]);
    let mut lost = client.export("mma", "odds", "2026-11-14").open().await.unwrap();
    let error = loop {
        match lost.next().await {
            Ok(piece) => assert!(piece.is_some(), "it is not whole"),
            Err(error) => break error,
        }
    };
    assert_eq!(*error.code(), ErrorCode::ConnectionFailed);
    let refused = Client::new().unwrap().export("mma", "odds", "2026-11-14").open().await;
    assert_eq!(*refused.unwrap_err().code(), ErrorCode::Forbidden);
}

pub(crate) async fn lists_are_joined_by_commas() {
    let proxy = Proxy::new(json!({})).await;
    let client = proxy.client();
    let odds = client.odds("mma").regions([Region::Us, Region::Uk]).market(Market::Moneyline);
    odds.max_items(1).all().await.unwrap();
    client.ev("mma").bookmakers(["bet365", "fanduel"]).min_ev(0.00001).await.unwrap();
    let sent = proxy.requests().await;
    let targets: Vec<&Value> = sent.iter().map(|request| &request["target"]).collect();
    assert_eq!(
        targets,
        [
            "/v1/sports/mma/odds?regions=us,uk&market=moneyline",
            "/v1/sports/mma/ev?bookmakers=bet365,fanduel&min_ev=0.00001",
        ]
    );
}

pub(crate) async fn pages_equal_one_long_page() {
    let client = Client::builder().cache(false).build().unwrap();
    // The data changes at a full hour: for the comparison, two reads before and after must be the same.
    macro_rules! compare {
        ($request:expr) => {
            loop {
                let before = $request.limit(500).await.unwrap();
                let short = $request.limit(7).all().await.unwrap();
                if before.meta.etag != $request.limit(500).await.unwrap().meta.etag {
                    continue;
                }
                assert!(short.len() > 14);
                break (short, before.data);
            }
        };
    }
    let (short, long) = compare!(client.events("boxing").status("final"));
    assert_eq!(short, long);
    let (short, long) = compare!(client.odds("boxing").market("moneyline").bookmaker("fanduel"));
    assert_eq!(short, long);
    let (short, long) = compare!(client.fair("boxing").market("moneyline"));
    assert_eq!(short, long.lines);
}

pub(crate) async fn max_items_ends_early() {
    let proxy = Proxy::new(json!({})).await;
    let client = proxy.client();
    assert_eq!(client.odds("mma").limit(3).max_items(6).all().await.unwrap().len(), 6);
    assert_eq!(proxy.requests().await.len(), 2);
    assert_eq!(client.odds("mma").limit(3).max_items(7).all().await.unwrap().len(), 7);
    assert!(client.odds("mma").max_items(0).all().await.unwrap().is_empty());
    assert_eq!(proxy.requests().await.len(), 3);
}

pub(crate) async fn pages_one_by_one() {
    let proxy = Proxy::new(json!({})).await;
    let mut pages = proxy.client().odds("mma").limit(3).pages();
    let first = pages.next().await.unwrap().unwrap();
    assert_eq!(proxy.requests().await.len(), 1);
    let second = pages.next().await.unwrap().unwrap();
    assert_eq!(proxy.requests().await.len(), 2);
    assert_eq!((first.data.len(), second.data.len()), (3, 3));
    assert_ne!(first.data, second.data);
    assert_ne!(first.meta.request_id, second.meta.request_id);
    // A server that names the same page again, or none, does not cause an endless list.
    for link in ["</v1/sports?a=b>; rel=next", "</v1/sports>; rel=next"] {
        let looped = Proxy::with_headers(json!({ "Link": link })).await;
        let client = looped.builder(&FakeClock::new(0.5)).cache(false).build().unwrap();
        let error = client.sports().all().await.unwrap_err();
        assert!(matches!(
            error.code(),
            ErrorCode::UnexpectedResponse | ErrorCode::InvalidParameter
        ));
        assert!(looped.requests().await.len() <= 2);
    }
}

pub(crate) async fn unknown_fields_and_values_are_accepted() {
    let proxy = Proxy::new(json!({ "unknown": ["fields", "values"] })).await;
    let client = proxy.client();
    let record = client.odds("mma").limit(2).max_items(1).all().await.unwrap().remove(0);
    assert_eq!(record.market, Market::Other("unknown_value".to_owned()));
    assert_eq!(record.format, OddsFormat::Other("unknown_value".to_owned()));
    assert_eq!(record.other["unknown_field"], json!({"new": true}));
    assert_eq!(record.outcomes[0].other["unknown_field"], json!({"new": true}));
    let regions = &client.books().await.unwrap().data[0].regions;
    assert_eq!(regions[0], Region::Other("unknown_value".to_owned()));
    let status = client.status().await.unwrap().data;
    assert_eq!(status.status, ServiceState::Other("unknown_value".to_owned()));
    client.best("mma").await.unwrap();
    client.fair("mma").await.unwrap();
    client.coverage("mma").await.unwrap();
}

pub(crate) async fn results_carry_meta() {
    let client = Client::new().unwrap();
    let status = client.status().await.unwrap().meta;
    assert!(status.etag.is_none() && !status.from_cache);
    assert!(status.requests_remaining.unwrap() > 0);
    let page = client.odds("mma").limit(2).await.unwrap().meta;
    assert!(page.etag.unwrap().starts_with('"') && page.request_id.unwrap().starts_with("req_"));
    assert!(page.cursor.is_some() && status.cursor.is_none());
    assert!(page.requests_used > status.requests_used);
    let long = "9".repeat(5000);
    let odd = json!({"x-requests-used": long, "x-requests-remaining": "many"});
    let odd = Proxy::with_headers(odd).await.client().status().await.unwrap().meta;
    assert_eq!((odd.requests_used, odd.requests_remaining), (None, None));
}

//! The two request readers, the fast path and hyper, and the two ways of sending a body, from memory and by the
//! kernel, give byte-identical answers.

use std::collections::BTreeMap;

use crate::harness::{Answer, Raw, line};
use crate::test_market::TestMarket;

const BOOKMAKERS: [&str; 8] =
    ["fanduel", "draftkings", "betmgm", "caesars", "bet365", "pinnacle", "unibet", "bovada"];

/// A board with enough tennis events for answers of tens of kilobytes.
async fn large_board() -> TestMarket {
    let board = TestMarket::start().await;
    let mut lines = Vec::new();
    for number in 0..30 {
        let (reference, home, away) = (
            format!("t-{number}"),
            format!("Home Player {number}"),
            format!("Away Player {number}"),
        );
        lines.push(line::event(&reference, "tennis", &home, &away));
        for bookmaker in BOOKMAKERS {
            lines.push(line::moneyline(&reference, bookmaker, (&home, 120), (&away, -140)));
        }
    }
    board.push(&lines).await;
    board.app.publish().await;
    board
}

/// All of an answer except counters, ids and the date.
fn essence(answer: &Answer) -> (u16, BTreeMap<String, String>, String) {
    let varying = ["x-request-id", "ratelimit", "x-requests-used", "x-requests-remaining"];
    let headers = answer.headers.iter().filter(|(name, _)| !varying.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect();
    let id = answer.header("x-request-id").unwrap_or("none");
    (answer.status, headers, format!("{:?}", answer.body).replace(id, ""))
}

/// Targets and header lines of many requests, good and bad.
fn requests(tag: &str) -> Vec<(String, String)> {
    let mut queries: Vec<String> = Vec::new();
    for market in ["", "market=moneyline&", "market=h2h&", "market=nonsense&"] {
        for regions in ["", "regions=us&", "regions=uk,eu&", "region=au&", "regions=moon&"] {
            for limit in ["limit=1", "limit=50", "limit=500", "limit=501", "odds_format=decimal"] {
                queries.push(format!("{market}{regions}{limit}"));
            }
        }
    }
    queries.extend(
        ["bookmaker=fanduel", "bookmaker=nobody", "a=b", "limit=1&limit=1", "limit=", "cursor=x"]
            .map(str::to_owned),
    );
    let ways = [
        "",
        "accept-encoding: gzip\r\n",
        "accept-encoding: br;q=0.9, gzip;q=0.5\r\nAccept-Encoding: zstd;q=0\r\n",
        &format!("if-none-match: \"x\", {tag}\r\n"),
    ];
    let odds = queries.iter().flat_map(|query| {
        ways.iter().map(move |way| (format!("/v1/sports/tennis/odds?{query}"), (*way).to_owned()))
    });
    let others =
        ["/v1/sports", "/v1/books", "/v1/sports/tennis/events", "/v1/sports/tennis/scores"];
    odds.chain(others.map(|target| (target.to_owned(), String::new()))).collect()
}

#[tokio::test]
async fn the_fast_path_and_hyper_answer_every_request_with_the_same_bytes() {
    let board = large_board().await;
    let tag = board.app.get("/v1/sports/tennis/odds?limit=50", &board.key).await;
    let tag = tag.header("etag").unwrap().to_owned();
    let mut fast_path = Raw::connect(board.app.addr).await;
    let mut hyper = Raw::connect(board.app.addr).await;
    let requests = requests(&tag);
    assert!(requests.len() > 400);
    for (target, headers) in requests {
        let head =
            format!("GET {target} HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n{headers}", board.key);
        // The first answer is computed, the second is ready, the third is, if it is large, sent by the kernel.
        let mut answers = Vec::new();
        for _ in 0..3 {
            fast_path.send(format!("{head}\r\n").as_bytes()).await;
            answers.push(essence(&fast_path.read_answer().await.unwrap()));
        }
        // A request with a body is read by hyper.
        hyper.send(format!("{head}content-length: 1\r\n\r\nx").as_bytes()).await;
        answers.push(essence(&hyper.read_answer().await.unwrap()));
        for answer in &answers[1..] {
            assert_eq!(*answer, answers[0], "{target} {headers}");
        }
    }
}

#[tokio::test]
async fn an_answer_read_slowly_stays_the_same_while_epochs_go_by() {
    let board = large_board().await;
    let path = "/v1/sports/tennis/odds?limit=500";
    let expected = board.app.get(path, &board.key).await;
    assert!(
        expected.body.len() > 40_000,
        "too small to be sent by the kernel: {}",
        expected.body.len()
    );
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", board.key);
    let many = 100;
    let mut slow = Raw::connect_narrow(board.app.addr).await;
    slow.send(request.repeat(many).as_bytes()).await;
    assert_eq!(slow.read_answer().await.unwrap().body, expected.body);
    // The service is stopped in the middle of an answer of the current epoch.
    for _ in 0..3 {
        board.app.publish().await;
    }
    let mut bodies = Vec::new();
    for _ in 1..many {
        bodies.push(slow.read_answer().await.unwrap().body);
    }
    // Only the times at which records were last confirmed differ between epochs.
    assert!(bodies.iter().all(|body| body.len() == expected.body.len()));
    let of_that_epoch = bodies.iter().take_while(|body| **body == expected.body).count();
    assert!(of_that_epoch > 1, "the answers under way were of the epoch then");
    let parsed: Vec<serde_json::Value> = serde_json::from_slice(&bodies[many - 2]).unwrap();
    assert!(parsed.len() > 100);
}

#[tokio::test]
async fn a_key_that_a_connection_is_known_by_is_looked_at_with_every_request() {
    let board = TestMarket::start().await;
    let other = board.app.limited_key(1, 1, None).await;
    let request = |key: &str| {
        format!("GET /v1/books HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n").into_bytes()
    };
    let mut raw = Raw::connect(board.app.addr).await;
    let mut statuses = Vec::new();
    for key in [&board.key, &board.key, &other, &other, &board.key, &"sk_live_x".to_owned()] {
        raw.send(&request(key)).await;
        statuses.push(raw.read_answer().await.unwrap().status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 200, 401]);
    board
        .app
        .service
        .api
        .accounts
        .revoke_key(&board.key, &accounts::Actor::command_line())
        .await
        .unwrap();
    raw.send(&request(&board.key)).await;
    assert_eq!(
        raw.read_answer().await.unwrap().refusal(),
        (401, "authentication_failed".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_day_is_spent_to_the_request_by_many_connections_at_once() {
    let board = large_board().await;
    let key = board.app.limited_key(1_000_000, 777, None).await;
    let request = format!(
        "GET /v1/sports/tennis/odds?limit=50 HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n"
    );
    let addr = board.app.addr;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let batch = request.repeat(10);
        clients.spawn(async move {
            let mut raw = Raw::connect(addr).await;
            let mut granted = 0;
            for _ in 0..10 {
                raw.send(batch.as_bytes()).await;
                for _ in 0..10 {
                    let status = raw.read_answer().await.unwrap().status;
                    assert!(status == 200 || status == 429, "{status}");
                    granted += usize::from(status == 200);
                }
            }
            granted
        });
    }
    assert_eq!(clients.join_all().await.into_iter().sum::<usize>(), 777);
}

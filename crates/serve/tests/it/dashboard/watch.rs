//! Watching a board: changes arrive without a reload, are computed once for all viewers, and no viewer delays another.

use std::sync::atomic::Ordering;
use std::time::Duration;

use accounts::PeopleRules;
use domain::World;
use reqwest::{Method, Response};
use serde_json::Value;
use web::WebSettings;

use super::board::live;
use crate::harness::{Answer, Builder, Raw, START, TestApp, at, line};
use crate::test_market::{ANN, BEA, TestMarket};

const PATIENCE: Duration = Duration::from_secs(60);

async fn kept(pages: WebSettings) -> TestMarket {
    kept_on(TestApp::builder(), pages).await
}

async fn kept_on(builder: Builder, pages: WebSettings) -> TestMarket {
    let app = builder.pages(PeopleRules::default(), pages).keeping_pages().start().await;
    TestMarket::on(app).await
}

/// Frames of a stream: id, event, data.
struct Stream {
    response: Response,
    held: Vec<u8>,
}

impl Stream {
    async fn open(app: &TestApp, path: &str, last: Option<&str>) -> Self {
        let mut request = app.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let mut stream = Self { response, held: Vec::new() };
        // Never `retry` alone: some clients treat that as an event.
        assert_eq!(stream.frame().await.unwrap(), "retry: 2000\nevent: hello\ndata: {}");
        stream
    }

    /// The next block that is not a comment.
    async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.held.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = self.held.drain(..end + 2).take(end).collect();
                if frame.starts_with(b":") {
                    continue;
                }
                return Some(String::from_utf8(frame).unwrap());
            }
            let chunk =
                tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("a frame");
            // A chunk may end within a character.
            self.held.extend_from_slice(&chunk.unwrap()?);
        }
    }

    async fn next(&mut self) -> (String, String, Value) {
        let frame = self.frame().await.expect("a frame");
        let field = |name: &str| {
            let line = frame.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {frame}")).to_owned()
        };
        let data = serde_json::from_str(&field("data: ")).unwrap();
        (field("id: "), field("event: "), data)
    }
}

/// The cursor of the screen in a page.
async fn cursor_of(app: &TestApp, path: &str) -> String {
    let page = app.get_without_key(path).await;
    page.text().split("data-cursor=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

async fn move_to(board: &TestMarket, price: i32) {
    board.push(&[line::moneyline("bout-1", "fanduel", (ANN, price), (BEA, -140))]).await;
    board.app.publish().await;
}

const PATH: &str = "/board/mma?market=moneyline&format=american&region=us";
const STREAM: &str = "/board/mma/stream?market=moneyline&format=american&region=us";

#[tokio::test]
async fn a_move_comes_as_a_small_delta_to_everybody_who_watches() {
    let board = kept(live()).await;
    let since = cursor_of(&board.app, PATH).await;
    let from = format!("{STREAM}&since={since}");
    let (mut one, mut other) =
        (Stream::open(&board.app, &from, None).await, Stream::open(&board.app, &from, None).await);
    move_to(&board, 131).await;
    let (id, event, delta) = one.next().await;
    assert_eq!(
        (event.as_str(), &(id.clone(), event.clone(), delta.clone())),
        ("delta", &other.next().await)
    );
    let bout = board.bout_id().await;
    // FanDuel is the third column of this region; the price rose and is the best now.
    let moved = serde_json::json!([bout, 0, 2, "p b", "", "+131", "up"]);
    assert!(delta["cells"].as_array().unwrap().contains(&moved), "{delta}");
    let best = serde_json::json!([["+131", "FanDuel"], ["+125", "bet365"], ["+125", "DraftKings"]]);
    assert_eq!(delta["best"][0], serde_json::json!([bout, 0, best]));
    assert_eq!((delta["events"].as_array().unwrap().len(), &delta["order"]), (0, &Value::Null));
    assert!(delta.to_string().len() < 1000, "{delta}");
    // A client that returns gets the missed changes, or nothing if it is up to date; after a long absence it reloads
    // the page.
    move_to(&board, 118).await;
    let (_, _, second) = one.next().await;
    let is_down = |cell: &&Value| cell[6] == "down";
    assert_eq!(second["cells"].as_array().unwrap().iter().find(is_down).unwrap()[5], "+118");
    let mut back = Stream::open(&board.app, STREAM, Some(&id)).await;
    assert_eq!(back.next().await.2, second);
    // All missed changes come as one step.
    let mut late = Stream::open(&board.app, STREAM, Some(&since)).await;
    let (_, event, sum) = late.next().await;
    assert_eq!(event, "delta");
    assert!(sum["cells"].as_array().unwrap().iter().any(|cell| cell[5] == "+118"), "{sum}");
    let mut stranger = Stream::open(&board.app, STREAM, Some("12345")).await;
    assert_eq!(stranger.next().await.1, "whole");
    let metrics = board.app.get_operator("/metrics").await;
    assert!(metrics.text().contains("\nlinesman_board_watchers 5\n"), "{}", metrics.text());
}

/// Not one event for every step of the way there.
#[tokio::test]
async fn a_browser_that_was_away_for_half_a_day_is_told_once_to_reload_and_no_past_is_made_again() {
    let open = async |start| {
        let app = TestApp::builder().sandbox(7).starting_at(start).start().await;
        app.publish_both().await;
        app
    };
    let earlier = open(at(START).minus(Duration::from_secs(12 * 3600))).await;
    let old = cursor_of(&earlier, PATH).await;
    let app = open(at(START)).await;
    let history = &app.service.api.world(World::Sandbox).history;
    let rebuilds = || history.stats.rebuilds.load(Ordering::Relaxed);
    let before = rebuilds();
    let mut stream = Stream::open(&app, STREAM, Some(&old)).await;
    let (cursor, event, _) = stream.next().await;
    assert_eq!((event.as_str(), &cursor), ("whole", &cursor_of(&app, PATH).await));
    app.publish_both().await;
    assert_eq!(stream.next().await.0, cursor_of(&app, PATH).await);
    assert_eq!(rebuilds(), before);
}

#[tokio::test]
async fn events_that_come_and_go_come_as_rows_that_are_text() {
    let board = kept(live()).await;
    let since = cursor_of(&board.app, PATH).await;
    let mut stream = Stream::open(&board.app, &format!("{STREAM}&since={since}"), None).await;
    let home = "<script>alert(1)</script> \u{5e9}\u{5dc}\u{5d5}\u{5dd}";
    board
        .push(&[
            line::event("evil", "mma", home, "Somebody Else"),
            line::moneyline("evil", "fanduel", (home, 150), ("Somebody Else", -170)),
        ])
        .await;
    board.app.publish().await;
    let (_, _, delta) = stream.next().await;
    let html = delta["events"][0][1].as_str().unwrap();
    assert!(html.starts_with("<tbody id=\"evt_") && !html.contains("<script>"), "{html}");
    assert!(html.contains("alert(1)"));
    assert_eq!(delta["order"].as_array().unwrap().len(), 3);
    board.push(&[serde_json::json!({ "type": "remove", "ref": "evil" })]).await;
    board.app.publish().await;
    let (_, _, delta) = stream.next().await;
    assert_eq!(delta["order"].as_array().unwrap().len(), 2);
    // One more bookmaker changes the columns of the table.
    board.push(&[line::moneyline("bout-1", "betmgm", (ANN, 120), (BEA, -140))]).await;
    board.app.publish().await;
    assert_eq!(stream.next().await.1, "whole");
}

#[tokio::test]
async fn places_are_bounded_and_come_free_again() {
    let board = kept(WebSettings { board_watchers_max: 2, ..live() }).await;
    let (first, second) = (
        Stream::open(&board.app, STREAM, None).await,
        Stream::open(&board.app, STREAM, None).await,
    );
    let third = Answer::of(board.app.request(Method::GET, STREAM)).await;
    assert_eq!(third.refusal(), (503, "unavailable".to_owned()));
    assert!(third.header("retry-after").is_some());
    drop((first, second));
    let begun = std::time::Instant::now();
    while board.app.request(Method::GET, STREAM).send().await.unwrap().status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "no place came free");
    }
    let metrics = board.app.get_operator("/metrics").await;
    let refused = "\nlinesman_board_watchers_refused_total ";
    let count = metrics.text().split(refused).nth(1).unwrap().split('\n').next().unwrap();
    assert!(count.parse::<u32>().unwrap() >= 1);
}

#[tokio::test]
async fn nobody_takes_all_places_alone() {
    let pages = WebSettings { board_watchers_per_source_max: 2, ..live() };
    let board = kept_on(TestApp::builder().behind_a_proxy(), pages).await;
    let ask = async |from: &str| {
        let request = board.app.request(Method::GET, STREAM).header("x-forwarded-for", from);
        request.send().await.unwrap()
    };
    let (first, second) = (ask("203.0.113.9").await, ask("203.0.113.9").await);
    assert_eq!(
        (first.status(), second.status()),
        (200.try_into().unwrap(), 200.try_into().unwrap())
    );
    let third = ask("203.0.113.9").await;
    assert_eq!(third.status(), 503);
    assert!(third.headers().contains_key("retry-after"));
    let other = ask("198.51.100.1").await;
    assert_eq!(other.status(), 200, "there are places for others");
    // One customer's network in IPv6 is one source.
    let same = [ask("2001:db8::1").await, ask("2001:db8::2").await, ask("2001:db8::3").await];
    assert_eq!(same.map(|answer| answer.status().as_u16()), [200, 200, 503]);
    drop((first, second));
    let begun = std::time::Instant::now();
    while ask("203.0.113.9").await.status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "no place came free");
    }
}

/// Every view of a sport.
fn views() -> Vec<String> {
    let of_bouts = |totals| vec!["moneyline", "spread", totals];
    let sports = [
        ("mma", of_bouts("total_rounds")),
        ("boxing", of_bouts("total_rounds")),
        ("american_football", of_bouts("total_points")),
        ("tennis", of_bouts("total_points")),
        (
            "golf",
            vec!["outright", "top5", "top10", "top20", "three_ball", "matchup", "round_leader"],
        ),
    ];
    let mut views = Vec::new();
    for (sport, markets) in sports {
        for market in markets {
            for format in ["american", "decimal", "fractional"] {
                for region in ["all", "us", "uk", "eu", "au"] {
                    views.push(format!(
                        "/board/{sport}/stream?market={market}&format={format}&region={region}"
                    ));
                }
            }
        }
    }
    views
}

#[tokio::test]
async fn views_that_are_watched_are_bounded_and_those_there_take_more_watchers() {
    const VIEWS_MAX: usize = 256;
    let board = kept(WebSettings { board_watchers_per_source_max: 1000, ..live() }).await;
    let views = views();
    let (first, others) = views.split_at(VIEWS_MAX);
    let mut streams = Vec::new();
    for view in first {
        streams.push(Stream::open(&board.app, view, None).await);
    }
    let refused = board.app.request(Method::GET, &others[0]).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    // Opening another page takes no slot from the viewers of those.
    let page = others[0].replace("/stream", "");
    assert_eq!(board.app.get_without_key(&page).await.status, 200);
    let again = Stream::open(&board.app, &first[0], None).await;
    // Without its only viewer a view ends, and another can be watched.
    drop((streams.pop(), again));
    let begun = std::time::Instant::now();
    while board.app.request(Method::GET, &others[0]).send().await.unwrap().status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "no view came free");
    }
}

#[tokio::test]
async fn who_does_not_read_is_let_go_and_nobody_waits_for_them() {
    let board = kept(live()).await;
    let mut quick = Stream::open(&board.app, STREAM, None).await;
    assert_eq!(quick.next().await.1, "whole");
    // Not read any more. Large frames fill the socket buffers of both sides.
    let mut slow = Raw::connect_narrow(board.app.addr).await;
    slow.send(format!("GET {STREAM} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await;
    let dropped = async || {
        let metrics = board.app.get_operator("/metrics").await;
        let name = "\nlinesman_board_watchers_dropped_total ";
        let count =
            metrics.text().split(name).nth(1).unwrap().split('\n').next().unwrap().to_owned();
        count.parse::<u32>().unwrap()
    };
    let crowd: Vec<String> = (0..90).map(|n| format!("Crowd{n} Member{n}")).collect();
    let begun = std::time::Instant::now();
    let (mut round, mut deltas) = (0, 0);
    while dropped().await == 0 {
        assert!(begun.elapsed() < 3 * PATIENCE, "nobody was let go in {round} rounds");
        let mut lines = Vec::new();
        for (n, name) in crowd.iter().enumerate() {
            let (home, away) = (format!("{name} {}", "x".repeat(80)), format!("Other{n} Side{n}"));
            if round == 0 {
                lines.push(line::event(&format!("c-{n}"), "mma", &home, &away));
            }
            // Alternating with and without a draw: the rows differ, so that whole events are sent.
            let mut outcomes = vec![
                serde_json::json!({ "name": home, "price": 150 + round }),
                serde_json::json!({ "name": away, "price": -180 }),
            ];
            if round % 2 == 0 {
                outcomes.push(serde_json::json!({ "name": "Draw", "price": 900 }));
            }
            let outcomes = serde_json::json!(outcomes);
            lines.push(line::odds(
                &format!("c-{n}"),
                "fanduel",
                "moneyline",
                "american",
                &outcomes,
            ));
        }
        board.push(&lines).await;
        board.app.publish().await;
        // The page is reloaded when a bookmaker becomes late: its column moves to the end.
        match quick.next().await.1.as_str() {
            "delta" => deltas += 1,
            other => assert_eq!(other, "whole"),
        }
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(10)).await;
        tokio::time::resume();
        round += 1;
    }
    assert!(round > 1 && deltas > 0);
}

#[tokio::test]
async fn a_service_that_stops_lets_its_watchers_go() {
    let board = kept(live()).await;
    let mut stream = Stream::open(&board.app, STREAM, None).await;
    assert_eq!(stream.next().await.1, "whole");
    let stopping = tokio::spawn(async move { board.app.stop().await });
    // As for every stream: not all clients reconnect at once.
    let end = stream.frame().await.unwrap();
    assert!(end.starts_with("retry: ") && end.contains("\"code\":\"unavailable\""), "{end}");
    assert_eq!(stream.frame().await, None);
    stopping.await.unwrap();
}

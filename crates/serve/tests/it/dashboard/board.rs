//! The board: it shows the same as the API, in small pages, escaped, and the same for all visitors.

use std::time::{Duration, Instant};

use accounts::PeopleRules;
use domain::World;
use engine::Compact;
use serde_json::{Value, json};
use web::WebSettings;

use super::browser::{Browser, between};
use crate::harness::{Answer, TestApp, line};
use crate::test_market::{ANN, BEA, TestMarket};

/// Pages that show the live market, which tests can push to.
pub(crate) fn live() -> WebSettings {
    WebSettings { board: Some(World::Live), ..WebSettings::default() }
}

pub(crate) async fn live_board() -> TestMarket {
    let app = TestApp::builder().pages(PeopleRules::default(), live()).start().await;
    TestMarket::on(app).await
}

/// The cells of one outcome's row: class and text.
pub(crate) fn cells(page: &str, name: &str) -> Vec<(String, String)> {
    let row = page.split("<tr class=\"o").find(|row| row.contains(&format!("<bdi>{name}</bdi>")));
    let row = row.unwrap_or_else(|| panic!("no row of {name}")).split("</tr>").next().unwrap();
    row.split("<td class=\"p")
        .skip(1)
        .map(|cell| {
            let (class, rest) = cell.split_once("\">").unwrap();
            let text = rest.split("</td>").next().unwrap();
            (class.trim().to_owned(), text.replace("<i>", "").replace("</i>", " "))
        })
        .collect()
}

fn texts(page: &str, name: &str) -> Vec<String> {
    cells(page, name).into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn the_board_shows_the_prices_that_the_api_answers_and_marks_the_best() {
    let board = live_board().await;
    let mut browser = Browser::new(&board.app);
    let page = browser.get("/board/mma?format=american").await;
    // 888sport, bet365, DraftKings, FanDuel, Sportsbet.
    assert_eq!(texts(page.text(), ANN), ["+118", "+125", "+125", "+120", "+119"]);
    let marked: Vec<bool> = cells(page.text(), ANN).iter().map(|(class, _)| class == "b").collect();
    assert_eq!(marked, [false, true, true, false, false]);
    let best: Vec<String> = cells(page.text(), BEA)
        .into_iter()
        .filter(|(class, _)| class == "b")
        .map(|(_, text)| text)
        .collect();
    assert_eq!(best, ["\u{2212}138"]);
    let decimal = browser.get("/board/mma").await;
    // A column has one number of decimal places: DraftKings quotes two, the other columns are computed.
    assert_eq!(texts(decimal.text(), ANN), ["2.180", "2.250", "2.25", "2.200", "2.190"]);
    let fractional = browser.get("/board/mma?format=fractional&region=us").await;
    assert_eq!(texts(fractional.text(), ANN), ["5/4", "5/4", "6/5"]);
    let spread = browser.get("/board/tennis?market=spread&format=american").await;
    assert_eq!(texts(spread.text(), "Ingrid Ivanova"), ["\u{2212}110"]);
    let row = "<bdi>Ingrid Ivanova</bdi> <span class=\"line\">\u{2212}3.5</span>";
    assert!(spread.text().contains(row), "{}", spread.text());
    assert!(!page.text().contains("<script>") && page.text().contains("type=\"module\""));
}

/// C7: a cell without a price shows its state as text, on the board and on an event's page.
#[tokio::test]
async fn a_cell_without_a_price_says_why() {
    let board = live_board().await;
    let other = board.app.any_feed().await;
    let (carla, dora) = ("Carla Cruz", "Dorothea Dunn");
    let lines = [
        line::event("x-1", "mma", ANN, BEA),
        line::moneyline("x-1", "pinnacle", (ANN, 121), (BEA, -141)),
    ];
    board.app.push_all(&other, &lines).await;
    board.push(&[line::odds("bout-2", "fanduel", "moneyline", "american", &json!([]))]).await;
    let odds = line::moneyline("bout-2", "bet365", (carla, -290), (dora, 230));
    board.push(&[odds]).await;
    board.app.publish().await;
    let mut browser = Browser::new(&board.app);
    let page = browser.get("/board/mma?format=american").await;
    // 888sport, bet365, DraftKings, FanDuel, Pinnacle, Sportsbet.
    let row = cells(page.text(), carla);
    let [s888, bet365, draftkings, fanduel, pinnacle, _] = &row[..] else { panic!("{row:?}") };
    let words = |class: &str, text: &str| (class.to_owned(), text.to_owned());
    assert_eq!((s888, draftkings), (&words("w", "not offered"), &words("w", "not offered")));
    assert_eq!(bet365.1, "\u{2212}290");
    assert_eq!((fanduel.0.as_str(), fanduel.1.starts_with("suspended since ")), ("w x", true));
    assert_eq!(pinnacle, &words("w", "not listed"));
    // A bookmaker that has the market, but not this line or this name.
    let line = |point: f64| {
        json!([
            { "name": "Over", "price": -115, "point": point },
            { "name": "Under", "price": -105, "point": point },
        ])
    };
    let totals = line::odds("bout-1", "bet365", "total_rounds", "american", &line(1.5));
    let field = line::odds(
        "open-1",
        "bet365",
        "outright",
        "american",
        &json!([{ "name": "Max Moor", "price": 850 }]),
    );
    board.push(&[totals, field]).await;
    board.app.publish().await;
    let page = browser.get("/board/mma?market=total_rounds&format=american").await;
    assert!(texts(page.text(), "Over").contains(&"other line".to_owned()), "{}", page.text());
    let page = browser.get("/board/golf?market=outright&format=american").await;
    assert_eq!(texts(page.text(), "Ned Noble"), ["not priced", "+1400"]);
}

#[tokio::test]
async fn suspended_and_late_prices_are_shown_as_such_and_are_never_best() {
    let board = live_board().await;
    let suspended = json!({
        "type": "odds", "ref": "bout-1", "bookmaker": "bet365", "market": "moneyline",
        "format": "decimal", "outcomes": [], "suspended": true,
    });
    board.push(&[suspended]).await;
    board.app.advance(Duration::from_secs(200));
    let again = |book, price| line::moneyline("bout-1", book, (ANN, price), (BEA, -139));
    board.push(&[again("sportsbet", 101)]).await;
    board.app.publish().await;
    let mut browser = Browser::new(&board.app);
    let page = browser.get("/board/mma?format=american").await;
    // Sportsbet, then the late ones: 888sport, bet365, DraftKings, FanDuel.
    let late_ones = cells(page.text(), ANN);
    assert_eq!(late_ones[2].0, "w x");
    assert!(late_ones[2].1.starts_with("suspended since 12:00"), "{late_ones:?}");
    let (class, text) = &late_ones[3];
    assert_eq!((class.as_str(), text.ends_with("+125")), ("s", true), "{text}");
    assert!(text.starts_with('3'), "its age in minutes: {text}");
    let only = (String::new(), "+101".to_owned());
    assert_eq!(late_ones[0], only, "the only one that is not late is better than none");
    assert!(page.text().contains("<span><b>+101</b><small>Sportsbet</small></span></td>"));
    board.push(&[again("fanduel", 100)]).await;
    board.app.publish().await;
    let page = browser.get("/board/mma?format=american").await;
    let current = cells(page.text(), ANN).into_iter().take(2).collect::<Vec<_>>();
    assert_eq!(current, [(String::new(), "+100".to_owned()), ("b".to_owned(), "+101".to_owned())]);
}

#[tokio::test]
async fn each_line_has_its_own_rows_and_its_own_best_price() {
    let board = live_board().await;
    let (home, away) = ("Kingston Kites", "Lancaster Larks");
    let spread = |book, point: f64, price: f64| {
        let outcomes = json!([
            { "name": home, "price": price, "point": point },
            { "name": away, "price": 1.9, "point": -point },
        ]);
        line::odds("game-1", book, "spread", "decimal", &outcomes)
    };
    let pushed = [("draftkings", -3.5, 1.952), ("bet365", -2.5, 1.8), ("888sport", -3.5, 1.9)];
    board.push(&pushed.map(|(book, point, price)| spread(book, point, price))).await;
    board.app.publish().await;
    let page = Browser::new(&board.app).get("/board/american_football?market=spread").await;
    let rows: Vec<&str> = page.text().split("<tr class=\"o").skip(1).collect();
    let line = |at: usize| between(rows[at], "<span class=\"line\">", "</span>").unwrap();
    let best = |at: usize| between(rows[at], "<td class=\"best\">", "</span>").unwrap();
    // The most common line comes first.
    assert_eq!([0, 1, 2, 3].map(line), ["\u{2212}3.5", "+3.5", "\u{2212}2.5", "+2.5"]);
    assert_eq!(best(0), "<span><b>1.952</b><small>DraftKings</small>");
    assert_eq!(best(2), "<span><b>1.800</b><small>bet365</small>");
    // 888sport, bet365, DraftKings, FanDuel: one number of decimal places in each column.
    assert_eq!(texts(rows[0], home), ["1.90", "other line", "1.952", "1.909"]);
    assert_eq!(texts(rows[3], away), ["other line", "1.90", "other line", "other line"]);
    assert_eq!(texts(rows[1], away), ["1.90", "other line", "1.900", "1.909"]);
}

#[tokio::test]
async fn events_and_bookmakers_are_chosen_by_the_address() {
    let board = live_board().await;
    let mut browser = Browser::new(&board.app);
    let later = browser.get("/board/mma?day=2026-11-29").await;
    assert!(later.text().contains("Carla Cruz") && !later.text().contains(ANN));
    // Links to other markets and formats keep the day.
    assert!(later.text().contains("format=american&#38;region=all&#38;day=2026-11-29\""));
    assert!(browser.get("/board/mma?day=1999-01-01").await.text().contains("Nothing found"));
    let all = browser.get("/board/mma").await;
    assert!(all.text().contains("<option>Cup</option>"), "{}", all.text());
    assert!(browser.get("/board/mma?competition=Cup").await.text().contains(ANN));
    let none = browser.get("/board/mma?competition=No+such+league").await;
    assert!(none.text().contains("Nothing found") && !none.text().contains(ANN));
    let mine = browser.get("/board/mma?format=american&bookmaker=fanduel&bookmaker=888sport").await;
    assert_eq!(texts(mine.text(), ANN), ["+118", "+120"]);
    let marked = cells(mine.text(), ANN).last().unwrap().clone();
    assert_eq!(marked, ("b".to_owned(), "+120".to_owned()), "the best of those that are chosen");
    assert!(mine.text().contains("Bookmakers: 2 chosen"));
    assert!(mine.text().contains("stream?market=moneyline&#38;format=american&#38;region=all"));
    let unknown = browser.get("/board/mma?bookmaker=nobody").await;
    assert_eq!(texts(unknown.text(), ANN).len(), 5);
}

#[tokio::test]
async fn a_board_that_is_not_there_leads_to_the_board_and_not_to_the_sign_in() {
    let board = live_board().await;
    for path in ["/board/chess", "/board/event/nonsense", "/board/event/evt_00000000000"] {
        let page = Browser::new(&board.app).get(path).await;
        assert_eq!(page.status, 404, "{path}");
        let main = between(page.text(), "<main", "</main>").unwrap();
        assert!(main.contains("<h1>Page not found</h1>") && main.contains("href=\"/board\""));
        assert!(!main.contains("/signin"), "{main}");
    }
}

#[tokio::test]
async fn an_events_page_has_margins_fair_chances_and_the_path_of_each_price() {
    let app =
        TestApp::builder().pages(PeopleRules::default(), live()).keeping_pages().start().await;
    let board = TestMarket::on(app).await;
    // Current prices are noted asynchronously, and a price that was not noted counts as never shown.
    let begun = Instant::now();
    while board.app.get_operator("/metrics").await.text().contains("linesman_board_paths 0\n") {
        assert!(begun.elapsed() < Duration::from_secs(60), "no price was noted");
    }
    for price in [130, 140] {
        board.push(&[line::moneyline("bout-1", "fanduel", (ANN, price), (BEA, -140))]).await;
        board.app.publish().await;
    }
    let id = board.bout_id().await;
    let path = format!("/board/event/{id}?format=american");
    let mut browser = Browser::new(&board.app);
    let mut page = browser.get(&path).await;
    let begun = Instant::now();
    while !page.text().contains("class=\"lines\"") || !page.text().contains("+120</td>") {
        assert!(begun.elapsed() < Duration::from_secs(60), "no path: {}", page.text());
        board.app.publish().await;
        page = browser.get(&path).await;
    }
    // FanDuel opened at +120 and is at +140 now; with -140 on the other side its prices add up to 100.0 %.
    let row = page.text().split("<tr>").find(|row| row.contains("</svg>FanDuel")).unwrap();
    assert!(row.contains("<td class=\"num\">+120</td><td class=\"num\">+140</td>"), "{row}");
    assert!(row.contains("0.0\u{a0}%") && row.contains("41.7\u{a0}%"), "{row}");
    let lines = between(page.text(), "<g class=\"lines\">", "</g>").unwrap();
    assert!(lines.matches("<path").count() >= 5, "{lines}");
    let fair: Vec<&str> = page.text().split("<li><span class=\"n\">").skip(1).collect();
    assert_eq!(fair.len(), 2);
    assert!(
        browser.get(&format!("{path}&outcome=a")).await.text().contains("Beatrix Bowen</bdi></h2>")
    );
    assert_eq!(browser.get("/board/event/evt_00000000000").await.status, 404);
    assert_eq!(browser.get("/board/event/nonsense").await.status, 404);
}

/// The board's own memory begins with its process, and here it notes nothing: earlier prices come from history alone.
#[tokio::test]
async fn an_events_page_has_the_opening_price_from_before_a_restart() {
    let builder = || TestApp::builder().archived().pages(PeopleRules::default(), live());
    let market = TestMarket::on(builder().start().await).await;
    market.push(&[line::moneyline("bout-1", "fanduel", (ANN, 140), (BEA, -140))]).await;
    market.app.publish().await;
    assert!(market.app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    let path = format!("/board/event/{}?format=american", market.bout_id().await);
    let (now, dir) = (market.app.now(), market.app.stop().await);

    let app = builder().starting_at(now).on(dir).start().await;
    let row = async |app: &TestApp| {
        let page = Browser::new(app).get(&path).await;
        let row = page.text().split("<tr>").find(|row| row.contains("</svg>FanDuel"));
        row.unwrap_or_else(|| panic!("{}", page.text())).to_owned()
    };
    let (opened, begun) =
        ("<td class=\"num\">+120</td><td class=\"num\">+140</td>", Instant::now());
    // A page does not wait long for history.
    while !row(&app).await.contains(opened) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", row(&app).await);
        app.publish().await;
    }
    let (now, dir) = (app.now(), app.stop().await);

    let app = builder().without_history().starting_at(now).on(dir).start().await;
    let unknown = row(&app).await;
    assert!(unknown.contains("+140</td>") && !unknown.contains("+120"), "{unknown}");
}

#[tokio::test]
async fn value_and_arbitrage_are_shown_with_the_age_of_every_price() {
    let board = live_board().await;
    // Two others quote about even; one pays 2.5 for Ann.
    let prices = |price: f64, other: f64| json!([{ "name": ANN, "price": price }, { "name": BEA, "price": other }]);
    let spread = |book, price, other| {
        line::odds("bout-1", book, "moneyline", "decimal", &prices(price, other))
    };
    board.push(&[spread("betmgm", 1.9, 1.95), spread("caesars", 2.5, 1.5)]).await;
    board.app.publish().await;
    let mut browser = Browser::new(&board.app);
    let page = browser.get("/board/mma/value?region=us").await;
    assert_eq!(page.status, 200);
    let arbitrage = between(page.text(), "id=\"arbitrage\"", "</section>").unwrap();
    assert!(arbitrage.contains("<b>2.50</b> Caesars"), "{arbitrage}");
    assert!(arbitrage.contains("stakes may be returned"), "{arbitrage}");
    let value = between(page.text(), "id=\"value\"", "</section>").unwrap();
    assert!(value.contains("<b>2.50</b> Caesars") && value.contains(" s old</small>"), "{value}");
    assert!(page.text().contains("/board/tennis/value?"));
    assert!(browser.get("/board/mma").await.text().contains("/board/mma/value?"));
    assert_eq!(browser.get("/board/chess/value").await.status, 404);
    // The event's page has the fair price by each method.
    let id = board.bout_id().await;
    let event = browser.get(&format!("/board/event/{id}")).await;
    let methods = between(event.text(), "Fair price by method", "</table>").unwrap();
    for method in ["Power", "Multiplicative", "Additive", "Shin", "Odds ratio"] {
        assert!(methods.contains(method), "{methods}");
    }
    assert_eq!(methods.matches("<td class=\"num\">").count(), 10, "{methods}");
}

#[tokio::test]
async fn golf_shows_favourites_first_and_the_score_by_periods_is_on_the_page() {
    let board = live_board().await;
    let players: Vec<Value> = (0..60)
        .map(|n| json!({ "name": format!("Player Number{n}"), "price": 500 + 100 * ((n * 37) % 60) }))
        .collect();
    let outright = line::odds("open-1", "draftkings", "outright", "american", &json!(players));
    let score = json!({
        "type": "score", "ref": "bout-1", "status": "live", "home_score": 0, "away_score": 1,
        "periods": [{ "number": 1, "home_score": 9, "away_score": 10 }],
    });
    board.push(&[outright, score]).await;
    board.app.publish().await;
    let mut browser = Browser::new(&board.app);
    let page = browser.get("/board/golf?format=american").await;
    let prices: Vec<i32> = page
        .text()
        .split("<td class=\"best\"><span><b>+")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(prices.len(), 20);
    assert!(prices.is_sorted(), "{prices:?}");
    assert!(page.text().contains(">42 more</a>"));
    let golf = board.event_of("golf", "Harbour Open").await["id"].as_str().unwrap().to_owned();
    let whole = browser.get(&format!("/board/event/{golf}")).await;
    assert_eq!(whole.text().matches("<tr class=\"o").count(), 62);
    let bout = browser.get(&format!("/board/event/{}", board.bout_id().await)).await;
    let periods = between(bout.text(), "<table class=\"periods\">", "</table>").unwrap();
    assert!(periods.contains("<td>9</td>") && periods.contains("<td>10</td>"), "{periods}");
    assert!(bout.text().contains("0\u{2013}1"));
}

/// Names with markup and text direction.
const HOSTILE: [&str; 2] =
    ["<script>alert(1)</script> O'Neil \"Q\" & Co", "\u{5e9}\u{5dc}\u{5d5}\u{5dd} </tbody><b>"];

#[tokio::test]
async fn whatever_a_name_has_in_it_stays_text() {
    let board = live_board().await;
    let [home, away] = HOSTILE;
    board
        .push(&[
            line::event("evil", "mma", home, away),
            line::moneyline("evil", "fanduel", (home, 150), (away, -170)),
        ])
        .await;
    board.app.publish().await;
    let id = board.event_of("mma", home).await["id"].as_str().unwrap().to_owned();
    let mut browser = Browser::new(&board.app);
    for path in ["/board/mma", "/board/mma?q=%3Cscript%3E", &format!("/board/event/{id}")] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        let text = page.text();
        assert!(!text.contains("<script>") && !text.contains("</tbody><b>"), "{path}");
        assert!(
            text.contains("&#60;script&#62;alert(1)") || text.contains("&lt;script&gt;alert(1)")
        );
        // Text that changes the writing direction is kept inside its own element.
        for (at, _) in text.match_indices('\u{5e9}') {
            let before = &text[..at];
            assert!(before.rfind("<bdi>") > before.rfind("</bdi>"), "{path}: {before}");
        }
    }
}

#[tokio::test]
async fn a_market_of_a_hundred_events_and_twelve_bookmakers_is_small() {
    let board = live_board().await;
    let books: Vec<String> = {
        let catalogue = &board.app.service.api.catalogue;
        catalogue.bookmakers().take(12).map(|(_, own)| own.key.to_string()).collect()
    };
    assert_eq!(books.len(), 12);
    let mut lines = Vec::new();
    for n in 0..100 {
        let (home, away) = (format!("Homer{n} Longname{n}"), format!("Visitor{n} Othername{n}"));
        let reference = format!("big-{n}");
        lines.push(line::event(&reference, "boxing", &home, &away));
        for (at, book) in books.iter().enumerate() {
            let price = 110 + i32::try_from((n * 7 + at * 13) % 90).unwrap();
            lines.push(line::moneyline(&reference, book, (&home, price), (&away, -price - 15)));
        }
    }
    board.push(&lines).await;
    board.app.publish().await;
    for encoding in ["br", "gzip", "zstd"] {
        let headers = [("accept-encoding", encoding)];
        let begun = Instant::now();
        let page = board.app.get_with("/board/boxing", "", &headers).await;
        let first = begun.elapsed();
        let begun = Instant::now();
        let again = board.app.get_with("/board/boxing", "", &headers).await;
        let second = begun.elapsed();
        assert_eq!((page.status, page.header("content-encoding")), (200, Some(encoding)));
        println!("{encoding}: {} bytes, {first:?}, again {second:?}", page.body.len());
        assert!(page.body.len() < 150_000, "{encoding}: {}", page.body.len());
        assert_eq!(page.body, again.body);
        let tag = page.header("etag").unwrap().to_owned();
        let headers = [("accept-encoding", encoding), ("if-none-match", &tag)];
        assert_eq!(board.app.get_with("/board/boxing", "", &headers).await.status, 304);
    }
    let plain = board.app.get_without_key("/board/boxing").await;
    assert_eq!(plain.text().matches("<tr class=\"o").count(), 200);
    assert!(plain.header("set-cookie").is_none(), "a public page sets no cookie");
}

#[tokio::test]
async fn whatever_the_address_asks_the_board_shows_something_sensible() {
    let board = live_board().await;
    let mut browser = Browser::new(&board.app);
    for query in ["?market=nonsense", "?format=<script>", "?region=mars", "?market=outright&x=y"] {
        let page = browser.get(&format!("/board/mma{query}")).await;
        assert_eq!(page.status, 200, "{query}");
        assert!(!page.text().contains("<script>\"") && !page.text().contains("nonsense"));
    }
    let found = browser.get("/board/mma?q=ARCHER").await;
    assert!(found.text().contains(ANN) && !found.text().contains("Carla Cruz"));
    assert!(browser.get("/board/mma?q=nobody").await.text().contains("Nothing found"));
    let long = format!("/board/mma?q={}", "x".repeat(5000));
    assert!(browser.get(&long).await.text().len() < 100_000);
    for nowhere in ["/board/chess", "/board/chess/stream", "/board/mma/x"] {
        assert_eq!(browser.get(nowhere).await.status, 404, "{nowhere}");
    }
    assert_eq!(browser.get("/board").await.header("location"), Some("/board/mma"));
}

#[tokio::test]
async fn a_page_of_somebody_signed_in_is_theirs_alone() {
    let board = live_board().await;
    let mut dev = Browser::developer(&board.app, "dev@example.com").await;
    let own = dev.get("/board/mma").await;
    assert!(own.text().contains("dev@example.com"));
    assert_eq!(own.header("cache-control"), Some("no-store"));
    let everybodys = Browser::new(&board.app).get("/board/mma").await;
    assert!(!everybodys.text().contains("dev@example.com"));
    assert_eq!(everybodys.header("cache-control"), Some("no-cache"));
}

#[tokio::test]
async fn the_board_is_of_the_world_that_the_operator_opened() {
    for (board, status) in [(None, 404), (Some(World::Live), 200)] {
        let pages = WebSettings { board, ..WebSettings::default() };
        let app = TestApp::builder().sandbox(7).pages(PeopleRules::default(), pages).start().await;
        app.publish_both().await;
        let mut browser = Browser::new(&app);
        let page = browser.get("/board/mma").await;
        assert_eq!(page.status, status);
        assert!(!page.text().contains("class=\"p"), "the live market is empty here");
        let stream = Answer::of(app.request(reqwest::Method::HEAD, "/board/mma/stream")).await;
        assert_eq!(stream.status, status);
        let in_bar = browser.get("/signin").await.text().contains("href=\"/board\"");
        assert_eq!(in_bar, board.is_some());
    }
}

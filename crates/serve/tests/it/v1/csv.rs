//! `format=csv`: the same answer as a table (K16, K17).

use serde_json::{Map, Value, json};

use crate::harness::{Answer, TestApp, line};
use crate::test_market::TestMarket;

const TYPE: &str = "text/csv; charset=utf-8";
const ODDS: &str = "event_id,sport_key,bookmaker,market,format,last_update,id,name,point,price";

/// Every operation with a table, in a sport of the sandbox that has results, and the lists that contain its rows. The
/// sports with values and middles depend on the prices.
const TABLES: [(&str, &[&str]); 9] = [
    ("american_football/odds?odds_format=decimal&limit=20", &["outcomes"]),
    ("tennis/scores?limit=500", &[]),
    ("golf/events", &[]),
    ("american_football/best?limit=20", &["lines", "outcomes"]),
    ("golf/fair?odds_format=fractional", &["lines", "outcomes"]),
    ("american_football/arbitrage?stake=200", &["arbitrages", "legs"]),
    ("{sport}/ev?min_books=1", &["values"]),
    ("{sport}/middles?max_cost=1", &["middles", "legs"]),
    ("boxing/coverage", &["books", "markets"]),
];

/// Parses RFC 4180 literally: lines end with CR LF, cells with commas, quoted ones may contain both.
pub(crate) fn parse(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                assert_eq!(cell, "", "a quote within a cell that is not quoted");
                loop {
                    match rest.next().expect("an end of the quoted cell") {
                        '"' if rest.next_if_eq(&'"').is_some() => cell.push('"'),
                        '"' => break,
                        c => cell.push(c),
                    }
                }
                assert!(matches!(rest.peek(), Some(',' | '\r')), "text after a quoted cell");
            }
            ',' => row.push(std::mem::take(&mut cell)),
            '\r' => {
                assert_eq!(rest.next(), Some('\n'));
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => {
                assert_ne!(c, '\n', "a line feed alone");
                cell.push(c);
            }
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "the last line does not end");
    rows
}

/// The rows of a JSON answer, each with its columns, as defined in K17.
fn rows(around: &Map<String, Value>, object: &Value, path: &[&str]) -> Vec<Map<String, Value>> {
    let mut own = Map::new();
    for (name, value) in object.as_object().unwrap() {
        match value {
            Value::Object(parts) => {
                own.extend(
                    parts.iter().map(|(part, value)| (format!("{name}.{part}"), value.clone())),
                );
            }
            Value::Array(_) if path.first() == Some(&name.as_str()) || name == "sources" => {}
            Value::Array(items) => {
                let text = |item: &Value| match item {
                    Value::Object(period) => {
                        format!("{}-{}", period["home_score"], period["away_score"])
                    }
                    Value::String(text) => text.clone(),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                        item.to_string()
                    }
                };
                own.insert(
                    name.clone(),
                    items.iter().map(text).collect::<Vec<_>>().join(",").into(),
                );
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                own.insert(name.clone(), value.clone());
            }
        }
    }
    let mut all = Map::new();
    for (name, value) in around {
        let name = if own.contains_key(name) { format!("line.{name}") } else { name.clone() };
        all.insert(name, value.clone());
    }
    all.extend(own);
    match path.split_first() {
        None => vec![all],
        Some((list, path)) => object[*list]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|inner| rows(&all, inner, path))
            .collect(),
    }
}

/// A value as a cell.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if text.starts_with(['=', '+', '-', '@']) => format!("'{text}"),
        Some(Value::String(text)) => text.clone(),
        // Without an exponent, as the service writes numbers.
        Some(Value::Number(number)) if number.is_f64() => number.as_f64().unwrap().to_string(),
        Some(other) => other.to_string(),
    }
}

/// Checks that a table has the rows of a JSON answer, with every field in a column of its name.
fn assert_same_rows(table: &Answer, json: &Value, path: &[&str]) {
    let lines = parse(table.text());
    let (header, lines) = lines.split_first().unwrap();
    let records = json.as_array().map_or_else(|| vec![json], |records| records.iter().collect());
    let rows: Vec<_> =
        records.into_iter().flat_map(|record| rows(&Map::new(), record, path)).collect();
    assert_eq!(lines.len(), rows.len());
    for (line, row) in lines.iter().zip(&rows) {
        let cells: Vec<String> = header.iter().map(|name| cell(row.get(name))).collect();
        assert_eq!(line, &cells);
        let missing: Vec<_> = row.keys().filter(|name| !header.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?} have no column");
    }
}

fn csv(path: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}format=csv")
}

/// The path in the first sport whose list is not empty.
async fn with_results(app: &TestApp, key: &str, path: &str, list: &str) -> String {
    for sport in ["american_football", "tennis", "mma", "boxing", "golf"] {
        let path = path.replace("{sport}", sport);
        let answer = app.get(&path, key).await;
        if answer.status == 200 && answer.json()[list] != json!([]) {
            return path;
        }
    }
    panic!("no sport has a result for {path}");
}

#[tokio::test]
async fn every_table_has_the_rows_of_its_json_and_costs_the_same() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    let event = app.get("/v1/sports/mma/events", &key).await.json()[0]["id"].clone();
    let explain = format!("mma/events/{}/explain?market=moneyline", event.as_str().unwrap());
    let tables = TABLES.into_iter().chain([(&*explain, &["books", "cells"][..])]);
    for (path, lists) in tables {
        let mut path = format!("/v1/sports/{path}");
        if path.contains("{sport}") {
            path = with_results(&app, &key, &path, lists[0]).await;
        }
        let json = app.get(&path, &key).await;
        assert_eq!((json.status, json.header("content-type")), (200, Some("application/json")));
        let table = app.get(&csv(&path), &key).await;
        assert_eq!((table.status, table.header("content-type")), (200, Some(TYPE)), "{path}");
        assert!(parse(table.text()).len() > 1, "{path} has no row");
        assert_same_rows(&table, &json.json(), lists);

        let cost = |answer: &Answer, before: u32| answer.requests_used() - before;
        let metered = u32::from(!path.contains("coverage") && !path.contains("explain"));
        assert_eq!(cost(&table, json.requests_used()), metered, "{path}");
        assert_eq!(table.header("x-cursor"), json.header("x-cursor"), "{path}");
        assert_ne!(table.header("etag"), json.header("etag"), "{path}");
        let held = [("If-None-Match", table.header("etag").unwrap())];
        let again = app.get_with(&csv(&path), &key, &held).await;
        assert_eq!((again.status, cost(&again, table.requests_used())), (304, 0), "{path}");
        let plain = app.get_with(&path, &key, &held).await;
        assert_eq!((plain.status, plain.body), (200, json.body), "{path}");
        let head = app.head(&csv(&path), &key).await;
        assert_eq!(head.header("content-type"), Some(TYPE), "{path}");
        assert_eq!(head.header("etag"), table.header("etag"), "{path}");
    }
}

#[tokio::test]
async fn odds_have_the_columns_of_the_contract_and_pages_keep_the_format() {
    let board = TestMarket::start().await;
    let whole = board.app.get(&csv("/v1/sports/mma/odds?regions=us,uk,eu,au"), &board.key).await;
    assert_eq!(whole.text().lines().next(), Some(ODDS));
    let (mut rows, mut pages) = (Vec::new(), 0);
    let mut next = Some(csv("/v1/sports/mma/odds?limit=2&regions=us,uk,eu,au"));
    while let Some(page) = next {
        let answer = board.app.get(&page, &board.key).await;
        assert_eq!(answer.header("content-type"), Some(TYPE), "{page}");
        let lines = parse(answer.text());
        assert_eq!(lines[0].join(","), ODDS, "every page is a table of its own");
        rows.extend(lines.into_iter().skip(1));
        pages += 1;
        next = answer.next_page();
        assert!(next.as_ref().is_none_or(|next| next.contains("format=csv")), "{next:?}");
    }
    assert!(pages > 2);
    assert_eq!(rows, parse(whole.text())[1..]);
}

#[tokio::test]
async fn json_is_what_is_answered_unless_the_link_says_otherwise() {
    let board = TestMarket::start().await;
    let plain = board.app.get("/v1/sports/mma/odds", &board.key).await;
    let named = board.app.get("/v1/sports/mma/odds?format=json", &board.key).await;
    assert_eq!((plain.header("etag"), &plain.body), (named.header("etag"), &named.body));
    let asked = [("Accept", "text/csv")];
    let accepted = board.app.get_with("/v1/sports/mma/odds", &board.key, &asked).await;
    assert_eq!(accepted.header("content-type"), Some("application/json"));
    assert_eq!(accepted.body, plain.body);
    let packed = [("Accept-Encoding", "gzip")];
    let packed = board.app.get_with(&csv("/v1/sports/mma/odds"), &board.key, &packed).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("content-type"), Some(TYPE));
}

#[tokio::test]
async fn an_empty_table_has_its_header_and_the_link_to_the_coverage() {
    let board = TestMarket::start().await;
    for (path, name) in [("odds", "event_id"), ("best", "sport"), ("fair", "sport")] {
        let answer =
            board.app.get(&csv(&format!("/v1/sports/mma/{path}?event_ids=x")), &board.key).await;
        let lines = parse(answer.text());
        assert_eq!((lines.len(), lines[0][0].as_str()), (1, name), "{path}");
        assert!(answer.header("link").unwrap().ends_with("/coverage>; rel=\"help\""), "{path}");
    }
}

#[tokio::test]
async fn errors_stay_json_and_what_has_no_rows_is_no_table() {
    let board = TestMarket::start().await;
    let answer = board.app.get("/v1/sports/mma/odds?format=csv&limit=501", &board.key).await;
    assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()));
    let answer = board.app.get("/v1/sports/chess/odds?format=csv", &board.key).await;
    assert_eq!(answer.refusal(), (404, "sport_not_found".to_owned()));
    let explain = "/v1/sports/mma/events/evt_unknown/explain?format=csv";
    let answer = board.app.get(explain, &board.key).await;
    assert_eq!(answer.refusal(), (404, "event_not_found".to_owned()));
    let cursor = board.app.get("/v1/sports/mma/odds", &board.key).await;
    let cursor = cursor.header("x-cursor").unwrap();
    let since = format!("/v1/sports/mma/odds?since={cursor}&format=");
    assert_eq!(board.app.get(&format!("{since}json"), &board.key).await.status, 204);
    let answer = board.app.get(&format!("{since}csv"), &board.key).await;
    assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()));
    assert!(answer.message().contains("cannot be combined with `since`"), "{}", answer.message());
    for path in ["/v1/sports", "/v1/books", "/v1/status", "/v1/history"] {
        let answer = board.app.get(&csv(path), &board.key).await;
        assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{path}");
        assert_eq!(answer.param().as_deref(), Some("format"), "{path}");
    }
}

#[tokio::test]
async fn a_text_that_a_spreadsheet_would_run_is_marked_and_one_with_commas_is_quoted() {
    let board = TestMarket::start().await;
    let competitions = [
        (
            "=HYPERLINK(\"http://example.com\",\"win\")",
            "'=HYPERLINK(\"http://example.com\",\"win\")",
        ),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+1 Night", "'+1 Night"),
        ("-Night", "'-Night"),
        ("Cup, \"second\" leg", "Cup, \"second\" leg"),
        ("Cup = 2", "Cup = 2"),
    ];
    let mut lines = Vec::new();
    for (number, (competition, _)) in competitions.iter().enumerate() {
        let (home, away) = (format!("Home{number} Holm"), format!("Away{number} Aster"));
        let commence = format!("2026-12-{:02}T03:00:00Z", number + 1);
        let mut event = line::event_at(&format!("f-{number}"), "boxing", &home, &away, &commence);
        event["competition"] = json!(competition);
        lines.push(event);
    }
    board.push(&lines).await;
    board.app.publish().await;
    let answer = board.app.get(&csv("/v1/sports/boxing/events"), &board.key).await;
    let table = parse(answer.text());
    let column = table[0].iter().position(|name| name == "competition").unwrap();
    let shown: Vec<&str> = table[2..].iter().map(|row| row[column].as_str()).collect();
    assert_eq!(shown, competitions.map(|(_, shown)| shown));
    assert!(answer.text().contains("\"'=HYPERLINK(\"\"http://example.com\"\",\"\"win\"\")\""));
}

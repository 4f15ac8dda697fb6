//! Parameters are strict, and error messages help (D4, D16).

use crate::test_market::TestMarket;

/// Query, the faulty parameter, and words that the message must contain.
type Bad<'a> = (&'a str, &'a str, &'a str);

async fn check_refused(board: &TestMarket, path: &str, cases: &[Bad<'_>]) {
    for (query, param, words) in cases {
        let answer = board.app.get(&format!("{path}?{query}"), &board.key).await;
        let shown: String = query.chars().take(60).collect();
        assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{path}?{shown}");
        assert_eq!(answer.param().as_deref(), Some(*param), "{path}?{shown}");
        assert!(answer.message().contains(words), "{path}?{shown}: {}", answer.message());
    }
}

/// Faults that are possible in every list.
const LIMITS: [Bad<'_>; 15] = [
    ("limit=0", "limit", "from 1 to 500"),
    ("limit=501", "limit", "from 1 to 500"),
    ("limit=-1", "limit", "from 1 to 500"),
    ("limit=+5", "limit", "from 1 to 500"),
    ("limit=%2B5", "limit", "from 1 to 500"),
    ("limit=1e2", "limit", "from 1 to 500"),
    ("limit=abc", "limit", "from 1 to 500"),
    ("limit=5.0", "limit", "from 1 to 500"),
    ("limit=01", "limit", "from 1 to 500"),
    ("limit=005", "limit", "from 1 to 500"),
    ("limit=0x10", "limit", "from 1 to 500"),
    ("limit=99999999999999999999999", "limit", "from 1 to 500"),
    ("limit=%D9%A5", "limit", "from 1 to 500"),
    ("limit=", "limit", "empty"),
    ("limit=5&limit=5", "limit", "more than once"),
];

const IDS: [Bad<'_>; 5] = [
    ("event_ids=", "event_ids", "empty"),
    ("event_ids=,", "event_ids", "empty id"),
    ("event_ids=evt_1,,evt_2", "event_ids", "empty id"),
    ("event_ids=evt_1,", "event_ids", "empty id"),
    ("event_ids=a&event_ids=b", "event_ids", "more than once"),
];

const CURSORS: [Bad<'_>; 5] = [
    ("cursor=", "cursor", "empty"),
    ("cursor=x", "cursor", "Link"),
    ("cursor=AAAA", "cursor", "Link"),
    ("cursor=%00", "cursor", "Link"),
    ("cursor=!!!!", "cursor", "Link"),
];

#[tokio::test]
async fn bad_parameters_of_odds_are_refused_by_name_with_help() {
    let board = TestMarket::start().await;
    let path = "/v1/sports/mma/odds";
    check_refused(&board, path, &LIMITS).await;
    check_refused(&board, path, &IDS).await;
    check_refused(&board, path, &CURSORS).await;
    check_refused(
        &board,
        path,
        &[
            ("bookmakers=fanduel", "bookmakers", "did you mean `bookmaker`?"),
            ("Limit=5", "Limit", "did you mean `limit`?"),
            ("oddsFormat=decimal", "oddsFormat", "did you mean `odds_format`?"),
            ("nonsense=1", "nonsense", "this endpoint takes market, bookmaker"),
            ("nonsense", "nonsense", "unknown parameter"),
            ("=1", "", "unknown parameter"),
            ("market", "market", "empty"),
            ("market=", "market", "empty"),
            ("market=moneylin", "market", "did you mean `moneyline`?"),
            ("market=Moneyline", "market", "did you mean `moneyline`?"),
            ("market=moneyline,spread", "market", "takes one market; leave it out for all"),
            ("market=zzz", "market", "use one of moneyline, spread, total_rounds"),
            ("market=outrights", "market", "mma has no market `outrights`"),
            ("bookmaker=fanduell", "bookmaker", "did you mean `fanduel`?"),
            ("bookmaker=zzz", "bookmaker", "/v1/books lists them"),
            ("bookmaker=fanduel&bookmaker=fanduel", "bookmaker", "more than once"),
            ("regions=us,xx", "regions", "use one of us, uk, eu, au"),
            ("regions=us,", "regions", "use one of"),
            (
                "regions=us&regions=uk",
                "regions",
                "separate its values with commas: `regions=us,uk`",
            ),
            ("event_ids=a&event_ids=b", "event_ids", "separate its values with commas"),
            ("regions=US", "regions", "did you mean `us`?"),
            ("region=xx", "region", "use one of"),
            ("odds_format=hongkong", "odds_format", "american, decimal, fractional"),
            ("group_by=event", "group_by", "bout"),
            ("format=CSV", "format", "use one of json, csv; did you mean `csv`?"),
            ("format=csv&group_by=bout", "format", "cannot be combined with `group_by`"),
            ("format=csv&since=x", "format", "cannot be combined with `since`"),
            ("group_by=bout&market=total_rounds", "market", "moneyline"),
            ("status=live", "status", "unknown parameter"),
            ("commence_from=2026-11-14T00:00:00Z", "commence_from", "unknown parameter"),
            ("market=%", "market", "UTF-8"),
            ("market=%4", "market", "UTF-8"),
            ("market=%zz", "market", "UTF-8"),
            ("market=%ff", "market", "UTF-8"),
        ],
    )
    .await;
    // A name that is not text cannot be shown.
    let answer = board.app.get(&format!("{path}?%ff=1"), &board.key).await;
    assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()));
    assert_eq!(answer.param(), None);
}

#[tokio::test]
async fn bad_parameters_of_scores_and_events_are_refused_by_name_with_help() {
    let board = TestMarket::start().await;
    let statuses = [
        ("status=", "status", "empty"),
        ("status=finished", "status", "scheduled, live, final"),
        ("status=Live", "status", "did you mean `live`?"),
        ("status=live,final", "status", "scheduled, live, final"),
        ("market=moneyline", "market", "unknown parameter"),
        ("regions=us", "regions", "unknown parameter"),
    ];
    for path in ["/v1/sports/mma/scores", "/v1/sports/mma/events"] {
        check_refused(&board, path, &LIMITS).await;
        check_refused(&board, path, &IDS).await;
        check_refused(&board, path, &CURSORS).await;
        check_refused(&board, path, &statuses).await;
    }
    let instants = [
        ("commence_from=tomorrow", "commence_from", "RFC 3339"),
        ("commence_to=2026-11-14", "commence_to", "RFC 3339"),
        ("commence_to=2026-13-14T00:00:00Z", "commence_to", "RFC 3339"),
        ("commence_to=", "commence_to", "empty"),
        // An offset's plus sign has to be encoded: a bare one is a space.
        ("commence_from=2026-11-14T00:00:00+01:00", "commence_from", "RFC 3339"),
    ];
    check_refused(&board, "/v1/sports/mma/events", &instants).await;
    check_refused(
        &board,
        "/v1/sports/mma/scores",
        &[("commence_from=2026-11-14T00:00:00Z", "commence_from", "unknown parameter")],
    )
    .await;
}

#[tokio::test]
async fn endpoints_without_filters_take_none() {
    let board = TestMarket::start().await;
    let event = format!("/v1/sports/mma/events/{}", board.bout_id().await);
    let (none, time) = ("this endpoint takes no parameters", "this endpoint takes as_of");
    for (path, takes) in [
        ("/v1/sports", time),
        ("/v1/books", time),
        ("/v1/status", none),
        ("/v1/history", none),
        (&*event, time),
    ] {
        check_refused(
            &board,
            path,
            &[("limit=1", "limit", takes), ("x", "x", takes), ("api_key=", "api_key", "empty")],
        )
        .await;
    }
}

#[tokio::test]
async fn at_most_two_hundred_ids_are_taken_and_unknown_ones_match_nothing() {
    let board = TestMarket::start().await;
    let known = board.bout_id().await;
    let ids = |count: usize| vec![known.as_str(); count].join(",");
    for path in ["/v1/sports/mma/odds", "/v1/sports/mma/scores", "/v1/sports/mma/events"] {
        let taken = board.list(&format!("{path}?event_ids={}", ids(200))).await;
        assert!(taken.iter().all(|record| {
            [&record["event_id"], &record["id"]].into_iter().any(|id| id == known.as_str())
        }));
        let many = format!("event_ids={}", ids(201));
        check_refused(&board, path, &[(&many, "event_ids", "at most 200")]).await;
        let unknown = format!("{path}?event_ids=evt_11111111111,nonsense,%C3%A9");
        assert_eq!(board.get(&unknown).await, serde_json::json!([]));
        let mixed = board.list(&format!("{path}?event_ids=nonsense,{known}")).await;
        assert_eq!(mixed, taken);
    }
}

#[tokio::test]
async fn parameters_that_do_not_fit_the_sport_are_refused() {
    let board = TestMarket::start().await;
    check_refused(
        &board,
        "/v1/sports/tennis/odds",
        &[("group_by=bout", "group_by", "tennis is not one")],
    )
    .await;
    check_refused(
        &board,
        "/v1/sports/golf/odds",
        &[
            ("market=totals", "market", "golf has no market `totals`"),
            ("market=h2h", "market", "golf has no market `h2h`"),
            ("market=spreads", "market", "golf has no market `spreads`"),
            ("group_by=bout", "group_by", "golf is not one"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_known_market_or_bookmaker_without_prices_is_an_empty_list() {
    let board = TestMarket::start().await;
    for query in
        ["market=outright", "market=spread", "bookmaker=caesars", "bookmaker=fanduel&regions=au"]
    {
        let none = board.get(&format!("/v1/sports/mma/odds?{query}")).await;
        assert_eq!(none, serde_json::json!([]), "{query}");
    }
}

#[tokio::test]
async fn an_alias_that_is_not_used_must_still_be_valid() {
    let board = TestMarket::start().await;
    let path = "/v1/sports/mma/odds";
    check_refused(
        &board,
        path,
        &[
            ("regions=us&region=xx", "region", "use one of"),
            ("region=us&regions=xx", "regions", "use one of"),
            ("region=us&region=us", "region", "more than once"),
        ],
    )
    .await;
}

#[tokio::test]
async fn names_and_values_may_be_percent_encoded() {
    let board = TestMarket::start().await;
    let plain = board.list("/v1/sports/mma/odds?regions=us,uk&market=moneyline").await;
    for query in ["regions=us%2Cuk&market=money%6Cine", "region%73=us,uk&&market=moneyline&"] {
        assert_eq!(board.list(&format!("/v1/sports/mma/odds?{query}")).await, plain, "{query}");
    }
}

#[tokio::test]
async fn no_refusal_echoes_a_key() {
    let board = TestMarket::start().await;
    let key = &board.key;
    let encoded: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for text in [key.clone(), encoded, format!("x{key}"), key.replace("sk_live_", "fk_")] {
        for query in [
            format!("{text}=1"),
            text.clone(),
            format!("market={text}"),
            format!("bookmaker={text}"),
            format!("regions=us,{text}"),
            format!("odds_format={text}"),
            format!("group_by={text}"),
            format!("limit={text}"),
            format!("cursor={text}"),
            format!("event_ids={text}&nope=1"),
        ] {
            let answer = board.app.get(&format!("/v1/sports/mma/odds?{query}"), key).await;
            assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{query}");
            let secret = key.trim_start_matches("sk_live_");
            let shown = format!("{:?} {}", answer.headers, answer.text());
            assert!(!shown.contains(secret), "{query}: {shown}");
            assert!(!shown.contains(&secret[..8]), "{query}: {shown}");
        }
    }
    // Nor in a path, which is not shown at all.
    let answer = board.app.get(&format!("/v1/sports/{key}/odds"), key).await;
    assert!(!answer.text().contains(key.as_str()));
}

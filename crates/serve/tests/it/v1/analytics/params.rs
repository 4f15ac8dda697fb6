//! The parameters of the analytics are strict.

use super::Board;

#[tokio::test]
async fn bad_parameters_are_refused_by_name_with_help() {
    let board = Board::open().await;
    let many = ["fanduel"; 51].join(",");
    let eleven = ["fanduel"; 11].join(",");
    let (bookmakers, reference) = (format!("bookmakers={many}"), format!("reference={eleven}"));
    for (target, param, words) in [
        ("mma/best?bookmakers=fanduel,nobody", "bookmakers", "there is no bookmaker `nobody`"),
        ("mma/best?bookmakers=fanduel,", "bookmakers", "there is no bookmaker"),
        (&*format!("mma/best?{bookmakers}"), "bookmakers", "at most 50"),
        ("mma/best?bookmaker=fanduel", "bookmaker", "did you mean `bookmakers`?"),
        ("mma/best?method=power", "method", "unknown parameter"),
        ("mma/best?max_age=0", "max_age", "from 1 to 86400"),
        ("mma/best?max_age=86401", "max_age", "from 1 to 86400"),
        ("mma/best?max_age=1.5", "max_age", "whole number"),
        ("mma/best?max_age=09", "max_age", "whole number"),
        ("mma/best?cursor=AYDA4oXjaE0A", "cursor", "not one of this endpoint's"),
        ("mma/best?limit=501", "limit", "from 1 to 500"),
        ("mma/best?regions=mars", "regions", "there is no region"),
        ("mma/best?status=soon", "status", "there is no status"),
        ("mma/best?commence_from=today", "commence_from", "RFC 3339"),
        ("mma/fair?regions=us", "regions", "unknown parameter"),
        ("mma/fair?method=kelly", "method", "use one of power, multiplicative"),
        ("golf/fair?method=shin&market=top10", "method", "one winner"),
        ("golf/ev?method=shin&market=top5", "method", "one winner"),
        ("mma/fair?reference=consensus,fanduel", "reference", "there is no bookmaker `consensus`"),
        (&*format!("mma/fair?{reference}"), "reference", "at most 10"),
        ("mma/fair?min_books=51", "min_books", "from 1 to 50"),
        ("mma/fair?min_ev=0.1", "min_ev", "unknown parameter"),
        ("mma/ev?min_ev=1.1", "min_ev", "from 0 to 1"),
        ("mma/ev?min_ev=0.0000001", "min_ev", "up to 6 places"),
        ("mma/ev?cursor=x", "cursor", "unknown parameter"),
        ("mma/arbitrage?min_profit=-0.1", "min_profit", "from 0 to 1"),
        ("mma/arbitrage?stake=0", "stake", "from 1 to 1000000"),
        ("mma/arbitrage?stake=1000001", "stake", "from 1 to 1000000"),
        ("mma/arbitrage?stake=10.5", "stake", "whole number"),
        ("golf/arbitrage?market=outright", "market", "has no lines for `outright`"),
        ("golf/arbitrage?market=top20", "market", "has no lines for `top20`"),
        ("mma/middles?market=moneyline", "market", "has no lines for `moneyline`"),
        ("mma/middles?max_cost=.05", "max_cost", "from 0 to 1"),
    ] {
        let answer = board.app.get(&format!("/v1/sports/{target}"), &board.key).await;
        assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{target}");
        assert_eq!(answer.param().as_deref(), Some(param), "{target}");
        assert!(answer.message().contains(words), "{target}: {}", answer.message());
    }
    for good in [
        "golf/arbitrage",
        "golf/middles",
        "mma/best?market=h2h",
        "american_football/middles?market=totals",
        "golf/ev?method=shin",
        "mma/ev?min_ev=1&limit=500&max_age=86400",
    ] {
        let answer = board.app.get(&format!("/v1/sports/{good}"), &board.key).await;
        assert_eq!(answer.status, 200, "{good}: {}", answer.text());
    }
}

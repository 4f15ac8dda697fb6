//! Parsing of parameters: lists, repetitions, empty values, unknown names (V3).

use super::MMA;
use crate::test_market::TestMarket;

#[tokio::test]
async fn lists_are_merged_trimmed_and_deduplicated_and_others_take_the_first_value() {
    let board = TestMarket::start().await;
    let usual =
        board.app.get(&format!("{MMA}/odds?regions=us,uk&markets=h2h,totals"), &board.key).await;
    for same in [
        "regions=us%2Cuk&markets=h2h%2Ctotals",
        "regions=us&regions=uk&markets=totals&markets=h2h",
        "regions=+uk+,us,,us&markets=h2h,totals,h2h",
        "regions=us,uk&markets=h2h,totals&unknown=x&oddsformat=x&limit=0",
        "regions=us,uk&markets=h2h,totals&oddsFormat=decimal&oddsFormat=nonsense",
        "regions=us,uk&markets=h2h,totals&oddsFormat=&dateFormat=&eventIds=&commenceTimeFrom=",
        "regions=us,uk&markets=h2h,totals&daysFrom=99&all=x&date=x",
    ] {
        let answer = board.app.get(&format!("{MMA}/odds?{same}"), &board.key).await;
        assert_eq!(answer.status, 200, "{same}: {}", answer.text());
        assert_eq!(answer.header("etag"), usual.header("etag"), "{same}");
        assert_eq!(answer.header("x-requests-last"), Some("4"), "{same}");
    }
    let slashed =
        board.app.get(&format!("{MMA}/odds/?regions=us,uk&markets=h2h,totals"), &board.key).await;
    assert_eq!(slashed.text(), usual.text());
    let own =
        board.app.get("/v4/sports/mma/odds?regions=us,uk&markets=h2h,totals", &board.key).await;
    assert_eq!(own.text(), usual.text());
}

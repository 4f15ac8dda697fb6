use serde_json::json;

use super::*;
use crate::faults::check::observed_log::tests::log;

const SERIES: Series = Series { pusher: 0, line: 0 };
const PATH: &str = "/v1/sports/mma/odds";

fn read(node: u8, etag: &str, body: u64) -> Read {
    Read {
        node: Some(Unit::Api(node)),
        path: PATH.to_owned(),
        status: 200,
        etag: Some(etag.to_owned()),
        body: Some(body),
        ..Read::default()
    }
}

#[test]
fn two_bodies_under_one_etag_are_told() {
    assert!(one_body(&[read(1, "a", 1), read(2, "a", 1), read(3, "b", 2)]).holds());
    assert!(!one_body(&[read(1, "a", 1), read(2, "a", 2)]).holds());
}

#[test]
fn two_etags_of_one_body_are_told_and_judged_where_there_is_one_build() {
    assert!(one_tag(&[read(1, "a", 1), read(2, "a", 1), read(3, "b", 2)], &[], 1).holds());
    let differ = [read(1, "a", 1), read(2, "b", 1), read(1, "b", 1)];
    assert_eq!(one_tag(&differ, &[], 1).broken_count, 1);
    let told = one_tag(&differ, &[], 2);
    assert!(told.holds() && told.figures.contains("1 under two ETags"), "{told:?}");
    let walk = |path: &str| Walk { begun_ms: 0, path: path.to_owned(), ids: Vec::new() };
    assert!(one_tag(&differ, &[walk(PATH)], 1).holds(), "another page may follow later");
    assert!(!one_tag(&differ, &[walk("/v1/sports/mma")], 1).holds(), "this is no page");
}

fn grouped(at_ms: i64, price: &Value, extra: &str) -> Vec<u8> {
    json!({
        "generated_at": Timestamp::from_millisecond(at_ms).unwrap().to_string(), "extra": extra,
        "bouts": [{"home": "Anton Berger", "books": [
            {"book": "fanduel", "outcomes": [{"name": "x", "price": price}, {"name": "y", "price": 1.5}]}]}],
    })
    .to_string()
    .into_bytes()
}

fn flat(price: &Value) -> Vec<u8> {
    json!([{"event_id": "evt_1", "bookmaker": "fanduel", "market": "moneyline", "outcomes": [
        {"name": "Anton Berger", "price": price}, {"name": "Luis Calderon", "price": 1.5}]}])
    .to_string()
    .into_bytes()
}

fn judge(answers: &[Vec<u8>]) -> Finding {
    let bodies = answers.iter().cloned().enumerate().map(|(at, body)| (at as u64, body));
    let reads: Vec<Read> = (0..answers.len() as u64).map(|at| read(1, "x", at)).collect();
    as_the_log(&reads, &bodies.collect(), &log(SERIES, &[1, 2, 3]))
}

#[test]
fn answers_that_the_log_cut_are_right() {
    let finding = judge(&[
        grouped(1000, &json!(2.001), ""),
        grouped(3000, &json!(2.003), ""),
        flat(&json!(2.002)),
    ]);
    assert!(finding.holds(), "{finding:?}");
}

#[test]
fn a_state_that_was_never_cut_is_told() {
    assert!(
        !judge(&[grouped(2000, &json!(2.001), "")]).holds(),
        "an older state under a newer epoch"
    );
    assert!(!judge(&[grouped(1500, &json!(2.001), "")]).holds(), "an epoch the log does not have");
    assert!(!judge(&[flat(&json!(2.004))]).holds(), "a price the log does not have");
}

#[test]
fn two_bodies_of_one_epoch_are_told() {
    assert!(
        !judge(&[grouped(1000, &json!(2.001), "a"), grouped(1000, &json!(2.001), "b")]).holds()
    );
}

#[test]
fn a_node_that_ends_behind_the_log_is_told() {
    let body = |price: Value| serde_json::from_slice(&flat(&price)).unwrap();
    let log = log(SERIES, &[1, 2]);
    assert!(ends_alike(&[(Unit::Api(1), body(json!(2.002)))], &log).holds());
    let behind = [(Unit::Api(1), body(json!(2.002))), (Unit::Api(2), body(json!(2.001)))];
    assert_eq!(ends_alike(&behind, &log).broken_count, 1);
    assert!(!ends_alike(&[(Unit::Api(1), Value::Null)], &log).holds());
}

#[test]
fn a_walk_that_misses_repeats_or_turns_records_is_told() {
    let walk = |ids: &[&str]| Walk {
        begun_ms: 0,
        path: PATH.to_owned(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    assert!(whole_walks(&[walk(&["a", "b"]), walk(&["a", "b"])]).holds());
    assert!(!whole_walks(&[walk(&["a", "b"]), walk(&["a"])]).holds());
    assert!(!whole_walks(&[walk(&["a", "b"]), walk(&["b", "a"])]).holds());
    assert!(!whole_walks(&[walk(&["a", "a"])]).holds());
}

use super::*;

fn read(key: &str, sent_ms: i64, status: u16) -> Read {
    Read { sent_ms, key: key.to_owned(), status, date_ms: Some(sent_ms), ..Read::default() }
}

#[test]
fn a_revoked_key_that_gets_in_is_told() {
    let revoked = [Revocation { key: "k".to_owned(), called_ms: 90, returned_ms: 100 }];
    let good =
        [read("k", 50, 200), read("k", 100, 200), read("k", 101, 401), read("other", 200, 200)];
    assert!(revoked_are_out(&good, &revoked).holds());
    for status in [200, 304] {
        let bad = [good.as_slice(), &[read("k", 101, status)]].concat();
        assert_eq!(revoked_are_out(&bad, &revoked).broken_count, 1);
    }
    assert!(!revoked_are_out(&good[..2], &revoked).holds(), "no request afterwards proves nothing");
}

fn limits(per_minute: u64, per_day: u64) -> [Limits; 1] {
    [Limits { key: "k".to_owned(), per_minute, per_day }]
}

/// Answers at these seconds, and a refusal.
fn answers(at_s: &[i64], status: u16) -> Vec<Read> {
    let mut reads: Vec<Read> = at_s.iter().map(|at| read("k", at * 1000, status)).collect();
    reads.push(read("k", 59_000, 429));
    reads
}

#[test]
fn a_limit_is_met_and_not_passed() {
    assert!(within_limits(&answers(&[10, 20, 30, 70, 80, 90], 200), &limits(3, 6)).holds());
    assert!(!within_limits(&answers(&[10, 20, 30, 40], 200), &limits(3, 100)).holds());
    assert!(
        !within_limits(&answers(&[10, 20, 30, 40], 304), &limits(3, 1)).holds(),
        "304s count to the minute"
    );
    assert!(
        within_limits(&answers(&[10, 20, 30], 304), &limits(3, 1)).holds(),
        "and not to the day"
    );
    assert!(!within_limits(&answers(&[10, 20, 100, 200], 200), &limits(100, 3)).holds());
}

#[test]
fn answers_at_the_edge_of_two_minutes_may_belong_to_either() {
    assert!(within_limits(&answers(&[57, 58, 60, 62], 200), &limits(2, 100)).holds());
    assert!(!within_limits(&answers(&[57, 58, 60, 60, 62], 200), &limits(2, 100)).holds());
}

#[test]
fn limits_that_nobody_met_show_nothing() {
    assert!(!within_limits(&[read("k", 1, 200)], &limits(3, 3)).holds());
}

use super::*;

fn episode(kind: Kind, caught_up_ms: Option<i64>) -> Episode {
    Episode { fault: "a fault".to_owned(), kind, began_ms: 1000, healed_ms: 20_000, caught_up_ms }
}

fn read(sent_ms: i64, status: u16) -> Read {
    Read {
        sent_ms,
        done_ms: sent_ms + 5,
        balanced: true,
        key: "steady".to_owned(),
        status,
        ..Read::default()
    }
}

#[test]
fn one_failure_in_a_thousand_is_forgiven_and_two_are_not() {
    let judge = |failures: usize, at_ms: i64| {
        let mut reads: Vec<Read> = (0..1000).map(|_| read(1500, 200)).collect();
        reads.extend((0..failures).map(|_| read(at_ms, 502)));
        let episodes = vec![episode(Kind::Single, Some(21_000))];
        super::reads(&Records { reads, episodes, ..Records::default() }, Kind::Single, "r")
    };
    assert!(judge(1, 1500).holds());
    assert!(!judge(2, 1500).holds());
    assert!(!judge(2, 20_500).holds(), "until all is as before");
    assert!(judge(2, 500).holds(), "before it began");
}

#[test]
fn a_node_that_says_ok_without_a_log_is_told_and_so_is_silence() {
    let judge = |statuses: [&str; 3], at_ms: i64| {
        let mut records =
            Records { episodes: vec![episode(Kind::NoLog, None)], ..Records::default() };
        for (number, (api, status)) in APIS.into_iter().zip(statuses).enumerate() {
            let body = format!(r#"{{"status":"{status}"}}"#).into_bytes();
            records.bodies.insert(number as u64, body);
            let (path, body) = (STATUS.to_owned(), Some(number as u64));
            let probe = read(at_ms, 200);
            records.reads.push(Read { node: Some(api), path, body, ..probe });
        }
        degraded(&records)
    };
    assert!(judge(["degraded"; 3], 12_000).holds());
    assert!(!judge(["degraded", "ok", "degraded"], 12_000).holds());
    assert!(!judge(["degraded"; 3], 5000).holds(), "no answer was late enough");
}

#[test]
fn whoever_does_not_come_back_or_dies_is_told() {
    assert!(caught_up(&[episode(Kind::Single, Some(21_000))]).holds());
    assert!(!caught_up(&[episode(Kind::Single, None)]).holds());
    assert!(!caught_up(&[]).holds());
    assert!(no_process_ended(&[]).holds());
    assert!(!no_process_ended(&["api-1".to_owned()]).holds());
}

use super::*;

const HOUR_S: i64 = 3600;

fn call(operation: usize, outcome: Outcome) -> Call<'static> {
    Call { operation, outcome, agent: Some(b"curl/8") }
}

fn failure(target: &str) -> Failure {
    Failure {
        at: Timestamp::from_secs(1),
        request_id: "req_1".into(),
        endpoint: "odds",
        method: "GET",
        target: target.into(),
        status: 400,
        code: "invalid_parameter",
        message: "m".into(),
        times: 1,
    }
}

#[test]
fn every_cell_is_its_own() {
    for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
        assert_eq!(cell(0, outcome), n);
    }
    let mut cells: Vec<usize> = (0..GROUP)
        .flat_map(|operation| Outcome::ALL.map(|outcome| cell(operation, outcome)))
        .collect();
    cells.dedup();
    assert_eq!((cells.len(), cells.last()), (CELLS, Some(&(CELLS - 1))));
}

#[test]
fn every_operation_is_counted_apart_and_takes_memory_only_where_it_is_used() {
    let counter = UsageCounter::new(Arc::default());
    let now = Timestamp::from_secs(1);
    (0..GROUP).for_each(|operation| counter.count(call(operation, Outcome::Ok), now));
    assert!(counter.counters.get().unwrap().first.next.get().is_none());
    (GROUP..OPERATIONS_MAX + 1)
        .for_each(|operation| counter.count(call(operation, Outcome::Ok), now));
    let taken = counter.take(now);
    let operations: Vec<usize> = taken.iter().map(|pending| pending.operation).collect();
    assert_eq!(operations, (0..OPERATIONS_MAX).collect::<Vec<_>>());
    taken.iter().for_each(|pending| counter.give_back(pending));
    assert_eq!(counter.take(now), taken);
}

#[test]
fn what_is_counted_before_the_turn_of_an_hour_stays_in_it() {
    let counter = UsageCounter::new(Arc::default());
    let (before, after) = (Timestamp::from_secs(HOUR_S - 1), Timestamp::from_secs(HOUR_S + 5));
    counter.count(call(1, Outcome::Ok), before);
    counter.count(call(1, Outcome::Ok), after);
    counter.count(call(1, Outcome::Ok), after);
    let one = |hour_ms, requests| Pending { hour_ms, operation: 1, outcome: Outcome::Ok, requests };
    assert_eq!(counter.pending(after), [one(0, 1), one(HOUR_S * 1000, 2)]);
    let taken = counter.take(after);
    assert_eq!(counter.pending(after), []);
    taken.iter().for_each(|pending| counter.give_back(pending));
    assert_eq!(counter.pending(after), [one(0, 1), one(HOUR_S * 1000, 2)]);
}

#[test]
fn a_hostile_client_name_is_bounded_and_looked_at_once_a_minute() {
    let counter = UsageCounter::new(Arc::default());
    assert_eq!(counter.agent(), None);
    let hostile = format!("<script>\u{0}\n{}", "x".repeat(5000));
    let named = |agent| Call { agent, ..call(0, Outcome::Ok) };
    counter.count(named(Some(hostile.as_bytes())), Timestamp::from_secs(0));
    let held = counter.agent().unwrap();
    assert_eq!(held.chars().count(), AGENT_CHARS_MAX);
    assert!(held.starts_with("<script>x"), "{held}");
    counter.count(named(Some(b"curl")), Timestamp::from_secs(59));
    assert_eq!(counter.agent(), Some(held));
    counter.count(named(Some(b"curl")), Timestamp::from_secs(60));
    assert_eq!(counter.agent().as_deref(), Some("curl"));
    counter.count(named(Some(b"\xff\xfe")), Timestamp::from_secs(120));
    assert_eq!(counter.agent().as_deref(), Some("\u{fffd}\u{fffd}"));
}

#[test]
fn failures_are_bounded_and_the_same_again_is_one() {
    let all = Arc::<FailureCount>::default();
    let counter = UsageCounter::new(Arc::clone(&all));
    for n in 0..150 {
        counter.fail(failure(&format!("/v1/{n}")));
    }
    counter.fail(failure("/v1/149"));
    counter.fail(failure(&format!("/{}", "long/".repeat(1000))));
    let kept = counter.failures();
    assert_eq!((kept.len(), all.0.load(Ordering::Relaxed)), (FAILURES_MAX, FAILURES_MAX));
    assert_eq!(&*kept[0].target, "/v1/51");
    assert_eq!((&*kept[98].target, kept[98].times), ("/v1/149", 2));
    assert_eq!(kept[99].target.chars().count(), TARGET_CHARS_MAX + 1);
    drop(counter);
    assert_eq!(all.0.load(Ordering::Relaxed), 0);
}

#[test]
fn when_all_failures_are_many_each_key_keeps_its_newest() {
    let all = Arc::<FailureCount>::default();
    all.0.store(FAILURES_ALL_MAX, Ordering::Relaxed);
    let counter = UsageCounter::new(Arc::clone(&all));
    counter.fail(failure("/v1/1"));
    counter.fail(failure("/v1/2"));
    let kept: Vec<Box<str>> = counter.failures().into_iter().map(|kept| kept.target).collect();
    assert_eq!(kept, ["/v1/2".into()]);
}

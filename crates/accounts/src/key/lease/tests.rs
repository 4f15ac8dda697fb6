use super::*;

fn filled(now: Timestamp) -> WindowLease {
    let mut slice = WindowLease::new((Owner::Key, Window::Minute), 100, 0, now);
    assert_eq!(slice.readiness(1, now), Readiness::NeedsLease);
    let ask = slice.asks("m").next().unwrap();
    slice.refill(&ask, Lease { given: 8, granted: 8 }, now);
    slice
}

#[test]
fn a_lease_that_comes_after_its_window_is_let_go() {
    let (now, next) = (Timestamp::from_secs(59), Timestamp::from_secs(60));
    let mut slice = WindowLease::new((Owner::Key, Window::Minute), 100, 0, now);
    assert_eq!(slice.readiness(1, now), Readiness::NeedsLease);
    let ask = slice.asks("m").next().unwrap();
    slice.roll(next);
    slice.refill(&ask, Lease { given: 8, granted: 8 }, next);
    assert_eq!(slice.readiness(1, next), Readiness::NeedsLease);
    assert_eq!(slice.standing().used, 0);
}

#[test]
fn more_is_asked_for_when_half_is_spent() {
    let now = Timestamp::from_secs(0);
    let mut slice = filled(now);
    let wanted_after: Vec<bool> = (0..4)
        .map(|_| {
            slice.take(1, now);
            slice.is_wanted()
        })
        .collect();
    assert_eq!(wanted_after, [false, false, false, true]);
    assert_eq!(slice.standing().remaining, 96);
}

#[test]
fn a_lower_limit_holds_at_once_and_a_higher_one_is_asked_for() {
    let now = Timestamp::from_secs(0);
    let mut slice = filled(now);
    slice.take(1, now);
    // Set repeatedly, as by every read of the store.
    for _ in 0..3 {
        slice.set_limit(3);
        assert_eq!((slice.standing().used, slice.standing().remaining), (1, 2));
    }
    let mut more = 0;
    while slice.readiness(1, now) == Readiness::Ready {
        slice.take(1, now);
        more += 1;
    }
    assert_eq!((more, slice.readiness(1, now)), (2, Readiness::Exhausted));
    slice.set_limit(10);
    assert_eq!(slice.readiness(1, now), Readiness::NeedsLease);
    // A lease requested under the previous limit.
    let ask = slice.asks("m").next().unwrap();
    slice.set_limit(4);
    slice.refill(&ask, Lease { given: 5, granted: 8 }, now);
    assert_eq!(slice.standing().remaining, 1);
    slice.take(1, now);
    assert_eq!(slice.readiness(1, now), Readiness::Exhausted);
}

#[test]
fn what_is_left_in_hand_is_given_back_once_and_counts_as_unused() {
    let now = Timestamp::from_secs(0);
    let mut slice = filled(now);
    slice.take(1, now);
    let left: Vec<u32> = slice.drain("m").map(|unspent| unspent.left).collect();
    assert_eq!(left, [7]);
    assert_eq!(slice.drain("m").count(), 0);
    assert_eq!((slice.standing().used, slice.standing().remaining), (1, 99));
}

#[test]
fn who_spends_shortly_before_the_turn_has_a_lease_for_what_comes_after() {
    let mut slice = filled(Timestamp::from_secs(0));
    slice.take(1, Timestamp::from_secs(49));
    assert!(!slice.is_wanted(), "the end of the window is far off");
    let late = Timestamp::from_secs(50);
    slice.take(1, late);
    let asks: Vec<LeaseRequest> = slice.asks("m").collect();
    assert_eq!(asks.iter().map(|ask| ask.start_ms).collect::<Vec<_>>(), [60_000]);
    slice.refill(&asks[0], Lease { given: 25, granted: 40 }, late);
    slice.take(1, late);
    assert!(!slice.is_wanted(), "one lease is enough");
    assert_eq!(slice.standing().used, 3, "the next window's lease does not count in this one");
    let turn = Timestamp::from_secs(60);
    slice.roll(turn);
    assert_eq!(slice.readiness(1, turn), Readiness::Ready);
    assert_eq!((slice.standing().used, slice.standing().remaining), (15, 85));
}

#[test]
fn a_lease_taken_ahead_is_given_back_and_not_used_in_another_window() {
    let ahead = || {
        let (now, late) = (Timestamp::from_secs(0), Timestamp::from_secs(55));
        let mut slice = filled(now);
        slice.take(1, late);
        let ask = slice.asks("m").next().unwrap();
        slice.refill(&ask, Lease { given: 25, granted: 25 }, late);
        slice
    };
    let left: Vec<_> = ahead().drain("m").map(|unspent| (unspent.start_ms, unspent.left)).collect();
    assert_eq!(left, [(0, 7), (60_000, 25)]);
    let mut slept = ahead();
    let later = Timestamp::from_secs(130);
    slept.roll(later);
    assert_eq!(slept.readiness(1, later), Readiness::NeedsLease);
    assert_eq!(slept.standing().used, 0);
}

#[test]
fn several_units_are_granted_at_once_or_not_at_all() {
    let now = Timestamp::from_secs(0);
    let mut slice = filled(now);
    assert_eq!(slice.readiness(8, now), Readiness::Ready);
    assert_eq!(slice.readiness(11, now), Readiness::NeedsLease);
    let ask = slice.asks("m").next().unwrap();
    assert_eq!(ask.least, 3, "all missing units in one step");
    // Other nodes have taken nearly all of it meanwhile.
    slice.refill(&ask, Lease { given: 2, granted: 100 }, now);
    assert_eq!(slice.readiness(11, now), Readiness::Exhausted);
    assert_eq!(slice.standing().remaining, 10, "a refusal spends nothing");
    assert_eq!(slice.readiness(10, now), Readiness::Ready);
    slice.take(10, now);
    assert_eq!((slice.standing().used, slice.standing().remaining), (100, 0));
}

#[test]
fn what_costs_more_than_the_limit_is_refused_without_a_lease() {
    let now = Timestamp::from_secs(0);
    let mut slice = WindowLease::new((Owner::Key, Window::Day), 5, 0, now);
    assert_eq!(slice.readiness(6, Timestamp::from_secs(60)), Readiness::Exhausted);
    assert!(!slice.is_wanted());
}

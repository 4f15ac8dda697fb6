use super::*;

fn filled(now: Timestamp) -> WindowLease {
    let mut lease = WindowLease::new((Owner::Key, Window::Minute), 100, 0, now);
    assert_eq!(lease.readiness(1, now), Readiness::NeedsLease);
    let ask = lease.asks("m").next().unwrap();
    lease.refill(&ask, Lease { given: 8, granted: 8 }, now);
    lease
}

#[test]
fn a_lease_that_comes_after_its_window_is_let_go() {
    let (now, next) = (Timestamp::from_secs(59), Timestamp::from_secs(60));
    let mut lease = WindowLease::new((Owner::Key, Window::Minute), 100, 0, now);
    assert_eq!(lease.readiness(1, now), Readiness::NeedsLease);
    let ask = lease.asks("m").next().unwrap();
    lease.roll(next);
    lease.refill(&ask, Lease { given: 8, granted: 8 }, next);
    assert_eq!(lease.readiness(1, next), Readiness::NeedsLease);
    assert_eq!(lease.standing().used, 0);
}

#[test]
fn more_is_asked_for_when_half_is_spent() {
    let now = Timestamp::from_secs(0);
    let mut lease = filled(now);
    let wanted_after: Vec<bool> = (0..4)
        .map(|_| {
            lease.take(1, now);
            lease.is_wanted()
        })
        .collect();
    assert_eq!(wanted_after, [false, false, false, true]);
    assert_eq!(lease.standing().remaining, 96);
}

#[test]
fn a_lower_limit_holds_at_once_and_a_higher_one_is_asked_for() {
    let now = Timestamp::from_secs(0);
    let mut lease = filled(now);
    lease.take(1, now);
    // Set repeatedly, as by every read of the store.
    for _ in 0..3 {
        lease.set_limit(3);
        assert_eq!((lease.standing().used, lease.standing().remaining), (1, 2));
    }
    let mut more = 0;
    while lease.readiness(1, now) == Readiness::Ready {
        lease.take(1, now);
        more += 1;
    }
    assert_eq!((more, lease.readiness(1, now)), (2, Readiness::Exhausted));
    lease.set_limit(10);
    assert_eq!(lease.readiness(1, now), Readiness::NeedsLease);
    // A lease requested under the previous limit.
    let ask = lease.asks("m").next().unwrap();
    lease.set_limit(4);
    lease.refill(&ask, Lease { given: 5, granted: 8 }, now);
    assert_eq!(lease.standing().remaining, 1);
    lease.take(1, now);
    assert_eq!(lease.readiness(1, now), Readiness::Exhausted);
}

#[test]
fn what_is_left_in_hand_is_given_back_once_and_counts_as_unused() {
    let now = Timestamp::from_secs(0);
    let mut lease = filled(now);
    lease.take(1, now);
    let left: Vec<u32> = lease.drain("m").map(|unspent| unspent.left).collect();
    assert_eq!(left, [7]);
    assert_eq!(lease.drain("m").count(), 0);
    assert_eq!((lease.standing().used, lease.standing().remaining), (1, 99));
}

#[test]
fn who_spends_shortly_before_the_turn_has_a_lease_for_what_comes_after() {
    let mut lease = filled(Timestamp::from_secs(0));
    lease.take(1, Timestamp::from_secs(49));
    assert!(!lease.is_wanted(), "the end of the window is far off");
    let late = Timestamp::from_secs(50);
    lease.take(1, late);
    let asks: Vec<LeaseRequest> = lease.asks("m").collect();
    assert_eq!(asks.iter().map(|ask| ask.start_ms).collect::<Vec<_>>(), [60_000]);
    lease.refill(&asks[0], Lease { given: 25, granted: 40 }, late);
    lease.take(1, late);
    assert!(!lease.is_wanted(), "one lease is enough");
    assert_eq!(lease.standing().used, 3, "the next window's lease does not count in this one");
    let turn = Timestamp::from_secs(60);
    lease.roll(turn);
    assert_eq!(lease.readiness(1, turn), Readiness::Ready);
    assert_eq!((lease.standing().used, lease.standing().remaining), (15, 85));
}

#[test]
fn a_lease_taken_ahead_is_given_back_and_not_used_in_another_window() {
    let ahead = || {
        let (now, late) = (Timestamp::from_secs(0), Timestamp::from_secs(55));
        let mut lease = filled(now);
        lease.take(1, late);
        let ask = lease.asks("m").next().unwrap();
        lease.refill(&ask, Lease { given: 25, granted: 25 }, late);
        lease
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
    let mut lease = filled(now);
    assert_eq!(lease.readiness(8, now), Readiness::Ready);
    assert_eq!(lease.readiness(11, now), Readiness::NeedsLease);
    let ask = lease.asks("m").next().unwrap();
    assert_eq!(ask.least, 3, "all missing units in one step");
    // Other nodes have taken nearly all of it meanwhile.
    lease.refill(&ask, Lease { given: 2, granted: 100 }, now);
    assert_eq!(lease.readiness(11, now), Readiness::Exhausted);
    assert_eq!(lease.standing().remaining, 10, "a refusal spends nothing");
    assert_eq!(lease.readiness(10, now), Readiness::Ready);
    lease.take(10, now);
    assert_eq!((lease.standing().used, lease.standing().remaining), (100, 0));
}

#[test]
fn what_costs_more_than_the_limit_is_refused_without_a_lease() {
    let now = Timestamp::from_secs(0);
    let mut lease = WindowLease::new((Owner::Key, Window::Day), 5, 0, now);
    assert_eq!(lease.readiness(6, Timestamp::from_secs(60)), Readiness::Exhausted);
    assert!(!lease.is_wanted());
}

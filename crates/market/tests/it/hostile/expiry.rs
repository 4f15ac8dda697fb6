//! The cost of expiry is in proportion to the removed data, not to the size of the book.

use std::time::Duration;

use linesman_market::{Limits, Operation};
use rustix::time::{ClockId, clock_gettime};

use crate::test_book::{ACCEPTED, LIFETIMES, TestBook, remove};

/// A book with this number of events of two feeds, each with a name of its own.
fn with_events(count: usize) -> TestBook {
    let mut test = TestBook::open();
    test.book.set_limits(Limits::NONE);
    for n in 0..count {
        let letter = |by: usize| char::from(b'a' + u8::try_from(n / by % 26).unwrap());
        let word: String = [1, 26, 676, 17_576].into_iter().map(letter).collect();
        let (home, away) = (format!("H{word} B{word}"), format!("A{word} C{word}"));
        assert_eq!(test.say("north", test.bout(&format!("n{n}"), &home, &away, 24)), ACCEPTED);
        assert_eq!(test.say("south", test.bout(&format!("s{n}"), &home, &away, 24)), ACCEPTED);
        test.changes.clear();
    }
    test
}

/// CPU time of this thread so far, which excludes the machine's other work.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.try_into().unwrap(), spent.tv_nsec.try_into().unwrap())
}

/// Checks that ten times as many events take about ten times as long; a scan of all for each would take a hundred
/// times as long.
///
/// The shortest of several tries counts: excessive work occurs in every try, a busy machine does not.
fn grows_with_what_it_takes_away(work: fn(usize) -> Duration) {
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    let grows = (0..20).any(|_| {
        few = few.min(work(300));
        many = many.min(work(3_000));
        many < 40 * few + Duration::from_millis(50)
    });
    assert!(grows, "{few:?} for 300, {many:?} for 3,000");
}

fn time_to_expire(count: usize) -> Duration {
    let mut test = with_events(count);
    for n in 0..count {
        assert_eq!(test.say("north", remove(&format!("n{n}"))), ACCEPTED);
        assert_eq!(test.say("south", remove(&format!("s{n}"))), ACCEPTED);
    }
    test.wait(LIFETIMES.final_retention.as_secs());
    let begun = cpu();
    assert_eq!(test.expire(), count);
    let took = cpu() - begun;
    assert_eq!(test.book.events().count(), 0);
    assert_eq!(test.book.weight(), 0, "nor is anything left of what listed them");
    took
}

#[test]
fn ten_times_the_events_take_ten_times_as_long_to_expire() {
    grows_with_what_it_takes_away(time_to_expire);
}

fn time_to_drop(count: usize) -> Duration {
    let mut test = with_events(count);
    let begun = cpu();
    assert_eq!(test.operate(&Operation::Drop { feed: "north".into() }).unwrap(), 1);
    assert_eq!(test.operate(&Operation::Drop { feed: "south".into() }).unwrap(), 1);
    let took = cpu() - begun;
    assert_eq!((test.book.events().count(), test.book.weight()), (0, 0));
    took
}

#[test]
fn ten_times_the_listings_take_ten_times_as_long_to_drop() {
    grows_with_what_it_takes_away(time_to_drop);
}

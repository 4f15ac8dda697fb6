//! Any two listings can be matched, and the order does not matter.
#![no_main]

use std::sync::{Arc, LazyLock};

use domain::message::{Fixture, Listing};
use domain::{Catalogue, Timestamp};
use libfuzzer_sys::fuzz_target;
use market::BatchMatcher;

static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).expect("ships with the crate")));

fuzz_target!(|text: &str| {
    let names: Vec<&str> = text.splitn(4, '\n').collect();
    let [home, away, their_home, their_away] = names[..] else { return };
    for sport in ["tennis", "american_football"] {
        let listing = |home: &str, away: &str| Listing {
            sport: CATALOGUE.sport_id(sport).expect("an embedded sport"),
            competition: "Open".into(),
            commence_time: Timestamp::default(),
            fixture: Fixture::HeadToHead { home: home.into(), away: away.into() },
        };
        let same = |one: (&str, &str), other: (&str, &str)| {
            let mut matcher = BatchMatcher::new(Arc::clone(&CATALOGUE));
            matcher.list("one", "1", listing(one.0, one.1));
            matcher.list("other", "2", listing(other.0, other.1));
            let found = matcher.solve();
            found[0].event == found[1].event
        };
        let (ours, theirs) = ((home, away), (their_home, their_away));
        assert_eq!(same(ours, theirs), same(theirs, ours));
        assert_eq!(same(ours, theirs), same(ours, (their_away, their_home)));
    }
});

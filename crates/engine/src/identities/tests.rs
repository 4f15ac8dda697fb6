use domain::Catalogue;
use feeds::push;
use market::{Ids, Operation};

use super::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_794_000_000_000 + ms)
}

/// Everything that is shown, in an order for comparison.
fn shown(identities: &Identities) -> (Vec<EventView>, Vec<Unsure>, Vec<(EventId, EventId)>) {
    let mut events: Vec<EventView> = identities.events().map(|event| (**event).clone()).collect();
    events.sort_by_key(|event| event.id);
    let mut stand_ins: Vec<_> = identities.stand_ins.iter().map(|(a, b)| (*a, *b)).collect();
    stand_ins.sort_unstable();
    (events, identities.unsure().to_vec(), stand_ins)
}

struct TestBook {
    book: Book,
    catalogue: Arc<Catalogue>,
    tracker: Tracker,
    now: i64,
}

impl TestBook {
    fn new() -> Self {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let book = Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 7 });
        let tracker = Tracker::of(&book);
        Self { book, catalogue, tracker, now: 0 }
    }

    fn push(&mut self, feed: &str, line: &str) {
        self.now += 1000;
        let message = push::parse_line(line.as_bytes(), &self.catalogue, None).unwrap();
        let before = Tracker::before(&self.book, feed, &message);
        if let Ok(decision) = self.book.apply(feed, &message, at(self.now)) {
            self.tracker.after_message(before, &decision);
        }
    }

    fn list(&mut self, feed: &str, reference: &str, names: (&str, &str), start: &str) {
        let (home, away) = names;
        self.push(
            feed,
            &format!(
                r#"{{"type":"event","ref":"{reference}","sport":"mma","competition":"UFC","commence_time":"{start}","home":"{home}","away":"{away}"}}"#
            ),
        );
    }

    fn operate(&mut self, operation: &Operation) -> bool {
        self.now += 1000;
        let Ok(changes) = self.book.operate(operation, at(self.now)) else { return false };
        changes.iter().for_each(|change| self.tracker.after(change));
        true
    }

    /// The tracked identities equal those built from the whole book.
    fn check(&mut self) {
        self.tracker.refresh(&self.book);
        let afresh = Tracker::of(&self.book);
        assert_eq!(shown(self.tracker.held()), shown(afresh.held()));
    }
}

#[test]
fn every_feeds_own_words_are_kept_and_a_merged_id_leads_to_its_event() {
    let mut test = TestBook::new();
    test.list("one", "a", ("Jiri Prochazka", "Alex Pereira"), "2026-11-22T03:00:00Z");
    test.list("two", "b", ("Pereira, A.", "Procházka, J."), "2026-11-22T04:00:00Z");
    test.list("two", "c", ("Jiri Prochazka", "Alex Pereira"), "2026-12-22T04:00:00Z");
    test.check();
    let held = test.tracker.held().clone();
    let elder = held.events().find(|event| event.refs.len() == 2).unwrap();
    let [first, second] = &*elder.refs else { panic!("{elder:?}") };
    assert_eq!((&*first.feed, &*first.reference, first.swapped), ("one", "a", false));
    assert_eq!(elder.fixture_of(first).to_string(), "Jiri Prochazka v Alex Pereira");
    assert_eq!(elder.fixture_of(second).to_string(), "Pereira, A. v Procházka, J.");
    assert!(second.swapped && second.why.starts_with("as one:a: "), "{}", second.why);
    let younger = held.events().find(|event| event.id != elder.id).unwrap();
    assert!(test.operate(&Operation::Merge { one: elder.id, other: younger.id }));
    test.check();
    let merged = test.tracker.held();
    assert_eq!(merged.len(), 1);
    assert_eq!(merged.event(younger.id).unwrap().id, elder.id);
    assert_eq!(merged.event(elder.id).unwrap().also, [younger.id]);
}

#[test]
fn a_listing_that_is_repeated_touches_nothing() {
    let mut test = TestBook::new();
    test.list("one", "a", ("Jiri Prochazka", "Alex Pereira"), "2026-11-22T03:00:00Z");
    assert!(test.tracker.refresh(&test.book).is_some());
    test.list("one", "a", ("Jiri Prochazka", "Alex Pereira"), "2026-11-22T03:00:00Z");
    assert!(test.tracker.refresh(&test.book).is_none());
}

#[test]
fn whatever_feeds_and_operators_do_the_view_is_that_of_the_book() {
    let names =
        ["Jiri Prochazka", "Alex Pereira", "Alexander Pereira", "J. Prochazka", "Jan Novak"];
    let mut seed = 1_u64;
    let mut pick = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut test = TestBook::new();
    let mut operations = 0;
    for step in 0..3000 {
        let feed = ["one", "two", "three"][pick(3)];
        let reference = format!("r{}", pick(8));
        match pick(10) {
            0..6 => {
                let (home, away) = (pick(5), pick(5));
                if home != away {
                    let start = format!("2026-11-{:02}T{:02}:00:00Z", 20 + pick(4), pick(24));
                    test.list(feed, &reference, (names[home], names[away]), &start);
                }
            }
            6 => test.push(feed, &format!(r#"{{"type":"remove","ref":"{reference}"}}"#)),
            7 => {
                let ids: Vec<EventId> = test.book.events().map(|event| event.id).collect();
                if ids.len() > 1 {
                    let (one, other) = (ids[pick(ids.len())], ids[pick(ids.len())]);
                    let operation = match pick(2) {
                        0 => Operation::Merge { one, other },
                        _ => Operation::Part { one, other },
                    };
                    operations += usize::from(test.operate(&operation));
                }
            }
            8 => {
                if let Some(event) = test.book.listed_for(feed, &reference) {
                    let operation =
                        Operation::Split { event, feed: feed.into(), reference: reference.into() };
                    operations += usize::from(test.operate(&operation));
                }
            }
            _ => {
                let ids: Vec<EventId> = test.book.events().map(|event| event.id).collect();
                if ids.len() > 4 {
                    let expired = Change::Expired { event: ids[pick(ids.len())] };
                    test.book.absorb(&expired, at(test.now));
                    test.tracker.after(&expired);
                }
            }
        }
        if step % 7 == 0 {
            test.check();
        }
    }
    assert!(operations > 50, "{operations} operations are too few to tell");
}

//! Partial snapshots of touched events, combined, equal a complete one.

use std::collections::BTreeSet;

use domain::EventId;
use linesman_market::{Layer, Operation, Snapshot, Touched};
use proptest::prelude::*;

use crate::against_model::Pair;
use crate::histories::a_step;
use crate::identity::list;
use crate::shown::AllFields;
use crate::test_book::{STALE_AFTER, TestBook};

/// The snapshots shown: complete ones, and partial ones with the touched events.
#[derive(Default)]
struct Shown(Vec<(Snapshot, Option<BTreeSet<EventId>>)>);

impl Shown {
    /// Shows a book again, and compares the combined parts with a complete snapshot.
    fn show(&mut self, test: &mut TestBook) {
        let seq = u64::try_from(self.0.len()).unwrap();
        let whole = Snapshot::cut(&test.book, seq, test.now, STALE_AFTER, &[&AllFields]);
        match test.book.take_touched() {
            Touched::All => self.0 = vec![(whole, None)],
            Touched::Events(ids) => {
                let at = (seq, test.now);
                let part = Snapshot::cut_events(&test.book, &ids, at, STALE_AFTER, &[&AllFields]);
                assert!(part.events() <= ids.len());
                self.0.push((part, Some(ids)));
                let layers = self.layers();
                let made = Snapshot::gather(&layers, None).unwrap();
                assert_eq!((made.seq, made.cut_at), (whole.seq, whole.cut_at));
                assert_eq!(text(&made, None), text(&whole, None));
                // The same for every second event.
                let ids = layers[0].snapshot.catalogue().sports().flat_map(|(sport, _)| {
                    whole.sport(sport).events.iter().step_by(2).map(|row| row.id)
                });
                let ids: BTreeSet<EventId> = ids.collect();
                let some = Snapshot::gather(&layers, Some(&ids)).unwrap();
                assert_eq!(text(&some, None), text(&whole, Some(&ids)));
            }
        }
    }

    fn layers(&self) -> Vec<Layer<'_>> {
        self.0.iter().map(|(snapshot, ids)| Layer { snapshot, ids: ids.as_ref() }).collect()
    }
}

/// The data of a snapshot that clients see, without freshness, for some events.
fn text(snapshot: &Snapshot, only: Option<&BTreeSet<EventId>>) -> String {
    let mut out = String::new();
    for (sport, _) in snapshot.catalogue().sports() {
        let view = snapshot.sport(sport);
        for event in view.events.iter().filter(|row| only.is_none_or(|ids| ids.contains(&row.id))) {
            assert!(view.event(event.id).is_some_and(|found| found.id == event.id));
            let bytes = &snapshot.rendered_event(&AllFields, event).bytes;
            out += &format!("{}\n", String::from_utf8_lossy(bytes));
            for at in event.records.clone() {
                let record = view.record(at).unwrap();
                assert_eq!(view.kind(at), Some((record.bookmaker, record.market)));
                let bytes = &snapshot.rendered_record(&AllFields, event, record).bytes;
                out += &format!("  {} {}\n", record.id, String::from_utf8_lossy(bytes));
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(crate::test_book::cases(128))]

    #[test]
    fn parts_put_together_are_the_whole(steps in prop::collection::vec(a_step(), 1..60)) {
        let (mut pair, mut shown) = (Pair::new(), Shown::default());
        for step in &steps {
            pair.take(step);
            shown.show(&mut pair.test);
        }
    }
}

#[test]
fn what_operators_change_is_in_a_part_too() {
    let (mut test, mut shown) = (TestBook::open(), Shown::default());
    list(&mut test, "north", "n", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s", "Tomas Veldt v Oren Castellane", 424);
    list(&mut test, "west", "w", "Milan Dray v Kalle Wendt", 24);
    shown.show(&mut test);
    let [one, other] = [("north", "n"), ("south", "s")]
        .map(|(feed, reference)| test.event_of(feed, reference).event);
    test.operate(&Operation::Merge { one, other }).unwrap();
    shown.show(&mut test);
    // The merged id leads to the remaining event.
    let (layers, sport) = (shown.layers(), test.sport("mma"));
    let merged = Snapshot::gather(&layers, None).unwrap();
    assert_eq!(merged.sport(sport).event(other).map(|row| row.id), Some(one));
    let split = Operation::Split { event: one, feed: "south".into(), reference: "s".into() };
    test.operate(&split).unwrap();
    shown.show(&mut test);
    test.operate(&Operation::Drop { feed: "west".into() }).unwrap();
    shown.show(&mut test);
    assert_eq!(shown.0.len(), 4);
    assert!(test.book.is_untouched());
}

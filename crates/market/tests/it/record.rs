//! A history that is recorded and replayed into an empty book shows the same at every instant.

use std::sync::Arc;
use std::time::Duration;

use domain::message::{Body, Correction, FeedMessage, ScoreBody};
use domain::{EventId, Format, Market, Status, Timestamp};
use linesman_market::{Book, Change, Ids, Limits, Recorded, Recorder, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::against_model::Pair;
use crate::histories::{Step, a_step};
use crate::shown;
use crate::test_book::{
    ACCEPTED, SALT, TestBook, all_events, all_odds, all_scores, at, cut, head_to_head, outcome,
    remove, report, score,
};

const IDS: Ids = Ids::Minted { salt: SALT };

/// The data of a book that users see, event by event, without ids.
fn shown(book: &Book, now: Timestamp) -> Vec<String> {
    let snapshot = cut(book, now);
    let mut shown = Vec::new();
    for (sport, _) in book.catalogue().sports() {
        let odds =
            Format::ALL.map(|format| shown::records(&snapshot, &all_odds(sport), format).items);
        let scores = shown::scores(&snapshot, &all_scores(sport)).items;
        for event in shown::events(&snapshot, &all_events(sport)).items {
            let id = &event["id"];
            let of_event = |row: &&Value| row["event_id"] == *id;
            let mut odds: Vec<String> =
                odds.iter().flatten().filter(of_event).map(without_ids).collect();
            odds.sort_unstable();
            let score = scores.iter().find(of_event).map(without_ids);
            shown.push(json!([without_ids(&event), score, odds]).to_string());
        }
    }
    shown.sort_unstable();
    shown
}

fn without_ids(value: &Value) -> String {
    let mut fields = value.as_object().unwrap().clone();
    fields.remove("id");
    fields.remove("event_id");
    Value::Object(fields).to_string()
}

/// A history being recorded, and a service that receives each message at once.
struct Tape {
    book: Book,
    recorder: Recorder,
    replay: Book,
    messages: Vec<Recorded>,
}

impl Tape {
    fn new(like: &TestBook, from: Timestamp) -> Self {
        let book = || Book::new(Arc::clone(&like.catalogue), IDS);
        let recorder = Recorder::new(book(), from);
        let mut replay = book();
        replay.set_limits(Limits::NONE);
        Self { book: book(), recorder, replay, messages: Vec::new() }
    }

    fn take(&mut self, change: &Change, at: Timestamp) {
        self.book.absorb(change, at);
        let said = self.recorder.take(change, at);
        self.hear(said);
    }

    fn hear(&mut self, said: Vec<Recorded>) {
        for recorded in said {
            let later = recorded.at.plus(Duration::from_secs(3600));
            let ts = recorded.message.ts.unwrap();
            let decided = self.replay.apply("tape", &recorded.message, later.max(ts)).unwrap();
            assert_ne!(decided.verdict, Verdict::Superseded, "{recorded:?}");
            assert!(decided.change.is_some(), "nothing is said in vain: {recorded:?}");
            assert!(self.messages.last().is_none_or(|last| last.at <= recorded.at));
            self.messages.push(recorded);
        }
    }

    fn finish(&mut self) {
        let said = self.recorder.finish();
        self.hear(said);
        assert_eq!(self.recorder.inexact_events(), 0);
    }

    #[track_caller]
    fn compare(&self, now: Timestamp) {
        assert_eq!(shown(&self.replay, now), shown(&self.book, now));
    }

    /// Records all messages sent to a book so far.
    fn of(test: &TestBook, from: Timestamp) -> Self {
        let mut tape = Self::new(test, from);
        for (change, at) in &test.changes {
            tape.take(change, *at);
            if *at >= from {
                tape.compare(*at);
            }
        }
        tape.finish();
        tape.compare(test.now);
        tape
    }

    /// The kinds of the messages, in order.
    fn kinds(&self) -> Vec<&'static str> {
        let kind = |recorded: &Recorded| match &recorded.message.body {
            Body::Event { .. } => "event",
            Body::Odds(odds) if odds.outcomes.is_empty() => "closed",
            Body::Odds(_) => "odds",
            Body::Score(score) if score.correction == Correction::Yes => "correction",
            Body::Score(_) => "score",
            Body::Remove { .. } => "remove",
            Body::Heartbeat { .. } => "beat",
        };
        self.messages.iter().map(kind).collect()
    }
}

/// Two feeds that name one bout differently, with prices, a confirmation and heartbeats.
fn evening() -> TestBook {
    let mut test = TestBook::open();
    let listing = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24);
    assert_eq!(test.say("north", listing), ACCEPTED);
    let listing = test.bout("s-9", "OREN CASTELLANE", "Tomás Veldt", 25);
    assert_eq!(test.say("south", listing), ACCEPTED);
    let prices = [("Tomas Veldt", 150), ("Oren Castellane", -180)];
    let body = test.quote("n-1", "fanduel", Market::Moneyline, &prices);
    assert_eq!(test.say("north", body.clone()), ACCEPTED);
    test.wait(10);
    let prices = [("Tomás Veldt", 155), ("OREN CASTELLANE", -185)];
    let other = test.quote("s-9", "bet365", Market::Moneyline, &prices);
    assert_eq!(test.say("south", other), ACCEPTED);
    test.wait(10);
    assert_eq!(test.say("north", test.beat("fanduel", None)), ACCEPTED);
    test.wait(10);
    test.say("north", body).unwrap();
    test
}

#[test]
fn a_recording_from_the_beginning_tells_each_change_once() {
    let mut test = evening();
    let spread = vec![outcome("Tomas Veldt", -110, Some("-3.5"))];
    let spread = test.odds_body("n-1", "fanduel", Market::Spread, None, spread);
    assert_eq!(test.say("north", spread), ACCEPTED);
    test.say("north", Body::Score(score("n-1", Status::Live, 1, 0))).unwrap();
    let down = ScoreBody { correction: Correction::Yes, ..score("n-1", Status::Live, 0, 0) };
    test.say("north", Body::Score(down)).unwrap();
    test.say("north", remove("n-1")).unwrap();
    test.say("south", Body::Score(score("s-9", Status::Final, 0, 2))).unwrap();
    test.say("south", remove("s-9")).unwrap();
    let tape = Tape::of(&test, at(0));
    let evening = ["event", "odds", "odds", "beat", "odds", "odds"];
    // The second feed's names become the event's once the first has left with its two markets.
    let after = ["score", "correction", "event", "closed", "closed", "score", "remove"];
    let expected = [&evening[..], &after].concat();
    assert_eq!(tape.kinds(), expected);
    let id = EventId::minted(SALT, 0).to_string();
    let of_event = tape.messages.iter().filter_map(|recorded| match &recorded.message.body {
        Body::Event { reference, .. } | Body::Remove { reference } => Some(reference),
        Body::Odds(odds) => Some(&odds.reference),
        Body::Score(score) => Some(&score.reference),
        Body::Heartbeat { .. } => None,
    });
    assert!(of_event.into_iter().all(|reference| **reference == *id));
}

#[test]
fn a_recording_from_later_on_begins_with_how_things_stood() {
    let mut test = evening();
    test.say("north", Body::Score(score("n-1", Status::Live, 1, 0))).unwrap();
    test.wait(10);
    test.say("north", test.beat("fanduel", Some("mma"))).unwrap();
    test.wait(60);
    let from = test.now;
    let tape = Tape::of(&test, from);
    assert_eq!(tape.kinds(), ["event", "odds", "beat", "score", "odds"]);
    assert!(tape.messages.iter().all(|recorded| recorded.at == from));
    let said = test.quote("n-1", "fanduel", Market::Moneyline, &[("Tomas Veldt", 120)]);
    test.say("north", said).unwrap();
    let tape = Tape::of(&test, from);
    assert_eq!(tape.kinds(), ["event", "odds", "beat", "score", "odds", "odds"]);
}

#[test]
fn a_bout_that_has_expired_does_not_come_back_with_the_next_of_the_same_names() {
    let mut test = evening();
    test.say("north", Body::Score(score("n-1", Status::Live, 1, 0))).unwrap();
    test.say("north", remove("n-1")).unwrap();
    test.say("south", remove("s-9")).unwrap();
    test.wait(73 * 3600);
    assert!(test.expire() > 0);
    let listing = test.bout("n-2", "Oren Castellane", "Tomas Veldt", 26);
    assert_eq!(test.say("north", listing), ACCEPTED);
    let tape = Tape::of(&test, at(0));
    assert_eq!(tape.kinds().iter().filter(|kind| **kind == "remove").count(), 2);
}

#[test]
fn a_book_founded_anew_is_told_by_what_differs() {
    let mut test = evening();
    let listing = test.event("tennis", "t", head_to_head("Ana Sommer", "Ida Vale"), 3);
    test.say("north", listing).unwrap();
    test.wait(60);
    let mut restarted = evening();
    restarted.wait(60);
    let body = restarted.quote("n-1", "fanduel", Market::Moneyline, &[("Tomas Veldt", 130)]);
    restarted.say("north", body).unwrap();
    let mut tape = Tape::new(&test, at(0));
    for (change, at) in &test.changes {
        tape.take(change, *at);
    }
    let before = tape.messages.len();
    let now = restarted.now;
    tape.take(&Change::Founded { ids: IDS }, now);
    for (change, _) in &restarted.changes {
        tape.take(change, now);
    }
    assert_eq!(tape.messages.len(), before, "not before it was published");
    tape.take(&Change::Cut { at: now }, now);
    tape.compare(now);
    assert_eq!(tape.kinds()[before..], ["remove", "odds"]);
    let message =
        FeedMessage { ts: None, fresh_for_s: None, body: Body::Score(report("n-1", Status::Live)) };
    let decision = restarted.book.apply("north", &message, now).unwrap();
    tape.take(&decision.change.unwrap(), now);
    tape.compare(now);
}

/// The changes of some steps.
fn played(steps: &[Step]) -> TestBook {
    let mut pair = Pair::new();
    for step in steps.iter().filter(|step| !matches!(step, Step::Compare)) {
        pair.take(step);
    }
    pair.test
}

proptest! {
    #![proptest_config(crate::test_book::cases(128))]

    #[test]
    fn whatever_is_recorded_shows_the_same_when_replayed(
        steps in proptest::collection::vec(a_step(), 1..120),
        skipped in 0..120_usize,
    ) {
        let test = played(&steps);
        let from = test.changes.get(skipped).map_or(at(0), |(_, at)| *at);
        Tape::of(&test, from);
    }

    /// The clock goes back, and ids and refs change their meaning: no restart can be worse.
    #[test]
    fn whatever_is_recorded_over_a_founding_shows_the_same_when_replayed(
        before in proptest::collection::vec(a_step(), 1..60),
        after in proptest::collection::vec(a_step(), 1..60),
        published in 0..60_usize,
    ) {
        let (before, after) = (played(&before), played(&after));
        let mut tape = Tape::new(&before, at(0));
        for (change, at) in &before.changes {
            tape.take(change, *at);
        }
        tape.take(&Change::Founded { ids: IDS }, at(0));
        for (position, (change, now)) in after.changes.iter().enumerate() {
            tape.take(change, *now);
            if position == published {
                tape.take(&Change::Cut { at: *now }, *now);
            }
            if position >= published {
                tape.compare(*now);
            }
        }
        tape.finish();
        tape.compare(after.now);
    }
}

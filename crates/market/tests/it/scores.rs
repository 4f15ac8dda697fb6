//! Scores: sides, allowed transitions, and golf.

use domain::message::{Body, Correction, RejectCode, ScoreBody};
use domain::{Status, message};
use serde_json::{Value, json};

use crate::test_book::{
    ACCEPTED, Outcome, TestBook, UNCHANGED, at, head_to_head, period, report, score,
};

fn with_bout() -> TestBook {
    let mut test = TestBook::open();
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    test
}

fn tell(test: &mut TestBook, body: ScoreBody) -> Outcome {
    test.say("north", Body::Score(body))
}

fn sides(score: &Value) -> (&Value, &Value) {
    (&score["home_score"], &score["away_score"])
}

#[test]
fn a_swapped_listing_is_the_same_event_and_its_scores_are_turned() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "Oren Castellane", "TOMAS VELDT", 25)), ACCEPTED);
    let body = ScoreBody {
        periods: vec![period(1, 10, 9), period(2, 10, 8)],
        winner: Some("oren castellane".into()),
        ..score("s-1", Status::Final, 2, 0)
    };
    assert_eq!(test.say("south", Body::Score(body)), ACCEPTED);
    let scores = test.scores("mma");
    assert_eq!(scores.len(), 1);
    assert_eq!(sides(&scores[0]), (&json!(0), &json!(2)));
    let periods = json!([
        {"number": 1, "home_score": 9, "away_score": 10},
        {"number": 2, "home_score": 8, "away_score": 10},
    ]);
    assert_eq!(scores[0]["periods"], periods);
    assert_eq!(scores[0]["winner"], "Oren Castellane");
    // The first feed reports the same from its side: unchanged.
    let same = ScoreBody {
        periods: vec![period(1, 9, 10), period(2, 8, 10)],
        winner: Some("Oren Castellane".into()),
        ..score("n-1", Status::Final, 0, 2)
    };
    assert_eq!(tell(&mut test, same), UNCHANGED);
}

#[test]
fn every_event_has_a_score_before_anybody_reports() {
    let mut test = TestBook::open();
    test.wait(60);
    let listing = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24);
    assert_eq!(test.say_at("north", 45, listing), ACCEPTED);
    let score = &test.scores("mma")[0];
    assert_eq!(score["status"], "scheduled");
    assert_eq!(sides(score), (&Value::Null, &Value::Null));
    assert_eq!(score["updated_at"], "2026-11-14T12:00:45Z");
}

#[test]
fn updated_at_is_when_the_score_last_changed() {
    let mut test = with_bout();
    assert_eq!(tell(&mut test, score("n-1", Status::Live, 1, 0)), ACCEPTED);
    test.wait(60);
    assert_eq!(tell(&mut test, score("n-1", Status::Live, 1, 0)), UNCHANGED);
    assert_eq!(test.scores("mma")[0]["updated_at"], "2026-11-14T12:00:00Z");
    assert_eq!(test.say_at("north", 59, Body::Score(score("n-1", Status::Live, 1, 1))), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["updated_at"], "2026-11-14T12:00:59Z");
    // The first report of an event may repeat the default.
    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 12)), ACCEPTED);
    test.wait(60);
    assert_eq!(tell(&mut test, report("n-2", Status::Scheduled)), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["updated_at"], "2026-11-14T12:01:00Z");
}

#[test]
fn a_score_that_goes_backwards_is_refused_unless_it_is_a_correction() {
    let refused: Outcome = Err(RejectCode::IllegalTransition);
    let mut test = with_bout();
    assert_eq!(tell(&mut test, score("n-1", Status::Live, 2, 1)), ACCEPTED);
    for back in [
        score("n-1", Status::Live, 1, 1),
        score("n-1", Status::Live, 2, 0),
        report("n-1", Status::Live),
        score("n-1", Status::Scheduled, 2, 1),
    ] {
        assert_eq!(tell(&mut test, back.clone()), refused);
        let mut corrected = with_bout();
        assert_eq!(tell(&mut corrected, score("n-1", Status::Live, 2, 1)), ACCEPTED);
        let back = ScoreBody { correction: Correction::Yes, ..back };
        assert_eq!(tell(&mut corrected, back), ACCEPTED);
    }
    let won =
        |name: &str| ScoreBody { winner: Some(name.into()), ..score("n-1", Status::Final, 2, 1) };
    assert_eq!(tell(&mut test, won("Tomas Veldt")), ACCEPTED);
    assert_eq!(tell(&mut test, won("Oren Castellane")), refused);
    assert_eq!(tell(&mut test, score("n-1", Status::Live, 2, 1)), refused);
    assert_eq!(test.scores("mma")[0]["winner"], "Tomas Veldt");
    let other = ScoreBody { correction: Correction::Yes, ..won("Oren Castellane") };
    assert_eq!(tell(&mut test, other), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["winner"], "Oren Castellane");
}

#[test]
fn winner_only_for_a_finished_fight() {
    let mut test = with_bout();
    let won = |reference: &str, status| ScoreBody {
        winner: Some("Tomas Veldt".into()),
        ..score(reference, status, 1, 0)
    };
    assert_eq!(tell(&mut test, won("n-1", Status::Live)), ACCEPTED);
    assert_eq!(test.scores("mma")[0].get("winner"), None);
    assert_eq!(tell(&mut test, won("n-1", Status::Final)), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["winner"], "Tomas Veldt");

    let pair = head_to_head("Tomas Veldt", "Oren Castellane");
    assert_eq!(test.say("north", test.event("tennis", "t-1", pair, 24)), ACCEPTED);
    assert_eq!(tell(&mut test, won("t-1", Status::Final)), ACCEPTED);
    assert_eq!(test.scores("tennis")[0].get("winner"), None);

    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 48)), ACCEPTED);
    let drawn = ScoreBody { winner: Some("Draw".into()), ..report("n-2", Status::Final) };
    assert_eq!(tell(&mut test, drawn), ACCEPTED);
    assert_eq!(test.scores("mma")[1].get("winner"), None);
}

#[test]
fn golf_scores_name_leader_and_runner_up() {
    let mut test = TestBook::open();
    assert_eq!(test.say("north", test.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    let before = &test.scores("golf")[0];
    assert_eq!((&before["home_team"], &before["away_team"]), (&json!("TBD"), &json!("TBD")));
    assert_eq!(before["periods"], json!([]));

    let leaders = |names: &[(&str, &[i32])]| -> Vec<(Box<str>, Vec<i32>)> {
        names.iter().map(|(name, rounds)| ((*name).into(), rounds.to_vec())).collect()
    };
    let body = ScoreBody {
        leaders: leaders(&[("Kim Sato", &[68, 70]), ("Ivo Brandt", &[69]), ("Lars Meyn", &[75])]),
        // A field has no sides; scores that a source sends for them are ignored.
        ..score("g-1", Status::Live, 3, 4)
    };
    assert_eq!(tell(&mut test, body), ACCEPTED);
    let score = &test.scores("golf")[0];
    assert_eq!(
        (&score["home_team"], &score["away_team"]),
        (&json!("Kim Sato"), &json!("Ivo Brandt"))
    );
    assert_eq!(sides(score), (&Value::Null, &Value::Null));
    let round = json!([{"number": 1, "home_score": 68, "away_score": 69}]);
    assert_eq!(score["periods"], round, "as far as both have played");

    let alone =
        ScoreBody { leaders: leaders(&[("KIM SATO", &[68])]), ..report("g-1", Status::Live) };
    assert_eq!(tell(&mut test, alone), ACCEPTED);
    let score = &test.scores("golf")[0];
    assert_eq!((&score["home_team"], &score["away_team"]), (&json!("Kim Sato"), &json!("TBD")));
    assert_eq!(score["periods"], json!([]));
    assert_eq!(test.events("golf")[0]["home_team"], Value::Null);
}

#[test]
fn scores_and_events_come_by_start_and_id() {
    let mut test = TestBook::open();
    for (n, hours) in [30, 20, 30, 10].into_iter().enumerate() {
        let (home, away) = (format!("Home {n}"), format!("Away {n}"));
        assert_eq!(test.say("north", test.bout(&format!("n-{n}"), &home, &away, hours)), ACCEPTED);
    }
    let mut tied = [TestBook::id(0), TestBook::id(2)];
    tied.sort_unstable();
    let [first, second] = tied;
    let expected = [TestBook::id(3), TestBook::id(1), first, second];
    let ids = |rows: Vec<Value>, field: &str| -> Vec<Value> {
        rows.iter().map(|row| row[field].clone()).collect()
    };
    assert_eq!(ids(test.scores("mma"), "event_id"), expected);
    assert_eq!(ids(test.events("mma"), "id"), expected);
}

#[test]
fn what_a_feed_reports_must_not_be_ahead_of_the_clock() {
    let mut test = with_bout();
    let live = || Body::Score(score("n-1", Status::Live, 0, 0));
    assert_eq!(test.say_at("north", 6, live()), Err(RejectCode::FutureTs));
    assert_eq!(test.say_at("north", 5, live()), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["updated_at"], at(5).to_string());
    assert_eq!(message::FUTURE_TS_MS_MAX, 5_000);
}

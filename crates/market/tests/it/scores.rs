//! Scores: sides, allowed transitions, and golf.

use domain::message::{Body, Correction, RejectCode, ScoreBody};
use domain::{Status, message};
use serde_json::{Value, json};

use crate::desk::{ACCEPTED, Desk, Said, UNCHANGED, at, head_to_head, period, report, score};

fn with_bout() -> Desk {
    let mut desk = Desk::open();
    assert_eq!(desk.say("north", desk.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    desk
}

fn tell(desk: &mut Desk, body: ScoreBody) -> Said {
    desk.say("north", Body::Score(body))
}

fn sides(score: &Value) -> (&Value, &Value) {
    (&score["home_score"], &score["away_score"])
}

#[test]
fn a_swapped_listing_is_the_same_event_and_its_scores_are_turned() {
    let mut desk = with_bout();
    assert_eq!(desk.say("south", desk.bout("s-1", "Oren Castellane", "TOMAS VELDT", 25)), ACCEPTED);
    let body = ScoreBody {
        periods: vec![period(1, 10, 9), period(2, 10, 8)],
        winner: Some("oren castellane".into()),
        ..score("s-1", Status::Final, 2, 0)
    };
    assert_eq!(desk.say("south", Body::Score(body)), ACCEPTED);
    let scores = desk.scores("mma");
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
    assert_eq!(tell(&mut desk, same), UNCHANGED);
}

#[test]
fn every_event_has_a_score_before_anybody_reports() {
    let mut desk = Desk::open();
    desk.wait(60);
    let listing = desk.bout("n-1", "Tomas Veldt", "Oren Castellane", 24);
    assert_eq!(desk.say_at("north", 45, listing), ACCEPTED);
    let score = &desk.scores("mma")[0];
    assert_eq!(score["status"], "scheduled");
    assert_eq!(sides(score), (&Value::Null, &Value::Null));
    assert_eq!(score["updated_at"], "2026-11-14T12:00:45Z");
}

#[test]
fn updated_at_is_when_the_score_last_changed() {
    let mut desk = with_bout();
    assert_eq!(tell(&mut desk, score("n-1", Status::Live, 1, 0)), ACCEPTED);
    desk.wait(60);
    assert_eq!(tell(&mut desk, score("n-1", Status::Live, 1, 0)), UNCHANGED);
    assert_eq!(desk.scores("mma")[0]["updated_at"], "2026-11-14T12:00:00Z");
    assert_eq!(desk.say_at("north", 59, Body::Score(score("n-1", Status::Live, 1, 1))), ACCEPTED);
    assert_eq!(desk.scores("mma")[0]["updated_at"], "2026-11-14T12:00:59Z");
    // The first report of an event may repeat the default.
    assert_eq!(desk.say("north", desk.bout("n-2", "Milan Dray", "Pavel Orsk", 12)), ACCEPTED);
    desk.wait(60);
    assert_eq!(tell(&mut desk, report("n-2", Status::Scheduled)), ACCEPTED);
    assert_eq!(desk.scores("mma")[0]["updated_at"], "2026-11-14T12:01:00Z");
}

#[test]
fn a_score_that_goes_backwards_is_refused_unless_it_is_a_correction() {
    let refused: Said = Err(RejectCode::IllegalTransition);
    let mut desk = with_bout();
    assert_eq!(tell(&mut desk, score("n-1", Status::Live, 2, 1)), ACCEPTED);
    for back in [
        score("n-1", Status::Live, 1, 1),
        score("n-1", Status::Live, 2, 0),
        report("n-1", Status::Live),
        score("n-1", Status::Scheduled, 2, 1),
    ] {
        assert_eq!(tell(&mut desk, back.clone()), refused);
        let mut corrected = with_bout();
        assert_eq!(tell(&mut corrected, score("n-1", Status::Live, 2, 1)), ACCEPTED);
        let back = ScoreBody { correction: Correction::Yes, ..back };
        assert_eq!(tell(&mut corrected, back), ACCEPTED);
    }
    let won =
        |name: &str| ScoreBody { winner: Some(name.into()), ..score("n-1", Status::Final, 2, 1) };
    assert_eq!(tell(&mut desk, won("Tomas Veldt")), ACCEPTED);
    assert_eq!(tell(&mut desk, won("Oren Castellane")), refused);
    assert_eq!(tell(&mut desk, score("n-1", Status::Live, 2, 1)), refused);
    assert_eq!(desk.scores("mma")[0]["winner"], "Tomas Veldt");
    let other = ScoreBody { correction: Correction::Yes, ..won("Oren Castellane") };
    assert_eq!(tell(&mut desk, other), ACCEPTED);
    assert_eq!(desk.scores("mma")[0]["winner"], "Oren Castellane");
}

#[test]
fn winner_only_for_a_finished_fight() {
    let mut desk = with_bout();
    let won = |reference: &str, status| ScoreBody {
        winner: Some("Tomas Veldt".into()),
        ..score(reference, status, 1, 0)
    };
    assert_eq!(tell(&mut desk, won("n-1", Status::Live)), ACCEPTED);
    assert_eq!(desk.scores("mma")[0].get("winner"), None);
    assert_eq!(tell(&mut desk, won("n-1", Status::Final)), ACCEPTED);
    assert_eq!(desk.scores("mma")[0]["winner"], "Tomas Veldt");

    let pair = head_to_head("Tomas Veldt", "Oren Castellane");
    assert_eq!(desk.say("north", desk.event("tennis", "t-1", pair, 24)), ACCEPTED);
    assert_eq!(tell(&mut desk, won("t-1", Status::Final)), ACCEPTED);
    assert_eq!(desk.scores("tennis")[0].get("winner"), None);

    assert_eq!(desk.say("north", desk.bout("n-2", "Milan Dray", "Pavel Orsk", 48)), ACCEPTED);
    let drawn = ScoreBody { winner: Some("Draw".into()), ..report("n-2", Status::Final) };
    assert_eq!(tell(&mut desk, drawn), ACCEPTED);
    assert_eq!(desk.scores("mma")[1].get("winner"), None);
}

#[test]
fn golf_scores_name_leader_and_runner_up() {
    let mut desk = Desk::open();
    assert_eq!(desk.say("north", desk.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    let before = &desk.scores("golf")[0];
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
    assert_eq!(tell(&mut desk, body), ACCEPTED);
    let score = &desk.scores("golf")[0];
    assert_eq!(
        (&score["home_team"], &score["away_team"]),
        (&json!("Kim Sato"), &json!("Ivo Brandt"))
    );
    assert_eq!(sides(score), (&Value::Null, &Value::Null));
    let round = json!([{"number": 1, "home_score": 68, "away_score": 69}]);
    assert_eq!(score["periods"], round, "as far as both have played");

    let alone =
        ScoreBody { leaders: leaders(&[("KIM SATO", &[68])]), ..report("g-1", Status::Live) };
    assert_eq!(tell(&mut desk, alone), ACCEPTED);
    let score = &desk.scores("golf")[0];
    assert_eq!((&score["home_team"], &score["away_team"]), (&json!("Kim Sato"), &json!("TBD")));
    assert_eq!(score["periods"], json!([]));
    assert_eq!(desk.events("golf")[0]["home_team"], Value::Null);
}

#[test]
fn scores_and_events_come_by_start_and_id() {
    let mut desk = Desk::open();
    for (n, hours) in [30, 20, 30, 10].into_iter().enumerate() {
        let (home, away) = (format!("Home {n}"), format!("Away {n}"));
        assert_eq!(desk.say("north", desk.bout(&format!("n-{n}"), &home, &away, hours)), ACCEPTED);
    }
    let mut tied = [Desk::id(0), Desk::id(2)];
    tied.sort_unstable();
    let [first, second] = tied;
    let expected = [Desk::id(3), Desk::id(1), first, second];
    let ids = |rows: Vec<Value>, field: &str| -> Vec<Value> {
        rows.iter().map(|row| row[field].clone()).collect()
    };
    assert_eq!(ids(desk.scores("mma"), "event_id"), expected);
    assert_eq!(ids(desk.events("mma"), "id"), expected);
}

#[test]
fn what_a_feed_reports_must_not_be_ahead_of_the_clock() {
    let mut desk = with_bout();
    let live = || Body::Score(score("n-1", Status::Live, 0, 0));
    assert_eq!(desk.say_at("north", 6, live()), Err(RejectCode::FutureTs));
    assert_eq!(desk.say_at("north", 5, live()), ACCEPTED);
    assert_eq!(desk.scores("mma")[0]["updated_at"], at(5).to_string());
    assert_eq!(message::FUTURE_TS_MS_MAX, 5_000);
}

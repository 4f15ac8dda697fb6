//! Events, scores, sports, participants (V9, V15).

use std::time::Duration;

use serde_json::{Value, json};

use super::{MMA, keys, last, refusal};
use crate::harness::line;
use crate::test_market::{ANN, BEA, TestMarket};

#[tokio::test]
async fn events_are_odds_without_bookmakers_and_free() {
    let board = TestMarket::start().await;
    let answer = board.app.get(&format!("{MMA}/events"), &board.key).await;
    assert_eq!(last(&answer), 0);
    let event = &answer.json()[0];
    let fields = ["id", "sport_key", "sport_title", "commence_time", "home_team", "away_team"];
    assert_eq!(keys(event), fields);
    let rotated = board.get(&format!("{MMA}/events/?includeRotationNumbers=true")).await;
    assert_eq!(rotated[0]["away_rotation"], Value::Null);
    assert_eq!(keys(&rotated[0]).len(), 8);
}

#[tokio::test]
async fn scores_are_null_before_the_start_and_texts_from_then_on() {
    let board = TestMarket::start().await;
    let first = async |path: &str| board.get(path).await[0].clone();
    let scores = format!("{MMA}/scores");
    let waiting = first(&scores).await;
    assert_eq!(
        keys(&waiting),
        [
            "id",
            "sport_key",
            "sport_title",
            "commence_time",
            "completed",
            "home_team",
            "away_team",
            "scores",
            "last_update"
        ]
    );
    assert_eq!((&waiting["scores"], &waiting["last_update"]), (&Value::Null, &Value::Null));
    board.push(&[line::score("bout-1", "live", 1, 0)]).await;
    board.app.publish().await;
    let live = first(&scores).await;
    assert_eq!(
        live["scores"],
        json!([{ "name": ANN, "score": "1" }, { "name": BEA, "score": "0" }])
    );
    assert_eq!(live["completed"], false);
    assert_eq!(live["last_update"], "2026-11-14T12:00:30Z");
    let unix = first(&format!("{scores}?dateFormat=unix")).await;
    assert_eq!(unix["last_update"], 1_794_657_630);
    board.push(&[line::score("bout-1", "final", 1, 0)]).await;
    board.app.publish().await;
    assert_ne!(first(&scores).await["home_team"], ANN, "final events come with daysFrom only");
    let past = first(&format!("{scores}?daysFrom=1")).await;
    assert_eq!((&past["home_team"], &past["completed"]), (&json!(ANN), &json!(true)));
}

#[tokio::test]
async fn days_from_reaches_back_that_many_days() {
    let board = TestMarket::start().await;
    let old = line::event_at("old", "boxing", "Gil Grey", "Hal Hood", "2026-11-13T11:00:00Z");
    board.push(&[old, line::score("old", "live", 0, 0), line::score("old", "final", 0, 1)]).await;
    board.app.publish().await;
    let count = async |query: &str| {
        let answer =
            board.app.get(&format!("/v4/sports/boxing_boxing/scores{query}"), &board.key).await;
        (answer.json().as_array().unwrap().len(), last(&answer))
    };
    assert_eq!(count("").await, (1, 1));
    assert_eq!(count("?daysFrom=1").await, (1, 2), "it started 25 hours ago");
    assert_eq!(count("?daysFrom=2").await, (2, 2));
}

#[tokio::test]
async fn golf_scores_are_the_sums_of_the_leaders_rounds() {
    let board = TestMarket::start().await;
    let score = json!({
        "type": "score", "ref": "open-1", "status": "live",
        "leaders": [
            { "name": "Ned Noble", "rounds": [66, 70] }, { "name": "Max Moor", "rounds": [68] },
        ],
    });
    board.push(&[score]).await;
    board.app.publish().await;
    let scores = board.get("/v4/sports/golf/scores").await;
    assert_eq!(
        scores[0]["scores"],
        json!([{ "name": "Ned Noble", "score": "136" }, { "name": "Max Moor", "score": "68" }])
    );
    assert_eq!(scores[0]["home_team"], Value::Null);
}

#[tokio::test]
async fn sports_are_those_with_open_events_and_all_adds_the_table() {
    let board = TestMarket::start().await;
    let answer = board.app.get("/v4/sports", &board.key).await;
    assert_eq!(last(&answer), 0);
    let sports = answer.json();
    let listed = |sports: &Value| -> Vec<String> {
        let sports = sports.as_array().unwrap();
        sports.iter().map(|sport| sport["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        listed(&sports),
        [
            "americanfootball_cup",
            "boxing_boxing",
            "golf_harbour_open_winner",
            "mma_mixed_martial_arts",
            "tennis_cup"
        ]
    );
    assert_eq!(
        sports[2].to_string(),
        r#"{"key":"golf_harbour_open_winner","group":"Golf","title":"Harbour Open Winner","description":"Tour","active":true,"has_outrights":true}"#
    );
    assert_eq!(sports[3]["title"], "MMA");
    assert_eq!(sports[3]["has_outrights"], false);
    board
        .push(&[line::score("fight-1", "live", 0, 0), line::score("fight-1", "final", 1, 0)])
        .await;
    board.app.publish().await;
    assert!(!listed(&board.get("/v4/sports/").await).contains(&"boxing_boxing".to_owned()));
    let all = board.get("/v4/sports?all=true").await;
    let keys = listed(&all);
    assert!(keys.is_sorted());
    for (key, active) in [
        ("boxing_boxing", false),
        ("americanfootball_nfl", false),
        ("tennis_wta_aus_open_singles", false),
        ("golf_masters_tournament_winner", false),
        ("tennis_cup", true),
    ] {
        let at = keys.iter().position(|held| held == key).unwrap_or_else(|| panic!("{key}"));
        assert_eq!(all[at]["active"], active, "{key}");
    }
    assert!(!keys.contains(&"tennis_wta_paris_masters".to_owned()));
}

#[tokio::test]
async fn participants_are_everyone_in_the_events_and_the_clubs_of_the_league() {
    let board = TestMarket::start().await;
    let names = async |sport: &str| -> Vec<String> {
        let list = board.get(&format!("/v4/sports/{sport}/participants")).await;
        for participant in list.as_array().unwrap() {
            assert_eq!(keys(participant), ["full_name", "id"]);
            let id = participant["id"].as_str().unwrap().strip_prefix("par_").unwrap();
            let digit =
                |b: u8| b.is_ascii_digit() || (b.is_ascii_lowercase() && !b"ilou".contains(&b));
            assert!(id.len() == 26 && id.bytes().all(digit), "{id}");
        }
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["full_name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("boxing_boxing").await, ["Edith Evans", "Frieda Frost"]);
    assert_eq!(names("golf").await, ["Max Moor", "Ned Noble"]);
    let nfl = names("americanfootball_nfl").await;
    assert_eq!((nfl.len(), &*nfl[0]), (32, "Arizona Cardinals"));
    assert_eq!(names("americanfootball_cup").await.len(), 2);
    assert_eq!(names("american_football").await.len(), 34);
    let cost = async |sport: &str| {
        last(&board.app.get(&format!("/v4/sports/{sport}/participants"), &board.key).await)
    };
    assert_eq!((cost("boxing_boxing").await, cost("americanfootball_cfl").await), (1, 0));
}

#[tokio::test]
async fn upcoming_is_what_is_on_and_the_next_eight() {
    let board = TestMarket::start().await;
    let lines: Vec<Value> = (0..12)
        .map(|n| {
            let start = format!("2026-11-2{}T{:02}:00:00Z", n / 10, 3 + n % 10);
            let sport = ["tennis", "boxing"][n % 2];
            let (home, away) = (names(n), names(n + 40));
            line::event_at(&format!("next-{n}"), sport, &home, &away, &start)
        })
        .collect();
    board.push(&lines).await;
    board.push(&[line::score("bout-2", "live", 0, 0)]).await;
    board.app.publish().await;
    let path = "/v4/sports/upcoming";
    let odds =
        board.get(&format!("{path}/odds?regions=us&commenceTimeTo=2020-01-01T00:00:00Z")).await;
    let odds = odds.as_array().unwrap();
    assert_eq!(odds.len(), 9, "{odds:#?}");
    let times: Vec<&str> = odds.iter().map(|e| e["commence_time"].as_str().unwrap()).collect();
    assert!(times.is_sorted());
    assert_eq!(times[8], "2026-11-29T03:00:00Z", "the one that is live");
    assert!(odds.iter().all(|event| event["home_team"] != Value::Null));
    for what in ["events", "scores"] {
        assert_eq!(board.list(&format!("{path}/{what}")).await.len(), 9, "{what}");
    }
    let tennis = board.app.key_for_groups(&["tennis"]).await;
    let scoped = board.app.get(&format!("{path}/events"), &tennis).await.json();
    let scoped = scoped.as_array().unwrap();
    assert_eq!(scoped.len(), 7, "six of these and one of the board");
    assert!(scoped.iter().all(|event| event["sport_key"] == "tennis_cup"));
    let refused = board.app.get(&format!("{path}/participants"), &board.key).await;
    assert_eq!(refusal(&refused), (404, "UNKNOWN_SPORT".to_owned()));
    let outrights =
        board.app.get(&format!("{path}/odds?regions=us&markets=outrights"), &board.key).await;
    assert_eq!(refusal(&outrights), (422, "INVALID_MARKET_COMBO".to_owned()));
}

/// Names that are not matched with each other.
fn names(n: usize) -> String {
    const FIRST: [&str; 8] =
        ["Quill", "Rhoda", "Silas", "Tilda", "Ursa", "Vidar", "Wanda", "Xenia"];
    const LAST: [&str; 8] = [
        "Abernathy",
        "Brockhurst",
        "Castellan",
        "Dunmore",
        "Eklund",
        "Fjordson",
        "Gallo",
        "Hyland",
    ];
    format!("{} {}", FIRST[n % 8], LAST[n / 8 % 8])
}

#[tokio::test]
async fn a_key_is_known_as_long_as_it_has_events_and_one_of_the_table_always() {
    let board = TestMarket::start().await;
    let status = async |sport: &str| {
        board.app.get(&format!("/v4/sports/{sport}/events"), &board.key).await.status
    };
    for known in
        ["americanfootball_nfl", "tennis_atp_us_open", "boxing_boxing", "tennis_cup", "golf"]
    {
        assert_eq!(status(known).await, 200, "{known}");
    }
    for unknown in ["soccer_epl", "tennis_atp_cup", "MMA", "tennis_", "upcomming"] {
        assert_eq!(status(unknown).await, 404, "{unknown}");
    }
    let nfl = board.get("/v4/sports/americanfootball_nfl/odds?regions=us").await;
    assert_eq!(nfl, json!([]));
    // Final events are removed after three days, and the key with the last of them.
    board
        .push(&[line::score("match-1", "live", 0, 0), line::score("match-1", "final", 2, 0)])
        .await;
    board.app.publish().await;
    assert_eq!(board.get("/v4/sports/tennis_cup/odds?regions=us").await, json!([]));
    board.app.publish_after(Duration::from_secs(4 * 86_400)).await;
    assert_eq!(status("tennis_cup").await, 404);
}

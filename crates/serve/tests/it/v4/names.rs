//! Sport keys by competition (V8).

use serde_json::json;

use crate::harness::{TestApp, line};

#[tokio::test]
async fn competitions_have_the_keys_of_the_prior_interface() {
    let app = TestApp::start().await;
    let (key, feed) = (app.live_key().await, app.any_feed().await);
    let mut lines = Vec::new();
    for (n, (sport, competition, home, away)) in [
        ("tennis", "Vellmar Open (men)", "Abel Aker", "Boris Brand"),
        ("tennis", "WTA Nørhavn Masters 2026", "Cora Clay", "Dina Dorn"),
        ("tennis", "Lakeside Challenger", "Emil Ernst", "Falk Fuchs"),
        ("tennis", "Roland Garros - Women's Singles", "Gerda Gross", "Hilde Hahn"),
        ("american_football", "NFL", "Chicago Bears", "Detroit Lions"),
        ("american_football", "Seaboard Collegiate Conference", "Iver Ibex", "Jade Jays"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut event = line::event(&format!("e{n}"), sport, home, away);
        event["competition"] = competition.into();
        lines.push(event);
    }
    app.push_all(&feed, &lines).await;
    app.publish().await;
    let sports = app.get("/v4/sports", &key).await.json();
    let short: Vec<_> = sports
        .as_array()
        .unwrap()
        .iter()
        .map(|sport| json!([sport["key"], sport["group"], sport["title"], sport["description"]]))
        .collect();
    let (football, tennis) = ("American Football", "Tennis");
    let (men, women) = ("Men's Singles", "Women's Singles");
    assert_eq!(
        json!(short),
        json!([
            ["americanfootball_nfl", football, "NFL", "US Football"],
            [
                "americanfootball_seaboard_collegiate_conference",
                football,
                "Seaboard Collegiate Conference",
                football
            ],
            ["tennis_atp_vellmar_open", tennis, "ATP Vellmar Open", men],
            ["tennis_lakeside_challenger", tennis, "Lakeside Challenger", tennis],
            ["tennis_wta_french_open", tennis, "WTA French Open", women],
            ["tennis_wta_norhavn_masters", tennis, "WTA Nørhavn Masters 2026", women],
        ])
    );
    let all = app.get("/v4/sports/tennis/events", &key).await.json();
    assert_eq!(all.as_array().unwrap().len(), 4, "our own key is the whole sport");
    let one = app.get("/v4/sports/tennis_atp_vellmar_open/events", &key).await.json();
    assert_eq!(one[0]["home_team"], "Abel Aker");
    assert_eq!(one.as_array().unwrap().len(), 1);
}

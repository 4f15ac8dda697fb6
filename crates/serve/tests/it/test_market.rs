//! A small set of realistic events in the live world, at least one in every sport.

use serde_json::{Value, json};

use crate::harness::{TestApp, line};

/// A service with these events published, a key that can read them, and the feed that pushed them.
#[derive(Debug)]
pub(crate) struct TestMarket {
    pub(crate) app: TestApp,
    pub(crate) key: String,
    pub(crate) feed: String,
}

pub(crate) const ANN: &str = "Ann Archer";
pub(crate) const BEA: &str = "Beatrix Bowen";

impl TestMarket {
    pub(crate) async fn start() -> Self {
        Self::on(TestApp::start().await).await
    }

    pub(crate) async fn on(app: TestApp) -> Self {
        let (key, feed) = (app.live_key().await, app.any_feed().await);
        app.push_all(&feed, &lines()).await;
        app.publish().await;
        Self { app, key, feed }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.app.get(path, &self.key).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// A list that must not be empty.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.as_array().unwrap().clone();
        assert!(!list.is_empty(), "{path} is empty");
        list
    }

    pub(crate) async fn push(&self, lines: &[Value]) {
        self.app.push_all(&self.feed, lines).await;
    }

    /// The id of the bout between Ann and Bea.
    pub(crate) async fn bout_id(&self) -> String {
        self.event_of("mma", ANN).await["id"].as_str().unwrap().to_owned()
    }

    /// The event with this home side or title.
    pub(crate) async fn event_of(&self, sport: &str, name: &str) -> Value {
        let events = self.list(&format!("/v1/sports/{sport}/events")).await;
        let named = |event: &&Value| event["home_team"] == name || event["title"] == name;
        events.iter().find(named).unwrap_or_else(|| panic!("no {name}")).clone()
    }
}

/// All lines, as one feed would push them.
pub(crate) fn lines() -> Vec<Value> {
    let over_under = |point: f64| {
        json!([
            { "name": "Over", "price": -115, "point": point },
            { "name": "Under", "price": -105, "point": point },
        ])
    };
    let spread = |home: &str, away: &str| {
        json!([
            { "name": home, "price": -110, "point": -3.5 },
            { "name": away, "price": -110, "point": 3.5 },
        ])
    };
    let (carla, dora) = ("Carla Cruz", "Dorothea Dunn");
    let (iga, jessica) = ("Ingrid Ivanova", "Jessamine Jones");
    let (kites, larks) = ("Kingston Kites", "Lancaster Larks");
    vec![
        line::event("bout-1", "mma", ANN, BEA),
        line::moneyline("bout-1", "fanduel", (ANN, 120), (BEA, -140)),
        line::odds("bout-1", "fanduel", "total_rounds", "american", &over_under(2.5)),
        line::odds(
            "bout-1",
            "draftkings",
            "moneyline",
            "decimal",
            &json!([{ "name": ANN, "price": 2.25 }, { "name": BEA, "price": 1.7 }]),
        ),
        line::odds(
            "bout-1",
            "bet365",
            "moneyline",
            "fractional",
            &json!([{ "name": ANN, "price": "5/4" }, { "name": BEA, "price": "4/6" }]),
        ),
        line::moneyline("bout-1", "888sport", (ANN, 118), (BEA, -138)),
        line::moneyline("bout-1", "sportsbet", (ANN, 119), (BEA, -139)),
        line::event_at("bout-2", "mma", carla, dora, "2026-11-29T03:00:00Z"),
        line::moneyline("bout-2", "fanduel", (carla, -300), (dora, 240)),
        line::event("fight-1", "boxing", "Edith Evans", "Frieda Frost"),
        line::moneyline("fight-1", "fanduel", ("Edith Evans", -110), ("Frieda Frost", -110)),
        line::event("match-1", "tennis", iga, jessica),
        line::moneyline("match-1", "fanduel", (iga, -250), (jessica, 205)),
        line::odds("match-1", "fanduel", "spread", "american", &spread(iga, jessica)),
        line::odds("match-1", "fanduel", "total_points", "american", &over_under(21.5)),
        line::event("game-1", "american_football", kites, larks),
        line::odds("game-1", "fanduel", "spread", "american", &spread(kites, larks)),
        line::odds("game-1", "fanduel", "total_points", "american", &over_under(44.5)),
        line::tournament("open-1", "Harbour Open"),
        line::odds(
            "open-1",
            "fanduel",
            "outright",
            "american",
            &json!([{ "name": "Max Moor", "price": 900 }, { "name": "Ned Noble", "price": 1400 }]),
        ),
    ]
}

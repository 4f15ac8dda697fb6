//! H25 at the API: the answers at each publication of a random market equal those as of then, whether they are read
//! from the log, the archive, or merged files, and after a log was restored and lost.

use std::fs;
use std::time::Duration;

use domain::{EventId, World};
use engine::Compact;
use market::Operation;
use serde_json::{Value, json};

use super::history::Seen;
use crate::harness::{TestApp, line};

const ROUNDS: usize = 8;
const PATHS: [&str; 13] = [
    "/v1/sports",
    "/v1/sports/mma/odds?limit=500",
    "/v1/sports/mma/odds?group_by=bout",
    "/v1/sports/mma/scores?limit=500",
    "/v1/sports/mma/events?limit=500",
    "/v1/sports/tennis/odds?odds_format=decimal",
    "/v1/sports/tennis/scores",
    "/v1/sports/mma/fair",
    "/v1/sports/tennis/arbitrage?regions=us,uk",
    "/v1/sports/tennis/ev?reference=consensus&regions=us,uk",
    "/v1/sports/mma/middles",
    "/v1/sports/golf/odds",
    "/v1/sports/golf/events",
];
const BOOKMAKERS: [&str; 3] = ["fanduel", "draftkings", "bet365"];
const PEOPLE: [&str; 8] = [
    "Ann Archer",
    "Beatrix Bowen",
    "Cleo Clark",
    "Dora Dunn",
    "Eva Ellis",
    "Fay Foster",
    "Gia Grant",
    "Hana Holt",
];

/// A generator with the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn of(&mut self, all: &[&'static str]) -> &'static str {
        all[self.below(all.len())]
    }

    fn price(&mut self) -> i32 {
        let price = i32::try_from(self.below(400)).unwrap() + 100;
        if self.below(2) == 0 { price } else { -price }
    }

    /// A feed's next line; some are rejected, for example those of events that were not listed.
    fn line(&mut self) -> Value {
        let number = self.below(6);
        let reference = format!("r{number}");
        let (home, away) = (PEOPLE[number], self.of(&PEOPLE[6..]));
        let bookmaker = self.of(&BOOKMAKERS);
        match self.below(20) {
            0..5 if number == 5 => line::tournament(&reference, "Open"),
            0..5 => line::event(&reference, ["mma", "tennis"][number % 2], home, away),
            5..12 if number == 5 => {
                let outcomes =
                    PEOPLE.map(|name| json!({ "name": name, "price": self.price().abs() }));
                line::odds(&reference, bookmaker, "outright", "american", &json!(outcomes))
            }
            5..12 => {
                let away = ("", self.price());
                let mut odds = line::moneyline(&reference, bookmaker, (home, self.price()), away);
                // The other side may have another name by now.
                odds["outcomes"][1]["name"] = self.of(&PEOPLE[6..]).into();
                odds
            }
            12 => line::odds(&reference, bookmaker, "moneyline", "american", &json!([])),
            13..16 => line::heartbeat(bookmaker, self.of(&["mma", "tennis", "golf"])),
            16 | 17 => {
                let status = self.of(&["live", "live", "live", "final"]);
                let points = [self.below(9), self.below(9)].map(|n| i32::try_from(n).unwrap());
                line::score(&reference, status, points[0], points[1])
            }
            18 => json!({ "type": "remove", "ref": reference }),
            _ => json!({ "type": "heartbeat", "bookmaker": bookmaker }),
        }
    }
}

struct Market {
    random: Random,
    key: String,
    feeds: Vec<String>,
    seen: Vec<Seen>,
}

impl Market {
    /// Some pushes, with the answers for each publication after them.
    async fn go_on(&mut self, app: &TestApp, rounds: usize) {
        for _ in 0..rounds {
            for feed in &self.feeds {
                let lines: Vec<Value> =
                    (0..self.random.below(12)).map(|_| self.random.line()).collect();
                if !lines.is_empty() {
                    app.push(feed, crate::harness::ndjson(&lines)).await;
                }
            }
            if self.random.below(6) == 0 {
                self.merge(app).await;
            }
            app.publish().await;
            if self.random.below(4) == 0 {
                app.advance(Duration::from_secs(7200));
                app.publish().await;
            }
            for path in PATHS {
                self.seen.push(Seen::new(path, &app.get(path, &self.key).await));
            }
            for sport in ["mma", "golf"] {
                self.seen.extend(Seen::events(app, &self.key, sport).await);
            }
        }
    }

    /// An operator merges two events.
    async fn merge(&mut self, app: &TestApp) {
        let events = app.get("/v1/sports/mma/events?limit=500", &self.key).await.json();
        let ids = events.as_array().unwrap().iter();
        let ids: Vec<_> = ids.filter_map(|event| EventId::parse(event["id"].as_str()?)).collect();
        if let [one, other, ..] = *ids {
            let merged =
                app.service.api.world(World::Live).operate(Operation::Merge { one, other });
            // The merge may be refused.
            merged.await.ok();
        }
    }

    async fn check(&self, app: &TestApp) {
        for one in &self.seen {
            one.check(app, &self.key, std::slice::from_ref(&one.published_at)).await;
        }
    }
}

async fn flush(app: &TestApp, compact: Compact) {
    assert!(app.service.api.world(World::Live).history.flush(compact).await.unwrap());
}

/// The same service on the same disk, a while later.
async fn again(app: TestApp, change: impl FnOnce(&std::path::Path)) -> TestApp {
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    change(dir.path());
    TestApp::builder().archived().starting_at(now).on(dir).start().await
}

#[tokio::test]
async fn a_random_market_is_answered_again_from_wherever_it_is_read() {
    let app = TestApp::builder().archived().start().await;
    let feeds = vec![app.feed("one", None).await, app.feed("two", None).await];
    let key = app.live_key().await;
    let mut market = Market { random: Random(25), key, feeds, seen: Vec::new() };
    market.go_on(&app, ROUNDS).await;
    market.check(&app).await;
    flush(&app, Compact::Due).await;
    let backup = app.copy_of_disk();
    let app = again(app, |_| {}).await;
    market.go_on(&app, ROUNDS).await;
    flush(&app, Compact::Due).await;
    market.check(&app).await;

    // The log is restored to its earlier state, and continues differently.
    let app = again(app, |dir| {
        fs::remove_dir_all(dir.join("live")).unwrap();
        fs::rename(backup.path().join("live"), dir.join("live")).unwrap();
    });
    let app = app.await;
    market.go_on(&app, ROUNDS).await;
    market.check(&app).await;
    for compact in [Compact::Due, Compact::All] {
        flush(&app, compact).await;
        market.check(&app).await;
    }

    // From the archive alone.
    let app = again(app, |dir| fs::remove_dir_all(dir.join("live")).unwrap()).await;
    market.check(&app).await;
    market.go_on(&app, ROUNDS / 4).await;
    flush(&app, Compact::All).await;
    market.check(&app).await;
}

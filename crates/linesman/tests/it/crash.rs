//! Kill -9 at random points under load: acknowledged data is present, ids stay the same, no limit is exceeded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use domain::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use crate::harness::{
    Answer, Done, Service, TestProgram, UNLIMITED, client, moneyline, ndjson, now, post, wait_for,
};

const ROUNDS: u64 = 32;
const SEED: u64 = 20_261_115;
/// The sports, one per pusher: events of different sports are never matched.
const SPORTS: [&str; 3] = ["mma", "boxing", "tennis"];
const BOOKMAKERS: [&str; 2] = ["fanduel", "draftkings"];
/// Number of events that each pusher keeps changing.
const BOARD: u64 = 3;

#[tokio::test]
async fn nothing_acknowledged_is_lost_and_no_limit_passed_through_32_kills() {
    let begun = Instant::now();
    let mut random = StdRng::seed_from_u64(SEED);
    // Every start uses a different port, so no connection outlives its service.
    let client = client();
    let program = TestProgram::new();
    let reader = program.live_key().await;
    let marker = program.feed("marker").await;
    let mut pushers = Vec::new();
    for sport in SPORTS {
        pushers.push(Pusher::new(sport, program.feed(sport).await));
    }
    let mut counted = Counted::create(&program).await;
    let mut ids = BTreeMap::new();
    let mut keys = Keys::default();
    let mut changing: Option<JoinHandle<Keys>> = None;

    for round in 1..=ROUNDS {
        let service = program.start().await;
        // A command line that was running when the service was killed may see the next one starting.
        if let Some(changing) = changing.take() {
            keys = changing.await.unwrap();
        }
        show_marker(&service, &marker, &reader, round).await;
        for pusher in &pushers {
            pusher.check(&service, &reader, &mut ids).await;
        }
        keys.check(&service).await;
        if round == ROUNDS {
            // Dropping it would also kill it, but without waiting for its end.
            service.kill().await;
            break;
        }
        let pushing: Vec<_> = pushers
            .drain(..)
            .map(|pusher| tokio::spawn(pusher.run(client.clone(), service.base.clone())))
            .collect();
        let asking = counted.load(&client, &service.base);
        changing = Some(tokio::spawn(keys.change(&program)));
        keys = Keys::default();
        tokio::time::sleep(Duration::from_millis(random.random_range(10..700))).await;
        service.kill().await;
        for pusher in pushing {
            pushers.push(pusher.await.unwrap());
        }
        counted.take(asking).await;
    }
    let acknowledged: u64 = pushers.iter().map(|pusher| pusher.lines_acknowledged).sum();
    println!(
        "{} kills in {:?}: {acknowledged} lines acknowledged, {} events, {} keys created, {} revoked; {}",
        ROUNDS - 1,
        begun.elapsed(),
        ids.len(),
        keys.live.len() + keys.revoked.len(),
        keys.revoked.len(),
        counted.summary(),
    );
    counted.check(&program).await;
    assert!(acknowledged > 100, "the load was no load");
}

/// Pushes a price that only this round uses and waits until it is shown: then everything accepted before is shown
/// too.
async fn show_marker(service: &Service, token: &str, key: &str, round: u64) {
    let listing = json!({
        "type": "event", "ref": "m", "sport": "american_football", "competition": "NFL",
        "commence_time": "2027-01-10T18:00:00Z", "home": "Marker Home", "away": "Marker Away",
    });
    let price = i64::try_from(1000 + round).unwrap();
    let odds = moneyline("m", "fanduel", &[("Marker Home", price), ("Marker Away", -200)]);
    let answer = service.post(token, ndjson(&[listing, odds])).await.unwrap();
    assert_eq!((answer.status, &answer.json()["rejected"]), (200, &json!([])));
    wait_for("the marker", async || {
        let shown = service.get("/v1/sports/american_football/odds", key).await.json();
        (shown[0]["outcomes"][0]["price"] == price).then_some(())
    })
    .await;
}

/// The last number that was acknowledged and the last one that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    acknowledged: u64,
    sent: u64,
}

impl Span {
    fn holds(self, shown: u64) -> bool {
        (self.acknowledged..=self.sent).contains(&shown)
    }
}

/// A feed that counts upwards and remembers the acknowledged numbers.
struct Pusher {
    sport: &'static str,
    token: String,
    /// The number of the next batch, from which its prices are derived.
    next: u64,
    /// By home team and bookmaker.
    prices: BTreeMap<(String, &'static str), Span>,
    score: Span,
    /// Home teams.
    events: BTreeSet<String>,
    lines_acknowledged: u64,
}

impl Pusher {
    fn new(sport: &'static str, token: String) -> Self {
        Self {
            sport,
            token,
            next: 1,
            prices: BTreeMap::new(),
            score: Span::default(),
            events: BTreeSet::new(),
            lines_acknowledged: 0,
        }
    }

    /// Pushes batch after batch until the service is gone.
    async fn run(mut self, client: Client, base: String) -> Self {
        while self.push(&client, &base).await.is_some() {}
        self
    }

    async fn push(&mut self, client: &Client, base: &str) -> Option<()> {
        let number = self.next;
        self.next += 1;
        // The same few events change all the time, and every fourth batch adds a new one.
        let mut refs: Vec<u64> = (0..BOARD).collect();
        refs.extend((number.is_multiple_of(4)).then_some(BOARD + number));
        let mut lines: Vec<Value> = refs.iter().map(|event| self.listing(*event)).collect();
        let price = i64::try_from(1000 + number).unwrap();
        let mut touched = Vec::new();
        for event in &refs {
            let (home, away) = names(*event);
            for bookmaker in BOOKMAKERS {
                let offers = [(home.as_str(), price), (away.as_str(), -price)];
                lines.push(moneyline(&format!("e{event}"), bookmaker, &offers));
                let key = (home.clone(), bookmaker);
                self.prices.entry(key.clone()).or_default().sent = number;
                touched.push(key);
            }
        }
        lines.push(json!({
            "type": "score", "ref": "e0", "status": "live", "home_score": number, "away_score": 0,
            "periods": [],
        }));
        self.score.sent = number;
        // The kill may occur before, during or after the answer.
        let answer = post(client, base, &self.token, ndjson(&lines)).await.ok()?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let receipt = answer.json();
        let count = |field: &str| receipt[field].as_u64().unwrap();
        let lines = u64::try_from(lines.len()).unwrap();
        assert_eq!(count("accepted") + count("unchanged"), lines, "{receipt}");
        for key in touched {
            self.prices.entry(key).or_default().acknowledged = number;
        }
        self.score.acknowledged = number;
        self.events.extend(refs.iter().map(|event| names(*event).0));
        self.lines_acknowledged += lines;
        Some(())
    }

    fn listing(&self, event: u64) -> Value {
        let (home, away) = names(event);
        json!({
            "type": "event", "ref": format!("e{event}"), "sport": self.sport, "competition": "Crash",
            "commence_time": "2026-01-10T18:00:00Z", "home": home, "away": away,
        })
    }

    /// Checks that everything acknowledged is shown.
    async fn check(
        &self,
        service: &Service,
        key: &str,
        ids: &mut BTreeMap<(String, String), String>,
    ) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let events =
            service.pages(&format!("/v1/sports/{}/events?limit=500", self.sport), key).await;
        let mut homes = BTreeMap::new();
        for event in &events {
            let (id, home) = (text(&event["id"]), text(&event["home_team"]));
            let known = ids.entry((self.sport.to_owned(), home.clone())).or_insert(id.clone());
            assert_eq!(*known, id, "{home} has another id");
            assert!(homes.insert(id, home).is_none());
        }
        let shown: BTreeSet<&String> = homes.values().collect();
        for home in &self.events {
            assert!(shown.contains(home), "{} {home} is lost", self.sport);
        }
        let odds = service.pages(&format!("/v1/sports/{}/odds?limit=500", self.sport), key).await;
        let mut prices: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for record in &odds {
            let home = homes[record["event_id"].as_str().unwrap()].as_str();
            let price = record["outcomes"][0]["price"].as_u64().unwrap() - 1000;
            let slot = (home, record["bookmaker"].as_str().unwrap());
            assert!(prices.insert(slot, price).is_none(), "{slot:?} twice");
        }
        for ((home, bookmaker), span) in &self.prices {
            let shown = prices.get(&(home.as_str(), *bookmaker)).copied().unwrap_or(0);
            assert!(span.holds(shown), "{} {home} {bookmaker}: {shown} for {span:?}", self.sport);
        }
        let scores =
            service.pages(&format!("/v1/sports/{}/scores?limit=500", self.sport), key).await;
        let board =
            scores.iter().find(|score| homes[score["event_id"].as_str().unwrap()] == names(0).0);
        let shown = board.and_then(|score| score["home_score"].as_u64()).unwrap_or(0);
        assert!(self.score.holds(shown), "{}: score {shown} for {:?}", self.sport, self.score);
    }
}

fn names(event: u64) -> (String, String) {
    (format!("Home {event}"), format!("Away {event}"))
}

/// Keys created and revoked from the command line, as acknowledged.
#[derive(Default)]
struct Keys {
    live: Vec<String>,
    revoked: Vec<String>,
}

impl Keys {
    /// Creates a key and revokes the oldest, whatever happens to the service meanwhile.
    fn change(self, program: &TestProgram) -> impl Future<Output = Self> + Send + use<> {
        let create = program
            .command(&[&["keys", "create", "--kind", "production"], &UNLIMITED[..]].concat());
        let oldest = (self.live.len() > 3).then(|| self.live[0].clone());
        let revoke = oldest.map(|key| program.command(&["keys", "revoke", &key]));
        async move {
            let mut keys = self;
            let created = Done::of(create).await;
            if is_confirmed(&created) {
                keys.live.push(created.stdout.trim().to_owned());
            }
            if let Some(revoke) = revoke {
                let revoked = Done::of(revoke).await;
                let key = keys.live.remove(0);
                if is_confirmed(&revoked) {
                    keys.revoked.push(key);
                }
            }
            keys
        }
    }

    async fn check(&self, service: &Service) {
        for (keys, status) in [(&self.live, 200), (&self.revoked, 401)] {
            for key in keys {
                assert_eq!(service.get("/v1/status", key).await.status, status);
            }
        }
    }
}

/// Whether a change was confirmed. A server that takes long to start confirms nothing.
fn is_confirmed(change: &Done) -> bool {
    let unanswered = "the server that runs on this folder does not answer";
    if change.code == Some(1) && change.stderr.contains(unanswered) {
        return false;
    }
    assert_eq!(change.code, Some(0), "{}", change.stderr);
    true
}

/// A key with limits, and the answers that it got.
struct Limited {
    key: String,
    limits: [(Window, u32); 3],
    answers: Vec<Got>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Minute,
    Day,
    Month,
}

impl Window {
    /// The minute, day or month as a prefix of a timestamp.
    fn of(self, at: Timestamp) -> String {
        let length = match self {
            Self::Minute => "2026-11-15T03:32".len(),
            Self::Day => "2026-11-15".len(),
            Self::Month => "2026-11".len(),
        };
        at.to_string().chars().take(length).collect()
    }
}

/// The outcome of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Served,
    BurstSpent,
    QuotaSpent,
    Unavailable,
}

#[derive(Clone, Copy, Debug)]
struct Got {
    sent: Timestamp,
    received: Timestamp,
    outcome: Outcome,
}

/// Keys whose limits are low enough to be reached.
struct Counted {
    keys: Vec<Limited>,
}

const FAR: u32 = 1_000_000;

impl Counted {
    async fn create(program: &TestProgram) -> Self {
        let mut keys = Vec::new();
        for (minute, day, month) in [(30, FAR, FAR), (FAR, 250, FAR), (FAR, FAR, 250), (60, 90, 80)]
        {
            let numbers = [minute, day, month].map(|limit: u32| limit.to_string());
            let mut create = vec!["keys", "create", "--kind", "production"];
            create.extend(["--burst-per-minute", &numbers[0], "--requests-per-day", &numbers[1]]);
            create.extend(["--requests-per-month", &numbers[2]]);
            let limits = [(Window::Minute, minute), (Window::Day, day), (Window::Month, month)];
            keys.push(Limited { key: program.ok(&create).await, limits, answers: Vec::new() });
        }
        Self { keys }
    }

    /// Sends requests with every key, from two tasks each, until the service is gone.
    fn load(&self, client: &Client, base: &str) -> JoinSet<(usize, Vec<Got>)> {
        let mut asking = JoinSet::new();
        for (number, limited) in self.keys.iter().enumerate().flat_map(|key| [key, key]) {
            let (url, key) = (format!("{base}/v1/books"), limited.key.clone());
            let client = client.clone();
            asking.spawn(async move {
                let mut answers = Vec::new();
                while let Some(got) = ask(&client, &url, &key).await {
                    answers.push(got);
                }
                (number, answers)
            });
        }
        asking
    }

    async fn take(&mut self, asking: JoinSet<(usize, Vec<Got>)>) {
        for (number, answers) in asking.join_all().await {
            self.keys[number].answers.extend(answers);
        }
    }

    /// Spends the quota that the crashes left, then counts.
    async fn check(&mut self, program: &TestProgram) {
        let service = program.start().await;
        let url = service.url("/v1/books");
        for limited in &mut self.keys {
            let mut spent = false;
            while !spent {
                let got = ask(&service.client, &url, &limited.key).await.unwrap();
                spent = matches!(got.outcome, Outcome::BurstSpent | Outcome::QuotaSpent);
                limited.answers.push(got);
            }
        }
        for (number, limited) in self.keys.iter().enumerate() {
            for (window, limit) in limited.limits {
                limited.check_window(number, window, limit);
            }
        }
        let reached = |number: usize, outcome| {
            let answers = &self.keys[number].answers;
            assert!(
                answers.iter().any(|got| got.outcome == outcome),
                "key {number} never {outcome:?}"
            );
        };
        reached(0, Outcome::BurstSpent);
        reached(1, Outcome::QuotaSpent);
        reached(2, Outcome::QuotaSpent);
    }

    fn summary(&self) -> String {
        let count = |limited: &Limited, outcome| {
            limited.answers.iter().filter(|got| got.outcome == outcome).count()
        };
        let lines = self.keys.iter().map(|limited| {
            let [(_, minute), (_, day), (_, month)] = limited.limits;
            format!(
                "limits {minute}/{day}/{month}: {} served, {} over burst, {} over quota, {} unavailable",
                count(limited, Outcome::Served),
                count(limited, Outcome::BurstSpent),
                count(limited, Outcome::QuotaSpent),
                count(limited, Outcome::Unavailable),
            )
        });
        lines.collect::<Vec<_>>().join("; ")
    }
}

impl Limited {
    fn check_window(&self, number: usize, window: Window, limit: u32) {
        let mut spent: BTreeMap<String, u32> = BTreeMap::new();
        for got in &self.answers {
            let counts = match window {
                // Every request that passed the burst limit counts towards it.
                Window::Minute => got.outcome != Outcome::BurstSpent,
                Window::Day | Window::Month => got.outcome == Outcome::Served,
            };
            // A request in progress when the window ended may count towards either.
            let (first, last) = (window.of(got.sent), window.of(got.received));
            if counts && got.outcome != Outcome::Unavailable && first == last {
                *spent.entry(first).or_default() += 1;
            }
        }
        for (span, spent) in spent {
            assert!(spent <= limit, "key {number} got {spent} of {limit} in {span}");
        }
    }
}

/// One request; `None` if the service is gone.
async fn ask(client: &Client, url: &str, key: &str) -> Option<Got> {
    let sent = now();
    let answer = Answer::of(client.get(url).header("X-API-Key", key)).await.ok()?;
    let outcome = match answer.status {
        200 => Outcome::Served,
        429 if answer.code() == "rate_limited" => Outcome::BurstSpent,
        429 => Outcome::QuotaSpent,
        503 => Outcome::Unavailable,
        other => panic!("{other}: {}", answer.text()),
    };
    if outcome != Outcome::Served {
        // A refused client pauses.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Some(Got { sent, received: now(), outcome })
}

//! The law of streams and of polling (S4, S7, S9, S18) over worlds that change at random.
//!
//! Whatever a client follows, wherever its connection breaks and wherever it continues, its state equals the list
//! after every publication.

use std::collections::BTreeSet;

use api::v1::stream::StreamSettings;
use domain::World;
use serde_json::{Value, json};

use super::client::{Client, State, check, is_publication};
use crate::harness::{TestApp, line, ndjson};
use crate::shared::Pair;

/// Pseudo-random numbers, the same in every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let at = self.below(u64::try_from(all.len()).unwrap());
        all[usize::try_from(at).unwrap()]
    }
}

const EVENTS: u64 = 4;
const BOOKS: [&str; 4] = ["fanduel", "betmgm", "caesars", "888sport"];
const STATUSES: [&str; 3] = ["scheduled", "live", "final"];

fn sides(n: u64) -> (String, String) {
    (format!("Ann{n} Aberg{n}"), format!("Bea{n} Bryant{n}"))
}

fn listing(n: u64) -> Value {
    let (one, other) = sides(n);
    line::event(&format!("r-{n}"), "mma", &one, &other)
}

/// A feed's message about one of the events.
pub(super) fn random_line(random: &mut Random) -> Value {
    let n = random.below(EVENTS);
    let (reference, (one, other)) = (format!("r-{n}"), sides(n));
    let (book, price) = (random.of(&BOOKS), 105 + i32::try_from(random.below(2)).unwrap() * 10);
    match random.below(12) {
        0 | 1 => listing(n),
        2 => json!({"type": "remove", "ref": reference}),
        3 | 4 => line::score(&reference, random.of(&STATUSES), 0, 0),
        5..=7 => {
            json!({"type": "odds", "ref": reference, "bookmaker": book, "market": "moneyline", "outcomes": []})
        }
        8 => {
            let prices = json!([{"name": "Over", "price": 1.9, "point": 2.5}, {"name": "Under", "price": 1.9, "point": 2.5}]);
            line::odds(&reference, book, "total_rounds", "decimal", &prices)
        }
        _ => line::moneyline(&reference, book, (&one, price), (&other, -155)),
    }
}

/// A selection: its channel, and its filter in the syntax of a list.
fn random_selection(random: &mut Random, ids: &[String]) -> (&'static str, String) {
    let events = || format!("&event_ids={}", ids[..2].join(","));
    match random.below(8) {
        0 => ("odds", String::new()),
        1 => ("odds", format!("&bookmaker={}", random.of(&BOOKS))),
        2 => ("odds", format!("&market={}", random.of(&["moneyline", "total_rounds"]))),
        3 => ("odds", format!("&regions={}", random.of(&["us", "uk"]))),
        4 => ("odds", events()),
        5 => ("scores", format!("&status={}", random.of(&STATUSES))),
        6 => ("events", format!("&status={}", random.of(&STATUSES))),
        _ => ("events", events()),
    }
}

/// A client that follows a selection.
struct Follower {
    channel: &'static str,
    filter: String,
    mode: &'static str,
    client: Client,
    /// State for polling: a cursor, and the rows from its pages and from later publications.
    since: String,
    rows: State,
}

impl Follower {
    async fn begin(app: &TestApp, key: &str, random: &mut Random, ids: &[String]) -> Self {
        let (channel, filter) = random_selection(random, ids);
        let mode = random.of(&["live", "publication"]);
        let query = query(channel, &filter, mode);
        let mut client = Client::open(app, key, &query, None).await.0;
        client.cut().await;
        let (since, rows) = (client.cursor.clone(), client.state.clone());
        Self { channel, filter, mode, client, since, rows }
    }

    /// Continues from its last cut.
    async fn go_on(&mut self, app: &TestApp, key: &str) {
        let query = query(self.channel, &self.filter, self.mode);
        let (mut client, hello) = Client::open(app, key, &query, Some(&self.client.cursor)).await;
        assert_eq!(hello["resumed"], true);
        client.state = std::mem::take(&mut self.client.state);
        client.cursor.clone_from(&self.client.cursor);
        client.broken = true;
        self.client = client;
    }

    /// Reads everything up to a publication, with broken connections in between.
    async fn follow(&mut self, nodes: &[Node<'_>], at: &str, luck: &mut Random) {
        for (app, key) in nodes {
            let bytes = usize::try_from(luck.below(4000)).unwrap();
            if luck.below(2) == 0 {
                if self.client.break_off(bytes, at).await {
                    return;
                }
                if luck.below(4) == 0 {
                    // It continues in the other mode, with the state from this one.
                    self.mode = if self.mode == "live" { "publication" } else { "live" };
                }
                self.go_on(app, key).await;
            }
        }
        loop {
            let events = self.client.cut().await;
            assert!(events.iter().all(|event| event.name != "reset"), "{events:?}");
            if is_publication(&events, at) {
                return;
            }
        }
    }

    fn list(&self) -> String {
        format!("{}?{}", self.channel, self.filter)
    }

    /// Requests the changes since its cursor, or reads one more page.
    async fn poll(&mut self, app: &TestApp, key: &str, luck: &mut Random) {
        let path = format!("/v1/sports/mma/{}?", self.channel);
        if luck.below(2) == 0 {
            let later = self.client.state.iter().filter(|_| luck.below(2) == 0);
            self.rows.extend(later.map(|(id, row)| (id.clone(), row.clone())));
            return;
        }
        let answer = app.get(&format!("{path}since={}{}", self.since, self.filter), key).await;
        if answer.status == 200 {
            let (delta, mut fold) = (answer.json(), State::new());
            let field = if self.channel == "scores" { "event_id" } else { "id" };
            let name = |id: &Value| {
                let id = id.as_str().unwrap().to_owned();
                (self.channel.to_owned(), "mma".to_owned(), id)
            };
            for row in delta["upserts"].as_array().unwrap() {
                let mut plain = row.clone();
                plain.as_object_mut().unwrap().remove("last_update");
                fold.insert(name(&row[field]), plain);
            }
            for gone in delta["removed"].as_array().unwrap() {
                self.rows.remove(&name(&gone["id"]));
            }
            self.rows.extend(fold);
        } else {
            assert_eq!(answer.status, 204, "{}", answer.text());
        }
        answer.header("x-cursor").unwrap().clone_into(&mut self.since);
        let differ = |one: &State, other: &State| {
            let of = |state: &State| state.keys().cloned().collect::<BTreeSet<_>>();
            of(one).symmetric_difference(&of(other)).cloned().collect::<Vec<_>>()
        };
        let lacks = differ(&self.rows, &self.client.state);
        assert!(self.rows == self.client.state, "{}: {lacks:?}", self.list());
    }
}

fn query(channel: &str, filter: &str, mode: &str) -> String {
    format!("?sports=mma&channels={channel}&freshness=none&mode={mode}{filter}")
}

/// A slot may stay taken for a moment after its connection broke.
fn settings() -> StreamSettings {
    StreamSettings { per_key_max: 500, ..StreamSettings::default() }
}

/// A node, and a key for it.
type Node<'a> = (&'a TestApp, &'a str);

/// Several followers. The changes are the same in every run; the part of them received before a connection breaks is
/// not, and need not be.
struct Model {
    random: Random,
    luck: Random,
    followers: Vec<Follower>,
}

impl Model {
    /// Starts followers of the published events.
    async fn begin(seed: u64, (app, key): Node<'_>) -> Self {
        let events = app.get("/v1/sports/mma/events", key).await.json();
        let ids = events.as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        let mut luck = Random(seed);
        let mut followers = Vec::new();
        for _ in 0..6 {
            followers.push(Follower::begin(app, key, &mut luck, &ids).await);
        }
        Self { random: Random(seed), luck, followers }
    }

    /// Pushes some changes.
    async fn change(&mut self, app: &TestApp, feed: &str) {
        for _ in 0..self.random.below(5) {
            let lines = 0..=self.random.below(4);
            let lines: Vec<Value> = lines.map(|_| random_line(&mut self.random)).collect();
            app.push(feed, ndjson(&lines)).await;
        }
    }

    /// Lets all followers read and poll up to the current publication, from node to node, and compares their states.
    async fn follow(&mut self, nodes: &[Node<'_>]) {
        let (app, key) = *nodes.last().unwrap();
        let at = app.service.api.world(World::Live).published().snapshot.cut_at;
        let at = String::from_utf8(at.millis_text().to_vec()).unwrap();
        for follower in &mut self.followers {
            follower.follow(nodes, &at, &mut self.luck).await;
            check(app, key, &follower.client, &[(&follower.list(), "mma")], &at).await;
            let (app, key) = nodes[usize::try_from(self.luck.below(2)).unwrap() % nodes.len()];
            follower.poll(app, key, &mut self.luck).await;
        }
    }
}

#[tokio::test]
async fn whatever_is_followed_and_wherever_it_breaks_off_the_state_is_what_the_list_has() {
    for seed in 1..=4 {
        let app = TestApp::builder().streams(settings()).start().await;
        let (feed, key) = (app.any_feed().await, app.live_key().await);
        app.push_all(&feed, &(0..EVENTS).map(listing).collect::<Vec<_>>()).await;
        app.publish().await;
        let mut model = Model::begin(seed, (&app, &key)).await;
        for round in 0..10 {
            model.change(&app, &feed).await;
            app.publish().await;
            if round % 5 < 4 {
                model.follow(&[(&app, &key)]).await;
                continue;
            }
            // Sometimes a restarted node serves it, too. Clients that continue there return here afterwards.
            let anew = TestApp::builder().streams(settings()).starting_at(app.now());
            let anew = anew.on(app.copy_of_disk()).start().await;
            model.follow(&[(&anew, &key), (&app, &key)]).await;
            for follower in &mut model.followers {
                follower.go_on(&app, &key).await;
            }
        }
    }
}

#[tokio::test]
async fn from_node_to_node_of_a_cluster_the_state_is_what_the_list_has() {
    let pair = Pair::start(|| TestApp::builder().streams(settings())).await;
    let Pair { writer, reader, .. } = &pair;
    let feed = writer.any_feed().await;
    writer.push_all(&feed, &(0..EVENTS).map(listing).collect::<Vec<_>>()).await;
    pair.publish().await;
    let (written_key, read_key) = (writer.live_key().await, reader.live_key().await);
    let mut nodes = [(writer, &*written_key), (reader, &*read_key)];
    let mut model = Model::begin(1, nodes[1]).await;
    for _ in 0..10 {
        model.change(writer, &feed).await;
        pair.publish().await;
        nodes.reverse();
        model.follow(&nodes).await;
    }
}

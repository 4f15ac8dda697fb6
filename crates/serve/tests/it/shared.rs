//! Several nodes that share the live world's log: one writes, all show the same.

mod away;
mod checkpoint;
mod clock;
mod hostile;
mod late;
mod missing_prefix;
mod taken_back;

use std::sync::Arc;
use std::time::{Duration, Instant};

use change_log::StreamLog;
use domain::{ManualClock, Timestamp, World};
use engine::Leadership;
use serde_json::{Value, json};
use test_servers::Proxy;

use crate::harness::{Builder, Joining, TestApp, TestLog, line, ndjson, wait_for};
use crate::test_market::{ANN, BEA, lines};

const ODDS: &str = "/v1/sports/mma/odds";
const EPOCH: Duration = Duration::from_secs(30);

/// The time of what a node shows; of one that shows nothing yet, the beginning of time.
fn cut_at(app: &TestApp) -> Timestamp {
    let live = app.service.api.world(World::Live);
    // The first snapshot is published a moment before the node reports that it has one.
    if live.has_begun() { live.published().snapshot.cut_at } else { Timestamp::default() }
}

/// Gives a node its turn as the keeper of the lead does: whenever it could write and has none, for servers that have
/// just come back may fail it the first time.
pub(crate) async fn lead(app: &TestApp, leadership: &Leadership, term: i64) {
    let keep = || {
        if leadership.is_healthy() && leadership.term().is_none() {
            leadership.grant(term);
        }
        app.service.api.world(World::Live).leads()
    };
    wait_for("its turn", keep).await;
}

/// Moves the clock that all share to the next epoch, and waits until all show it.
pub(crate) async fn publish(clock: &ManualClock, nodes: &[&TestApp]) {
    let now = domain::Clock::now(clock).as_millis();
    let due = Timestamp::from_millis((now.div_euclid(30_000) + 1) * 30_000);
    clock.set(due);
    for node in nodes {
        wait_for("a snapshot of the epoch", || cut_at(node) == due).await;
    }
}

/// A node that writes and one that follows.
pub(crate) struct Pair {
    pub(crate) writer: TestApp,
    pub(crate) reader: TestApp,
    pub(crate) joining: Joining,
    pub(crate) leadership: Arc<Leadership>,
    // The last to go: the nodes speak with it until they have stopped.
    pub(crate) test_log: TestLog,
}

impl Pair {
    /// `node` begins each of them.
    pub(crate) async fn start(node: impl Fn() -> Builder) -> Self {
        let test_log = TestLog::start();
        let port = test_log.nats.port(0).unwrap();
        Self::following_at(port, test_log, node).await
    }

    /// The node that follows reaches the log through a proxy.
    pub(crate) async fn start_with_proxy() -> (Self, Proxy) {
        let test_log = TestLog::start();
        let proxy = Proxy::start(test_log.nats.port(0).unwrap()).await.unwrap();
        (Self::following_at(proxy.port(), test_log, TestApp::builder).await, proxy)
    }

    async fn following_at(port: u16, test_log: TestLog, node: impl Fn() -> Builder) -> Self {
        let joining = Joining::new(&test_log);
        let (electable, leadership) = joining.electable();
        let writer = node().joining(electable).start().await;
        lead(&writer, &leadership, 1).await;
        let mut joined = joining.clone();
        joined.servers.url = format!("nats://127.0.0.1:{port}");
        let reader = node().joining(joined).start().await;
        Self { writer, reader, joining, leadership, test_log }
    }

    pub(crate) async fn publish(&self) {
        publish(&self.joining.clock, &[&self.writer, &self.reader]).await;
    }
}

/// A node that writes and two that follow.
struct Cluster {
    writer: TestApp,
    readers: [TestApp; 2],
    leadership: Arc<Leadership>,
    joining: Joining,
    // The last to go: the nodes speak with it until they have stopped.
    test_log: TestLog,
}

impl Cluster {
    async fn start() -> Self {
        let pair = Pair::start(TestApp::builder).await;
        let Pair { writer, reader, joining, leadership, test_log } = pair;
        let readers = [reader, TestApp::builder().joining(joining.clone()).start().await];
        Self { writer, readers, leadership, joining, test_log }
    }

    fn nodes(&self) -> [&TestApp; 3] {
        let [one, two] = &self.readers;
        [&self.writer, one, two]
    }

    async fn publish(&self) {
        publish(&self.joining.clock, &self.nodes()).await;
    }
}

/// Body and validators of every page of some lists, each page asked of another node than the one before.
async fn walk(nodes: &[(&TestApp, &str)], paths: &[&str]) -> Vec<(String, Option<String>)> {
    let mut seen = Vec::new();
    let mut turn = 0;
    for path in paths {
        let mut next = Some((*path).to_owned());
        while let Some(page) = next {
            let (node, key) = nodes[turn % nodes.len()];
            turn += 1;
            let answer = node.get(&page, key).await;
            assert_eq!(answer.status, 200, "{page}: {}", answer.text());
            next = answer.next_page();
            seen.push((answer.text().to_owned(), answer.header("etag").map(str::to_owned)));
        }
    }
    seen
}

#[tokio::test]
async fn every_node_shows_the_same_bytes_for_an_epoch_and_a_list_can_be_paged_across_nodes() {
    let cluster = Cluster::start().await;
    let feed = cluster.writer.any_feed().await;
    cluster.writer.push_all(&feed, &lines()).await;
    cluster.publish().await;
    // A node that comes later reads the same of the log.
    let late = TestApp::builder().joining(cluster.joining.clone()).start().await;
    wait_for("what was published", || cut_at(&late) == cut_at(&cluster.writer)).await;
    let [writer, one, two] = cluster.nodes();
    let mut keys = Vec::new();
    for node in [writer, one, two, &late] {
        keys.push(node.live_key().await);
    }
    let nodes: Vec<(&TestApp, &str)> =
        [writer, one, two, &late].into_iter().zip(keys.iter().map(String::as_str)).collect();
    let paths = [
        "/v1/sports",
        "/v1/sports/mma/odds?limit=1",
        "/v1/sports/tennis/odds?limit=2",
        "/v1/sports/mma/events?limit=1",
        "/v1/sports/golf/scores",
    ];
    let expected = walk(&nodes[..1], &paths).await;
    assert!(expected.len() > paths.len(), "something is paged");
    for node in &nodes {
        assert_eq!(walk(&[*node], &paths).await, expected);
    }
    assert_eq!(walk(&nodes, &paths).await, expected, "each page from another node");
}

#[tokio::test]
async fn a_push_at_any_node_is_taken_by_the_one_that_writes_and_answered_once_it_is_in_the_log() {
    let cluster = Cluster::start().await;
    let [writer, one, two] = cluster.nodes();
    let feed = one.feed("bound", Some("fanduel")).await;
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    let foreign = line::moneyline("a", "pinnacle", (ANN, 140), (BEA, -160));
    let score = line::score("a", "live", 1, 0);
    let event = line::event("a", "mma", ANN, BEA);
    let body = ndjson(&[event, json!({"type": "no"}), price.clone(), foreign, score]);
    let receipt = one.push(&feed, body).await;
    let taken = ["accepted", "unchanged"].map(|taken| receipt[taken].as_u64().unwrap());
    assert_eq!(taken.iter().sum::<u64>(), 2, "{receipt}");
    let refused: Vec<(&Value, &Value)> = receipt["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reject| (&reject["line"], &reject["code"]))
        .collect();
    // Its rights go with it: it speaks for one bookmaker, and does not report scores.
    let expected = [(2, "unknown_type"), (4, "wrong_bookmaker"), (5, "wrong_bookmaker")];
    let expected = expected.map(|(line, code)| (json!(line), json!(code)));
    assert!(refused.into_iter().eq(expected.iter().map(|(line, code)| (line, code))), "{receipt}");
    // It is in the log, whatever becomes of the node that took it, and a repetition changes nothing.
    let again = two.push(&two.feed("bound", Some("fanduel")).await, ndjson(&[price])).await;
    assert_eq!((&again["accepted"], &again["unchanged"]), (&json!(0), &json!(1)));
    // The figures are those of the node that took the push.
    let figures = one.get_operator("/feeds").await.json();
    let counted = |what: &str| figures["feeds"][0][what].as_u64().unwrap();
    assert_eq!(counted("accepted") + counted("unchanged"), 2, "{figures}");
    let metrics = one.get_operator("/metrics").await;
    assert!(metrics.text().contains("linesman_forwards_total{world=\"live\"} 1"));
    cluster.publish().await;
    for node in [writer, one, two] {
        let odds = node.get(ODDS, &node.live_key().await).await.json();
        assert_eq!(odds[0]["outcomes"][0]["price"], 135);
    }
}

#[tokio::test]
async fn a_long_push_goes_over_in_parts_in_its_order() {
    let cluster = Cluster::start().await;
    let [_, one, _] = cluster.nodes();
    let feed = one.any_feed().await;
    let event = line::event("a", "mma", ANN, BEA);
    let mut lines = vec![event];
    // More lines than a part takes; each changes the price, so the last one must be the last.
    for number in 0..2500 {
        lines.push(line::moneyline("a", "fanduel", (ANN, 101 + number), (BEA, -155)));
    }
    lines.push(json!("no message"));
    let receipt = one.push(&feed, ndjson(&lines)).await;
    let taken =
        ["accepted", "unchanged", "superseded"].map(|taken| receipt[taken].as_u64().unwrap());
    assert_eq!(taken.iter().sum::<u64>(), 2501, "{receipt}");
    let lines = receipt["rejected"].as_array().unwrap().iter().map(|reject| &reject["line"]);
    assert!(lines.eq([2502]), "{receipt}");
    cluster.publish().await;
    let odds = one.get(ODDS, &one.live_key().await).await.json();
    assert_eq!(odds[0]["outcomes"][0]["price"], 2600);
}

#[tokio::test]
async fn without_a_writer_a_push_is_refused_and_taken_once_there_is_one() {
    let test_log = TestLog::start();
    let joining = Joining::new(&test_log);
    let (electable, leadership) = joining.electable();
    let standby = TestApp::builder().joining(electable).start().await;
    let feed = standby.any_feed().await;
    let event = line::event("a", "mma", ANN, BEA);
    let refused =
        standby.post(&feed, ndjson(std::slice::from_ref(&event)).into_bytes(), None).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "unavailable"));
    assert!(refused.header("retry-after").is_some());
    lead(&standby, &leadership, 1).await;
    standby.push_all(&feed, &[event]).await;
}

#[tokio::test]
async fn a_writer_that_was_replaced_while_it_slept_writes_nothing_and_reads_on() {
    let cluster = Cluster::start().await;
    let (electable, new_seat) = cluster.joining.electable();
    let heir = TestApp::builder().joining(electable).start().await;
    let feed = cluster.writer.any_feed().await;
    let heirs_feed = heir.feed("feed-0", None).await;
    cluster.writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    // The old one believes that it still leads, as after a long pause; nobody has said otherwise.
    lead(&heir, &new_seat, 2).await;
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    heir.push_all(&heirs_feed, std::slice::from_ref(&price)).await;
    // What it takes now is not taken by its own book, which knows nothing of the price.
    let receipt = cluster.writer.push(&feed, ndjson(std::slice::from_ref(&price))).await;
    assert_eq!((&receipt["accepted"], &receipt["unchanged"]), (&json!(0), &json!(1)));
    wait_for("the old one to step down", || !cluster.writer.service.api.world(World::Live).leads())
        .await;
    assert_eq!(cluster.leadership.term(), None, "it does not take its turn back by itself");
    assert!(heir.service.api.world(World::Live).leads());
    let [_, one, two] = cluster.nodes();
    publish(&cluster.joining.clock, &[&cluster.writer, one, two, &heir]).await;
    let mut bodies = Vec::new();
    for node in [&cluster.writer, one, two, &heir] {
        bodies.push(node.get(ODDS, &node.live_key().await).await.text().to_owned());
    }
    assert!(
        bodies[0].contains("135") && bodies.iter().all(|body| *body == bodies[0]),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn a_writer_that_is_cut_off_is_unfit_and_follows_once_it_is_back() {
    let test_log = TestLog::start();
    let joining = Joining::new(&test_log);
    let proxy = Proxy::start(test_log.nats.port(0).unwrap()).await.unwrap();
    let (mut electable, leadership) = joining.electable();
    electable.servers.url = format!("nats://127.0.0.1:{}", proxy.port());
    let old = TestApp::builder().joining(electable).start().await;
    lead(&old, &leadership, 1).await;
    let (electable, heirs_seat) = joining.electable();
    let heir = TestApp::builder().joining(electable).start().await;
    let feed = heir.any_feed().await;
    heir.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    proxy.stall();
    // Whoever keeps the lead gives it back then; until it has stepped down itself, the log is what stops it.
    wait_for("the writer to be unfit", || !leadership.is_healthy()).await;
    lead(&heir, &heirs_seat, 2).await;
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    heir.push_all(&feed, std::slice::from_ref(&price)).await;
    proxy.restore();
    wait_for("the old one to step down", || !old.service.api.world(World::Live).leads()).await;
    wait_for("the old one to keep up", || leadership.is_healthy()).await;
    publish(&joining.clock, &[&old, &heir]).await;
    let bodies = [
        old.get(ODDS, &old.live_key().await).await.text().to_owned(),
        heir.get(ODDS, &heir.live_key().await).await.text().to_owned(),
    ];
    assert!(bodies[0].contains("135") && bodies[0] == bodies[1], "{bodies:?}");
}

#[tokio::test]
async fn a_writer_that_was_replaced_does_not_even_say_that_nothing_changed() {
    let cluster = Cluster::start().await;
    let (electable, new_seat) = cluster.joining.electable();
    let heir = TestApp::builder().joining(electable).start().await;
    let feed = cluster.writer.feed("one", None).await;
    let heirs_feed = heir.feed("one", None).await;
    let event = line::event("a", "mma", ANN, BEA);
    cluster.writer.push_all(&feed, std::slice::from_ref(&event)).await;
    lead(&heir, &new_seat, 2).await;
    heir.push_all(&heirs_feed, &[json!({"type": "remove", "ref": "a"})]).await;
    // To the old one's book this is nothing new; to the log it is.
    assert_eq!(one_push(&cluster.writer, &feed, &event).await, 200);
    let [_, one, two] = cluster.nodes();
    publish(&cluster.joining.clock, &[one, two, &heir]).await;
    let events = heir.get("/v1/sports/mma/events", &heir.live_key().await).await.json();
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
}

#[tokio::test]
async fn an_operators_word_at_any_node_is_carried_out_by_the_one_that_writes() {
    let cluster = Cluster::start().await;
    let [one, two] = &cluster.readers;
    let feed = one.any_feed().await;
    let bouts =
        [line::event("a", "mma", ANN, BEA), line::event("b", "mma", "Cleo Cruz", "Dora Dunn")];
    one.push_all(&feed, &bouts).await;
    cluster.publish().await;
    let events = two.get("/v1/sports/mma/events", &two.live_key().await).await.json();
    let id = |at: usize| domain::EventId::parse(events[at]["id"].as_str().unwrap()).unwrap();
    let merge = market::Operation::Merge { one: id(0), other: id(1) };
    assert!(one.service.api.world(World::Live).operate(merge.clone()).await.unwrap() > 0);
    let refused = two.service.api.world(World::Live).operate(merge).await.unwrap_err();
    assert!(refused.to_string().contains("already"), "{refused}");
    let seen = || {
        two.service.api.world(World::Live).identities().event(id(1)).map(|event| event.refs.len())
    };
    wait_for("the merge to be seen", || seen() == Some(2)).await;
}

#[tokio::test]
async fn a_standby_goes_on_where_a_writer_that_died_has_stopped() {
    let cluster = Cluster::start().await;
    let (electable, heirs_seat) = cluster.joining.electable();
    let heir = TestApp::builder().joining(electable).start().await;
    let [one, two] = &cluster.readers;
    let (feed, key) = (one.any_feed().await, one.live_key().await);
    one.push_all(&feed, &lines()).await;
    cluster.publish().await;
    let before = one.get("/v1/sports/mma/events", &key).await.json();
    // It dies within an epoch, with something taken that was not published yet.
    let price = line::moneyline("bout-1", "betmgm", (ANN, 171), (BEA, -199));
    assert_eq!(one_push(one, &feed, &price).await, 200);
    cluster.writer.service.api.world(World::Live).stop();
    lead(&heir, &heirs_seat, 2).await;
    publish(&cluster.joining.clock, &[one, two, &heir]).await;
    assert_eq!(one.get("/v1/sports/mma/events", &key).await.json(), before, "ids stay");
    let again = one_receipt(one, &feed, &price).await;
    assert_eq!(again["accepted"], 0, "what was acknowledged is there: {again}");
}

async fn one_push(app: &TestApp, feed: &str, message: &Value) -> u16 {
    app.post(feed, ndjson(std::slice::from_ref(message)).into_bytes(), None).await.status
}

async fn one_receipt(app: &TestApp, feed: &str, message: &Value) -> Value {
    app.push(feed, ndjson(std::slice::from_ref(message))).await
}

async fn wait_for_push(app: &TestApp, feed: &str, message: &Value) {
    let begun = Instant::now();
    while one_push(app, feed, message).await != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody takes a push");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_entry_of_a_newer_program_is_told_and_what_was_read_before_it_is_still_served() {
    let cluster = Cluster::start().await;
    let feed = cluster.writer.any_feed().await;
    cluster.writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    cluster.publish().await;
    let servers = cluster.joining.servers.clone();
    let (electable, leadership) = cluster.joining.electable();
    let standby = TestApp::builder().joining(electable).start().await;
    wait_for("a standby", || leadership.is_healthy()).await;
    let newer = move || {
        let mut log = StreamLog::open(&servers.runtime, &servers.place(World::Live)).unwrap();
        log.append(1, [(99, b"what is this".as_slice())]).unwrap();
    };
    std::thread::spawn(newer).join().unwrap();
    let [one, two] = &cluster.readers;
    let key = one.live_key().await;
    // Also who wrote, and who would: neither goes on behind what it did not understand.
    for node in [one, two, &cluster.writer, &standby] {
        let mut tries = 0;
        while node.get_operator("/readyz").await.status != 503 {
            tries += 1;
            assert!(tries < 2000, "a node does not see what it cannot read");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let why = node.get_operator("/readyz").await;
        assert!(why.text().contains("upgrade this node"), "{}", why.text());
        let metrics = node.get_operator("/metrics").await;
        assert!(metrics.text().contains("linesman_follower_stuck{world=\"live\"} 1"));
    }
    let events = one.get("/v1/sports/mma/events", &key).await.json();
    assert_eq!(events.as_array().unwrap().len(), 1);
    for leadership in [&cluster.leadership, &leadership] {
        assert!(!leadership.is_healthy(), "it must not be given the lead");
        leadership.grant(9);
    }
    let feed = one.any_feed().await;
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    assert_eq!(one_push(one, &feed, &price).await, 503, "nobody takes what they cannot place");
    assert!(!cluster.writer.service.api.world(World::Live).leads());
    assert!(!standby.service.api.world(World::Live).leads());
}

//! Several processes that share PostgreSQL and NATS: the same program in its roles.

mod adapters;
mod archive;
mod backup;

use std::time::Instant;

use change_log::{StreamLocation, StreamLog};
use serde_json::Value;
use test_servers::{Nats, Postgres, Proxy};

use crate::harness::{Answer, Service, TIMEOUT, TestProgram, bout, moneyline, ndjson, wait_for};

/// The servers that all nodes share.
struct TestServers {
    postgres: Postgres,
    nats: Nats,
    url: String,
}

impl TestServers {
    fn start() -> Self {
        let postgres = Postgres::start().unwrap();
        let url = postgres.create_database("linesman").unwrap();
        Self { postgres, nats: Nats::start(1).unwrap(), url }
    }

    /// A folder for one node.
    fn program(&self) -> TestProgram {
        TestProgram::new()
            .set("LINESMAN_DATABASE__URL", self.url.clone())
            .set("LINESMAN_CLUSTER__NATS_URL", self.nats.url())
            .set("LINESMAN_MARKET__REFRESH_INTERVAL", "1s")
    }
}

/// One value of a node's metrics.
async fn figure(service: &Service, name: &str) -> Option<String> {
    let page = service.client.get(service.metrics()).send().await.ok()?.text().await.ok()?;
    let line = page.lines().find(|line| line.starts_with(&format!("{name}{{world=\"live\"}}")))?;
    Some(line.split_whitespace().last()?.to_owned())
}

async fn leads(service: &Service) {
    wait_for("its turn to write", async || {
        (figure(service, "linesman_leader").await? == "1").then_some(())
    })
    .await;
}

/// Pushes repeatedly until it is accepted, as a feed would.
async fn push_until_taken(service: &Service, feed: &str, lines: &[Value]) -> Value {
    wait_for("a push to be taken", async || {
        let answer = service.post(feed, ndjson(lines)).await.ok()?;
        assert!([200, 503].contains(&answer.status), "{}", answer.text());
        (answer.status == 200).then(|| answer.json())
    })
    .await
}

/// Pushes enough to cause a checkpoint.
async fn push_until_checkpoint(service: &Service, feed: &str) {
    push_until_taken(service, feed, &[bout("a", "Ann Archer", "Bea Bowen")]).await;
    for batch in 0..12 {
        let lines: Vec<Value> = (1..=1000).map(|n| price(1000 * batch + n)).collect();
        push_until_taken(service, feed, &lines).await;
    }
    wait_for("a checkpoint", async || {
        (figure(service, "linesman_log_checkpoints_total").await? != "0").then_some(())
    })
    .await;
}

fn price(number: i64) -> Value {
    moneyline("a", "fanduel", &[("Ann Archer", 100 + number), ("Bea Bowen", -155)])
}

/// Waits until a node shows a price.
async fn shows(service: &Service, key: &str, american: i64) {
    wait_for(&format!("the price {american}"), async || {
        let answer = service.get("/v1/sports/mma/odds", key).await;
        let shown = (answer.status == 200).then(|| answer.json())?;
        (shown[0]["outcomes"][0]["price"] == american).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_from_a_writer_that_was_killed_or_stopped_and_nothing_acknowledged_is_lost()
 {
    let mut servers = TestServers::start();
    // If a node were paused for about as long as keys are trusted by default, it might or might not refuse the feed's
    // token when it resumes.
    let program = || servers.program().set("LINESMAN_CLUSTER__KEY_TRUST", "10m");
    let [program_one, program_two, program_three, program_four] = [(); 4].map(|()| program());
    let (key, feed) = (program_one.live_key().await, program_one.feed("one").await);
    let one = program_one.start_as("ingest").await;
    leads(&one).await;
    let two = program_two.start_as("ingest").await;
    let (api, other) = (program_three.start_as("api").await, program_four.start_as("api").await);
    let lines = [bout("a", "Ann Archer", "Bea Bowen"), price(1)];
    push_until_taken(&api, &feed, &lines).await;
    for node in [&api, &other] {
        shows(node, &key, 101).await;
    }
    let ids = api.records("/v1/sports/mma/events", &key, 1).await;
    // A node with the ingest role serves no API, but reports whether it is ready.
    assert_eq!(one.get("/v1/sports", &key).await.status, 404);
    one.ready().await;

    // After a kill, everything acknowledged is present, and the other node continues.
    push_until_taken(&api, &feed, &[price(2)]).await;
    one.kill().await;
    let begun = Instant::now();
    let again = push_until_taken(&api, &feed, &[price(2)]).await;
    eprintln!("another node wrote {:?} after the kill", begun.elapsed());
    assert_eq!((&again["accepted"], &again["unchanged"]), (&0.into(), &1.into()));
    leads(&two).await;
    push_until_taken(&other, &feed, &[price(3)]).await;
    shows(&api, &key, 103).await;
    assert_eq!(api.records("/v1/sports/mma/events", &key, 1).await, ids, "ids stay");

    // Paused, and resumed after another node took over. It tries to write the push in its queue, because it still
    // believes that it leads, and is refused: the log has the other node's entries, and then this push.
    let one = program_one.start_as("ingest").await;
    wait_for("a standby", async || (one.get("/readyz", &key).await.status == 200).then_some(()))
        .await;
    two.signal("STOP").await;
    let begun = Instant::now();
    leads(&one).await;
    eprintln!("another node wrote {:?} after the stop", begun.elapsed());
    push_until_taken(&api, &feed, &[price(7)]).await;
    let lines = [price(7), price(4)];
    let waiting = push_until_taken(&two, &feed, &lines);
    let waking = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        two.signal("CONT").await;
    };
    let (taken, ()) = tokio::join!(waiting, waking);
    let counts = (taken["accepted"].as_u64().unwrap(), taken["unchanged"].as_u64().unwrap());
    // Both lines are changes again if an earlier attempt was stored but not confirmed.
    assert!([(1, 1), (2, 0)].contains(&counts), "{taken}");
    wait_for("the old one to step down", async || {
        (figure(&two, "linesman_leader").await? == "0").then_some(())
    })
    .await;
    for node in [&api, &other] {
        shows(node, &key, 104).await;
    }

    // Without the database, the leader continues; it needs no fence.
    servers.postgres.stop().unwrap();
    push_until_taken(&api, &feed, &[price(5)]).await;
    servers.postgres.start_again().unwrap();
    shows(&other, &key, 105).await;
    // An orderly stop releases the leadership, so that no node has to wait for its end.
    one.stop().await;
    push_until_taken(&api, &feed, &[price(6)]).await;
    shows(&other, &key, 106).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_is_cut_off_from_the_log_is_replaced() {
    let servers = TestServers::start();
    let proxy = Proxy::start(servers.nats.port(0).unwrap()).await.unwrap();
    let away = servers
        .program()
        .set("LINESMAN_CLUSTER__NATS_URL", format!("nats://127.0.0.1:{}", proxy.port()));
    let (program_two, program_api) = (servers.program(), servers.program());
    let (key, feed) = (program_two.live_key().await, program_two.feed("one").await);
    let one = away.start_as("ingest").await;
    leads(&one).await;
    let (two, api) = (program_two.start_as("ingest").await, program_api.start_as("api").await);
    push_until_taken(&api, &feed, &[bout("a", "Ann Archer", "Bea Bowen"), price(1)]).await;
    for node in [&two, &api] {
        wait_for("a node that is ready", async || {
            (node.get("/readyz", &key).await.status == 200).then_some(())
        })
        .await;
    }
    proxy.stall();
    let begun = Instant::now();
    leads(&two).await;
    eprintln!("another node wrote {:?} after the cut", begun.elapsed());
    push_until_taken(&api, &feed, &[price(2)]).await;
    shows(&api, &key, 102).await;
    let seq =
        async |service| -> Option<u64> { figure(service, "linesman_log_seq").await?.parse().ok() };
    let written = seq(&two).await.unwrap();
    assert!(seq(&one).await.unwrap() < written, "it has heard nothing since");
    proxy.restore();
    let begun = Instant::now();
    // Exactly one of them writes by then.
    wait_for("the old one to follow", async || {
        let [one_leads, two_leads] =
            [figure(&one, "linesman_leader").await?, figure(&two, "linesman_leader").await?];
        (one_leads != two_leads && seq(&one).await? >= written).then_some(())
    })
    .await;
    eprintln!("the old one followed {:?} after the wire was mended", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_without_the_database_listens_and_begins_once_it_is_there() {
    let mut servers = TestServers::start();
    let homes = [(); 3].map(|()| servers.program());
    let key = homes[0].live_key().await;
    servers.postgres.stop().unwrap();
    let addresses = [(); 3].map(|()| format!("127.0.0.1:{}", test_servers::free_port().unwrap()));
    let [all, ingest, api] = &addresses;
    let starting = async {
        tokio::join!(
            homes[0].start_at(all, "all"),
            homes[1].start_at(ingest, "ingest"),
            homes[2].start_at(api, "api")
        )
    };
    let client = crate::harness::client();
    let ask = async |address: &str, path: &str| {
        wait_for("an answer", async || {
            let asked = client.get(format!("http://{address}{path}")).header("X-API-Key", &key);
            Answer::of(asked).await.ok()
        })
        .await
    };
    let looking = async {
        for address in &addresses {
            assert_eq!(ask(address, "/healthz").await.status, 200);
            let ready = ask(address, "/readyz").await;
            assert_eq!(ready.status, 503);
            assert!(ready.text().contains("waits for the database"), "{}", ready.text());
            let refused = ask(address, "/v1/sports").await;
            assert_eq!(refused.status, 503);
            assert_eq!(refused.json()["error"]["code"], "unavailable");
            assert_eq!(refused.headers["retry-after"], "1");
            let told = refused.json()["error"]["request_id"].clone();
            assert_eq!(told, refused.headers["x-request-id"].to_str().unwrap());
        }
        servers.postgres.start_again().unwrap();
    };
    let ((all, ingest, api), ()) = tokio::join!(starting, looking);
    for node in [&all, &ingest, &api] {
        wait_for("a node that is ready", async || {
            (node.get("/readyz", &key).await.status == 200).then_some(())
        })
        .await;
    }
    assert_eq!(api.answered("/v1/sports", &key).await.status, 200);
    for node in [api, ingest, all] {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_serves_soon_though_the_log_is_long() {
    let servers = TestServers::start();
    let [program_one, program_two] = [(); 2].map(|()| servers.program());
    let (key, feed) = (program_one.live_key().await, program_one.feed("one").await);
    let one = program_one.start_as("all").await;
    leads(&one).await;
    push_until_checkpoint(&one, &feed).await;
    push_until_taken(&one, &feed, &[price(20_000)]).await;
    shows(&one, &key, 20_100).await;
    let begun = Instant::now();
    let two = program_two.start_as("api").await;
    wait_for("a node that is ready", async || {
        (two.get("/readyz", &key).await.status == 200).then_some(())
    })
    .await;
    let caught_up = figure(&two, "linesman_follower_catch_up_seconds").await.unwrap();
    eprintln!("ready {:?} after its start; checkpoint and log took {caught_up} s", begun.elapsed());
    shows(&two, &key, 20_100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_waited_for_and_an_orderly_stop_signs_off() {
    let servers = TestServers::start();
    let [program, program_other] = [(); 2].map(|()| servers.program());
    let key = program.live_key().await;
    let store = store::Store::connect(&servers.url).await.unwrap();
    let listed = async || store.nodes_behind(i64::MAX).await.unwrap().nodes;
    program.start_as("api").await.kill().await;
    assert_eq!(listed().await, 1, "it could not sign off");
    let (other, again) = (program_other.start_as("api").await, program.start_as("api").await);
    assert_eq!(listed().await, 3, "and may be cut off, for all another node knows");
    let begun = Instant::now();
    program_other.ok(&["keys", "revoke", &key]).await;
    eprintln!("revoked on both nodes after {:?}", begun.elapsed());
    for node in [&other, &again] {
        assert_eq!(node.answered("/v1/sports", &key).await.status, 401);
    }
    again.stop().await;
    assert_eq!(listed().await, 2, "an orderly stop signs off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_and_a_deed_written_down_also_where_nobody_confirms_it() {
    let mut servers = TestServers::start();
    let (program, program_gone) = (servers.program(), servers.program());
    let (key, _) = (program.live_key().await, program.feed("one").await);
    // One node disappears without notice, and nothing can be announced.
    program_gone.start_as("api").await.kill().await;
    servers.nats.kill(0).unwrap();
    let rotate = ["keys", "rotate", &key];
    let (created, rotated, revoked) = tokio::join!(
        program.run(&["keys", "create", "--kind", "sandbox"]),
        program.run(&rotate),
        program.run(&["feeds", "revoke", "one"]),
    );
    assert!(created.stdout.starts_with("sk_test_"), "{created:?}");
    assert!(rotated.stdout.starts_with("sk_live_") && rotated.code == Some(1), "{rotated:?}");
    for told in [&rotated.stderr, revoked.sentence(1)] {
        assert!(told.contains("the change is stored, but 1 node did not confirm it"), "{told}");
    }
    let store = store::Store::connect(&servers.url).await.unwrap();
    let rows = store.audit(None, None, 100).await.unwrap();
    for action in ["key.rotated", "feed.revoked"] {
        let details: Vec<&str> = rows
            .iter()
            .filter(|row| row.entry.action == action)
            .map(|row| row.entry.detail.as_str())
            .collect();
        let open = |detail: &&str| detail.ends_with("stored, not confirmed by every node");
        assert_eq!((details.len(), details.iter().filter(|detail| open(detail)).count()), (2, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_may_come_after_the_nodes_and_command_lines_reach_the_writer() {
    let mut servers = TestServers::start();
    let [program_one, program_two] = [(); 2].map(|()| servers.program());
    let (key, feed) = (program_one.live_key().await, program_one.feed("one").await);
    assert!(program_two.ok(&["feeds", "list"]).await.contains("one"), "the same database");
    servers.nats.kill(0).unwrap();
    servers.postgres.stop().unwrap();
    let starting = async { (program_one.start_as("all").await, program_two.start_as("api").await) };
    let coming = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        servers.postgres.start_again().unwrap();
    };
    let ((all, api), ()) =
        tokio::time::timeout(2 * TIMEOUT, async { tokio::join!(starting, coming) })
            .await
            .expect("nodes wait for the database");
    assert_eq!(api.get("/healthz", &key).await.status, 200);
    assert_eq!(api.get("/readyz", &key).await.status, 503);
    servers.nats.start_again(0).unwrap();
    let bouts = [bout("a", "Ann Archer", "Bea Bowen"), bout("b", "Cleo Cruz", "Dora Dunn")];
    push_until_taken(&api, &feed, &bouts).await;
    wait_for("an api node that is ready", async || {
        (api.get("/readyz", &key).await.status == 200).then_some(())
    })
    .await;
    let events = api.records("/v1/sports/mma/events", &key, 2).await;
    let ids: Vec<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    // From a machine without a node.
    let elsewhere = servers.program();
    elsewhere.ok(&["events", "merge", ids[0], ids[1]]).await;
    let shown = elsewhere.ok(&["events", "show", ids[0]]).await;
    assert!(shown.contains("Ann Archer") && shown.contains("Cleo Cruz"), "{shown}");
    wait_for("one event", async || {
        (api.pages("/v1/sports/mma/events", &key).await.len() == 1).then_some(())
    })
    .await;
    api.stop().await;
    all.stop().await;
}

#[tokio::test]
async fn roles_need_servers_to_share() {
    for role in ["ingest", "api"] {
        let done = TestProgram::new().run(&["serve", "--role", role]).await;
        let told = done.sentence(1);
        assert!(told.contains("`database.url`") && told.contains("`cluster.nats_url`"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_the_servers_have_lost_is_not_begun_anew() {
    let mut servers = TestServers::start();
    let [program_one, program_two, program_three] = [(); 3].map(|()| servers.program());
    let (key, feed) = (program_one.live_key().await, program_one.feed("one").await);
    let one = program_one.start_as("ingest").await;
    let api = program_two.start_as("api").await;
    let lines = [bout("a", "Ann Archer", "Bea Bowen"), price(1)];
    push_until_taken(&api, &feed, &lines).await;
    shows(&api, &key, 101).await;
    wait_for("the database to know of it", async || {
        one.stderr().contains("log.creation_recorded").then_some(())
    })
    .await;
    servers.nats.kill(0).unwrap();
    servers.nats.delete_data(0).unwrap();
    servers.nats.start_again(0).unwrap();
    // The nodes that had read the log, and one that has never seen it and could write.
    let fresh = program_three.start_as("ingest").await;
    for node in [&one, &api, &fresh] {
        wait_for("a node to miss the log", async || {
            node.stderr().contains("the servers have no stream linesman-live").then_some(())
        })
        .await;
    }
    let answer = api.post(&feed, ndjson(&[price(2)])).await.unwrap();
    assert_eq!(answer.status, 503, "{}", answer.text());
    shows(&api, &key, 101).await;
    assert_eq!(fresh.get("/readyz", &key).await.status, 503);

    // An empty log in its place is not accepted, neither by the nodes that have read more nor by the one that has
    // not.
    let (handle, url) = (tokio::runtime::Handle::current(), servers.nats.url());
    let make = move || {
        let place =
            StreamLocation { url, name: "live".into(), replicas: None, entry_bytes_max: 9999 };
        let begun = Instant::now();
        while let Err(error) = StreamLog::open(&handle, &place) {
            assert!(begun.elapsed() < TIMEOUT, "{error}");
        }
    };
    tokio::task::spawn_blocking(make).await.unwrap();
    let lost = |node: &Service| node.stderr().contains("the log is empty but was not before");
    wait_for("the api node to see that the log is empty", async || lost(&api).then_some(())).await;
    wait_for("whoever is to write to see it", async || (lost(&one) || lost(&fresh)).then_some(()))
        .await;
    shows(&api, &key, 101).await;
}

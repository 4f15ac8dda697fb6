//! Streams that are copied and restored as `docs/operations/backup.md` describes, with the requests that the `nats`
//! tool sends.

use async_nats::{Client, ConnectOptions, jetstream::context::ContextBuilder};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{TIMEOUT, TestServers, leads, price, push_until_checkpoint, push_until_taken, shows};

const LOG: &str = "linesman-live";
const CHECKPOINTS: &str = "linesman-live-checkpoint";

/// A copy of a stream.
struct Copied {
    /// The stream's configuration and state when it was copied.
    head: Value,
    chunks: Vec<Bytes>,
}

async fn ask(client: &Client, subject: String, asked: &Value) -> Value {
    let answer = client.request(subject, asked.to_string().into()).await.unwrap();
    let told: Value = serde_json::from_slice(&answer.payload).unwrap();
    assert_eq!(told.get("error"), None);
    told
}

/// `nats stream backup`.
async fn copy(client: &Client, stream: &str) -> Copied {
    let inbox = client.new_inbox();
    let mut coming = client.subscribe(inbox.clone()).await.unwrap();
    let asked = json!({"deliver_subject": inbox, "no_consumers": true});
    let told = ask(client, format!("$JS.API.STREAM.SNAPSHOT.{stream}"), &asked).await;
    let mut chunks = Vec::new();
    loop {
        let message = timeout(TIMEOUT, coming.next()).await.unwrap().unwrap();
        if message.payload.is_empty() {
            break;
        }
        chunks.push(message.payload);
        if let Some(reply) = message.reply {
            client.publish(reply, Bytes::new()).await.unwrap();
        }
    }
    Copied { head: json!({"config": told["config"], "state": told["state"]}), chunks }
}

/// `nats stream restore`.
async fn put_back(client: &Client, stream: &str, copied: Copied) {
    let told = ask(client, format!("$JS.API.STREAM.RESTORE.{stream}"), &copied.head).await;
    let to = told["deliver_subject"].as_str().unwrap().to_owned();
    for chunk in copied.chunks.into_iter().chain([Bytes::new()]) {
        let answer = client.request(to.clone(), chunk).await.unwrap();
        let told: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
        assert_eq!(told.get("error"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_copied_under_use_and_put_back_have_ids_and_prices_and_go_on() {
    let servers = TestServers::start();
    let [program_one, program_two] = [(); 2].map(|()| servers.program());
    let (key, feed) = (program_one.live_key().await, program_one.feed("one").await);
    let one = program_one.start_as("all").await;
    leads(&one).await;
    push_until_checkpoint(&one, &feed).await;
    let options = ConnectOptions::new().request_timeout(Some(TIMEOUT));
    let client = options.connect(servers.nats.url()).await.unwrap();
    let checkpoints = copy(&client, CHECKPOINTS).await;
    // Entries written meanwhile are in the copy of the log.
    push_until_taken(&one, &feed, &[price(20_000)]).await;
    shows(&one, &key, 20_100).await;
    let log = copy(&client, LOG).await;
    let before = one.records("/v1/sports/mma/events", &key, 1).await;
    push_until_taken(&one, &feed, &[price(30_000)]).await;
    one.stop().await;

    let context = ContextBuilder::new().timeout(TIMEOUT).build(client.clone());
    for stream in [LOG, CHECKPOINTS] {
        context.delete_stream(stream).await.unwrap();
    }
    put_back(&client, LOG, log).await;
    put_back(&client, CHECKPOINTS, checkpoints).await;
    // A node that has never seen them, and one on the folder of the node that had read further.
    let (two, one) = (program_two.start_as("api").await, program_one.start_as("all").await);
    for node in [&two, &one] {
        shows(node, &key, 20_100).await;
        assert_eq!(node.records("/v1/sports/mma/events", &key, 1).await, before);
    }
    push_until_taken(&two, &feed, &[price(30_000)]).await;
    for node in [&two, &one] {
        shows(node, &key, 30_100).await;
    }
    two.stop().await;
    one.stop().await;
}

//! The streams of a key over nodes that share a store: never more than its limit, whatever happens to the nodes
//! (S11).

use std::{sync::Arc, time::Instant};

use accounts::{KeyId, StreamRefusal, StreamSlot, StreamSlots};
use test_servers::Postgres;
use tokio::task::{JoinHandle, JoinSet};

use crate::{
    TEST_TIMEOUT, TestStore,
    key_lease::{Member, TestCluster},
};

const NOON: &str = "2026-11-14T12:00:00Z";
/// How long a node holds streams without reaching the store.
const OWN_RIGHT_MS: u64 = 30_000;

/// A node whose streams are counted.
struct Node {
    member: Member,
    following: JoinHandle<()>,
}

impl Node {
    async fn start(cluster: &TestCluster) -> Self {
        let member = cluster.member().await;
        let accounts = Arc::clone(&member.node.accounts);
        let following = tokio::spawn(async move { accounts.follow().await });
        Self { member, following }
    }

    async fn open(&self, key: &KeyId, limit: u32) -> Result<StreamSlot, StreamRefusal> {
        open(&self.member.node.streams, key, limit).await
    }

    /// Opens as soon as a slot is free.
    async fn open_soon(&self, key: &KeyId, limit: u32) -> StreamSlot {
        let begun = Instant::now();
        loop {
            match self.open(key, limit).await {
                Ok(slot) => return slot,
                Err(refusal) => assert!(begun.elapsed() < TEST_TIMEOUT, "{refusal:?}"),
            }
            tokio::task::yield_now().await;
        }
    }

    /// As `kill -9`.
    async fn crash(self) {
        self.following.abort();
        assert!(self.following.await.is_err_and(|error| error.is_cancelled()));
        self.member.node.crash().await;
    }

    async fn shut_down(self) {
        self.following.abort();
        self.member.node.shut_down().await;
    }
}

/// Opens a stream, once the store answers: it may be too busy for a while.
async fn open(
    streams: &Arc<StreamSlots>,
    key: &KeyId,
    limit: u32,
) -> Result<StreamSlot, StreamRefusal> {
    let begun = Instant::now();
    loop {
        let opened = streams.open(key, limit).await;
        if is_answered(&opened, begun) {
            return opened;
        }
        tokio::task::yield_now().await;
    }
}

/// As [`open`], for a replay.
async fn open_replay(streams: &Arc<StreamSlots>, key: &KeyId) -> Result<StreamSlot, StreamRefusal> {
    let begun = Instant::now();
    loop {
        let opened = streams.open_replay(key).await;
        if is_answered(&opened, begun) {
            return opened;
        }
        tokio::task::yield_now().await;
    }
}

fn is_answered(opened: &Result<StreamSlot, StreamRefusal>, begun: Instant) -> bool {
    let answered = opened.as_ref().err() != Some(&StreamRefusal::Unavailable);
    assert!(answered || begun.elapsed() < TEST_TIMEOUT, "the store does not answer");
    answered
}

async fn key_of(cluster: &TestCluster, node: &Node) -> KeyId {
    let secret = cluster.key(&node.member).await;
    node.member.node.entry(&secret, cluster.test.now()).grant.key_id.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_opened_on_all_nodes_at_once_are_the_limit_and_not_one_more() {
    const LIMIT: u32 = 5;
    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    let cluster = TestCluster::of(TestStore::on(url, NOON));
    let nodes =
        [Node::start(&cluster).await, Node::start(&cluster).await, Node::start(&cluster).await];
    let key = key_of(&cluster, &nodes[0]).await;
    let other = key_of(&cluster, &nodes[1]).await;
    let mut opening = JoinSet::new();
    for node in &nodes {
        for _ in 0..LIMIT {
            let (slots, key) = (Arc::clone(&node.member.node.streams), key.clone());
            opening.spawn(async move { open(&slots, &key, LIMIT).await });
        }
    }
    let opened = opening.join_all().await;
    let full = opened.iter().filter(|opened| matches!(opened, Err(StreamRefusal::Limit))).count();
    let mut held: Vec<StreamSlot> = opened.into_iter().flatten().collect();
    assert_eq!((held.len(), full), (5, 10));
    assert!(held.iter().all(StreamSlot::is_held));
    for node in &nodes {
        assert_eq!(node.open(&key, LIMIT).await.err(), Some(StreamRefusal::Limit));
    }
    // Another key has its own limit, and a raised limit applies at once.
    let _other = nodes[0].open(&other, 1).await.unwrap();
    assert_eq!(nodes[1].open(&other, 1).await.err(), Some(StreamRefusal::Limit));
    let _raised = nodes[1].open(&other, 2).await.unwrap();
    // When one node closes a stream, another may open one, without any time passing.
    held.pop();
    held.push(nodes[2].open_soon(&key, LIMIT).await);
    assert_eq!(nodes[0].member.node.store.streams_of(key.as_str()).await.unwrap(), LIMIT);
    // A node that stops releases its slots.
    let [one, two, three] = nodes;
    held.clear();
    let kept = three.open_soon(&key, 1).await;
    three.shut_down().await;
    assert!(!kept.is_held(), "nothing is sent on it any more");
    let _last = two.open_soon(&key, 1).await;
    drop(kept);
    one.shut_down().await;
    two.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_a_node_that_cannot_reach_the_store_end_before_others_may_open_them() {
    let cluster = TestCluster::of(TestStore::at(NOON));
    let (one, two) = (Node::start(&cluster).await, Node::start(&cluster).await);
    let key = key_of(&cluster, &one).await;
    let held = one.open(&key, 1).await.unwrap();
    let mut losses = one.member.node.streams.losses();
    assert_eq!(two.open(&key, 1).await.err(), Some(StreamRefusal::Limit));
    // The node is cut off: its own clock decides when its right ends.
    one.member.node.store.close().await;
    assert!(held.is_held());
    cluster.steady.advance(OWN_RIGHT_MS);
    assert!(!held.is_held(), "before anybody noticed");
    tokio::time::timeout(TEST_TIMEOUT, losses.changed()).await.unwrap().unwrap();
    let refused = one.member.node.streams.open(&key, 1).await;
    assert_eq!(refused.err(), Some(StreamRefusal::Unavailable));
    assert!(one.member.node.streams.stats().unwrap().lost >= 1);
    // For others its streams count until its right expires by the store's clock.
    assert_eq!(two.open(&key, 1).await.err(), Some(StreamRefusal::Limit));
    cluster.test.sql("UPDATE stream_node SET until_ms = 1").await;
    let _other = two.open_soon(&key, 1).await;
    drop(held);
    one.crash().await;
    two.crash().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_a_killed_node_come_free_and_a_node_that_slept_begins_anew() {
    let cluster = TestCluster::of(TestStore::at(NOON));
    let (killed, slept) = (Node::start(&cluster).await, Node::start(&cluster).await);
    let key = key_of(&cluster, &killed).await;
    let (_gone, held) = (killed.open(&key, 2).await.unwrap(), slept.open(&key, 2).await.unwrap());
    let third = Node::start(&cluster).await;
    assert_eq!(third.open(&key, 2).await.err(), Some(StreamRefusal::Limit));
    killed.crash().await;
    // By the store's clock both rights have expired; one node does not know yet.
    cluster.test.sql("UPDATE stream_node SET until_ms = 1").await;
    let (_one, _two) = (third.open_soon(&key, 2).await, third.open_soon(&key, 2).await);
    assert_eq!(slept.open(&key, 2).await.err(), Some(StreamRefusal::Limit));
    assert!(!held.is_held(), "it learned so with its next question");
    slept.shut_down().await;
    third.shut_down().await;
}

#[tokio::test]
async fn a_single_process_counts_in_memory() {
    let test = TestStore::at(NOON);
    let node = test.node().await;
    let secret = test.issue(crate::limits(60, 100, None)).await;
    node.reload().await.unwrap();
    let key = node.entry(&secret, test.now()).grant.key_id.clone();
    let held =
        [node.streams.open(&key, 2).await.unwrap(), node.streams.open(&key, 2).await.unwrap()];
    assert!(held.iter().all(StreamSlot::is_held));
    assert_eq!(node.streams.open(&key, 2).await.err(), Some(StreamRefusal::Limit));
    drop(held);
    assert!(node.streams.open(&key, 1).await.is_ok());
    assert_eq!(node.streams.stats(), None);
    node.shut_down().await;
}

/// S11: one past at a time is sent to a key, wherever it is asked for; beside its streams, which count as ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_one_replay_over_all_nodes() {
    let cluster = TestCluster::of(TestStore::at(NOON));
    let (one, two) = (Node::start(&cluster).await, Node::start(&cluster).await);
    let key = key_of(&cluster, &one).await;
    let [first, second] = [&one, &two].map(|node| &node.member.node.streams);
    let replay = open_replay(first, &key).await.unwrap();
    for streams in [first, second] {
        assert_eq!(open_replay(streams, &key).await.err(), Some(StreamRefusal::Limit));
    }
    let stream = two.open_soon(&key, 1).await;
    drop(replay);
    let begun = Instant::now();
    let again = loop {
        match second.open_replay(&key).await {
            Ok(replay) => break replay,
            Err(refusal) => assert!(begun.elapsed() < TEST_TIMEOUT, "{refusal:?}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(open_replay(first, &key).await.err(), Some(StreamRefusal::Limit));
    drop((again, stream));
    one.shut_down().await;
    two.shut_down().await;
}

//! Adapters run only on the leader, and are restarted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use linesman_adapters::report::{Report, Reporter, Sample, State};
use linesman_adapters::sink::{Answer, NotTaken, OpenEvent, Receipt, Sink};
use linesman_adapters::supervisor::{DesiredState, Reporters, Shared, Supervisor};
use linesman_adapters::threads::AdapterThreads;

use crate::harness::{
    Reaction, RealClock, TestSink, Upstream, card, mapped, ok, one, script, wait_for,
};

#[derive(Debug, Default)]
struct TestShared {
    desired_states: Mutex<BTreeMap<String, DesiredState>>,
    reports: Mutex<BTreeMap<String, Report>>,
    started: Mutex<Vec<String>>,
}

impl Shared for TestShared {
    fn desired_states(&self) -> Answer<'_, Result<BTreeMap<String, DesiredState>, String>> {
        let desired_states = self.desired_states.lock().unwrap().clone();
        Box::pin(std::future::ready(Ok(desired_states)))
    }

    fn write<'a>(&'a self, report: &'a Report) -> Answer<'a, Result<(), String>> {
        self.reports.lock().unwrap().insert(report.name.clone(), report.clone());
        Box::pin(std::future::ready(Ok(())))
    }

    fn write_samples<'a>(&'a self, _: &'a str, _: &'a [Sample]) -> Answer<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn note_first_start<'a>(
        &'a self,
        name: &'a str,
        by: &'a str,
    ) -> Answer<'a, Result<(), String>> {
        self.started.lock().unwrap().push(format!("{name} {by}"));
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn adapters_run_while_this_node_leads_and_nobody_has_paused_them() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, shared) = (TestSink::new(), Arc::new(TestShared::default()));
    sink.leads.store(false, Ordering::SeqCst);
    let upstream = Upstream::start(script(vec![ok(&card(0..2, "2.5"))])).await;
    let adapter = one(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &sink);
    let reporters = Reporters::new(std::slice::from_ref(&adapter));
    let supervisor = Supervisor {
        catalogue: Arc::clone(&sink.catalogue),
        clock: Arc::new(RealClock),
        sink: Arc::clone(&sink) as Arc<_>,
        shared: Arc::clone(&shared) as Arc<_>,
        adapters: vec![adapter],
        reporters: reporters.clone(),
        threads: AdapterThreads::start().unwrap(),
    };
    let leads = Arc::clone(&sink);
    let task = tokio::spawn(supervisor.run(move || leads.leads.load(Ordering::SeqCst)));
    let reporter = reporters.get("card").unwrap().clone();
    let is =
        |state: State| wait_for(state.key(), move || (reporter.state() == state).then_some(()));
    is.clone()(State::Waiting).await;
    assert!(upstream.requests().is_empty(), "another node leads");
    sink.leads.store(true, Ordering::SeqCst);
    is.clone()(State::Ok).await;
    assert_eq!(*shared.started.lock().unwrap(), ["card O. Operator"]);
    wait_for("the report in the store", || {
        shared.reports.lock().unwrap().get("card").filter(|r| r.state == State::Ok).map(drop)
    })
    .await;
    sink.leads.store(false, Ordering::SeqCst);
    is.clone()(State::Waiting).await;
    // A request that was under way may still arrive.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let asked = upstream.requests().len();
    shared
        .desired_states
        .lock()
        .unwrap()
        .insert("card".to_owned(), DesiredState { paused: true, ..DesiredState::default() });
    is.clone()(State::Paused).await;
    assert_eq!(upstream.requests().len(), asked, "it has stopped");
    sink.leads.store(true, Ordering::SeqCst);
    shared
        .desired_states
        .lock()
        .unwrap()
        .insert("card".to_owned(), DesiredState { resumed_ms: Some(1), ..DesiredState::default() });
    is(State::Ok).await;
    assert_eq!(shared.started.lock().unwrap().len(), 1, "the first start is noted once");
    assert_eq!(sink.open_markets("card"), 2);
    task.abort();
}

/// One node of a cluster: while it is the leader, it writes to the shared book.
#[derive(Debug)]
struct Node {
    number: usize,
    leader: Arc<AtomicUsize>,
    book: Arc<TestSink>,
    /// The lines sent by each node, in order.
    sent: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Node {
    fn leads(&self) -> bool {
        self.leader.load(Ordering::SeqCst) == self.number
    }
}

impl Sink for Node {
    fn submit<'a>(&'a self, feed: &'a str, body: Bytes) -> Answer<'a, Result<Receipt, NotTaken>> {
        if !self.leads() {
            return Box::pin(std::future::ready(Err(NotTaken::NotLeader)));
        }
        let lines = String::from_utf8(body.to_vec()).unwrap();
        let lines = lines.lines().map(|line| (self.number, line.to_owned()));
        self.sent.lock().unwrap().extend(lines);
        self.book.submit(feed, body)
    }

    fn open<'a>(&'a self, feed: &'a str) -> Answer<'a, Result<Vec<OpenEvent>, NotTaken>> {
        if !self.leads() {
            return Box::pin(std::future::ready(Err(NotTaken::NotLeader)));
        }
        self.book.open(feed)
    }
}

#[tokio::test]
async fn another_node_takes_over_without_a_lost_or_doubled_market() {
    let dir = tempfile::tempdir().unwrap();
    let (book, shared) = (TestSink::new(), Arc::new(TestShared::default()));
    let leader = Arc::new(AtomicUsize::new(1));
    let sent: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let (before, after) = (card(0..3, "2.5"), card(1..4, "2.5"));
    // The second read is in progress when leadership is lost.
    let upstream = Upstream::start(move |_: &str, n| match n {
        0 => ok(&before),
        1 => Reaction::Hang,
        _ => ok(&after),
    })
    .await;
    let mut tasks = Vec::new();
    let reporters: Vec<Reporter> = [1, 2]
        .map(|number| {
            let adapter = one(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &book);
            let reporters = Reporters::new(std::slice::from_ref(&adapter));
            let node = Arc::new(Node {
                number,
                leader: Arc::clone(&leader),
                book: Arc::clone(&book),
                sent: Arc::clone(&sent),
            });
            let supervisor = Supervisor {
                catalogue: Arc::clone(&book.catalogue),
                clock: Arc::new(RealClock),
                sink: Arc::clone(&node) as Arc<_>,
                shared: Arc::clone(&shared) as Arc<_>,
                adapters: vec![adapter],
                reporters: reporters.clone(),
                threads: AdapterThreads::start().unwrap(),
            };
            tasks.push(tokio::spawn(supervisor.run(move || node.leads())));
            reporters.get("card").unwrap().clone()
        })
        .into();
    wait_for("the markets", || (book.open_markets("card") == 3).then_some(())).await;
    wait_for("the second read", || (upstream.requests().len() == 2).then_some(())).await;
    let is = |node: usize, state: State| {
        let reporter = reporters[node - 1].clone();
        async move { wait_for(state.key(), || (reporter.state() == state).then_some(())).await }
    };
    is(2, State::Waiting).await;
    leader.store(2, Ordering::SeqCst);
    is(1, State::Waiting).await;
    is(2, State::Ok).await;
    let refs = || -> Vec<String> {
        let open = book.book.lock().unwrap().open_of("card");
        let with_one = open.into_iter().filter(|event| event.markets.len() == 1);
        let mut refs: Vec<String> = with_one.map(|event| event.reference.into()).collect();
        refs.sort();
        refs
    };
    // Withdrawn markets are gone although the second node never sent them; new ones are there.
    wait_for("the other card", || (refs() == ["b1", "b2", "b3"]).then_some(())).await;
    wait_for("the removal", || (book.listed("card") == 3).then_some(())).await;
    let sent = sent.lock().unwrap().clone();
    let first_of_second = sent.iter().position(|(node, _)| *node == 2).unwrap();
    assert!(sent.iter().skip(first_of_second).all(|(node, _)| *node == 2), "{sent:?}");
    assert_eq!(book.book.lock().unwrap().open_of("card").len(), 3);
    // Leadership comes back: again nothing is lost or duplicated.
    leader.store(1, Ordering::SeqCst);
    is(2, State::Waiting).await;
    is(1, State::Ok).await;
    assert_eq!(refs(), ["b1", "b2", "b3"]);
    assert_eq!(shared.started.lock().unwrap().len(), 2, "each node notes its first start");
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

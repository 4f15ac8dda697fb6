//! Adapters run on the leader only, and start again.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use linesman_adapters::report::{Report, Sample, State};
use linesman_adapters::sink::Answer;
use linesman_adapters::supervisor::{Boards, Shared, Supervisor, Wish};

use crate::harness::{RealClock, TestSink, Upstream, card, mapped, ok, one, script, wait_for};

#[derive(Debug, Default)]
struct Desk {
    wishes: Mutex<BTreeMap<String, Wish>>,
    reports: Mutex<BTreeMap<String, Report>>,
    started: Mutex<Vec<String>>,
}

impl Shared for Desk {
    fn wishes(&self) -> Answer<'_, Result<BTreeMap<String, Wish>, String>> {
        let wishes = self.wishes.lock().unwrap().clone();
        Box::pin(std::future::ready(Ok(wishes)))
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
    let (sink, desk) = (TestSink::new(), Arc::new(Desk::default()));
    sink.leads.store(false, Ordering::SeqCst);
    let upstream = Upstream::start(script(vec![ok(&card(0..2, "2.5"))])).await;
    let adapter = one(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &sink);
    let boards = Boards::new(std::slice::from_ref(&adapter));
    let supervisor = Supervisor {
        catalogue: Arc::clone(&sink.catalogue),
        clock: Arc::new(RealClock),
        sink: Arc::clone(&sink) as Arc<_>,
        shared: Arc::clone(&desk) as Arc<_>,
        adapters: vec![adapter],
        boards: boards.clone(),
    };
    let leads = Arc::clone(&sink);
    let task = tokio::spawn(supervisor.run(move || leads.leads.load(Ordering::SeqCst)));
    let board = boards.get("card").unwrap().clone();
    let is = |state: State| wait_for(state.key(), move || (board.state() == state).then_some(()));
    is.clone()(State::Waiting).await;
    assert!(upstream.requests().is_empty(), "another node leads");
    sink.leads.store(true, Ordering::SeqCst);
    is.clone()(State::Ok).await;
    assert_eq!(*desk.started.lock().unwrap(), ["card O. Operator"]);
    wait_for("the report in the store", || {
        desk.reports.lock().unwrap().get("card").filter(|r| r.state == State::Ok).map(drop)
    })
    .await;
    sink.leads.store(false, Ordering::SeqCst);
    is.clone()(State::Waiting).await;
    let asked = upstream.requests().len();
    desk.wishes.lock().unwrap().insert("card".to_owned(), Wish { paused: true, ..Wish::default() });
    is.clone()(State::Paused).await;
    assert_eq!(upstream.requests().len(), asked, "it has stopped");
    sink.leads.store(true, Ordering::SeqCst);
    desk.wishes
        .lock()
        .unwrap()
        .insert("card".to_owned(), Wish { resumed_ms: Some(1), ..Wish::default() });
    is(State::Ok).await;
    assert_eq!(desk.started.lock().unwrap().len(), 1, "the first start is noted once");
    assert_eq!(sink.open_markets("card"), 2);
    task.abort();
}

//! Programs that print messages.

use std::time::Duration;

use domain::Clock as _;
use linesman_adapters::report::State;

use crate::harness::{RealClock, Running, TestSink, shell, wait_for};

const ODDS: &str = r#"{"type":"odds","ref":"b1","bookmaker":"fanduel","market":"moneyline","format":"american","outcomes":[{"name":"Jiri Prochazka","price":140},{"name":"Alex Pereira","price":-165}]}"#;

/// A bout a day from now.
fn bout() -> String {
    let start = RealClock.now().plus(Duration::from_secs(86_400));
    format!(
        r#"{{"type":"event","ref":"b1","sport":"mma","competition":"UFC 331","commence_time":"{start}","home":"Jiri Prochazka","away":"Alex Pereira"}}"#
    )
}

#[tokio::test]
async fn a_program_is_told_what_is_open_and_what_was_refused() {
    let dir = tempfile::tempdir().unwrap();
    let heard = dir.path().join("heard");
    let bout = bout();
    // The program records its input, and keeps running.
    let script = format!(
        "read hello; echo \"$hello\" > {0}; printf '%s\\n' '{bout}' '{ODDS}' '' 'nonsense' ''; read refused; echo \"$refused\" >> {0}; exec sleep 1000",
        heard.display()
    );
    let sink = TestSink::new();
    let running = Running::start(shell(&script, None, false), &sink);
    wait_for("the price", || (sink.open_markets("mine") == 1).then_some(())).await;
    let told = wait_for("the refusal", || {
        std::fs::read_to_string(&heard).ok().filter(|text| text.lines().count() == 2)
    });
    let told = told.await;
    assert!(told.starts_with(r#"{"hello":1,"adapter":"mine","open":[]}"#), "{told}");
    assert!(told.contains(r#"{"line":4,"code":"invalid_json""#), "{told}");
    assert_eq!(running.reporter.report().dropped.get("invalid_json"), Some(&1));
    drop(running);
    let again = format!("read hello; echo \"$hello\" > {}; exec sleep 1000", heard.display());
    let _running = Running::start(shell(&again, None, false), &sink);
    let open = r#""open":[{"ref":"b1","bookmaker":"fanduel","market":"moneyline","group":null}]"#;
    wait_for("what is open", || {
        std::fs::read_to_string(&heard).ok().filter(|text| text.contains(open))
    })
    .await;
}

#[tokio::test]
async fn a_program_that_ends_is_started_again_and_counted() {
    let sink = TestSink::new();
    let running = Running::start(shell("echo broken >&2; exit 3", None, false), &sink);
    let report = running.until("two restarts", |report| report.restarts >= 2).await;
    assert_eq!(report.state, State::Retrying);
    assert!(report.message.contains("exit status: 3"), "{report:?}");
}

#[tokio::test]
async fn the_output_of_a_run_counts_only_if_it_ends_well() {
    let (sink, bout) = (TestSink::new(), bout());
    let every = Some(Duration::from_secs(1));
    let running = Running::start(shell(&format!("echo '{bout}'; exit 1"), every, true), &sink);
    running.until("a failure", |report| report.reads.failed > 0).await;
    assert!(sink.sent().is_empty());
    drop(running);
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let script = format!("[ -e {0} ] || printf '%s\\n' '{bout}' '{ODDS}'", gone.display());
    let running = Running::start(shell(&script, every, true), &sink);
    wait_for("the price", || (sink.open_markets("mine") == 1).then_some(())).await;
    assert!(sink.sent().iter().any(|line| line.contains("\"fresh_for\":3")), "{:?}", sink.sent());
    std::fs::write(&gone, "").unwrap();
    wait_for("the complete offer is empty", || (sink.listed("mine") == 0).then_some(())).await;
    drop(running);
}

#[tokio::test]
async fn a_program_and_its_children_end_with_their_adapter() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
    let running = Running::start(shell(&script, None, false), &TestSink::new());
    let child = wait_for("the child", || {
        std::fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse::<u32>().ok())
    });
    let child = child.await;
    let lives = move || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(lives());
    drop(running);
    wait_for("the end of the child", || (!lives()).then_some(())).await;
}

#[tokio::test]
async fn a_program_has_time_to_end_after_its_signal() {
    let dir = tempfile::tempdir().unwrap();
    let (ready, ended) = (dir.path().join("ready"), dir.path().join("ended"));
    let script = format!(
        "trap 'sleep 0.3; touch {}; exit' TERM; touch {}; while :; do sleep 0.05; done",
        ended.display(),
        ready.display()
    );
    let running = Running::start(shell(&script, None, false), &TestSink::new());
    wait_for("the program", || ready.exists().then_some(())).await;
    drop(running);
    wait_for("its orderly end", || ended.exists().then_some(())).await;
}

#[tokio::test]
async fn whole_lines_are_taken_while_the_next_is_incomplete() {
    let bout = bout();
    let script = format!("printf '%s\\n' '{bout}' '{ODDS}'; printf '{{\"type\":'; exec sleep 1000");
    let sink = TestSink::new();
    let _running = Running::start(shell(&script, None, false), &sink);
    wait_for("the price", || (sink.open_markets("mine") == 1).then_some(())).await;
}

#[tokio::test]
async fn a_program_that_closes_its_output_and_stays_is_ended() {
    let script = "exec >&-; exec sleep 1000";
    let running = Running::start(shell(script, None, false), &TestSink::new());
    let report = running.until("a restart", |report| report.restarts >= 1).await;
    assert!(report.message.contains("closed its output"), "{report:?}");
}

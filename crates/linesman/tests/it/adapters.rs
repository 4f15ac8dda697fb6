//! Upstream adapters in the program: configuration, the command line, the demonstration, a kill during a read.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use domain::Timestamp;
use serde_json::Value;

use crate::harness::{DAY, TestProgram, bout, client, now, wait_for};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const ODDS: &str = r#"{"type":"odds","ref":"b1","bookmaker":"fanduel","market":"moneyline","format":"american","outcomes":[{"name":"Jiri Prochazka","price":140},{"name":"Alex Pereira","price":-165}]}"#;

/// The adapters as the operator's listener shows them.
async fn adapters(metrics: &str) -> Vec<Value> {
    let url = metrics.replace("/metrics", "/feeds");
    let text = client().get(url).send().await.unwrap().text().await.unwrap();
    let page: Value = serde_json::from_str(&text).unwrap();
    page["adapters"].as_array().unwrap().clone()
}

/// The records of the bout of a fighter.
fn of_bout<'a>(records: &'a [Value], fighter: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record.to_string().contains(fighter)).collect()
}

fn bookmakers<'a>(records: impl IntoIterator<Item = &'a Value>) -> BTreeSet<&'a str> {
    records.into_iter().filter_map(|record| record["bookmaker"].as_str()).collect()
}

#[tokio::test]
async fn the_demonstration_shows_two_recorded_upstreams_on_the_same_events() {
    let program = TestProgram::new();
    let text =
        std::fs::read_to_string(Path::new(ROOT).join("examples/demo/linesman.toml")).unwrap();
    let text =
        text.replace("tape = \"examples/", &format!("speed = \"max\"\ntape = \"{ROOT}/examples/"));
    program.write("linesman.toml", &text);
    assert_eq!(program.ok(&["config", "--check"]).await, "configuration OK");
    let service = program.start().await;
    let key = program.live_key().await;
    let fighters = ["Mateo Rojas", "Ivan Petrov", "Sofia Lindqvist"];
    // A publication may contain a part of what was read.
    let records = wait_for("prices of both for every bout", async || {
        let records = service.pages("/v1/sports/mma/odds?regions=us,uk", &key).await;
        let is_complete = |fighter: &str| {
            let own = bookmakers(of_bout(&records, fighter));
            own.contains("betfair") && own.contains("fanduel")
        };
        let all = bookmakers(&records).len() == 4 && fighters.into_iter().all(is_complete);
        all.then_some(records)
    })
    .await;
    for fighter in fighters {
        let own = of_bout(&records, fighter);
        let ids: BTreeSet<String> = own.iter().map(|r| r["event_id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "the bout of {fighter} is one event");
    }
    // The tapes are of one day of 2026: their times are shifted, so that the bouts are in the future (`tape_today`).
    let now = now();
    for event in service.pages("/v1/sports/mma/events", &key).await {
        let starts = Timestamp::parse(event["commence_time"].as_str().unwrap()).unwrap();
        assert!(starts > now && starts < now.plus(Duration::from_secs(3 * 86_400)), "{event}");
    }
    let shown = adapters(service.metrics()).await;
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|adapter| adapter["state"] == "ok"), "{shown:?}");
    let status = wait_for("the status in the store", async || {
        let status = program.ok(&["feeds", "status"]).await;
        (status.matches("the tape has ended").count() == 2).then_some(status)
    })
    .await;
    assert!(status.contains("toa") && status.contains("exchange"), "{status}");
    let metrics = client().get(service.metrics()).send().await.unwrap().text().await.unwrap();
    assert!(
        metrics.contains("linesman_adapter_state{adapter=\"toa\",state=\"ok\"} 1"),
        "{metrics}"
    );
    let created = program.run(&["feeds", "create", "toa"]).await;
    assert!(created.sentence(1).contains("name of an adapter"), "{}", created.stderr);
    program.ok(&["feeds", "pause", "toa"]).await;
    wait_for("the pause", async || {
        adapters(service.metrics()).await.iter().any(|a| a["state"] == "paused").then_some(())
    })
    .await;
    service.stop().await;
}

#[tokio::test]
async fn what_was_gone_when_a_killed_service_starts_again_is_taken_out() {
    let program = TestProgram::new();
    let gone = program.path().join("gone");
    let bout = bout("b1", "Jiri Prochazka", "Alex Pereira");
    let script = format!("[ -e '{0}' ] || printf '%s\\n' '{bout}' '{ODDS}'", gone.display());
    program.write(
        "linesman.toml",
        &format!(
            "[adapters.mine]\nkind = \"exec\"\nterms_accepted_by = \"me\"\nremove_after = \"0ms\"\n\
             command = [\"sh\", \"-c\", {}]\nevery = \"1s\"\ncomplete = true\n",
            Value::from(script)
        ),
    );
    let program = program.set("LINESMAN_ADAPTERS__MINE__ENABLED", "true");
    let service = program.start().await;
    let key = program.live_key().await;
    service.records("/v1/sports/mma/odds", &key, 1).await;
    service.kill().await;
    std::fs::write(&gone, "").unwrap();
    let service = program.start().await;
    wait_for("the withdrawal", async || {
        service.pages("/v1/sports/mma/odds?regions=us,uk", &key).await.is_empty().then_some(())
    })
    .await;
    service.stop().await;
    let audit = program.logs();
    assert!(!audit.contains("panicked"), "{audit}");
}

#[tokio::test]
async fn the_example_in_python_runs() {
    let program = TestProgram::new();
    program.write(
        "linesman.toml",
        &format!(
            "[adapters.mine]\nkind = \"exec\"\nenabled = true\nterms_accepted_by = \"me\"\n\
             command = [\"python3\", \"{ROOT}/examples/adapter.py\"]\n"
        ),
    );
    let service = program.start().await;
    let key = program.live_key().await;
    let records = service.records("/v1/sports/mma/odds", &key, 1).await;
    assert_eq!(records[0]["bookmaker"], "fanduel");
    service.stop().await;
}

/// A program that outlives the service would run twice after the next start.
#[tokio::test]
async fn a_program_that_ignores_its_signal_does_not_outlive_the_service() {
    let program = TestProgram::new();
    let pid = program.path().join("pid");
    let script =
        format!("trap '' TERM; echo $$ > '{}'; while :; do sleep 0.1; done", pid.display());
    program.write(
        "linesman.toml",
        &format!(
            "[adapters.mine]\nkind = \"exec\"\nenabled = true\nterms_accepted_by = \"me\"\n\
             command = [\"sh\", \"-c\", {}]\n",
            Value::from(script)
        ),
    );
    let service = program.start().await;
    let pid = wait_for("the program", async || {
        let text = std::fs::read_to_string(&pid).ok()?;
        text.trim().parse::<u32>().ok()
    })
    .await;
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(!stat().is_empty());
    service.stop().await;
    // A killed process ends a moment later.
    wait_for("the end of the program", async || {
        let found = stat();
        (found.is_empty() || found.contains(") Z ")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn every_fault_of_an_adapter_is_reported_and_no_secret_is_repeated() {
    let program = TestProgram::new();
    program.write(
        "linesman.toml",
        "[adapters.toa]\nkind = \"the_odds_api\"\nenabled = true\napi_key = \"hunter2\"\nregion = [\"us\"]\nurls = [\"x\"]\n\
         [adapters.one]\nkind = \"exec\"\ncommand = [\"true\"]\nbookmaker = \"fanduel\"\n\
         [adapters.two]\nkind = \"exec\"\ncommand = [\"true\"]\nbookmaker = \"fanduel\"\nschedule = [{ every = \"0s\" }]\n\
         [adapters.three]\nkind = \"exek\"\n",
    );
    let done = program.run(&["config", "--check"]).await;
    assert_eq!(done.code, Some(1));
    for expected in [
        "`adapters.toa.api_key` must be { env = \"NAME\" } or { file = \"PATH\" }",
        "did you mean `adapters.toa.regions`?",
        "`adapters.toa.terms_accepted_by` is missing",
        "https://the-odds-api.com/terms",
        "`adapters.toa.urls` is not a key of kind `the_odds_api`",
        "is `fanduel`, which `adapters.one` reads already",
        "`adapters.two.schedule` row 1",
        "`adapters.three.kind` is `exek`",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {}", done.stderr);
    }
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
}

#[tokio::test]
async fn a_check_reads_recorded_answers_and_accepts_nothing() {
    let program = TestProgram::new();
    program.write(
        "map.toml",
        "format = \"json\"\n[event]\neach = \"*\"\nref = \"id\"\nsport = \"'mma'\"\ncompetition = \"'UFC'\"\n\
         commence_time = \"start | iso\"\nhome = \"home\"\naway = \"away\"\n[[market]]\nkey = \"moneyline\"\n\
         format = \"decimal\"\n[[market.outcome]]\nname = \"home\"\nprice = \"h\"\n[[market.outcome]]\nname = \"away\"\nprice = \"a\"\n",
    );
    program.write(
        "linesman.toml",
        "[adapters.card]\nkind = \"mapped\"\nmapping = \"map.toml\"\nbookmaker = \"fanduel\"\n\
         urls = [\"https://example.com/odds\"]\n",
    );
    let start = now().plus(DAY);
    let body = format!(
        r#"[{{"id":"1","home":"Jiri Prochazka","away":"Alex Pereira","start":"{start}","h":2.5,"a":1.6}}]"#
    );
    program.write("today.json", &body);
    let text = program.ok(&["feeds", "check", "card", "--input", "today.json", "--json"]).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["events"]["listed"], 1, "{report}");
    assert_eq!(
        (&report["events"]["new"], &report["messages"]["accepted"]),
        (&1.into(), &3.into()),
        "{report}"
    );
    let lines = program.ok(&["feeds", "translate", "card", "today.json"]).await;
    assert!(lines.lines().count() >= 2 && lines.contains("\"price\":2.5"), "{lines}");
    program.write("login.html", "<html>");
    let drift = program.run(&["feeds", "check", "card", "--input", "login.html", "--json"]).await;
    assert_eq!(drift.code, Some(1), "{}", drift.stdout);
    let kinds = program.ok(&["feeds", "kinds"]).await;
    assert!(
        kinds.contains("the_odds_api") && kinds.contains("https://the-odds-api.com"),
        "{kinds}"
    );
}

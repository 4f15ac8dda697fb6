//! The poll transport with failing upstreams and with tapes, and The Odds API with its budget.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{Clock as _, Timestamp};
use linesman_adapters::report::State;
use linesman_adapters::settings::{
    KindSettings, MappedSettings, Page, Secret, SecretSource, TheOddsApiSettings, Value,
};

use crate::harness::{
    Reaction, RealClock, Running, TestSink, Upstream, card, mapped, ok, script, settings,
    still_clock, wait_for,
};

fn status(status: u16) -> Reaction {
    Reaction::Answer(status, Vec::new(), b"no".to_vec())
}

#[tokio::test]
async fn prices_come_in_and_what_upstream_no_longer_has_goes() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let upstream =
        Upstream::start(script(vec![ok(&card(0..3, "2.5")), ok(&card(0..2, "2.6"))])).await;
    let _running =
        Running::start(mapped(dir.path(), &[format!("{}/odds?key=hunter2", upstream.url)]), &sink);
    wait_for("the bouts", || (sink.open_markets("card") == 3).then_some(())).await;
    wait_for("the withdrawal", || (sink.open_markets("card") == 2).then_some(())).await;
    wait_for("the removal", || (sink.listed("card") == 2).then_some(())).await;
    let sent = sink.sent();
    assert!(sent.iter().any(|line| line.contains("\"fresh_for\":3")), "{sent:?}");
    assert!(sent.iter().any(|line| line.contains("\"type\":\"heartbeat\"")), "{sent:?}");
}

#[tokio::test]
async fn an_unchanged_answer_is_a_good_read() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let body = card(0..1, "2.5");
    let upstream = Upstream::start(move |request: &str, _| {
        if request.to_lowercase().contains("if-none-match: \"v1\"") {
            return Reaction::Answer(304, Vec::new(), Vec::new());
        }
        Reaction::Answer(200, vec![("etag", "\"v1\"".to_owned())], body.clone().into_bytes())
    })
    .await;
    let running = Running::start(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &sink);
    let report = running.until("two unchanged reads", |report| report.reads.unchanged >= 2).await;
    assert_eq!((report.reads.ok, report.reads.failed, report.state), (1, 0, State::Ok));
    let beats = sink.sent().iter().filter(|line| line.contains("heartbeat")).count();
    assert!(beats >= 2, "each keeps the source fresh");
}

#[tokio::test]
async fn faults_of_upstream_are_survived_and_send_nothing() {
    for (fault, message) in [
        (status(500), "upstream answered 500"),
        (
            Reaction::Answer(429, vec![("retry-after", "0".to_owned())], Vec::new()),
            "upstream answered 429",
        ),
        (Reaction::Cut, "failed"),
        (
            Reaction::Answer(
                200,
                vec![("content-encoding", "gzip".to_owned())],
                b"no gzip".to_vec(),
            ),
            "not gzip",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let sink = TestSink::new();
        let upstream =
            Upstream::start(script(vec![fault.clone(), fault, ok(&card(0..1, "2.5"))])).await;
        let url = format!("{}/odds?key=hunter2", upstream.url);
        let running = Running::start(mapped(dir.path(), &[url]), &sink);
        let report = running.until("a failure", |report| report.state == State::Retrying).await;
        assert!(
            report.message.contains(message) && !report.message.contains("hunter2"),
            "{report:?}"
        );
        assert!(sink.sent().is_empty());
        let report = running.until("recovery", |report| report.state == State::Ok).await;
        assert_eq!(report.reads.failed, 2);
    }
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_given_up_on() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let upstream = Upstream::start(script(vec![Reaction::Hang, ok(&card(0..1, "2.5"))])).await;
    let mut settings = mapped(dir.path(), &[format!("{}/odds", upstream.url)]);
    settings.access.timeout = Duration::from_millis(300);
    let running = Running::start(settings, &sink);
    let report = running.until("a failure", |report| report.reads.failed > 0).await;
    assert!(report.message.contains("in time") || report.state == State::Ok, "{report:?}");
    running.until("recovery", |report| report.state == State::Ok).await;
}

#[tokio::test]
async fn credentials_that_are_refused_stop_the_reads_until_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let secret = dir.path().join("token");
    std::fs::write(&secret, "hunter2\n").unwrap();
    let body = card(0..1, "2.5");
    let upstream = Upstream::start(move |request: &str, _| {
        if request.to_lowercase().contains("x-token: sesame") { ok(&body) } else { status(401) }
    })
    .await;
    let mut settings = mapped(dir.path(), &[format!("{}/odds", upstream.url)]);
    let KindSettings::Mapped(MappedSettings { headers, .. }) = &mut settings.kind else { panic!() };
    headers.insert("x-token".to_owned(), Value::Secret(SecretSource::File(secret.clone())));
    let running = Running::start(settings, &sink);
    let report = running.until("the refusal", |report| report.state == State::Refused).await;
    assert!(!format!("{report:?}").contains("hunter2"));
    std::fs::write(&secret, "sesame\n").unwrap();
    running.read_now.notify_one();
    running.until("the read", |report| report.state == State::Ok).await;
    assert_eq!(upstream.requests().len(), 2, "nothing was asked meanwhile");
}

/// The time between two requests at the `rate_per_minute` of these tests.
const GAP: Duration = Duration::from_millis(10);

#[tokio::test]
async fn a_unit_that_upstream_does_not_have_waits_an_hour_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, clock) = (TestSink::new(), still_clock());
    let there = Arc::new(AtomicBool::new(false));
    let (is_there, first, second) = (Arc::clone(&there), card(0..2, "2.5"), card(2..3, "2.5"));
    let upstream = Upstream::start(move |request: &str, _| match request.contains("/undercard") {
        false => ok(&first),
        true if is_there.load(Ordering::SeqCst) => ok(&second),
        true => status(404),
    })
    .await;
    let urls = ["undercard", "card"].map(|path| format!("{}/{path}", upstream.url));
    let running = Running::start_at(mapped(dir.path(), &urls), &sink, Arc::clone(&clock) as _);
    let missed = running.until("the answer 404", |report| report.reads.failed == 1).await;
    assert!(missed.message.contains("404"), "{missed:?}");
    clock.advance(GAP);
    running.until("the other unit", |report| report.state == State::Ok).await;
    for reads in 2..=4 {
        clock.advance(Duration::from_secs(2));
        running.until("the next read", |report| report.reads.ok == reads).await;
    }
    let asked = || upstream.requests().iter().filter(|text| text.contains("/undercard")).count();
    assert_eq!((asked(), running.reporter.report().reads.failed), (1, 1));
    assert_eq!(sink.open_markets("card"), 2);
    there.store(true, Ordering::SeqCst);
    clock.advance(Duration::from_secs(3600));
    wait_for("a second unit is due", || {
        clock.advance(GAP);
        (sink.open_markets("card") == 3).then_some(())
    })
    .await;
    assert_eq!(running.reporter.report().reads.failed, 1);
}

#[tokio::test]
async fn the_age_of_an_answer_is_taken_off_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, clock) = (TestSink::new(), still_clock());
    let body = card(0..1, "2.5").into_bytes();
    let aged = Reaction::Answer(200, vec![("age", "100".to_owned())], body);
    let upstream = Upstream::start(script(vec![aged])).await;
    let url = format!("{}/odds", upstream.url);
    let _running = Running::start_at(mapped(dir.path(), &[url]), &sink, Arc::clone(&clock) as _);
    let odds = wait_for("the prices", || {
        sink.sent().into_iter().find(|line| line.contains("\"type\":\"odds\""))
    })
    .await;
    let odds: serde_json::Value = serde_json::from_str(&odds).unwrap();
    let ts = Timestamp::parse(odds["ts"].as_str().unwrap()).unwrap();
    assert_eq!(ts, clock.now().minus(Duration::from_secs(100)), "{odds}");
}

#[tokio::test]
async fn after_five_failures_a_host_is_probed_with_one_request_at_a_time_until_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, clock) = (TestSink::new(), still_clock());
    let works = Arc::new(AtomicBool::new(false));
    let times: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
    let (is_well, seen, now, body) =
        (Arc::clone(&works), Arc::clone(&times), Arc::clone(&clock), card(0..1, "2.5"));
    let upstream = Upstream::start(move |_: &str, _| {
        seen.lock().unwrap().push(now.now());
        if is_well.load(Ordering::SeqCst) { ok(&body) } else { status(500) }
    })
    .await;
    let urls = ["a", "b"].map(|path| format!("{}/{path}", upstream.url));
    let begun = clock.now();
    let running = Running::start_at(mapped(dir.path(), &urls), &sink, Arc::clone(&clock) as _);
    // No wait is longer than a second, so that both units are due in each round of this length.
    let round = Duration::from_secs(1) + GAP * 2;
    let mut failed = 0;
    for requests in [2, 2, 1, 1, 1] {
        for _ in 0..requests {
            failed += 1;
            running.until("a failure", |report| report.reads.failed == failed).await;
            clock.advance(GAP);
        }
        works.store(failed == 7, Ordering::SeqCst);
        clock.advance(round - GAP * requests);
    }
    running.until("the probe succeeds", |report| report.reads.ok >= 1).await;
    clock.advance(GAP);
    running.until("the other unit", |report| report.reads.ok == 2).await;
    let mut rounds = [0; 6];
    for time in times.lock().unwrap().iter() {
        let round = time.since(begun).as_millis() / round.as_millis();
        rounds[usize::try_from(round).unwrap()] += 1;
    }
    assert_eq!(rounds, [2, 2, 1, 1, 1, 2], "open from the fifth failure to the first success");
    assert_eq!(running.reporter.report().state, State::Ok);
}

#[tokio::test]
async fn input_in_another_format_is_quarantined_and_nothing_of_it_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let drifted =
        card(0..6, "2.5").replace("home_price", "homePrice").replace("\"home\"", "\"Home\"");
    let upstream = Upstream::start(script(vec![
        ok(&card(0..6, "2.5")),
        ok("<html>login</html>"),
        ok(&drifted),
    ]))
    .await;
    let running = Running::start(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &sink);
    let report = running.until("quarantine", |report| report.quarantined >= 2).await;
    assert_eq!(report.state, State::Drift);
    assert_eq!(sink.open_markets("card"), 6, "what stood stays");
    let samples = running.reporter.samples();
    let html = samples.iter().find(|sample| sample.body.starts_with(b"<html>")).unwrap();
    assert!(!html.reason.is_empty());
}

#[tokio::test]
async fn a_read_that_lacks_most_is_held_back_until_two_more_agree() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let upstream =
        Upstream::start(script(vec![ok(&card(0..12, "2.5")), ok(&card(0..2, "2.5"))])).await;
    let running = Running::start(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &sink);
    running
        .until("a read is held back", |report| report.dropped.get("held_back") == Some(&1))
        .await;
    assert_eq!(sink.open_markets("card"), 12);
    wait_for("the third is believed", || (sink.open_markets("card") == 2).then_some(())).await;
    assert_eq!(running.reporter.report().dropped.get("held_back"), Some(&2));
}

#[tokio::test]
async fn an_upstream_may_not_redirect_to_another_host() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let other = Upstream::start(script(vec![ok(&card(0..1, "2.5"))])).await;
    let to = format!("{}/odds", other.url);
    let upstream =
        Upstream::start(script(vec![Reaction::Answer(302, vec![("location", to)], Vec::new())]))
            .await;
    let running = Running::start(mapped(dir.path(), &[format!("{}/odds", upstream.url)]), &sink);
    let report = running.until("the refusal", |report| report.reads.failed > 0).await;
    assert!(report.message.contains("another host"), "{report:?}");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn pages_are_one_read() {
    let dir = tempfile::tempdir().unwrap();
    let sink = TestSink::new();
    let upstream = Upstream::start(|request: &str, _| match request.split_once("offset=") {
        None => ok(&card(0..5, "2.5")),
        Some((_, rest)) if rest.starts_with("5 ") => ok(&card(5..7, "2.5")),
        Some(_) => ok("[]"),
    })
    .await;
    let mut settings = mapped(dir.path(), &[format!("{}/odds?sport=mma", upstream.url)]);
    let KindSettings::Mapped(MappedSettings { page, .. }) = &mut settings.kind else { panic!() };
    *page = Some(Page::Step { param: "offset".to_owned(), step: 5 });
    let running = Running::start(settings, &sink);
    running.until("two reads", |report| report.reads.ok >= 2).await;
    assert_eq!(sink.open_markets("card"), 7);
    assert!(upstream.requests().iter().all(|request| request.contains("sport=mma")));
}

#[tokio::test]
async fn what_is_recorded_can_be_played_without_the_network_and_holds_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, tapes) = (TestSink::new(), dir.path().join("tapes"));
    let upstream =
        Upstream::start(script(vec![ok(&card(0..3, "2.5")), ok(&card(0..2, "2.5"))])).await;
    let url = format!("{}/odds?key=hunter2", upstream.url);
    let mut settings = mapped(dir.path(), &[url]);
    settings.record = Some(tapes.clone());
    let running = Running::start(settings.clone(), &sink);
    wait_for("the withdrawal", || {
        (sink.sent().len() > 3 && sink.open_markets("card") == 2).then_some(())
    })
    .await;
    drop((running, upstream));
    let tape = std::fs::read_dir(&tapes).unwrap().next().unwrap().unwrap().path();
    let whole: Vec<_> =
        linesman_adapters::tape::Tape::open(&tape).unwrap().map(Result::unwrap).collect();
    assert!(!format!("{whole:?}").contains("hunter2"));
    let again = TestSink::new();
    (settings.record, settings.tape) = (None, Some(tape));
    let running = Running::start(settings, &again);
    running
        .until("the end of the tape", |report| {
            report.message == linesman_adapters::report::TAPE_ENDED
        })
        .await;
    assert_eq!(again.open_markets("card"), 2);
}

fn the_odds_api(base_url: &str, reserve: u64) -> linesman_adapters::settings::AdapterSettings {
    let kind = KindSettings::TheOddsApi(TheOddsApiSettings {
        api_key: Some(SecretSource::Given(Secret::from("hunter2".to_owned()))),
        regions: vec!["us".to_owned()],
        bookmakers: Vec::new(),
        markets: vec!["h2h".to_owned()],
        reserve,
        scores: true,
        scores_every: Duration::from_secs(60),
    });
    let mut settings = settings("toa", kind);
    settings.access.base_url = Some(base_url.to_owned());
    settings
}

const SPORTS: &str = r#"[{"key":"mma_mixed_martial_arts","group":"Mixed Martial Arts","title":"MMA","description":"","active":true,"has_outrights":false}]"#;

fn the_odds_api_answers(remaining: u64) -> impl Fn(&str, usize) -> Reaction + Send + Sync {
    move |request: &str, _| {
        let left = vec![
            ("x-requests-remaining", remaining.to_string()),
            ("x-requests-used", "7".to_owned()),
        ];
        let start = RealClock.now().plus(Duration::from_secs(7200));
        let now = RealClock.now();
        let event = format!(
            r#""id":"e1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"{start}","home_team":"Jiri Prochazka","away_team":"Alex Pereira""#
        );
        let odds = format!(
            r#"[{{{event},"bookmakers":[{{"key":"fanduel","title":"FanDuel","last_update":"{now}","markets":[{{"key":"h2h","last_update":"{now}","outcomes":[{{"name":"Alex Pereira","price":-165}},{{"name":"Jiri Prochazka","price":140}}]}}]}}]}}]"#
        );
        let path = request.split([' ', '?']).nth(1).unwrap();
        let body = match path.rsplit('/').next().unwrap() {
            "sports" => SPORTS.to_owned(),
            "events" => format!("[{{{event}}}]"),
            "odds" => odds,
            other => panic!("{other}"),
        };
        Reaction::Answer(200, left, body.into_bytes())
    }
}

#[tokio::test]
async fn the_odds_api_is_read_within_its_budget() {
    let sink = TestSink::new();
    let upstream = Upstream::start(the_odds_api_answers(10_000)).await;
    let running = Running::start(the_odds_api(&upstream.url, 500), &sink);
    wait_for("the odds", || (sink.open_markets("toa") == 1).then_some(())).await;
    let budget =
        running.until("the budget", |report| report.budget.is_some()).await.budget.unwrap();
    assert_eq!((budget.remaining, budget.used, budget.reserve), (10_000, 7, 500));
    let requests = upstream.requests();
    let odds = requests.iter().find(|request| request.contains("/odds?")).unwrap();
    assert!(
        odds.contains("regions=us")
            && odds.contains("oddsFormat=american")
            && odds.contains("markets=h2h"),
        "{odds}"
    );
    assert!(!format!("{:?}", running.reporter.report()).contains("hunter2"));
    assert!(!requests.iter().any(|request| request.contains("/scores")), "nothing has started");
}

#[tokio::test]
async fn the_reserve_of_the_odds_api_is_never_spent() {
    let sink = TestSink::new();
    let upstream = Upstream::start(the_odds_api_answers(500)).await;
    let running = Running::start(the_odds_api(&upstream.url, 500), &sink);
    running.until("it is spent", |report| report.state == State::Spent).await;
    assert!(!upstream.requests().iter().any(|request| request.contains("/odds?")));
    assert_eq!(sink.listed("toa"), 1, "free calls go on");
}

#[tokio::test]
async fn the_odds_api_says_that_credits_are_used_up_or_the_key_is_wrong() {
    for (body, state) in [
        (
            r#"{"message":"Usage quota has been reached","error_code":"OUT_OF_USAGE_CREDITS"}"#,
            State::Spent,
        ),
        (r#"{"message":"API key is not valid","error_code":"INVALID_KEY"}"#, State::Refused),
    ] {
        let sink = TestSink::new();
        let upstream =
            Upstream::start(script(vec![Reaction::Answer(401, Vec::new(), body.into())])).await;
        let running = Running::start(the_odds_api(&upstream.url, 500), &sink);
        let report = running.until("the refusal", |report| report.reads.failed > 0).await;
        assert_eq!(report.state, state, "{report:?}");
    }
}

//! Throughput of the translators on one core: lines of the Exchange Stream, and megabytes of mapped JSON and XML and
//! of The Odds API. Uses generated input, and recordings if `../shared/data` is next to the repository. Fails below
//! the bounds: 600,000 lines/s, 40 and 20 MB/s, 100 MB/s. The bounds are per second of processor time; the rate per
//! second of wall-clock time is printed too, and is lower if other programs run.
//!
//! `cargo bench -p linesman-feeds --bench adapters [-- NAME]`: only the measurements with NAME in their name
//!
//! `… -- --compare PYTHON`: compares with the public parsers of the Exchange Stream on the same lines (the
//! recordings, if present). Fails if the best of them is faster than a third of ours. PYTHON is a Python that has
//! them installed (`betfair_parsers.py`).

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a program for people")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::price::Format;
use domain::{Catalogue, Timestamp};
use linesman_feeds::adapter::betfair::{Betfair, Options};
use linesman_feeds::adapter::mapped::{Mapped, Mapping};
use linesman_feeds::adapter::the_odds_api::TheOddsApi;
use linesman_feeds::adapter::{Settings, Translator};

/// Processor time of each measurement.
const RUN: Duration = Duration::from_millis(700);

const JSON: &str = r#"
format = "json"
[event]
each = "events"
when = ["state != FINISHED"]
ref = "id"
sport = "'tennis'"
competition = "path[-1].name"
commence_time = "start"
home = "home.name"
away = "away.name"
[[market]]
each = "/offers"
join = "eventId"
key = "criterion.label | map(markets)"
format = "decimal"
suspended = "!outcomes[status=OPEN]"
[[market.outcome]]
each = "outcomes"
when = "status = OPEN"
name = "type | map(sides)"
price = "odds | div(1000)"
[tables.markets]
"Match Odds" = "moneyline"
[tables.sides]
OT_ONE = "@home"
OT_TWO = "@away"
"#;

const XML: &str = r#"
format = "xml"
[event]
each = "Event"
when = ["@started = false"]
ref = "@id"
sport = "'mma'"
competition = "Keywords.Keyword[@type=league]"
commence_time = "@start_at | time('%Y/%m/%dT%H:%M:%SZ UTC')"
home = "Names.Name | regex('^(.*?) - ')"
away = "Names.Name | regex(' - (.*)$')"
[[market]]
each = "Markets.Market[@cname=fight-winner]"
key = "moneyline"
format = "fractional"
[[market.outcome]]
each = "Outcomes.Outcome"
name = "Names.Name"
price = "{@price_num}/{@price_den}"
"#;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let only = match arguments.next() {
        Some(flag) if flag == "--compare" => {
            return compare(&arguments.next().expect("--compare PYTHON"));
        }
        only => only,
    };
    let mut slow = false;
    let mut report = |name: &str, unit: &str, bound: f64, measure: &mut dyn FnMut() -> Rate| {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        let Rate { processor, clock } = measure();
        let ok = processor >= bound;
        slow |= !ok;
        let verdict = if ok { "ok" } else { "TOO SLOW" };
        println!(
            "{name:<44} {processor:>12.1} {unit:<8} bound {bound:>9.0}  {verdict:<8} by the clock {clock:>12.1}"
        );
    };
    let (json, xml, odds) = (json_body(), xml_body(), odds_body());
    let mapping = |text: &str| Arc::new(Mapping::compile(text).expect("a mapping"));
    let mut mapped = Mapped::new(mapping(JSON), settings());
    report("mapped, JSON, generated", "MB/s", 40.0, &mut || megabytes(&mut mapped, &json));
    let mut mapped = Mapped::new(mapping(XML), settings());
    report("mapped, XML, generated", "MB/s", 20.0, &mut || megabytes(&mut mapped, &xml));
    let mut api = TheOddsApi::new(settings(), Format::Decimal);
    report("the_odds_api, generated", "MB/s", 100.0, &mut || megabytes(&mut api, &odds));
    let lines = stream_lines();
    let mut stream = || lines_a_second(&lines);
    report("betfair, generated, 500 markets", "lines/s", 600_000.0, &mut stream);
    if let Some(lines) = recorded_lines() {
        let name = format!("betfair, three recordings, {} lines", lines.len());
        report(&name, "lines/s", 600_000.0, &mut || lines_a_second(&lines));
    }
    if slow { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Alternates between ours and the public parsers, so that a busy moment of the machine does not affect only one of
/// them.
fn compare(python: &str) -> ExitCode {
    const TURNS: usize = 3;
    let lines = recorded_lines().unwrap_or_else(stream_lines);
    let mut body = Vec::new();
    for (_, line) in &lines {
        body.extend_from_slice(line);
        body.push(b'\n');
    }
    let file = std::env::temp_dir().join(format!("betfair-{}.ndjson", std::process::id()));
    std::fs::write(&file, body).expect("a temporary file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/betfair_parsers.py");
    let (mut ours, mut others) = (Vec::new(), BTreeMap::<String, Vec<f64>>::new());
    for _ in 0..TURNS {
        ours.push(lines_a_second(&lines).processor);
        let output = std::process::Command::new(python).arg(&script).arg(&file).output();
        let output = output.expect("a Python");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        for (name, rate) in text.lines().filter_map(|line| line.split_once(' ')) {
            // Parsers may print messages of their own.
            let rate: Option<f64> = rate.parse().ok();
            others.entry(name.to_owned()).or_default().extend(rate);
        }
    }
    std::fs::remove_file(&file).expect("the file is there");
    let ours = median(ours);
    println!("{} lines, median of {TURNS} turns, lines in a second of processor time", lines.len());
    println!("{:<32} {ours:>12.0}", "linesman");
    let mut best = 0.0_f64;
    for (name, rates) in others.into_iter().filter(|(_, rates)| !rates.is_empty()) {
        let rate = median(rates);
        if !name.ends_with("alone") {
            best = best.max(rate);
        }
        println!("{name:<32} {rate:>12.0}  ours is {:.1} times as fast", ours / rate);
    }
    if ours >= 3.0 * best { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn settings() -> Settings {
    let mut settings =
        Settings::new(Arc::new(Catalogue::load(None).expect("ships with the crate")));
    settings.bookmaker = settings.catalogue.bookmaker_id("betfair");
    settings
}

fn now() -> Timestamp {
    Timestamp::from_secs(1_800_000_000)
}

/// Processor time of this thread so far: other programs on the machine do not count.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanos.expect("nanoseconds"))
}

/// Work done per second of processor time, and per second of wall-clock time.
struct Rate {
    processor: f64,
    clock: f64,
}

/// The rate of `work`, which processes `amount` each time.
fn rate(amount: usize, mut work: impl FnMut()) -> Rate {
    let amount = f64::from(u32::try_from(amount).unwrap_or(u32::MAX));
    work();
    let (begun, clock, mut times) = (spent(), Instant::now(), 0_u32);
    loop {
        work();
        times += 1;
        let spent = spent().saturating_sub(begun);
        if spent >= RUN {
            let done = amount * f64::from(times);
            let clock = clock.elapsed().as_secs_f64();
            return Rate { processor: done / spent.as_secs_f64(), clock: done / clock };
        }
    }
}

fn megabytes(translator: &mut dyn Translator, body: &str) -> Rate {
    let Rate { processor, clock } = rate(body.len(), || {
        let read = translator.translate("odds/x", body.as_bytes(), now()).expect("a good body");
        assert!(read.failed == 0 && read.markets.len() >= 100, "{:?}", read.failures);
    });
    Rate { processor: processor / 1e6, clock: clock / 1e6 }
}

/// Processes the lines without pauses, each at the time at which the exchange published it.
fn lines_a_second(lines: &[(Timestamp, Vec<u8>)]) -> Rate {
    let settings = settings();
    rate(lines.len(), || {
        let mut betfair = Betfair::new(settings.clone(), Options::default());
        let mut markets = 0;
        for (at, line) in lines {
            markets += betfair.translate("stream", line, *at).expect("a good line").markets.len();
        }
        assert!(markets > 0);
    })
}

fn json_body() -> String {
    let mut body = r#"{"events":["#.to_owned();
    for n in 0..2_000 {
        let comma = if n == 0 { "" } else { "," };
        body.push_str(&format!(r#"{comma}{{"id":{n},"state":"NOT_STARTED","start":"2026-11-22T18:00:00Z","path":[{{"id":1,"name":"Tennis"}},{{"id":2,"name":"Open {}"}}],"home":{{"name":"Player {n}, Ann","rank":12,"country":"FR"}},"away":{{"name":"Player {n}, Bea","rank":40,"country":"IT"}},"tags":["MATCH","OFFERED_LIVE"],"liveBoCount":3,"nonLiveBoCount":17}}"#,
            n % 9
        ));
    }
    body.push_str(r#"],"offers":["#);
    for n in 0..2_000 {
        let comma = if n == 0 { "" } else { "," };
        body.push_str(&format!(r#"{comma}{{"id":{},"eventId":{n},"criterion":{{"id":9,"label":"Match Odds"}},"closed":"2026-11-22T18:00:00Z","outcomes":[{{"id":1,"type":"OT_ONE","odds":{},"oddsAmerican":"-108","oddsFractional":"10/11","status":"OPEN","changedDate":"2026-11-14T07:21:49Z","cashOutStatus":"ENABLED"}},{{"id":2,"type":"OT_TWO","odds":{},"oddsAmerican":"-113","oddsFractional":"22/25","status":"OPEN","changedDate":"2026-11-14T07:21:49Z","cashOutStatus":"ENABLED"}}]}}"#,
            n + 50_000,
            1_930 + n % 50,
            1_890 - n % 50
        ));
    }
    body.push_str("]}");
    body
}

fn xml_body() -> String {
    let mut body = "<?xml version=\"1.0\"?><Events>".to_owned();
    for n in 0..2_000 {
        body.push_str(&format!(r#"<Event id="{n}" started="false" start_at="2026/11/22T03:00:00Z UTC" live="false" title=""><Names><Name lang="en">Ann {n} - Bea {n}</Name></Names><Keywords><Keyword type="team" cname="a">Ann {n}</Keyword><Keyword type="league" cname="cup">Cup</Keyword></Keywords><Markets>"#
        ));
        for market in ["fight-winner", "method", "round"] {
            body.push_str(&format!(r#"<Market id="{n}" type_cname="to-win" cname="{market}" handicap="0" tricast="false"><Names><Name lang="en">{market}</Name></Names><Outcomes><Outcome id="1" index="1" price_num="8" price_den="15" price_dec="1.533"><Quicklink>/a/{n}/1</Quicklink><Names><Name lang="en">Ann {n}</Name></Names></Outcome><Outcome id="2" index="2" price_num="6" price_den="4" price_dec="2.5"><Quicklink>/a/{n}/2</Quicklink><Names><Name lang="en">Bea {n}</Name></Names></Outcome></Outcomes></Market>"#
            ));
        }
        body.push_str("</Markets></Event>");
    }
    body.push_str("</Events>");
    body
}

fn odds_body() -> String {
    let mut body = "[".to_owned();
    for n in 0..300 {
        let comma = if n == 0 { "" } else { "," };
        body.push_str(&format!(r#"{comma}{{"id":"{n:032x}","sport_key":"americanfootball_nfl","sport_title":"NFL","commence_time":"2026-11-22T18:00:00Z","home_team":"Miami Dolphins","away_team":"Buffalo Bills","bookmakers":["#
        ));
        for (i, key) in [
            "draftkings",
            "fanduel",
            "pinnacle",
            "betmgm",
            "bovada",
            "betonlineag",
            "lowvig",
            "betrivers",
        ]
        .iter()
        .enumerate()
        {
            let comma = if i == 0 { "" } else { "," };
            body.push_str(&format!(r#"{comma}{{"key":"{key}","title":"{key}","last_update":"2026-11-14T17:35:34Z","markets":[{{"key":"h2h","last_update":"2026-11-14T17:35:34Z","outcomes":[{{"name":"Buffalo Bills","price":1.{i}8}},{{"name":"Miami Dolphins","price":2.{i}1}}]}},{{"key":"spreads","last_update":"2026-11-14T17:35:34Z","outcomes":[{{"name":"Buffalo Bills","price":1.91,"point":-3.5}},{{"name":"Miami Dolphins","price":1.91,"point":3.5}}]}},{{"key":"totals","last_update":"2026-11-14T17:35:34Z","outcomes":[{{"name":"Over","price":1.91,"point":47.5}},{{"name":"Under","price":1.91,"point":47.5}}]}}]}}"#
            ));
        }
        body.push_str("]}");
    }
    body.push(']');
    body
}

/// 500 markets that change in turn, 20,000 lines a second of the exchange's time.
fn stream_lines() -> Vec<(Timestamp, Vec<u8>)> {
    let mut lines = Vec::new();
    for n in 0..500 {
        let line = format!(
            r#"{{"op":"mcm","id":2,"clk":"a","pt":1800000000000,"mc":[{{"id":"1.{n}","img":true,"marketDefinition":{{"bspMarket":false,"turnInPlayEnabled":true,"persistenceEnabled":true,"marketBaseRate":5.0,"eventId":"{n}","eventTypeId":"2","numberOfWinners":1,"bettingType":"ODDS","marketType":"MATCH_ODDS","marketTime":"2027-01-16T18:00:00.000Z","suspendTime":"2027-01-16T18:00:00.000Z","bspReconciled":false,"complete":true,"inPlay":false,"crossMatching":true,"runnersVoidable":false,"numberOfActiveRunners":2,"betDelay":0,"status":"OPEN","regulators":["MR_INT"],"discountAllowed":true,"timezone":"GMT","openDate":"2027-01-16T18:00:00.000Z","version":1,"countryCode":"GB","name":"Match Odds","eventName":"Ann {n} v Bea {n}","runners":[{{"id":1,"sortPriority":1,"status":"ACTIVE","name":"Ann {n}"}},{{"id":2,"sortPriority":2,"status":"ACTIVE","name":"Bea {n}"}}]}},"rc":[]}}]}}"#
        );
        lines.push((now(), line.into_bytes()));
    }
    for n in 0..40_000_u32 {
        let at = now().plus(Duration::from_micros(u64::from(n) * 50));
        let line = format!(
            r#"{{"op":"mcm","id":2,"clk":"AAAA{n}","pt":{},"mc":[{{"id":"1.{}","rc":[{{"batb":[[0,1.{},{}.5],[1,1.5,20]],"batl":[[0,2.5,31.2]],"id":{}}}],"con":true}}]}}"#,
            at.as_millis(),
            n % 500,
            51 + n % 40,
            12 + n % 90,
            1 + n % 2
        );
        lines.push((at, line.into_bytes()));
    }
    lines
}

/// The tennis recordings, if they and the tool that unpacks them are available.
fn recorded_lines() -> Option<Vec<(Timestamp, Vec<u8>)>> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/feeds/betfair_stream");
    let mut lines = Vec::new();
    for event in ["29788105", "29788106", "29788457"] {
        let path = folder.join(format!("tennis_event_{event}.ndjson.gz"));
        let output = std::process::Command::new("gzip").arg("-dc").arg(&path).output().ok()?;
        if !output.status.success() {
            return None;
        }
        for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let json: serde_json::Value = serde_json::from_slice(line).ok()?;
            lines.push((Timestamp::from_millis(json.get("pt")?.as_i64()?), line.to_vec()));
        }
    }
    Some(lines)
}

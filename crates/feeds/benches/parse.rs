//! Messages that one core parses per second: `cargo bench -p linesman-feeds`. All data is invented.
#![expect(clippy::print_stdout, reason = "a bench is read from the terminal")]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use domain::catalogue::Catalogue;
use linesman_feeds::push::{parse_line, split_lines, write_line};

/// Long enough to even out a shared machine.
const RUN_FOR: Duration = Duration::from_millis(1_500);
/// Messages in a round: short enough that some rounds are not interrupted.
const LINES: u32 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let catalogue = Catalogue::load(None)?;
    let bodies: [(&str, String); 5] = [
        ("odds, moneyline, american", lines(moneyline)),
        ("odds, spread, decimal", lines(spread)),
        ("odds, total, fractional, ms ts", lines(total)),
        ("event", lines(event)),
        ("odds, outright of 150", lines(outright)),
    ];
    for (name, body) in &bodies {
        read(name, body, &catalogue)?;
    }
    write(&bodies[0].1, &catalogue)
}

fn read(name: &str, body: &str, catalogue: &Catalogue) -> Result<(), Box<dyn Error>> {
    measure(name, || {
        for (_, line) in split_lines(body.as_bytes()) {
            black_box(parse_line(black_box(line), catalogue, None)?);
        }
        Ok(body.len())
    })
}

fn write(body: &str, catalogue: &Catalogue) -> Result<(), Box<dyn Error>> {
    let read: Result<Vec<_>, _> =
        split_lines(body.as_bytes()).map(|(_, line)| parse_line(line, catalogue, None)).collect();
    let (read, mut out) = (read?, String::new());
    measure("write, moneyline", || {
        out.clear();
        for message in &read {
            write_line(black_box(message), catalogue, &mut out);
        }
        Ok(out.len())
    })
}

/// Prints the rate of the fastest round and of all rounds together. On a shared machine, the fastest is the capacity
/// of one core; the other is the share that was available.
fn measure(
    name: &str,
    mut round: impl FnMut() -> Result<usize, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (started, mut rounds, mut fastest, mut bytes) = (Instant::now(), 0, Duration::MAX, 0);
    while started.elapsed() < RUN_FOR {
        let round_started = Instant::now();
        bytes = u32::try_from(round()?)?;
        fastest = fastest.min(round_started.elapsed());
        rounds += LINES;
    }
    let mean = f64::from(rounds) / started.elapsed().as_secs_f64();
    let secs = fastest.as_secs_f64();
    let (rate, speed) = (f64::from(LINES) / secs, f64::from(bytes) / secs / 1e6);
    println!("{name:32} {rate:9.0} messages/s, {speed:4.0} MB/s (mean {mean:9.0})");
    Ok(())
}

fn lines(line: fn(u32) -> String) -> String {
    (0..LINES).map(|i| line(i) + "\n").collect()
}

fn moneyline(i: u32) -> String {
    let (up, down) = (100 + i % 300, 105 + i % 290);
    format!(
        r#"{{"type":"odds","ref":"b-{i}","bookmaker":"fanduel","market":"moneyline","format":"american","outcomes":[{{"name":"Tomas Veldt","price":{up}}},{{"name":"Oren Castellane","price":-{down}}}],"ts":"2026-11-14T23:38:00Z"}}"#
    )
}

fn spread(i: u32) -> String {
    let cents = 60 + i % 39;
    format!(
        r#"{{"type":"odds","ref":"2026_11_{i}","bookmaker":"pinnacle","market":"spread","format":"decimal","outcomes":[{{"name":"Harbour Gulls","price":1.{cents},"point":-3.5}},{{"name":"Mesa Lynx","price":2.{cents},"point":3.5}}],"ts":"2026-11-14T23:38:00Z"}}"#
    )
}

fn total(i: u32) -> String {
    let (profit, stake) = (1 + i % 40, 1 + i % 7);
    format!(
        r#"{{"type":"odds","ref":"{i}","bookmaker":"skybet","market":"total_points","format":"fractional","outcomes":[{{"name":"Over","price":"{profit}/{stake}","point":47.5}},{{"name":"Under","price":"10/11","point":47.5}}],"ts":"2026-11-14T23:38:00.125Z"}}"#
    )
}

fn event(i: u32) -> String {
    format!(
        r#"{{"type":"event","ref":"b-{i}","sport":"mma","competition":"Northern Cage {i}","commence_time":"2026-11-22T03:00:00Z","home":"Tomas Veldt","away":"Oren Castellane"}}"#
    )
}

fn outright(i: u32) -> String {
    let players: Vec<String> = (0..150)
        .map(|player| {
            format!(r#"{{"name":"Player Number {player}","price":{}}}"#, 150 + player * 25 + i % 9)
        })
        .collect();
    format!(
        r#"{{"type":"odds","ref":"g-{i}","bookmaker":"bet365","market":"outright","format":"american","outcomes":[{}]}}"#,
        players.join(",")
    )
}

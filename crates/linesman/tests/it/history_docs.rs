//! Runs every command of docs/history.md.
//!
//! Its programs, and commands that need `DuckDB`, run in `cargo xtask clients` (`e2e/archive/check.py`); requests that
//! need a finished day, in the tests of the API (`v1/export.rs`).

use std::fs;

use domain::Timestamp;
use tokio::process::Command;

use crate::harness::{DAY, Done, PROGRAM, TestProgram, bout, clear_of_the_turn_of, moneyline, now};

const PAGE: &str = include_str!("../../../../docs/history.md");
/// The beginnings of commands.
const TOOLS: [&str; 3] = ["linesman ", "curl ", "duckdb "];

/// The lines of the page that are commands: in shell blocks, or on their own.
fn commands() -> Vec<&'static str> {
    let lines = PAGE.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.filter(|line| TOOLS.iter().any(|tool| line.starts_with(tool))).collect()
}

#[tokio::test]
async fn every_command_of_the_history_page_does_what_the_page_says() {
    clear_of_the_turn_of(DAY).await;
    let program = TestProgram::new();
    let (token, key) = (program.feed("pinnacle").await, program.live_key().await);
    let service = program.start().await;
    let offers = [("Ann Lee", 135), ("Bea Kim", -155)];
    let lines = [bout("a", "Ann Lee", "Bea Kim"), moneyline("a", "fanduel", &offers)];
    service.push_all(&token, &lines).await;
    service.records("/v1/sports/mma/odds", &key, 1).await;
    // The example is about a day when nothing was published here.
    let day = |at: Timestamp| {
        at.to_string().split_once('T').map(|(day, _)| format!("{day}T00:00:00Z")).unwrap()
    };
    let (today, tomorrow) = (day(now()), day(now().plus(DAY)));
    let mut ran = Vec::new();
    for command in commands() {
        let here = command
            .replace("http://localhost:8080", &service.base)
            .replace("curl ", "curl -s --noproxy '*' ")
            .replace("2026-11-14T00:00:00Z", &today)
            .replace("2026-11-15T00:00:00Z", &tomorrow);
        let wanted = match command {
            "duckdb -init macros.sql" => continue,
            command if command.contains("/export/odds/") => continue,
            command => command,
        };
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &format!("linesman() {{ '{PROGRAM}' --data \"$DATA\" \"$@\"; }}; {here}")])
            .env("DATA", program.data())
            .env("LINESMAN_KEY", &key)
            .current_dir(program.path());
        let done = Done::of(shell).await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{here}: {}", done.stdout);
        let saved = |name: &str| fs::read_to_string(program.path().join(name)).unwrap();
        match wanted {
            "linesman history sql > macros.sql" => {
                assert!(saved("macros.sql").contains("MACRO odds_at(t)"));
            }
            command if command.starts_with("linesman export ") => {
                assert!(saved("odds.csv").contains("Ann Lee"), "{}", saved("odds.csv"));
            }
            command if command.starts_with("linesman keys create ") => {
                assert!(done.stdout.starts_with("sk_live_"), "{}", done.stdout);
            }
            command if command.ends_with("/v1/history") => {
                assert!(done.stdout.contains("\"publications\":"), "{}", done.stdout);
            }
            command => panic!("nobody knows what `{command}` is to do"),
        }
        ran.push(wanted);
    }
    assert_eq!(ran.len(), 4, "{ran:?}");
    service.stop().await;
}

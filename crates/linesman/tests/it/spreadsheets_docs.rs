//! Every command of docs/guides/spreadsheets.md prints or saves a table.

use tokio::process::Command;

use crate::harness::{Done, TestProgram};

const PAGE: &str = include_str!("../../../../docs/guides/spreadsheets.md");

fn commands() -> impl Iterator<Item = &'static str> {
    PAGE.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap())
}

#[tokio::test]
async fn every_command_of_the_spreadsheets_page_prints_a_table() {
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let key = service.first_key().expect("a sandbox key");
    let mut tables = 0;
    for command in commands() {
        let command = command.replace("http://localhost:8080", &service.base);
        // If `column` is not installed, the table is printed unformatted.
        let command = command.replace("| column -s, -t", "| { column -s, -t || cat; }");
        let command = command.replace("curl -s", "curl -s --noproxy '*'");
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]).env("LINESMAN_KEY", key).current_dir(program.path());
        let done = Done::of(shell).await;
        let saved = std::fs::read_to_string(program.path().join("best.csv")).unwrap_or_default();
        let table = if done.stdout.is_empty() { saved } else { done.stdout };
        let header = table.lines().next().unwrap_or_default();
        assert!(header.contains("bookmaker") && header.contains("price"), "{command}: {table}");
        assert!(table.lines().count() > 1, "{command}: {table}");
        tables += 1;
    }
    assert_eq!(tables, 2);
    service.stop().await;
}

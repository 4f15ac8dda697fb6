//! Every curl line of docs/sandbox.md gives the result that the page states.

use tokio::process::Command;

use crate::harness::{Done, TestProgram};

const PAGE: &str = include_str!("../../../../docs/sandbox.md");

/// The curl lines of the page's shell blocks, each with the status stated below it.
fn examples() -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let mut lines = PAGE.lines();
    let mut in_shell = false;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_shell = line == "```sh";
        }
        if in_shell && line.starts_with("curl") {
            let status = lines.next().and_then(|below| below.strip_prefix("# "));
            found.push((line, status.unwrap_or_else(|| panic!("no status below `{line}`"))));
        }
    }
    found
}

#[tokio::test]
async fn every_curl_line_of_the_sandbox_page_answers_as_it_says() {
    let examples = examples();
    assert!(examples.len() >= 15, "the page is read wrongly: {examples:?}");
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let key = service.first_key().expect("a sandbox key");
    for (line, status) in examples {
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &format!("{line} -s -o /dev/null -w '%{{http_code}}' --noproxy '*'")])
            .env("BASE", &service.base)
            .env("KEY", key)
            .current_dir(program.path());
        let done = Done::of(shell).await;
        assert_eq!(done.stdout, status, "{line} {}", done.stderr);
    }
    service.stop().await;
}

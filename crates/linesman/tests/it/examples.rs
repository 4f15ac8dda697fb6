//! Every request of `/docs` returns data on the sandbox: each is taken from the page as a reader sees it, and run.
//! The programs next to the requests need our clients, and run with them (`cargo xtask sdk --test`).

use tokio::process::Command;

use crate::harness::{Done, Service, TestProgram, UNLIMITED};

const PUSH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/push_feed.py");
/// Makes curl print the status after the body. A pushed event may be rejected for its time, in an answer with status
/// 200.
const STATUS: &str = "\n%{http_code}";

/// A page's text.
async fn page(service: &Service, path: &str) -> String {
    let answer = service.client.get(service.url(path)).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200, "{path}");
    answer.text().await.unwrap()
}

/// The content of each `<code>` after an opening tag.
fn codes(page: &str, opening: &str) -> Vec<String> {
    let parts = page.split(opening).skip(1);
    parts
        .map(|part| {
            let code = part.split_once("<code>").unwrap().1.split_once("</code>").unwrap().0;
            let code = code.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            code.replace("&amp;", "&")
        })
        .collect()
}

fn pane(language: &str) -> String {
    format!("<div class=\"pane\" data-language=\"{language}\">")
}

async fn run(program: &str, arguments: &[&str], [key, token]: [&str; 2]) -> Done {
    let mut command = Command::new(program);
    command.args(arguments).env("LINESMAN_KEY", key).env("FEED_TOKEN", token);
    command.env("POLL_SECONDS", "0.1").env("no_proxy", "*").env("NO_PROXY", "*");
    Done::of(command).await
}

#[tokio::test]
async fn every_request_of_the_docs_returns_data_on_the_sandbox() {
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let printed =
        program.ok(&[&["keys", "create", "--kind", "sandbox"], &UNLIMITED[..]].concat()).await;
    let key = printed.split_whitespace().find(|word| word.starts_with("sk_test_")).unwrap();
    let token = program.feed("docs").await;
    let front = page(&service, "/docs").await;
    let paths = front.split("href=\"/docs/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let mut requests = 0;
    for path in paths {
        let page = page(&service, &format!("/docs/{path}")).await;
        for curl in codes(&page, &pane("curl")) {
            let asked = format!("{} -s -w '{STATUS}'", curl.split(" <<'END'").next().unwrap());
            let (_, body) = curl.split_once(" <<'END'").unwrap_or(("", ""));
            let asked = if body.is_empty() { asked } else { format!("{asked} <<'END'{body}") };
            let done = run("bash", &["-c", &asked], [key, &token]).await;
            let (body, status) = done.stdout.rsplit_once('\n').unwrap();
            assert_eq!(status, "200", "/docs/{path}: {curl}\n{}", done.stdout);
            let body = body.rsplit("\r\n\r\n").next().unwrap();
            assert!(body.len() > 20, "/docs/{path}: {curl} returns {body}");
            requests += 1;
        }
    }
    assert!(requests > 20, "only {requests} examples were found");
    service.stop().await;
}

#[tokio::test]
async fn the_programs_of_the_guides_run() {
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let key = service.first_key().expect("a sandbox key");
    let token = program.feed("guide").await;
    for (path, expected) in [
        ("/docs/polling", &[" known", " records"][..]),
        ("/docs/streaming", &[" known"]),
        ("/docs/history", &[" records"]),
    ] {
        let page = page(&service, path).await;
        let plain = codes(&page, "<div class=\"code\">");
        let own = plain.iter().filter(|code| code.starts_with("import json, os, "));
        let own: Vec<_> = own.filter(|code| !code.contains("print(answer.status")).collect();
        assert_eq!(own.len(), expected.len(), "{path}");
        for (program, expected) in own.into_iter().zip(expected) {
            let done = run("python3", &["-c", program], [key, &token]).await;
            assert!(done.stdout.contains(expected), "{path}: {}{}", done.stdout, done.stderr);
        }
    }
    let shown = page(&service, "/docs/push-python").await;
    let file = std::fs::read_to_string(PUSH).unwrap();
    let own = codes(&shown, "<div class=\"code\">");
    let file = file.trim_end().replace("http://localhost:8080", &service.base);
    assert!(own.contains(&file), "the guide shows another program than examples/push_feed.py");
    service.stop().await;
}

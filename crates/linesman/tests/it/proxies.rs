//! One process behind the proxies of `docs/guides/proxy.md`: the page's own configurations, in the real servers of
//! Debian's packages `nginx-light` and `caddy`.

use std::fs;
use std::process::Stdio;

use reqwest::{Client, Url};
use test_servers::free_port;
use tokio::process::{Child, Command};

use crate::harness::{Service, TestProgram, wait_for};

const GUIDE: &str = include_str!("../../../../docs/guides/proxy.md");

/// The guide's block in this language.
fn block(language: &str) -> &'static str {
    let (_, rest) = GUIDE.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("\n```").unwrap().0
}

/// A service with the settings of the guide, for a proxy at this address.
async fn service(program: TestProgram, public_url: &str) -> (TestProgram, Service) {
    let settings = block("toml").replace("https://odds.example.com", public_url);
    program.write("linesman.toml", &settings);
    let program = program.set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    (program, service)
}

fn start(program: &str, arguments: &[&str], folder: &std::path::Path) -> Child {
    Command::new(program)
        .args(arguments)
        .env("HOME", folder)
        .env("XDG_DATA_HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{program} (apt-get install nginx-light caddy): {error}"))
}

/// Typical requests of people and programs work through the proxy.
async fn everything_works(base: &str, program: &TestProgram, service: &Service) {
    // The certificate is the proxy's own; the connection does not leave this machine.
    let client = Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
    let url = |path: &str| Url::parse(&format!("{base}{path}")).unwrap();
    wait_for("the proxy", async || client.get(url("/healthz")).send().await.ok()).await;
    let key = service.first_key().unwrap();
    let odds = client.get(url("/v1/sports/mma/odds?limit=1")).header("X-API-Key", key);
    assert_eq!(odds.send().await.unwrap().status().as_u16(), 200);
    let token = program.feed("proxied").await;
    let push = client.post(url("/ingest/v1/messages")).bearer_auth(&token).body("{}");
    assert_eq!(push.send().await.unwrap().status().as_u16(), 200);

    let docs = client.get(url("/docs/start")).send().await.unwrap().text().await.unwrap();
    assert!(docs.contains(&format!("{base}/v1/status")), "the examples have another address");

    let page = client.get(url("/signin")).send().await.unwrap();
    let cookie = page.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-linesman_session="), "{cookie}");
    let text = page.text().await.unwrap();
    let (_, rest) = text.split_once("name=\"form_token\" value=\"").unwrap();
    let form = client
        .post(url("/signin"))
        .header("cookie", cookie.split(';').next().unwrap())
        .header("origin", base)
        .body(format!("form_token={}&email=a%40b.c&password=x", rest.split('"').next().unwrap()));
    let answer = form.send().await.unwrap().text().await.unwrap();
    assert!(
        answer.contains("Sign in") && !answer.contains("origin"),
        "the form is refused: {answer}"
    );

    let mut board = client.get(url("/board/mma/stream")).send().await.unwrap();
    assert_eq!(board.headers()["content-type"], "text/event-stream");
    let first = tokio::time::timeout(crate::harness::TIMEOUT, board.chunk()).await;
    assert!(first.expect("a board that is not held back").unwrap().is_some());
}

#[tokio::test]
async fn the_guides_caddyfile_works() {
    let port = free_port().unwrap();
    let base = format!("https://localhost:{port}");
    let (program, service) = service(TestProgram::new(), &base).await;
    let site = block("caddy")
        .replace("odds.example.com {", &format!("{base} {{\n    tls internal"))
        .replace("127.0.0.1:8080", service.address());
    let options = "{\n    admin off\n    auto_https disable_redirects\n    skip_install_trust\n}\n";
    let file = program.write("Caddyfile", &format!("{options}{site}\n"));
    let arguments = ["run", "--adapter", "caddyfile", "--config", file.to_str().unwrap()];
    let mut caddy = start("caddy", &arguments, program.path());
    everything_works(&base, &program, &service).await;
    caddy.kill().await.unwrap();
    service.stop().await;
}

#[tokio::test]
async fn the_guides_nginx_configuration_works() {
    let port = free_port().unwrap();
    let base = format!("https://localhost:{port}");
    let (program, service) = service(TestProgram::new(), &base).await;
    let folder = program.path().display().to_string();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    program.write("fullchain.pem", &made.cert.pem());
    program.write("privkey.pem", &made.signing_key.serialize_pem());
    let site = block("nginx")
        .replace("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl"))
        .replace("/etc/letsencrypt/live/odds.example.com", &folder)
        .replace("odds.example.com", "localhost")
        .replace("127.0.0.1:8080", service.address());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .collect();
    let file = program.write(
        "nginx.conf",
        &format!(
            "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
             events {{}}\nhttp {{\naccess_log off;\n{temporary}{site}\n}}\n"
        ),
    );
    let mut nginx = start("/usr/sbin/nginx", &["-c", file.to_str().unwrap()], program.path());
    everything_works(&base, &program, &service).await;
    nginx.kill().await.unwrap();
    service.stop().await;
    fs::remove_file(file).unwrap();
}

//! The operator's commands on keys, feeds and maintenance, with a server on the folder and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{
    Answer, DAY, Service, TestProgram, UNLIMITED, assert_no_secret, bout, clear_of_the_turn_of,
    client, moneyline, ndjson, wait_for,
};

const ODDS: &str = "/v1/sports/mma/odds";

fn is_key(text: &str, prefix: &str) -> bool {
    let body = text.strip_prefix(prefix).unwrap_or_default();
    body.len() == 32 && body.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn keys_live_and_end_from_the_command_line() {
    let program = TestProgram::new();
    program.init().await;
    // All commands without a server, and again with one.
    let mut service = None;
    for _ in 0..2 {
        for (kind, prefix) in [("sandbox", "sk_test_"), ("production", "sk_live_")] {
            let key = program.ok(&["keys", "create", "--kind", kind]).await;
            assert!(is_key(&key, prefix), "stdout is the key alone: {key}");
            expect_status(service.as_ref(), &key, 200).await;
            assert_eq!(program.ok(&["keys", "revoke", &key]).await, "");
            expect_status(service.as_ref(), &key, 401).await;
        }
        let record = program.ok(&["keys", "create", "--kind", "production", "--json"]).await;
        let record = parsed(&record);
        let (id, key) = (record["id"].as_str().unwrap(), record["key"].as_str().unwrap());
        assert!(id.starts_with("key_") && is_key(key, "sk_live_"), "{record}");
        expect_status(service.as_ref(), key, 200).await;
        assert_eq!(program.ok(&["keys", "revoke", id]).await, "");
        expect_status(service.as_ref(), key, 401).await;
        // Revoking it twice changes nothing.
        assert_eq!(program.ok(&["keys", "revoke", id]).await, "");
        if service.is_none() {
            service = Some(program.start().await);
        }
    }
    assert_no_secret(&program.logs());
}

async fn expect_status(service: Option<&Service>, key: &str, status: u16) {
    if let Some(service) = service {
        assert_eq!(service.get("/v1/status", key).await.status, status);
    }
}

#[tokio::test]
async fn a_keys_record_says_what_it_was_made_with() {
    let program = TestProgram::new();
    program.init().await;
    let mut create = vec!["keys", "create", "--kind", "production", "--name", "Acme Ltd", "--json"];
    create.extend(["--groups", "golf,combat", "--permissions", "none", "--burst-per-minute", "5"]);
    create.extend(["--requests-per-day", "100", "--requests-per-month", "2000"]);
    create.extend(["--streams", "9"]);
    let mut made = parsed(&program.ok(&create).await);
    let key = made.as_object_mut().unwrap().remove("key").unwrap();
    let key = key.as_str().unwrap();
    assert_eq!(made["name"], "Acme Ltd");
    assert_eq!(made["kind"], "production");
    assert_eq!(made["groups"], json!(["combat", "golf"]));
    assert_eq!(made["permissions"], json!([]));
    let limits = ["burst_per_minute", "requests_per_day", "requests_per_month", "streams"];
    assert_eq!(limits.map(|limit| made[limit].as_u64().unwrap()), [5, 100, 2000, 9]);
    assert_eq!((&made["revoked_at"], &made["rotated_from"]), (&Value::Null, &Value::Null));

    let listed = program.ok(&["keys", "list", "--json"]).await;
    assert_eq!(parsed(&listed), json!([made]), "the list has the record, without the key");
    assert_no_secret(&listed);
    let table = program.ok(&["keys", "list"]).await;
    assert!(table.contains(made["id"].as_str().unwrap()) && table.contains("Acme Ltd"), "{table}");
    assert_no_secret(&table);

    // And the service applies it.
    let service = program.start().await;
    let refused = service.get(ODDS, key).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));
    for _ in 0..4 {
        assert_eq!(service.get("/v1/status", key).await.status, 200);
    }
    let refused = service.get("/v1/status", key).await;
    // A minute may have ended in between, which resets the burst.
    if refused.status != 200 {
        assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"));
    }
}

#[tokio::test]
async fn defaults_of_a_key_are_the_interfaces() {
    let program = TestProgram::new();
    program.init().await;
    let made = parsed(&program.ok(&["keys", "create", "--kind", "sandbox", "--json"]).await);
    assert_eq!(made["burst_per_minute"], 60);
    assert_eq!(made["requests_per_day"], 10_000);
    assert_eq!((&made["requests_per_month"], &made["streams"]), (&Value::Null, &Value::Null));
    assert_eq!(made["permissions"], json!(["odds:read"]));
    assert_eq!(made["groups"], Value::Null);
}

#[tokio::test]
async fn rotation_prints_the_new_key_and_ends_the_old_one_at_once_or_after_the_overlap() {
    clear_of_the_turn_of(DAY).await;
    let program = TestProgram::new();
    let old = program.live_key().await;
    let service = program.start().await;
    assert_eq!(service.get("/v1/books", &old).await.status, 200);
    let new = program.ok(&["keys", "rotate", &old]).await;
    assert!(is_key(&new, "sk_live_"), "{new}");
    assert_eq!(service.get("/v1/books", &old).await.status, 401);
    let answer = service.get("/v1/books", &new).await;
    assert_eq!((answer.status, answer.requests_used()), (200, 2), "what was used goes with it");

    // By id, with an overlap in which both work.
    let listed = parsed(&program.ok(&["keys", "list", "--json"]).await);
    let id = listed.as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    let newest = program.ok(&["keys", "rotate", id, "--overlap", "3s"]).await;
    let mut used = 2;
    for key in [&new, &newest] {
        let answer = service.get("/v1/books", key).await;
        // The overlap may have ended if the machine is busy enough.
        if key == &new && answer.status == 401 {
            continue;
        }
        used += 1;
        assert_eq!((answer.status, answer.requests_used()), (200, used), "{}", answer.text());
    }
    let ended = async || (service.get("/v1/books", &new).await.status == 401).then_some(());
    wait_for("the overlap to end", ended).await;
    assert_eq!(service.get("/v1/books", &newest).await.status, 200);
    let refused = program.run(&["keys", "rotate", &old]).await;
    assert!(refused.sentence(1).contains("create a new key"), "{}", refused.stderr);
    assert_no_secret(&refused.stderr);

    // The same without a server.
    service.stop().await;
    let last = program.ok(&["keys", "rotate", &newest, "--overlap", "7d"]).await;
    let service = program.start().await;
    for key in [&newest, &last] {
        assert_eq!(service.get("/v1/status", key).await.status, 200);
    }
    assert_no_secret(&program.logs());
}

#[tokio::test]
async fn once_a_revocation_has_returned_no_request_succeeds() {
    let program = TestProgram::new();
    let service = program.start().await;
    for _ in 0..3 {
        let key = program.live_key().await;
        let returned = Arc::new(AtomicBool::new(false));
        let refused = Arc::new(AtomicU32::new(0));
        let served = Arc::new(AtomicU32::new(0));
        let mut hammers = JoinSet::new();
        for _ in 0..8 {
            let (url, key) = (service.url("/v1/books"), key.clone());
            let (returned, refused, served) =
                (Arc::clone(&returned), Arc::clone(&refused), Arc::clone(&served));
            hammers.spawn(async move {
                let client = client();
                while refused.load(Ordering::SeqCst) < 50 {
                    let late = returned.load(Ordering::SeqCst);
                    let request = client.get(&url).header("X-API-Key", &key);
                    let answer = Answer::of(request).await.unwrap();
                    assert!(!late || answer.status == 401, "served after the revocation");
                    let counters = [&refused, &served];
                    counters[usize::from(answer.status == 200)].fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        wait_for("the load", async || (served.load(Ordering::SeqCst) > 50).then_some(())).await;
        program.ok(&["keys", "revoke", &key]).await;
        returned.store(true, Ordering::SeqCst);
        // Each task panics if the key was accepted too late.
        while let Some(done) = hammers.join_next().await {
            done.unwrap();
        }
    }
}

#[tokio::test]
async fn feeds_are_created_listed_and_revoked() {
    let program = TestProgram::new();
    let early = program.feed("early").await;
    let service = program.start().await;
    let bound = program.ok(&["feeds", "create", "pinnacle", "--bookmaker", "pinnacle"]).await;
    for token in [&early, &bound] {
        assert!(
            token.starts_with("fk_") && !token.contains(char::is_whitespace),
            "the token alone"
        );
    }
    service.push_all(&early, &[bout("a", "Home Side", "Away Side")]).await;
    let lines = [
        bout("a", "Home Side", "Away Side"),
        moneyline("a", "fanduel", &[("Home Side", 120), ("Away Side", -140)]),
        moneyline("a", "pinnacle", &[("Home Side", 125), ("Away Side", -140)]),
    ];
    let receipt = service.post(&bound, ndjson(&lines)).await.unwrap().json();
    assert_eq!((&receipt["accepted"], &receipt["rejected"][0]["line"]), (&json!(2), &json!(2)));
    assert_eq!(receipt["rejected"][0]["code"], "wrong_bookmaker");

    let table = program.ok(&["feeds", "list"]).await;
    assert!(table.contains("early") && table.contains("pinnacle"), "{table}");
    assert_no_secret(&table);
    let taken = program.run(&["feeds", "create", "pinnacle"]).await;
    assert!(taken.sentence(1).contains("already"), "{}", taken.stderr);
    let unknown = program.run(&["feeds", "create", "x", "--bookmaker", "pinacle"]).await;
    assert!(unknown.sentence(1).contains("did you mean `pinnacle`"), "{}", unknown.stderr);

    assert_eq!(program.ok(&["feeds", "revoke", "early"]).await, "");
    let refused = service.post(&early, ndjson(&lines[..1])).await.unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (401, "authentication_failed"));
    assert_eq!(service.post(&bound, ndjson(&lines[..1])).await.unwrap().status, 200);
    assert!(program.ok(&["feeds", "list"]).await.contains("revoked"));
    let unknown = program.run(&["feeds", "revoke", "nobody"]).await;
    assert!(unknown.sentence(1).contains("no feed"), "{}", unknown.stderr);

    // Without a server; the name is then free again.
    service.stop().await;
    program.ok(&["feeds", "revoke", "pinnacle"]).await;
    let again = program.feed("early").await;
    let service = program.start().await;
    assert_eq!(service.post(&bound, "\n".to_owned()).await.unwrap().status, 401);
    assert_eq!(service.post(&early, "\n".to_owned()).await.unwrap().status, 401);
    assert_eq!(service.post(&again, "\n".to_owned()).await.unwrap().status, 200);
    assert_no_secret(&program.logs());
}

#[tokio::test]
async fn maintenance_is_switched_at_once_and_outlives_restarts() {
    let program = TestProgram::new();
    program.init().await;
    assert_eq!(program.ok(&["maintenance", "on"]).await, "");
    let key = program.live_key().await;
    let service = program.start().await;
    let expect = async |service: &Service, retry_after: Option<&str>| {
        let (answer, status) =
            (service.get(ODDS, &key).await, service.get("/v1/status", &key).await);
        assert_eq!(status.status, 200);
        assert_eq!(answer.header("retry-after"), retry_after);
        if retry_after.is_some() {
            assert_eq!((answer.status, answer.code().as_str()), (503, "maintenance"));
            assert_eq!(status.json()["status"], "maintenance");
        } else {
            assert_eq!(answer.status, 200);
            assert_eq!(status.json()["status"], "ok");
        }
    };
    expect(&service, Some("600")).await;
    program.ok(&["maintenance", "on", "--retry-after", "2h"]).await;
    expect(&service, Some("7200")).await;
    program.ok(&["maintenance", "off"]).await;
    expect(&service, None).await;
    program.ok(&["maintenance", "on", "--retry-after", "30s"]).await;
    service.kill().await;
    let service = program.start().await;
    expect(&service, Some("30")).await;
    program.ok(&["maintenance", "off"]).await;
    expect(&service, None).await;
}

#[tokio::test]
async fn only_serve_and_init_create_a_data_folder() {
    let program = TestProgram::new();
    program.write("aliases.ndjson", "{\"linesman_aliases\":1}\n");
    for words in [
        &["keys", "list"][..],
        &["keys", "create", "--kind", "sandbox"],
        &["feeds", "create", "my-scraper"],
        &["feeds", "drop", "my-scraper"],
        &["operators", "link"],
        &["maintenance", "on"],
        &["events", "unsure"],
        &["events", "show", "evt_00000000001"],
        &["aliases", "export"],
        &["aliases", "import", "aliases.ndjson"],
        &["record", "--world", "live"],
        &["backup", "copy"],
    ] {
        let done = program.run(words).await;
        let expected =
            format!("there is no data folder at {}; --data names it", program.data().display());
        assert!(done.sentence(1).starts_with(&expected), "{words:?}: {}", done.stderr);
        assert!(!program.data().exists(), "{words:?} made a folder");
    }
    // A folder with other content is not a data folder, and stays unchanged.
    std::fs::create_dir(program.data()).unwrap();
    std::fs::write(program.data().join("notes.txt"), "mine").unwrap();
    assert!(program.run(&["keys", "list"]).await.sentence(1).contains("no data folder"));
    assert_eq!(std::fs::read_dir(program.data()).unwrap().count(), 1);
    std::fs::remove_dir_all(program.data()).unwrap();

    assert!(program.ok(&["init"]).await.starts_with("created the data folder"));
    let key = program.ok(&["keys", "create", "--kind", "production"]).await;
    assert!(program.ok(&["init"]).await.contains("nothing was changed"));
    let service = program.start().await;
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
}

#[tokio::test]
async fn completions_and_the_manual_page_are_printed_whatever_the_configuration() {
    let program = TestProgram::new();
    program.write("linesman.toml", "[markt]\n");
    for (words, expected) in [
        (&["completions", "bash"][..], "complete -F _linesman"),
        (&["completions", "zsh"], "#compdef linesman"),
        (&["completions", "fish"], "complete -c linesman"),
        (&["man"], ".SH \"LINESMAN KEYS CREATE\""),
    ] {
        let text = program.ok(words).await;
        assert!(text.contains(expected), "{words:?}: {text}");
    }
}

#[tokio::test]
async fn what_fails_is_told_in_a_sentence_without_a_secret() {
    let program = TestProgram::new();
    let key = program.live_key().await;
    let other = if key.ends_with('x') { 'y' } else { 'x' };
    let mistyped: String = key.chars().take(key.len() - 1).chain([other]).collect();
    for (arguments, expected) in [
        (vec!["keys", "revoke", "key_unknown"], "no such key"),
        (vec!["keys", "revoke", &mistyped], "neither a key nor"),
        (vec!["keys", "rotate", "nonsense"], "neither a key nor"),
        (
            vec!["keys", "create", "--kind", "sandbox", "--groups", "curling"],
            "the groups are combat",
        ),
        (vec!["match", "not-there.ndjson"], "not-there.ndjson"),
        (vec!["--config", "not-there.toml", "keys", "list"], "not-there.toml"),
    ] {
        let done = program.run(&arguments).await;
        assert!(done.sentence(1).contains(expected), "{arguments:?}: {}", done.stderr);
        assert_no_secret(&done.stderr);
    }
}

#[tokio::test]
async fn wrong_use_is_told_in_a_sentence_with_exit_2() {
    let program = TestProgram::new();
    let key = program.live_key().await;
    for (arguments, expected) in [
        (vec!["kees"], "kees"),
        (vec!["keys"], "subcommand"),
        (vec!["keys", "create"], "--kind"),
        (vec!["keys", "create", "--kind", "both"], "sandbox, production"),
        (vec!["keys", "create", "--kind", "sandbox", "--burst-per-minute", "0"], "from 1 to"),
        (
            vec!["keys", "create", "--kind", "sandbox", "--requests-per-day", "5000000000"],
            "from 1 to",
        ),
        (vec!["keys", "create"], "see `linesman keys create --help`"),
        (vec!["keys", "revoke"], "ID_OR_KEY"),
        (vec!["keys", "revoke", &key, &key], "unexpected"),
        (vec!["keys", "rotate", &key, "--overlap", "8d"], "7d"),
        (vec!["feeds", "create"], "NAME"),
        (vec!["maintenance"], "subcommand"),
        (vec!["maintenance", "on", "--retry-after", "soon"], "soon"),
        (vec!["match"], "FILE"),
        (vec!["replay", "x", "--to", "http://127.0.0.1:1", "--token", &key], "fk_"),
        (vec!["replay", "x", "--to", "nowhere", "--token", "fk_x"], "http://127.0.0.1:8080"),
        (vec!["config", "--chek"], "--check"),
        (vec!["--listen", "somewhere"], "127.0.0.1"),
    ] {
        let done = program.run(&arguments).await;
        assert!(done.sentence(2).contains(expected), "{arguments:?}: {}", done.stderr);
        assert_no_secret(&done.stderr);
    }
    let help = program.ok(&["keys", "create", "--help"]).await;
    assert!(help.contains("Example") && help.contains("--requests-per-month"));
    assert!(program.ok(&["--version"]).await.starts_with("linesman "));
}

#[tokio::test]
async fn the_openapi_document_is_printed_as_json() {
    let program = TestProgram::new();
    let printed = parsed(&program.ok(&["openapi"]).await);
    assert!(printed["openapi"].as_str().unwrap().starts_with("3.1"));
    let service = program.start().await;
    let served = Answer::of(service.client.get(service.url("/openapi.json"))).await.unwrap();
    assert_eq!(served.json(), printed);
}

#[tokio::test]
async fn command_lines_at_the_same_time_do_not_harm_each_other() {
    let program = TestProgram::new();
    let service = program.start().await;
    let mut creating = JoinSet::new();
    for number in 0..6 {
        let name = number.to_string();
        let mut command = program.command(
            &[&["keys", "create", "--kind", "production", "--name", &name], &UNLIMITED[..]]
                .concat(),
        );
        creating.spawn(async move { command.output().await.unwrap() });
    }
    for created in tokio::time::timeout(Duration::from_secs(60), creating.join_all()).await.unwrap()
    {
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let key = String::from_utf8(created.stdout).unwrap();
        assert_eq!(service.get("/v1/status", key.trim()).await.status, 200);
    }
}

//! Operators' actions on the command line that the console also offers: pausing feeds and regaining access; all are
//! audited.

use domain::World;
use serde_json::json;
use store::Store;

use crate::harness::{Service, TestProgram, bout, ndjson};

/// The audit log's lines about some actions, oldest first, each with its actor.
async fn written(program: &TestProgram, prefix: &str) -> Vec<(String, String, String)> {
    let store = Store::open(program.data().join("accounts.db")).await.unwrap();
    let mut rows = store.audit(None, None, 100).await.unwrap();
    store.close().await;
    rows.reverse();
    let told = rows.into_iter().map(|row| (row.entry.action, row.entry.who, row.entry.subject));
    told.filter(|(action, ..)| action.starts_with(prefix)).collect()
}

async fn push_status(service: &Service, token: &str) -> u16 {
    let line = bout("n-1", "Bobby Vance", "Tom Reed");
    service.post(token, ndjson(&[line])).await.unwrap().status
}

#[tokio::test]
async fn a_feed_is_paused_and_resumed_at_once_and_stays_so_through_a_kill() {
    let program = TestProgram::new();
    let token = program.feed("north").await;
    // Without a server, and with one.
    program.ok(&["feeds", "pause", "north"]).await;
    let service = program.start().await;
    assert_eq!(push_status(&service, &token).await, 409);
    program.ok(&["feeds", "resume", "north"]).await;
    assert_eq!(push_status(&service, &token).await, 200);
    program.ok(&["feeds", "pause", "north"]).await;
    let line = json!({ "type": "heartbeat", "bookmaker": "fanduel" });
    let refused = service.post(&token, ndjson(&[line])).await.unwrap();
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("feed_paused")));
    assert!(program.ok(&["feeds", "list"]).await.contains("paused 2"));
    service.kill().await;
    let service = program.start().await;
    assert_eq!(push_status(&service, &token).await, 409, "a pause outlives a kill");
    // A new token for the name is not paused.
    program.ok(&["feeds", "revoke", "north"]).await;
    let nobody = program.run(&["feeds", "pause", "north"]).await;
    assert_eq!(nobody.code, Some(1), "{}", nobody.stderr);
    let token = program.feed("north").await;
    assert_eq!(push_status(&service, &token).await, 200);
    let log: Vec<String> =
        written(&program, "feed.").await.into_iter().map(|(action, ..)| action).collect();
    let expected = ["created", "paused", "resumed", "paused", "revoked", "created"];
    assert_eq!(log, expected.map(|action| format!("feed.{action}")));
}

#[tokio::test]
async fn what_is_said_of_events_on_the_command_line_is_written_down_with_a_server_and_without() {
    let program = TestProgram::new();
    let (north, south) = (program.feed("north").await, program.feed("south").await);
    let service = program.start().await;
    let mut other = bout("s-1", "King Vance", "Tom Reed");
    let one = bout("n-1", "Bobby Vance", "Tom Reed");
    other["commence_time"] = one["commence_time"].clone();
    service.push_all(&north, &[one]).await;
    service.push_all(&south, &[other]).await;
    let key = program.live_key().await;
    let listed = service.records("/v1/sports/mma/events", &key, 2).await;
    let ids: Vec<&str> = listed.iter().map(|event| event["id"].as_str().unwrap()).collect();
    let unsure = program.ok(&["events", "unsure", "--json"]).await;
    assert!(unsure.contains("King Vance v Tom Reed, starts"), "{unsure}");
    program.ok(&["events", "apart", ids[0], ids[1]]).await;
    service.stop().await;
    // The log gives the same answer as the server did.
    assert_eq!(program.ok(&["events", "unsure"]).await, "no possible duplicates");
    program.ok(&["events", "merge", ids[0], ids[1]]).await;
    let shown = program.ok(&["events", "show", ids[1]]).await;
    let service = program.start().await;
    assert_eq!(
        program.ok(&["events", "show", ids[1]]).await,
        shown,
        "the server shows what the log does"
    );
    service.stop().await;
    let log = written(&program, "events.").await;
    let by = "command line".to_owned();
    assert_eq!(
        log,
        [
            ("events.parted".to_owned(), by.clone(), ids[0].to_owned()),
            ("events.merged".to_owned(), by, ids[0].to_owned()),
        ]
    );
    assert!(program.data().join(World::Live.key()).is_dir());
}

/// Opens a link as a browser would.
async fn opened(service: &Service, link: &str) -> (u16, String) {
    let token = link.rsplit('/').next().unwrap();
    let answer = service.client.get(service.url(&format!("/link/{token}"))).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn a_locked_out_operator_is_let_in_again_from_the_machine() {
    let program = TestProgram::new();
    let service = program.start().await;
    // No operator yet: the link creates the first one.
    let first = program.run(&["operators", "link"]).await;
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.contains("creates an operator"), "{}", first.stderr);
    let link = first.stdout.trim();
    assert!(link.starts_with(&service.url("/link/")) && link.lines().count() == 1, "{link}");
    let (status, page) = opened(&service, link).await;
    assert!(status == 200 && page.contains("Create the account"), "{page}");
    let newer = program.run(&["operators", "link", "--new"]).await.stdout;
    assert_ne!(opened(&service, link).await.0, 200, "only the newest works");
    assert_eq!(opened(&service, newer.trim()).await.0, 200);

    make_operator(&program).await;
    let listed = program.ok(&["operators", "list"]).await;
    assert!(listed.contains("olive@example.com") && listed.contains("active"), "{listed}");
    for email in [&["olive@example.com"][..], &["Olive@Example.com"], &[]] {
        let again = program.run(&[&["operators", "link"], email].concat()).await;
        let (status, page) = opened(&service, again.stdout.trim()).await;
        assert!(status == 200 && page.contains("Set the password"), "{page}");
    }
    let nobody = program.run(&["operators", "link", "oliver@example.com"]).await;
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("did you mean `olive@example.com`?"), "{}", nobody.stderr);
    let both = program.run(&["operators", "link", "olive@example.com", "--new"]).await;
    assert_eq!(both.code, Some(2), "{}", both.stderr);
    program.run(&["operators", "link", "--without-second-factor"]).await;
    service.stop().await;
    // Without a server the address comes from the configuration.
    let offline = program.run(&["operators", "link"]).await.stdout;
    assert!(offline.starts_with("http://127.0.0.1:"), "{offline}");
    // The first link is that of the first start.
    assert_eq!(written(&program, "link.issued").await.len(), 8);
    assert_eq!(written(&program, "second_factor.off").await.len(), 1);
    assert!(!program.logs().contains("/link/"), "a link is for whoever asked, not for the log");
}

/// An operator with an unknown password.
async fn make_operator(program: &TestProgram) {
    let store = Store::open(program.data().join("accounts.db")).await.unwrap();
    let account = store::AccountRow {
        id: "acc_olive".to_owned(),
        email: "olive@example.com".to_owned(),
        name: "Olive".to_owned(),
        role: store::Role::Operator,
        password: None,
        created_ms: 1,
        suspended_ms: None,
        confirmed_ms: None,
        production_ms: None,
        totp: None,
        allowance: store::Allowance::default(),
    };
    let audit = store::AuditEntry {
        at_ms: 1,
        account_id: None,
        who: "test".to_owned(),
        action: "test".to_owned(),
        subject: String::new(),
        detail: String::new(),
        address: String::new(),
    };
    assert!(store.insert_account(&account, &audit).await.unwrap());
    store.close().await;
}

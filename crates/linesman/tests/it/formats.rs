//! Data folders of earlier programs can be opened, with all their data. `tests/fixtures/README.md` describes how they
//! were made.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::TestProgram;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap().map(|item| item.unwrap()) {
        if item.path().is_dir() {
            copy(&item.path(), &to.join(item.file_name()));
        } else {
            fs::copy(item.path(), to.join(item.file_name())).unwrap();
        }
    }
}

/// The parts of records that do not depend on the time of the request.
fn lasting(records: &[Value]) -> Vec<Value> {
    let mut records = records.to_vec();
    for record in &mut records {
        let record = record.as_object_mut().unwrap();
        record.retain(|name, _| !["last_update", "updated_at"].contains(&&**name));
    }
    records.sort_by_key(|record| record["id"].as_str().map(str::to_owned));
    records
}

#[tokio::test]
async fn a_folder_of_version_0_1_0_opens_with_its_checkpoint_log_and_accounts() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1.0");
    let expected: Value =
        serde_json::from_str(&fs::read_to_string(fixture.join("expected.json")).unwrap()).unwrap();
    let text = |name: &str| expected[name].as_str().unwrap();
    for without_checkpoint in [false, true] {
        let program = TestProgram::new()
            .set("LINESMAN_MARKET__FINAL_RETENTION", "30d")
            .set("LINESMAN_MARKET__FORGET_AFTER", "30d");
        copy(&fixture, &program.data());
        fs::remove_file(program.data().join("expected.json")).unwrap();
        if without_checkpoint {
            for item in fs::read_dir(program.data().join("live")).unwrap() {
                let path = item.unwrap().path();
                if path.extension().is_some_and(|kind| kind == "ckp") {
                    fs::remove_file(path).unwrap();
                }
            }
        }
        let service = program.start().await;
        assert_eq!(service.ready().await.text(), "ready\n");
        for what in ["events", "odds", "scores"] {
            let held = expected[what].as_array().unwrap();
            let path = format!("/v1/sports/mma/{what}");
            let shown = service.records(&path, text("key"), held.len()).await;
            assert_eq!(lasting(&shown), lasting(held), "{what}");
        }
        service.push_all(text("token"), &[crate::harness::bout("new", "Someone", "Else")]).await;
        service.stop().await;
    }
}

/// H4, H25: an upgrade changes neither past answers nor their tags.
#[tokio::test]
async fn publications_in_an_archive_of_an_earlier_program_have_the_bytes_and_tags_of_then() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/archive-2026-11-17");
    let expected = fs::read_to_string(fixture.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let seen = expected["seen"].as_array().unwrap();
    assert!(!seen.is_empty());
    for without_log in [false, true] {
        let program = TestProgram::new().set("LINESMAN_HISTORY__RETENTION", "3650d");
        let key = program.live_key().await;
        copy(&fixture, &program.data());
        fs::remove_file(program.data().join("expected.json")).unwrap();
        if without_log {
            fs::remove_dir_all(program.data().join("live")).unwrap();
        }
        let service = program.start().await;
        for one in seen {
            let text = |name: &str| one[name].as_str().unwrap();
            // The last publications were not archived yet.
            if without_log && text("published_at") > expected["archived_to"].as_str().unwrap() {
                continue;
            }
            let mark = if text("path").contains('?') { '&' } else { '?' };
            let target = format!("{}{mark}as_of={}", text("path"), text("published_at"));
            let answer = service.answered(&target, &key).await;
            assert_eq!(answer.text(), text("body"), "{target}");
            assert_eq!(answer.header("etag"), Some(text("etag")), "{target}");
            assert_eq!(answer.header("x-published-at"), Some(text("published_at")), "{target}");
        }
        let verified = program.ok(&["history", "verify", "--sample", "5"]).await;
        assert!(!verified.is_empty());
        service.stop().await;
    }
}

//! A service is killed at every request that writes its archive to a bucket, before the request is executed or before
//! its answer, and at every file that it creates in a folder.
//!
//! No row is lost or duplicated (H17, H18), and the past is answered as before (H25).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use test_servers::{S3, WriteFault};

use super::in_bucket;
use crate::harness::{Answer, Service, TestProgram, bout, moneyline, ndjson, wait_for};

/// Requests that every order needs: files of several tables, the commit and the list of files. An order may have none
/// earlier if the service has just written its archive by itself.
const REQUESTS_MIN: u32 = 6;
/// More requests than an order needs.
const REQUESTS_MAX: u32 = 60;
/// About as many files as an order creates in a folder, temporary ones included.
const FILES_MAX: usize = 16;
const ODDS: &str = "/v1/sports/mma/odds";

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_before_any_request_of_a_commit_goes_on_with_every_entry_once() {
    killed_at_every_request("flush", WriteFault::NotExecuted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_after_any_request_of_a_commit_goes_on_with_every_entry_once() {
    killed_at_every_request("flush", WriteFault::Unanswered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_before_any_request_of_a_compaction_goes_on_with_every_entry_once()
{
    killed_at_every_request("compact", WriteFault::NotExecuted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_after_any_request_of_a_compaction_goes_on_with_every_entry_once()
{
    killed_at_every_request("compact", WriteFault::Unanswered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_at_any_file_of_a_commit_goes_on_with_every_entry_once() {
    killed_at_every_file("flush").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_at_any_file_of_a_compaction_goes_on_with_every_entry_once() {
    killed_at_every_file("compact").await;
}

/// Repeats an order, each time killing the service after a later file that it creates in its folder.
async fn killed_at_every_file(order: &str) {
    // Only ordered parts are written.
    let program = TestProgram::new().set("LINESMAN_HISTORY__PART_INTERVAL", "24h");
    let (token, key) = (program.feed("pinnacle").await, program.live_key().await);
    let mut past = Past { key, seen: Vec::new() };
    let service = program.start().await;
    past.push(&service, &token).await;
    program.ok(&["history", "flush"]).await;
    service.kill().await;
    let folder = program.data().join("archive/live");
    let mut killed = 0;
    for file in 1..=FILES_MAX {
        let service = program.start().await;
        past.compare(&service, 3).await;
        past.push(&service, &token).await;
        if order == "compact" {
            // Ensures that there are files to merge.
            program.ok(&["history", "flush"]).await;
            past.push(&service, &token).await;
        }
        let words = ["history", order];
        killed += tokio::select! {
            biased;
            () = created(&folder, file) => 1,
            _ = program.ok(&words) => 0,
        };
        service.kill().await;
        let checked = program.ok(&["history", "verify", "--sample", "3"]).await;
        assert!(checked.contains("is present once"), "{file}: {checked}");
    }
    assert!(killed > 0, "`{order}` creates no files");
    let service = program.start().await;
    past.compare(&service, usize::MAX).await;
    program.ok(&["history", "compact"]).await;
    past.compare(&service, usize::MAX).await;
}

/// Waits until a number of files were created in a folder, also such as are gone by now.
async fn created(folder: &Path, number: usize) {
    let mut seen = HashSet::new();
    files_in(folder, &mut seen);
    let before = seen.len();
    while seen.len() < before + number {
        tokio::time::sleep(Duration::from_millis(1)).await;
        files_in(folder, &mut seen);
    }
}

/// Adds the files of a folder. What is deleted meanwhile is not among them.
fn files_in(folder: &Path, files: &mut HashSet<PathBuf>) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        match item.file_type() {
            Ok(kind) if kind.is_dir() => files_in(&item.path(), files),
            Ok(_) => drop(files.insert(item.path())),
            Err(_) => {}
        }
    }
}

/// Repeats an order, each time killing the service at a later request, until the order needs no further one.
async fn killed_at_every_request(order: &str, fault: WriteFault) {
    let server = S3::start().await.unwrap();
    // Only ordered parts are written.
    let program = in_bucket(&server).set("LINESMAN_HISTORY__PART_INTERVAL", "24h");
    let (token, key) = (program.feed("pinnacle").await, program.live_key().await);
    let mut past = Past { key, seen: Vec::new() };
    let service = program.start().await;
    past.push(&service, &token).await;
    program.ok(&["history", "flush"]).await;
    service.kill().await;
    let (mut request, mut last_met) = (0, 0);
    loop {
        request += 1;
        assert!(request < REQUESTS_MAX, "`{order}` does not end");
        let service = program.start().await;
        past.compare(&service, 3).await;
        past.push(&service, &token).await;
        if order == "compact" {
            // Ensures that there are files to merge.
            program.ok(&["history", "flush"]).await;
            past.push(&service, &token).await;
        }
        server.choose_write(request, fault);
        let words = ["history", order];
        let met = tokio::select! {
            done = program.ok(&words) => done.is_empty(),
            () = server.chosen_write_arrived() => true,
        };
        server.choose_write(0, fault);
        service.kill().await;
        let checked = program.ok(&["history", "verify", "--sample", "3"]).await;
        assert!(checked.contains("is present once"), "{request} {fault:?}: {checked}");
        if met {
            last_met = request;
        } else if request > REQUESTS_MIN {
            break;
        }
    }
    assert!(last_met >= REQUESTS_MIN, "{last_met}");
    let service = program.start().await;
    past.compare(&service, usize::MAX).await;
    program.ok(&["history", "compact"]).await;
    past.compare(&service, usize::MAX).await;
}

/// Answers that readers received.
struct Past {
    key: String,
    seen: Vec<Answer>,
}

impl Past {
    /// Pushes new prices, and notes the answer that shows them.
    async fn push(&mut self, service: &Service, token: &str) {
        let price = i64::try_from(self.seen.len()).unwrap() + 101;
        let (home, away) = ("Ann Lee", "Bea Kim");
        let offers = [(home, price), (away, -price)];
        let lines = [bout("a", home, away), moneyline("a", "fanduel", &offers)];
        let answer = service.post(token, ndjson(&lines)).await.unwrap();
        assert_eq!(answer.json()["rejected_total"], 0, "{}", answer.text());
        let shown = wait_for("the prices", async || {
            let answer = service.get(ODDS, &self.key).await;
            answer.text().contains(&format!("\"price\":{price}")).then_some(answer)
        });
        self.seen.push(shown.await);
    }

    /// Requests the last answers again and compares them.
    async fn compare(&self, service: &Service, last: usize) {
        for seen in self.seen.iter().rev().take(last) {
            let at = seen.header("x-published-at").unwrap();
            let path = format!("{ODDS}?as_of={at}");
            let again = wait_for(&path, async || {
                let answer = service.get(&path, &self.key).await;
                (answer.status != 503).then_some(answer)
            });
            let again = again.await;
            assert_eq!((again.status, again.text()), (200, seen.text()), "{path}");
            assert_eq!(again.header("etag"), seen.header("etag"), "{path}");
        }
    }
}

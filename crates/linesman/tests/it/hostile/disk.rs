//! A really full disk: a small file system in memory, filled to its last byte.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::harness::{PROGRAM, TestProgram, bout, ndjson, wait_for};

const EVENTS: &str = "/v1/sports/mma/events";

/// A file system of a few megabytes, in its own mount namespace, which disappears with the process that holds it.
struct SmallDisk {
    holder: Child,
    namespaces: &'static [&'static str],
    dir: TempDir,
}

impl SmallDisk {
    fn new(megabytes: u32) -> Self {
        let dir = TempDir::new().unwrap();
        let mount = "mount -t tmpfs -o size=$0m,mode=0700 tmpfs \"$1\" && echo mounted && exec cat";
        // A user namespace if this is not run as root.
        let mut refused = String::new();
        for (namespaces, enter) in
            [(&["-m"][..], &["-m"][..]), (&["-r", "-m"], &["-U", "--preserve-credentials", "-m"])]
        {
            let mut holder = Command::new("unshare")
                .args(namespaces)
                .args(["sh", "-c", mount, &megabytes.to_string()])
                .arg(dir.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("`unshare` of util-linux is there");
            let mut said = [0; 8];
            if holder.stdout.as_mut().unwrap().read_exact(&mut said).is_ok() {
                return Self { holder, namespaces: enter, dir };
            }
            let said = holder.wait_with_output().unwrap();
            refused.push_str(&String::from_utf8_lossy(&said.stderr));
        }
        panic!(
            "this machine lets nobody mount a tmpfs, so a full disk cannot be tested: {refused}"
        );
    }

    /// A program whose data is on this disk. Its programs run in the namespace: SQLite resolves links by name, which
    /// would lead to another folder outside.
    fn program(&self) -> TestProgram {
        let program = TestProgram::new().launched_by(&self.enter());
        symlink(self.dir.path(), program.data()).unwrap();
        program
    }

    /// The command that runs a program in the namespace of the disk.
    fn enter(&self) -> Vec<String> {
        let holder = self.holder.id().to_string();
        let words = [&["nsenter", "-t", &holder], self.namespaces, &["--"]].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// A file on the disk, as seen from outside.
    fn path(&self, name: &str) -> PathBuf {
        let root = PathBuf::from("/proc").join(self.holder.id().to_string()).join("root");
        root.join(self.dir.path().strip_prefix("/").unwrap()).join(name)
    }

    /// Uses up all free space.
    fn fill(&self) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("accounts.db.fill"))
            .unwrap();
        for block in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![1; block]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.path("accounts.db.fill")).unwrap();
    }

    fn has_reserve(&self) -> bool {
        self.path("reserve").exists()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It ends with its input, and the mount with it.
        drop(self.holder.stdin.take());
        self.holder.wait().unwrap();
    }
}

#[tokio::test]
async fn a_full_disk_stops_pushes_alone_and_everything_comes_back_without_a_restart() {
    let disk = SmallDisk::new(32);
    let program = disk.program();
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    service.push_all(&token, &[bout("before", "Anderson", "Opponent")]).await;
    service.records(EVENTS, &key, 1).await;
    assert!(disk.has_reserve());

    disk.fill();
    wait_for("the reserve to be given up", async || (!disk.has_reserve()).then_some(())).await;
    let push = |name: &str| ndjson(&[bout(name, name, "Opponent")]);
    wait_for("a push to be refused", async || {
        let answer = service.post(&token, push("during")).await.unwrap();
        (answer.status == 503).then_some(())
    })
    .await;
    // A key that has spent nothing yet needs a lease, which is written to the disk.
    let fresh = program.live_key().await;
    for key in [&key, &fresh] {
        let answer = service.get(EVENTS, key).await;
        assert_eq!((answer.status, answer.json().as_array().unwrap().len()), (200, 1));
    }
    let ready = service.ready().await;
    assert!(ready.text().contains("the disk is full"), "{}", ready.text());
    let metrics = reqwest::get(service.metrics()).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("linesman_disk_full{world=\"live\"} 1"));

    // The freed reserve is used up, too. The rest depends on the free space within SQLite's files.
    for _ in 0..5 {
        disk.fill();
        let made = program.run(&["keys", "create", "--kind", "production"]).await;
        let key = if made.code == Some(0) { made.stdout.trim() } else { &fresh };
        let answer = service.get_once(EVENTS, key).await;
        assert!([200, 503].contains(&answer.status), "{}", answer.text());
        assert_eq!(service.post(&token, push("during")).await.unwrap().status, 503);
    }

    disk.free();
    wait_for("a push to be taken", async || {
        let answer = service.post(&token, push("after")).await.unwrap();
        (answer.status == 200).then_some(())
    })
    .await;
    assert!(disk.has_reserve());
    let late = program.live_key().await;
    for key in [&key, &fresh, &late] {
        assert_eq!(service.records(EVENTS, key, 2).await.len(), 2, "what was refused is not there");
    }
    wait_for("readiness", async || {
        (service.get("/readyz", "").await.text() == "ready\n").then_some(())
    })
    .await;
    service.stop().await;
    let service = program.start().await;
    assert_eq!(service.records(EVENTS, &late, 2).await.len(), 2);
    service.stop().await;
}

/// H20: the archive is on its own disk, which is full for a while.
#[tokio::test]
async fn a_full_disk_of_the_archive_stops_nothing_and_what_it_misses_is_added_later() {
    let disk = SmallDisk::new(8);
    let program = TestProgram::new()
        .launched_by(&disk.enter())
        .set("LINESMAN_HISTORY__STORE", disk.dir.path().display().to_string())
        .set("LINESMAN_HISTORY__PART_INTERVAL", "1s")
        .set("LINESMAN_MARKET__REFRESH_INTERVAL", "1s");
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let metric = async |name: &str| {
        let metrics = reqwest::get(service.metrics()).await.unwrap().text().await.unwrap();
        let line = format!("{name}{{world=\"live\"}} ");
        let value = metrics.lines().find_map(|held| held.strip_prefix(&line));
        value.and_then(|value| value.parse::<f64>().ok()).unwrap_or_default()
    };
    service.push_all(&token, &[bout("before", "Anderson", "Opponent")]).await;
    service.records(EVENTS, &key, 1).await;
    wait_for("a part in the archive", async || {
        (metric("linesman_history_commits_total").await > 0.0).then_some(())
    })
    .await;

    disk.fill();
    service.push_all(&token, &[bout("during", "Bellator", "Opponent")]).await;
    assert_eq!(service.records(EVENTS, &key, 2).await.len(), 2);
    wait_for("a failure and some lag", async || {
        let failures = metric("linesman_history_commit_failures_total").await;
        let lag = metric("linesman_history_lag_seconds").await;
        (failures > 0.0 && lag >= 3.0).then_some(())
    })
    .await;
    // Only the archive is affected: its own disk is full, not that of the log.
    assert!(metric("linesman_disk_full").await < 1.0);
    service.push_all(&token, &[bout("later", "Cormier", "Opponent")]).await;
    let records = service.records(EVENTS, &key, 3).await;
    let answer = service.get(EVENTS, &key).await;
    let (seen, etag) = (answer.text().to_owned(), answer.header("etag").unwrap().to_owned());
    let at = answer.header("x-published-at").unwrap().to_owned();
    assert_eq!(records.len(), 3);

    disk.free();
    wait_for("the archive to have everything", async || {
        (program.run(&["history", "flush"]).await.code == Some(0)).then_some(())
    })
    .await;
    let checked = program.ok(&["history", "verify", "--sample", "3"]).await;
    assert!(checked.contains("is present once") && checked.contains("3 are the same"), "{checked}");
    // Without the log, the publications of that time are those that clients saw.
    service.stop().await;
    fs::remove_dir_all(program.data().join("live")).unwrap();
    let service = program.start().await;
    let again = wait_for("the past", async || {
        let answer = service.get(&format!("{EVENTS}?as_of={at}"), &key).await;
        (answer.status == 200).then_some(answer)
    })
    .await;
    assert_eq!(again.text(), seen);
    assert_eq!(again.header("etag"), Some(&*etag));
    service.stop().await;
}

#[tokio::test]
async fn a_service_starts_on_a_full_disk_from_its_reserve_or_says_why_not() {
    let disk = SmallDisk::new(32);
    let program = disk.program();
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    service.push_all(&token, &[bout("before", "Anderson", "Opponent")]).await;
    service.records(EVENTS, &key, 1).await;
    service.stop().await;
    disk.fill();
    let service = program.start().await;
    assert!(!disk.has_reserve());
    assert_eq!(service.records(EVENTS, &key, 1).await.len(), 1);
    let push = ndjson(&[bout("during", "Bellator", "Opponent")]);
    assert_eq!(service.post(&token, push).await.unwrap().status, 503);
    service.kill().await;

    // Without a reserve.
    disk.fill();
    let refused = program.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(refused.code, Some(1));
    let sentence = refused.stderr.lines().last().unwrap();
    assert!(sentence.starts_with("linesman: ") && sentence.contains("No space left"), "{sentence}");
    disk.free();
    let service = program.start().await;
    assert!(disk.has_reserve());
    service.push_all(&token, &[bout("after", "Cormier", "Opponent")]).await;
    service.stop().await;
}

/// Outputs of a service that cannot be written.
fn outputs() -> [(&'static str, Stdio); 2] {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let closed = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    [("a full disk", full.into()), ("a closed pipe", closed.into())]
}

#[tokio::test]
async fn a_service_whose_output_cannot_be_written_goes_on() {
    for ((to, stdout), (_, stderr)) in outputs().into_iter().zip(outputs()) {
        let program = TestProgram::new().set("LINESMAN_LOG__FILTER", "debug");
        let mut command = program.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        let socket = program.data().join("control.sock");
        let url = wait_for("an address", async || {
            let mut stream = UnixStream::connect(&socket).ok()?;
            stream.write_all(b"\"url\"\n").ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer.trim().strip_prefix("ok ")?.to_owned())
        })
        .await;
        for _ in 0..5 {
            wait_for(&format!("readiness with output to {to}"), async || {
                let ready = reqwest::get(format!("{url}/readyz")).await.ok()?;
                (ready.status() == 200).then_some(())
            })
            .await;
        }
        program.live_key().await;
        assert!(child.try_wait().unwrap().is_none(), "{PROGRAM} ended with its output to {to}");
        let id = child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(child.wait().await.unwrap().code(), Some(0), "output to {to}");
    }
}

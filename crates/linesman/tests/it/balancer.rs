//! Maintaining the list of nodes behind nginx: the real script of `deploy/nginx`, with nodes whose answers tests
//! choose.
//!
//! nginx is replaced by a shell line that writes down the configuration it would have read.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::harness::wait_for;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/nginx/linesman-nodes");
/// The programs that the script runs besides its HTTP tool, and those used by the line below.
const TOOLS: [&str; 6] = ["sh", "timeout", "mv", "grep", "sleep", "sed"];
/// The replacement of nginx fails while there is a file `broken`.
const RELOAD: &str = "echo again >>asked; test ! -e broken && echo $(sed 's/^server \\(.*\\) max_fails=0;$/\\1/' nodes.conf) >>taken";

#[tokio::test]
async fn a_node_is_out_after_two_failures_and_back_after_one_success() {
    for tool in tools_to_ask_with().await {
        let balancer = Balancer::new(Some(&tool)).await;
        let steady = Node::start(&[200]).await;
        // A single failure is ignored, however often it occurs.
        let shaky = Node::start(&[200, 503, 200, 503, 200]).await;
        let (both, one) = (format!("{steady} {shaky}"), steady.to_string());
        let mut watch = balancer.watch(&both);
        shaky.is_asked_again(7).await;
        balancer.took(&[&both]).await;
        // A second consecutive one is not. One success is enough to be listed again, with one failure ignored again.
        shaky.says(&[503, 503, 200, 503]);
        balancer.took(&[&both, &one, &both, &one]).await;

        // An old snapshot is better than none.
        steady.says(&[503]);
        balancer.took(&[&both, &one, &both, &one, &both]).await;
        steady.says(&[200]);
        balancer.took(&[&both, &one, &both, &one, &both, &one]).await;
        assert!(balancer.said().contains(&format!("in: {both} (none is ready)\n")));

        // A removed node is not listed again because the script is restarted.
        watch.kill().await.unwrap();
        let _watch = balancer.watch(&both);
        balancer.took(&[&both, &one, &both, &one, &both, &one, &one]).await;
        shaky.says(&[200]);
        balancer.took(&[&both, &one, &both, &one, &both, &one, &one, &both]).await;
    }
}

#[tokio::test]
async fn nginx_is_told_until_it_was() {
    let balancer = Balancer::new(Some(&tools_to_ask_with().await[0])).await;
    let (steady, shaky) = (Node::start(&[200]).await, Node::start(&[200]).await);
    let (both, one) = (format!("{steady} {shaky}"), steady.to_string());
    let _watch = balancer.watch(&both);
    balancer.took(&[&both]).await;

    let broken = balancer.program.path().join("broken");
    File::create(&broken).unwrap();
    let asked = balancer.lines("asked").len();
    shaky.says(&[503]);
    let again = async || (balancer.lines("asked").len() >= asked + 3).then_some(());
    wait_for("a third try", again).await;
    balancer.took(&[&both]).await;
    // The file that nginx reads at its start exists already.
    assert_eq!(balancer.lines("nodes.conf"), [format!("server {one} max_fails=0;")]);
    assert_eq!(balancer.said().matches("nginx could not be reloaded").count(), 1);

    fs::remove_file(&broken).unwrap();
    balancer.took(&[&both, &one]).await;
    // Nothing has changed since: a listed node can be asked any number of times.
    let asked = balancer.lines("asked").len();
    steady.is_asked_again(5).await;
    assert_eq!(balancer.lines("asked").len(), asked);
}

#[tokio::test]
async fn a_watch_that_cannot_work_says_why() {
    let balancer = Balancer::new(None).await;
    for (nodes, why) in [
        ("", "NODES is empty"),
        ("10.0.0.1:8080,10.0.0.2:8080", "with spaces between"),
        ("10.0.0.1:8080; 10.0.0.2:8080", "NODES has 10.0.0.1:8080;"),
        ("10.0.0.1:8080", "install curl or wget"),
    ] {
        let status = balancer.watch(nodes).wait().await.unwrap();
        assert_eq!(status.code(), Some(1), "{nodes}");
        assert!(balancer.said().lines().last().unwrap().contains(why), "{}", balancer.said());
    }
    assert!(!balancer.program.path().join("nodes.conf").exists());
}

/// The path of a program, if it is installed.
async fn find(program: &str) -> Option<PathBuf> {
    let output = Command::new("/bin/sh").args(["-c", "command -v \"$0\"", program]).output();
    let path = String::from_utf8(output.await.unwrap().stdout).unwrap();
    (!path.is_empty()).then(|| PathBuf::from(path.trim()))
}

/// The HTTP tools that this machine has.
async fn tools_to_ask_with() -> Vec<String> {
    let mut found = Vec::new();
    for tool in ["curl", "wget"] {
        found.extend(find(tool).await.map(|_| tool.to_owned()));
    }
    assert!(!found.is_empty(), "install curl or wget: one of them is needed to ask nodes");
    found
}

/// A folder with the list, and with the lists that nginx accepted.
#[derive(Debug)]
struct Balancer {
    program: TempDir,
}

impl Balancer {
    /// The script finds the programs it needs, the given HTTP tool, and nothing else.
    async fn new(tool: Option<&str>) -> Self {
        let program = TempDir::new().unwrap();
        fs::create_dir(program.path().join("bin")).unwrap();
        for name in TOOLS.into_iter().chain(tool) {
            symlink(find(name).await.unwrap(), program.path().join("bin").join(name)).unwrap();
        }
        Self { program }
    }

    fn watch(&self, nodes: &str) -> Child {
        let stderr =
            File::options().create(true).append(true).open(self.program.path().join("said"));
        Command::new("/bin/sh")
            .arg(SCRIPT)
            .current_dir(self.program.path())
            .env("PATH", self.program.path().join("bin"))
            .env("NODES", nodes)
            .env("NODES_FILE", "nodes.conf")
            .env("NODES_RELOAD", RELOAD)
            .env("NODES_EVERY", "0.05")
            // A node on a busy machine must not look dead.
            .env("NODES_PATIENCE", "60")
            // Requests to nodes bypass this proxy.
            .env("http_proxy", "http://127.0.0.1:1")
            .stdin(Stdio::null())
            .stderr(stderr.unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    fn lines(&self, file: impl AsRef<Path>) -> Vec<String> {
        let text = fs::read_to_string(self.program.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.program.path().join("said")).unwrap()
    }

    /// Waits until nginx has accepted this number of lists, and compares them.
    async fn took(&self, lists: &[&str]) {
        let enough = async || Some(self.lines("taken")).filter(|taken| taken.len() >= lists.len());
        let taken = wait_for(&format!("list {}; {}", lists.len(), self.said()), enough).await;
        assert_eq!(taken, lists, "{}", self.said());
    }
}

/// The answers of a node to readiness checks.
#[derive(Debug)]
struct Node {
    address: String,
    script: Arc<Mutex<Script>>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Script {
    /// Consecutive answers; the last one is repeated.
    answers: VecDeque<u16>,
    count: usize,
}

impl Node {
    async fn start(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let script = Arc::new(Mutex::new(Script::default()));
        let serving = tokio::spawn(serve(listener, Arc::clone(&script)));
        let node = Self { address, script, serving };
        node.says(answers);
        node
    }

    fn says(&self, answers: &[u16]) {
        self.script.lock().unwrap().answers = answers.iter().copied().collect();
    }

    /// Waits until it was asked this number of times more; the effects of all but the last of these checks are then
    /// visible.
    async fn is_asked_again(&self, times: usize) {
        let count = || self.script.lock().unwrap().count;
        let enough = count() + times;
        wait_for("more looks", async || (count() >= enough).then_some(())).await;
    }
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Script {
    fn next(&mut self) -> u16 {
        self.count += 1;
        let next = self.answers[0];
        if self.answers.len() > 1 {
            self.answers.pop_front();
        }
        next
    }
}

async fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        // A client that was killed while asking is ignored.
        let Some(head) = read_head(&mut stream).await else { continue };
        assert!(head.starts_with("GET /readyz HTTP/1."), "{head}");
        let status = script.lock().unwrap().next();
        let answer =
            format!("HTTP/1.1 {status} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap_or_default();
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

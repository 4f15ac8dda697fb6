//! The real program on its own folder, and a client for it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_linesman");
/// Maximum time that any awaited condition may take before the test fails; the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time of one command: some wait for the archive, which is written at the lowest priority.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(240);
/// Maximum time of one answer: a batch of hundreds of lines, unoptimised, on a busy machine.
const SILENCE: Duration = Duration::from_secs(120);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// The ingest endpoint.
const DOOR: &str = "/ingest/v1/messages";
/// The message of an answer to a key that was not granted requests in time.
const NOT_COUNTED: &str = "requests cannot be counted now; retry shortly";
/// Limits that are never reached.
pub(crate) const UNLIMITED: [&str; 4] =
    ["--burst-per-minute", "4000000000", "--requests-per-day", "4000000000"];

/// A data folder with the settings of every program started on it.
#[derive(Debug)]
pub(crate) struct TestProgram {
    dir: TempDir,
    environment: Vec<(String, String)>,
    /// A program that starts others, with its arguments.
    launcher: Vec<String>,
    starts: std::cell::Cell<u32>,
}

impl TestProgram {
    /// A folder for a service without a sandbox that publishes ten times a second.
    pub(crate) fn new() -> Self {
        Self::at(TempDir::new().unwrap())
    }

    /// As [`Self::new`], in this folder.
    pub(crate) fn at(dir: TempDir) -> Self {
        let program = Self {
            dir,
            environment: Vec::new(),
            launcher: Vec::new(),
            starts: std::cell::Cell::new(0),
        };
        program
            .set("LINESMAN_MARKET__REFRESH_INTERVAL", "100ms")
            .set("LINESMAN_SERVER__OPS_LISTEN", "127.0.0.1:0")
            .set("LINESMAN_SERVER__WORKERS", "2")
            // A machine that runs all tests at once is sometimes late.
            .set("LINESMAN_SERVER__SHED_AFTER", "1m")
            .set("LINESMAN_SANDBOX__ENABLED", "false")
    }

    /// Adds an environment variable.
    pub(crate) fn set(self, name: &str, value: impl Into<String>) -> Self {
        let mut program = self.unset(name);
        program.environment.push((name.to_owned(), value.into()));
        program
    }

    /// Removes an environment variable.
    pub(crate) fn unset(mut self, name: &str) -> Self {
        self.environment.retain(|(held, _)| held != name);
        self
    }

    /// Lets another program start the programs and be replaced by them.
    pub(crate) fn launched_by(mut self, launcher: &[impl AsRef<str>]) -> Self {
        self.launcher = launcher.iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// The folder for the test's own files; also the current folder of programs.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The data folder, with a name that a shell would split.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("the data")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A program about to run on this folder, without the caller's environment.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let words: Vec<&str> = self.launcher.iter().map(String::as_str).chain([PROGRAM]).collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.dir.path())
            .arg("--data")
            .arg(self.data())
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Done {
        Done::of(self.command(arguments)).await
    }

    /// Runs a command that must succeed and print nothing on stderr; returns its stdout without the line end.
    pub(crate) async fn ok<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        let done = self.run(arguments).await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
        done.stdout.strip_suffix('\n').unwrap_or(&done.stdout).to_owned()
    }

    /// Starts the service and waits until it has printed its address.
    pub(crate) async fn start(&self) -> Service {
        self.start_as("all").await
    }

    /// As [`Self::start`], in a role.
    pub(crate) async fn start_as(&self, role: &str) -> Service {
        self.start_at("127.0.0.1:0", role).await
    }

    /// As [`Self::start_as`], at a given address.
    pub(crate) async fn start_at(&self, listen: &str, role: &str) -> Service {
        self.launch(&["serve", "--listen", listen, "--role", role]).await
    }

    /// As [`Self::start`], with more flags.
    pub(crate) async fn start_with(&self, flags: &[&str]) -> Service {
        self.launch(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat()).await
    }

    async fn launch(&self, arguments: &[&str]) -> Service {
        let starts = self.starts.get() + 1;
        self.starts.set(starts);
        let stderr = self.dir.path().join(format!("stderr-{starts}.log"));
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(File::create(&stderr).unwrap());
        Service::greeted(command.spawn().unwrap(), stderr).await
    }

    /// Everything that services on this folder have written to stderr.
    pub(crate) fn logs(&self) -> String {
        (1..=self.starts.get())
            .map(|n| fs::read_to_string(self.dir.path().join(format!("stderr-{n}.log"))).unwrap())
            .collect()
    }

    /// Creates the data folder for commands that are run before a service. A cluster needs none.
    pub(crate) async fn init(&self) {
        let is_cluster = self.environment.iter().any(|(name, _)| name == "LINESMAN_DATABASE__URL");
        if !is_cluster && !self.data().join("accounts.db").exists() {
            self.ok(&["init"]).await;
        }
    }

    /// A production key whose limits are never reached.
    pub(crate) async fn live_key(&self) -> String {
        self.init().await;
        self.ok(&[&["keys", "create", "--kind", "production"], &UNLIMITED[..]].concat()).await
    }

    pub(crate) async fn feed(&self, name: &str) -> String {
        self.init().await;
        self.ok(&["feeds", "create", name]).await
    }
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// `None`: ended by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) async fn of(mut command: Command) -> Self {
        let ended = tokio::time::timeout(COMMAND_TIMEOUT, command.output()).await;
        let output = ended.expect("the program ends").unwrap();
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The only output of a program that failed with this code: one sentence.
    pub(crate) fn sentence(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        let sentence = self.stderr.strip_suffix('\n').expect("a line");
        let sentence = sentence.strip_prefix("linesman: ").expect("who speaks");
        assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence}");
        sentence
    }
}

/// A running service; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    _stdout: Lines<BufReader<ChildStdout>>,
    stderr: PathBuf,
    /// Everything that it printed at its start.
    pub(crate) greeting: String,
    /// `http://127.0.0.1:…` or `https://…`.
    pub(crate) base: String,
    pub(crate) client: Client,
}

impl Service {
    async fn greeted(mut child: Child, stderr: PathBuf) -> Self {
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut greeting = String::new();
        let reading = async {
            while let Some(line) = stdout.next_line().await.unwrap() {
                greeting.push_str(&line);
                greeting.push('\n');
                if line.starts_with("Ingest") {
                    return;
                }
            }
            let said = fs::read_to_string(&stderr).unwrap();
            panic!("the service ended before it served:\n{greeting}\n{said}");
        };
        tokio::time::timeout(TIMEOUT, reading).await.expect("the service starts");
        let base = greeting.lines().find_map(|line| line.strip_prefix("Linesman is at "));
        let base = base.expect("an address").to_owned();
        Self { child, _stdout: stdout, stderr, greeting, base, client: client() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// `127.0.0.1:…`
    pub(crate) fn address(&self) -> &str {
        self.base.split_once("://").unwrap().1
    }

    /// The sandbox key that a first start shows.
    pub(crate) fn first_key(&self) -> Option<&str> {
        self.greeting.lines().map(str::trim).find(|line| line.starts_with("sk_test_"))
    }

    /// The curl command to try.
    pub(crate) fn curl_line(&self) -> &str {
        let mut lines = self.greeting.lines().map(str::trim);
        lines.find(|line| line.starts_with("curl ")).expect("a curl line")
    }

    /// The address of its metrics.
    pub(crate) fn metrics(&self) -> &str {
        let address = self.greeting.lines().find_map(|line| line.strip_prefix("Metrics"));
        address.expect("an address for metrics").trim()
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("a running service")
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Requests a path, again if a busy disk did not grant the key its requests in time.
    pub(crate) async fn get(&self, path: &str, key: &str) -> Answer {
        let begun = Instant::now();
        loop {
            let answer = self.get_once(path, key).await;
            if !answer.is_not_counted() || begun.elapsed() >= TIMEOUT {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Requests a path once, whatever the answer is.
    pub(crate) async fn get_once(&self, path: &str, key: &str) -> Answer {
        Answer::of(self.client.get(self.url(path)).header("X-API-Key", key)).await.unwrap()
    }

    /// Requests a path until the answer is not 503, as a client would.
    pub(crate) async fn answered(&self, path: &str, key: &str) -> Answer {
        wait_for(path, async || Some(self.get(path, key).await).filter(|found| found.status != 503))
            .await
    }

    /// The answer of `/readyz`, once it is 200.
    pub(crate) async fn ready(&self) -> Answer {
        wait_for("readiness", async || {
            Some(self.get_once("/readyz", "").await).filter(|answer| answer.status == 200)
        })
        .await
    }

    /// Pushes lines and returns the answer, whatever it is.
    pub(crate) async fn post(&self, token: &str, body: String) -> reqwest::Result<Answer> {
        post(&self.client, &self.base, token, body).await
    }

    /// Pushes lines, each of which must be accepted as new.
    pub(crate) async fn push_all(&self, token: &str, lines: &[Value]) {
        let answer = self.post(token, ndjson(lines)).await.unwrap();
        let expected = json!({ "accepted": lines.len(), "unchanged": 0, "superseded": 0, "rejected_total": 0, "rejected": [] });
        assert_eq!((answer.status, answer.json()), (200, expected));
    }

    /// All records of a paged endpoint, once it returns at least `at_least`.
    pub(crate) async fn records(&self, path: &str, key: &str, at_least: usize) -> Vec<Value> {
        wait_for(&format!("{at_least} records of {path}"), async || {
            let records = self.pages(path, key).await;
            (records.len() >= at_least).then_some(records)
        })
        .await
    }

    /// All records of a paged endpoint.
    pub(crate) async fn pages(&self, path: &str, key: &str) -> Vec<Value> {
        let mut records = Vec::new();
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let answer = self.answered(&path, key).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            records.extend(answer.json().as_array().unwrap().iter().cloned());
            next = answer.next_page();
        }
        records
    }

    /// Kills it immediately.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks it to stop.
    pub(crate) async fn terminate(&self) {
        self.signal("TERM").await;
    }

    /// Sends a signal by its name.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().expect("a running service").to_string();
        let kill = format!("kill -{name} $0");
        let sent = Command::new("sh").args(["-c", &kill, &id]).status().await.unwrap();
        assert!(sent.success());
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(TIMEOUT, self.child.wait()).await.expect("the service ends").unwrap()
    }

    /// Stops it as an operator would.
    pub(crate) async fn stop(mut self) {
        self.terminate().await;
        assert_eq!(self.ended().await.code(), Some(0), "{}", self.stderr());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.stderr();
            let lines: Vec<&str> = said.lines().collect();
            eprintln!(
                "last words of the service:\n{}",
                lines[lines.len().saturating_sub(20)..].join("\n")
            );
        }
    }
}

pub(crate) fn client() -> Client {
    Client::builder().no_proxy().timeout(SILENCE).build().unwrap()
}

/// Pushes lines.
pub(crate) async fn post(
    client: &Client,
    base: &str,
    token: &str,
    body: String,
) -> reqwest::Result<Answer> {
    let request = client
        .post(format!("{base}{DOOR}"))
        .bearer_auth(token)
        .header("Content-Type", "application/x-ndjson");
    Answer::of(request.body(body)).await
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> reqwest::Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await?.to_vec() })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {:?}", self.status, self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn is_not_counted(&self) -> bool {
        self.status == 503 && String::from_utf8_lossy(&self.body).contains(NOT_COUNTED)
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn requests_used(&self) -> u32 {
        self.header("x-requests-used").unwrap().parse().unwrap()
    }

    pub(crate) fn requests_remaining(&self) -> u32 {
        self.header("x-requests-remaining").unwrap().parse().unwrap()
    }

    /// Path and query of the next page.
    pub(crate) fn next_page(&self) -> Option<String> {
        let target = self.header("link")?.strip_prefix('<')?.strip_suffix(">; rel=\"next\"")?;
        Some(target.to_owned())
    }
}

/// Repeats a check until it returns a value.
pub(crate) async fn wait_for<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "still waiting for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits if the hour or the day ends within the time that a test may take, so that the test sees only one of them.
pub(crate) async fn clear_of_the_turn_of(period: Duration) {
    let (now, period) = (now().as_secs(), i64::try_from(period.as_secs()).unwrap());
    let left = u64::try_from(period - now.rem_euclid(period)).unwrap();
    if left <= 60 {
        tokio::time::sleep(Duration::from_secs(left + 1)).await;
    }
}

/// The machine's clock, which the program also uses.
#[expect(clippy::disallowed_methods, reason = "the program under test runs on the machine's clock")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

pub(crate) fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A bout under a ref, a day from now.
pub(crate) fn bout(reference: &str, home: &str, away: &str) -> Value {
    let commence_time = now().plus(DAY).to_string();
    json!({
        "type": "event", "ref": reference, "sport": "mma", "competition": "Test Card",
        "commence_time": commence_time, "home": home, "away": away,
    })
}

/// A moneyline in American prices.
pub(crate) fn moneyline(reference: &str, bookmaker: &str, offers: &[(&str, i64)]) -> Value {
    let outcomes: Vec<Value> =
        offers.iter().map(|(name, price)| json!({ "name": name, "price": price })).collect();
    json!({
        "type": "odds", "ref": reference, "bookmaker": bookmaker, "market": "moneyline",
        "format": "american", "outcomes": outcomes,
    })
}

/// Asserts that a text contains no secret.
#[track_caller]
pub(crate) fn assert_no_secret(text: &str) {
    for prefix in ["sk_test_", "sk_live_", "fk_"] {
        for after in text.split(prefix).skip(1) {
            let word = after.chars().take_while(char::is_ascii_alphanumeric);
            assert!(word.count() < 8, "a secret is shown: {text}");
        }
    }
}

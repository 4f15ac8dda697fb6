//! A whole service in the test's own process: real store, real logs, real sockets, and a clock that the test
//! advances. None of our own code is replaced.
//!
//! The clock stands still unless a test advances it, so a snapshot stays current until [`TestApp::publish`]. Feeds
//! push into the live world; keys from [`TestApp::live_key`] see it. The sandbox world is empty.

mod answer;
mod builder;
pub(crate) mod line;
mod shared;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use accounts::{Actor, KeyKind, Limits, NewKey, Scores};
use domain::{Clock, ManualClock, Timestamp, World};
use http::Listener;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use serve::{ListenerRole, ListenerService, Service};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};
use store::Store;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use answer::{Answer, Raw, mistyped};
pub(crate) use builder::Builder;
pub(crate) use shared::{Joining, LogServers, TestLog};

/// Start time of every manual clock: five seconds after a full minute, at which an epoch of 30 s would begin.
pub(crate) const START: &str = "2026-11-14T12:00:05.250Z";
/// Maximum time that any awaited condition may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time that a connection may be silent before the test fails: longer than any timeout of the service.
const SILENCE: Duration = Duration::from_secs(120);
const DAY: Duration = Duration::from_secs(86_400);
/// The path for pushes.
pub(crate) const INGEST_PATH: &str = "/ingest/v1/messages";

/// Number of feeds created to wake writers: on a reused folder, each needs a new name.
static WAKERS: AtomicU32 = AtomicU32::new(0);

/// The time source of the service under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Manual,
    System,
}

/// The listener of ingest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushDoor {
    OnMain,
    Apart,
}

/// A running service.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) service: Arc<Service>,
    /// The main listener.
    pub(crate) addr: SocketAddr,
    /// The listener for ingest; it is open whether or not the main one accepts pushes too.
    pub(crate) push_addr: SocketAddr,
    /// Metrics and health.
    pub(crate) operator_addr: SocketAddr,
    pub(crate) client: Client,
    pub(crate) refresh_interval: Duration,
    manual: Arc<ManualClock>,
    time: Time,
    store: Store,
    dir: Option<TempDir>,
    stop: CancellationToken,
    writers: Vec<(World, JoinHandle<()>)>,
    archiver: Option<tokio::task::JoinHandle<()>>,
    /// Token of a feed that sends empty batches, which wake the writer.
    waker: tokio::sync::OnceCell<String>,
    email_queue: tokio::sync::Mutex<accounts::EmailQueue>,
    names: AtomicU32,
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::builder().start().await
    }

    pub(crate) fn builder() -> Builder {
        Builder::new()
    }

    /// Its data folder.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.service.api.clock.now()
    }

    /// Moves the clock without waiting for anything.
    pub(crate) fn advance(&self, by: Duration) {
        assert_eq!(self.time, Time::Manual, "only a manual clock can be moved");
        self.manual.advance(by);
    }

    /// Sets the clock back, as an operator or a time server might.
    pub(crate) fn set_back(&self, by: Duration) {
        self.manual.set(self.now().minus(by));
    }

    /// The next email in the queue.
    pub(crate) async fn email(&self) -> accounts::Email {
        let mut email_queue = self.email_queue.lock().await;
        tokio::time::timeout(PATIENCE, email_queue.next())
            .await
            .expect("an email")
            .expect("an outbox")
    }

    /// Whether no email is waiting.
    pub(crate) fn no_email(&self) -> bool {
        self.service.web.people.mail_stats().queued == 0
    }

    /// Creates a key as described.
    pub(crate) async fn key(&self, new: NewKey) -> String {
        self.service
            .api
            .accounts
            .create_key(new, &Actor::command_line())
            .await
            .unwrap()
            .0
            .expose()
            .to_owned()
    }

    /// A production key whose limits are never reached.
    pub(crate) async fn live_key(&self) -> String {
        self.key(unlimited(KeyKind::Production)).await
    }

    /// A sandbox key whose limits are never reached.
    pub(crate) async fn sandbox_key(&self) -> String {
        self.key(unlimited(KeyKind::Sandbox)).await
    }

    /// A production key with these limits.
    pub(crate) async fn limited_key(&self, burst: u32, day: u32, month: Option<u32>) -> String {
        let limits =
            Limits { burst_per_minute: burst, requests_per_day: day, requests_per_month: month };
        self.key(NewKey { limits, ..NewKey::of_kind(KeyKind::Production) }).await
    }

    /// A production key restricted to sport groups.
    pub(crate) async fn key_for_groups(&self, groups: &[&str]) -> String {
        let groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        self.key(NewKey { groups, ..unlimited(KeyKind::Production) }).await
    }

    /// A token for a feed, bound to a bookmaker if one is named.
    pub(crate) async fn feed(&self, name: &str, bookmaker: Option<&str>) -> String {
        self.service
            .api
            .accounts
            .create_feed(name, bookmaker, Scores::OfUnbound, &Actor::command_line())
            .await
            .unwrap()
            .0
            .expose()
            .to_owned()
    }

    /// A token for a feed whose name does not matter.
    pub(crate) async fn any_feed(&self) -> String {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        self.feed(&format!("feed-{number}"), None).await
    }

    /// A request to the main listener, sent unchanged.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.addr))
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> Answer {
        self.get_with(path, key, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, key: &str, headers: &[(&str, &str)]) -> Answer {
        let begun = Instant::now();
        loop {
            let mut request = self.request(Method::GET, path).header("X-API-Key", key);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let answer = Answer::of(request).await;
            // If a busy disk did not grant a lease in time, the request is repeated, as after any 503.
            if !(answer.status == 503 && answer.text().contains("cannot be counted now"))
                || begun.elapsed() > PATIENCE
            {
                return answer;
            }
        }
    }

    pub(crate) async fn get_without_key(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn head(&self, path: &str, key: &str) -> Answer {
        Answer::of(self.request(Method::HEAD, path).header("X-API-Key", key)).await
    }

    pub(crate) async fn get_operator(&self, path: &str) -> Answer {
        Answer::of(self.client.get(format!("http://{}{path}", self.operator_addr))).await
    }

    /// Pushes lines and returns the receipt.
    pub(crate) async fn push(&self, token: &str, ndjson: impl Into<String>) -> Value {
        let answer = self.post(token, ndjson.into().into_bytes(), None).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Pushes lines that must all be accepted, and as new ones if this node writes.
    pub(crate) async fn push_all(&self, token: &str, lines: &[Value]) {
        let receipt = self.push(token, ndjson(lines)).await;
        let [new, unchanged] = ["accepted", "unchanged"].map(|it| receipt[it].as_u64().unwrap());
        assert_eq!(new + unchanged, lines.len() as u64, "{receipt}");
        // If a line was forwarded to another node twice, the second copy is unchanged.
        assert!(unchanged == 0 || !self.service.api.world(World::Live).leads(), "{receipt}");
        assert_eq!((&receipt["superseded"], &receipt["rejected"]), (&json!(0), &json!([])));
    }

    /// Pushes bytes and returns any answer.
    pub(crate) async fn post(&self, token: &str, body: Vec<u8>, encoding: Option<&str>) -> Answer {
        let mut request = self
            .client
            .post(format!("http://{}{INGEST_PATH}", self.push_addr))
            .header("Authorization", format!("Bearer {token}"))
            .header("Content-Type", "application/x-ndjson")
            .body(body);
        if let Some(encoding) = encoding {
            request = request.header("Content-Encoding", encoding);
        }
        Answer::of(request).await
    }

    /// Publishes pushed data: advances the clock to the next epoch, or waits for it, and returns when its snapshot of
    /// the live world is current.
    pub(crate) async fn publish(&self) {
        let due = match self.time {
            Time::Manual => {
                let interval = i64::try_from(self.refresh_interval.as_millis()).unwrap();
                let epoch = self.now().as_millis().div_euclid(interval) + 1;
                let due = Timestamp::from_millis(epoch * interval);
                self.manual.set(due);
                due
            }
            Time::System => self.now().plus(Duration::from_millis(1)),
        };
        self.wait_for_cut(due).await;
    }

    /// As [`TestApp::publish`], and waits for the sandbox too, whose writer cannot be woken.
    pub(crate) async fn publish_both(&self) {
        self.publish().await;
        let cut_at = |world: World| self.service.api.world(world).published().snapshot.cut_at;
        wait_for("the sandbox", || cut_at(World::Sandbox) >= cut_at(World::Live)).await;
    }

    /// Advances the clock and returns when the live world's snapshot is of the new epoch.
    pub(crate) async fn publish_after(&self, by: Duration) {
        self.advance(by);
        let interval = i64::try_from(self.refresh_interval.as_millis()).unwrap();
        let epoch = self.now().as_millis().div_euclid(interval) * interval;
        self.wait_for_cut(Timestamp::from_millis(epoch)).await;
    }

    async fn wait_for_cut(&self, due: Timestamp) {
        let cut_at = || self.service.api.world(World::Live).published().snapshot.cut_at;
        self.wake_writer().await;
        wait_for("the next snapshot", || cut_at() >= due).await;
    }

    /// The writer sleeps; an empty batch makes it read the clock.
    pub(crate) async fn wake_writer(&self) {
        let name = || format!("waker-{}", WAKERS.fetch_add(1, Ordering::Relaxed));
        let token = self.waker.get_or_init(async || self.feed(&name(), None).await).await;
        assert_eq!(self.post(token, b"\n".to_vec(), None).await.status, 200);
    }

    /// Sends bytes to the main listener and reads until it closes or `answers` answers have arrived.
    pub(crate) async fn raw(&self, bytes: &[u8], answers: usize) -> Vec<Answer> {
        let mut connection = Raw::connect(self.addr).await;
        connection.send(bytes).await;
        let mut got = Vec::new();
        while got.len() < answers
            && let Some(answer) = connection.read_answer().await
        {
            got.push(answer);
        }
        got
    }

    /// Sends bytes to the main listener and reads the single answer.
    pub(crate) async fn raw_one(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut answers = self.raw(bytes.as_ref(), 1).await;
        answers.pop().expect("an answer")
    }

    /// A copy of the disk's present content, as a crash would leave it, in a new folder.
    pub(crate) fn copy_of_disk(&self) -> TempDir {
        let copy = TempDir::new().unwrap();
        copy_folder(self.dir.as_ref().unwrap().path(), copy.path());
        copy
    }

    /// Changes the accounts in the store without the service, as another process might.
    pub(crate) async fn sql(&self, statement: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.dir().join("accounts.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Lists another node that never answers.
    pub(crate) async fn list_silent_node(&self) {
        self.store.confirm_node("node_silent", 0, 100).await.unwrap();
    }

    /// Tells the service to stop without waiting for it.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Stops it as an operator would, and returns the folder.
    pub(crate) async fn stop(mut self) -> TempDir {
        self.stop.cancel();
        self.service.api.accounts.release().await.unwrap();
        self.stop_writers();
        if let Some(archiver) = self.archiver.take() {
            archiver.abort();
            // What it began in the folder is over before another service takes that over.
            let _aborted = archiver.await;
        }
        self.store.close().await;
        self.dir.take().unwrap()
    }

    fn stop_writers(&mut self) {
        World::ALL.into_iter().for_each(|world| self.stop_writer(world));
    }

    /// Ends a world's writer, as if it had died.
    pub(crate) fn stop_writer(&mut self, world: World) {
        self.service.api.world(world).stop();
        for (_, writer) in self.writers.extract_if(.., |(of, _)| *of == world) {
            assert!(writer.join().is_ok(), "a writer panicked");
        }
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(archiver) = &self.archiver {
            archiver.abort();
        }
        if !std::thread::panicking() {
            self.stop_writers();
        }
    }
}

/// The time of the machine.
#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
    }
}

/// A key whose own limits are never reached.
pub(crate) fn unlimited(kind: KeyKind) -> NewKey {
    let limits = Limits {
        burst_per_minute: 1_000_000,
        requests_per_day: 10_000_000,
        requests_per_month: None,
    };
    NewKey { limits, ..NewKey::of_kind(kind) }
}

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Lines in the format of ingest.
pub(crate) fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Waits until a condition holds; checks often, and panics at the timeout.
pub(crate) async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Runs by a clock that runs fifty times as fast. A paused clock would jump over the time that bytes in transit take.
pub(crate) async fn by_fast_clock<T>(running: impl Future<Output = T>) -> T {
    tokio::time::pause();
    let passing = async {
        for _ in 0..1_000 {
            // While a blocking task runs, the clock stands still.
            let_arrive().await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    };
    let done = tokio::select! {
        done = running => done,
        () = passing => panic!("it has not ended after 1,000 s"),
    };
    tokio::time::resume();
    done
}

/// Gives bytes in transit real time to arrive, even if the clock is paused.
pub(crate) async fn let_arrive() {
    tokio::task::spawn_blocking(nap).await.unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "it runs on a thread of its own, for the machine's time"
)]
fn nap() {
    std::thread::sleep(Duration::from_millis(20));
}

/// A client that neither decompresses nor follows redirects.
pub(crate) fn client() -> Client {
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

async fn listen(
    service: &Arc<Service>,
    role: ListenerRole,
    stopping: &CancellationToken,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let listener =
        Listener { socket: listener, tls: None, measures_load: role == ListenerRole::Main };
    let entrance = ListenerService { service: Arc::clone(service), role };
    tokio::spawn(http::run(Arc::new(entrance), listener, stopping.clone()));
    addr
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if let Err(error) = std::fs::copy(entry.path(), target) {
            // The service continues, and its temporary files appear and disappear.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        }
    }
}

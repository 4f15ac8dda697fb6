//! The book that adapters write to, scripted upstreams, and waiting for conditions.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use domain::{Catalogue, Clock, ManualClock, Timestamp};
use feeds::push::{self, Rights};
use linesman_adapters::build::{Adapter, build, run_adapter};
use linesman_adapters::report::{Report, Reporter};
use linesman_adapters::runner::Context;
use linesman_adapters::settings::{
    Access, AdapterSettings, ExecSettings, KindSettings, MappedSettings, Schedule, ScheduleRow,
    Speed,
};
use linesman_adapters::sink::{Answer, NotTaken, OpenEvent, Receipt, Sink};
use market::{Book, Ids, Verdict};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
    }
}

pub(crate) async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A book that takes messages while `leads` is true.
#[derive(Debug)]
pub(crate) struct TestSink {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) book: Mutex<Book>,
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) leads: AtomicBool,
    clock: Mutex<Arc<dyn Clock>>,
}

impl TestSink {
    pub(crate) fn new() -> Arc<Self> {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let book = Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 1 });
        Arc::new(Self {
            catalogue,
            book: Mutex::new(book),
            lines: Mutex::default(),
            leads: AtomicBool::new(true),
            clock: Mutex::new(Arc::new(RealClock)),
        })
    }

    /// The lines sent so far.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Number of markets of a feed with prices.
    pub(crate) fn open_markets(&self, feed: &str) -> usize {
        self.book.lock().unwrap().open_of(feed).iter().map(|event| event.markets.len()).sum()
    }

    pub(crate) fn listed(&self, feed: &str) -> usize {
        self.book.lock().unwrap().open_of(feed).len()
    }
}

impl Sink for TestSink {
    fn submit<'a>(&'a self, feed: &'a str, body: Bytes) -> Answer<'a, Result<Receipt, NotTaken>> {
        if !self.leads.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(NotTaken::NotLeader)));
        }
        let mut receipt = Receipt::default();
        let rights = Rights { bookmaker: None, scores: true };
        let now = self.clock.lock().unwrap().now();
        for (number, line) in push::split_lines(&body) {
            self.lines.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
            let parsed = rights.parse(line, &self.catalogue);
            let mut book = self.book.lock().unwrap();
            match parsed.and_then(|message| book.apply(feed, &message, now)) {
                Ok(decision) => match decision.verdict {
                    Verdict::Accepted => receipt.accepted += 1,
                    Verdict::Unchanged => receipt.unchanged += 1,
                    Verdict::Superseded => receipt.superseded += 1,
                },
                Err(reject) => receipt.rejected.push((number, reject)),
            }
        }
        Box::pin(std::future::ready(Ok(receipt)))
    }

    fn open<'a>(&'a self, feed: &'a str) -> Answer<'a, Result<Vec<OpenEvent>, NotTaken>> {
        if !self.leads.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(NotTaken::NotLeader)));
        }
        let open = self.book.lock().unwrap().open_of(feed).into_iter().map(|offer| OpenEvent {
            reference: offer.reference,
            sport: offer.sport,
            commence_time: offer.commence_time,
            markets: offer.markets,
        });
        Box::pin(std::future::ready(Ok(open.collect())))
    }
}

/// The reaction of an upstream to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reaction {
    /// Status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Announces a body's length and closes in the middle of the body.
    Cut,
    /// Never answers.
    Hang,
}

/// An HTTP server whose reactions are a function of the request.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upstream {
    pub(crate) async fn start(
        react: impl Fn(&str, usize) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(None, react).await
    }

    /// Over TLS, at `https://localhost`, if an acceptor is given.
    pub(crate) async fn start_with(
        tls: Option<TlsAcceptor>,
        react: impl Fn(&str, usize) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = match &tls {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, react, count) =
            (Arc::clone(&requests), Arc::new(react), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (seen, react, count) =
                    (Arc::clone(&seen), Arc::clone(&react), Arc::clone(&count));
                let tls = tls.clone();
                // A client that left or is refused is not a fault of the test.
                tokio::spawn(async move {
                    let Some(tls) = tls else {
                        return answer(socket, &seen, &*react, &count).await.unwrap_or_default();
                    };
                    if let Ok(socket) = tls.accept(socket).await {
                        answer(socket, &seen, &*react, &count).await.unwrap_or_default();
                    }
                });
            }
        });
        Self { url, requests, task }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Mutex<Vec<String>>,
    react: &(impl Fn(&str, usize) -> Reaction + Send + Sync),
    count: &AtomicUsize,
) -> std::io::Result<()> {
    let mut held = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let read = socket.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        held.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&held).into_owned();
        let Some((head, rest)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
        });
        if rest.len() < length.unwrap_or(0) {
            continue;
        }
        held.clear();
        seen.lock().unwrap().push(text.clone());
        match react(&text, count.fetch_add(1, Ordering::SeqCst)) {
            Reaction::Answer(status, headers, body) => {
                let headers: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let head = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n",
                    body.len()
                );
                socket.write_all(head.as_bytes()).await?;
                socket.write_all(&body).await?;
                socket.flush().await?;
            }
            Reaction::Cut => {
                socket
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n[{\"id\"")
                    .await?;
                return Ok(());
            }
            Reaction::Hang => std::future::pending().await,
        }
    }
}

pub(crate) fn ok(body: &str) -> Reaction {
    Reaction::Answer(200, Vec::new(), body.as_bytes().to_vec())
}

pub(crate) const MAPPING: &str = r#"
format = "json"
[event]
each = "*"
ref = "id"
sport = "'mma'"
competition = "'UFC 331'"
commence_time = "start | iso"
home = "home"
away = "away"
[[market]]
key = "moneyline"
format = "decimal"
[[market.outcome]]
name = "home"
price = "home_price"
[[market.outcome]]
name = "away"
price = "away_price"
"#;

/// The fighters of a card, each bout at this price.
pub(crate) fn card(bouts: std::ops::Range<u32>, price: &str) -> String {
    let names = [
        "Adams", "Baker", "Clark", "Davis", "Evans", "Foster", "Green", "Harris", "Irwin", "Jones",
        "King", "Lopez", "Moore",
    ];
    let start = RealClock.now().plus(Duration::from_secs(7200));
    let bout = |n: u32| {
        let name = names[n as usize];
        format!(
            r#"{{"id":"b{n}","home":"Hugo {name}","away":"Alan {name}son","start":"{start}","home_price":{price},"away_price":1.7}}"#
        )
    };
    format!("[{}]", bouts.map(bout).collect::<Vec<_>>().join(","))
}

pub(crate) fn settings(name: &str, kind: KindSettings) -> AdapterSettings {
    AdapterSettings {
        name: name.to_owned(),
        enabled: true,
        accepted_by: Some("O. Operator".to_owned()),
        bookmaker: None,
        bookmakers: BTreeMap::new(),
        sports: BTreeMap::new(),
        markets_map: BTreeMap::new(),
        schedule: Schedule::new(vec![ScheduleRow {
            starts_within: None,
            every: Duration::from_secs(1),
        }]),
        access: Access {
            timeout: Duration::from_secs(10),
            rate_per_minute: 6000,
            backoff_max: Duration::from_secs(1),
            base_url: None,
            ca_file: None,
        },
        stale_after: None,
        remove_after: Duration::ZERO,
        in_play: true,
        tape_today: false,
        record: None,
        tape: None,
        speed: Speed::Max,
        kind,
    }
}

pub(crate) fn mapped(dir: &Path, urls: &[String]) -> AdapterSettings {
    let mapping = dir.join("mapping.toml");
    std::fs::write(&mapping, MAPPING).unwrap();
    let kind = KindSettings::Mapped(MappedSettings {
        mapping: Some(mapping),
        recipe: None,
        vars: BTreeMap::new(),
        urls: urls.to_vec(),
        files: Vec::new(),
        headers: BTreeMap::new(),
        page: None,
    });
    AdapterSettings { bookmaker: Some("fanduel".to_owned()), ..settings("card", kind) }
}

pub(crate) fn shell(script: &str, every: Option<Duration>, complete: bool) -> AdapterSettings {
    let kind = KindSettings::Exec(ExecSettings {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        path: "/usr/bin:/bin".to_owned(),
        every,
        complete,
    });
    settings("mine", kind)
}

/// An adapter that runs until this is dropped.
pub(crate) struct Running {
    pub(crate) reporter: Reporter,
    pub(crate) read_now: Arc<tokio::sync::Notify>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    pub(crate) fn start(settings: AdapterSettings, sink: &Arc<TestSink>) -> Self {
        Self::start_at(settings, sink, Arc::new(RealClock))
    }

    pub(crate) fn start_at(
        settings: AdapterSettings,
        sink: &Arc<TestSink>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        *sink.clock.lock().unwrap() = Arc::clone(&clock);
        let adapter = one(settings, sink);
        let reporter = Reporter::new(&adapter.settings.name, adapter.settings.row().name);
        let context = Context {
            settings: Arc::clone(&adapter.settings),
            catalogue: Arc::clone(&sink.catalogue),
            clock,
            sink: Arc::clone(sink) as Arc<dyn Sink>,
            reporter: reporter.clone(),
            read_now: Arc::default(),
        };
        let read_now = Arc::clone(&context.read_now);
        Self { reporter, read_now, task: tokio::spawn(run_adapter(adapter, context)) }
    }

    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Report) -> bool) -> Report {
        wait_for(what, || Some(self.reporter.report()).filter(|report| is(report))).await
    }
}

pub(crate) fn one(settings: AdapterSettings, sink: &Arc<TestSink>) -> Adapter {
    build(&[settings], &sink.catalogue).unwrap().remove(0)
}

/// A clock that stands still, at the current time in whole seconds.
pub(crate) fn still_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_secs(RealClock.now().as_secs())))
}

/// Reactions in order; the last one repeats.
pub(crate) fn script(reactions: Vec<Reaction>) -> impl Fn(&str, usize) -> Reaction + Send + Sync {
    let queue = Mutex::new(VecDeque::from(reactions));
    move |_, _| {
        let mut queue = queue.lock().unwrap();
        if queue.len() > 1 { queue.pop_front().unwrap() } else { queue[0].clone() }
    }
}

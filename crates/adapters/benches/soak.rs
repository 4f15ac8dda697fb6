//! A busy Exchange Stream through a whole adapter: a fake exchange sends 20,000 lines a second over TLS that change 500
//! markets in turn, and what comes out goes into a book. Fails if a hundredth of the prices is a second old when it
//! arrives, if memory grows, or if the adapter cannot keep up.
//!
//! `cargo bench -p linesman-adapters --bench soak [-- --seconds 600]`; half a minute unless it says otherwise

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program for people that measures by the real clock"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use domain::message::Body;
use domain::{Catalogue, Clock, Timestamp};
use feeds::push::{self, Rights};
use linesman_adapters::build::{build, run_adapter};
use linesman_adapters::report::Board;
use linesman_adapters::runner::Context;
use linesman_adapters::settings::{
    Access, AdapterSettings, BetfairSettings, KindSettings, Schedule, Secret, SecretSource, Speed,
};
use linesman_adapters::sink::{Answer, NotTaken, OpenEvent, Receipt, Sink};
use market::{Book, Ids};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const MARKETS: u64 = 500;
const LINES_PER_SECOND: u64 = 20_000;
/// Lines are sent in this many bursts a second.
const BURSTS: u64 = 200;
/// Prices must be younger than this when they arrive, but for a hundredth of them.
const LAG_P99_MAX: Duration = Duration::from_secs(1);
/// Memory may differ by this much between the first quarter and the end.
const GROWTH_KIB_MAX: u64 = 8 << 10;

#[derive(Debug)]
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        Timestamp::from_millis(i64::try_from(since.as_millis()).expect("a time of this century"))
    }
}

/// A book that notes how old prices are when they arrive.
#[derive(Debug)]
struct Measured {
    catalogue: Arc<Catalogue>,
    book: Mutex<Book>,
    lags: Mutex<Vec<Duration>>,
    rejected: AtomicU64,
}

impl Sink for Measured {
    fn submit<'a>(&'a self, feed: &'a str, body: Bytes) -> Answer<'a, Result<Receipt, NotTaken>> {
        let (now, mut receipt) = (RealClock.now(), Receipt::default());
        let rights = Rights { bookmaker: None, scores: true };
        let mut book = self.book.lock().expect("no panic");
        for (number, line) in push::split_lines(&body) {
            let applied = rights.parse(line, &self.catalogue).and_then(|message| {
                if let (Body::Odds(_), Some(ts)) = (&message.body, message.ts) {
                    self.lags.lock().expect("no panic").push(now.since(ts));
                }
                book.apply(feed, &message, now)
            });
            match applied {
                Ok(_) => receipt.accepted += 1,
                Err(reject) => receipt.rejected.push((number, reject)),
            }
        }
        let rejected = u64::try_from(receipt.rejected.len()).unwrap_or(u64::MAX);
        self.rejected.fetch_add(rejected, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(receipt)))
    }

    fn open<'a>(&'a self, _: &'a str) -> Answer<'a, Result<Vec<OpenEvent>, NotTaken>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--seconds").skip(1);
    let seconds = arguments.next().map_or(30, |seconds| seconds.parse().expect("--seconds N"));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
    let soaked = runtime.block_on(soak(Duration::from_secs(seconds)));
    if soaked { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn soak(time: Duration) -> bool {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sent = Arc::new(AtomicU64::new(0));
    let (services, exchange) = (services().await, exchange(dir.path(), Arc::clone(&sent)).await);
    let catalogue = Arc::new(Catalogue::load(None).expect("ships with the crate"));
    let sink = Arc::new(Measured {
        book: Mutex::new(Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 1 })),
        catalogue: Arc::clone(&catalogue),
        // All that there will be, so that it does not look like growth.
        lags: Mutex::new(vec![Duration::ZERO; samples(time)]),
        rejected: AtomicU64::new(0),
    });
    sink.lags.lock().expect("no panic").clear();
    let settings = settings(dir.path(), &services, &exchange);
    let adapter = build(&[settings], &catalogue).expect("right settings").remove(0);
    let board = Board::new("betfair", "betfair");
    let context = Context {
        settings: Arc::clone(&adapter.settings),
        catalogue,
        clock: Arc::new(RealClock),
        sink: Arc::clone(&sink) as Arc<dyn Sink>,
        board: board.clone(),
        read_now: Arc::default(),
    };
    let task = tokio::spawn(run_adapter(adapter, context));
    tokio::time::sleep(time / 4).await;
    let (begun, before, memory) = (Instant::now(), sent.load(Ordering::SeqCst), resident_kib());
    tokio::time::sleep(time - time / 4).await;
    let lines = sent.load(Ordering::SeqCst) - before;
    let rate = lines * 1000 / u64::try_from(begun.elapsed().as_millis()).unwrap_or(1).max(1);
    let (grown, report) = (resident_kib().saturating_sub(memory), board.report());
    task.abort();
    let mut lags = sink.lags.lock().expect("no panic").clone();
    lags.sort_unstable();
    let share = |of: usize| lags.get(lags.len() * of / 1000).copied().unwrap_or(Duration::MAX);
    println!(
        "{rate} lines/s over {MARKETS} markets for {} s: {} prices, lag p50 {:?}, p99 {:?}, max {:?}; \
         {memory} KiB, {grown} KiB more at the end; {} rejected, {} reconnections",
        time.as_secs(),
        lags.len(),
        share(500),
        share(990),
        lags.last().copied().unwrap_or(Duration::MAX),
        sink.rejected.load(Ordering::SeqCst),
        report.reconnects,
    );
    rate >= LINES_PER_SECOND * 95 / 100
        && share(990) < LAG_P99_MAX
        && grown < GROWTH_KIB_MAX
        && report.reconnects == 0
        && sink.rejected.load(Ordering::SeqCst) == 0
}

/// More than the prices that this time can bring: one for each market a second.
fn samples(time: Duration) -> usize {
    usize::try_from((time.as_secs() + 10) * MARKETS * 2).unwrap_or(usize::MAX)
}

fn settings(dir: &Path, services: &str, exchange: &str) -> AdapterSettings {
    let secret = || Some(SecretSource::Given(Secret::from("x".to_owned())));
    AdapterSettings {
        name: "betfair".to_owned(),
        enabled: true,
        accepted_by: Some("a benchmark".to_owned()),
        bookmaker: None,
        bookmakers: BTreeMap::new(),
        sports: BTreeMap::new(),
        markets_map: BTreeMap::new(),
        schedule: Schedule::default(),
        access: Access {
            timeout: Duration::from_secs(10),
            rate_per_minute: 60,
            backoff_max: Duration::from_secs(1),
            base_url: None,
            ca_file: Some(dir.join("ca.pem")),
        },
        stale_after: None,
        remove_after: Duration::from_secs(900),
        in_play: true,
        tape_today: false,
        record: None,
        tape: None,
        speed: Speed::Max,
        kind: KindSettings::Betfair(BetfairSettings {
            app_key: secret(),
            username: secret(),
            password: secret(),
            cert: None,
            login_url: Some(services.to_owned()),
            api_url: Some(services.to_owned()),
            stream: Some(exchange.to_owned()),
            min_size: 10,
            emit_every: Duration::from_secs(1),
            horizon: Duration::from_secs(14 * 86_400),
        }),
    }
}

/// Signs in; the stream names its markets itself, so the catalogue has nothing to add.
async fn services() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer(socket));
        }
    });
    url
}

async fn answer(mut socket: TcpStream) -> std::io::Result<()> {
    let (mut held, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = socket.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let text = String::from_utf8_lossy(&held).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        });
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        held.clear();
        let body = if head.contains("/api/login") {
            r#"{"token":"t","product":"p","status":"SUCCESS","error":""}"#
        } else {
            "[]"
        };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        socket.write_all(answer.as_bytes()).await?;
    }
}

/// An exchange that sends an image and then changes without end; counts the lines.
async fn exchange(dir: &Path, sent: Arc<AtomicU64>) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate");
    std::fs::write(dir.join("ca.pem"), made.cert.pem()).expect("a file");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // It ends when the adapter does; an earlier end shows as a reconnection.
            let _ended = serve(&acceptor, socket, &sent).await;
        }
    });
    format!("localhost:{port}")
}

async fn serve(acceptor: &TlsAcceptor, socket: TcpStream, sent: &AtomicU64) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let (reader, mut writer) = tokio::io::split(acceptor.accept(socket).await?);
    let mut asked = BufReader::new(reader).lines();
    writer.write_all(b"{\"op\":\"connection\",\"connectionId\":\"c\"}\r\n").await?;
    for id in [1, 2] {
        asked.next_line().await?;
        let status = format!(
            "{{\"op\":\"status\",\"id\":{id},\"statusCode\":\"SUCCESS\",\"connectionClosed\":false}}\r\n"
        );
        writer.write_all(status.as_bytes()).await?;
    }
    writer.write_all(image().as_bytes()).await?;
    let mut ticks =
        tokio::time::interval(Duration::from_secs(1) / u32::try_from(BURSTS).unwrap_or(1));
    let (mut n, mut burst) = (0, String::new());
    loop {
        ticks.tick().await;
        let published = RealClock.now().as_millis();
        burst.clear();
        for _ in 0..LINES_PER_SECOND / BURSTS {
            n += 1;
            let (market, price, size, runner) = (n % MARKETS, 51 + n % 40, 12 + n % 90, 1 + n % 2);
            burst.push_str(&format!(
                r#"{{"op":"mcm","id":2,"clk":"AAAA{n}","pt":{published},"mc":[{{"id":"1.{market}","rc":[{{"batb":[[0,1.{price},{size}.5],[1,1.5,20]],"batl":[[0,2.5,31.2]],"id":{runner}}}],"con":true}}]}}"#
            ));
            burst.push_str("\r\n");
        }
        writer.write_all(burst.as_bytes()).await?;
        writer.flush().await?;
        sent.fetch_add(LINES_PER_SECOND / BURSTS, Ordering::SeqCst);
    }
}

/// Every market, open, with names.
fn image() -> String {
    let (now, day) = (RealClock.now(), Duration::from_secs(86_400));
    let market = |n: u64| {
        format!(
            r#"{{"id":"1.{n}","img":true,"marketDefinition":{{"status":"OPEN","inPlay":false,"marketType":"MATCH_ODDS","eventId":"{n}","eventTypeId":"2","eventName":"Ann Player{n} v Bea Other{n}","marketTime":"{}","runners":[{{"id":1,"sortPriority":1,"status":"ACTIVE","name":"Ann Player{n}"}},{{"id":2,"sortPriority":2,"status":"ACTIVE","name":"Bea Other{n}"}}]}},"rc":[{{"id":1,"batb":[[0,1.9,50]]}},{{"id":2,"batb":[[0,1.9,50]]}}]}}"#,
            now.plus(day)
        )
    };
    let markets: Vec<String> = (0..MARKETS).map(market).collect();
    format!(
        "{{\"op\":\"mcm\",\"id\":2,\"initialClk\":\"i\",\"clk\":\"a\",\"pt\":{},\"ct\":\"SUB_IMAGE\",\"mc\":[{}]}}\r\n",
        now.as_millis(),
        markets.join(",")
    )
}

/// Memory of this process, the exchange included.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("a number of KiB")
}

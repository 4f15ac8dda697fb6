//! A busy Exchange Stream through a whole adapter: a fake exchange sends 20,000 lines a second over TLS that change
//! 500 markets in turn, and the resulting messages go into a book. Fails if 1% of the prices are a second old when
//! they arrive, if memory grows, or if the adapter cannot keep up.
//!
//! `cargo bench -p linesman-adapters --bench soak [-- --seconds 600]`; the default is 30 seconds. With `--program
//! target/release/linesman` the whole service runs on one core, and a client on the other core calls its API at the
//! same time.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program for people that measures by the real clock"
)]

mod exchange;
mod program;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::message::Body;
use domain::{Catalogue, Clock as _};
use feeds::push::{self, Rights};
use linesman_adapters::build::{build, run_adapter};
use linesman_adapters::report::Reporter;
use linesman_adapters::runner::Context;
use linesman_adapters::settings::{
    Access, AdapterSettings, BetfairSettings, KindSettings, Schedule, Secret, SecretSource, Speed,
};
use linesman_adapters::sink::{Answer, NotTaken, OpenEvent, Receipt, Sink};
use market::{Book, Ids};

use crate::exchange::{LINES_PER_SECOND, MARKETS, RealClock, Sending, exchange, services};

/// Maximum age of a price at arrival, for 99% of them.
const LAG_P99_MAX: Duration = Duration::from_secs(1);
/// Maximum growth of memory from the first quarter to the end.
const GROWTH_KIB_MAX: u64 = 8 << 10;

/// A book that records the age of prices at arrival.
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
    let given = |name: &str| std::env::args().skip_while(|argument| argument != name).nth(1);
    let seconds = given("--seconds").map_or(30, |seconds| seconds.parse().expect("--seconds N"));
    let time = Duration::from_secs(seconds);
    let soaked = match given("--program") {
        Some(program) => program::soak(Path::new(&program), time),
        None => {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
            runtime.block_on(soak(time))
        }
    };
    if soaked { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn soak(time: Duration) -> bool {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sending = Arc::<Sending>::default();
    let (services, exchange) = (services().await, exchange(dir.path(), Arc::clone(&sending)).await);
    let catalogue = Arc::new(Catalogue::load(None).expect("ships with the crate"));
    let sink = Arc::new(Measured {
        book: Mutex::new(Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 1 })),
        catalogue: Arc::clone(&catalogue),
        // Allocated in advance, so that it does not count as growth.
        lags: Mutex::new(vec![Duration::ZERO; samples(time)]),
        rejected: AtomicU64::new(0),
    });
    sink.lags.lock().expect("no panic").clear();
    let settings = settings(dir.path(), &services, &exchange);
    let adapter = build(&[settings], &catalogue).expect("right settings").remove(0);
    let reporter = Reporter::new("betfair", "betfair");
    let context = Context {
        settings: Arc::clone(&adapter.settings),
        catalogue,
        clock: Arc::new(RealClock),
        sink: Arc::clone(&sink) as Arc<dyn Sink>,
        reporter: reporter.clone(),
        read_now: Arc::default(),
    };
    let task = tokio::spawn(run_adapter(adapter, context));
    tokio::time::sleep(time / 4).await;
    let (begun, before, memory) =
        (Instant::now(), sending.lines.load(Ordering::SeqCst), resident_kib());
    tokio::time::sleep(time - time / 4).await;
    let lines = sending.lines.load(Ordering::SeqCst) - before;
    let rate = lines * 1000 / u64::try_from(begun.elapsed().as_millis()).unwrap_or(1).max(1);
    let (grown, report) = (resident_kib().saturating_sub(memory), reporter.report());
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

/// More than the number of prices in this time, which is one for each market and second.
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

/// Memory of this process, including the exchange.
fn resident_kib() -> u64 {
    resident_kib_of("self")
}

fn resident_kib_of(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("a number of KiB")
}

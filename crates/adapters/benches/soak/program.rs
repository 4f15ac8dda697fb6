//! The whole service with the adapter: API latency while the exchange sends, and while it is paused.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::exchange::{LINES_PER_SECOND, Sending, exchange, services};

/// Requests per second.
const RATE: u32 = 1_000;
/// Time for which the exchange sends, and then pauses, alternating.
const TURN: Duration = Duration::from_secs(5);
/// Window over which a p99 is taken. A virtual machine pauses for tens of milliseconds now and then, so the result is
/// the lower quartile of many windows. The window is as long as the adapter's own period, so that each contains all
/// of its work.
const WINDOW: Duration = Duration::from_secs(1);
/// Maximum ratio of the API's p99 while the exchange sends to that while it is paused.
const P99_RATIO_MAX: f64 = 1.1;
const START_MAX: Duration = Duration::from_secs(60);
const ODDS: &str = "/v1/sports/tennis/odds?market=moneyline&regions=uk&limit=100";

/// The program as a child process, killed on drop.
struct Service {
    child: Child,
    program: PathBuf,
    dir: PathBuf,
    address: SocketAddr,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }
}

impl Service {
    fn start(program: &Path, dir: &Path, services: &str, exchange: &str) -> Self {
        let config = format!(
            r#"
[sandbox]
enabled = false
[adapters.exchange]
kind = "betfair"
enabled = true
terms_accepted_by = "a benchmark"
app_key = {{ env = "SOAK_SECRET" }}
username = {{ env = "SOAK_SECRET" }}
password = {{ env = "SOAK_SECRET" }}
login_url = "{services}"
api_url = "{services}"
stream = "{exchange}"
ca_file = "{}"
"#,
            dir.join("ca.pem").display()
        );
        std::fs::write(dir.join("linesman.toml"), config).expect("a file");
        let program = program.canonicalize().expect("the program is there");
        let mut child = Command::new("taskset")
            .args(["-c", "0"])
            .arg(&program)
            .args(["--config", "linesman.toml", "--data", "data", "serve"])
            .args(["--listen", "127.0.0.1:0"])
            .current_dir(dir)
            .env("SOAK_SECRET", "x")
            .env("LINESMAN_SERVER__OPS_LISTEN", "127.0.0.1:0")
            .env("LINESMAN_SERVER__WORKERS", "1")
            .env("LINESMAN_LOG__FILTER", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .expect("taskset and the program");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("Linesman is at")).expect("its address");
        let (_, address) = line.split_once("http://").expect("an address");
        let address = address.split(['/', ' ']).next().expect("an address");
        let address = address.parse().expect("an address");
        // Read its output, so that it does not block on a full pipe.
        std::thread::spawn(move || lines.count());
        Self { child, program, dir: dir.to_owned(), address }
    }

    fn key(&self) -> String {
        let limits = ["--burst-per-minute", "4000000000", "--requests-per-day", "4000000000"];
        let made = Command::new(&self.program)
            .args(["--config", "linesman.toml", "--data", "data"])
            .args(["keys", "create", "--kind", "production"])
            .args(limits)
            .current_dir(&self.dir)
            .env("SOAK_SECRET", "x")
            .output()
            .expect("the program");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).expect("a key").trim().to_owned()
    }

    fn resident_kib(&self) -> u64 {
        crate::resident_kib_of(&self.child.id().to_string())
    }
}

/// A connection that repeats one request.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    held: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr, key: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        stream.set_nonblocking(true).expect("a socket");
        let request = format!("GET {ODDS} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n");
        Self { stream, request: request.into_bytes(), held: vec![0; 256 << 10] }
    }

    /// Sends the request; returns the length of the answer's body.
    fn ask(&mut self) -> usize {
        self.stream.write_all(&self.request).expect("a connection");
        let mut read = 0;
        loop {
            let more = self.held.get_mut(read..).expect("room for an answer");
            let count = match self.stream.read(more) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                    continue;
                }
                count => count.expect("a connection"),
            };
            assert!(count > 0, "the service closed a connection");
            read += count;
            let answer = self.held.get(..read).unwrap_or_default();
            let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
                continue;
            };
            let head =
                String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").parse().expect("a number");
            if read >= end + 4 + length {
                return length;
            }
        }
    }

    /// Sends requests at an even rate until the time is over; returns the p99 of each window.
    fn windows(&mut self, time: Duration) -> Vec<Duration> {
        let (begun, step) = (Instant::now(), Duration::from_secs(1) / RATE);
        let (mut due, mut found, mut window) = (begun, Vec::new(), Vec::new());
        let mut window_ends = begun + WINDOW;
        while begun.elapsed() < time {
            // Spin: waking a sleeping core takes long and is not part of the answer. The exchange uses the core in
            // between.
            let is_late = Instant::now() >= due;
            while Instant::now() < due {
                std::thread::yield_now();
            }
            // Latency counts from the due time only if the previous answer was late, not if the exchange had the
            // core.
            let asked = if is_late { due } else { Instant::now() };
            self.ask();
            window.push(asked.elapsed());
            due += step;
            if Instant::now() >= window_ends {
                window.sort_unstable();
                found.extend(window.get(window.len() * 99 / 100).copied());
                window.clear();
                window_ends += WINDOW;
            }
        }
        found
    }
}

/// Runs the service for a time; true if the API is as fast as without the exchange.
pub(crate) fn soak(program: &Path, time: Duration) -> bool {
    let mut core = CpuSet::new();
    core.set(1);
    sched_setaffinity(None, &core).expect("two cores");
    // The measuring client has priority over the exchange on their shared core.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().on_thread_start(|| {
        setpriority_process(None, 19).expect("Linux");
    });
    let runtime = runtime.build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sending = Arc::<Sending>::default();
    let (services, exchange) = runtime
        .block_on(async { (services().await, exchange(dir.path(), Arc::clone(&sending)).await) });
    let service = Service::start(program, dir.path(), &services, &exchange);
    measure(&service, &sending, time)
}

fn measure(service: &Service, sending: &Sending, time: Duration) -> bool {
    let mut client = Client::new(service.address, &service.key());
    let begun = Instant::now();
    // A page of a hundred records is longer than this.
    while client.ask() < 10_000 {
        assert!(begun.elapsed() < START_MAX, "no odds arrived");
        std::thread::sleep(Duration::from_millis(100));
    }
    let (mut with, mut without, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let (begun, mut lines) = (Instant::now(), 0);
    while begun.elapsed() < time {
        for (is_paused, found) in [(false, &mut with), (true, &mut without)] {
            sending.is_paused.store(is_paused, Ordering::SeqCst);
            let before = sending.lines.load(Ordering::SeqCst);
            found.extend(client.windows(TURN));
            lines += sending.lines.load(Ordering::SeqCst) - before;
        }
        memory.push(service.resident_kib());
    }
    let rate = lines * 1000 / u64::try_from(begun.elapsed().as_millis() / 2).unwrap_or(1).max(1);
    let (with, without) = (lower_quartile(with), lower_quartile(without));
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    let quarter = memory.get(memory.len() / 4).copied().unwrap_or(0);
    println!(
        "{rate} lines/s in turns of {TURN:?} for {time:?}: API p99 {with:?}, without {without:?}, {ratio:.2} x; \
         {quarter} KiB after a quarter, {} KiB at the end",
        memory.last().copied().unwrap_or(0),
    );
    rate >= LINES_PER_SECOND * 95 / 100 && ratio <= P99_RATIO_MAX
}

fn lower_quartile(mut found: Vec<Duration>) -> Duration {
    found.sort_unstable();
    found.get(found.len() / 4).copied().unwrap_or(Duration::MAX)
}

//! The service under test: the release build in its own folder, pinned to one core, with a market of realistic size.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::machine::{self, SERVER_CORE};

/// Number of lines in a push.
pub(super) const BATCH_LINES: usize = 20_000;
/// Number of bookmakers, each with three markets for every event.
const BOOKMAKERS: usize = 50;
const MARKETS: usize = 3;
/// A start takes less than a second; under callgrind, some more.
const START_MAX: Duration = Duration::from_secs(120);
/// Path of every request under test.
pub(super) const ODDS: &str = "/v1/sports/tennis/odds";

/// Settings of a start.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    /// Wrapper programs and arguments.
    pub(super) under: Vec<String>,
    pub(super) refresh_interval: &'static str,
    /// Further settings.
    pub(super) env: Vec<(&'static str, String)>,
}

/// A running service; stopped when dropped.
#[derive(Debug)]
pub(super) struct Service {
    child: Child,
    setup: Setup,
    pub(super) address: SocketAddr,
    pub(super) operator: SocketAddr,
    /// Time from the start of the process to the first `/readyz` with 200.
    pub(super) start_seconds: f64,
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Service {
    /// Starts the service and waits until it is ready.
    ///
    /// # Errors
    /// It fails to start, or not in time.
    pub(super) fn start(setup: &Setup) -> Result<Self> {
        let begun = Instant::now();
        let mut words = vec!["taskset".to_owned(), "-c".to_owned(), SERVER_CORE.to_string()];
        words.extend(setup.under.iter().cloned());
        words.push(setup.program.display().to_string());
        let (first, rest) = words.split_first().context("there is nothing to start")?;
        let mut command = shell::command(first, &setup.folder);
        command
            .args(rest)
            .arg("--data")
            .arg(setup.folder.join("data"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("LINESMAN_SERVER__OPS_LISTEN", "127.0.0.1:0")
            .env("LINESMAN_SERVER__WORKERS", "1")
            .env("LINESMAN_SERVER__CONNECTIONS_MAX", "20000")
            .env("LINESMAN_SERVER__CONNECTIONS_PER_SOURCE_MAX", "20000")
            .env("LINESMAN_SANDBOX__ENABLED", "false")
            .env("LINESMAN_MARKET__REFRESH_INTERVAL", setup.refresh_interval)
            .env("LINESMAN_MARKET__STALE_AFTER", "2h")
            .env("LINESMAN_MARKET__RECORDS_PER_FEED_MAX", "500000")
            .env("LINESMAN_LOG__FILTER", "warn")
            .envs(setup.env.iter().map(|(name, value)| (*name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start linesman")?;
        let stdout = child.stdout.take().context("linesman has no stdout")?;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        // From here on dropping the service ends the child, even after an error.
        let mut service = Self {
            child,
            setup: setup.clone(),
            address: nowhere,
            operator: nowhere,
            start_seconds: 0.0,
        };
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let mut found = |start: &str| {
            let line = lines.find(|line| line.starts_with(start));
            line.and_then(|line| shell::address_in(&line)?.parse().ok())
        };
        service.address = found("Linesman is at").context("linesman did not print its address")?;
        service.operator =
            found("Metrics").context("linesman did not print its metrics' address")?;
        while !get(service.address, "/readyz", "").is_ok_and(|answer| answer.status == 200) {
            ensure!(begun.elapsed() < START_MAX, "linesman is not ready after {START_MAX:?}");
            shell::sleep(Duration::from_millis(2));
        }
        service.start_seconds = begun.elapsed().as_secs_f64();
        Ok(service)
    }

    /// Runs a verb of the program on the same folder and returns its output.
    pub(super) fn verb(&self, words: &[&str]) -> Result<String> {
        let mut command = shell::command(&self.setup.program, &self.setup.folder);
        command.arg("--data").arg(self.setup.folder.join("data")).args(words);
        Ok(shell::output(&mut command)?.trim().to_owned())
    }

    /// Creates keys with limits that are never reached.
    pub(super) fn make_keys(&self, count: usize) -> Result<Vec<String>> {
        let count = count.to_string();
        let words = ["keys", "create", "--kind", "production", "--count", &count];
        let limits = ["--burst-per-minute", "4000000000", "--requests-per-day", "4000000000"];
        let printed = self.verb(&[&words[..], &limits[..]].concat())?;
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// Creates a key without request limits that may open `streams` streams.
    pub(super) fn make_stream_key(&self, streams: usize) -> Result<String> {
        let streams = streams.to_string();
        let words = ["keys", "create", "--kind", "production", "--streams", &streams];
        let limits = ["--burst-per-minute", "4000000000", "--requests-per-day", "4000000000"];
        self.verb(&[&words[..], &limits[..]].concat())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it in an orderly way, so that its data is on disk.
    pub(super) fn stop(mut self) -> Result<()> {
        machine::terminate(self.child.id())?;
        shell::wait(&mut self.child, Duration::from_secs(60)).map(drop)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself, which needs no handling here.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// A market that is filled by pushes.
#[derive(Clone, Debug)]
pub(super) struct Market {
    feed: String,
    bookmakers: Vec<String>,
    events: usize,
    to: SocketAddr,
}

impl Market {
    /// Fills an empty service with about this number of records, half of them in tennis.
    pub(super) fn fill(service: &Service, key: &str, records: usize) -> Result<Self> {
        let books = get(service.address, "/v1/books", &format!("x-api-key: {key}\r\n"))?;
        let books: Vec<Value> = serde_json::from_slice(&books.body)?;
        let named = |book: &Value| book.get("key").and_then(Value::as_str).map(str::to_owned);
        let bookmakers: Vec<String> = books.iter().filter_map(named).take(BOOKMAKERS).collect();
        let events = records.div_ceil(bookmakers.len() * MARKETS).max(2);
        let feed = service.verb(&["feeds", "create", "bench"])?;
        let market = Self { feed, bookmakers, events, to: service.address };
        let listings: Vec<String> = (0..events).map(listing).collect();
        market.push(&listings)?;
        let all = events * market.bookmakers.len() * MARKETS;
        for first in (0..all).step_by(BATCH_LINES) {
            let lines: Vec<String> =
                (first..all.min(first + BATCH_LINES)).map(|n| market.price(n, 0)).collect();
            market.push(&lines)?;
        }
        Ok(market)
    }

    /// The same market of a restarted service.
    pub(super) fn moved_to(self, service: &Service) -> Self {
        Self { to: service.address, ..self }
    }

    /// Lines with prices that all differ from those of the previous round.
    pub(super) fn moves(&self, first: usize, count: usize, round: usize) -> Vec<String> {
        (first..first + count).map(|number| self.price(number, round)).collect()
    }

    /// The first market of a bookmaker for the first event, at a given price.
    pub(super) fn winner(&self, bookmaker: &str, price: usize) -> String {
        let place = self.bookmakers.iter().position(|key| key == bookmaker);
        self.line(place.unwrap_or(0) * MARKETS, price)
    }

    /// Pushes lines and returns the time until they were durable.
    pub(super) fn push(&self, lines: &[String]) -> Result<Duration> {
        let request = self.push_request(lines, "connection: close\r\n");
        let begun = Instant::now();
        let answer = call(self.to, &[&request])?;
        let took = begun.elapsed();
        check_receipt(&answer).map(|()| took)
    }

    fn push_request(&self, lines: &[String], headers: &str) -> Vec<u8> {
        let body = lines.join("\n");
        let head = format!(
            "POST /ingest/v1/messages HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\n{headers}\r\n",
            self.feed,
            body.len()
        );
        [head.into_bytes(), body.into_bytes()].concat()
    }

    fn price(&self, number: usize, round: usize) -> String {
        self.line(number, 100 + (round + number) % 200)
    }

    fn line(&self, number: usize, price: usize) -> String {
        let market = number % MARKETS;
        let bookmaker = number / MARKETS % self.bookmakers.len();
        let event = number / MARKETS / self.bookmakers.len() % self.events;
        let key = self.bookmakers.get(bookmaker).map_or("", String::as_str);
        let (home, away) = names(event);
        let (name, outcomes) = match market {
            0 => (
                "moneyline",
                format!(
                    r#"{{"name":"{home}","price":{price}}},{{"name":"{away}","price":-{price}}}"#
                ),
            ),
            1 => (
                "spread",
                format!(
                    r#"{{"name":"{home}","price":-{price},"point":-3.5}},{{"name":"{away}","price":-110,"point":3.5}}"#
                ),
            ),
            _ => (
                "total_points",
                format!(
                    r#"{{"name":"Over","price":-{price},"point":44.5}},{{"name":"Under","price":-110,"point":44.5}}"#
                ),
            ),
        };
        format!(
            r#"{{"type":"odds","ref":"e{event}","bookmaker":"{key}","market":"{name}","format":"american","outcomes":[{outcomes}]}}"#
        )
    }
}

/// A feed with a persistent connection.
#[derive(Debug)]
pub(super) struct Feeder<'a> {
    market: &'a Market,
    stream: BufReader<TcpStream>,
}

impl<'a> Feeder<'a> {
    pub(super) fn connect(market: &'a Market) -> Result<Self> {
        let stream = TcpStream::connect(market.to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self { market, stream: BufReader::new(stream) })
    }

    /// Pushes lines and waits for the receipt.
    pub(super) fn push(&mut self, lines: &[String]) -> Result<()> {
        self.stream.get_mut().write_all(&self.market.push_request(lines, ""))?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(
                self.stream.read_line(&mut head)? > 0,
                "the service closed a feed's connection"
            );
        }
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).context("no status")?;
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").context("a receipt without a length")?;
        answer.body = vec![0; length.parse()?];
        self.stream.read_exact(&mut answer.body)?;
        check_receipt(&answer)
    }
}

fn check_receipt(answer: &Answer) -> Result<()> {
    let receipt: Value = serde_json::from_slice(&answer.body)?;
    match receipt.get("rejected").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => Ok(()),
        Some([first, ..]) => bail!("a message was rejected: {first}"),
        None => bail!("a push was not taken: {} {receipt}", answer.status),
    }
}

fn names(event: usize) -> (String, String) {
    (format!("Alexander Homeson {event}"), format!("Daniil Guestov {event}"))
}

fn listing(event: usize) -> String {
    let sport = if event.is_multiple_of(2) { "tennis" } else { "american_football" };
    let (home, away) = names(event);
    let (day, hour, minute) = (1 + event % 28, event / 28 % 24, event % 60);
    format!(
        r#"{{"type":"event","ref":"e{event}","sport":"{sport}","competition":"Open Cup","commence_time":"2026-01-{day:02}T{hour:02}:{minute:02}:00Z","home":"{home}","away":"{away}"}}"#
    )
}

/// The bytes of a request; `headers` are whole lines.
pub(super) fn request(path: &str, headers: &str) -> Vec<u8> {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    write!(text, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n").unwrap_or_default();
    text.into_bytes()
}

/// Sends one request on a new connection.
pub(super) fn get(to: SocketAddr, path: &str, headers: &str) -> Result<Answer> {
    call(to, &[&request(path, &format!("{headers}Connection: close\r\n"))])
}

pub(super) fn call(to: SocketAddr, pieces: &[&[u8]]) -> Result<Answer> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    for piece in pieces {
        stream.write_all(piece)?;
    }
    let mut held = Vec::new();
    stream.read_to_end(&mut held)?;
    let end =
        held.windows(4).position(|four| four == b"\r\n\r\n").context("an answer without a head")?;
    let body = held.split_off(end + 4);
    let head = String::from_utf8(held)?;
    let status = head.get(9..12).and_then(|digits| digits.parse().ok()).context("no status")?;
    Ok(Answer { status, head, body })
}

/// Path of the release build, which is updated if necessary.
pub(super) fn build(repository: &shell::repository::Repository) -> Result<PathBuf> {
    shell::run(shell::cargo(repository).args(["build", "-q", "--release", "-p", "linesman"]))?;
    Ok(repository.target()?.join("release").join("linesman"))
}

/// The setup of a service in a folder.
pub(super) fn setup(
    program: &Path,
    folder: &Path,
    refresh_interval: &'static str,
) -> Result<Setup> {
    std::fs::create_dir_all(folder)?;
    Ok(Setup {
        program: program.to_owned(),
        folder: folder.to_owned(),
        under: Vec::new(),
        refresh_interval,
        env: Vec::new(),
    })
}

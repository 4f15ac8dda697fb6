//! The stream transport, for Betfair: TLS, one line per message, resumed where it was cut.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use feeds::adapter::betfair::{Betfair, Control};
use feeds::adapter::{Coverage, Read, Translator as _};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::fetch::Fetched;
use crate::report::{State, TAPE_ENDED};
use crate::runner::{Context, Made, Runner, random};
use crate::schedule::{REFUSED_WAIT, backoff};
use crate::session::{NoSession, Question, Session, market_ids};
use crate::settings::BetfairSettings;
use crate::sink::NotTaken;
use crate::tape::{Played, Player};
use crate::threads::let_requests_go_first;

const STREAM: &str = "stream-api.betfair.com:443";
const HEARTBEAT_MS: u64 = 5000;
/// The connection is dead after two heartbeat intervals without a line.
const SILENCE_MAX: Duration = Duration::from_millis(2 * HEARTBEAT_MS);
/// Maximum length of a line: the image of all markets of a subscription comes in segments.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Interval for sending conflated prices; changes within it are sent together.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// Interval of queries for the whole catalogue; below it, that for missing names.
const CATALOGUE_EVERY: Duration = Duration::from_secs(300);
const NAMES_EVERY: Duration = Duration::from_secs(5);
/// The interval reported for good reads: sources are confirmed every 10 s.
const EVERY: Duration = Duration::from_secs(10);

/// The reason why a connection ended.
#[derive(Debug)]
enum End {
    Retry(String),
    /// The session is no longer valid.
    BadSession(String),
    Refused(String),
    /// Subscribe again: the clock is unknown, or the subscription was too large.
    Again,
}

impl From<NotTaken> for End {
    fn from(why: NotTaken) -> Self {
        Self::Retry(why.to_string())
    }
}

type Catalogue = JoinHandle<Result<Vec<Vec<u8>>, String>>;

#[derive(Debug)]
pub(crate) struct Stream {
    runner: Runner,
    settings: BetfairSettings,
    translator: Betfair,
    pending: Option<Read>,
    session: Option<Session>,
    /// The markets to subscribe to, if all would be too many.
    only: Option<Vec<Box<str>>>,
    /// Earliest start of the events beyond the horizon.
    beyond: Option<Timestamp>,
    /// True if the last catalogue query was for the markets that start soonest.
    asked_soonest: bool,
    noted: Instant,
}

impl Stream {
    pub(crate) fn new(context: Context, settings: BetfairSettings, translator: Betfair) -> Self {
        Self {
            runner: Runner::new(context),
            settings,
            translator,
            pending: None,
            session: None,
            only: None,
            beyond: None,
            asked_soonest: false,
            noted: Instant::now(),
        }
    }

    /// Reads until it is dropped.
    pub(crate) async fn run(mut self) {
        if let Some(tape) = self.runner.context.settings.tape.clone() {
            if let Err(why) = self.play(&tape).await {
                self.runner.reporter().note_failed(State::Failed, why, self.runner.now());
            }
            return std::future::pending().await;
        }
        let (mut failures, mut signed_in_again) = (0, false);
        loop {
            let begun = Instant::now();
            let end = self.connect().await;
            let now = self.runner.now();
            let max = self.runner.context.settings.access.backoff_max;
            if begun.elapsed() > SILENCE_MAX {
                (failures, signed_in_again) = (0, false);
            }
            self.runner.reporter().note_reconnect();
            match end {
                End::Again => continue,
                End::BadSession(_) if !signed_in_again => {
                    (self.session, signed_in_again) = (None, true);
                    continue;
                }
                End::BadSession(why) | End::Refused(why) => {
                    self.session = None;
                    self.runner.reporter().note_failed(State::Refused, why, now);
                    self.wait(REFUSED_WAIT).await;
                    signed_in_again = false;
                }
                End::Retry(why) => {
                    failures += 1;
                    self.runner.reporter().note_failed(State::Retrying, why, now);
                    self.wait(backoff(failures, max, None, random())).await;
                }
            }
        }
    }

    async fn wait(&mut self, time: Duration) {
        let next = self.runner.now().plus(time);
        self.runner.reporter().note_next(Some(next));
        let read_now = Arc::clone(&self.runner.context.read_now);
        tokio::select! {
            () = sleep(time) => {}
            () = read_now.notified() => {}
        }
    }

    /// Runs one connection from beginning to end.
    async fn connect(&mut self) -> End {
        match self.converse().await {
            Ok(never) => never,
            Err(end) => end,
        }
    }

    async fn converse(&mut self) -> Result<End, End> {
        let session = match &self.session {
            Some(session) => session.clone(),
            None => {
                let access = self.runner.context.settings.access.clone();
                let session =
                    Session::sign_in(&self.settings, &access).await.map_err(|no| match no {
                        NoSession::Failed(why) => End::Retry(why),
                        NoSession::Refused(why) => End::Refused(why),
                    })?;
                self.session = Some(session.clone());
                session
            }
        };
        let (mut lines, mut writer) = self.open().await.map_err(End::Retry)?;
        self.expect(&mut lines, None).await?;
        let hello = json!({
            "op": "authentication", "id": 1, "appKey": session.app_key.reveal(), "session": session.token.reveal(),
        });
        send(&mut writer, &hello).await?;
        self.expect(&mut lines, Some(1)).await?;
        let subscription = self.subscription();
        send(&mut writer, &subscription).await?;
        self.follow(&mut lines, &session).await
    }

    fn subscription(&self) -> serde_json::Value {
        let filter = match &self.only {
            Some(ids) => json!({ "marketIds": ids }),
            None => json!({ "eventTypeIds": self.translator.event_types().collect::<Vec<_>>() }),
        };
        let mut message = json!({
            "op": "marketSubscription", "id": 2, "heartbeatMs": HEARTBEAT_MS, "segmentationEnabled": true,
            "marketFilter": filter,
            "marketDataFilter": { "ladderLevels": 3, "fields": ["EX_BEST_OFFERS", "EX_MARKET_DEF"] },
        });
        if let (Some((initial, clk)), Some(object)) =
            (self.translator.clocks(), message.as_object_mut())
        {
            object.insert("initialClk".to_owned(), initial.into());
            object.insert("clk".to_owned(), clk.into());
        }
        message
    }

    async fn open(&self) -> Result<(Lines, Writer), String> {
        let address = self.settings.stream.as_deref().unwrap_or(STREAM);
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let limit = self.runner.context.settings.access.timeout;
        let tls = tls(self.runner.context.settings.access.ca_file.as_deref())?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| "`stream` is not a host and port".to_owned())?;
        let connecting = async {
            let socket = TcpStream::connect(address).await?;
            socket.set_nodelay(true)?;
            TlsConnector::from(tls).connect(name, socket).await
        };
        let connected = timeout(limit, connecting)
            .await
            .map_err(|_| "the stream cannot be reached in time".to_owned())?;
        let stream = connected.map_err(|error| format!("the stream cannot be reached: {error}"))?;
        let (reader, writer) = tokio::io::split(stream);
        Ok((Lines { reader: BufReader::with_capacity(64 << 10, reader), line: Vec::new() }, writer))
    }

    /// Waits for the greeting, or for the line that answers a request.
    async fn expect(&mut self, lines: &mut Lines, asked: Option<u64>) -> Result<(), End> {
        loop {
            let line = lines.next(SILENCE_MAX).await?;
            let now = self.runner.now();
            self.translator
                .translate("stream", &line, now)
                .map_err(|drift| End::Retry(drift.to_string()))?;
            match (self.translator.take_control(), asked) {
                (Some(Control::Connected), None) => return Ok(()),
                (Some(Control::Status { id, success: true, .. }), Some(_)) if id == asked => {
                    return Ok(());
                }
                (Some(Control::Status { success: false, error, .. }), _) => {
                    return Err(end_of(error));
                }
                _ => {}
            }
        }
    }

    /// Reads lines until the connection ends.
    async fn follow(&mut self, lines: &mut Lines, session: &Session) -> Result<End, End> {
        let mut catalogue: Option<Catalogue> = None;
        let read_now = Arc::clone(&self.runner.context.read_now);
        let (mut whole, mut names) = (None::<Instant>, None::<Instant>);
        let mut last = Instant::now();
        let mut flush = tokio::time::interval(FLUSH_EVERY);
        flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = lines.next(SILENCE_MAX) => {
                    let line = line?;
                    last = Instant::now();
                    self.take_line(line).await?;
                    let_requests_go_first();
                }
                // A stream is always read; a requested read renews the names and the choice of markets.
                () = read_now.notified() => whole = None,
                answer = wait_for(&mut catalogue) => {
                    catalogue = None;
                    self.take_catalogue(answer).await?;
                }
                _ = flush.tick() => {
                    if last.elapsed() > SILENCE_MAX {
                        return Err(End::Retry("the stream is silent".to_owned()));
                    }
                    let now = self.runner.now();
                    let due = self.translator.flush(now);
                    self.add(due).await?;
                    self.add_come_near(now).await?;
                    self.send_pending().await?;
                    self.runner.tick().await?;
                    if catalogue.is_none() {
                        catalogue = self.ask_catalogue(session, &mut whole, &mut names);
                    }
                }
            }
        }
    }

    /// Queries missing names, and from time to time the whole catalogue.
    fn ask_catalogue(
        &mut self,
        session: &Session,
        whole: &mut Option<Instant>,
        names: &mut Option<Instant>,
    ) -> Option<Catalogue> {
        let is_due = |at: &Option<Instant>, every| at.is_none_or(|at| at.elapsed() >= every);
        let missing = self.translator.missing_names();
        let question = if !missing.is_empty() && is_due(names, NAMES_EVERY) {
            *names = Some(Instant::now());
            self.asked_soonest = false;
            Question::Markets(missing)
        } else if is_due(whole, CATALOGUE_EVERY) {
            *whole = Some(Instant::now());
            self.asked_soonest = true;
            self.soonest()
        } else {
            return None;
        };
        Some(tokio::spawn(session.clone().catalogue(question)))
    }

    fn soonest(&self) -> Question {
        let event_types = self.translator.event_types().map(ToOwned::to_owned).collect();
        Question::Soonest { event_types, until: self.runner.now().plus(self.settings.horizon) }
    }

    async fn take_catalogue(&mut self, answer: Result<Vec<Vec<u8>>, String>) -> Result<(), End> {
        let answers = match answer {
            Ok(answers) => answers,
            Err(why) => {
                // Prices continue; the names are queried again later.
                let name = &self.runner.context.settings.name;
                tracing::warn!(event = "adapter.catalogue_failed", adapter = %name, %why, "the catalogue of markets cannot be read");
                return Ok(());
            }
        };
        self.renew_choice(&answers)?;
        for body in answers {
            let now = self.runner.now();
            let fetched = Fetched { status: 200, headers: Vec::new(), body };
            self.runner.record("catalogue", Some(200), &fetched).await;
            match self.translator.read_catalogue(&fetched.body, now) {
                Ok(read) => self.add(read).await?,
                Err(drift) => {
                    self.runner.reporter().quarantine("catalogue", &fetched.body, &drift, now);
                }
            }
        }
        Ok(())
    }

    async fn take_line(&mut self, line: Vec<u8>) -> Result<(), End> {
        let now = self.runner.now();
        let fetched = Fetched { body: line, ..Fetched::default() };
        self.runner.record("stream", None, &fetched).await;
        match self.translator.translate("stream", &fetched.body, now) {
            Ok(read) => self.add(read).await?,
            Err(drift) => {
                self.runner.reporter().quarantine("stream", &fetched.body, &drift, now);
                // The translator's cache may lack this line's changes.
                self.translator.forget_clocks();
                return Err(End::Retry(drift.to_string()));
            }
        }
        if let Some(Control::Status { success: false, error, .. }) = self.translator.take_control()
        {
            match error.as_str() {
                "INVALID_CLOCK" => {
                    self.translator.forget_clocks();
                    return Err(End::Again);
                }
                "SUBSCRIPTION_LIMIT_EXCEEDED" if self.only.is_none() => {
                    self.translator.forget_clocks();
                    self.choose_markets().await?;
                    return Err(End::Again);
                }
                _ => return Err(end_of(error)),
            }
        }
        if self.noted.elapsed() >= Duration::from_secs(1) {
            self.noted = Instant::now();
            self.runner.reporter().note_good(now, EVERY, false, Duration::ZERO);
        }
        Ok(())
    }

    /// All markets are too many: subscribes to those that start soonest.
    async fn choose_markets(&mut self) -> Result<(), End> {
        let Some(session) = self.session.clone() else { return Ok(()) };
        let answers = session.catalogue(self.soonest()).await.map_err(End::Retry)?;
        let ids = market_ids(&answers);
        if ids.is_empty() {
            return Err(End::Refused(
                "the subscription limit is exceeded, and the catalogue lists no markets".to_owned(),
            ));
        }
        self.only = Some(ids);
        Ok(())
    }

    /// Renews the subscription if it covers only some markets and others start sooner now.
    fn renew_choice(&mut self, answers: &[Vec<u8>]) -> Result<(), End> {
        let Some(only) = self.only.as_ref().filter(|_| self.asked_soonest) else { return Ok(()) };
        let soonest = market_ids(answers);
        if soonest.iter().all(|id| only.contains(id)) {
            return Ok(());
        }
        self.only = Some(soonest);
        self.translator.forget_clocks();
        Err(End::Again)
    }

    /// Lists the events that have come within the horizon, with their prices.
    async fn add_come_near(&mut self, now: Timestamp) -> Result<(), NotTaken> {
        let until = now.plus(self.settings.horizon);
        if self.beyond.is_none_or(|start| start > until) {
            return Ok(());
        }
        match self.translator.everything(now) {
            Some(everything) => self.add(everything).await,
            None => Ok(()),
        }
    }

    /// Adds a read to the pending one; urgent content is sent at once.
    async fn add(&mut self, mut read: Read) -> Result<(), NotTaken> {
        let is_whole = read.coverage != Coverage::Delta;
        // A tape holds only events that were within the horizon when it was recorded.
        if self.runner.context.settings.tape.is_none() {
            let until = self.runner.now().plus(self.settings.horizon);
            let starts = read.listings.iter().map(|listed| listed.listing.commence_time);
            let beyond = starts.filter(|start| *start > until);
            self.beyond = beyond.chain(self.beyond.filter(|_| !is_whole)).min();
            read.listings.retain(|listed| listed.listing.commence_time <= until);
        }
        let urgent = is_whole || read.markets.iter().any(|market| market.suspended);
        let says_nothing = read.listings.is_empty()
            && read.markets.is_empty()
            && read.scores.is_empty()
            && read.confirmed.is_empty()
            && read.dropped.is_empty()
            && read.unmapped.is_empty();
        if is_whole {
            self.send_pending().await?;
            self.pending = Some(read);
        } else if !says_nothing {
            match &mut self.pending {
                Some(pending) => pending.append(read),
                None => self.pending = Some(read),
            }
        }
        if urgent { self.send_pending().await } else { Ok(()) }
    }

    async fn send_pending(&mut self) -> Result<(), NotTaken> {
        let Some(read) = self.pending.take() else { return Ok(()) };
        let made = Made { unit: "stream", at: self.runner.now(), every: EVERY, all_read: true };
        let taken = self.runner.take(read, made).await;
        if taken.is_err() {
            // The lost changes are in the translator's cache, which a new image renews.
            self.translator.forget_clocks();
        }
        taken
    }

    async fn play(&mut self, path: &Path) -> Result<(), String> {
        for played in Player::open(path, self.runner.context.settings.speed)? {
            let Played { record, body, wait, begins } = played?;
            if let Some(first) = begins {
                self.runner.begin_tape(first);
            }
            sleep(wait).await;
            let now = self.runner.now();
            let read = match record.unit.as_str() {
                "catalogue" => self.translator.read_catalogue(&body, now),
                _ => self.translator.translate("stream", &body, now),
            };
            match read {
                Ok(read) => self.add(read).await.map_err(|why| why.to_string())?,
                Err(drift) => self.runner.reporter().quarantine(&record.unit, &body, &drift, now),
            }
            self.send_pending().await.map_err(|why| why.to_string())?;
            self.runner.reporter().note_good(now, EVERY, false, Duration::ZERO);
        }
        // Flush the conflated prices as of a later time, when they are due.
        let due = self.translator.flush(self.runner.now().plus(self.settings.emit_every * 2));
        self.add(due).await.map_err(|why| why.to_string())?;
        self.send_pending().await.map_err(|why| why.to_string())?;
        let now: Timestamp = self.runner.now();
        self.runner.reporter().set(State::Ok, TAPE_ENDED, now);
        Ok(())
    }
}

/// The end that an error of the stream causes.
fn end_of(error: String) -> End {
    match error.as_str() {
        "INVALID_SESSION_INFORMATION" | "NO_SESSION" => End::BadSession(error),
        "NO_APP_KEY" | "INVALID_APP_KEY" | "NOT_AUTHORIZED" | "MAX_CONNECTION_LIMIT_EXCEEDED" => {
            End::Refused(error)
        }
        _ => End::Retry(format!("the stream ended: {error}")),
    }
}

/// The answer of the catalogue; pending forever if there is no query.
async fn wait_for(catalogue: &mut Option<Catalogue>) -> Result<Vec<Vec<u8>>, String> {
    match catalogue {
        Some(task) => task.await.unwrap_or_else(|error| Err(error.to_string())),
        None => std::future::pending().await,
    }
}

type Writer = WriteHalf<TlsStream<TcpStream>>;

struct Lines {
    reader: BufReader<ReadHalf<TlsStream<TcpStream>>>,
    line: Vec<u8>,
}

impl Lines {
    /// The next line without its line end. If cancelled, the next call continues the line.
    async fn next(&mut self, within: Duration) -> Result<Vec<u8>, End> {
        let reading = async {
            loop {
                let held = self
                    .reader
                    .fill_buf()
                    .await
                    .map_err(|error| End::Retry(format!("the stream failed: {error}")))?;
                if held.is_empty() {
                    return Err(End::Retry("the stream was closed".to_owned()));
                }
                let end = held.iter().position(|byte| *byte == b'\n');
                let used = end.map_or(held.len(), |end| end + 1);
                self.line.extend_from_slice(held.get(..used).unwrap_or_default());
                self.reader.consume(used);
                if self.line.len() > LINE_BYTES_MAX {
                    return Err(End::Retry("a line of the stream is too long".to_owned()));
                }
                if end.is_some() {
                    let line = std::mem::take(&mut self.line);
                    return Ok(line.trim_ascii_end().to_vec());
                }
            }
        };
        timeout(within, reading)
            .await
            .unwrap_or_else(|_| Err(End::Retry("the stream is silent".to_owned())))
    }
}

async fn send(writer: &mut Writer, message: &serde_json::Value) -> Result<(), End> {
    let line = format!("{message}\r\n");
    let sending = async {
        writer.write_all(line.as_bytes()).await?;
        writer.flush().await
    };
    match timeout(SILENCE_MAX, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(End::Retry(format!("the stream failed: {error}"))),
        Err(_) => Err(End::Retry("writing to the stream timed out".to_owned())),
    }
}

fn tls(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match ca_file {
        None => builder
            .with_platform_verifier()
            .map_err(|error| error.to_string())?
            .with_no_client_auth(),
        Some(path) => {
            let wrong = |_| format!("{} is not PEM", path.display());
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(path).map_err(wrong)? {
                roots.add(certificate.map_err(wrong)?).map_err(|error| error.to_string())?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    Ok(Arc::new(config))
}

//! Requests to a bucket: signed, bounded in time and size, and tried again where that is safe.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use domain::Timestamp;
use http_body::{Body, Frame, SizeHint};
use reqwest::redirect::Policy;
use reqwest::{Method, Url};
use tokio_rustls::rustls::crypto::ring;

use super::BucketOptions;
use super::sign::{Credentials, Signed, compact_time, encode};
use super::worker::Worker;
use crate::durable::count;

/// How long an answer may take to begin, and each piece of it to come; what is sent may take longer, at this speed.
const WAIT_MAX: Duration = Duration::from_secs(5);
const SLOWEST_BYTES_PER_S: u64 = 1 << 20;
/// Tries of one request, and the pause before the second; the one before the third is longer.
const TRIES_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// For how long a bucket that does not answer is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(3);
/// What is read of a file at a time to be sent.
const PIECE_BYTES: usize = 64 << 10;
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const USER_AGENT: &str = concat!("linesman/", env!("CARGO_PKG_VERSION"));

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    method: Method,
    /// Of the object; empty: of the bucket.
    key: String,
    query: Vec<(&'static str, String)>,
    range: Option<Range<u64>>,
    /// The object must not exist.
    exclusive: bool,
    payload: Payload,
    /// What the answer may have.
    bytes_max: u64,
}

/// What is sent, and its checksum.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    Nothing,
    Memory(Bytes, String),
    File(Arc<File>, u64, String),
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) range: Option<String>,
    pub(super) body: Bytes,
}

impl Ask {
    fn new(method: Method, key: String) -> Self {
        let (query, payload) = (Vec::new(), Payload::Nothing);
        let bytes_max = super::ANSWER_MAX;
        Self { method, key, query, range: None, exclusive: false, payload, bytes_max }
    }

    pub(super) fn get(key: String, bytes_max: u64) -> Self {
        // A refusal takes some space as well.
        Self { bytes_max: bytes_max.max(super::ANSWER_MAX), ..Self::new(Method::GET, key) }
    }

    pub(super) fn put(key: String, payload: Payload) -> Self {
        Self { payload, ..Self::new(Method::PUT, key) }
    }

    /// The same where the object must not exist.
    pub(super) fn put_new(key: String, payload: Payload) -> Self {
        Self { exclusive: true, ..Self::put(key, payload) }
    }

    pub(super) fn get_range(key: String, range: Range<u64>) -> Self {
        let wanted = range.end.saturating_sub(range.start);
        Self { range: Some(range), ..Self::get(key, wanted) }
    }

    pub(super) fn delete(key: String) -> Self {
        Self::new(Method::DELETE, key)
    }

    pub(super) fn list(prefix: &str, next: Option<&str>, bytes_max: u64) -> Self {
        let next = next.map(|next| ("continuation-token", next.to_owned()));
        let fixed = [("list-type", "2".to_owned()), ("prefix", prefix.to_owned())];
        let query = next.into_iter().chain(fixed).collect();
        Self { query, bytes_max, ..Self::new(Method::GET, String::new()) }
    }

    fn sent_bytes(&self) -> u64 {
        match &self.payload {
            Payload::Nothing => 0,
            Payload::Memory(bytes, _) => count(bytes.len()),
            Payload::File(_, bytes, _) => *bytes,
        }
    }

    fn sha256(&self) -> &str {
        match &self.payload {
            Payload::Nothing => EMPTY_SHA256,
            Payload::Memory(_, sha256) | Payload::File(_, _, sha256) => sha256,
        }
    }

    /// Path and query as they are sent and signed.
    fn target(&self, bucket: &str) -> (String, String) {
        let (mut path, mut query) = (String::from("/"), String::new());
        encode(bucket, None, &mut path);
        path.push('/');
        encode(&self.key, Some(b'/'), &mut path);
        for (name, value) in &self.query {
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str(name);
            query.push('=');
            encode(value, None, &mut query);
        }
        (path, query)
    }
}

/// Why a request had no answer.
#[derive(Debug)]
struct Failure {
    why: String,
    /// It may have one if it is tried again soon.
    again: bool,
}

/// Asks a bucket.
pub(super) struct Client {
    worker: Worker,
    shared: Arc<Shared>,
    /// Until when it is left alone, and why.
    down: Mutex<Option<(Instant, String)>>,
}

struct Shared {
    http: reqwest::Client,
    endpoint: String,
    host: String,
    bucket: String,
    region: String,
    credentials: Credentials,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("host", &self.shared.host).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(options: &BucketOptions) -> Result<Self, String> {
        // The one TLS library that is built. Where somebody chose before, that stays.
        let _chosen = ring::default_provider().install_default();
        let url = Url::parse(&options.endpoint)
            .map_err(|_| "`history.s3_endpoint` is no address".to_owned())?;
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let http = reqwest::Client::builder()
            .connect_timeout(WAIT_MAX)
            .redirect(Policy::none())
            .no_proxy()
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| describe(&error))?;
        let shared = Shared {
            http,
            endpoint: format!("{}://{host}", url.scheme()),
            host,
            bucket: options.bucket.clone(),
            region: options.region.clone(),
            credentials: options.credentials.clone(),
        };
        Ok(Self { worker: Worker::start()?, shared: Arc::new(shared), down: Mutex::default() })
    }

    /// # Errors
    /// There was no whole answer; the message holds no credentials.
    pub(super) fn send(&self, ask: Ask) -> Result<Answer, String> {
        if let Some((until, why)) = &*self.down()
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
        let shared = Arc::clone(&self.shared);
        let sent = self.worker.call(async move { shared.try_all(&ask).await })?;
        *self.down() = match &sent {
            Ok(_) => None,
            Err(why) => Some((Instant::now() + LEFT_ALONE, why.clone())),
        };
        sent
    }

    fn down(&self) -> std::sync::MutexGuard<'_, Option<(Instant, String)>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    async fn try_all(&self, ask: &Ask) -> Result<Answer, String> {
        let mut tried = 1;
        loop {
            let failure = match self.try_once(ask).await {
                Ok(answer) if answer.status >= 500 || answer.status == 429 => {
                    // Not implemented is an answer.
                    if answer.status == 501 {
                        return Ok(answer);
                    }
                    Failure { why: format!("it answers {}", answer.status), again: true }
                }
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if !failure.again || tried >= TRIES_MAX {
                return Err(failure.why);
            }
            tokio::time::sleep(PAUSE * tried * tried).await;
            tried += 1;
        }
    }

    async fn try_once(&self, ask: &Ask) -> Result<Answer, Failure> {
        let (path, query) = ask.target(&self.bucket);
        let now = now();
        let time = compact_time(now);
        let range =
            ask.range.as_ref().map(|range| format!("bytes={}-{}", range.start, range.end - 1));
        let token = self.credentials.session_token.as_deref();
        // In the order of their names, as they are signed.
        let headers: Vec<(&str, &str)> = [
            Some(("host", &*self.host)),
            ask.exclusive.then_some(("if-none-match", "*")),
            range.as_deref().map(|range| ("range", range)),
            Some(("x-amz-content-sha256", ask.sha256())),
            Some(("x-amz-date", &*time)),
            token.map(|token| ("x-amz-security-token", token)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let signed = Signed {
            method: ask.method.as_str(),
            path: &path,
            query: &query,
            headers: &headers,
            payload: ask.sha256(),
            at: now,
            region: &self.region,
        };
        let mark = if query.is_empty() { "" } else { "?" };
        let mut request = self
            .http
            .request(ask.method.clone(), format!("{}{path}{mark}{query}", self.endpoint))
            .header("authorization", signed.authorization(&self.credentials));
        for (name, value) in headers.into_iter().filter(|(name, _)| *name != "host") {
            request = request.header(name, value);
        }
        request = match &ask.payload {
            Payload::Nothing => request,
            Payload::Memory(bytes, _) => request.body(bytes.clone()),
            Payload::File(file, bytes, _) => {
                let (file, rest) = (Arc::clone(file), *bytes);
                let body = reqwest::Body::wrap(FileBody { file, at: 0, rest });
                request.header("content-length", rest).body(body)
            }
        };
        let sending = Duration::from_secs(ask.sent_bytes() / SLOWEST_BYTES_PER_S);
        let answer = in_time(WAIT_MAX + sending, request.send()).await?;
        read(answer, ask.bytes_max).await
    }
}

async fn read(mut answer: reqwest::Response, bytes_max: u64) -> Result<Answer, Failure> {
    let status = answer.status().as_u16();
    let range = answer.headers().get("content-range").and_then(|range| range.to_str().ok());
    let range = range.map(str::to_owned);
    let mut body = Vec::new();
    while let Some(chunk) = in_time(WAIT_MAX, answer.chunk()).await? {
        if count(body.len() + chunk.len()) > bytes_max {
            let why = "it answers more than was asked for".to_owned();
            return Err(Failure { why, again: false });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, range, body: body.into() })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a signature holds for the time of day, whatever a test's clock says"
)]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What takes too long would take as long again.
async fn in_time<T>(
    time_max: Duration,
    asked: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(time_max, asked).await {
        Ok(answered) => answered.map_err(|error| Failure { why: describe(&error), again: true }),
        Err(_) => Err(Failure { why: "it does not answer in time".to_owned(), again: false }),
    }
}

/// The causes of an error without the address.
fn describe(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    let what = if error.is_connect() { "cannot connect" } else { "the request failed" };
    // The last cause is the one that says why.
    causes.pop().map_or(what.to_owned(), |why| format!("{what}: {why}"))
}

/// A file that is sent a piece at a time.
#[derive(Debug)]
struct FileBody {
    file: Arc<File>,
    at: u64,
    rest: u64,
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.rest == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; usize::try_from(self.rest).unwrap_or(usize::MAX).min(PIECE_BYTES)];
        // Nothing but requests to the bucket runs on this thread.
        let read = match self.file.read_exact_at(&mut piece, self.at) {
            Ok(()) => count(piece.len()),
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        self.at += read;
        self.rest -= read;
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest)
    }
}

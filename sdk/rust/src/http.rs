//! Requests with a secret in one header: sending, retries, and the meaning of responses.

use std::error::Error as _;
use std::fmt;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, DATE, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER, USER_AGENT,
};
use reqwest::{Method, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::clock::{Clock, SystemClock};
use crate::error::{Error, ErrorCode, Result};

const RETRIES_MAX: u32 = 2;
/// Statuses after which a GET may be repeated.
pub(crate) const RETRIED: [u16; 4] = [500, 502, 503, 504];
const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// Far larger than the largest page: a server that sends more is not Linesman.
const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Maximum number of digits of `Retry-After` in seconds.
const RETRY_AFTER_DIGITS_MAX: usize = 9;
const AGENT: &str = concat!("linesman-client-rust/", env!("CARGO_PKG_VERSION"));

/// Settings of a client.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) max_wait: Duration,
    pub(crate) timeout: Duration,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_wait: Duration::from_secs(60),
            timeout: Duration::from_secs(30),
            headers: Vec::new(),
            clock: Arc::new(SystemClock::new()),
        }
    }
}

/// A key or token, as the value of its header; if it is empty, nothing is sent.
pub(crate) struct Secret {
    header: HeaderName,
    value: Option<HeaderValue>,
}

impl Secret {
    pub(crate) fn key(key: &str) -> Result<Self> {
        Self::new(HeaderName::from_static("x-api-key"), "", key)
    }

    pub(crate) fn token(token: &str) -> Result<Self> {
        Self::new(AUTHORIZATION, "Bearer ", token)
    }

    fn new(header: HeaderName, prefix: &str, secret: &str) -> Result<Self> {
        let message =
            format!("the value for {header} has characters that a key or token cannot have");
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::configuration(message));
        }
        let value = HeaderValue::try_from(format!("{prefix}{secret}"));
        let mut value = value.map_err(|_| Error::configuration(message))?;
        value.set_sensitive(true);
        Ok(Self { header, value: (!secret.is_empty()).then_some(value) })
    }
}

/// Sends requests to one server.
pub(crate) struct Http {
    client: reqwest::Client,
    /// Without a trailing slash.
    pub(crate) url: String,
    headers: HeaderMap,
    pub(crate) settings: Settings,
}

impl fmt::Debug for Http {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The headers contain the secret.
        text.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A request to send.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a Method,
    /// Path and query.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    /// Statuses after which it is repeated.
    pub(crate) retried: &'a [u16],
}

impl Http {
    pub(crate) fn new(url: &str, secret: Secret, settings: Settings) -> Result<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let wrong = || Error::configuration(format!("{name} is not a header that can be sent"));
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
            else {
                return Err(wrong());
            };
            headers.insert(name, value);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.extend(secret.value.map(|value| (secret.header, value)));
        // A provider that the program chose before is kept.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            // The key belongs to one server.
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(settings.timeout)
            .build()
            .map_err(|error| Error::configuration(format!("no TLS: {}", reason(&error))))?;
        Ok(Self { client, url: base_url(url)?, headers, settings })
    }

    /// Sends a request until it succeeds, fails permanently, or has failed too often. A GET is repeated after no
    /// response and 429 `rate_limited` too; other requests only after a status in `retried`.
    pub(crate) async fn exchange(&self, request: Request<'_>) -> Result<Response> {
        let mut retries = 0;
        loop {
            let error = match self.send(request).await {
                Ok(head) => match self.read(head).await {
                    Ok(response) if response.is_success() => return Ok(response),
                    Ok(response) => response.error(),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            self.wait_or_fail(error, request, retries).await?;
            retries += 1;
        }
    }

    /// Opens a response that is read in pieces, with the same retries.
    pub(crate) async fn open(&self, request: Request<'_>) -> Result<reqwest::Response> {
        let mut retries = 0;
        loop {
            let error = match self.send(request).await {
                Ok(head) if head.status().is_success() => return Ok(head),
                Ok(head) => match self.read(head).await {
                    Ok(response) => response.error(),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            self.wait_or_fail(error, request, retries).await?;
            retries += 1;
        }
    }

    /// Waits before the next attempt; returns the error if there is none.
    async fn wait_or_fail(&self, error: Error, request: Request<'_>, retries: u32) -> Result<()> {
        let is_get = *request.method == Method::GET;
        let is_temporary = match (error.code(), error.status()) {
            // A used-up quota is not restored by waiting, whatever status a server sends.
            (ErrorCode::QuotaExceeded, _) => false,
            (ErrorCode::RateLimited | ErrorCode::ConnectionFailed, _) if is_get => true,
            (_, Some(status)) => request.retried.contains(&status),
            (_, None) => false,
        };
        if !is_temporary || retries == RETRIES_MAX {
            return Err(error);
        }
        let clock = &self.settings.clock;
        let (least, wait) = match error.retry_after() {
            Some(seconds) => (seconds, seconds * (1.0 + clock.random() / 10.0)),
            None => {
                let least = backoff(retries).as_secs_f64();
                (least, least * (0.75 + clock.random() / 2.0))
            }
        };
        if least > self.settings.max_wait.as_secs_f64() {
            return Err(error);
        }
        clock.sleep(Duration::try_from_secs_f64(wait).unwrap_or(self.settings.max_wait)).await;
        Ok(())
    }

    async fn send(&self, request: Request<'_>) -> Result<reqwest::Response> {
        let url = format!("{}{}", self.url, request.target);
        let mut sent = self.client.request(request.method.clone(), url);
        sent = sent.headers(self.headers.clone()).headers(request.headers.clone());
        if !request.body.is_empty() {
            sent = sent.body(request.body.to_vec());
        }
        match tokio::time::timeout(self.settings.timeout, sent.send()).await {
            Ok(Ok(head)) => Ok(head),
            Ok(Err(error)) => Err(self.no_response(&reason(&error.without_url()))),
            Err(_) => Err(self.no_response("it takes too long")),
        }
    }

    async fn read(&self, mut head: reqwest::Response) -> Result<Response> {
        let (status, headers) = (head.status().as_u16(), head.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut head, self.settings.timeout).await? {
            body.extend_from_slice(&chunk);
            if body.len() > RESPONSE_BYTES_MAX {
                return Err(too_large(status));
            }
        }
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip") {
            body = unpack(&body, status)?;
        }
        Ok(Response { status, headers, body })
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn next_chunk(
        &self,
        head: &mut reqwest::Response,
        timeout: Duration,
    ) -> Result<Option<Vec<u8>>> {
        match tokio::time::timeout(timeout, head.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(|chunk| chunk.to_vec())),
            Ok(Err(error)) => Err(self.no_response(&reason(&error.without_url()))),
            Err(_) => Err(self.no_response("it takes too long")),
        }
    }

    fn no_response(&self, why: &str) -> Error {
        let message = format!("no response from {}: {why}", self.url);
        Error::new(ErrorCode::ConnectionFailed, message)
    }
}

/// The wait before a retry, without the random part.
pub(crate) fn backoff(retries: u32) -> Duration {
    (Duration::from_millis(500) * 2_u32.saturating_pow(retries.min(8))).min(BACKOFF_MAX)
}

/// Headers of a request whose answer may be compressed.
pub(crate) fn packed() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))])
}

fn unpack(body: &[u8], status: u16) -> Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    let most = u64::try_from(RESPONSE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut reader = MultiGzDecoder::new(body).take(most + 1);
    if reader.read_to_end(&mut unpacked).is_err() {
        return Err(unexpected(status, "is not gzip, as it says"));
    }
    if unpacked.len() > RESPONSE_BYTES_MAX { Err(too_large(status)) } else { Ok(unpacked) }
}

fn unexpected(status: u16, what: &str) -> Error {
    let message =
        format!("the response with status {status} {what}: is the URL that of a Linesman server?");
    Error::new(ErrorCode::UnexpectedResponse, message).with_status(status)
}

fn too_large(status: u16) -> Error {
    unexpected(status, &format!("is larger than {RESPONSE_BYTES_MAX} bytes"))
}

/// Why a request failed: the innermost cause is the most specific.
fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut text = error.to_string();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

fn base_url(text: &str) -> Result<String> {
    let wrong = || Error::configuration("the url is not an address such as http://127.0.0.1:8080");
    let url = Url::parse(text).map_err(|_| wrong())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::configuration("the url must not contain a user and password"));
    }
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::configuration("the url must have no query and no fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Response {
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status) || self.status == 304
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        let read = serde_json::from_slice(&self.body);
        read.map_err(|error| self.unexpected(&format!("cannot be read ({error})")))
    }

    /// The error for a response that the API does not define.
    pub(crate) fn unexpected(&self, what: &str) -> Error {
        let request_id = self.header("x-request-id").map(str::to_owned);
        unexpected(self.status, what).with_request_id(request_id)
    }

    /// The error that a response other than 2xx and 304 describes.
    pub(crate) fn error(&self) -> Error {
        #[derive(Deserialize)]
        struct Body {
            error: ErrorDetails,
        }
        #[derive(Deserialize)]
        struct ErrorDetails {
            code: String,
            message: String,
            request_id: Option<String>,
            param: Option<String>,
        }
        let Ok(Body { error: details }) = serde_json::from_slice(&self.body) else {
            let error = self.unexpected("has not the form of an error");
            return error.with_retry_after(self.retry_after());
        };
        let request_id =
            details.request_id.or_else(|| self.header("x-request-id").map(str::to_owned));
        Error::new(ErrorCode::from(details.code.as_str()), details.message)
            .with_status(self.status)
            .with_param(details.param)
            .with_request_id(request_id)
            .with_retry_after(self.retry_after())
    }

    /// `Retry-After` in seconds; a date counts from the response's own `Date`.
    fn retry_after(&self) -> Option<f64> {
        let text = self.header(RETRY_AFTER.as_str())?;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let far = text.len() > RETRY_AFTER_DIGITS_MAX;
            return if far { Some(f64::MAX) } else { text.parse().ok() };
        }
        let until = httpdate::parse_http_date(text).ok()?;
        let now = httpdate::parse_http_date(self.header(DATE.as_str())?).ok()?;
        Some(until.duration_since(now).unwrap_or_default().as_secs_f64())
    }
}

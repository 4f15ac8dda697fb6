//! One HTTP request to an upstream: bounded in time and size, no cleartext beyond this machine, no redirect to another
//! host, and no query in any error.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use domain::Timestamp;
use feeds::adapter::BODY_BYTES_MAX;
use flate2::read::MultiGzDecoder;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Method, Url};
use tokio_rustls::rustls::crypto::ring;

use crate::settings::{Access, Secret};

const REDIRECTS_MAX: usize = 5;
const USER_AGENT: &str = concat!("linesman/", env!("CARGO_PKG_VERSION"));

/// The HTTP client of one adapter.
#[derive(Clone, Debug)]
pub(crate) struct Client(reqwest::Client);

/// A request to an upstream.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Secret)>,
    /// Makes the request a POST.
    pub(crate) body: Option<Secret>,
}

/// The answer of an upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    /// Headers that decisions depend on and that tapes record; names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Headers of an answer that are kept.
const KEPT: [&str; 10] = [
    "age",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "retry-after",
    "x-requests-last",
    "x-requests-remaining",
    "x-requests-used",
    "link",
];

impl Fetched {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        // The Odds API has sent fractions here.
        self.header(name)?.split('.').next()?.trim().parse().ok()
    }

    pub(crate) fn date(&self) -> Option<Timestamp> {
        parse_date(self.header("date")?)
    }

    /// The wait that upstream asks for.
    pub(crate) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let text = self.header("retry-after")?;
        let seconds = text.trim().parse().ok().map(Duration::from_secs);
        seconds.or_else(|| Some(parse_date(text)?.since(now)))
    }
}

/// An HTTP date.
fn parse_date(text: &str) -> Option<Timestamp> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let instant = parser.parse_timestamp(text.trim()).ok()?;
    Some(Timestamp::from_millis(instant.as_millisecond()))
}

/// An address without the parts that may hold a secret: user, password and query.
pub(crate) fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => {
            let host = url.host_str().unwrap_or_default();
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{host}{port}{}", url.scheme(), url.path())
        }
        Err(_) => "an address that cannot be read".to_owned(),
    }
}

/// Checks that an address may be requested: https, or http on this machine.
///
/// # Errors
/// It may not; the message does not contain its query.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url)
        .map_err(|_| "is not an address such as https://example.com/odds".to_owned())?;
    let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match parsed.scheme() {
        "https" => Ok(()),
        "http" if is_local => Ok(()),
        "http" => Err(format!("{} is cleartext; only https may leave this machine", shown(url))),
        other => Err(format!("has the scheme {other}; it must be https")),
    }
}

impl Client {
    pub(crate) fn new(access: &Access, identity: Option<&[u8]>) -> Result<Self, String> {
        // The only TLS provider that is built. A provider that is already installed stays.
        let _chosen = ring::default_provider().install_default();
        let policy = Policy::custom(|attempt| {
            let same = attempt.previous().first().is_some_and(|first| {
                let to = attempt.url();
                (first.scheme(), first.host_str(), first.port())
                    == (to.scheme(), to.host_str(), to.port())
            });
            if !same {
                return attempt.error("it redirects to another host");
            }
            if attempt.previous().len() > REDIRECTS_MAX { attempt.stop() } else { attempt.follow() }
        });
        let mut builder = reqwest::Client::builder()
            .timeout(access.timeout)
            .connect_timeout(access.timeout)
            .redirect(policy)
            .no_proxy()
            .user_agent(USER_AGENT);
        if let Some(file) = &access.ca_file {
            builder = builder.tls_certs_only(certificates(file)?);
        }
        if let Some(pem) = identity {
            let identity = reqwest::Identity::from_pem(pem);
            builder = builder
                .identity(identity.map_err(|_| "`cert` and `cert_key` are not PEM".to_owned())?);
        }
        builder.build().map(Self).map_err(|error| describe(&error))
    }

    /// # Errors
    /// There was no complete answer; the message contains no query and no header.
    pub(crate) async fn send(&self, request: &Request) -> Result<Fetched, String> {
        check_url(&request.url)?;
        let method = if request.body.is_some() { Method::POST } else { Method::GET };
        let mut headers = HeaderMap::new();
        headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
        for (name, value) in &request.headers {
            let header = HeaderName::try_from(name.as_str()).ok();
            let value = HeaderValue::try_from(value.reveal()).ok();
            let (header, mut value) =
                header.zip(value).ok_or_else(|| format!("header `{name}` is not valid"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let mut sent = self.0.request(method, &request.url).headers(headers);
        if let Some(body) = &request.body {
            sent = sent.body(body.reveal().to_owned());
        }
        let mut answer = sent.send().await.map_err(|error| describe(&error))?;
        let status = answer.status().as_u16();
        let kept = |name: &&str| {
            let value = answer.headers().get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), value.chars().take(1000).collect()))
        };
        let headers: Vec<(String, String)> = KEPT.iter().filter_map(kept).collect();
        let packed = answer.headers().get("content-encoding").is_some_and(|value| value == "gzip");
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| describe(&error))? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        let body = if packed { unpack(body).await? } else { body };
        Ok(Fetched { status, headers, body })
    }
}

fn too_large() -> String {
    format!("the answer has more than {} MiB", BODY_BYTES_MAX >> 20)
}

async fn unpack(packed: Vec<u8>) -> Result<Vec<u8>, String> {
    let unpacking = tokio::task::spawn_blocking(move || {
        let mut body = Vec::new();
        let limit = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let read = MultiGzDecoder::new(&*packed).take(limit).read_to_end(&mut body);
        match read {
            Ok(_) if body.len() > BODY_BYTES_MAX => Err(too_large()),
            Ok(_) => Ok(body),
            Err(_) => Err("the answer is not gzip although its header says so".to_owned()),
        }
    });
    unpacking.await.unwrap_or_else(|_| Err("the answer could not be unpacked".to_owned()))
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, String> {
    let pem =
        std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Certificate::from_pem_bundle(&pem).map_err(|_| format!("{} is not PEM", file.display()))
}

/// An error without the address, which may contain a key, and with its root cause.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "upstream did not answer in time".to_owned();
    }
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    let what = if error.is_connect() { "cannot connect" } else { "the request failed" };
    // The last cause is the root cause.
    causes.pop().map_or(what.to_owned(), |why| format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_in_cleartext() {
        for good in [
            "https://api.example.com/x?k=1",
            "http://127.0.0.1:80/",
            "http://[::1]/",
            "http://localhost:9/",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for bad in [
            "http://api.example.com/?key=hunter2",
            "ftp://x?key=hunter2",
            "x",
            "http://10.0.0.1/",
            "http://127.0.0.1.example.com/",
        ] {
            let why = check_url(bad).unwrap_err();
            assert!(!why.contains("hunter2"), "{why}");
        }
        assert_eq!(
            shown("https://u:p@example.com:8/a/b?key=hunter2#x"),
            "https://example.com:8/a/b"
        );
    }

    #[test]
    fn headers_say_how_long_to_wait() {
        let fetched = |value: &str| Fetched {
            headers: vec![("retry-after".to_owned(), value.to_owned())],
            ..Fetched::default()
        };
        let now = Timestamp::from_secs(1_800_000_000);
        let wait = |value: &str| fetched(value).retry_after(now).map(|wait| wait.as_secs());
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait("Fri, 15 Jan 2027 08:01:00 GMT"), Some(60));
        assert_eq!(wait("Fri, 15 Jan 2027 07:00:00 GMT"), Some(0), "it is over");
        assert_eq!(wait("soon"), None);
    }
}

//! Sends the requests of `object_store` to a bucket: bounded in time and size, with errors that report the answer but
//! contain no secrets.

use std::error::Error;
use std::future::Future;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use tokio_rustls::rustls::crypto::ring;

use crate::durable::count;

/// Maximum time until an answer starts, and between pieces of it; sending may take longer, at this minimum speed.
const WAIT_MAX: Duration = Duration::from_secs(5);
const SLOWEST_BYTES_PER_S: u64 = 1 << 20;
/// Minimum speed at which an answer has to come.
const SLOWEST_ANSWER_BYTES_PER_S: u64 = 16 << 10;
/// Maximum time for a store to assemble the parts of an object.
const JOIN_MAX: Duration = Duration::from_secs(60);
/// Maximum size of an answer without its own limit: a page of a list, a refusal.
const ANSWER_MAX: u64 = 8 << 20;
/// Maximum length of a refusal's code that is shown.
const CODE_MAX: usize = 64;
const USER_AGENT: &str = concat!("linesman/", env!("CARGO_PKG_VERSION"));

/// Maximum size of the answer to a request, if greater than the default. Passed in the extensions of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct BytesMax(pub(super) u64);

/// The reason why a request was not executed, or may not have been.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("it answers {status}{}{code}", if code.is_empty() { "" } else { " " })]
    Refused { status: u16, code: String },
    /// No answer shows whether it was executed.
    #[error("{why}")]
    Unanswered { why: String, again: Again },
}

/// Whether a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Soon,
    /// A request that takes too long would take as long again.
    Later,
}

impl Failure {
    /// The failure that caused a store's error.
    pub(super) fn behind<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(failure) = error.downcast_ref() {
                return Some(failure);
            }
            next = error.source();
        }
        None
    }

    pub(super) fn unanswered(why: &str, again: Again) -> Self {
        Self::Unanswered { why: why.to_owned(), again }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let what = if error.is_connect() { "cannot connect" } else { "the request failed" };
        // The last cause is the reason; the others contain the address.
        let mut cause = error.source();
        while let Some(next) = cause.and_then(Error::source) {
            cause = Some(next);
        }
        let why = cause.map_or(what.to_owned(), |cause| format!("{what}: {cause}"));
        Self::Unanswered { why, again: Again::Soon }
    }
}

impl From<Failure> for HttpError {
    fn from(failure: Failure) -> Self {
        // Any request may be sent again: the content shows whether a conditional write was this one or another
        // writer's.
        let kind = match failure {
            Failure::Unanswered { again: Again::Soon, .. } => HttpErrorKind::Request,
            Failure::Unanswered { again: Again::Later, .. } | Failure::Refused { .. } => {
                HttpErrorKind::Unknown
            }
        };
        Self::new(kind, failure)
    }
}

/// The connections to a bucket.
#[derive(Clone, Debug)]
pub(super) struct Transport(Client);

impl Transport {
    pub(super) fn new() -> Result<Self, Failure> {
        // The only TLS library in the build. A provider installed earlier stays.
        let _chosen = ring::default_provider().install_default();
        let client = Client::builder().connect_timeout(WAIT_MAX).redirect(Policy::none());
        Ok(Self(client.no_proxy().user_agent(USER_AGENT).build()?))
    }

    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        let bytes_max = request.extensions().get::<BytesMax>().map_or(0, |max| max.0);
        let sent = count(request.body().content_length());
        let request = reqwest::Request::try_from(request.map(reqwest::Body::wrap))?;
        let method = request.method().clone();
        let begin_max = if method == Method::POST { JOIN_MAX } else { WAIT_MAX };
        let wait_max = begin_max + Duration::from_secs(sent / SLOWEST_BYTES_PER_S);
        let answer = in_time(wait_max, self.0.execute(request)).await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = read(answer, bytes_max.max(ANSWER_MAX)).await?;
        if !status.is_success() {
            let code = code_of(&body);
            if !decides(status, &method, &code) {
                return Err(refused(status, code));
            }
            body.clear();
        }
        let mut answer = HttpResponse::new(body.into());
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        Ok(self.ask(request).await?)
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// True if an unsuccessful answer still describes the object: it is missing or exists already. A missing bucket says
/// nothing about an object.
fn decides(status: StatusCode, method: &Method, code: &str) -> bool {
    match status {
        StatusCode::NOT_FOUND => code == "NoSuchKey" || method == Method::DELETE,
        status => matches!(status, StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED),
    }
}

fn refused(status: StatusCode, code: String) -> Failure {
    let busy = status == StatusCode::TOO_MANY_REQUESTS
        // A missing implementation is permanent.
        || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
    match busy {
        true => Failure::unanswered(&format!("it answers {}", status.as_u16()), Again::Soon),
        false => Failure::Refused { status: status.as_u16(), code },
    }
}

async fn read(mut answer: Response, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let (mut body, begun) = (Vec::new(), Instant::now());
    while let Some(chunk) = in_time(WAIT_MAX, answer.chunk()).await? {
        if count(body.len() + chunk.len()) > bytes_max {
            return Err(Failure::unanswered("it answers more than was asked for", Again::Later));
        }
        body.extend_from_slice(&chunk);
        // However small the pieces are in which it comes.
        let needed = Duration::from_secs(count(body.len()) / SLOWEST_ANSWER_BYTES_PER_S);
        if begun.elapsed() > WAIT_MAX + needed {
            return Err(Failure::unanswered("it answers too slowly", Again::Later));
        }
    }
    Ok(body)
}

async fn in_time<T>(
    time_max: Duration,
    asked: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(time_max, asked).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(Failure::unanswered("it does not answer in time", Again::Later)),
    }
}

/// The code of a refusal, such as `SignatureDoesNotMatch`, and nothing else of it, because AWS repeats signed data.
/// Empty if there is none.
fn code_of(body: &[u8]) -> String {
    let code = || {
        let (_, after) = std::str::from_utf8(body).ok()?.split_once("<Code>")?;
        let (code, _) = after.split_once("</Code>")?;
        let shown = code.len() <= CODE_MAX && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
        shown.then(|| code.to_owned())
    };
    code().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_its_code_and_nothing_else_of_the_answer() {
        let answer = "<Error><Code>SignatureDoesNotMatch</Code><Message>token</Message></Error>";
        let code = code_of(answer.as_bytes());
        let shown = |status| Failure::Refused { status, code: code.clone() }.to_string();
        assert_eq!(shown(403), "it answers 403 SignatureDoesNotMatch");
        assert_eq!(code_of(b"<Error><Code>a token: x</Code></Error>"), "");
        assert_eq!(code_of(b"busy"), "");
        assert_eq!(
            refused(StatusCode::MOVED_PERMANENTLY, String::new()).to_string(),
            "it answers 301"
        );
    }

    #[test]
    fn that_a_bucket_is_not_there_is_not_that_an_object_is_not() {
        let absent = |code| decides(StatusCode::NOT_FOUND, &Method::GET, code);
        assert!(absent("NoSuchKey") && !absent("NoSuchBucket") && !absent(""));
    }
}

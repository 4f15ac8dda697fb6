//! `/mcp`: messages of the Model Context Protocol over HTTP. A tool call is one request under `/v1`, made in this
//! process with the caller's key; every other message counts towards the key's burst limit. No state is kept between
//! messages.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use accounts::KeyEntry;
use api::{Api, ApiError, ErrorCode, openapi, v1};
use domain::{Catalogue, MetricsText};
use http::{Head, Peer, Reply, Request, RequestBody, SlotLimits, Slots};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use mcp::{Answer, Answering, Call, Document, Headers, MESSAGE_BYTES_MAX, Method, Page, Refused};
use serde_json::Value;

use crate::service::Service;

/// The path for agents' messages.
pub(crate) const PATH: &str = "/mcp";

/// Time limit for receiving a message.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum number of messages processed at a time, in all and from one source, which limits their memory.
const MESSAGES_MAX: SlotLimits = SlotLimits { all: 512, source: 64 };

/// The state of the agents' endpoint.
#[derive(Debug)]
pub struct Agents {
    pub(crate) enabled: bool,
    /// Created at its first use: it contains the API's document.
    server: OnceLock<Arc<mcp::Server>>,
    messages: Arc<Slots>,
    counts: Vec<Count>,
}

/// Messages of one method, or of none: answered, refused.
#[derive(Debug, Default)]
struct Count([AtomicU64; 2]);

impl Agents {
    pub fn new(enabled: bool) -> Self {
        let counts = (0..=Method::ALL.len()).map(|_| Count::default()).collect();
        Self { enabled, server: OnceLock::new(), messages: Arc::default(), counts }
    }

    fn note(&self, answer: &Answer) {
        let place = Method::ALL.iter().position(|method| Some(*method) == answer.method);
        let count = self.counts.get(place.unwrap_or(Method::ALL.len()));
        if let Some(counter) = count.and_then(|count| count.0.get(usize::from(answer.is_refused))) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the series of `/metrics`.
    pub(crate) fn render(&self, page: &mut MetricsText) {
        let name = "linesman_mcp_messages_total";
        page.family(name, "counter", "Messages of agents at /mcp by method and outcome.");
        let methods = Method::ALL.iter().map(|method| method.name()).chain(["other"]);
        for (method, count) in methods.zip(&self.counts) {
            for (outcome, counter) in ["answered", "refused"].iter().zip(&count.0) {
                let count = counter.load(Ordering::Relaxed);
                page.line(format_args!(
                    "{name}{{method=\"{method}\",outcome=\"{outcome}\"}} {count}"
                ));
            }
        }
    }
}

/// The server of the protocol for a catalogue.
pub fn agent_server(catalogue: &Catalogue) -> mcp::Server {
    let document = |name, title, description, slug| Document {
        name,
        title,
        description,
        mime_type: "text/markdown",
        text: Cow::Borrowed(web::guide_text(slug).unwrap_or_default()),
    };
    let openapi = openapi::value(catalogue);
    let documents = vec![
        Document {
            name: "openapi",
            title: "The OpenAPI document",
            description: "Every operation, parameter, answer and error of the API.",
            mime_type: "application/json",
            text: Cow::Owned(openapi.to_string()),
        },
        document("docs/errors", "Errors", "What every error code means, and what to do.", "errors"),
        document(
            "docs/analytics",
            "Analytics",
            "How best and fair prices, arbitrage, expected value and middles are computed.",
            "analytics",
        ),
        document(
            "docs/coverage",
            "Coverage",
            "Why prices are missing, and how to find out.",
            "coverage",
        ),
        document("docs/sandbox", "The sandbox", "The data that sandbox keys see.", "sandbox"),
    ];
    mcp::Server::new(&openapi, documents)
}

/// Refuses every method but POST: there are no streams and no sessions.
pub(crate) fn wrong_method() -> ApiError {
    let text = "/mcp takes POST only: it has no streams and no sessions";
    let mut error = ApiError::new(ErrorCode::MethodNotAllowed, text);
    error.allow = Some("POST");
    error
}

/// Answers a message.
///
/// # Errors
/// It is not meant for this service, has no valid key, or does not arrive.
pub(crate) async fn take(
    service: &Service,
    request: &Request<'_>,
    peer: Peer,
    body: impl RequestBody,
) -> Result<Reply, ApiError> {
    let Service { api, web, agents, .. } = service;
    check_names(request, web.settings.public_url.as_deref())?;
    let entry = v1::authenticate_agent(api, request)?;
    let source = api.server.settings.proxies.client(peer.address, &request.page);
    let Some(_place) = agents.messages.take(source, MESSAGES_MAX) else {
        let text =
            "too many messages are being answered, in all or from your address; try again shortly";
        return Err(ApiError::unavailable(text));
    };
    let bytes = read(request, body).await?;
    let server = agents.server.get_or_init(|| Arc::new(agent_server(&api.catalogue)));
    let reader = Local {
        api: Arc::clone(api),
        client_name: request.agent.map(Box::from),
        fault: request.fault.map(Box::from),
        entry,
    };
    let answer = server.answer(Arc::new(reader), headers(request), &bytes).await;
    agents.note(&answer);
    let mut head = Head::default();
    head.put("cache-control", "no-store");
    if let Some(seconds) = answer.retry_after_s {
        head.put_number("retry-after", seconds);
    }
    let Some(body) = answer.body else { return Ok(Reply::empty(answer.status, head)) };
    head.put("content-type", "application/json");
    head.put("x-content-type-options", "nosniff");
    Ok(Reply { body: http::Body::Whole(body.into()), ..Reply::empty(answer.status, head) })
}

async fn read(request: &Request<'_>, body: impl RequestBody) -> Result<Vec<u8>, ApiError> {
    let invalid = |text: &'static str| ApiError::new(ErrorCode::InvalidBody, text);
    match request.page.content_encoding {
        http::SingleHeader::Absent => {}
        http::SingleHeader::Once(b"identity") => {}
        http::SingleHeader::Once(_) | http::SingleHeader::Repeated => {
            return Err(invalid("a message is sent as it is, without Content-Encoding"));
        }
    }
    let reading = Limited::new(body, MESSAGE_BYTES_MAX).collect();
    let read = tokio::time::timeout(BODY_TIME_MAX, reading).await;
    let read = read.map_err(|_| invalid("the message did not arrive within 30 s"))?;
    match read {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(ApiError::new(ErrorCode::BodyTooLarge, "a message has at most 64 KiB"))
        }
        Err(_) => Err(invalid("the message ended before it was complete")),
    }
}

fn headers<'a>(request: &Request<'a>) -> Headers<'a> {
    let Some(sent) = &request.page.agent else { return Headers::default() };
    let all = [sent.protocol_version, sent.method, sent.name];
    Headers {
        version: sent.protocol_version.once(),
        method: sent.method.once(),
        name: sent.name.once(),
        is_ambiguous: all.into_iter().any(http::SingleHeader::is_repeated),
    }
}

/// Checks that a request is meant for this service and was not made by another site's page: a browser that resolved a
/// foreign name to our address sends that name (DNS rebinding).
///
/// # Errors
/// The check fails.
fn check_names(request: &Request<'_>, public_url: Option<&str>) -> Result<(), ApiError> {
    let refused = |text: &'static str| ApiError::new(ErrorCode::Forbidden, text);
    let text = |bytes: &'_ [u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let host = text(request.host.unwrap_or_default());
    let public = public_url.map(|url| url.trim_end_matches('/').to_ascii_lowercase());
    let public_host = public.as_deref().and_then(|url| url.split_once("://")).map(|(_, host)| host);
    let name = name_of(&host);
    let is_own = name == "localhost"
        || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        || public_host.is_some_and(|public| name_of(public) == name);
    if !is_own {
        return Err(refused(
            "Host must be an address, `localhost` or the name in the setting dashboard.public_url of this service",
        ));
    }
    let Some(origin) = request.page.origin.map(text) else { return Ok(()) };
    let own_host = origin.split_once("://").map(|(_, host)| host);
    if public.as_deref() == Some(&origin) || own_host == Some(&host) {
        return Ok(());
    }
    Err(refused("Origin is not this service: pages of others may not call /mcp"))
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    let end = host.rfind(']').map_or(0, |end| end + 1);
    let (inside, port) = host.split_at_checked(end).unwrap_or((host, ""));
    match inside {
        "" => host.split(':').next().unwrap_or_default(),
        inside if port.is_empty() || port.starts_with(':') => inside,
        _ => "",
    }
}

/// Reads the API in this process.
struct Local {
    api: Arc<Api>,
    /// The client's name in the message's request, and the fault that it requests from the sandbox.
    client_name: Option<Box<[u8]>>,
    fault: Option<Box<[u8]>>,
    entry: Arc<KeyEntry>,
}

impl mcp::Reader for Local {
    fn get<'a>(&'a self, call: &'a Call) -> Answering<'a, Result<Page, Refused>> {
        Box::pin(async move {
            let target = call.target();
            let mut request = Request::new("GET", &target);
            (request.agent, request.fault) = (self.client_name.as_deref(), self.fault.as_deref());
            let reply = v1::answer_as(&self.api, &request, &self.entry).await;
            if reply.status != 200 {
                return Err(refused(&reply));
            }
            let next_cursor = next_cursor(&reply.head);
            Ok(Page { body: reply.body.whole().into(), next_cursor })
        })
    }

    fn count(&self) -> Answering<'_, Result<(), Refused>> {
        Box::pin(async {
            let counted = v1::count_burst(&self.api, &self.entry).await;
            counted.map_err(|error| {
                let reply = error.into_reply(self.api.next_request_id());
                self.api.metrics.note_refusal(&reply);
                refused(&reply)
            })
        })
    }
}

fn refused(reply: &Reply) -> Refused {
    let mut body: Value = serde_json::from_slice(&reply.body.whole()).unwrap_or_default();
    let wait = reply.head.iter().find(|(name, _)| *name == b"retry-after");
    let wait = wait.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
    let error = body.get_mut("error").map(Value::take).unwrap_or_default();
    Refused { status: reply.status, error, retry_after_s: wait }
}

/// The cursor of the next page, taken from its link.
fn next_cursor(head: &Head) -> Option<String> {
    let links = head.iter().filter(|(name, _)| *name == b"link");
    let mut links = links.filter_map(|(_, value)| std::str::from_utf8(value).ok());
    let link = links.find(|link| link.ends_with("rel=\"next\""))?;
    let (target, _) = link.strip_prefix('<')?.split_once('>')?;
    let (_, query) = target.split_once('?')?;
    let cursor = query.split('&').find_map(|pair| pair.strip_prefix("cursor="))?;
    http::percent::decode(cursor).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_our_name() {
        let check = |host: &'static str, origin: Option<&'static str>, public: Option<&str>| {
            let mut request = Request::new("POST", PATH);
            request.header("host", host.as_bytes());
            if let Some(origin) = origin {
                request.header("origin", origin.as_bytes());
            }
            check_names(&request, public).is_ok()
        };
        let public = Some("https://odds.example.com/");
        for host in
            ["127.0.0.1:8080", "localhost", "LOCALHOST:8080", "[::1]:8080", "[::1]", "10.0.0.7"]
        {
            assert!(check(host, None, None), "{host}");
        }
        assert!(
            check("odds.example.com", None, public) && check("Odds.Example.com:443", None, public)
        );
        for host in [
            "",
            "evil.example",
            "odds.example.com.evil.example",
            "[::1].evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!check(host, None, public), "{host}");
        }
        assert!(!check("odds.example.com", None, None));
        assert!(check("127.0.0.1:8080", Some("http://127.0.0.1:8080"), None));
        assert!(check("127.0.0.1:8080", Some("https://odds.example.com"), public));
        for origin in [
            "null",
            "http://evil.example",
            "http://127.0.0.1:9999",
            "https://odds.example.com.evil",
        ] {
            assert!(!check("127.0.0.1:8080", Some(origin), public), "{origin}");
        }
    }
}

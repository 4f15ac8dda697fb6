//! A request, the same for HTTP/1.1 and HTTP/2.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Maximum length of path and query.
pub const TARGET_BYTES_MAX: usize = 8 << 10;
/// Maximum length of a request head.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of header lines.
pub const HEADERS_MAX: usize = 64;

/// Header that requests a fault from the sandbox.
pub const FAULT_HEADER: &str = "x-sandbox-fault";

/// Methods that the service distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
    Other,
}

impl Method {
    pub fn parse(method: &str) -> Self {
        match method {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            _ => Self::Other,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Other => "other",
        }
    }

    pub fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}

/// A header that may be sent once, such as a key or a token. Its value is never shown.
#[derive(Clone, Copy, Default)]
pub enum SingleHeader<'a> {
    #[default]
    Absent,
    Once(&'a [u8]),
    /// Sent more than once, so it is ambiguous.
    Repeated,
}

impl<'a> SingleHeader<'a> {
    fn set(&mut self, value: &'a [u8]) {
        *self = match self {
            Self::Absent => Self::Once(value),
            Self::Once(_) | Self::Repeated => Self::Repeated,
        };
    }

    pub fn is_repeated(self) -> bool {
        matches!(self, Self::Repeated)
    }

    /// The value, if there is exactly one.
    pub fn once(self) -> Option<&'a [u8]> {
        match self {
            Self::Once(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }
}

impl fmt::Debug for SingleHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleHeader")
    }
}

/// The parts of a request that answers depend on.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: Method,
    pub path: &'a str,
    pub query: &'a str,
    pub key: SingleHeader<'a>,
    pub accept_encoding: Option<Cow<'a, [u8]>>,
    pub if_none_match: Option<Cow<'a, [u8]>>,
    /// The fault that a sandbox client requests.
    pub fault: Option<&'a [u8]>,
    /// The client's `User-Agent`.
    pub agent: Option<&'a [u8]>,
    pub host: Option<&'a [u8]>,
    /// Further headers of browsers. Requests to the API only have `authorization`, to report that keys do not belong
    /// there.
    pub page: BoxedHeaders<'a>,
    /// The service's traits of the path.
    pub traits: PathTraits,
}

/// Properties of a path, set by the service, that determine how a request to it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTraits {
    pub headers: HeaderSet,
    /// True if an answer may continue while the client listens.
    pub is_stream: bool,
}

/// The headers to keep, in addition to those of every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderSet {
    /// `Authorization`, and the requested part of a file.
    Ranges,
    /// `Authorization`, the last event of the client, and the headers of a WebSocket handshake.
    Stream,
    /// `Authorization`, and the origin of the requesting page.
    CrossOrigin,
    /// Headers that browsers send to a page.
    #[default]
    Page,
    /// Headers that browsers send to a page, and those in which agents repeat parts of the body.
    Agent,
}

/// Headers that few requests have, allocated separately: a request is moved more than once as it begins.
#[derive(Debug, Default)]
pub struct BoxedHeaders<'a>(Option<Box<PageHeaders<'a>>>);

impl<'a> Deref for BoxedHeaders<'a> {
    type Target = PageHeaders<'a>;

    fn deref(&self) -> &PageHeaders<'a> {
        self.0.as_deref().unwrap_or(&NO_HEADERS)
    }
}

impl<'a> DerefMut for BoxedHeaders<'a> {
    fn deref_mut(&mut self) -> &mut PageHeaders<'a> {
        self.0.get_or_insert_default()
    }
}

/// The headers that pages for people need. The cookie is never shown.
#[derive(Default)]
pub struct PageHeaders<'a> {
    /// Headers of agents.
    pub agent: Option<AgentHeaders<'a>>,
    pub authorization: SingleHeader<'a>,
    pub content_encoding: SingleHeader<'a>,
    pub cookie: Option<Cow<'a, [u8]>>,
    pub origin: Option<&'a [u8]>,
    pub fetch_site: Option<&'a [u8]>,
    /// Headers of a client of a stream that requests a WebSocket.
    pub websocket: WebSocketHeaders<'a>,
    /// The requested part of a file, and the version of the file.
    pub range: SingleHeader<'a>,
    pub if_range: SingleHeader<'a>,
    /// The last event received by a client that watches a board or follows a stream.
    pub last_event_id: Option<&'a [u8]>,
    /// The client's address according to a proxy; trusted only as far as [`crate::Proxies`] allows.
    pub forwarded_for: Option<Cow<'a, [u8]>>,
    pub forwarded: Option<Cow<'a, [u8]>>,
}

/// Headers of a request that has none of them.
static NO_HEADERS: PageHeaders<'static> = PageHeaders {
    agent: None,
    authorization: SingleHeader::Absent,
    content_encoding: SingleHeader::Absent,
    cookie: None,
    origin: None,
    fetch_site: None,
    websocket: WebSocketHeaders {
        upgrades: false,
        is_named: false,
        key: SingleHeader::Absent,
        version: SingleHeader::Absent,
    },
    range: SingleHeader::Absent,
    if_range: SingleHeader::Absent,
    last_event_id: None,
    forwarded_for: None,
    forwarded: None,
};

/// Parts of a message of the Model Context Protocol that its headers repeat.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentHeaders<'a> {
    pub protocol_version: SingleHeader<'a>,
    pub method: SingleHeader<'a>,
    pub name: SingleHeader<'a>,
}

impl<'a> AgentHeaders<'a> {
    fn header(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("mcp-protocol-version") {
            self.protocol_version.set(value);
        } else if name.eq_ignore_ascii_case("mcp-method") {
            self.method.set(value);
        } else if name.eq_ignore_ascii_case("mcp-name") {
            self.name.set(value);
        }
    }
}

/// Headers of a WebSocket handshake (RFC 6455, 4.1), with HTTP/1.1 only.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebSocketHeaders<'a> {
    /// True if the connection is to be upgraded.
    pub(crate) upgrades: bool,
    /// True if the upgrade is to the WebSocket protocol.
    is_named: bool,
    pub key: SingleHeader<'a>,
    pub version: SingleHeader<'a>,
}

impl<'a> WebSocketHeaders<'a> {
    pub fn is_asked_for(&self) -> bool {
        self.upgrades && self.is_named
    }

    fn header(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("upgrade") {
            self.is_named |= has_word(value, "websocket");
        } else if name.eq_ignore_ascii_case("sec-websocket-key") {
            self.key.set(value);
        } else if name.eq_ignore_ascii_case("sec-websocket-version") {
            self.version.set(value);
        }
    }
}

/// True if a list contains a word, ignoring case.
pub(crate) fn has_word(list: &[u8], word: &str) -> bool {
    let mut words = list.split(|byte| *byte == b',');
    words.any(|one| one.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

impl fmt::Debug for PageHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageHeaders")
    }
}

impl<'a> PageHeaders<'a> {
    fn header(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("authorization") {
            self.authorization.set(value);
        } else if name.eq_ignore_ascii_case("content-encoding") {
            self.content_encoding.set(value);
        } else if name.eq_ignore_ascii_case("cookie") {
            // HTTP/2 may split cookies into several lines.
            join(&mut self.cookie, b"; ", value);
        } else if name.eq_ignore_ascii_case("origin") {
            self.origin = Some(value);
        } else if name.eq_ignore_ascii_case("sec-fetch-site") {
            self.fetch_site = Some(value);
        } else if name.eq_ignore_ascii_case("last-event-id") {
            self.last_event_id = Some(value);
        } else if name.eq_ignore_ascii_case("x-forwarded-for") {
            join(&mut self.forwarded_for, b", ", value);
        } else if name.eq_ignore_ascii_case("forwarded") {
            join(&mut self.forwarded, b", ", value);
        }
    }
}

impl<'a> Request<'a> {
    /// A request of which only the first line is known; a path without traits is a page's.
    pub fn new(method: &str, target: &'a str) -> Self {
        let (path, query) = cut(target, b'?').unwrap_or((target, ""));
        Self {
            method: Method::parse(method),
            path,
            query,
            key: SingleHeader::Absent,
            accept_encoding: None,
            if_none_match: None,
            fault: None,
            agent: None,
            host: None,
            page: BoxedHeaders::default(),
            traits: PathTraits::default(),
        }
    }

    /// Keeps a header line, if the path's traits require it.
    pub fn header(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("x-api-key") {
            self.key.set(value);
        } else if name.eq_ignore_ascii_case("accept-encoding") {
            join(&mut self.accept_encoding, b", ", value);
        } else if name.eq_ignore_ascii_case("if-none-match") {
            join(&mut self.if_none_match, b", ", value);
        } else if name.eq_ignore_ascii_case(FAULT_HEADER) {
            self.fault = Some(value);
        } else if name.eq_ignore_ascii_case("user-agent") {
            self.agent = Some(value);
        }
        match self.traits.headers {
            HeaderSet::Page | HeaderSet::Agent if name.eq_ignore_ascii_case("host") => {
                self.host = Some(value);
            }
            HeaderSet::Ranges | HeaderSet::Stream | HeaderSet::CrossOrigin
                if name.eq_ignore_ascii_case("authorization") =>
            {
                self.page.authorization.set(value);
            }
            HeaderSet::Stream if name.eq_ignore_ascii_case("last-event-id") => {
                self.page.last_event_id = Some(value);
            }
            HeaderSet::CrossOrigin if name.eq_ignore_ascii_case("origin") => {
                self.page.origin = Some(value);
            }
            HeaderSet::Stream => self.page.websocket.header(name, value),
            HeaderSet::Ranges if name.eq_ignore_ascii_case("range") => self.page.range.set(value),
            HeaderSet::Ranges if name.eq_ignore_ascii_case("if-range") => {
                self.page.if_range.set(value);
            }
            HeaderSet::Ranges | HeaderSet::CrossOrigin => {}
            HeaderSet::Page => self.page.header(name, value),
            HeaderSet::Agent => {
                self.page.header(name, value);
                self.page.agent.get_or_insert_default().header(name, value);
            }
        }
    }

    /// True if the client already has the version with this tag (RFC 9110, 13.1.2: weak comparison).
    pub fn holds(&self, etag: &str) -> bool {
        let Some(tags) = self.if_none_match.as_deref() else { return false };
        if tags == etag.as_bytes() {
            return true;
        }
        std::str::from_utf8(tags).is_ok_and(|tags| {
            tags.split(',')
                .map(str::trim)
                .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
        })
    }
}

/// The parts before and after the first such byte, which must be ASCII; in fewer instructions than `str::split_once`.
pub fn cut(text: &str, at: u8) -> Option<(&str, &str)> {
    let place = memchr::memchr(at, text.as_bytes())?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// The parts between such bytes, as from `str::split`, but in fewer instructions.
pub fn parts(text: &str, at: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let left = rest?;
        let (part, after) = cut(left, at).map_or((left, None), |(part, after)| (part, Some(after)));
        rest = after;
        Some(part)
    })
}

/// List headers may be split into several lines, which form one list.
fn join<'a>(held: &mut Option<Cow<'a, [u8]>>, between: &[u8], value: &'a [u8]) {
    match held {
        None => *held = Some(Cow::Borrowed(value)),
        Some(list) => {
            let list = list.to_mut();
            list.extend_from_slice(between);
            list.extend_from_slice(value);
        }
    }
}

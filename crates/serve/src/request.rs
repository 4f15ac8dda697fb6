//! What a request asks, the same whether HTTP/1.1 or HTTP/2 carried it.

use std::borrow::Cow;
use std::fmt;

use accounts::ConnectionKey;
use domain::{Clock, Timestamp};
use tokio::time::Instant;

use crate::peer::Peer;
use crate::v1::{Habit, fault};

/// Longest path and query.
pub(crate) const TARGET_BYTES_MAX: usize = 8 << 10;
/// Largest request head in all.
pub(crate) const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most header lines.
pub(crate) const HEADERS_MAX: usize = 64;

/// Methods the service tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Other,
}

impl Method {
    pub(crate) fn parse(method: &str) -> Self {
        match method {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            _ => Self::Other,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Other => "other",
        }
    }

    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}

/// The key header, whose value is never shown.
#[derive(Clone, Copy)]
pub(crate) enum KeyHeader<'a> {
    Absent,
    Once(&'a [u8]),
    /// Which one is meant cannot be told.
    Repeated,
}

impl fmt::Debug for KeyHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHeader")
    }
}

/// Who asks, and when.
#[derive(Debug)]
pub(crate) struct Visitor {
    /// When the request was there, by the service's clock and by the machine's.
    pub(crate) now: Timestamp,
    pub(crate) begun: Instant,
    /// Whom the connection is known to belong to.
    pub(crate) known: ConnectionKey,
    pub(crate) peer: Peer,
    /// What the connection asked last.
    pub(crate) habit: Habit,
    /// Whether the connection can send a spooled body.
    pub(crate) takes_spooled: bool,
    /// The interval in which the connection was last counted among those that ask.
    pub(crate) beat: u64,
}

impl Visitor {
    /// Somebody not known yet.
    pub(crate) fn new(clock: &dyn Clock, peer: Peer) -> Self {
        let (now, begun) = (clock.now(), Instant::now());
        Self {
            now,
            begun,
            known: ConnectionKey::default(),
            peer,
            habit: Habit::default(),
            takes_spooled: false,
            beat: 0,
        }
    }

    /// Comes with the next request.
    pub(crate) fn ask_again(&mut self, clock: &dyn Clock) {
        self.now = clock.now();
        self.begun = Instant::now();
    }
}

/// The parts of a request that answers depend on.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) key: KeyHeader<'a>,
    pub(crate) accept_encoding: Option<Cow<'a, [u8]>>,
    pub(crate) if_none_match: Option<Cow<'a, [u8]>>,
    /// The fault a sandbox client wants to see.
    pub(crate) fault: Option<&'a [u8]>,
    /// What the client calls itself.
    pub(crate) agent: Option<&'a [u8]>,
    /// What browsers tell beside; not looked at on the API's way.
    pub(crate) browser: Browser<'a>,
    is_api: bool,
}

/// The headers that pages for people need. The cookie is never shown.
#[derive(Default)]
pub(crate) struct Browser<'a> {
    pub(crate) cookie: Option<Cow<'a, [u8]>>,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) origin: Option<&'a [u8]>,
    pub(crate) fetch_site: Option<&'a [u8]>,
    /// What a browser that watches a board saw last.
    pub(crate) last_event_id: Option<&'a [u8]>,
    /// Whom a proxy has the request from; believed only as far as [`crate::Proxies`] says.
    pub(crate) forwarded_for: Option<Cow<'a, [u8]>>,
    pub(crate) forwarded: Option<Cow<'a, [u8]>>,
}

impl fmt::Debug for Browser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Browser")
    }
}

impl<'a> Browser<'a> {
    fn header(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("cookie") {
            // HTTP/2 may part cookies into lines.
            join(&mut self.cookie, b"; ", value);
        } else if name.eq_ignore_ascii_case("host") {
            self.host = Some(value);
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

impl<'a> Asked<'a> {
    pub(crate) fn new(method: &str, target: &'a str) -> Self {
        let (path, query) = cut(target, b'?').unwrap_or((target, ""));
        Self {
            method: Method::parse(method),
            path,
            query,
            key: KeyHeader::Absent,
            accept_encoding: None,
            if_none_match: None,
            fault: None,
            agent: None,
            browser: Browser::default(),
            is_api: path.starts_with("/v1/"),
        }
    }

    /// Takes note of a header line.
    pub(crate) fn header(&mut self, name: &str, value: &'a [u8]) {
        if name.eq_ignore_ascii_case("x-api-key") {
            self.key = match self.key {
                KeyHeader::Absent => KeyHeader::Once(value),
                KeyHeader::Once(_) | KeyHeader::Repeated => KeyHeader::Repeated,
            };
        } else if name.eq_ignore_ascii_case("accept-encoding") {
            join(&mut self.accept_encoding, b", ", value);
        } else if name.eq_ignore_ascii_case("if-none-match") {
            join(&mut self.if_none_match, b", ", value);
        } else if name.eq_ignore_ascii_case(fault::HEADER) {
            self.fault = Some(value);
        } else if name.eq_ignore_ascii_case("user-agent") {
            self.agent = Some(value);
        }
        if !self.is_api {
            self.browser.header(name, value);
        }
    }

    /// Whether the client already has what the tag names (RFC 9110, 13.1.2: weak comparison).
    pub(crate) fn holds(&self, etag: &str) -> bool {
        let tags = self.if_none_match.as_deref().and_then(|tags| std::str::from_utf8(tags).ok());
        tags.is_some_and(|tags| {
            tags.split(',')
                .map(str::trim)
                .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
        })
    }
}

/// What is before and after the first such byte, which is an ASCII one; in fewer instructions than `str::split_once`.
pub(crate) fn cut(text: &str, at: u8) -> Option<(&str, &str)> {
    let place = memchr::memchr(at, text.as_bytes())?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// The parts between such bytes, as `str::split` gives them; in fewer instructions, too.
pub(crate) fn parts(text: &str, at: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let left = rest?;
        let (part, after) = cut(left, at).map_or((left, None), |(part, after)| (part, Some(after)));
        rest = after;
        Some(part)
    })
}

/// List headers may come in several lines, which mean one list.
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

//! Parser of request heads: what to do with the bytes read so far. Every head of HTTP/1.x passes through here, both
//! the first of a connection and all later ones.

use std::mem::MaybeUninit;

use super::body::Framing;
use crate::request::{HEAD_BYTES_MAX, HEADERS_MAX, PathTraits, Request, has_word};
use crate::service::Refusal;

/// First bytes of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Interpretation of the bytes read so far.
pub(crate) enum Reading<'a> {
    More,
    Request(ParsedHead<'a>),
    /// The beginning of an HTTP/2 connection.
    Http2,
    Refused(Refusal, &'static str),
}

/// A complete head.
pub(crate) struct ParsedHead<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) head_bytes: usize,
    pub(crate) close: bool,
    /// Framing of the body after it.
    pub(crate) framing: Framing,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects: bool,
}

/// Interprets the bytes read so far, without consuming them.
pub(crate) fn examine(held: &[u8], traits: impl Fn(&str) -> PathTraits) -> Reading<'_> {
    if held.is_empty() {
        return Reading::More;
    }
    let preface = held.len().min(HTTP2_PREFACE.len());
    if held.get(..preface) == HTTP2_PREFACE.get(..preface) {
        return if preface == HTTP2_PREFACE.len() { Reading::Http2 } else { Reading::More };
    }
    let mut headers = [MaybeUninit::uninit(); HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(held, &mut headers) {
        Ok(httparse::Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => {
            classify(&request, head_bytes, traits)
        }
        Ok(_) if held.len() > HEAD_BYTES_MAX => too_large(held),
        Ok(_) => Reading::More,
        Err(httparse::Error::TooManyHeaders) => {
            Reading::Refused(Refusal::HeadTooLarge, "the request has more than 64 headers")
        }
        Err(_) => Reading::Refused(Refusal::NotHttp, "this is not an HTTP/1.1 request"),
    }
}

/// Distinguishes an overlong request line from too many headers after it.
fn too_large(held: &[u8]) -> Reading<'_> {
    let line_end = held.iter().position(|byte| *byte == b'\n');
    if line_end.is_some_and(|end| end < HEAD_BYTES_MAX) {
        Reading::Refused(Refusal::HeadTooLarge, "the request's headers are larger than 16 KiB")
    } else {
        Reading::Refused(Refusal::TargetTooLong, "the path and query are longer than 8 KiB")
    }
}

/// Checks a complete head, and finds the framing of its body.
fn classify<'a>(
    parsed: &httparse::Request<'_, 'a>,
    head_bytes: usize,
    traits: impl Fn(&str) -> PathTraits,
) -> Reading<'a> {
    let target = origin_form(parsed.path.unwrap_or_default());
    let mut request = Request::new(parsed.method.unwrap_or_default(), target);
    request.traits = traits(request.path);
    let mut close = parsed.version == Some(0);
    let mut hosts = 0;
    let mut length: Option<&[u8]> = None;
    let mut framing = Framing::NONE;
    let mut chunked = false;
    let mut expects = false;
    for header in &*parsed.headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
            request.host = Some(header.value);
        } else if is("connection") {
            let says = |word: &str| has_word(header.value, word);
            close = says("close") || (close && !says("keep-alive"));
            if parsed.version == Some(1) && says("upgrade") {
                request.page.websocket.upgrades = true;
            }
        } else if is("content-length") {
            let digits = !header.value.is_empty() && header.value.iter().all(u8::is_ascii_digit);
            if !digits || length.is_some_and(|length| length != header.value) {
                return bad_framing();
            }
            let Some(bytes) = number(header.value) else {
                return Reading::Refused(Refusal::BodyTooLarge, "the body is too large");
            };
            length = Some(header.value);
            framing = Framing::of_length(bytes);
        } else if is("transfer-encoding") {
            if chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                return bad_framing();
            }
            chunked = true;
        } else if is("expect") {
            expects = header.value.eq_ignore_ascii_case(b"100-continue");
        } else {
            request.header(header.name, header.value);
        }
    }
    // Two lengths of one body enable request smuggling (RFC 9112, 6.3).
    if chunked && (length.is_some() || parsed.version == Some(0)) {
        return bad_framing();
    }
    if hosts > 1 || (parsed.version == Some(1) && hosts == 0) {
        return Reading::Refused(Refusal::NotHttp, "an HTTP/1.1 request needs one Host header");
    }
    if chunked {
        framing = Framing::chunked();
    }
    Reading::Request(ParsedHead { request, head_bytes, close, framing, expects })
}

/// Digits as a number; `None` if it is larger than any body.
fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn bad_framing<'a>() -> Reading<'a> {
    Reading::Refused(
        Refusal::NotHttp,
        "ambiguous body length: send Content-Length once or Transfer-Encoding: chunked",
    )
}

/// Reduces `http://host/path` to `/path`.
fn origin_form(target: &str) -> &str {
    let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    match rest {
        Some(rest) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/"),
        None => target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::HeaderSet;

    const PAGE: PathTraits = PathTraits { headers: HeaderSet::Page, is_stream: false };

    fn examine(held: &[u8]) -> Reading<'_> {
        super::examine(held, |_| PAGE)
    }

    #[test]
    fn a_head_says_what_follows_it() {
        let read = |text: &str| match examine(text.as_bytes()) {
            Reading::Request(ParsedHead { close, framing, expects, .. }) => {
                Some((close, framing.left(), expects))
            }
            Reading::More | Reading::Http2 | Reading::Refused(..) => None,
        };
        let plain = (false, Some(0), false);
        assert_eq!(read("GET / HTTP/1.1\r\nhost: a\r\n\r\n"), Some(plain));
        assert_eq!(read("GET / HTTP/1.0\r\n\r\n"), Some((true, Some(0), false)));
        assert_eq!(
            read("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
            Some((true, Some(0), false))
        );
        assert_eq!(
            read("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"),
            Some((false, Some(3), false))
        );
        assert_eq!(
            read("GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"),
            Some((false, None, false))
        );
        assert_eq!(
            read(
                "PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\ncontent-length: 3\r\n\r\nabc"
            ),
            Some((false, Some(3), true))
        );
        // An unsupported upgrade is ignored.
        assert_eq!(
            read("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"),
            Some(plain)
        );
        assert!(matches!(examine(b"PRI * HTTP/2.0\r\n\r\nSM"), Reading::Http2));
        assert!(matches!(examine(b"PRI"), Reading::More));
    }

    #[test]
    fn what_cannot_be_read_one_way_is_refused() {
        let refused = |text: &str| match examine(text.as_bytes()) {
            Reading::Refused(code, _) => code,
            Reading::More | Reading::Http2 | Reading::Request(_) => panic!("{text:?} was taken"),
        };
        for bad in [
            "nonsense\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
            "GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n",
            "GET / HTTP/2.0\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3, 3\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(refused(bad), Refusal::NotHttp, "{bad:?}");
        }
        let endless =
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999999\r\n\r\n";
        assert_eq!(refused(endless), Refusal::BodyTooLarge);
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(20_000));
        assert_eq!(refused(&long), Refusal::TargetTooLong);
        let heavy = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "a".repeat(20_000));
        assert_eq!(refused(&heavy), Refusal::HeadTooLarge);
    }

    #[test]
    fn a_token_that_comes_twice_is_none() {
        let token = |lines: &str| {
            let head = format!("POST / HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
            let Reading::Request(ParsedHead { request, .. }) = examine(head.as_bytes()) else {
                panic!("{head:?} is no request")
            };
            request.page.authorization.once().map(<[u8]>::to_vec)
        };
        assert_eq!(token("Authorization: one\r\nx: 1\r\nX: 2\r\n"), Some(b"one".to_vec()));
        assert_eq!(token("authorization: one\r\nAuthorization: one\r\n"), None);
        assert_eq!(token("x: 1\r\n"), None);
    }

    #[test]
    fn the_service_says_which_headers_of_a_path_are_read() {
        let head = b"GET http://a/b?c=/d HTTP/1.1\r\nhost: a\r\ncookie: e\r\nrange: f\r\n\r\n";
        let read = |headers| {
            let of_path = |path: &str| {
                assert_eq!(path, "/b");
                PathTraits { headers, is_stream: true }
            };
            let Reading::Request(ParsedHead { request, .. }) = super::examine(head, of_path) else {
                panic!("the head was not taken")
            };
            assert!(request.traits.is_stream);
            (request.page.cookie.is_some(), request.page.range.once().is_some())
        };
        assert_eq!(read(HeaderSet::Page), (true, false));
        assert_eq!(read(HeaderSet::Agent), (true, false));
        assert_eq!(read(HeaderSet::Ranges), (false, true));
        assert_eq!(read(HeaderSet::CrossOrigin), (false, false));
        assert_eq!(read(HeaderSet::Stream), (false, false));
    }
}

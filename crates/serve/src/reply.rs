//! An answer before it meets a connection: a status, header lines as HTTP/1.1 writes them, a body.
//!
//! Header names are lower case, so the same lines serve HTTP/2.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::error::ErrorCode;
use crate::spool::Spooled;

/// Header lines, each `name: value` and a line break.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head(Vec<u8>);

/// One header line being written.
#[derive(Debug)]
pub(crate) struct Line<'a>(&'a mut Vec<u8>);

impl Head {
    /// What an answer's header lines take; with room for them all, none is moved to make room for the next.
    const ROOM: usize = 1 << 10;

    /// An empty head with room for all lines of an answer.
    pub(crate) fn roomy() -> Self {
        Self::with_room(Self::ROOM)
    }

    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn put(&mut self, name: &str, value: impl AsRef<str>) {
        self.line(name, |line| line.foreign(value.as_ref()));
    }

    /// Appends a header whose value was written before and is known to be on one line.
    #[inline(always)]
    pub(crate) fn put_bytes(&mut self, name: &str, value: &[u8]) {
        self.line(name, |line| line.bytes(value));
    }

    #[inline(always)]
    pub(crate) fn put_number(&mut self, name: &str, value: impl itoa::Integer) {
        self.line(name, |line| line.number(value));
    }

    /// Appends a header made of pieces. Inlined with all of them: names and texts are known to the compiler, which
    /// writes them in a few stores instead of a call for each.
    #[inline(always)]
    pub(crate) fn line(&mut self, name: &str, write: impl FnOnce(&mut Line<'_>)) {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b": ");
        write(&mut Line(&mut self.0));
        self.0.extend_from_slice(b"\r\n");
    }

    /// Appends lines made before.
    pub(crate) fn put_lines(&mut self, lines: &Self) {
        self.0.extend_from_slice(&lines.0);
    }

    /// Appends the empty line after the last header, for HTTP/1.1.
    pub(crate) fn end(&mut self) {
        self.0.extend_from_slice(b"\r\n");
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Names and values, for a connection that writes headers its own way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.split(|byte| *byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r")?;
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 2..)?))
        })
    }
}

impl Line<'_> {
    /// Appends text of ours, which is known to be on one line.
    #[inline(always)]
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The same for text that was never a `str`.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, text: &[u8]) {
        debug_assert!(!text.iter().copied().any(ends_line));
        self.0.extend_from_slice(text);
    }

    /// Appends text from outside. Line breaks cannot get in: the byte that would end the line is dropped.
    pub(crate) fn foreign(&mut self, text: &str) {
        // Without a way out in the middle, the compiler looks at many bytes at a time.
        if text.bytes().fold(false, |found, byte| found | ends_line(byte)) {
            self.0.extend(text.bytes().filter(|byte| !ends_line(*byte)));
        } else {
            self.0.extend_from_slice(text.as_bytes());
        }
    }

    pub(crate) fn number(&mut self, number: impl itoa::Integer) {
        self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

const fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

/// What follows the header lines.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Whole(Bytes),
    /// Pieces of something larger, that follow each other.
    Pieces {
        pieces: Arc<[Bytes]>,
        length: usize,
    },
}

impl Body {
    pub(crate) fn of_pieces(pieces: Vec<Bytes>) -> Self {
        let length = pieces.iter().map(Bytes::len).sum();
        Self::Pieces { pieces: pieces.into(), length }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(body) => body.len(),
            Self::Pieces { length, .. } => *length,
        }
    }

    pub(crate) fn pieces(&self) -> &[Bytes] {
        match self {
            Self::Whole(body) => std::slice::from_ref(body),
            Self::Pieces { pieces, .. } => pieces,
        }
    }

    /// How much of it nobody else holds.
    pub(crate) fn unshared_bytes(&self) -> usize {
        match self {
            Self::Whole(body) if body.is_unique() => body.len(),
            Self::Pieces { pieces, .. } if Arc::strong_count(pieces) == 1 => {
                pieces.iter().filter(|piece| piece.is_unique()).map(Bytes::len).sum()
            }
            Self::Whole(_) | Self::Pieces { .. } => 0,
        }
    }

    /// The body in one piece, for who cannot take it otherwise.
    pub(crate) fn whole(&self) -> Bytes {
        match self {
            Self::Whole(body) => body.clone(),
            Self::Pieces { pieces, .. } => pieces.concat().into(),
        }
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The error's code, where it is one.
    pub(crate) code: Option<ErrorCode>,
    pub(crate) head: Head,
    pub(crate) body: Body,
    /// The body once more, where the kernel can send it by itself.
    pub(crate) spooled: Option<Arc<Spooled>>,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut head = Head::default();
        head.put("content-type", content_type);
        Self { status, code: None, head, body: Body::Whole(body.into()), spooled: None }
    }

    /// The answer as hyper takes it, with the body in the form that its connection wants. The length is this one's.
    pub(crate) fn with_body<B>(&self, body: B) -> Response<B> {
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        for (name, value) in self.head.iter() {
            let (name, value) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value));
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        if self.status != 304 {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        }
        response
    }
}

/// How HTTP/1.1 begins an answer.
pub(crate) const fn status_line(status: u16) -> &'static str {
    match status {
        200 => "HTTP/1.1 200 OK\r\n",
        303 => "HTTP/1.1 303 See Other\r\n",
        304 => "HTTP/1.1 304 Not Modified\r\n",
        400 => "HTTP/1.1 400 Bad Request\r\n",
        401 => "HTTP/1.1 401 Unauthorized\r\n",
        403 => "HTTP/1.1 403 Forbidden\r\n",
        404 => "HTTP/1.1 404 Not Found\r\n",
        405 => "HTTP/1.1 405 Method Not Allowed\r\n",
        409 => "HTTP/1.1 409 Conflict\r\n",
        413 => "HTTP/1.1 413 Content Too Large\r\n",
        414 => "HTTP/1.1 414 URI Too Long\r\n",
        429 => "HTTP/1.1 429 Too Many Requests\r\n",
        431 => "HTTP/1.1 431 Request Header Fields Too Large\r\n",
        503 => "HTTP/1.1 503 Service Unavailable\r\n",
        _ => "HTTP/1.1 500 Internal Server Error\r\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_the_error_table_has_its_own_line() {
        for code in ErrorCode::ALL {
            let line = status_line(code.status());
            assert!(line.starts_with(&format!("HTTP/1.1 {} ", code.status())), "{line}");
        }
    }

    #[test]
    fn only_what_nobody_else_holds_of_a_body_is_its_clients_own() {
        let whole = Body::Whole(Bytes::from(vec![1; 100]));
        assert_eq!(whole.unshared_bytes(), 100);
        let kept = whole.clone();
        assert_eq!((whole.unshared_bytes(), kept.unshared_bytes()), (0, 0));
        assert_eq!(Body::Whole(Bytes::from_static(b"fixed")).unshared_bytes(), 0);
        let share = Bytes::from(vec![2; 1000]);
        let pieces = Body::of_pieces(vec![share.clone(), Bytes::from(vec![3; 10])]);
        assert_eq!(pieces.unshared_bytes(), 10);
        let kept = pieces.clone();
        assert_eq!((pieces.unshared_bytes(), kept.len()), (0, 1010));
    }

    #[test]
    fn headers_come_back_one_by_one_and_cannot_be_smuggled() {
        let mut head = Head::default();
        head.put("a", "1");
        head.put("link", "</x>\r\nevil: yes; rel=\"next\"");
        head.put_number("n", 7_u32);
        let lines: Vec<(&[u8], &[u8])> = head.iter().collect();
        assert_eq!(
            lines,
            [(&b"a"[..], &b"1"[..]), (b"link", b"</x>evil: yes; rel=\"next\""), (b"n", b"7"),]
        );
    }
}

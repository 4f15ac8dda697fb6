//! An answer independent of its connection: a status, header lines in the format of HTTP/1.1, a body.
//!
//! Header names are lower case, so the same lines serve HTTP/2.

use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use crate::sendfile::FileBody;
use crate::shared_socket::DirectSocket;

/// Header lines, each `name: value` and a line break, after room for a status line: an answer without a body is sent
/// in one piece.
#[derive(Clone, Debug)]
pub struct Head(Vec<u8>);

/// Maximum length of a status line.
const STATUS_ROOM: usize = 48;

/// One header line being written.
#[derive(Debug)]
pub struct Line<'a>(&'a mut Vec<u8>);

impl Head {
    /// Initial capacity for an answer's header lines, which avoids reallocation.
    const ROOM: usize = 1 << 10;

    /// An empty head with room for all lines of an answer.
    pub fn with_default_room() -> Self {
        Self::with_room(Self::ROOM)
    }

    pub fn with_room(bytes: usize) -> Self {
        let mut lines = Vec::with_capacity(bytes.max(STATUS_ROOM));
        lines.extend_from_slice(&[0; STATUS_ROOM]);
        Self(lines)
    }

    pub fn put(&mut self, name: &str, value: impl AsRef<str>) {
        self.line(name, |line| line.untrusted(value.as_ref()));
    }

    /// Appends a header whose value was written before and is known to be on one line.
    #[inline(always)]
    pub fn put_bytes(&mut self, name: &str, value: &[u8]) {
        self.line(name, |line| line.bytes(value));
    }

    #[inline(always)]
    pub fn put_number(&mut self, name: &str, value: impl itoa::Integer) {
        self.line(name, |line| line.number(value));
    }

    /// Appends a header made of pieces. Inlined with all of them: the compiler knows names and texts, and writes them
    /// with a few stores instead of a call for each.
    #[inline(always)]
    pub fn line(&mut self, name: &str, write: impl FnOnce(&mut Line<'_>)) {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b": ");
        write(&mut Line(&mut self.0));
        self.0.extend_from_slice(b"\r\n");
    }

    /// Appends lines made before.
    pub fn put_lines(&mut self, lines: &Self) {
        self.0.extend_from_slice(lines.as_bytes());
    }

    /// Appends the empty line after the last header, for HTTP/1.1.
    pub fn end(&mut self) {
        self.0.extend_from_slice(b"\r\n");
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.get(STATUS_ROOM..).unwrap_or_default()
    }

    /// The lines after a status line, as HTTP/1.1 sends them.
    pub(crate) fn begin_with(&mut self, status: u16) -> &[u8] {
        let line = status_line(status).as_bytes();
        let from = STATUS_ROOM.saturating_sub(line.len());
        if let Some(room) = self.0.get_mut(from..STATUS_ROOM) {
            room.copy_from_slice(line);
        }
        self.0.get(from..).unwrap_or_default()
    }

    /// Names and values, for a connection that writes headers its own way.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.as_bytes().split(|byte| *byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r")?;
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 2..)?))
        })
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl Line<'_> {
    /// Appends text of ours, which is known to be on one line.
    #[inline(always)]
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The same for bytes that were never a `str`.
    #[inline(always)]
    pub fn bytes(&mut self, text: &[u8]) {
        debug_assert!(!text.iter().copied().any(ends_line));
        self.0.extend_from_slice(text);
    }

    /// Appends text from outside. Line breaks cannot get in: bytes that would end the line are dropped.
    pub fn untrusted(&mut self, text: &str) {
        // Without an early exit, the compiler checks many bytes at a time.
        if text.bytes().fold(false, |found, byte| found | ends_line(byte)) {
            self.0.extend(text.bytes().filter(|byte| !ends_line(*byte)));
        } else {
            self.0.extend_from_slice(text.as_bytes());
        }
    }

    pub fn number(&mut self, number: impl itoa::Integer) {
        self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

const fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

/// The content after the header lines.
#[derive(Clone, Debug)]
pub enum Body {
    Whole(Bytes),
    /// Consecutive pieces of a larger body.
    Pieces {
        pieces: Arc<[Bytes]>,
        length: usize,
    },
}

impl Body {
    pub fn of_pieces(pieces: Vec<Bytes>) -> Self {
        let length = pieces.iter().map(Bytes::len).sum();
        Self::Pieces { pieces: pieces.into(), length }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Whole(body) => body.len(),
            Self::Pieces { length, .. } => *length,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn pieces(&self) -> &[Bytes] {
        match self {
            Self::Whole(body) => std::slice::from_ref(body),
            Self::Pieces { pieces, .. } => pieces,
        }
    }

    /// Number of its bytes that are not shared.
    pub fn unshared_bytes(&self) -> usize {
        match self {
            Self::Whole(body) if body.is_unique() => body.len(),
            Self::Pieces { pieces, .. } if Arc::strong_count(pieces) == 1 => {
                pieces.iter().filter(|piece| piece.is_unique()).map(Bytes::len).sum()
            }
            Self::Whole(_) | Self::Pieces { .. } => 0,
        }
    }

    /// The body in one piece, for connections that need that.
    pub fn whole(&self) -> Bytes {
        match self {
            Self::Whole(body) => body.clone(),
            Self::Pieces { pieces, .. } => pieces.concat().into(),
        }
    }
}

/// The unsent rest of a body in pieces.
pub(crate) struct Unsent<'a> {
    pub(crate) pieces: &'a [Bytes],
    /// Number of bytes of the first piece that were sent.
    pub(crate) sent: usize,
}

impl Buf for Unsent<'_> {
    fn remaining(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum::<usize>().saturating_sub(self.sent)
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.first().and_then(|piece| piece.get(self.sent..)).unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let unsent = self.pieces.iter().enumerate().filter_map(|(at, piece)| {
            let from = if at == 0 { self.sent } else { 0 };
            piece.get(from..).filter(|rest| !rest.is_empty())
        });
        let filled = slices.iter_mut().zip(unsent).map(|(slice, rest)| *slice = IoSlice::new(rest));
        filled.count()
    }

    fn advance(&mut self, count: usize) {
        self.sent += count;
        while let Some(first) = self.pieces.first().filter(|first| first.len() <= self.sent) {
            self.sent -= first.len();
            self.pieces = self.pieces.get(1..).unwrap_or_default();
        }
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// The code, if it is an error.
    pub code: Option<&'static str>,
    pub head: Head,
    pub body: Body,
    /// The same body in a form that the kernel can send by itself.
    pub file: Option<Arc<FileBody>>,
    /// A stream that follows the body; the connection ends after it.
    pub stream: Option<BodyStream>,
    /// A body that is too large to be held, which replaces `body`.
    pub long: Option<LongBody>,
}

/// A body that is produced while it is sent. If it ends before its length, the client sees that the connection (or,
/// with HTTP/2, the stream) breaks.
#[derive(Debug)]
pub struct LongBody {
    pub length: u64,
    pub pieces: BodyStream,
}

/// A body in pieces that are produced one after the other.
pub trait StreamBody: std::fmt::Debug + Send {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Called with bytes that the client has sent, which most streams ignore.
    fn receive(&mut self, _bytes: &[u8]) {}

    /// Called if the client is given up because it has not read for too long.
    fn note_slow(&mut self) {}

    /// Polled while the client does not take the last bytes of `poll_next`: ready if they should not be waited for any
    /// longer, because the stream has ended meanwhile. Then the connection is broken off.
    fn poll_overdue(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    /// Receives a handle that may write to the client while the stream waits, which is from a call of `poll_next` that
    /// returns nothing to the next call. Not every connection has one.
    fn take_socket(&mut self, _socket: DirectSocket) {}
}

pub type BodyStream = Box<dyn StreamBody>;

impl Reply {
    /// An answer without a body.
    pub fn empty(status: u16, head: Head) -> Self {
        let body = Body::Whole(Bytes::new());
        Self { status, code: None, head, body, file: None, stream: None, long: None }
    }

    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut head = Head::default();
        head.put("content-type", content_type);
        Self { body: Body::Whole(body.into()), ..Self::empty(status, head) }
    }

    /// The answer for hyper, with the body in the form that its connection needs. The length is this answer's.
    pub fn with_body<B>(&self, body: B) -> Response<B> {
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
        if !matches!(self.status, 204 | 304) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(self.length()));
        }
        response
    }

    /// Length of the content after the head, in bytes.
    pub(crate) fn length(&self) -> u64 {
        let body = || u64::try_from(self.body.len()).unwrap_or(u64::MAX);
        self.long.as_ref().map_or_else(body, |long| long.length)
    }
}

/// The status of a connection that switches to another protocol.
pub(crate) const SWITCHES: u16 = 101;

/// The status line of HTTP/1.1.
pub(crate) const fn status_line(status: u16) -> &'static str {
    match status {
        SWITCHES => "HTTP/1.1 101 Switching Protocols\r\n",
        200 => "HTTP/1.1 200 OK\r\n",
        202 => "HTTP/1.1 202 Accepted\r\n",
        204 => "HTTP/1.1 204 No Content\r\n",
        206 => "HTTP/1.1 206 Partial Content\r\n",
        303 => "HTTP/1.1 303 See Other\r\n",
        304 => "HTTP/1.1 304 Not Modified\r\n",
        400 => "HTTP/1.1 400 Bad Request\r\n",
        401 => "HTTP/1.1 401 Unauthorized\r\n",
        403 => "HTTP/1.1 403 Forbidden\r\n",
        404 => "HTTP/1.1 404 Not Found\r\n",
        405 => "HTTP/1.1 405 Method Not Allowed\r\n",
        409 => "HTTP/1.1 409 Conflict\r\n",
        410 => "HTTP/1.1 410 Gone\r\n",
        413 => "HTTP/1.1 413 Content Too Large\r\n",
        414 => "HTTP/1.1 414 URI Too Long\r\n",
        416 => "HTTP/1.1 416 Range Not Satisfiable\r\n",
        426 => "HTTP/1.1 426 Upgrade Required\r\n",
        429 => "HTTP/1.1 429 Too Many Requests\r\n",
        422 => "HTTP/1.1 422 Unprocessable Content\r\n",
        431 => "HTTP/1.1 431 Request Header Fields Too Large\r\n",
        503 => "HTTP/1.1 503 Service Unavailable\r\n",
        _ => "HTTP/1.1 500 Internal Server Error\r\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_line_fits_before_the_lines() {
        for status in 100..600 {
            let mut head = Head::default();
            head.put("x", "y");
            let expected = format!("{}x: y\r\n", status_line(status));
            assert_eq!(head.begin_with(status), expected.as_bytes());
            assert_eq!(head.as_bytes(), b"x: y\r\n");
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
    fn a_body_in_pieces_goes_on_where_a_write_has_ended() {
        let whole = b"[abcdefghij,klmno,]";
        let pieces = ["[", "abcdefghij,", "", "klmno,", "]"]
            .map(|piece| Bytes::from_static(piece.as_bytes()));
        // Whatever number of bytes the socket takes each time.
        for step in 1..=whole.len() {
            let mut unsent = Unsent { pieces: &pieces, sent: 0 };
            let mut sent = Vec::new();
            while unsent.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 2];
                let filled = unsent.chunks_vectored(&mut slices);
                let offered: Vec<u8> =
                    slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert!(offered.starts_with(unsent.chunk()) && !offered.is_empty());
                let taken = step.min(offered.len());
                sent.extend_from_slice(&offered[..taken]);
                unsent.advance(taken);
            }
            assert_eq!(sent, whole, "{step} at a time");
        }
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

//! A request's body in the framing of HTTP/1.1: a number of bytes, or chunks until an empty one (RFC 9112, 7.1).
//!
//! It is read on demand and no further. Bytes are passed on at once in as few pieces as they arrived in, so that a
//! body in tiny chunks takes no more memory than its bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::wire::Wire;
use crate::sendfile::Socket;

/// Bytes read at a time.
const READ_BYTES: usize = 32 << 10;
/// Maximum length of the line with a chunk's size and extensions, and of all trailers together.
const LINE_BYTES_MAX: usize = 4 << 10;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The framing of a body, and the progress of reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Number of bytes left.
    Length(u64),
    Chunked(Chunk),
}

/// The next element of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size,
    Data(u64),
    /// The line break after the data.
    Break,
    /// Lines after the last chunk, with the number of bytes received.
    Trailers(usize),
    Done,
}

/// The bytes violate the framing.
#[derive(Debug, PartialEq, Eq)]
struct Malformed;

impl Framing {
    pub(crate) const NONE: Self = Self::Length(0);

    pub(super) const fn of_length(bytes: u64) -> Self {
        Self::Length(bytes)
    }

    pub(super) const fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Done))
    }

    /// Number of bytes still to come, if known.
    pub(super) fn left(self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(left),
            Self::Chunked(Chunk::Done) => Some(0),
            Self::Chunked(_) => None,
        }
    }

    /// Removes the bytes of the body from the bytes read, and leaves what follows it.
    fn decode(&mut self, read: &mut Vec<u8>) -> Result<Vec<u8>, Malformed> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(read.len());
                let rest = read.split_off(taken);
                *left = left.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX));
                Ok(std::mem::replace(read, rest))
            }
            Self::Chunked(chunk) => {
                let (data, used) = chunk.decode(read)?;
                read.drain(..used);
                Ok(data)
            }
        }
    }
}

impl Chunk {
    /// The data in the bytes read, and the number of bytes consumed.
    fn decode(&mut self, read: &[u8]) -> Result<(Vec<u8>, usize), Malformed> {
        let (mut data, mut at) = (Vec::new(), 0);
        loop {
            let unread = read.get(at..).unwrap_or_default();
            let (next, used) = match *self {
                Self::Data(left) => {
                    let wanted = usize::try_from(left).unwrap_or(usize::MAX);
                    let taken = unread.get(..wanted).unwrap_or(unread);
                    data.extend_from_slice(taken);
                    let left = left.saturating_sub(u64::try_from(taken.len()).unwrap_or(u64::MAX));
                    if left > 0 {
                        *self = Self::Data(left);
                        return Ok((data, at + taken.len()));
                    }
                    (Self::Break, taken.len())
                }
                Self::Break | Self::Size | Self::Trailers(_) => {
                    let Some(line) = line(unread)? else { return Ok((data, at)) };
                    (self.after(line)?, line.len() + 2)
                }
                Self::Done => return Ok((data, at)),
            };
            *self = next;
            at += used;
        }
    }

    /// The element after a line.
    fn after(self, line: &[u8]) -> Result<Self, Malformed> {
        match self {
            Self::Break if line.is_empty() => Ok(Self::Size),
            Self::Size => Ok(match chunk_size(line).ok_or(Malformed)? {
                0 => Self::Trailers(0),
                size => Self::Data(size),
            }),
            Self::Trailers(_) if line.is_empty() => Ok(Self::Done),
            Self::Trailers(bytes) if bytes + line.len() <= LINE_BYTES_MAX => {
                Ok(Self::Trailers(bytes + line.len() + 2))
            }
            Self::Break | Self::Trailers(_) | Self::Data(_) | Self::Done => Err(Malformed),
        }
    }
}

/// The next line without its end; `None` while it is incomplete.
fn line(unread: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let near = unread.get(..LINE_BYTES_MAX).unwrap_or(unread);
    match memchr::memchr(b'\n', near).and_then(|end| near.get(..end)) {
        Some(line) => line.strip_suffix(b"\r").map(Some).ok_or(Malformed),
        None if unread.len() >= LINE_BYTES_MAX => Err(Malformed),
        None => Ok(None),
    }
}

/// The size at the start of a chunk's line; its extensions are ignored.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| *byte == b';').unwrap_or(line.len());
    let digits = line.get(..end)?.trim_ascii_end();
    let hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| hex)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The body of a connection's present request.
pub(super) struct Incoming<'a, S> {
    wire: &'a mut Wire<S>,
    /// Bytes read and not decoded: of the body, or of what follows it.
    read: Vec<u8>,
    framing: Framing,
    /// The interim response that the client expects before it sends the body.
    invitation: &'static [u8],
}

impl<'a, S> Incoming<'a, S> {
    pub(super) fn new(
        wire: &'a mut Wire<S>,
        read: Vec<u8>,
        framing: Framing,
        expects: bool,
    ) -> Self {
        // A client that sends the body without waiting gets no interim response.
        let invitation = if expects && read.is_empty() { CONTINUE } else { &[] };
        Self { wire, read, framing, invitation }
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// True if the client still waits for the interim response.
    pub(super) fn is_uninvited(&self) -> bool {
        !self.invitation.is_empty()
    }

    pub(super) fn wire(&mut self) -> &mut Wire<S> {
        self.wire
    }

    /// The bytes read beyond the body.
    pub(super) fn into_rest(self) -> Vec<u8> {
        self.read
    }
}

impl<S: Socket> Body for Incoming<'_, S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let own = self.get_mut();
        loop {
            if own.framing.is_done() {
                return Poll::Ready(None);
            }
            match own.framing.decode(&mut own.read) {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data.into())))),
                Err(Malformed) => {
                    return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
                }
            }
            if own.framing.is_done() {
                return Poll::Ready(None);
            }
            while !own.invitation.is_empty() {
                let stream = Pin::new(&mut own.wire.stream);
                let sent = ready!(stream.poll_write(context, own.invitation))?;
                own.invitation = own.invitation.get(sent..).unwrap_or_default();
            }
            ready!(Pin::new(&mut own.wire.stream).poll_flush(context))?;
            if ready!(own.wire.stream.poll_receive::<READ_BYTES>(&mut own.read, context))? == 0 {
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.framing.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        self.framing.left().map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data decoded if the bytes arrive in pieces of `step`, and the bytes left over.
    fn decoded(text: &[u8], step: usize) -> Result<(Vec<u8>, Vec<u8>, bool), Malformed> {
        let (mut framing, mut read, mut data) = (Framing::chunked(), Vec::new(), Vec::new());
        for part in text.chunks(step) {
            read.extend_from_slice(part);
            data.extend(framing.decode(&mut read)?);
        }
        Ok((data, read, framing.is_done()))
    }

    #[test]
    fn chunks_are_put_together_however_they_arrive() {
        let text = b"5;a=\"b\"\r\nhello\r\n0A \r\n, somebody\r\n0\r\nx-trailer: 1\r\n\r\nGET /";
        for step in 1..=text.len() {
            let (data, rest, done) = decoded(text, step).unwrap();
            assert_eq!((&*data, &*rest, done), (&b"hello, somebody"[..], &b"GET /"[..], true));
        }
    }

    #[test]
    fn chunks_that_say_something_odd_are_refused() {
        let long = format!("1;{}\r\nx\r\n", "a".repeat(5_000));
        let trailers = format!("0\r\n{}", format!("a: {}\r\n", "b".repeat(1_000)).repeat(6));
        for bad in [
            "\r\nx",
            "g\r\nx",
            "-1\r\nx",
            "+1\r\nx",
            "0x1\r\nx",
            "1\nx\r\n",
            "1\r\nxy\r\n",
            "1 1\r\nx\r\n",
            "11111111111111111\r\n",
            &long,
            &trailers,
        ] {
            for step in [1, bad.len()] {
                assert_eq!(decoded(bad.as_bytes(), step), Err(Malformed), "{bad:?}");
            }
        }
    }

    #[test]
    fn a_length_is_counted_down_and_what_follows_is_left() {
        let (mut framing, mut read) = (Framing::of_length(5), b"abc".to_vec());
        assert_eq!(framing.decode(&mut read), Ok(b"abc".to_vec()));
        assert_eq!((framing.left(), read.len()), (Some(2), 0));
        read = b"deGET /".to_vec();
        assert_eq!(framing.decode(&mut read), Ok(b"de".to_vec()));
        assert_eq!((framing.is_done(), &*read), (true, &b"GET /"[..]));
    }
}

//! A request's body as HTTP/1.1 frames it: a number of bytes, or chunks until an empty one (RFC 9112, 7.1).
//!
//! It is read when somebody asks for it and no further than that; what was read is handed on at once, in as few pieces
//! as it came in, so that a body in tiny chunks takes no more memory than its bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::wire::Wire;
use crate::sendfile::Socket;

/// How much of a body is read at a time.
const READ_BYTES: usize = 32 << 10;
/// The longest line that a chunk's size and its extensions are on, and all trailers together.
const LINE_BYTES_MAX: usize = 4 << 10;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How a body ends, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This number of bytes is left.
    Length(u64),
    Chunked(Chunk),
}

/// What comes next in a body of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size,
    Data(u64),
    /// The line break after the data.
    Break,
    /// Lines after the last chunk, of which this number of bytes has come.
    Trailers(usize),
    Done,
}

/// The bytes are not framed as they should be.
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

    /// How many bytes are still to come, where that is known.
    pub(super) fn left(self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(left),
            Self::Chunked(Chunk::Done) => Some(0),
            Self::Chunked(_) => None,
        }
    }

    /// Takes what belongs to the body out of what was read, and leaves what follows it.
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
    /// The data in what was read, and how much of that was looked at.
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

    /// What comes after a line.
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

/// The next line without its end; `None` while it is not whole.
fn line(unread: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let near = unread.get(..LINE_BYTES_MAX).unwrap_or(unread);
    match memchr::memchr(b'\n', near).and_then(|end| near.get(..end)) {
        Some(line) => line.strip_suffix(b"\r").map(Some).ok_or(Malformed),
        None if unread.len() >= LINE_BYTES_MAX => Err(Malformed),
        None => Ok(None),
    }
}

/// The size that a chunk's line begins with; its extensions mean nothing to us.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| *byte == b';').unwrap_or(line.len());
    let digits = line.get(..end)?.trim_ascii_end();
    let hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| hex)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The body of the request that a connection is at.
pub(super) struct Incoming<'a, S> {
    wire: &'a mut Wire<S>,
    /// What was read and not looked at: of the body, or of what follows it.
    read: Vec<u8>,
    framing: Framing,
    /// What the client waits for before it sends the body.
    invitation: &'static [u8],
}

impl<'a, S> Incoming<'a, S> {
    pub(super) fn new(
        wire: &'a mut Wire<S>,
        read: Vec<u8>,
        framing: Framing,
        expects: bool,
    ) -> Self {
        // Who sends without being asked is not asked.
        let invitation = if expects && read.is_empty() { CONTINUE } else { &[] };
        Self { wire, read, framing, invitation }
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the client still waits to be asked for the body.
    pub(super) fn is_uninvited(&self) -> bool {
        !self.invitation.is_empty()
    }

    pub(super) fn wire(&mut self) -> &mut Wire<S> {
        self.wire
    }

    /// What was read beyond the body.
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

    /// What is decoded when the bytes come a number at a time, and what is left over.
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

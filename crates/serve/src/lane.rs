//! The hot path: a connection, from its first byte to the last of its answers.
//!
//! Nearly every request is a GET without a body on a connection kept alive, and should cost what a file server
//! needs to send the same bytes. Most of that is the kernel's. What is ours stays small because
//!
//! - a head is read into the stack of one poll and parsed once, by `httparse`, where it lies; what it asks
//!   ([`Asked`]) borrows from it. Between two requests a connection holds no buffer;
//! - a connection has one timer ([`Patience`]), which is moved when it goes off and not with every request;
//! - status line, header lines and a body that is kept ready for the epoch leave in one write, and a larger body
//!   that is asked for again is sent by the kernel from where it lies ([`crate::spool`]). Nothing is encoded on the
//!   way to the socket.
//!
//! There is no second contract here: keys, limits, parameters, errors and header names are [`service::answer`]'s,
//! and every refusal, of malformed and oversized heads too, is ours (D1). Whatever is more than a head (a body,
//! an upgrade, an expectation, HTTP/2) is handed over with its bytes, untouched, to hyper, which ends in the same
//! [`service::answer`], and stays with it.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use domain::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::watch;

use crate::app::App;
use crate::dashboard;
use crate::date::http_date_bytes;
use crate::error::ErrorCode;
use crate::handover::{self, Rewound};
use crate::metrics::Metrics;
use crate::patience::Patience;
use crate::peer::Peer;
use crate::reply::{Reply, status_line};
use crate::request::{Asked, HEAD_BYTES_MAX, HEADERS_MAX, Method, Visitor};
use crate::server;
use crate::service::{self, Doors};
use crate::spool::Socket;

/// From the first byte of a head to its last (D32).
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two requests (D32).
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// For a client to take an answer (D32); 150 KB at 2.5 KB/s.
pub(crate) const WRITE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a client that was told to go is listened to.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// How much is read at a time: more than nearly every head, and little for a stack.
const READ_BYTES: usize = 4 << 10;
/// Pieces of an answer that leave in one write.
const PIECES_AT_ONCE: usize = 16;
/// How every HTTP/2 connection begins.
pub(crate) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// What the bytes read so far are.
#[expect(clippy::large_enum_variant, reason = "looked at where it was made, never kept")]
enum Reading<'a> {
    More,
    Plain {
        asked: Asked<'a>,
        head_bytes: usize,
        close: bool,
    },
    /// For hyper.
    Unusual,
    Refused(ErrorCode, &'static str),
}

/// Serves a connection until it ends or the service stops.
pub(crate) async fn serve<S>(
    app: Arc<App>,
    doors: Doors,
    stream: S,
    peer: Peer,
    stopping: watch::Receiver<bool>,
) where
    S: Socket,
{
    let mut wire = Wire::new(stream, stopping.clone());
    let mut held = Vec::new();
    let mut in_head = false;
    let mut visitor = Visitor::new(&*app.clock, peer);
    visitor.takes_spooled = S::SENDS_SPOOLED;
    loop {
        let answered = match examine(&held) {
            Reading::More => {
                if !held.is_empty() && !in_head {
                    in_head = true;
                    wire.patience.allow(HEAD_TIME_MAX);
                }
                if !wire.fill(&mut held, &app.metrics).await {
                    return;
                }
                continue;
            }
            Reading::Plain { asked, head_bytes, close } => {
                let close = close || *wire.stopping.borrow();
                visitor.ask_again(&*app.clock);
                let reply = service::answer(&app, doors, &asked, &mut visitor).await;
                let answer = Outgoing { reply, method: asked.method, close, at: visitor.now };
                if !wire.send(answer, &app.metrics).await {
                    return;
                }
                if close {
                    return wire.finish().await;
                }
                head_bytes
            }
            Reading::Refused(code, message) => {
                let reply = service::refuse(&app, code, message);
                if wire.send(Outgoing::last(reply, &app), &app.metrics).await {
                    wire.finish().await;
                }
                return;
            }
            Reading::Unusual => {
                let stream = Rewound::new(Bytes::from(held), wire.stream);
                // Boxed, or every connection would be as large as one of hyper's.
                return Box::pin(handover::serve(app, doors, stream, peer, stopping)).await;
            }
        };
        held.drain(..answered);
        in_head = false;
        wire.patience.allow_from(visitor.begun, IDLE_TIME_MAX);
    }
}

/// Answers a client that has not asked yet, and lets it go.
pub(crate) async fn turn_away<S>(
    app: &App,
    stream: S,
    reply: Reply,
    stopping: watch::Receiver<bool>,
) where
    S: Socket,
{
    let mut wire = Wire::new(stream, stopping);
    if wire.send(Outgoing::last(reply, app), &app.metrics).await {
        wire.finish().await;
    }
}

/// An answer and how it is to go out.
struct Outgoing {
    reply: Reply,
    method: Method,
    close: bool,
    at: Timestamp,
}

impl Outgoing {
    /// What is told to a client before the connection is closed on it.
    fn last(reply: Reply, app: &App) -> Self {
        Self { reply, method: Method::Get, close: true, at: app.clock.now() }
    }
}

/// Looks at what has been read, without taking it.
fn examine(held: &[u8]) -> Reading<'_> {
    if held.is_empty() {
        return Reading::More;
    }
    let preface = held.len().min(HTTP2_PREFACE.len());
    if held.get(..preface) == HTTP2_PREFACE.get(..preface) {
        return if preface == HTTP2_PREFACE.len() { Reading::Unusual } else { Reading::More };
    }
    let mut headers = [MaybeUninit::uninit(); HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(held, &mut headers) {
        Ok(httparse::Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => {
            classify(&request, head_bytes)
        }
        Ok(_) if held.len() > HEAD_BYTES_MAX => too_large(held),
        Ok(_) => Reading::More,
        Err(httparse::Error::TooManyHeaders) => {
            Reading::Refused(ErrorCode::HeadTooLarge, "the request has more than 64 headers")
        }
        Err(_) => Reading::Refused(ErrorCode::InvalidParameter, "this is not an HTTP/1.1 request"),
    }
}

/// Which part is too large: a request line that never ends, or the headers after it.
fn too_large(held: &[u8]) -> Reading<'_> {
    let line_end = held.iter().position(|byte| *byte == b'\n');
    if line_end.is_some_and(|end| end < HEAD_BYTES_MAX) {
        Reading::Refused(ErrorCode::HeadTooLarge, "the request's headers are larger than 16 KiB")
    } else {
        Reading::Refused(ErrorCode::TargetTooLong, "the path and query are longer than 8 KiB")
    }
}

/// What is asked, if the head is all there is to the request.
fn classify<'a>(request: &httparse::Request<'_, 'a>, head_bytes: usize) -> Reading<'a> {
    let target = origin_form(request.path.unwrap_or_default());
    let mut asked = Asked::new(request.method.unwrap_or_default(), target);
    let mut close = request.version == Some(0);
    let mut hosts = 0;
    let mut length: Option<&[u8]> = None;
    let mut chunked = false;
    // A push may be empty; it is the other way's all the same. So is an answer that goes on.
    let mut plain = asked.method != Method::Post && !dashboard::is_watched(asked.path);
    for header in &*request.headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
            asked.browser.host = Some(header.value);
        } else if is("connection") {
            let value = std::str::from_utf8(header.value).unwrap_or_default();
            let says =
                |word: &str| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
            close = says("close") || (close && !says("keep-alive"));
            plain &= !says("upgrade");
        } else if is("content-length") {
            let digits = !header.value.is_empty() && header.value.iter().all(u8::is_ascii_digit);
            if !digits || length.is_some_and(|length| length != header.value) {
                return bad_framing();
            }
            length = Some(header.value);
            plain &= header.value == b"0";
        } else if is("transfer-encoding") {
            if chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                return bad_framing();
            }
            chunked = true;
            plain = false;
        } else if is("expect") || is("upgrade") {
            plain = false;
        } else {
            asked.header(header.name, header.value);
        }
    }
    // Two ways to say where the body ends are a way to smuggle (RFC 9112, 6.3).
    if chunked && (length.is_some() || request.version == Some(0)) {
        return bad_framing();
    }
    if request.version == Some(1) && hosts != 1 {
        return Reading::Refused(
            ErrorCode::InvalidParameter,
            "an HTTP/1.1 request needs one Host header",
        );
    }
    if plain { Reading::Plain { asked, head_bytes, close } } else { Reading::Unusual }
}

fn bad_framing<'a>() -> Reading<'a> {
    Reading::Refused(
        ErrorCode::InvalidParameter,
        "where the body ends cannot be told: send Content-Length once or Transfer-Encoding: chunked",
    )
}

/// `http://host/path` means `/path` here.
fn origin_form(target: &str) -> &str {
    let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    match rest {
        Some(rest) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/"),
        None => target,
    }
}

/// A connection's bytes, and how long they are waited for.
struct Wire<S> {
    stream: S,
    patience: Patience,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    stopping: watch::Receiver<bool>,
    listens: bool,
}

impl<S: Socket> Wire<S> {
    fn new(stream: S, stopping: watch::Receiver<bool>) -> Self {
        let mut signal = stopping.clone();
        let stop = Box::pin(async move { server::stopped(&mut signal).await });
        let patience = Patience::new(IDLE_TIME_MAX);
        Self { stream, patience, stop, stopping, listens: false }
    }

    /// Whether the service stops; if not, the task is woken when it does. A task is woken the same way all its life,
    /// so it asks for that once, and looks from then on.
    fn is_stopping(&mut self, context: &mut Context<'_>) -> bool {
        if self.listens && !*self.stopping.borrow() {
            return false;
        }
        self.listens = true;
        self.stop.as_mut().poll(context).is_ready()
    }

    /// Waits for more bytes. False when the connection ended or took too long, or when the service stops
    /// between two requests: one that has begun to arrive is still answered.
    async fn fill(&mut self, held: &mut Vec<u8>, metrics: &Metrics) -> bool {
        let idle = held.is_empty();
        if idle {
            // An idle connection holds no buffer.
            *held = Vec::new();
        }
        poll_fn(|context| {
            if let Poll::Ready(read) = poll_read(&mut self.stream, held, context) {
                return Poll::Ready(read.is_ok_and(|read| read > 0));
            }
            if self.patience.is_over(context) {
                if !idle {
                    metrics.cut_slow_head.fetch_add(1, Ordering::Relaxed);
                }
                return Poll::Ready(false);
            }
            if idle && self.is_stopping(context) {
                return Poll::Ready(false);
            }
            Poll::Pending
        })
        .await
    }

    /// Sends an answer, in one write where the socket takes it. False when the client did not take it.
    async fn send(&mut self, answer: Outgoing, metrics: &Metrics) -> bool {
        let Outgoing { mut reply, method, close, at } = answer;
        if reply.status != 304 {
            reply.head.put_number("content-length", reply.body.len());
        }
        reply.head.put_bytes("date", &http_date_bytes(at));
        if close {
            reply.head.put("connection", "close");
        }
        reply.head.end();
        let status = status_line(reply.status).as_bytes();
        let body = if method == Method::Head { &[] } else { reply.body.pieces() };
        let mut lines = status.chain(reply.head.as_bytes());
        let mut spooled = reply.spooled.as_deref().map(|body| (body, 0));
        let mut rest = (&mut lines).chain(Unsent { pieces: body, sent: 0 });
        let mut waiting = false;
        let sent = poll_fn(|context| {
            let sent = match &mut spooled {
                Some((body, sent)) => {
                    self.stream.poll_send_spooled(rest.first_mut(), body, sent, context)
                }
                None => poll_write_all(&mut self.stream, &mut rest, context),
            };
            if sent.is_ready() {
                return sent;
            }
            if !waiting {
                waiting = true;
                self.patience.allow(WRITE_TIME_MAX);
            }
            if self.patience.is_over(context) {
                metrics.cut_slow_reader.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Poll::Pending
        });
        sent.await.is_ok()
    }

    /// Lets the client read what was written before the connection goes: closing with unread bytes would
    /// reset it.
    async fn finish(mut self) {
        self.patience.allow(LINGER_TIME_MAX);
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let mut scrap = Vec::new();
        // A client that keeps sending is not listened to for long.
        for _ in 0..64 {
            scrap.clear();
            let heard = poll_fn(|context| match poll_read(&mut self.stream, &mut scrap, context) {
                Poll::Ready(read) => Poll::Ready(read.is_ok_and(|read| read > 0)),
                Poll::Pending if self.patience.is_over(context) => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            });
            if !heard.await {
                return;
            }
        }
    }
}

/// Reads what is there into the stack, and what was read from there to the end of `held`.
fn poll_read<S: AsyncRead + Unpin>(
    stream: &mut S,
    held: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut space = [MaybeUninit::uninit(); READ_BYTES];
    let mut read = ReadBuf::uninit(&mut space);
    ready!(Pin::new(stream).poll_read(context, &mut read))?;
    held.extend_from_slice(read.filled());
    Poll::Ready(Ok(read.filled().len()))
}

/// What is left of a body in pieces.
struct Unsent<'a> {
    pieces: &'a [Bytes],
    /// How much of the first of them is gone.
    sent: usize,
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

fn poll_write_all<S: AsyncWrite + Unpin>(
    stream: &mut S,
    rest: &mut impl Buf,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while rest.has_remaining() {
        let mut slices = [IoSlice::new(&[]); PIECES_AT_ONCE];
        let filled = rest.chunks_vectored(&mut slices);
        let slices = slices.get(..filled).unwrap_or_default();
        let written = ready!(Pin::new(&mut *stream).poll_write_vectored(context, slices))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        rest.advance(written);
    }
    Pin::new(stream).poll_flush(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_pieces_goes_on_where_a_write_has_ended() {
        let whole = b"[abcdefghij,klmno,]";
        let pieces = ["[", "abcdefghij,", "", "klmno,", "]"]
            .map(|piece| Bytes::from_static(piece.as_bytes()));
        // However much the socket takes each time.
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
    fn only_plain_requests_stay_in_the_lane() {
        let plain = |text: &str| match examine(text.as_bytes()) {
            Reading::Plain { close, .. } => Some((true, close)),
            Reading::Unusual => Some((false, false)),
            Reading::More | Reading::Refused(..) => None,
        };
        assert_eq!(plain("GET / HTTP/1.1\r\nhost: a\r\n\r\n"), Some((true, false)));
        assert_eq!(plain("GET / HTTP/1.0\r\n\r\n"), Some((true, true)));
        assert_eq!(
            plain("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
            Some((true, true))
        );
        assert_eq!(
            plain("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"),
            Some((false, false))
        );
        assert_eq!(
            plain("GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"),
            Some((false, false))
        );
        assert_eq!(plain("GET / HTTP/1.1\r\n\r\n"), None);
        assert!(matches!(examine(b"PRI * HTTP/2.0\r\n\r\nSM"), Reading::Unusual));
        assert!(matches!(examine(b"PRI"), Reading::More));
        assert!(matches!(
            examine(b"nonsense\r\n\r\n"),
            Reading::Refused(ErrorCode::InvalidParameter, _)
        ));
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(20_000));
        assert!(matches!(examine(long.as_bytes()), Reading::Refused(ErrorCode::TargetTooLong, _)));
        let heavy = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "a".repeat(20_000));
        assert!(matches!(examine(heavy.as_bytes()), Reading::Refused(ErrorCode::HeadTooLarge, _)));
    }
}

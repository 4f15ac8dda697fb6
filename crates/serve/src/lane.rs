//! A connection.
//!
//! Most requests are a GET without a body on a connection kept alive. Those are read here with `httparse` and
//! answered with one write, which costs a fraction of what a general server does and leaves every refusal,
//! of malformed and oversized heads too, in our own hands (D1). Whatever is more than that (a body, an
//! upgrade, an expectation, HTTP/2) is handed over with its bytes, untouched, to hyper, and stays with it.
//! Both ways end in the same [`service::answer`].

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::app::App;
use crate::error::ErrorCode;
use crate::handover::{self, Rewound};
use crate::reply::{Reply, reason};
use crate::request::{Asked, HEAD_BYTES_MAX, HEADERS_MAX, Method};
use crate::server;
use crate::service::{self, Doors};

/// From the first byte of a head to its last (D32).
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two requests (D32).
const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// For a client to take an answer; 150 KB at 2.5 KB/s.
const WRITE_TIME_MAX: Duration = Duration::from_secs(60);
/// What a connection starts to read into; grows for a larger head and is given back when idle.
const READ_BYTES: usize = 2 << 10;
/// How every HTTP/2 connection begins.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// What the bytes read so far are.
enum Reading {
    More,
    Request { head_bytes: usize, plain: bool, close: bool },
    Http2,
    Refused(ErrorCode, &'static str),
}

/// Serves a connection until it ends or the service stops.
pub(crate) async fn serve<S>(
    app: Arc<App>,
    doors: Doors,
    mut stream: S,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut held = BytesMut::new();
    loop {
        let Some(reading) = next_head(&mut stream, &mut held, &mut stopping).await else {
            return;
        };
        match reading {
            Reading::Request { head_bytes, plain: true, close } => {
                let head = held.split_to(head_bytes);
                let closing = close || *stopping.borrow();
                if !answer_plain(&app, doors, &mut stream, &head, closing).await || closing {
                    return finish(stream).await;
                }
            }
            Reading::Request { plain: false, .. } | Reading::Http2 => {
                let stream = Rewound::new(held.freeze(), stream);
                return handover::serve(app, doors, stream, stopping).await;
            }
            Reading::Refused(code, message) => {
                let reply = service::refuse(&app, code, message);
                write(&mut stream, &reply, Method::Get, true, app.clock.now()).await;
                return finish(stream).await;
            }
            Reading::More => {}
        }
    }
}

/// Reads until a whole head is there. `None` when the connection ended, took too long or the service stops.
async fn next_head<S: AsyncRead + Unpin>(
    stream: &mut S,
    held: &mut BytesMut,
    stopping: &mut watch::Receiver<bool>,
) -> Option<Reading> {
    if held.is_empty() {
        // An idle connection holds no buffer.
        *held = BytesMut::new();
        let mut first = [0; READ_BYTES];
        let read = {
            let reading = timeout(IDLE_TIME_MAX, stream.read(&mut first));
            tokio::select! {
                // A request that has arrived is answered even while the service stops.
                biased;
                read = reading => read.ok()?.ok()?,
                () = server::stopped(stopping) => return None,
            }
        };
        held.extend_from_slice(first.get(..read).filter(|bytes| !bytes.is_empty())?);
    }
    let whole = async {
        loop {
            let reading = examine(held);
            if !matches!(reading, Reading::More) {
                return Some(reading);
            }
            if stream.read_buf(held).await.ok()? == 0 {
                return None;
            }
        }
    };
    timeout(HEAD_TIME_MAX, whole).await.ok()?
}

/// Looks at what has been read, without taking it.
fn examine(held: &[u8]) -> Reading {
    let preface = held.len().min(HTTP2_PREFACE.len());
    if held.get(..preface) == HTTP2_PREFACE.get(..preface) {
        return if preface == HTTP2_PREFACE.len() { Reading::Http2 } else { Reading::More };
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(held) {
        Ok(httparse::Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => {
            classify(&request, head_bytes)
        }
        Ok(_) if held.len() > HEAD_BYTES_MAX => {
            // Which part is too large: a request line that never ends, or the headers after it.
            if held.contains(&b'\n') && held.iter().position(|b| *b == b'\n') < Some(HEAD_BYTES_MAX)
            {
                Reading::Refused(
                    ErrorCode::HeadTooLarge,
                    "the request's headers are larger than 16 KiB",
                )
            } else {
                Reading::Refused(
                    ErrorCode::TargetTooLong,
                    "the path and query are longer than 8 KiB",
                )
            }
        }
        Ok(_) => Reading::More,
        Err(httparse::Error::TooManyHeaders) => {
            Reading::Refused(ErrorCode::HeadTooLarge, "the request has more than 64 headers")
        }
        Err(_) => Reading::Refused(ErrorCode::InvalidParameter, "this is not an HTTP/1.1 request"),
    }
}

fn classify(request: &httparse::Request<'_, '_>, head_bytes: usize) -> Reading {
    let mut close = request.version == Some(0);
    let mut hosts = 0;
    let mut length: Option<&[u8]> = None;
    let mut chunked = false;
    // A push may be empty; it is the other way's all the same.
    let mut plain = request.method != Some("POST");
    for header in &*request.headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
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
    Reading::Request { head_bytes, plain, close }
}

fn bad_framing() -> Reading {
    Reading::Refused(
        ErrorCode::InvalidParameter,
        "where the body ends cannot be told: send Content-Length once or Transfer-Encoding: chunked",
    )
}

/// Answers a request whose head is all there is to it. False when the client did not take the answer.
async fn answer_plain<S: AsyncWrite + Unpin>(
    app: &Arc<App>,
    doors: Doors,
    stream: &mut S,
    head: &[u8],
    close: bool,
) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    // It was whole a moment ago.
    if !request.parse(head).is_ok_and(|status| status.is_complete()) {
        return false;
    }
    let target = origin_form(request.path.unwrap_or_default());
    let mut asked = Asked::new(request.method.unwrap_or_default(), target);
    for header in &*request.headers {
        asked.header(header.name, header.value);
    }
    let reply = service::answer(app, doors, &asked).await;
    write(stream, &reply, asked.method, close, app.clock.now()).await
}

/// `http://host/path` means `/path` here.
fn origin_form(target: &str) -> &str {
    let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    match rest {
        Some(rest) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/"),
        None => target,
    }
}

/// Writes an answer with its body in one go where the socket takes it.
async fn write<S: AsyncWrite + Unpin>(
    stream: &mut S,
    reply: &Reply,
    method: Method,
    close: bool,
    now: domain::Timestamp,
) -> bool {
    let mut head = Vec::with_capacity(1 << 10);
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(itoa::Buffer::new().format(reply.status).as_bytes());
    head.push(b' ');
    head.extend_from_slice(reason(reply.status).as_bytes());
    head.extend_from_slice(b"\r\n");
    head.extend_from_slice(reply.head.as_bytes());
    if reply.status != 304 {
        head.extend_from_slice(b"content-length: ");
        head.extend_from_slice(itoa::Buffer::new().format(reply.body.len()).as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"date: ");
    head.extend_from_slice(http_date(now).as_bytes());
    head.extend_from_slice(if close { b"\r\nconnection: close\r\n\r\n" } else { b"\r\n\r\n" });
    let body: &[u8] = if method == Method::Head { &[] } else { &reply.body };
    matches!(timeout(WRITE_TIME_MAX, write_both(stream, &head, body)).await, Ok(Ok(())))
}

/// Writes a refusal to a client that has not asked yet.
pub(crate) async fn write_refusal<S: AsyncWrite + Unpin>(
    stream: &mut S,
    reply: &Reply,
    now: domain::Timestamp,
) -> bool {
    write(stream, reply, Method::Get, true, now).await
}

async fn write_both<S: AsyncWrite + Unpin>(
    stream: &mut S,
    head: &[u8],
    body: &[u8],
) -> std::io::Result<()> {
    let mut rest = Buf::chain(head, body);
    while rest.has_remaining() {
        let mut slices = [IoSlice::new(&[]); 2];
        let filled = rest.chunks_vectored(&mut slices);
        let written = stream.write_vectored(slices.get(..filled).unwrap_or_default()).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        rest.advance(written);
    }
    stream.flush().await
}

/// Lets the client read what was written before the connection goes: closing with unread bytes would reset it.
pub(crate) async fn finish<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let lingering = async {
        stream.shutdown().await.ok()?;
        let mut scrap = [0; 1024];
        // A client that keeps sending is not listened to for long.
        for _ in 0..64 {
            if stream.read(&mut scrap).await.ok()? == 0 {
                break;
            }
        }
        Some(())
    };
    if timeout(Duration::from_secs(1), lingering).await.is_err() {
        tracing::debug!("a client did not close its side");
    }
}

/// The date header's form: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(at: domain::Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = at.to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let weekday = usize::try_from(at.as_secs().div_euclid(86_400).rem_euclid(7)).unwrap_or(0);
    let month = part(5, 7).parse::<usize>().unwrap_or(1) - 1;
    format!(
        "{}, {} {} {} {} GMT",
        DAYS.get(weekday).unwrap_or(&""),
        part(8, 10),
        MONTHS.get(month).unwrap_or(&""),
        part(0, 4),
        part(11, 19),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_wants_them() {
        let at = domain::Timestamp::parse("1994-11-06T08:49:37Z").unwrap();
        assert_eq!(http_date(at), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn only_plain_requests_stay_in_the_lane() {
        let plain = |text: &str| match examine(text.as_bytes()) {
            Reading::Request { plain, close, .. } => Some((plain, close)),
            Reading::More | Reading::Http2 | Reading::Refused(..) => None,
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
        assert!(matches!(examine(b"PRI * HTTP/2.0\r\n\r\nSM"), Reading::Http2));
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

//! Echoes every message of a WebSocket with the framing that streams use, for the protocol's test suite (`cargo xtask
//! autobahn`). Prints the port that it listens on.
#![expect(clippy::print_stdout, reason = "the port is what it has to say")]

use std::io;
use std::net::Ipv4Addr;

use http::websocket::{
    BadFrame, FrameReader, MessageKind, MessageSink, Received, accept_key, close_code, close_frame,
    message_frame, pong_frame,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Maximum size of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum size of a message: the suite sends 16 MiB.
const MESSAGE_BYTES_MAX: u64 = 32 << 20;

/// A message as it arrives. Text is checked on arrival: bytes that cannot become UTF-8 are rejected at once.
#[derive(Debug, Default)]
struct Collected {
    kind: Option<MessageKind>,
    bytes: Vec<u8>,
    /// Length of the text that was found to be UTF-8.
    checked: usize,
}

impl MessageSink for Collected {
    const BYTES_MAX: u64 = MESSAGE_BYTES_MAX;

    fn begin(&mut self, kind: MessageKind) {
        *self = Self { kind: Some(kind), ..Self::default() };
    }

    fn take(&mut self, bytes: impl Iterator<Item = u8>) -> Result<(), BadFrame> {
        self.bytes.extend(bytes);
        self.check(false)
    }

    fn end(&mut self) -> Result<(), BadFrame> {
        self.check(true)
    }
}

impl Collected {
    fn check(&mut self, is_whole: bool) -> Result<(), BadFrame> {
        if self.kind != Some(MessageKind::Text) {
            return Ok(());
        }
        let unchecked = self.bytes.get(self.checked..).unwrap_or_default();
        match std::str::from_utf8(unchecked) {
            Ok(_) => self.checked = self.bytes.len(),
            // A character may be incomplete if more is to come.
            Err(error) if error.error_len().is_none() && !is_whole => {
                self.checked += error.valid_up_to();
            }
            Err(_) => {
                let reason = "the text is not UTF-8";
                return Err(BadFrame { code: close_code::NOT_TEXT, reason });
            }
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = echo(stream).await {
                println!("{error}");
            }
        });
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
        if read.len() > HEAD_BYTES_MAX || stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let rest = read.split_off(end);
    let accept = accept(&read).ok_or(io::ErrorKind::InvalidData)?;
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut reader = FrameReader::<Collected>::default();
    let mut bytes = rest;
    loop {
        let (out, closes) = answer(&mut reader, &bytes);
        stream.write_all(&out).await?;
        if closes {
            return stream.shutdown().await;
        }
        bytes.clear();
        bytes.reserve(64 << 10);
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
}

/// The answer to the key in a request's head.
fn accept(head: &[u8]) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?;
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut keys = lines.filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
    accept_key(keys.next()?.1.trim().as_bytes())
}

/// The bytes to send back for some bytes, and whether they are the last.
fn answer(reader: &mut FrameReader<Collected>, mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    loop {
        match reader.read(&mut rest) {
            Ok(None) => return (out, false),
            Ok(Some(Received::Ping(payload))) => out.extend_from_slice(&pong_frame(&payload)),
            Ok(Some(Received::Pong)) => {}
            Ok(Some(Received::Message)) => {
                let kind = reader.sink.kind.unwrap_or(MessageKind::Binary);
                out.extend(message_frame(kind, &[&reader.sink.bytes]));
            }
            Ok(Some(Received::Close(code))) => {
                out.extend(close_frame(code, ""));
                return (out, true);
            }
            Err(BadFrame { code, reason }) => {
                out.extend(close_frame(Some(code), reason));
                return (out, true);
            }
        }
    }
}

//! WebSocket (RFC 6455), the server's side: the answer to a client's key, and frames in both directions.
//!
//! A client's bytes are read as they arrive, whatever their pieces. A [`MessageSink`] decides about its data messages:
//! the service's own collects nothing, so that a connection holds at most the 125 bytes of a control frame. The
//! example `websocket_echo` sends them back, for the test suite of the protocol.

use bytes::Bytes;
use data_encoding::BASE64;
use sha1::{Digest as _, Sha1};

/// The text that is appended to a client's key before it is hashed (RFC 6455, 1.3).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Length of a key in bytes.
const KEY_BYTES: usize = 16;
/// The version of the protocol, which is the only one.
pub const VERSION: &str = "13";

/// Maximum size of a control frame.
const CONTROL_BYTES_MAX: usize = 125;
/// Maximum size of a client's data message.
pub const MESSAGE_BYTES_MAX: u64 = 4 << 10;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// In the first byte: the last frame of a message, and bits that are reserved for extensions.
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
/// In the second byte: every client masks its frames.
const MASKED: u8 = 0x80;

/// Close codes of the protocol.
pub mod close_code {
    pub const NORMAL: u16 = 1000;
    pub const GOING_AWAY: u16 = 1001;
    pub const PROTOCOL_ERROR: u16 = 1002;
    pub const NOT_TEXT: u16 = 1007;
    pub const POLICY: u16 = 1008;
    pub const TOO_LARGE: u16 = 1009;
}

/// The answer to the key of a client; `None` if it is not a valid key.
pub fn accept_key(key: &[u8]) -> Option<String> {
    let bytes = BASE64.decode(key).ok()?;
    if bytes.len() != KEY_BYTES {
        return None;
    }
    let digest = Sha1::new().chain_update(key).chain_update(KEY_SUFFIX).finalize();
    Some(BASE64.encode(&digest))
}

/// The type of a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Text,
    Binary,
}

/// A whole text message in one frame.
pub fn text_frame(text: &[&[u8]]) -> Vec<u8> {
    message_frame(MessageKind::Text, text)
}

/// A whole message in one frame.
pub fn message_frame(kind: MessageKind, parts: &[&[u8]]) -> Vec<u8> {
    let length = parts.iter().map(|part| part.len()).sum();
    let opcode = match kind {
        MessageKind::Text => TEXT,
        MessageKind::Binary => BINARY,
    };
    let mut out = begin_frame(opcode, length);
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

pub fn ping_frame() -> Bytes {
    begin_frame(PING, 0).into()
}

/// True if an outgoing frame is a ping.
pub fn is_ping(frame: &[u8]) -> bool {
    frame == [FIN | PING, 0]
}

/// The answer to a ping.
pub fn pong_frame(payload: &[u8]) -> Bytes {
    let mut out = begin_frame(PONG, payload.len());
    out.extend_from_slice(payload);
    out.into()
}

/// The last frame; without a code, the answer to a client that sent none.
pub fn close_frame(code: Option<u16>, reason: &str) -> Vec<u8> {
    let Some(code) = code else { return begin_frame(CLOSE, 0) };
    let mut end = reason.len().min(CONTROL_BYTES_MAX - size_of::<u16>());
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = reason.get(..end).unwrap_or_default();
    let mut out = begin_frame(CLOSE, size_of::<u16>() + reason.len());
    out.extend(code.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
    out
}

fn begin_frame(opcode: u8, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(10 + length);
    out.push(FIN | opcode);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if length <= CONTROL_BYTES_MAX => out.push(short),
        (_, Ok(middle)) => {
            out.push(126);
            out.extend(middle.to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend(u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
        }
    }
    out
}

/// A frame or message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Must be answered with its payload.
    Ping(Vec<u8>),
    Pong,
    /// Must be answered with its code.
    Close(Option<u16>),
    /// A whole data message.
    Message,
}

/// A protocol violation: the code and the reason to close with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame {
    pub code: u16,
    pub reason: &'static str,
}

const fn broken(reason: &'static str) -> BadFrame {
    BadFrame { code: close_code::PROTOCOL_ERROR, reason }
}

/// The consumer of a client's data messages.
pub trait MessageSink {
    /// Maximum size of a message.
    const BYTES_MAX: u64;

    /// A message begins.
    fn begin(&mut self, kind: MessageKind);

    /// Takes the next bytes of it.
    ///
    /// # Errors
    /// The client must not send them.
    fn take(&mut self, bytes: impl Iterator<Item = u8>) -> Result<(), BadFrame>;

    /// The message is whole.
    ///
    /// # Errors
    /// The message must not end here.
    fn end(&mut self) -> Result<(), BadFrame>;
}

/// Discards messages: only their length is checked.
#[derive(Debug, Default)]
pub struct Discarded;

impl MessageSink for Discarded {
    const BYTES_MAX: u64 = MESSAGE_BYTES_MAX;

    fn begin(&mut self, _kind: MessageKind) {}

    fn take(&mut self, _bytes: impl Iterator<Item = u8>) -> Result<(), BadFrame> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), BadFrame> {
        Ok(())
    }
}

/// Reads the frames of a client.
#[derive(Debug, Default)]
pub struct FrameReader<S = Discarded> {
    /// The consumer of data messages.
    pub sink: S,
    /// The bytes of a frame's head received so far, and their number.
    head: [u8; HEAD_BYTES_MAX],
    held: usize,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// The bytes of a control frame's payload received so far.
    control: Vec<u8>,
    /// Bytes so far of a message in several frames.
    message: Option<u64>,
}

/// Maximum size of a head: two bytes, a length of eight and a mask.
const HEAD_BYTES_MAX: usize = 14;

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    last: bool,
    mask: [u8; 4],
    length: u64,
    left: u64,
}

impl<S: MessageSink> FrameReader<S> {
    /// Consumes bytes from the front of `rest`, up to the next complete item; `None` if all are consumed.
    ///
    /// # Errors
    /// The client violates the protocol, or sends too much. Nothing more can be read.
    pub fn read(&mut self, rest: &mut &[u8]) -> Result<Option<Received>, BadFrame> {
        loop {
            let frame = match &mut self.frame {
                Some(frame) => frame,
                None => match self.read_head(rest)? {
                    Some(frame) => {
                        match frame.opcode {
                            TEXT => self.sink.begin(MessageKind::Text),
                            BINARY => self.sink.begin(MessageKind::Binary),
                            _ => {}
                        }
                        self.frame.insert(frame)
                    }
                    None => return Ok(None),
                },
            };
            let here = usize::try_from(frame.left).unwrap_or(usize::MAX).min(rest.len());
            let (payload, after) = rest.split_at_checked(here).unwrap_or((rest, &[]));
            *rest = after;
            let begun = usize::try_from((frame.length - frame.left) % 4).unwrap_or(0);
            frame.left -= u64::try_from(here).unwrap_or(frame.left);
            let mask = frame.mask.iter().cycle().skip(begun);
            let plain = payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask);
            if is_control(frame.opcode) {
                self.control.extend(plain);
            } else {
                self.sink.take(plain)?;
            }
            if frame.left > 0 {
                return Ok(None);
            }
            let frame = *frame;
            self.frame = None;
            if let Some(received) = self.end_frame(frame)? {
                return Ok(Some(received));
            }
        }
    }

    /// The head of the next frame; `None` if it is incomplete.
    fn read_head(&mut self, rest: &mut &[u8]) -> Result<Option<Frame>, BadFrame> {
        while let Some((byte, after)) = rest.split_first() {
            if let Some(place) = self.head.get_mut(self.held) {
                *place = *byte;
            }
            self.held += 1;
            *rest = after;
            let [first, second, ..] = self.head;
            if self.held == 2 {
                self.check_head(first, second)?;
            }
            let length_bytes = match second & !MASKED {
                126 => 2,
                127 => 8,
                _ => 0,
            };
            if self.held == 2 + length_bytes + 4 {
                self.held = 0;
                return self.frame_of(length_bytes).map(Some);
            }
        }
        Ok(None)
    }

    /// Checks the first two bytes.
    fn check_head(&self, first: u8, second: u8) -> Result<(), BadFrame> {
        let (opcode, last) = (first & 0xF, first & FIN != 0);
        if first & RESERVED != 0 {
            return Err(broken("a reserved bit is set"));
        }
        if second & MASKED == 0 {
            return Err(broken("a frame is not masked"));
        }
        match opcode {
            CONTINUATION if self.message.is_none() => Err(broken("nothing to continue")),
            TEXT | BINARY if self.message.is_some() => Err(broken("a message is not finished")),
            CONTINUATION | TEXT | BINARY => Ok(()),
            CLOSE | PING | PONG if !last => Err(broken("a control frame is in parts")),
            CLOSE | PING | PONG if usize::from(second & !MASKED) > CONTROL_BYTES_MAX => {
                Err(broken("a control frame is too long"))
            }
            CLOSE | PING | PONG => Ok(()),
            _ => Err(broken("an unknown kind of frame")),
        }
    }

    /// The frame of a complete head.
    fn frame_of(&self, length_bytes: usize) -> Result<Frame, BadFrame> {
        let [first, second, after @ ..] = self.head;
        let (long, rest) = after.split_at_checked(length_bytes).unwrap_or((&[], &after));
        let least = match length_bytes {
            0 => 0,
            2 => 126,
            _ => 1 << 16,
        };
        let length = match length_bytes {
            0 => u64::from(second & !MASKED),
            _ => long.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        if length < least || length > i64::MAX.unsigned_abs() {
            return Err(broken("a length is not written in the shortest form"));
        }
        let opcode = first & 0xF;
        let before = self.message.unwrap_or(0);
        if !is_control(opcode) && before.saturating_add(length) > S::BYTES_MAX {
            let reason = "the message is too long";
            return Err(BadFrame { code: close_code::TOO_LARGE, reason });
        }
        let mask = rest.first_chunk().copied().unwrap_or_default();
        Ok(Frame { opcode, last: first & FIN != 0, mask, length, left: length })
    }

    /// The meaning of a frame whose payload is complete.
    fn end_frame(&mut self, frame: Frame) -> Result<Option<Received>, BadFrame> {
        let control = std::mem::take(&mut self.control);
        Ok(match frame.opcode {
            PING => Some(Received::Ping(control)),
            PONG => Some(Received::Pong),
            CLOSE => Some(Received::Close(closing(&control)?)),
            _ if frame.last => {
                self.sink.end()?;
                self.message = None;
                Some(Received::Message)
            }
            _ => {
                self.message = Some(self.message.unwrap_or(0).saturating_add(frame.length));
                None
            }
        })
    }
}

const fn is_control(opcode: u8) -> bool {
    opcode & 0x8 != 0
}

/// The code of a close frame.
fn closing(payload: &[u8]) -> Result<Option<u16>, BadFrame> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(None) } else { Err(broken("half a close code")) };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(broken("a close code that must not be sent"));
    }
    if std::str::from_utf8(reason).is_err() {
        return Err(BadFrame { code: close_code::NOT_TEXT, reason: "the reason is not UTF-8" });
    }
    Ok(Some(code))
}

#[cfg(test)]
mod tests;

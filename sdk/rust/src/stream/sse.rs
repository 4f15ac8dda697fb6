//! Server-Sent Events, limited to the parts that the API uses.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorCode, Result};
use crate::http::Http;

/// Maximum size of an event, which has at most 500 records.
const EVENT_BYTES_MAX: usize = 16 << 20;
/// Maximum reconnection delay that a server may request.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Block {
    pub(super) event: String,
    pub(super) data: String,
}

impl Block {
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.data).map_err(|error| {
            unexpected(&format!("the event `{}` of a stream cannot be read: {error}", self.event))
        })
    }
}

fn unexpected(message: &str) -> Error {
    Error::new(ErrorCode::UnexpectedResponse, message)
}

/// A response that is read event by event.
pub(super) struct Connection {
    response: reqwest::Response,
    parser: Parser,
    /// Delay before the next connection, if the server sent one.
    pub(super) retry: Option<Duration>,
}

impl Connection {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response, parser: Parser::default(), retry: None }
    }

    /// The next event; `None` at the end.
    pub(super) async fn next(
        &mut self,
        http: &Http,
        silence_max: Duration,
    ) -> Result<Option<Block>> {
        loop {
            if let Some(block) = self.parser.next()? {
                self.retry = self.parser.retry;
                return Ok(Some(block));
            }
            let Some(chunk) = http.next_chunk(&mut self.response, silence_max).await? else {
                return Ok(None);
            };
            self.parser.add(&chunk);
        }
    }
}

#[derive(Debug, Default)]
struct Parser {
    buffer: Vec<u8>,
    /// Number of buffered bytes that were consumed.
    read: usize,
    /// Number of buffered bytes without an end of line.
    searched: usize,
    block: Block,
    retry: Option<Duration>,
}

impl Parser {
    fn add(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event.
    fn next(&mut self) -> Result<Option<Block>> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                let block = std::mem::take(&mut self.block);
                if !block.data.is_empty() {
                    return Ok(Some(block));
                }
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "event" => value.clone_into(&mut self.block.event),
                "data" => self.block.data.push_str(value),
                "retry" => {
                    let retry = value.parse().ok().map(Duration::from_millis);
                    self.retry = retry.map(|retry| retry.min(RETRY_MAX)).or(self.retry);
                }
                // Comments, and the cursor, which is also in the data of a cut.
                _ => {}
            }
            if self.block.data.len() > EVENT_BYTES_MAX {
                return Err(too_large());
            }
        }
        Ok(None)
    }

    fn line(&mut self) -> Result<Option<String>> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            let is_too_long = self.buffer.len() - self.read > EVENT_BYTES_MAX;
            return if is_too_long { Err(too_large()) } else { Ok(None) };
        };
        let end = self.searched + length;
        let line = self.buffer.get(self.read..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = str::from_utf8(line).map_err(|_| unexpected("a stream is not UTF-8"))?;
        let line = line.to_owned();
        self.read = end + 1;
        self.searched = self.read;
        Ok(Some(line))
    }
}

fn too_large() -> Error {
    unexpected(&format!("an event of a stream has more than {EVENT_BYTES_MAX} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> (Vec<(String, String)>, Option<Duration>) {
        let (mut parser, mut found) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.add(piece);
            while let Some(block) = parser.next().unwrap() {
                found.push((block.event, block.data));
            }
        }
        (found, parser.retry)
    }

    #[test]
    fn events_are_read_whatever_the_pieces() {
        let text = "retry: 2000\nevent: hello\ndata: {\"a\":\"é\"}\n\n: 15\n\nevent: cut\r\nid: x\r\ndata: 1\r\n\r\ndata: la";
        let whole = read(&[text.as_bytes()]);
        let expected = [("hello", "{\"a\":\"é\"}"), ("cut", "1")];
        assert_eq!(whole.0, expected.map(|(event, data)| (event.to_owned(), data.to_owned())));
        assert_eq!(whole.1, Some(Duration::from_secs(2)));
        for size in 1..7 {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(read(&pieces), whole, "pieces of {size} bytes");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut parser = Parser::default();
        parser.add(b"data: ");
        parser.add(&vec![b'x'; EVENT_BYTES_MAX]);
        assert_eq!(*parser.next().unwrap_err().code(), ErrorCode::UnexpectedResponse);
        let mut parser = Parser::default();
        parser.add(b"data: \xff\n");
        assert!(parser.next().is_err());
    }
}

//! Answers, and reading them from a socket without a client library.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::SILENCE;

/// A complete answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        Self::try_of(request).await.unwrap()
    }

    pub(crate) async fn try_of(request: RequestBuilder) -> reqwest::Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await? })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {:?}", self.status, self.body))
    }

    /// A header's only value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map(|value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} comes twice");
        value
    }

    /// Every value of a header.
    pub(crate) fn headers<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap())
    }

    /// The error's code, after checking that the body has the form of D1.
    pub(crate) fn code(&self) -> String {
        let body = self.json();
        assert_eq!(body.as_object().map(serde_json::Map::len), Some(1), "{body}");
        let error = &body["error"];
        let mut fields = vec!["code", "message", "request_id"];
        fields.extend(error.get("param").map(|_| "param"));
        let held: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(held, fields);
        assert!(!error["message"].as_str().unwrap().is_empty());
        let request_id = error["request_id"].as_str().unwrap();
        assert!(request_id.starts_with("req_"), "{request_id}");
        assert_eq!(self.header("x-request-id"), Some(request_id));
        assert_eq!(self.header("content-type"), Some("application/json"));
        error["code"].as_str().unwrap().to_owned()
    }

    /// Status and code of an error.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.code())
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn param(&self) -> Option<String> {
        self.json()["error"]["param"].as_str().map(str::to_owned)
    }

    /// The target of the `Link` to the next page.
    pub(crate) fn next_page(&self) -> Option<String> {
        // In an empty list the link leads to the reason instead.
        let link = self.header("link").filter(|link| !link.ends_with("; rel=\"help\""))?;
        let target = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
        Some(target.unwrap_or_else(|| panic!("{link}")).to_owned())
    }

    pub(crate) fn requests_used(&self) -> u32 {
        self.header("x-requests-used").unwrap().parse().unwrap()
    }

    pub(crate) fn requests_remaining(&self) -> u32 {
        self.header("x-requests-remaining").unwrap().parse().unwrap()
    }
}

/// A raw connection, used byte by byte.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(addr).await.unwrap(), held: Vec::new() }
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, held: Vec::new() }
    }

    /// A client whose system buffers only a little unread data.
    pub(crate) async fn connect_narrow(addr: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        Self { stream: socket.connect(addr).await.unwrap(), held: Vec::new() }
    }

    /// The connection for a caller that uses it blocking.
    pub(crate) fn into_std(self) -> std::net::TcpStream {
        assert!(self.held.is_empty());
        let stream = self.stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // The service may have answered and closed before reading everything.
        drop(self.stream.write_all(bytes).await);
    }

    /// The next answer; `None` if the connection ended.
    pub(crate) async fn read_answer(&mut self) -> Option<Answer> {
        self.read_answer_to("GET").await
    }

    /// The next answer to a request of this method, which decides whether a body follows.
    pub(crate) async fn read_answer_to(&mut self, method: &str) -> Option<Answer> {
        tokio::time::timeout(SILENCE, self.read_patiently(method)).await.expect("an answer in time")
    }

    /// The given number of bytes; `None` if the connection ended before.
    pub(crate) async fn read_exactly(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.held.len() < bytes {
            let read = tokio::time::timeout(SILENCE, self.stream.read_buf(&mut self.held)).await;
            if read.expect("more in time").ok()? == 0 {
                return None;
            }
        }
        Some(self.held.drain(..bytes).collect())
    }

    /// The bytes up to the end of the connection.
    ///
    /// # Errors
    /// The service has reset it.
    pub(crate) async fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        let read = tokio::time::timeout(SILENCE, self.stream.read_to_end(&mut self.held)).await;
        read.expect("the end in time")?;
        Ok(std::mem::take(&mut self.held))
    }

    /// Waits for the service's end of the connection; `true` if it was closed.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut scrap = [0; 64];
        let read = tokio::time::timeout(SILENCE, self.stream.read(&mut scrap)).await;
        matches!(read.expect("the end in time"), Ok(0) | Err(_))
    }

    async fn read_patiently(&mut self, method: &str) -> Option<Answer> {
        loop {
            if let Some(answer) = self.take_answer(method) {
                return Some(answer);
            }
            if self.stream.read_buf(&mut self.held).await.ok()? == 0 {
                assert!(self.held.is_empty(), "cut off: {:?}", Bytes::copy_from_slice(&self.held));
                return None;
            }
        }
    }

    fn take_answer(&mut self, method: &str) -> Option<Answer> {
        let mut lines = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut lines);
        let httparse::Status::Complete(head) = response.parse(&self.held).unwrap() else {
            return None;
        };
        let status = response.code.unwrap();
        let mut headers = HeaderMap::new();
        for line in &*response.headers {
            let name = reqwest::header::HeaderName::from_bytes(line.name.as_bytes()).unwrap();
            headers.append(name, reqwest::header::HeaderValue::from_bytes(line.value).unwrap());
        }
        let length = headers.get("content-length").map_or(0, |value| {
            let bodiless = method == "HEAD" || status == 304;
            if bodiless { 0 } else { value.to_str().unwrap().parse().unwrap() }
        });
        if self.held.len() < head + length {
            return None;
        }
        let rest = self.held.split_off(head + length);
        let body = Bytes::copy_from_slice(&self.held[head..]);
        self.held = rest;
        Some(Answer { status, headers, body })
    }
}

/// A key or token that differs in its last character, whatever that is.
pub(crate) fn mistyped(secret: &str) -> String {
    let last = if secret.ends_with('x') { 'y' } else { 'x' };
    format!("{}{last}", &secret[..secret.len() - 1])
}

//! A client that exposes all details: the connection, the bytes, and the kind of failure.

use std::{
    io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// Maximum size of a body; more than any answer requested here.
const BODY_BYTES_MAX: usize = 32 << 20;

/// One client with at most one connection, which it keeps.
#[derive(Debug)]
pub(crate) struct Client {
    to: SocketAddr,
    timeout: Duration,
    held: Option<BufReader<TcpStream>>,
}

/// A complete answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// A client of a port of this machine that waits this long for each piece of an answer.
    pub(crate) fn new(port: u16, timeout: Duration) -> Self {
        Self { to: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), timeout, held: None }
    }

    /// Sends a GET; `headers` are whole lines. A kept connection that turns out to be closed is replaced once, as HTTP
    /// allows for idempotent requests.
    pub(crate) fn get(&mut self, path: &str, headers: &str) -> io::Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: cluster\r\n{headers}\r\n");
        if let Some(held) = self.held.take() {
            match self.exchange(held, request.as_bytes()) {
                Err(error) if is_closed(&error) => {}
                other => return other,
            }
        }
        let fresh = self.connect()?;
        self.exchange(fresh, request.as_bytes())
    }

    /// Sends a body on a connection of its own, once.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nhost: cluster\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        let mut held = self.connect()?;
        held.get_mut().write_all(&request)?;
        read_answer(&mut held)
    }

    /// Opens a stream of events; returns the status, and the events if it is 200.
    pub(crate) fn stream(&self, path: &str, headers: &str) -> io::Result<(u16, Events)> {
        let mut held = self.connect()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: cluster\r\n{headers}\r\n");
        held.get_mut().write_all(request.as_bytes())?;
        let status = read_status(&mut held)?;
        while !read_line(&mut held)?.trim_end().is_empty() {}
        Ok((status, Events(held)))
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect_timeout(&self.to, self.timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        Ok(BufReader::new(stream))
    }

    fn exchange(&mut self, mut held: BufReader<TcpStream>, request: &[u8]) -> io::Result<Answer> {
        held.get_mut().write_all(request)?;
        let answer = read_answer(&mut held)?;
        let closes = answer.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        self.held = (!closes).then_some(held);
        Ok(answer)
    }
}

/// True if a connection was closed before any byte of an answer arrived.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    ) || error.kind() == ErrorKind::NotConnected
}

fn read_answer(held: &mut BufReader<TcpStream>) -> io::Result<Answer> {
    let mut answer = Answer { status: read_status(held)?, ..Answer::default() };
    loop {
        let line = read_line(held)?;
        if line.trim_end().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header without a colon"))?;
        answer.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if matches!(answer.status, 204 | 304) {
        return Ok(answer);
    }
    answer.body = if answer.header("transfer-encoding").is_some_and(|it| it.contains("chunked")) {
        read_chunks(held)?
    } else if let Some(length) = answer.header("content-length") {
        let length = length.parse().map_err(|_| bad("a length that is no number"))?;
        read_exactly(held, length)?
    } else {
        let mut body = Vec::new();
        held.take(BODY_BYTES_MAX as u64).read_to_end(&mut body)?;
        body
    };
    Ok(answer)
}

fn read_status(held: &mut BufReader<TcpStream>) -> io::Result<u16> {
    let first = read_line(held)?;
    if first.is_empty() {
        // Distinguishes this from a truncated answer: no byte of it arrived.
        return Err(ErrorKind::NotConnected.into());
    }
    first.get(9..12).and_then(|digits| digits.parse().ok()).ok_or_else(|| bad("no status"))
}

/// Server-sent events of a node, not of the load balancer.
#[derive(Debug)]
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event and its data, or a comment without a name; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<(String, String)>> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let line = read_line(&mut self.0)?;
            if line.is_empty() {
                return Ok(None);
            }
            match line.trim_end().split_once(": ") {
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("data", value)) => value.clone_into(&mut data),
                None if line.trim_end().is_empty() => return Ok(Some((name, data))),
                _ => {}
            }
        }
    }
}

fn read_chunks(held: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(held)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(|_| bad("no chunk"))?;
        body.extend(read_exactly(held, length)?);
        read_line(held)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(held: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    if length > BODY_BYTES_MAX {
        return Err(bad("an answer is too long"));
    }
    let mut body = vec![0; length];
    held.read_exact(&mut body)?;
    Ok(body)
}

fn read_line(held: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    held.read_line(&mut line)?;
    Ok(line)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// Sends each connection its answers, then closes it.
    fn server(answers: Vec<Vec<&'static str>>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for connection in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut held = BufReader::new(stream);
                for answer in connection {
                    while !read_line(&mut held).unwrap().trim_end().is_empty() {}
                    held.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        port
    }

    #[test]
    fn a_connection_is_kept_and_replaced_where_it_was_closed() {
        let one = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        let two = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\n\r\n";
        let none = "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
        let port = server(vec![vec![one, two], vec![none]]);
        let mut client = Client::new(port, Duration::from_secs(30));
        assert_eq!(client.get("/", "").unwrap().body, b"ab");
        assert_eq!(client.get("/", "").unwrap().body, b"xyz");
        let third = client.get("/", "").unwrap();
        assert_eq!((third.status, third.header("etag")), (304, Some("\"x\"")));
    }

    #[test]
    fn an_answer_that_is_cut_short_is_a_failure() {
        let port = server(vec![vec!["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]]);
        assert!(Client::new(port, Duration::from_secs(30)).get("/", "").is_err());
    }
}

//! Clients of streams: many connections that only read, on one core.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::epoll;
use rustix::net::RecvFlags;

use crate::service::request;

/// Timeout of everything.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// Transport of events to a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Sse,
    WebSocket,
}

impl Transport {
    /// The request of a subscriber.
    pub(super) fn request(self, path: &str, headers: &str) -> Vec<u8> {
        match self {
            Self::Sse => request(path, &format!("{headers}Accept: text/event-stream\r\n")),
            Self::WebSocket => request(
                path,
                &format!(
                    "{headers}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                ),
            ),
        }
    }
}

/// The time of day: publications are at whole intervals of it.
#[expect(clippy::disallowed_methods, reason = "the service under test goes by the same clock")]
pub(super) fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// Connections that only read; received bytes are dropped in the kernel.
pub(super) struct Subscribers {
    connections: Vec<TcpStream>,
    epoll: rustix::fd::OwnedFd,
    /// All bytes so far.
    pub(super) read: usize,
    /// Time of the last bytes.
    pub(super) last_ms: u128,
}

impl Subscribers {
    /// Opens connections that all send the same request.
    pub(super) fn open(to: SocketAddr, request: &[u8], count: usize) -> Result<Self> {
        let mut all = Self::none()?;
        for _ in 0..count {
            all.add(to, request)?;
        }
        Ok(all)
    }

    /// The same in two groups: every `every`th connection is in the second.
    pub(super) fn open_apart(
        to: SocketAddr,
        request: &[u8],
        count: usize,
        every: usize,
    ) -> Result<(Self, Self)> {
        let (mut most, mut apart) = (Self::none()?, Self::none()?);
        for number in 1..=count {
            let to_which = if number.is_multiple_of(every) { &mut apart } else { &mut most };
            to_which.add(to, request)?;
        }
        Ok((most, apart))
    }

    /// Opens connections with one request each.
    pub(super) fn open_each(to: SocketAddr, requests: &[Vec<u8>]) -> Result<Self> {
        let mut all = Self::none()?;
        for request in requests {
            all.add(to, request)?;
        }
        Ok(all)
    }

    /// Opens connections that all send their request before any is answered, and whose first answers must contain a
    /// text.
    pub(super) fn open_at_once(
        to: SocketAddr,
        request: &[u8],
        count: usize,
        text: &str,
    ) -> Result<Self> {
        let mut all = Self::none()?;
        for _ in 0..count {
            let mut stream = TcpStream::connect(to).context("cannot connect")?;
            stream.write_all(request)?;
            stream.set_read_timeout(Some(WAIT_MAX))?;
            all.connections.push(stream);
        }
        let mut buffer = vec![0; 1 << 14];
        for stream in &mut all.connections {
            let mut read = String::new();
            while !read.contains(text) {
                let received = stream.read(&mut buffer);
                let bytes =
                    received.with_context(|| format!("a subscriber received only: {read}"))?;
                ensure!(bytes > 0 && read.len() < 1 << 16, "a subscriber received: {read}");
                read.push_str(&String::from_utf8_lossy(buffer.get(..bytes).unwrap_or_default()));
            }
        }
        Ok(all)
    }

    fn none() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { connections: Vec::new(), epoll, read: 0, last_ms: 0 })
    }

    fn add(&mut self, to: SocketAddr, request: &[u8]) -> Result<()> {
        let mut stream = TcpStream::connect(to).context("cannot connect")?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.write_all(request)?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).context("no answer to a subscriber")?;
        let accepted = head.ends_with(b"200") || head.ends_with(b"101");
        ensure!(accepted, "a subscriber was refused: {}", String::from_utf8_lossy(&head));
        stream.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(u64::try_from(self.connections.len())?);
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)?;
        self.connections.push(stream);
        Ok(())
    }

    /// Sends the same bytes on every connection.
    pub(super) fn say(&mut self, bytes: &[u8]) -> Result<()> {
        let mut all = self.connections.iter_mut();
        all.try_for_each(|stream| stream.write_all(bytes)).context("a subscriber cannot write")
    }

    /// Reads for this time; received bytes are dropped in the kernel.
    pub(super) fn read_for(&mut self, time: Duration) -> Result<()> {
        self.receive(time, RecvFlags::TRUNC, |_, _| {})
    }

    /// The same, but passes the bytes to a function, with the number of their connection.
    pub(super) fn look_for(
        &mut self,
        time: Duration,
        look: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        self.receive(time, RecvFlags::empty(), look)
    }

    pub(super) fn count(&self) -> usize {
        self.connections.len()
    }

    fn receive(
        &mut self,
        time: Duration,
        flags: RecvFlags,
        mut look: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let end = Instant::now() + time;
        let mut dropped = vec![0; 1 << 20];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
            let sleep = rustix::event::Timespec::try_from(left)?;
            let space = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, space, Some(&sleep)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll"),
            }
            for event in events {
                let at = usize::try_from(event.data.u64())?;
                let stream = self.connections.get(at).context("there is no such connection")?;
                match rustix::net::recv(stream, &mut dropped[..], flags) {
                    Ok((_, 0)) => bail!("the server closed a subscriber's connection"),
                    Ok((_, read)) => {
                        self.read += read;
                        self.last_ms = now_ms();
                        look(at, dropped.get(..read).unwrap_or_default());
                    }
                    Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error).context("cannot read"),
                }
            }
        }
    }
}

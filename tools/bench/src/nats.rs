//! NATS as a comparison for streams: its clients follow a subject over its WebSocket, and it keeps nothing for clients
//! that reconnect.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use test_servers::Process;

use super::machine::SERVER_CORE;

/// First message of a client over its WebSocket: one frame, with a mask of zeros.
pub(super) const SUBSCRIBE: &[u8] = b"\x82\x98\0\0\0\0CONNECT {}\r\nSUB odds 1\r\n";
/// Timeout of an answer.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A running server; stopped when dropped.
#[derive(Debug)]
pub(super) struct Nats {
    process: Process,
    /// Address of its WebSocket.
    pub(super) address: SocketAddr,
    publisher: BufReader<TcpStream>,
    pub(super) version: String,
}

impl Nats {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let program = test_servers::nats_program()?;
        let (port, websocket) = (test_servers::free_port()?, test_servers::free_port()?);
        // No pings during the measurement.
        let settings = format!(
            "listen: \"127.0.0.1:{port}\"\nping_interval: \"1h\"\n\
             websocket {{ listen: \"127.0.0.1:{websocket}\", no_tls: true }}\n"
        );
        let file = folder.join("nats.conf");
        fs::write(&file, settings)?;
        let mut command = shell::command("taskset", folder);
        command.args(["-c", &SERVER_CORE.to_string()]).arg(&program.path).arg("-c").arg(&file);
        let mut process = Process::start(&mut command, Signal::TERM, &folder.join("output"))?;
        let mut publisher = None;
        process.wait_until("nats-server", || {
            publisher = TcpStream::connect(("127.0.0.1", port)).ok();
            publisher.is_some()
        })?;
        let publisher = publisher.context("NATS does not answer")?;
        publisher.set_read_timeout(Some(WAIT_MAX))?;
        let mut publisher = BufReader::new(publisher);
        publisher.read_line(&mut String::new())?;
        publisher.get_mut().write_all(b"CONNECT {\"verbose\":false}\r\n")?;
        let address = SocketAddr::from(([127, 0, 0, 1], websocket));
        Ok(Self { process, address, publisher, version: program.version.to_string() })
    }

    /// Sends a message of `bytes` bytes to all subscribers.
    pub(super) fn publish(&mut self, bytes: usize) -> Result<()> {
        let mut message = format!("PUB odds {bytes}\r\n").into_bytes();
        message.resize(message.len() + bytes, b'x');
        message.extend_from_slice(b"\r\nPING\r\n");
        self.publisher.get_mut().write_all(&message)?;
        loop {
            let mut line = String::new();
            ensure!(self.publisher.read_line(&mut line)? > 0, "NATS closed the connection");
            match line.trim() {
                "PONG" => return Ok(()),
                "PING" => self.publisher.get_mut().write_all(b"PONG\r\n")?,
                other => ensure!(!other.starts_with("-ERR"), "NATS refused a message: {other}"),
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }
}

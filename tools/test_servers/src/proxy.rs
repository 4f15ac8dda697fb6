//! A wire between a client and a server that can be cut or held still.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

const CHUNK_BYTES: usize = 16 * 1024;

/// What the wire does to what is sent over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Whole,
    /// Each piece is late by so much.
    Slow(Duration),
    /// Nothing gets through and nobody is told.
    Still,
    /// Connections are closed, and new ones are at once.
    Cut,
}

/// A proxy on a port of its own; dropped, it is cut.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    wire: watch::Sender<Wire>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts to pass everything on to a port of this machine.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(target: u16) -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port is free")?;
        let address = listener.local_addr().context("a listener has no address")?;
        let (wire, seen) = watch::channel(Wire::Whole);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target, seen.clone()));
            }
        });
        Ok(Self { address, wire, accepting })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Passes everything on again.
    pub fn mend(&self) {
        self.wire.send_replace(Wire::Whole);
    }

    /// Passes everything on, late.
    pub fn slow_down(&self, delay: Duration) {
        self.wire.send_replace(Wire::Slow(delay));
    }

    /// Passes nothing on, and closes nothing: what a lost cable looks like.
    pub fn hold(&self) {
        self.wire.send_replace(Wire::Still);
    }

    /// Closes all connections, and new ones at once.
    pub fn cut(&self) {
        self.wire.send_replace(Wire::Cut);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

async fn carry(client: TcpStream, target: u16, mut wire: watch::Receiver<Wire>) {
    if *wire.borrow() == Wire::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (there, back) = (wire.clone(), wire.clone());
    tokio::select! {
        _ = pass(from_client, to_server, there) => {}
        _ = pass(from_server, to_client, back) => {}
        _ = wire.wait_for(|wire| *wire == Wire::Cut) => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut wire: watch::Receiver<Wire>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = from.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        let delay = match wire.wait_for(|wire| *wire != Wire::Still).await.as_deref() {
            Ok(Wire::Slow(delay)) => *delay,
            Ok(Wire::Whole | Wire::Still | Wire::Cut) => Duration::ZERO,
            Err(_) => return Ok(()),
        };
        sleep(delay).await;
        to.write_all(chunk.get(..length).unwrap_or_default()).await?;
    }
}

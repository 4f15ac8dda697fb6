//! A proxy between a client and a server whose connections can be cut, stalled or slowed down.

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

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Open,
    /// Each chunk is delayed by this.
    Slow(Duration),
    /// No data is forwarded and no connection is closed.
    Stalled,
    /// All connections are closed, new ones at once.
    Cut,
}

/// A proxy on its own port; dropping it cuts the link.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<LinkState>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts forwarding to a port of this machine.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(target: u16) -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port is free")?;
        let address = listener.local_addr().context("a listener has no address")?;
        let (state, seen) = watch::channel(LinkState::Open);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target, seen.clone()));
            }
        });
        Ok(Self { address, state, accepting })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Forwards everything again.
    pub fn restore(&self) {
        self.state.send_replace(LinkState::Open);
    }

    /// Forwards everything with a delay.
    pub fn slow_down(&self, delay: Duration) {
        self.state.send_replace(LinkState::Slow(delay));
    }

    /// Forwards nothing and closes nothing, like an unplugged cable.
    pub fn stall(&self) {
        self.state.send_replace(LinkState::Stalled);
    }

    /// Closes all connections, and new ones at once.
    pub fn cut(&self) {
        self.state.send_replace(LinkState::Cut);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

async fn carry(client: TcpStream, target: u16, mut state: watch::Receiver<LinkState>) {
    if *state.borrow() == LinkState::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (there, back) = (state.clone(), state.clone());
    tokio::select! {
        _ = pass(from_client, to_server, there) => {}
        _ = pass(from_server, to_client, back) => {}
        _ = state.wait_for(|state| *state == LinkState::Cut) => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<LinkState>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = from.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        let delay = match state.wait_for(|state| *state != LinkState::Stalled).await.as_deref() {
            Ok(LinkState::Slow(delay)) => *delay,
            Ok(LinkState::Open | LinkState::Stalled | LinkState::Cut) => Duration::ZERO,
            Err(_) => return Ok(()),
        };
        sleep(delay).await;
        to.write_all(chunk.get(..length).unwrap_or_default()).await?;
    }
}

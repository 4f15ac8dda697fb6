//! The client of a connection, for pages that count attempts and record who did something.
//!
//! It is a property of the connection; while a page is answered it is task-local, not passed in every call.

use std::future::Future;
use std::net::IpAddr;

tokio::task_local! {
    static PEER: Peer;
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    pub address: Option<IpAddr>,
    pub encrypted: bool,
}

impl Peer {
    /// The client whose request this task answers; the default outside a connection.
    pub fn current() -> Self {
        PEER.try_with(|peer| *peer).unwrap_or_default()
    }

    /// Runs a future on behalf of this connection.
    pub fn serve<F: Future>(self, serving: F) -> impl Future<Output = F::Output> {
        PEER.scope(self, serving)
    }
}

//! Who is at the other end of a connection, for the pages that count tries and write down who did what.
//!
//! A connection knows it; while a page is answered it stands beside the task, not in every call.

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
    /// Whose request this task is answering; nobody in particular outside a connection.
    pub fn current() -> Self {
        PEER.try_with(|peer| *peer).unwrap_or_default()
    }

    /// Runs something on this connection's behalf.
    pub fn serve<F: Future>(self, serving: F) -> impl Future<Output = F::Output> {
        PEER.scope(self, serving)
    }
}

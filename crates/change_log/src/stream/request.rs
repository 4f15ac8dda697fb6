//! Requests to the leader, the node that writes the log, over the same servers.
//!
//! Requests are not stored. Anything durable is in the log before the leader answers.

use std::time::Duration;

use async_nats::{
    Client, ConnectOptions, Subject, Subscriber, client::RequestErrorKind, connection::State,
};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::{
    error::LogError,
    stream::{OVERHEAD_BYTES, StreamLocation, connection::connect},
};

/// Why a request was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No node received it: there is no leader, or the servers cannot be reached.
    #[error("no leader is reachable")]
    Nobody,
    /// The leader may have received it.
    #[error("the leader did not answer in time")]
    Late,
}

/// Sends requests to the leader; the leader receives them with [`Self::serve`].
#[derive(Debug, Clone)]
pub struct LeaderClient {
    client: Client,
    subject: Subject,
}

impl LeaderClient {
    /// Starts connecting, and retries for as long as the client lives.
    ///
    /// # Errors
    /// The address is not valid.
    pub async fn open(location: &StreamLocation) -> Result<Self, LogError> {
        let client = connect(location, ConnectOptions::new().retry_on_initial_connect()).await?;
        Ok(Self { client, subject: format!("linesman.{}.call", location.name).into() })
    }

    /// Maximum size of a request or answer; `None` until a server was reached.
    pub fn bytes_max(&self) -> Option<usize> {
        let allowed = self.client.try_server_info()?.max_payload;
        Some(allowed.saturating_sub(OVERHEAD_BYTES)).filter(|bytes| *bytes > 0)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// There is no leader, or its answer does not arrive in time.
    pub async fn ask(&self, request: Vec<u8>, within: Duration) -> Result<Bytes, NoAnswer> {
        // The client would send it once the servers are back, which is too late.
        if self.client.connection_state() != State::Connected {
            return Err(NoAnswer::Nobody);
        }
        let request = async_nats::Request::new().payload(request.into()).timeout(Some(within));
        match self.client.send_request(self.subject.clone(), request).await {
            Ok(answer) => Ok(answer.payload),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Err(NoAnswer::Nobody),
            Err(_) => Err(NoAnswer::Late),
        }
    }

    /// Receives requests until the returned value is dropped.
    ///
    /// # Errors
    /// The connection has ended permanently.
    pub async fn serve(&self) -> Result<LeaderServer, LogError> {
        let taken = self.client.subscribe(self.subject.clone()).await;
        let taken = taken.map_err(|error| LogError::Unavailable(Box::new(error)))?;
        Ok(LeaderServer { client: self.client.clone(), taken })
    }
}

/// Receives requests on the leader.
#[derive(Debug)]
pub struct LeaderServer {
    client: Client,
    taken: Subscriber,
}

impl LeaderServer {
    /// The next request; `None` once the connection has ended permanently.
    pub async fn next(&mut self) -> Option<Request> {
        loop {
            let message = self.taken.next().await?;
            if let Some(reply) = message.reply {
                let client = self.client.clone();
                return Some(Request { client, reply, payload: message.payload });
            }
        }
    }
}

/// A request that waits for its answer. If it is dropped, the request is not answered.
#[derive(Debug)]
pub struct Request {
    client: Client,
    reply: Subject,
    pub payload: Bytes,
}

impl Request {
    /// Sends the answer. A lost answer is detected by the sender of the request.
    pub async fn answer(self, answer: Vec<u8>) {
        if let Err(error) = self.client.publish(self.reply, answer.into()).await {
            tracing::debug!(event = "forward.reply_failed", %error, "answer could not be sent");
        }
    }
}

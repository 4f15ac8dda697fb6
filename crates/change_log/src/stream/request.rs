//! How a node that does not write reaches the one that does: a question, and its answer, over the same servers.
//!
//! Nothing of it is kept: a question that nobody took is gone, and whoever asked says so. What has to last is in the
//! log before it is answered.

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

/// Why a question was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nobody got it: there is no writer at this moment, or the servers are not reached.
    #[error("nobody is there to answer")]
    Nobody,
    /// Somebody may have got it.
    #[error("no answer came in time")]
    Late,
}

/// Asks, and opens the desk at which it is answered.
#[derive(Debug, Clone)]
pub struct LeaderClient {
    client: Client,
    subject: Subject,
}

impl LeaderClient {
    /// Begins to connect, and goes on trying for as long as it lives.
    ///
    /// # Errors
    /// The address is none.
    pub async fn open(location: &StreamLocation) -> Result<Self, LogError> {
        let client = connect(location, ConnectOptions::new().retry_on_initial_connect()).await?;
        Ok(Self { client, subject: format!("linesman.{}.call", location.name).into() })
    }

    /// The longest question or answer; `None` before a server was reached that could say.
    pub fn bytes_max(&self) -> Option<usize> {
        let allowed = self.client.try_server_info()?.max_payload;
        Some(allowed.saturating_sub(OVERHEAD_BYTES)).filter(|bytes| *bytes > 0)
    }

    /// Asks whoever is at the desk.
    ///
    /// # Errors
    /// Nobody is, or the answer does not come in time.
    pub async fn ask(&self, question: Vec<u8>, within: Duration) -> Result<Bytes, NoAnswer> {
        // It would be kept for when the servers are back, which is not when it was asked.
        if self.client.connection_state() != State::Connected {
            return Err(NoAnswer::Nobody);
        }
        let request = async_nats::Request::new().payload(question.into()).timeout(Some(within));
        match self.client.send_request(self.subject.clone(), request).await {
            Ok(answer) => Ok(answer.payload),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Err(NoAnswer::Nobody),
            Err(_) => Err(NoAnswer::Late),
        }
    }

    /// Takes questions from now on, until it is dropped.
    ///
    /// # Errors
    /// The connection has ended for good.
    pub async fn serve(&self) -> Result<LeaderServer, LogError> {
        let taken = self.client.subscribe(self.subject.clone()).await;
        let taken = taken.map_err(|error| LogError::Unavailable(Box::new(error)))?;
        Ok(LeaderServer { client: self.client.clone(), taken })
    }
}

/// Where questions come in.
#[derive(Debug)]
pub struct LeaderServer {
    client: Client,
    taken: Subscriber,
}

impl LeaderServer {
    /// The next question; `None` once the connection has ended for good.
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

/// A question that waits for its answer. Dropped, it is not answered.
#[derive(Debug)]
pub struct Request {
    client: Client,
    reply: Subject,
    pub payload: Bytes,
}

impl Request {
    /// Sends the answer; whether it arrives is for whoever asked to find out.
    pub async fn answer(self, answer: Vec<u8>) {
        if let Err(error) = self.client.publish(self.reply, answer.into()).await {
            tracing::debug!(%error, "an answer could not be sent");
        }
    }
}

//! The interface between a connection and the service.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use domain::{Clock, Timestamp};
use tokio::time::Instant;

use crate::peer::Peer;
use crate::reply::Reply;
use crate::request::{PathTraits, Request};
use crate::server::Server;

/// The future of an answer, in another part of the program. A future is compiled in the crate that boxes it, and a
/// connection that awaits a boxed one is not as large as the largest of them.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers requests. Connections are generic over it, so a call costs what a plain function costs.
pub trait Service: Send + Sync + 'static {
    /// State of the service for a connection, kept from one request to the next.
    type Memory: Default + Send + Sync;

    fn server(&self) -> &Arc<Server>;

    /// True if [`ServerSettings`](crate::ServerSettings) limits connections. The operators' own listener accepts them
    /// even if the others are full.
    fn limits_connections(&self) -> bool;

    /// The properties of a path, before its request is read. The hot path calls it too, so it is a table lookup.
    fn traits(path: &str) -> PathTraits;

    /// True if such a request consists of its head and its answer has an end: the hot path.
    fn is_plain(&self, request: &Request<'_>) -> bool;

    /// Answers a request without a body.
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Self::Memory>,
    ) -> impl Future<Output = Reply> + Send;

    /// Answers any other request. The body is read as far as the service needs it.
    fn answer_with_body<B: RequestBody>(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Self::Memory>,
        body: B,
    ) -> impl Future<Output = Reply> + Send;

    /// The answer to unreadable bytes, or to a request that could not be answered, with its path as far as it is
    /// known.
    fn refuse(&self, refusal: Refusal, message: &'static str, path: &str) -> Reply;
}

/// The incoming body of a request.
pub trait RequestBody:
    hyper::body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin
{
}

impl<B> RequestBody for B where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin
{
}

/// The reason for a refusal before, or instead of, an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotHttp,
    HeadTooLarge,
    TargetTooLong,
    BodyTooLarge,
    TooManyConnections,
    Internal,
}

/// The state of a connection while the service answers one of its requests.
#[derive(Debug)]
pub struct ConnectionState<M> {
    /// Time of arrival of the request, by the service's clock and by the machine's.
    pub now: Timestamp,
    pub begun: Instant,
    pub peer: Peer,
    /// True if the connection can send a body from a file.
    pub sends_files: bool,
    /// The interval in which the connection was last counted as a client.
    pub(crate) interval: u64,
    pub memory: M,
}

impl<M: Default> ConnectionState<M> {
    pub fn new(clock: &dyn Clock, peer: Peer) -> Self {
        Self {
            now: clock.now(),
            begun: Instant::now(),
            peer,
            sends_files: false,
            interval: 0,
            memory: M::default(),
        }
    }

    /// Notes the arrival of the next request.
    pub(crate) fn begin_request(&mut self, server: &Server) {
        self.now = server.clock.now();
        self.begun = Instant::now();
        server.load.note_client(&mut self.interval);
    }
}

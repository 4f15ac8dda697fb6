//! What a connection needs of the service behind it.

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

/// An answer in the making, of another part. A future is compiled in the crate that boxes it, and a connection that
/// waits for a boxed one is not as large as the largest of them.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers requests. Connections are generic over it, so a call costs what a plain function costs.
pub trait Service: Send + Sync + 'static {
    /// What the service remembers of a connection from one request to the next.
    type Memory: Default + Send + Sync;

    fn server(&self) -> &Arc<Server>;

    /// Whether [`ServerSettings`](crate::ServerSettings) limits who may connect. The operators' own listener is open
    /// also when the others are full.
    fn limits_connections(&self) -> bool;

    /// What a path is, before its request is read. The hot path asks, too, so the answer is a look at a table.
    fn traits(path: &str) -> PathTraits;

    /// Whether the head is all there is to such a request, and its answer has an end: the hot path.
    fn is_plain(&self, request: &Request<'_>) -> bool;

    /// Answers a request without a body.
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Self::Memory>,
    ) -> impl Future<Output = Reply> + Send;

    /// Answers any other request. The body is read as far as the service wants it.
    fn answer_with_body<B: RequestBody>(
        &self,
        request: &Request<'_>,
        connection: &mut ConnectionState<Self::Memory>,
        body: B,
    ) -> impl Future<Output = Reply> + Send;

    /// The answer to something that is not even a request, or that could not be answered; with its path, as far as it
    /// is known.
    fn refuse(&self, refusal: Refusal, message: &'static str, path: &str) -> Reply;
}

/// A request's body on its way in.
pub trait RequestBody:
    hyper::body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin
{
}

impl<B> RequestBody for B where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin
{
}

/// What is refused before, or instead of, an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotHttp,
    HeadTooLarge,
    TargetTooLong,
    BodyTooLarge,
    TooManyConnections,
    Internal,
}

/// A connection, as the service knows it while it answers one of its requests.
#[derive(Debug)]
pub struct ConnectionState<M> {
    /// When the request was there, by the service's clock and by the machine's.
    pub now: Timestamp,
    pub begun: Instant,
    pub peer: Peer,
    /// Whether the connection can send a body from a file.
    pub sends_files: bool,
    /// The interval in which the connection was last counted among those that ask.
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

    /// The next request has come.
    pub(crate) fn begin_request(&mut self, server: &Server) {
        self.now = server.clock.now();
        self.begun = Instant::now();
        server.load.note_client(&mut self.interval);
    }
}

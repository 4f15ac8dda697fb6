//! A bucket: the server `s3s-fs` on a temporary folder, with keys, conditional writes that decide, and errors on
//! demand.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, Mutex as Lock, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use hyper::{
    Method, Request, Response,
    body::{Body as _, Incoming},
    header,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, watch},
    task::JoinHandle,
};

/// What happens to a write that a test has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is not carried out, and has no answer while the client waits.
    Unheard,
    /// It is carried out, and has no answer while the client waits.
    Unanswered,
    /// It is answered with this status, and not carried out.
    Refused(u16),
}

/// A server with one bucket; dropped, it is gone.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    folder: TempDir,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The folder of buckets.
    root: PathBuf,
    /// Held while an object is created that must not exist: the server looks first and writes then.
    creating: Mutex<()>,
    unconditional: AtomicBool,
    /// What writes with a condition are answered; 0: they are carried out.
    condition_refused_with: AtomicU32,
    /// Requests that are still to be refused, and how.
    refused: AtomicU32,
    refused_with: AtomicU32,
    /// Answers that are still to be lost after the request was carried out.
    lost: AtomicU32,
    requests: AtomicU64,
    /// The write that something happens to, counted from now on.
    chosen: Lock<Option<(u32, Fate)>>,
    /// Whether it has come so far.
    met: watch::Sender<bool>,
    /// By how much every answer is late, in milliseconds.
    latency_ms: AtomicU64,
}

impl S3 {
    /// The name of its bucket, and the key that it knows.
    pub const BUCKET: &str = "odds";
    pub const ACCESS_KEY_ID: &str = "linesman-test";
    pub const SECRET_ACCESS_KEY: &str = "a-secret-that-no-output-shows/+=";

    /// Starts it on a free port.
    ///
    /// # Errors
    /// There is no free port, or no space.
    pub async fn start() -> Result<Self> {
        let folder = TempDir::new().context("no temporary folder")?;
        std::fs::create_dir(folder.path().join(Self::BUCKET))?;
        let files = FileSystem::new(folder.path()).map_err(|error| anyhow!("{error:?}"))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(Self::ACCESS_KEY_ID, Self::SECRET_ACCESS_KEY));
        let service = builder.build();
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port is free")?;
        let address = listener.local_addr()?;
        let root = folder.path().to_owned();
        let shared = Arc::new(Shared { root, ..Shared::default() });
        let seen = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, seen) = (service.clone(), Arc::clone(&seen));
                tokio::spawn(converse(socket, service, seen));
            }
        });
        Ok(Self { address, folder, shared, accepting })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where the objects are as files.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join(Self::BUCKET)
    }

    /// From now on, an object that must not exist is replaced as well, as by servers without conditional writes.
    pub fn ignore_conditions(&self) {
        self.shared.unconditional.store(true, Ordering::Relaxed);
    }

    /// From now on, writes with a condition are answered with this status, and not carried out, as by servers that do
    /// not know the header.
    pub fn refuse_conditions(&self, status: u16) {
        self.shared.condition_refused_with.store(u32::from(status), Ordering::Relaxed);
    }

    /// The next requests are answered with this status, and not carried out.
    pub fn refuse(&self, requests: u32, status: u16) {
        self.shared.refused_with.store(u32::from(status), Ordering::Relaxed);
        self.shared.refused.store(requests, Ordering::Relaxed);
    }

    /// The next writes are carried out, and answered with an error.
    pub fn lose_answers(&self, writes: u32) {
        self.shared.lost.store(writes, Ordering::Relaxed);
    }

    /// Something happens to the `n`th request from now on that writes or deletes; the first is 1, and 0 is
    /// none.
    pub fn choose_write(&self, n: u32, fate: Fate) {
        self.shared.met.send_replace(false);
        *self.shared.chosen() = Some((n, fate));
    }

    /// Waits until the chosen write has met its fate.
    pub async fn met(&self) {
        // The sender is there as long as the server is.
        self.shared.met.subscribe().wait_for(|met| *met).await.map(drop).unwrap_or_default();
    }

    /// Every answer comes this much later from now on, as over a network.
    pub fn delay_answers(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.shared.latency_ms.store(millis, Ordering::Relaxed);
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn chosen(&self) -> MutexGuard<'_, Option<(u32, Fate)>> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens to a write.
    fn fate_of_next(&self) -> Option<Fate> {
        let mut chosen = self.chosen();
        let (left, fate) = chosen.as_mut()?;
        *left = left.checked_sub(1)?;
        (*left == 0).then_some(*fate)
    }

    /// Goes on when the client has gone.
    async fn wait_for_nothing(&self) {
        self.met.send_replace(true);
        pending::<()>().await;
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Answers on one connection until the client leaves, which is no fault.
async fn converse(socket: TcpStream, service: S3Service, shared: Arc<Shared>) {
    let answer = service_fn(|request| {
        let (service, shared) = (service.clone(), Arc::clone(&shared));
        async move { serve(request, &service, &shared).await }
    });
    let connections = Builder::new(TokioExecutor::new());
    connections.serve_connection(TokioIo::new(socket), answer).await.unwrap_or_default();
}

async fn serve(
    request: Request<Incoming>,
    service: &S3Service,
    shared: &Shared,
) -> Result<Response<s3s::Body>, Infallible> {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(shared.latency_ms.load(Ordering::Relaxed))).await;
    let failed = |status: u16| {
        let mut response = Response::new(s3s::Body::empty());
        *response.status_mut() = status.try_into().unwrap_or_default();
        Ok(response)
    };
    if take(&shared.refused) {
        let status = shared.refused_with.load(Ordering::Relaxed);
        return failed(u16::try_from(status).unwrap_or(500));
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let fate = if reads { None } else { shared.fate_of_next() };
    match fate {
        Some(Fate::Unheard) => shared.wait_for_nothing().await,
        Some(Fate::Refused(status)) => {
            // A client that is still sending would see a connection that breaks off, and no answer.
            let mut body = request.into_body();
            while poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_some() {}
            shared.met.send_replace(true);
            return failed(status);
        }
        Some(Fate::Unanswered) | None => {}
    }
    let conditional = request.headers().contains_key(header::IF_NONE_MATCH);
    let refused_with = shared.condition_refused_with.load(Ordering::Relaxed);
    if conditional && refused_with > 0 {
        return failed(u16::try_from(refused_with).unwrap_or(500));
    }
    let creating = match conditional {
        true => Some(shared.creating.lock().await),
        false => None,
    };
    if conditional && shared.unconditional.load(Ordering::Relaxed) {
        // The condition is signed and stays; what it is about goes.
        let name = request.uri().path().replace("%3D", "=");
        let object = shared.root.join(name.trim_start_matches('/'));
        std::fs::remove_file(object).unwrap_or_default();
    }
    let write = request.method() == Method::PUT;
    let answer = hyper::service::Service::call(service, request).await;
    drop(creating);
    if fate == Some(Fate::Unanswered) {
        shared.wait_for_nothing().await;
    }
    if write && take(&shared.lost) {
        return failed(500);
    }
    match answer {
        Ok(answer) => Ok(answer),
        Err(_) => failed(500),
    }
}

/// Takes one, where there are some.
fn take(count: &AtomicU32) -> bool {
    let less = |held: u32| held.checked_sub(1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

//! A bucket: the server `s3s-fs` on a temporary folder, with keys, reliable conditional writes, and errors on demand.

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

/// Fault of a write that a test has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// It is not executed, and gets no answer while the client waits.
    NotExecuted,
    /// It is executed, and gets no answer while the client waits.
    Unanswered,
    /// It is answered with this status, and not executed.
    Refused(u16),
}

/// A server with one bucket; it is stopped when dropped.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    folder: TempDir,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The folder of the buckets.
    root: PathBuf,
    /// Held while an object is created that must not exist, because the server checks before it writes.
    creating: Mutex<()>,
    unconditional: AtomicBool,
    /// Status for conditional writes; 0 executes them.
    condition_refused_with: AtomicU32,
    /// Number of requests still to be refused, and their status.
    refused: AtomicU32,
    refused_with: AtomicU32,
    /// Number of answers still to be lost after the request was executed.
    lost: AtomicU32,
    requests: AtomicU64,
    /// The number of the chosen write, counted down, and its fault.
    chosen: Lock<Option<(u32, WriteFault)>>,
    /// True once the chosen write has arrived.
    reached: watch::Sender<bool>,
    /// Delay of every answer, in milliseconds.
    latency_ms: AtomicU64,
}

impl S3 {
    /// Name of the bucket, and the accepted key.
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

    /// The folder of the objects.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join(Self::BUCKET)
    }

    /// From now on conditions are ignored, so that existing objects are replaced, as by servers without conditional
    /// writes.
    pub fn ignore_conditions(&self) {
        self.shared.unconditional.store(true, Ordering::Relaxed);
    }

    /// From now on conditional writes are refused with this status, as by servers that do not support the header.
    pub fn refuse_conditions(&self, status: u16) {
        self.shared.condition_refused_with.store(u32::from(status), Ordering::Relaxed);
    }

    /// The next requests are refused with this status.
    pub fn refuse(&self, requests: u32, status: u16) {
        self.shared.refused_with.store(u32::from(status), Ordering::Relaxed);
        self.shared.refused.store(requests, Ordering::Relaxed);
    }

    /// The next writes are executed, but answered with an error.
    pub fn lose_answers(&self, writes: u32) {
        self.shared.lost.store(writes, Ordering::Relaxed);
    }

    /// Chooses the `n`th write or delete from now on for a fault; the first is 1, and 0 is
    /// none.
    pub fn choose_write(&self, n: u32, fault: WriteFault) {
        self.shared.reached.send_replace(false);
        *self.shared.chosen() = Some((n, fault));
    }

    /// Waits until the chosen write has arrived.
    pub async fn chosen_write_arrived(&self) {
        // The sender exists as long as the server does.
        self.shared
            .reached
            .subscribe()
            .wait_for(|reached| *reached)
            .await
            .map(drop)
            .unwrap_or_default();
    }

    /// From now on every answer is delayed by this time, as over a network.
    pub fn delay_answers(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.shared.latency_ms.store(millis, Ordering::Relaxed);
    }

    /// Number of requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn chosen(&self) -> MutexGuard<'_, Option<(u32, WriteFault)>> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of the next write, if it is the chosen one.
    fn fault_of_next(&self) -> Option<WriteFault> {
        let mut chosen = self.chosen();
        let (left, fault) = chosen.as_mut()?;
        *left = left.checked_sub(1)?;
        (*left == 0).then_some(*fault)
    }

    /// Leaves the client without an answer until it disconnects.
    async fn leave_unanswered(&self) {
        self.reached.send_replace(true);
        pending::<()>().await;
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves one connection until the client closes it, which is not an error.
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
    let fault = if reads { None } else { shared.fault_of_next() };
    match fault {
        Some(WriteFault::NotExecuted) => shared.leave_unanswered().await,
        Some(WriteFault::Refused(status)) => {
            // A client that is still sending would see a connection that breaks off, and no answer.
            let mut body = request.into_body();
            while poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_some() {}
            shared.reached.send_replace(true);
            return failed(status);
        }
        Some(WriteFault::Unanswered) | None => {}
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
        // The condition is part of the signature and stays, so the existing object is deleted instead.
        let name = request.uri().path().replace("%3D", "=");
        let object = shared.root.join(name.trim_start_matches('/'));
        std::fs::remove_file(object).unwrap_or_default();
    }
    let write = request.method() == Method::PUT;
    let answer = hyper::service::Service::call(service, request).await;
    drop(creating);
    if fault == Some(WriteFault::Unanswered) {
        shared.leave_unanswered().await;
    }
    if write && take(&shared.lost) {
        return failed(500);
    }
    match answer {
        Ok(answer) => Ok(answer),
        Err(_) => failed(500),
    }
}

/// Decrements a counter; false if it was 0.
fn take(count: &AtomicU32) -> bool {
    let less = |held: u32| held.checked_sub(1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

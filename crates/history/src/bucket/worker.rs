//! A thread that runs requests for blocking callers.

use std::future::Future;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Stops its thread when dropped.
#[derive(Debug)]
pub(super) struct Worker {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

impl Worker {
    pub(super) fn start() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("its thread cannot start: {error}");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            // Stops when the sender is dropped.
            runtime.block_on(stopped).unwrap_or_default();
        };
        std::thread::Builder::new().name("bucket".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { handle, _stop: stop })
    }

    /// Runs work on the thread and waits for it.
    pub(super) fn call<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let (done, result) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // The caller is blocked on this.
            done.send(work.await).ok();
        });
        result.recv().map_err(|_| "the request did not come to an end".to_owned())
    }
}

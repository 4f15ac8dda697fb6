//! The threads that adapters run on.
//!
//! On a busy machine, requests take precedence over upstream input: an exchange sends hundreds of lines at once, and
//! a request would wait for them if both ran on the same thread.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Two, so that reading a large document does not block the other adapters.
const THREADS: usize = 2;
/// About a quarter of a contended core, like the writer; a request that wakes up goes first.
const NICENESS: i32 = 6;

/// Threads of a lower priority than those of requests. Dropping this ends the tasks on them.
#[derive(Debug)]
pub struct AdapterThreads(Option<Runtime>);

impl AdapterThreads {
    /// # Errors
    /// The system starts no threads.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("adapters")
            .on_thread_start(lower_priority)
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        self.0.as_ref().map(|runtime| runtime.spawn(work))
    }
}

impl Drop for AdapterThreads {
    fn drop(&mut self) {
        // It may be dropped on a thread that must not block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Minimum time of work between two yields of the core.
const PIECE: Duration = Duration::from_micros(10);

thread_local! {
    /// Time until which this thread works without yielding.
    static WORKS_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Yields the core to a waiting request. The system leaves a thread on its core until it blocks or some milliseconds
/// are over, whatever its priority. After a yield, this thread works for at least as long as others had the core, so
/// that it makes progress even if requests never stop.
pub(crate) fn let_requests_go_first() {
    let begun = Instant::now();
    if WORKS_UNTIL.get().is_none_or(|until| until <= begun) {
        std::thread::yield_now();
        WORKS_UNTIL.set(Some(works_until(begun, Instant::now())));
    }
}

/// The end of the work period after a yield that lasted from `begun` to `ended`.
fn works_until(begun: Instant, ended: Instant) -> Instant {
    ended + ended.saturating_duration_since(begun).max(PIECE)
}

/// On Linux this sets the priority of the calling thread.
fn lower_priority() {
    if let Err(error) = setpriority_process(None, NICENESS) {
        tracing::debug!(event = "adapter.priority_failed", %error, "adapters run at normal priority");
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_thread_that_others_wait_for_has_as_much_time_as_they_had() {
        let (begun, long) = (Instant::now(), Duration::from_millis(3));
        assert_eq!(works_until(begun, begun), begun + PIECE);
        assert_eq!(works_until(begun, begun + long), begun + 2 * long);
        let_requests_go_first();
        assert!(WORKS_UNTIL.get().unwrap() >= begun + PIECE);
    }

    #[tokio::test]
    async fn adapters_run_at_a_lower_priority_than_requests() {
        let own = getpriority_process(None).unwrap();
        let threads = AdapterThreads::start().unwrap();
        let (sender, receiver) = oneshot::channel();
        let work = async { sender.send(getpriority_process(None).unwrap()).unwrap() };
        threads.spawn(work).unwrap().await.unwrap();
        // Also true if the test itself runs at a low priority.
        assert_eq!(receiver.await.unwrap().max(own), NICENESS.max(own));
        assert_eq!(getpriority_process(None).unwrap(), own);
    }
}

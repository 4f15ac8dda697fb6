//! The threads that adapters run on.
//!
//! On a busy machine, requests come before what upstream sends: an exchange sends hundreds of lines at once, which a
//! request would wait for if both ran on the same thread.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// One that reads a large document does not keep the others waiting.
const THREADS: usize = 2;
/// A quarter of a contended core, as the writer has it; a request that wakes up goes first.
const NICENESS: i32 = 6;

/// Threads of a lower priority than those of requests. What runs on them ends with this.
#[derive(Debug)]
pub struct AdapterThreads(Option<Runtime>);

impl AdapterThreads {
    /// # Errors
    /// Where the system gives no threads.
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
        // It is dropped on a thread that must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Work between two looks whether somebody else waits for the core.
const PIECE: Duration = Duration::from_micros(10);

thread_local! {
    /// When this thread works on without a look until.
    static WORKS_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lets a request go first that waits for this core. The system leaves a thread on its core until it waits for
/// something or some milliseconds are over, whatever its priority. After others have had the core, this thread works
/// for as long as they did before it looks again, so that it goes on where requests never end.
pub(crate) fn let_requests_go_first() {
    let begun = Instant::now();
    if WORKS_UNTIL.get().is_none_or(|until| until <= begun) {
        std::thread::yield_now();
        WORKS_UNTIL.set(Some(works_until(begun, Instant::now())));
    }
}

/// Until when a thread works that looked from one instant to another.
fn works_until(begun: Instant, ended: Instant) -> Instant {
    ended + ended.saturating_duration_since(begun).max(PIECE)
}

/// On Linux this is the priority of the thread.
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
        // Also where the test itself runs at a low one.
        assert_eq!(receiver.await.unwrap().max(own), NICENESS.max(own));
        assert_eq!(getpriority_process(None).unwrap(), own);
    }
}

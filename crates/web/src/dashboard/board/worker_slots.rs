//! Bounded concurrency for work of milliseconds, off the threads that answer requests.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Maximum number of pages and screens built at the same time. One build serves all who wait for it, and other work
/// shares the threads.
const AT_ONCE_MAX: usize = 4;
/// Maximum wait for a slot.
const WAIT_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct WorkerSlots {
    free: Arc<Semaphore>,
    wait_max: Duration,
}

/// Why the work was not done.
#[derive(Debug)]
pub(crate) enum NoWorkerSlot {
    /// No slot became free in time.
    Busy,
    Failed(JoinError),
}

impl Default for WorkerSlots {
    fn default() -> Self {
        Self::new(AT_ONCE_MAX, WAIT_MAX)
    }
}

impl WorkerSlots {
    fn new(at_once_max: usize, wait_max: Duration) -> Self {
        Self { free: Arc::new(Semaphore::new(at_once_max)), wait_max }
    }

    /// Waits for a slot and runs the work.
    ///
    /// # Errors
    /// No slot became free in time, or the work failed.
    pub(crate) async fn take<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoWorkerSlot> {
        let slot =
            tokio::time::timeout(self.wait_max, Arc::clone(&self.free).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else { return Err(NoWorkerSlot::Busy) };
        let working = tokio::task::spawn_blocking(move || {
            // The slot is held until the work ends, even if the caller no longer waits.
            let _slot = slot;
            work()
        });
        working.await.map_err(NoWorkerSlot::Failed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn so_many_work_at_once_and_the_next_is_told_to_come_back() {
        let slots = Arc::new(WorkerSlots::new(2, Duration::from_millis(20)));
        let (begins, begun) = mpsc::channel();
        let mut held = Vec::new();
        for _ in 0..2 {
            let (go, may_go) = mpsc::channel::<()>();
            let (slots, begins) = (Arc::clone(&slots), begins.clone());
            let working = tokio::spawn(async move {
                let work = move || {
                    begins.send(()).unwrap();
                    assert!(may_go.recv().is_err(), "only let go");
                };
                slots.take(work).await
            });
            held.push((working, go));
        }
        let begun = tokio::task::spawn_blocking(move || begun.iter().take(2).count());
        assert_eq!(begun.await.unwrap(), 2);
        assert!(matches!(slots.take(|| 1).await, Err(NoWorkerSlot::Busy)));
        // The caller may stop waiting: the work keeps its slot until it ends.
        let (gone, go) = held.pop().unwrap();
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        assert!(matches!(slots.take(|| 1).await, Err(NoWorkerSlot::Busy)));
        drop(go);
        let patient =
            WorkerSlots { free: Arc::clone(&slots.free), wait_max: Duration::from_secs(60) };
        assert_eq!(patient.take(|| 1).await.unwrap(), 1);
        let (working, go) = held.pop().unwrap();
        drop(go);
        working.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_waits_in_time_gets_a_turn_and_a_panic_gives_its_back() {
        let slots = Arc::new(WorkerSlots::new(2, Duration::from_secs(60)));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut all = tokio::task::JoinSet::new();
        for n in 0..20 {
            let (slots, now, most) = (Arc::clone(&slots), Arc::clone(&now), Arc::clone(&most));
            all.spawn(async move {
                let work = move || {
                    let at_once = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(at_once, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    assert!(n % 5 != 0, "a page that cannot be made");
                };
                slots.take(work).await.is_ok()
            });
        }
        let done = all.join_all().await;
        assert_eq!(done.iter().filter(|made| **made).count(), 16);
        assert!(most.load(Ordering::SeqCst) <= 2);
    }
}

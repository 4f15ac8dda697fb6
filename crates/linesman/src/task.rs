//! The tasks of the service that run until it stops.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The name of a part, for the log.
pub(crate) type Part = &'static str;

/// Starts tasks that must run as long as the service. A task that ends earlier, even by a panic, is reported.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    ended: mpsc::Sender<Part>,
    stop: CancellationToken,
}

impl Tasks {
    /// Creates a group; also returns the receiver of its reports.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Part>) {
        let (ended, reported) = mpsc::channel(8);
        (Self { ended, stop: CancellationToken::new() }, reported)
    }

    /// Creates a second group, which is stopped separately.
    pub(crate) fn apart(&self) -> Self {
        Self { ended: self.ended.clone(), stop: CancellationToken::new() }
    }

    pub(crate) fn spawn(&self, part: Part, work: impl Future<Output = ()> + Send + 'static) {
        let (report, stop) = (self.report_end(part), self.stop.clone());
        tokio::spawn(async move {
            let _report = report;
            stop.run_until_cancelled(work).await;
        });
    }

    /// Reports the end of a part when dropped; for threads.
    pub(crate) fn report_end(&self, part: Part) -> EndReport {
        EndReport { ended: self.ended.clone(), part }
    }

    /// Stops the tasks of this group.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

/// Reports that a part has ended.
#[derive(Debug)]
pub(crate) struct EndReport {
    ended: mpsc::Sender<Part>,
    part: Part,
}

impl Drop for EndReport {
    fn drop(&mut self) {
        if self.ended.try_send(self.part).is_err() {
            tracing::debug!(
                event = "service.part_late",
                part = self.part,
                "ended after the service"
            );
        }
    }
}

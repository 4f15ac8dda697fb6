//! Deletes old batches, except those that readers still need.

use tracing::{debug, warn};

use crate::{
    error::LogError,
    position::{Position, before_forced_ms},
    stream::{StreamLog, part::RunHead},
};

impl StreamLog {
    /// Deletes old batches, and returns the number of their messages.
    ///
    /// A batch is deleted only if it is from before `before_ms`, all its numbers are below `keep_from`, the older of
    /// two checkpoints covers it, and no reader still has to read it (for at most [`crate::READER_DELAY_MAX`]). The
    /// last such batch stays.
    ///
    /// # Errors
    /// The servers do not answer.
    pub fn retain(&mut self, before_ms: i64, keep_from: u64) -> Result<u64, LogError> {
        let seq_max = self.checkpoints.covered().min(keep_from.saturating_sub(1));
        self.runtime.clone().block_on(async {
            let extent = self.stream.extent().await?;
            let goes = |head: &RunHead| head.last <= seq_max && head.tag < before_ms;
            // The last deletable batch is kept: its beginning is easier to determine than its end.
            let kept = self.last_where(extent.first, extent.last, goes).await?;
            let Some(kept) = kept.filter(|kept| *kept > extent.first) else {
                return Ok(0);
            };
            let kept = self.keep_for_readers(extent.first, kept, before_ms, goes).await?;
            if kept <= extent.first {
                return Ok(0);
            }
            self.stream.purge_before(kept).await?;
            // Only the beginning is read again. The end remains as this owner read or wrote it: additions of another
            // writer are unknown here, so that this owner is refused.
            self.first_seq = self.stream.get(kept).await?.part.head.first;
            self.bytes = self.stream.extent().await?.bytes;
            Ok(kept - extent.first)
        })
    }

    /// The first message to keep, if all before `kept` may be deleted except those that readers still need.
    async fn keep_for_readers(
        &self,
        first: u64,
        kept: u64,
        before_ms: i64,
        goes: impl Fn(&RunHead) -> bool,
    ) -> Result<u64, LogError> {
        let needed = self.stream.lowest_position().await.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            warn!(
                event = "retention.readers_unknown",
                error, "log is kept: its readers are not known"
            );
            Some(first)
        });
        let Some(needed) = needed.filter(|needed| *needed < kept) else { return Ok(kept) };
        // A batch is kept completely.
        let needed = needed.max(first);
        let needed =
            needed.saturating_sub(u64::from(self.stream.get(needed).await?.part.part)).max(first);
        let forced_ms = before_forced_ms(before_ms);
        let forced = |head: &RunHead| goes(head) && head.tag < forced_ms;
        let forced = self.last_where(first, kept, forced).await?.unwrap_or(first);
        if forced > needed {
            warn!(
                event = "retention.forced",
                stream = self.stream.name(),
                "log is deleted before a reader has read it"
            );
        } else {
            debug!(
                event = "retention.delayed",
                stream = self.stream.name(),
                "log is kept for a reader"
            );
        }
        Ok(needed.max(forced))
    }

    /// Keeps the present entries of the log from being deleted ([`Position`]).
    ///
    /// # Errors
    /// The servers do not answer.
    pub fn register(&self) -> Result<Position, LogError> {
        self.runtime.block_on(async {
            let first = self.stream.extent().await?.first;
            Ok(Position::at_consumer(self.stream.register(first).await?))
        })
    }

    /// The last message that begins a batch for which `holds` is true; it is true up to some message and false after
    /// it.
    pub(super) async fn last_where(
        &self,
        first: u64,
        last: u64,
        holds: impl Fn(&RunHead) -> bool,
    ) -> Result<Option<u64>, LogError> {
        let (mut low, mut high, mut found) = (first, last, None);
        while low <= high {
            let middle = low + (high - low) / 2;
            let part = self.stream.get(middle).await?.part;
            // A batch is judged by its first message, wherever in it the search has arrived.
            let begin = middle.saturating_sub(u64::from(part.part)).max(first);
            if holds(&part.head) {
                found = Some(begin);
                low = middle + 1;
            } else if begin > low {
                high = begin - 1;
            } else {
                break;
            }
        }
        Ok(found)
    }
}

//! The archive's own files (H14): one for each table, sport and finished day.

use std::collections::HashMap;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use archive::{Archive, ArchiveError, Table, TableFile};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::logged::{LoggedPast, unreadable};
use super::turns::{TurnWait, Work};
use super::{History, HistoryError, Source};
use crate::error::Chain;

/// Maximum number of files sent at a time, in total and for one key.
const EXPORTS_MAX: usize = 16;
const EXPORTS_PER_KEY_MAX: usize = 4;
/// Bytes read of a file at a time: 50 MB per second from a bucket that answers in 20 ms.
const READ_BYTES: u64 = 1 << 20;
/// Bytes passed on at a time. A client has a minute to receive them.
const PIECE_BYTES: usize = 128 << 10;

/// The requested file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRequest {
    pub table: Table,
    /// The sport's key.
    pub sport: String,
    /// A day in UTC, such as `2026-11-14`.
    pub date: String,
    /// The lineage of the archive, if a day has files of several; by default the first of them.
    pub lineage: Option<usize>,
}

/// The reason why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The day is not over, or its files are not merged. Holds the last day whose files are.
    #[error("the files of that day are not final")]
    NotFinal(Option<String>),
    #[error("that day has no such rows")]
    NoRows,
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// A final file.
#[derive(Debug)]
pub struct ExportFile {
    history: Arc<History>,
    archive: Archive,
    file: TableFile,
    /// The lineage of the day's next file.
    pub next: Option<usize>,
    _slots: [OwnedSemaphorePermit; 2],
}

/// Limits of concurrent exports.
#[derive(Debug)]
pub(super) struct ExportSlots {
    all: Arc<Semaphore>,
    /// The slots of each key that uses some.
    keys: Mutex<HashMap<u64, Arc<Semaphore>>>,
}

impl Default for ExportSlots {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(EXPORTS_MAX)), keys: Mutex::default() }
    }
}

impl ExportSlots {
    fn of(&self, key: u64) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, slots| Arc::strong_count(slots) > 1);
        let new = || Arc::new(Semaphore::new(EXPORTS_PER_KEY_MAX));
        Arc::clone(keys.entry(key).or_insert_with(new))
    }
}

impl History {
    /// A file of the archive. `key`: the requesting key.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read now.
    pub async fn export(
        self: &Arc<Self>,
        request: ExportRequest,
        key: u64,
    ) -> Result<ExportFile, ExportError> {
        if !self.is_on() || self.archive().is_none() {
            return Err(HistoryError::Off.into());
        }
        let mut wait = TurnWait::default();
        let own = self.turn(&self.exports.of(key), &mut wait).await?;
        let slots = [own, self.turn(&self.exports.all, &mut wait).await?];
        let look = move |source: &Source| match source {
            Source::Logged(past) => Ok(past.export_file(&request)),
            Source::Simulated(_) | Source::Nothing => Err(HistoryError::Off),
        };
        let (archive, file, next) = self.on_source_in_time(Work::Read, Some(key), look).await??;
        Ok(ExportFile { history: Arc::clone(self), archive, file, next, _slots: slots })
    }
}

impl LoggedPast {
    fn export_file(
        &self,
        request: &ExportRequest,
    ) -> Result<(Archive, TableFile, Option<usize>), ExportError> {
        let archive = self.archive.as_ref().ok_or(HistoryError::Off)?;
        let commit = archive.newest().map_err(unreadable)?;
        let last = commit.final_day();
        if last.is_none_or(|last| *request.date > *last) {
            return Err(ExportError::NotFinal(last.map(str::to_owned)));
        }
        let files = commit.day_files(request.table, &request.sport, &request.date);
        let found = match request.lineage {
            None => 0,
            Some(wanted) => {
                let found = files.iter().position(|file| file.lineage == wanted);
                found.ok_or(ExportError::NoRows)?
            }
        };
        let file = (*files.get(found).ok_or(ExportError::NoRows)?).clone();
        let next = files.get(found + 1).map(|next| next.lineage);
        // One of its files is damaged, so they cannot be merged.
        if next == Some(file.lineage) {
            return Err(ExportError::NotFinal(last.map(str::to_owned)));
        }
        archive.check_once(&file).map_err(unreadable)?;
        Ok((archive.clone(), file, next))
    }
}

impl ExportFile {
    pub fn length(&self) -> u64 {
        self.file.bytes
    }

    pub fn sha256(&self) -> &str {
        &self.file.sha256
    }

    /// A range of it, to be read while it is sent.
    pub fn pieces(self, range: Range<u64>) -> ExportPieces {
        ExportPieces { file: Arc::new(self), left: range, held: Bytes::new(), reading: None }
    }
}

/// A range of a file, a piece at a time.
#[derive(Debug)]
pub struct ExportPieces {
    file: Arc<ExportFile>,
    /// The range that is not read yet.
    left: Range<u64>,
    /// Bytes that were read and not passed on yet.
    held: Bytes,
    reading: Option<JoinHandle<Result<Bytes, ArchiveError>>>,
}

impl ExportPieces {
    /// The next piece; `None` at the end, or if the archive cannot be read any further.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while self.held.is_empty() {
            if self.reading.is_none() {
                if self.left.is_empty() {
                    return Poll::Ready(None);
                }
                let range = self.left.start..self.left.end.min(self.left.start + READ_BYTES);
                let file = Arc::clone(&self.file);
                self.reading = Some(tokio::task::spawn_blocking(move || {
                    file.archive.read_range(&file.file, range)
                }));
            }
            let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
            let Poll::Ready(read) = Pin::new(reading).poll(context) else { return Poll::Pending };
            self.reading = None;
            self.held = match read {
                Ok(Ok(bytes)) if !bytes.is_empty() => bytes,
                Ok(Ok(_)) | Err(_) => return self.fail(None),
                Ok(Err(error)) => return self.fail(Some(&error)),
            };
            self.left.start += u64::try_from(self.held.len()).unwrap_or(u64::MAX);
        }
        let piece = self.held.split_to(self.held.len().min(PIECE_BYTES));
        let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.file.history.stats.export_bytes.fetch_add(bytes, Ordering::Relaxed);
        Poll::Ready(Some(piece))
    }

    fn fail(&mut self, error: Option<&ArchiveError>) -> Poll<Option<Bytes>> {
        let (path, at) = (&self.file.file.path, self.left.start);
        self.left = 0..0;
        self.file.history.stats.export_failures.fetch_add(1, Ordering::Relaxed);
        match error {
            Some(error) => {
                tracing::warn!(event = "history.export_failed", path, at, error = %Chain(error), "a file of the archive could not be sent to its end");
            }
            None => {
                tracing::warn!(
                    event = "history.export_failed",
                    path,
                    at,
                    "a file of the archive ended before its length"
                );
            }
        }
        Poll::Ready(None)
    }
}

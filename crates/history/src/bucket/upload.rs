//! An object that is written to a bucket in parts, with bounded memory.
//!
//! An object of at most one part takes a single request. A larger one exists only once all its parts are complete;
//! parts of a killed process stay until the bucket's own lifecycle rule deletes them. Parts of an upload that failed
//! are deleted, in an outage once the bucket answers again.

use std::io::{self, Write};
use std::mem;
use std::sync::PoisonError;
use std::time::Instant;

use bytes::Bytes;
use object_store::multipart::{MultipartStore as _, PartId};
use object_store::{Error, MultipartId, PutMode};

use super::Bucket;
use super::transport::Failure;
use crate::error::ArchiveError;

/// Size of every part except the last: stores require at least 5 MiB, some equal sizes, and at most 10,000 parts.
const PART_BYTES: usize = 8 << 20;

/// Maximum number of failed uploads that are remembered until the bucket answers again.
const LEFT_MAX: usize = 64;
/// Maximum number of attempts to delete the parts of one, apart from an outage.
const ATTEMPTS_MAX: u32 = 3;

/// An upload that is deleted unless it is finished.
#[derive(Debug)]
pub(crate) struct Upload {
    bucket: Bucket,
    name: String,
    held: Vec<u8>,
    /// The bucket's id of the upload, and the parts sent; `None` while the object fits into one part.
    begun: Option<(MultipartId, Vec<PartId>)>,
}

impl Upload {
    pub(crate) fn new(bucket: &Bucket, name: &str) -> Self {
        Self { bucket: bucket.clone(), name: name.to_owned(), held: Vec::new(), begun: None }
    }

    /// Completes the object.
    pub(crate) fn finish(mut self) -> Result<(), ArchiveError> {
        if self.begun.is_none() {
            let bytes = mem::take(&mut self.held).into();
            return self.failing(self.bucket.put(&self.name, bytes, PutMode::Overwrite));
        }
        if !self.held.is_empty() {
            self.send()?;
        }
        let Some((id, parts)) = self.begun.clone() else { return Ok(()) };
        self.failing(self.bucket.ask(&self.name, |store, path| async move {
            store.complete_multipart(&path, &id, parts).await
        }))?;
        self.begun = None;
        Ok(())
    }

    /// Sends the buffered bytes as a part.
    fn send(&mut self) -> Result<(), ArchiveError> {
        let (id, mut parts) = match self.begun.take() {
            Some(begun) => begun,
            None => {
                let begin = self.bucket.ask(&self.name, |store, path| async move {
                    store.create_multipart(&path).await
                });
                (self.failing(begin)?, Vec::new())
            }
        };
        let (bytes, number) = (Bytes::from(mem::take(&mut self.held)), parts.len());
        let upload = id.clone();
        let part = self.bucket.ask(&self.name, move |store, path| async move {
            store.put_part(&path, &upload, number, bytes.into()).await
        });
        let part = self.failing(part).map(|part| parts.push(part));
        self.begun = Some((id, parts));
        part
    }

    fn failing<T>(&self, asked: Result<T, Error>) -> Result<T, ArchiveError> {
        asked.map_err(|error| self.bucket.failed(&self.name, &error))
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.held.len() >= PART_BYTES {
            self.send().map_err(io::Error::other)?;
        }
        let taken = bytes.len().min(PART_BYTES - self.held.len());
        self.held.extend_from_slice(bytes.get(..taken).unwrap_or(bytes));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some((id, _)) = self.begun.take() {
            self.bucket.abort(Left { name: mem::take(&mut self.name), id, attempts: 0 });
        }
    }
}

/// A failed upload whose parts are to be deleted.
#[derive(Debug)]
pub(super) struct Left {
    name: String,
    id: MultipartId,
    attempts: u32,
}

impl Bucket {
    /// Deletes the parts of a failed upload. If the bucket does not answer, the upload is remembered, and tried again a
    /// few times. Other requests do not wait for a bucket that answers everything but this.
    fn abort(&self, left: Left) {
        let (name, id) = (left.name.clone(), left.id.clone());
        let is_down = self.down().as_ref().is_some_and(|(until, _)| Instant::now() < *until);
        let abort =
            match is_down {
                true => None,
                false => Some(self.call(&name, |store, path| async move {
                    store.abort_multipart(&path, &id).await
                })),
            };
        let error = match abort {
            Some(Ok(Ok(()))) => return,
            Some(Ok(Err(error)) | Err(error)) => Some(error),
            None => None,
        };
        let failure = error.as_ref().map(|error| Failure::behind(error));
        let attempts = left.attempts + u32::from(error.is_some());
        if matches!(failure, None | Some(Some(Failure::Unanswered { .. })))
            && attempts < ATTEMPTS_MAX
        {
            let mut all = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() < LEFT_MAX {
                all.push(Left { attempts, ..left });
                return;
            }
        }
        let error = error.map(|error| self.failed(&name, &error).to_string());
        tracing::debug!(
            event = "archive.upload_left",
            object = name,
            error,
            "parts of an object stay until the bucket removes them"
        );
    }

    /// Deletes one of the remembered uploads: every request that succeeds does so, and hardly takes longer.
    pub(super) fn abort_left(&self) {
        let left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(left) = left {
            self.abort(left);
        }
    }
}

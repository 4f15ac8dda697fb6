//! An archive: its commits, and the files that they name.
//!
//! Files get names that no other writer uses and are durable before a commit names them. The commit itself is a file
//! that must not exist yet: the writer that creates it wins. Files that no commit names are not part of the archive.

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::commit::{Blob, Commit, TableFile};
use crate::durable::{count, hex, nonce};
use crate::error::{ArchiveError, io_at};
use crate::event_cache::EventIndex;
use crate::folder::TEMPORARY_SUFFIX;
use crate::new_file::NewFile;
use crate::object::Object;
use crate::path::KeptPrices;
use crate::source::Source;
use crate::store::{Location, Store};

/// Number of commits kept before the newest, for readers that are about to read one.
const COMMITS_KEPT: usize = 50;
/// Time for which a file outside the archive is kept: it may belong to a future commit, or be in use by a reader.
const UNUSED_KEPT: Duration = Duration::from_secs(3600);
/// Maximum number of files remembered as verified.
const CHECKED_MAX: usize = 100_000;
/// Bytes read at a time while verifying a file.
const CHECKED_BYTES: u64 = 4 << 20;
/// Files of a bucket up to this size are read as a whole and verified; larger ones are read in ranges.
const WHOLE_MAX: u64 = 4 << 20;
/// Maximum size of a commit; an entry takes a few hundred bytes.
const COMMIT_BYTES_MAX: u64 = 256 << 20;
const COMMITS: &str = "commit";
const LIST: &str = "files.json";
/// Suffix of a list of files that a commit replaced, for a store that cannot change their modification times: a bucket,
/// or a folder with files of another user.
const REPLACED_SUFFIX: &str = ".replaced";

/// The archive of a world.
#[derive(Clone, Debug)]
pub struct Archive {
    location: Location,
    pub(crate) store: Store,
    /// Checksums of the files that this process has verified.
    checked: Arc<Mutex<HashSet<String>>>,
    /// The newest commit that was read.
    newest: Arc<Mutex<Option<Arc<Commit>>>>,
    /// The events in each file, as far as they were requested.
    index: Arc<Mutex<EventIndex>>,
    /// Prices of the oldest book that were requested last.
    pub(crate) bases: Arc<Mutex<KeptPrices>>,
    /// Maximum rows of a group in merged files, if it differs from the table's default.
    pub(crate) group_rows: Option<usize>,
    unused_kept: Duration,
    /// Number of unused files that may not be deleted, as last reported.
    files_left: Arc<AtomicUsize>,
    /// Maximum size of a file of a bucket that is read as a whole.
    whole_max: u64,
}

/// The outcome of an attempt to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Another writer was faster: its commit must be read and continued.
    Lost,
}

impl Archive {
    /// Opens the archive in a folder, which is created if missing.
    ///
    /// # Errors
    /// The folder cannot be used, or its file system cannot exclude a second writer.
    pub fn create(root: &Path) -> Result<Self, ArchiveError> {
        Self::create_in(&Location::Folder(root.to_owned()))
    }

    /// The archive in an existing folder.
    pub fn at(root: &Path) -> Self {
        Self::of(&Location::Folder(root.to_owned()))
    }

    /// Opens an archive for writing. A missing folder is created, a missing bucket is not.
    ///
    /// # Errors
    /// The place cannot be used now, or never because it cannot exclude a second writer.
    pub fn create_in(location: &Location) -> Result<Self, ArchiveError> {
        let archive = Self::of(location);
        archive.store.prepare(COMMITS)?;
        Ok(archive)
    }

    /// The archive in an existing place.
    pub fn of(location: &Location) -> Self {
        Self {
            location: location.clone(),
            store: Store::at(location),
            checked: Arc::default(),
            newest: Arc::default(),
            index: Arc::default(),
            bases: Arc::default(),
            group_rows: None,
            unused_kept: UNUSED_KEPT,
            files_left: Arc::default(),
            whole_max: WHOLE_MAX,
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, EventIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same with smaller groups of rows, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_group_rows(self, group_rows: usize) -> Self {
        Self { group_rows: Some(group_rows), ..self }
    }

    /// The same with another retention time of unused files, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_unused_kept(self, unused_kept: Duration) -> Self {
        Self { unused_kept, ..self }
    }

    /// The same that reads files of a bucket above this size in ranges, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_whole_max(self, whole_max: u64) -> Self {
        Self { whole_max, ..self }
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The number of the newest commit; 0 if there is none.
    ///
    /// # Errors
    /// The archive cannot be reached.
    pub fn newest_number(&self) -> Result<u64, ArchiveError> {
        Ok(self.commits()?.last().copied().unwrap_or_default())
    }

    /// The newest commit, or an empty one if there is none yet.
    ///
    /// # Errors
    /// It cannot be read, or a newer program wrote it.
    pub fn newest(&self) -> Result<Commit, ArchiveError> {
        let Some(number) = self.commits()?.last().copied() else { return Ok(Commit::none()) };
        let newest = || self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &*newest()
            && held.commit == number
        {
            return Ok((**held).clone());
        }
        let name = commit_name(number);
        let commit = Commit::parse(&name, &self.store.read(&name, COMMIT_BYTES_MAX)?)?;
        if commit.commit != number {
            return Err(ArchiveError::Damaged { path: name, reason: "its number is wrong" });
        }
        *newest() = Some(Arc::new(commit.clone()));
        Ok(commit)
    }

    /// True if it may contain something: a folder that was never written to has no folder of commits.
    pub fn is_begun(&self) -> bool {
        self.store.may_have(COMMITS)
    }

    /// The numbers of all commits, oldest first.
    fn commits(&self) -> Result<Vec<u64>, ArchiveError> {
        let objects = self.store.list(COMMITS)?;
        let mut numbers: Vec<u64> = objects.iter().filter_map(number_of).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes a file that no commit names yet, durably. `name` is its path without the unique part.
    ///
    /// # Errors
    /// The store refuses.
    pub fn put(&self, name: &str, suffix: &str, bytes: &[u8]) -> Result<Blob, ArchiveError> {
        let mut file = self.new_file(name, suffix)?;
        file.write_all(bytes).map_err(io_at(Path::new(name)))?;
        file.finish()
    }

    /// The same, written in pieces.
    pub(crate) fn new_file(&self, name: &str, suffix: &str) -> Result<NewFile, ArchiveError> {
        self.store.new_file(name, suffix)
    }

    /// Reads a file that a commit names.
    ///
    /// # Errors
    /// It cannot be read, or differs from what was committed.
    pub(crate) fn get(&self, blob: &Blob) -> Result<Bytes, ArchiveError> {
        let bytes = self.store.read(&blob.path, blob.bytes)?;
        match hex(&Sha256::digest(&bytes)) == blob.sha256 {
            true => Ok(bytes),
            false => Err(damaged(&blob.path)),
        }
    }

    /// A range of a file that a commit names, limited to its length.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_range(&self, file: &TableFile, range: Range<u64>) -> Result<Bytes, ArchiveError> {
        let range = range.start..range.end.min(file.bytes);
        match range.is_empty() {
            true => Ok(Bytes::new()),
            false => self.store.read_range(&file.path, range, file.bytes),
        }
    }

    /// Opens a file that a commit names. It is verified the first time; of a large file in a bucket, only the length
    /// is.
    ///
    /// # Errors
    /// It cannot be read, or differs from what was committed.
    pub(crate) fn open(&self, file: &TableFile) -> Result<Source, ArchiveError> {
        let TableFile { path, sha256, bytes, .. } = file;
        match &self.store {
            Store::Folder(_) => {
                self.check_once(file)?;
                self.store.open(path, *bytes)
            }
            Store::Bucket(_) if *bytes > self.whole_max => self.store.open(path, *bytes),
            Store::Bucket(_) => {
                let bytes = self.store.read(path, *bytes)?;
                if !self.is_checked(sha256) {
                    if hex(&Sha256::digest(&bytes)) != *sha256 {
                        return Err(damaged(path));
                    }
                    self.note_checked(sha256);
                }
                Ok(Source::Memory(bytes))
            }
        }
    }

    /// Verifies a file of a folder the first time. Of a file in a bucket, the length is checked with each range that
    /// is read.
    ///
    /// # Errors
    /// It cannot be read, or differs from what was committed.
    pub fn check_once(&self, file: &TableFile) -> Result<(), ArchiveError> {
        if matches!(self.store, Store::Bucket(_)) || self.is_checked(&file.sha256) {
            return Ok(());
        }
        self.check(&file.path, &file.sha256, file.bytes)?;
        self.note_checked(&file.sha256);
        Ok(())
    }

    fn is_checked(&self, sha256: &str) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(sha256)
    }

    fn note_checked(&self, sha256: &str) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.len() >= CHECKED_MAX {
            checked.clear();
        }
        checked.insert(sha256.to_owned());
    }

    /// Verifies a file of this length.
    ///
    /// # Errors
    /// It cannot be read, or differs.
    pub(crate) fn check(&self, name: &str, sha256: &str, length: u64) -> Result<(), ArchiveError> {
        let (mut digest, mut at) = (Sha256::new(), 0);
        while at < length {
            let end = (at + CHECKED_BYTES).min(length);
            let piece = self.store.read_range(name, at..end, length)?;
            digest.update(&piece);
            at += count(piece.len());
            if piece.is_empty() {
                break;
            }
        }
        // In a folder, a longer file differs as well.
        let longer = match &self.store {
            Store::Folder(_) => {
                !self.store.read_range(name, length..length + 1, length)?.is_empty()
            }
            Store::Bucket(_) => false,
        };
        match hex(&digest.finalize()) == sha256 && !longer {
            true => Ok(()),
            false => Err(damaged(name)),
        }
    }

    /// Makes a commit the newest, unless another one with its number exists.
    ///
    /// # Errors
    /// The store refuses; read the newest commit to find out whether the commit was made.
    pub fn commit(&self, commit: &Commit) -> Result<Outcome, ArchiveError> {
        let text = serde_json::to_vec(commit).unwrap_or_default();
        if !self.store.create_new(&commit_name(commit.commit), &text)? {
            return Ok(Outcome::Lost);
        }
        // Old commits are deleted: a writer that was suspended for very long may have created one of their numbers
        // again.
        if self.commits()?.last() != Some(&commit.commit) {
            return Ok(Outcome::Lost);
        }
        // A second copy with a well-known name, for people and tools.
        self.store.overwrite(LIST, &text)?;
        Ok(Outcome::Committed)
    }

    /// Makes a commit the newest that does not name all files of the previous one. Those stay for an hour from now for
    /// readers, so they must not look as if they had been unused for long.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub(crate) fn replace(
        &self,
        before: &Commit,
        commit: &Commit,
    ) -> Result<Outcome, ArchiveError> {
        let kept: HashSet<&str> = commit.paths().collect();
        let replaced: Vec<&str> = before.paths().filter(|path| !kept.contains(path)).collect();
        let touched = match &self.store {
            Store::Folder(folder) => folder.touch(replaced.iter().copied()).is_ok(),
            Store::Bucket(_) => false,
        };
        if !touched {
            let text = serde_json::to_vec(&replaced).unwrap_or_default();
            let name = format!("{COMMITS}/{:08}-{}{REPLACED_SUFFIX}", commit.commit, nonce());
            self.store.overwrite(&name, &text)?;
        }
        self.commit(commit)
    }

    /// Deletes files that have not been part of the archive for an hour, and returns their number. To be called by the
    /// writer of the commit. In a bucket, it only runs a few times an hour.
    ///
    /// # Errors
    /// The store refuses.
    pub fn clean(&self, commit: &Commit) -> Result<usize, ArchiveError> {
        if !self.store.is_clean_due(self.unused_kept) {
            return Ok(0);
        }
        let objects = self.store.list("")?;
        let newest = commit_name(commit.commit);
        // By the clock of the store, which may be another machine's.
        let Some(last) = objects.iter().find(|object| object.name == newest) else { return Ok(0) };
        let now = self.store.now_ms().unwrap_or(last.modified_ms).max(last.modified_ms);
        let mut numbers: Vec<u64> = objects.iter().filter_map(number_of).collect();
        numbers.sort_unstable();
        if numbers.last() != Some(&commit.commit) {
            // Another writer has continued. What it added is not in this commit.
            return Ok(0);
        }
        let old = numbers.len().saturating_sub(COMMITS_KEPT);
        for number in numbers.iter().take(old) {
            self.store.remove(&commit_name(*number))?;
        }
        let kept_ms = i64::try_from(self.unused_kept.as_millis()).unwrap_or(i64::MAX);
        let is_old = |object: &&Object| now.saturating_sub(object.modified_ms) > kept_ms;
        let mut named: HashSet<String> = commit.paths().map(str::to_owned).collect();
        for recent in objects.iter().filter(|object| object.name.ends_with(REPLACED_SUFFIX)) {
            if !is_old(&recent) {
                let list = self.store.read(&recent.name, COMMIT_BYTES_MAX)?;
                let damaged = |_| damaged(&recent.name);
                named.extend(serde_json::from_slice::<Vec<String>>(&list).map_err(damaged)?);
            }
        }
        let unused: Vec<&Object> = objects
            .iter()
            .filter(|object| is_ours(&object.name) && !named.contains(&object.name))
            .filter(is_old)
            .collect();
        let (mut deleted, mut refused) = (0, None);
        for object in &unused {
            match self.store.remove(&object.name) {
                // It is in a folder of another user. The others do not wait for it.
                Err(error) if error.is_refused() => {
                    refused.get_or_insert(error);
                }
                removed => {
                    removed?;
                    deleted += 1;
                }
            }
        }
        let left = unused.len() - deleted;
        if let Some(error) = refused
            && self.files_left.swap(left, Ordering::Relaxed) != left
        {
            tracing::warn!(
                event = "archive.files_left",
                error = &error as &dyn std::error::Error,
                files = left,
                "files that are not part of the archive any more may not be deleted"
            );
        }
        Ok(deleted)
    }
}

/// True if the name is that of a file of an archive or of a temporary file.
fn is_ours(name: &str) -> bool {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    matches!(end, "parquet" | "image" | "zst" | "toml") || is_temporary(name)
}

fn is_temporary(name: &str) -> bool {
    name.ends_with(TEMPORARY_SUFFIX) || name.ends_with(REPLACED_SUFFIX)
}

/// The number of a commit's file.
fn number_of(object: &Object) -> Option<u64> {
    let name = object.name.strip_prefix(COMMITS)?.strip_prefix('/')?;
    name.strip_suffix(".json")?.parse().ok()
}

fn commit_name(number: u64) -> String {
    format!("{COMMITS}/{number:08}.json")
}

fn damaged(name: &str) -> ArchiveError {
    ArchiveError::Damaged { path: name.to_owned(), reason: "its checksum differs" }
}

//! An archive: its commits, and the files that they name.
//!
//! Files get names that no other writer uses and are durable before a commit names them. The commit itself is a file
//! that must not exist yet: whoever makes it has won. What no commit names is no part of the archive.

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
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

/// Commits before the newest that are kept, for whoever is about to read one.
const COMMITS_KEPT: usize = 50;
/// For how long a file that is no part of the archive is kept: it may be of a commit to come, or be read.
const UNUSED_KEPT: Duration = Duration::from_secs(3600);
/// Files that are remembered to be what was committed.
const CHECKED_MAX: usize = 100_000;
/// What is read of a file at a time to check it.
const CHECKED_BYTES: u64 = 4 << 20;
/// Files of a bucket up to this are read as a whole and checked; of larger ones, what is needed.
const WHOLE_MAX: u64 = 4 << 20;
/// What a commit may have: some hundred bytes for each file.
const COMMIT_BYTES_MAX: u64 = 256 << 20;
const COMMITS: &str = "commit";
const LIST: &str = "files.json";
/// Ends the name of a list of files that a commit replaced, in a bucket, where files cannot be made to look new.
const REPLACED_SUFFIX: &str = ".replaced";

/// The archive of a world.
#[derive(Clone, Debug)]
pub struct Archive {
    location: Location,
    pub(crate) store: Store,
    /// Checksums of files that this process has found to be what was committed.
    checked: Arc<Mutex<HashSet<String>>>,
    /// The newest commit that was read.
    newest: Arc<Mutex<Option<Arc<Commit>>>>,
    /// Which files have rows of which events, as far as that was asked.
    index: Arc<Mutex<EventIndex>>,
    /// Prices of the oldest book that were asked for last.
    pub(crate) bases: Arc<Mutex<KeptPrices>>,
    /// Rows after which a group of a file that is put together is closed, where that is not the table's own number.
    pub(crate) group_rows: Option<usize>,
    unused_kept: Duration,
    /// Up to how many bytes a file of a bucket is read as a whole.
    whole_max: u64,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Another writer was faster: its commit is to be read, and continued after.
    Lost,
}

impl Archive {
    /// Opens the archive in a folder, which is made where it is missing.
    ///
    /// # Errors
    /// The folder cannot be used, or its file system cannot decide between two writers.
    pub fn create(root: &Path) -> Result<Self, ArchiveError> {
        Self::create_in(&Location::Folder(root.to_owned()))
    }

    /// The archive in a folder that is there.
    pub fn at(root: &Path) -> Self {
        Self::of(&Location::Folder(root.to_owned()))
    }

    /// Opens an archive to write it. What it is in is made where it is missing, a bucket apart.
    ///
    /// # Errors
    /// The place cannot be used now, or never: it does not decide between two writers.
    pub fn create_in(location: &Location) -> Result<Self, ArchiveError> {
        let archive = Self::of(location);
        archive.store.prepare(COMMITS)?;
        Ok(archive)
    }

    /// The archive in a place that is there.
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

    /// The same that keeps unused files for another time, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_unused_kept(self, unused_kept: Duration) -> Self {
        Self { unused_kept, ..self }
    }

    /// The same that reads larger files of a bucket in pieces than it would, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_whole_max(self, whole_max: u64) -> Self {
        Self { whole_max, ..self }
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The number of the newest commit; 0 where there is none.
    ///
    /// # Errors
    /// The archive cannot be reached.
    pub fn newest_number(&self) -> Result<u64, ArchiveError> {
        Ok(self.commits()?.last().copied().unwrap_or_default())
    }

    /// The newest commit; an archive that has none yet consists of nothing.
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
            return Err(ArchiveError::Damaged { path: name, reason: "it has another number" });
        }
        *newest() = Some(Arc::new(commit.clone()));
        Ok(commit)
    }

    /// Whether it may hold something: a folder that nothing was ever written into has no place for commits.
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

    /// Writes a file that no commit names yet, durably. `name` is its path up to what makes it unique.
    ///
    /// # Errors
    /// The store refuses.
    pub fn put(&self, name: &str, suffix: &str, bytes: &[u8]) -> Result<Blob, ArchiveError> {
        let mut file = self.new_file(name, suffix)?;
        file.write_all(bytes).map_err(io_at(Path::new(name)))?;
        file.finish()
    }

    /// The same, to be written a piece at a time.
    pub(crate) fn new_file(&self, name: &str, suffix: &str) -> Result<NewFile, ArchiveError> {
        self.store.new_file(name, suffix)
    }

    /// Reads a file that a commit names.
    ///
    /// # Errors
    /// It cannot be read, or is not what was committed.
    pub(crate) fn get(&self, blob: &Blob) -> Result<Bytes, ArchiveError> {
        let bytes = self.store.read(&blob.path, blob.bytes)?;
        match hex(&Sha256::digest(&bytes)) == blob.sha256 {
            true => Ok(bytes),
            false => Err(damaged(&blob.path)),
        }
    }

    /// A part of a file that a commit names, as far as the file goes.
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

    /// Opens a file that a commit names. Whether it is what was committed is checked the first time; of a large file
    /// in a bucket, only its length.
    ///
    /// # Errors
    /// It cannot be read, or is not what was committed.
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

    /// Checks that a file of a folder is what was committed, the first time. Of a bucket's, the length is checked with
    /// each part that is read.
    ///
    /// # Errors
    /// It cannot be read, or is not what was committed.
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

    /// Checks that a file of some length is what was committed.
    ///
    /// # Errors
    /// It cannot be read, or is another.
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
        // In a folder, a file that is longer is another one as well.
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
    /// The store refuses; whether the commit was made is then found out by reading the newest.
    pub fn commit(&self, commit: &Commit) -> Result<Outcome, ArchiveError> {
        let text = serde_json::to_vec(commit).unwrap_or_default();
        if !self.store.create_new(&commit_name(commit.commit), &text)? {
            return Ok(Outcome::Lost);
        }
        // Old commits are deleted: a writer that was asleep for very long may have made one of those numbers again.
        if self.commits()?.last() != Some(&commit.commit) {
            return Ok(Outcome::Lost);
        }
        // Once more under the name that people look for.
        self.store.overwrite(LIST, &text)?;
        Ok(Outcome::Committed)
    }

    /// Makes a commit the newest that does not name all files of the one before. Those stay for an hour, counted from
    /// now, for whoever reads them: they must not look as if they had been unused for long.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub(crate) fn replace(
        &self,
        before: &Commit,
        commit: &Commit,
    ) -> Result<Outcome, ArchiveError> {
        let kept: HashSet<&str> = commit.paths().collect();
        let mut replaced = before.paths().filter(|path| !kept.contains(path));
        match &self.store {
            Store::Folder(folder) => folder.touch(replaced)?,
            Store::Bucket(bucket) => {
                let replaced: Vec<&str> = replaced.by_ref().collect();
                let text = serde_json::to_vec(&replaced).unwrap_or_default();
                let number = commit.commit;
                let name = format!("{COMMITS}/{number:08}-{}{REPLACED_SUFFIX}", nonce());
                bucket.overwrite(&name, &text)?;
            }
        }
        self.commit(commit)
    }

    /// Deletes what is no part of the archive and has not been for an hour, and says how many files went. To be
    /// called after a commit, by whoever made it. In a bucket, that is looked for a few times an hour.
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
        let Some(now) = objects.iter().find(|object| object.name == newest) else { return Ok(0) };
        let now = now.modified_ms;
        let mut numbers: Vec<u64> = objects.iter().filter_map(number_of).collect();
        numbers.sort_unstable();
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
        for object in &unused {
            self.store.remove(&object.name)?;
        }
        Ok(unused.len())
    }
}

/// Whether a file may be one that was replaced, or left over.
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
    ArchiveError::Damaged { path: name.to_owned(), reason: "its checksum is another" }
}

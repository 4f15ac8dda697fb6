//! The folder of an archive, and how a commit takes effect in it.
//!
//! Files get names that no other writer uses and are synced before a commit names them. The commit itself is a link
//! that must not exist yet: whoever makes it has won. What no commit names is no part of the archive.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::commit::{Blob, Commit};
use crate::durable::{count, create_folder, modified, nonce, sync_folder, write_synced};
use crate::error::{ArchiveError, io_at};
use crate::event_index::EventIndex;
use crate::new_file::{NewFile, hex};
use crate::parquet_file::GROUP_ROWS;

/// Commits before the newest that are kept, for whoever is about to read one.
const COMMITS_KEPT: usize = 50;
/// For how long a file that is no part of the archive is kept: it may be of a commit to come, or be read.
const UNUSED_KEPT: Duration = Duration::from_secs(3600);
/// Files that are remembered to be what was committed.
const CHECKED_MAX: usize = 100_000;
/// What is read of a file at a time to check it.
const CHECKED_BYTES: usize = 1 << 20;
const COMMITS: &str = "commit";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// The archive of a world.
#[derive(Clone, Debug)]
pub struct Archive {
    root: PathBuf,
    /// Checksums of files that this process has found to be what was committed.
    checked: Arc<Mutex<HashSet<String>>>,
    /// Which files have rows of which events, as far as that was asked.
    index: Arc<Mutex<EventIndex>>,
    /// Rows after which a group of a file that is put together is closed.
    pub(crate) group_rows: usize,
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
        let archive = Self::at(root);
        create_folder(&archive.root.join(COMMITS))?;
        archive.check_exclusive()?;
        Ok(archive)
    }

    /// The archive in a folder that is there.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            checked: Arc::default(),
            index: Arc::default(),
            group_rows: GROUP_ROWS,
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, EventIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same with smaller groups of rows, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_group_rows(self, group_rows: usize) -> Self {
        Self { group_rows, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes sure that a link is made only once.
    fn check_exclusive(&self) -> Result<(), ArchiveError> {
        let dir = self.root.join(COMMITS);
        let probe = dir.join(format!("probe-{}{TEMPORARY_SUFFIX}", nonce()));
        let link = probe.with_extension("link.tmp");
        File::create_new(&probe).map_err(io_at(&probe))?;
        let first = fs::hard_link(&probe, &link);
        let second = fs::hard_link(&probe, &link);
        let removed = fs::remove_file(&link).and(fs::remove_file(&probe));
        first.map_err(io_at(&link))?;
        removed.map_err(io_at(&probe))?;
        match second {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(_) | Ok(()) => Err(ArchiveError::NotExclusive(self.root.clone())),
        }
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
        let name = commit_name(number);
        let path = self.root.join(&name);
        let commit = Commit::parse(&name, &fs::read(&path).map_err(io_at(&path))?)?;
        match commit.commit == number {
            true => Ok(commit),
            false => Err(ArchiveError::Damaged { path: name, reason: "it has another number" }),
        }
    }

    /// The numbers of all commits, oldest first.
    fn commits(&self) -> Result<Vec<u64>, ArchiveError> {
        let dir = self.root.join(COMMITS);
        let mut numbers = Vec::new();
        for item in fs::read_dir(&dir).map_err(io_at(&dir))? {
            let name = item.map_err(io_at(&dir))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".json"));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes a file that no commit names yet, durably. `name` is its path up to what makes it unique.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn put(&self, name: &str, suffix: &str, bytes: &[u8]) -> Result<Blob, ArchiveError> {
        let mut file = self.new_file(name, suffix)?;
        file.write_all(bytes).map_err(io_at(&self.root.join(name)))?;
        file.finish()
    }

    /// The same, to be written a piece at a time.
    pub(crate) fn new_file(&self, name: &str, suffix: &str) -> Result<NewFile, ArchiveError> {
        NewFile::create(&self.root, name, suffix)
    }

    /// Reads a file that a commit names.
    ///
    /// # Errors
    /// It cannot be read, or is not what was committed.
    pub(crate) fn get(&self, name: &str, sha256_wanted: &str) -> Result<Bytes, ArchiveError> {
        let path = self.root.join(name);
        let bytes = fs::read(&path).map_err(io_at(&path))?;
        match hex(&Sha256::digest(&bytes)) == sha256_wanted {
            true => Ok(bytes.into()),
            false => Err(damaged(name)),
        }
    }

    /// Opens a file that a commit names. Whether it is what was committed is checked the first time.
    ///
    /// # Errors
    /// It cannot be read, or is not what was committed.
    pub(crate) fn open(&self, name: &str, sha256: &str) -> Result<File, ArchiveError> {
        let checked = || self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if !checked().contains(sha256) {
            self.check(name, sha256)?;
            let mut checked = checked();
            if checked.len() >= CHECKED_MAX {
                checked.clear();
            }
            checked.insert(sha256.to_owned());
        }
        let path = self.root.join(name);
        File::open(&path).map_err(io_at(&path))
    }

    /// Checks that a file is what was committed, and says how long it is.
    ///
    /// # Errors
    /// It cannot be read, or is another.
    pub(crate) fn check(&self, name: &str, sha256: &str) -> Result<u64, ArchiveError> {
        let path = self.root.join(name);
        let mut file = File::open(&path).map_err(io_at(&path))?;
        let mut piece = vec![0; CHECKED_BYTES];
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        loop {
            let read = file.read(&mut piece).map_err(io_at(&path))?;
            let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else { break };
            digest.update(read);
            bytes += count(read.len());
        }
        match hex(&digest.finalize()) == sha256 {
            true => Ok(bytes),
            false => Err(damaged(name)),
        }
    }

    /// Makes a commit the newest, unless another one with its number exists.
    ///
    /// # Errors
    /// The file system refuses; whether the commit was made is then found out by reading the newest.
    pub fn commit(&self, commit: &Commit) -> Result<Outcome, ArchiveError> {
        let text = serde_json::to_vec(commit).unwrap_or_default();
        let dir = self.root.join(COMMITS);
        let path = self.root.join(commit_name(commit.commit));
        let temporary = dir.join(format!("{:08}-{}{TEMPORARY_SUFFIX}", commit.commit, nonce()));
        write_synced(&temporary, &text)?;
        let linked = fs::hard_link(&temporary, &path);
        fs::remove_file(&temporary).map_err(io_at(&temporary))?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Outcome::Lost),
            linked => linked.map_err(io_at(&path))?,
        }
        sync_folder(&dir)?;
        // Old commits are deleted: a writer that was asleep for very long may have made one of those numbers again.
        if self.commits()?.last() != Some(&commit.commit) {
            return Ok(Outcome::Lost);
        }
        self.write_list(&text)?;
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
        let now = self.now()?;
        for path in before.paths().filter(|path| !kept.contains(path)) {
            let path = self.root.join(path);
            let file = File::options().append(true).open(&path);
            file.and_then(|file| file.set_modified(now)).map_err(io_at(&path))?;
        }
        self.commit(commit)
    }

    /// The time by the clock of the file system, which may be another machine's.
    fn now(&self) -> Result<SystemTime, ArchiveError> {
        let path = self.root.join(COMMITS).join(format!("now-{}{TEMPORARY_SUFFIX}", nonce()));
        write_synced(&path, &[])?;
        let now = modified(&path)?;
        fs::remove_file(&path).map_err(io_at(&path))?;
        Ok(now)
    }

    /// Copies the archive as of its newest commit to a new folder, and says how many files that were.
    ///
    /// # Errors
    /// A file cannot be read or written, or is not what was committed.
    pub fn copy_to(&self, root: &Path) -> Result<usize, ArchiveError> {
        let target = Self::create(root)?;
        let mut copied: HashSet<String> = HashSet::new();
        let commit = loop {
            let commit = self.newest()?;
            match self.copy_files(&commit, &target, &mut copied) {
                Ok(()) => break commit,
                // It took so long that a file was replaced and deleted.
                Err(error) if self.newest_number()? == commit.commit => return Err(error),
                Err(_) => {}
            }
        };
        let named: HashSet<&str> = commit.paths().collect();
        for path in copied.iter().filter(|path| !named.contains(path.as_str())) {
            let path = root.join(path);
            fs::remove_file(&path).map_err(io_at(&path))?;
        }
        if commit.commit > 0 {
            target.commit(&commit)?;
        }
        Ok(named.len())
    }

    fn copy_files(
        &self,
        commit: &Commit,
        target: &Self,
        copied: &mut HashSet<String>,
    ) -> Result<(), ArchiveError> {
        for (name, sha256) in commit.checksums() {
            if copied.contains(name) {
                continue;
            }
            self.check(name, sha256)?;
            let (from, to) = (self.root.join(name), target.root.join(name));
            create_folder(to.parent().unwrap_or(&target.root))?;
            let mut source = File::open(&from).map_err(io_at(&from))?;
            let mut file = File::create(&to).map_err(io_at(&to))?;
            io::copy(&mut source, &mut file).map_err(io_at(&to))?;
            file.sync_all().map_err(io_at(&to))?;
            copied.insert(name.to_owned());
        }
        Ok(())
    }

    /// Writes the newest commit once more under the name that people look for.
    fn write_list(&self, text: &[u8]) -> Result<(), ArchiveError> {
        let path = self.root.join("files.json");
        let temporary = self.root.join(format!("files-{}{TEMPORARY_SUFFIX}", nonce()));
        write_synced(&temporary, text)?;
        fs::rename(&temporary, &path).map_err(io_at(&path))?;
        sync_folder(&self.root)
    }

    /// Deletes what is no part of the archive and has not been for an hour, and says how many files went. To be
    /// called after a commit, by whoever made it.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn clean(&self, commit: &Commit) -> Result<usize, ArchiveError> {
        let newest = self.root.join(commit_name(commit.commit));
        // By the clock of the file system, which may be another machine's.
        let now = modified(&newest)?;
        let numbers = self.commits()?;
        let old = numbers.len().saturating_sub(COMMITS_KEPT);
        for number in numbers.iter().take(old) {
            let path = self.root.join(commit_name(*number));
            fs::remove_file(&path).map_err(io_at(&path))?;
        }
        let named: HashSet<PathBuf> = commit.paths().map(|path| self.root.join(path)).collect();
        let mut unused = Vec::new();
        unused_files(&self.root, &named, now, &mut unused)?;
        for path in &unused {
            fs::remove_file(path).map_err(io_at(path))?;
            // A folder that is empty now. Others are refused.
            path.parent().map(fs::remove_dir);
        }
        Ok(unused.len())
    }
}

/// Files of ours that are old and not named.
fn unused_files(
    dir: &Path,
    named: &HashSet<PathBuf>,
    now: SystemTime,
    unused: &mut Vec<PathBuf>,
) -> Result<(), ArchiveError> {
    for item in fs::read_dir(dir).map_err(io_at(dir))? {
        let item = item.map_err(io_at(dir))?;
        let path = item.path();
        if item.file_type().map_err(io_at(&path))?.is_dir() {
            unused_files(&path, named, now, unused)?;
            continue;
        }
        let ours = path.extension().and_then(|extension| extension.to_str());
        let ours =
            ours.is_some_and(|end| matches!(end, "parquet" | "image" | "zst" | "toml" | "tmp"));
        let old = now.duration_since(modified(&path)?).unwrap_or_default() > UNUSED_KEPT;
        if ours && old && !named.contains(&path) {
            unused.push(path);
        }
    }
    Ok(())
}

fn commit_name(number: u64) -> String {
    format!("{COMMITS}/{number:08}.json")
}

fn damaged(name: &str) -> ArchiveError {
    ArchiveError::Damaged { path: name.to_owned(), reason: "its checksum is another" }
}

//! The folder of an archive, and how a commit takes effect in it.
//!
//! Files get names that no other writer uses and are synced before a commit names them. The commit itself is a link
//! that must not exist yet: whoever makes it has won. What no commit names is no part of the archive.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::commit::{Blob, Commit};
use crate::error::{ArchiveError, io_at};

/// Commits before the newest that are kept, for whoever is about to read one.
const COMMITS_KEPT: usize = 50;
/// For how long a file that is no part of the archive is kept: it may be of a commit to come, or be read.
const UNUSED_KEPT: Duration = Duration::from_secs(3600);
const COMMITS: &str = "commit";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// The archive of a world.
#[derive(Clone, Debug)]
pub struct Archive {
    root: PathBuf,
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
        let archive = Self { root: root.to_owned() };
        create_folder(&archive.root.join(COMMITS))?;
        archive.check_exclusive()?;
        Ok(archive)
    }

    /// The archive in a folder that is there.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
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
        let name = format!("{name}-{}{suffix}", nonce());
        let path = self.root.join(&name);
        let dir = path.parent().unwrap_or(&self.root);
        create_folder(dir)?;
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(source) = written {
            // Gives the space back on a full disk.
            fs::remove_file(&path).ok();
            return Err(ArchiveError::Io { path, source });
        }
        sync_folder(dir)?;
        Ok(Blob { path: name, bytes: count(bytes.len()), sha256: sha256(bytes) })
    }

    /// Reads a file that a commit names.
    ///
    /// # Errors
    /// It cannot be read, or is not what was committed.
    pub fn get(&self, name: &str, sha256_wanted: &str) -> Result<Bytes, ArchiveError> {
        let path = self.root.join(name);
        let bytes = fs::read(&path).map_err(io_at(&path))?;
        if sha256(&bytes) != sha256_wanted {
            let (path, reason) = (name.to_owned(), "its checksum is another");
            return Err(ArchiveError::Damaged { path, reason });
        }
        Ok(bytes.into())
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

    /// Copies the archive as of its newest commit to a new folder, and says how many files that were.
    ///
    /// # Errors
    /// A file cannot be read or written, or is not what was committed.
    pub fn copy_to(&self, root: &Path) -> Result<usize, ArchiveError> {
        let commit = self.newest()?;
        let target = Self::create(root)?;
        for (path, sha256) in commit.checksums() {
            let bytes = self.get(path, sha256)?;
            let path = target.root.join(path);
            create_folder(path.parent().unwrap_or(root))?;
            write_synced(&path, &bytes)?;
        }
        if commit.commit > 0 {
            target.commit(&commit)?;
        }
        Ok(commit.paths().count())
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
        let ours = ours.is_some_and(|end| matches!(end, "parquet" | "image" | "toml" | "tmp"));
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

fn modified(path: &Path) -> Result<SystemTime, ArchiveError> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(io_at(path))
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(source) = written {
        fs::remove_file(path).ok();
        return Err(ArchiveError::Io { path: path.to_owned(), source });
    }
    Ok(())
}

/// Makes a folder with those that it is in, durably.
fn create_folder(dir: &Path) -> Result<(), ArchiveError> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_folder(parent)?;
    }
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_at(dir)(error)),
        _ => parent.map_or(Ok(()), sync_folder),
    }
}

/// Makes created names durable.
fn sync_folder(dir: &Path) -> Result<(), ArchiveError> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(io_at(dir))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number that no other writer uses.
fn nonce() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

pub(crate) fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

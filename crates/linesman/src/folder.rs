//! The data folder: its paths, its permissions and its lock.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use archive::Location;
use domain::World;

use crate::config::{ArchivePlace, Config};

/// How long a server tries to get the lock from another server, which may be about to stop.
const LOCK_TIME_MAX: Duration = Duration::from_millis(500);
/// How long it tries while no server runs: a command line that checks for one holds the lock for an instant.
const LOOK_TIME_MAX: Duration = Duration::from_secs(30);

/// Paths in a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Held by the server that runs on a folder; the system releases it even after kill -9.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Folder {
    /// Opens a folder, or creates it, and removes the permissions of other users.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        make_private(path)
            .with_context(|| format!("cannot create the data folder {}", path.display()))?;
        let folder = Self(path.to_owned());
        folder.close_to_others();
        Ok(folder)
    }

    /// A folder that is only read; it may not exist.
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn accounts(&self) -> PathBuf {
        self.0.join("accounts.db")
    }

    pub(crate) fn log(&self, world: World) -> PathBuf {
        self.0.join(world.key())
    }

    /// Folder of archives, unless another one is configured.
    pub(crate) fn archive(&self) -> PathBuf {
        self.0.join("archive")
    }

    /// The location of archives. `None`: no location is configured that all nodes of the cluster share.
    pub(crate) fn archive_of(&self, config: &Config) -> Option<Location> {
        match (&config.history.store, &config.bucket) {
            (_, Some(bucket)) => Some(Location::Bucket(Box::new(bucket.clone()))),
            (Some(ArchivePlace::Folder(path)), None) => Some(Location::Folder(path.clone())),
            // The keys of the bucket are missing, and the command does not use the archive.
            (Some(ArchivePlace::Bucket { .. }), None) => None,
            (None, None) => config.cluster.is_none().then(|| Location::Folder(self.archive())),
        }
    }

    /// The socket on which a server accepts commands.
    pub(crate) fn control(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    /// Removes the socket of a killed server, and files of older versions.
    pub(crate) fn remove_leftovers(&self) -> io::Result<()> {
        ["control.sock", "control.json", "control.new", "node.json"]
            .iter()
            .try_for_each(|name| remove_if_there(&self.0.join(name)))
    }

    /// Space that is freed when the disk is full.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }

    /// Removes other users' permissions from the folder and its files, which a restored copy may have. A folder that
    /// contains other files is only reported.
    fn close_to_others(&self) {
        let (ours, others): (Vec<PathBuf>, _) =
            entries(&self.0).into_iter().partition(|path| is_ours(path));
        for path in ours {
            close(&path, everything_in(path.clone()));
        }
        let here = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        if others.is_empty() {
            close(&here, std::iter::once(here.clone()));
        } else if is_open(&here) == Some(true) {
            tracing::warn!(event = "folder.open_to_others", folder = %self.0.display(), "other users can read the data folder; it holds other files too, so its permissions stay");
        }
    }

    /// Locks the folder for this server.
    pub(crate) async fn lock(&self) -> anyhow::Result<Lock> {
        let begun = Instant::now();
        loop {
            if let Some(file) = self.try_lock(File::try_lock)? {
                return Ok(Lock { _file: file });
            }
            let (folder, waited) = (self.0.display(), begun.elapsed());
            if self.is_served()? {
                ensure!(
                    waited < LOCK_TIME_MAX,
                    "another linesman server runs on {folder}; stop it, or use another folder with --data"
                );
            }
            ensure!(
                waited < LOOK_TIME_MAX,
                "a linesman command holds the lock of {folder} and does not end; stop it, or use another folder with --data"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether a server runs on the folder.
    pub(crate) fn is_served(&self) -> anyhow::Result<bool> {
        Ok(self.try_lock(File::try_lock_shared)?.is_none())
    }

    /// The locked file; `None` if another process holds the lock.
    fn try_lock(&self, how: fn(&File) -> Result<(), TryLockError>) -> anyhow::Result<Option<File>> {
        let path = self.0.join("lock");
        let failed = || format!("cannot use the lock file {}", path.display());
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.with_context(failed)?;
        match how(&file) {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(failed),
        }
    }
}

/// Creates a file that only its owner may read; an existing file or link of that name is removed.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    remove_if_there(path)?;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The entries of a folder; none if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(folder).into_iter().flatten();
    items.filter_map(|item| Some(item.ok()?.path())).collect()
}

/// Whether the program creates a file of that name in its data folder.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names = ["live", "sandbox", "archive", "lock", "reserve", "lost+found"];
    let begins = ["accounts.db", "archive-begun", "control.", "node.", "freshness."];
    names.contains(&&*name) || begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether other users have permissions; `None` for a link, and if that is unknown.
fn is_open(path: &Path) -> Option<bool> {
    let held = path.symlink_metadata().ok().filter(|held| !held.is_symlink())?;
    Some(held.mode() & 0o077 != 0)
}

/// A path and everything below it; links are not followed.
fn everything_in(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let mut waiting = vec![path];
    std::iter::from_fn(move || {
        let next = waiting.pop()?;
        if next.symlink_metadata().is_ok_and(|held| held.is_dir()) {
            waiting.extend(entries(&next));
        }
        Some(next)
    })
}

/// Removes other users' permissions from paths at or below a given one, with one line in the log: an archive has
/// thousands of files.
fn close(top: &Path, paths: impl Iterator<Item = PathBuf>) {
    let (mut closed, mut failed) = (0_u64, None);
    for path in paths.filter(|path| is_open(path) == Some(true)) {
        let private = |held: fs::Metadata| Permissions::from_mode(held.mode() & 0o700);
        match path.metadata().and_then(|held| fs::set_permissions(&path, private(held))) {
            Ok(()) => closed += 1,
            Err(error) => failed = failed.or(Some((path, error))),
        }
    }
    if closed > 0 {
        tracing::warn!(event = "folder.permissions_removed", path = %top.display(), closed, "other users could read this; permissions removed");
    }
    if let Some((path, error)) = failed {
        tracing::error!(event = "folder.permissions_failed", path = %path.display(), %error, "other users can read this file; permissions not removed");
    }
}

/// Creates a folder that only its owner may read; it contains digests of keys.
fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

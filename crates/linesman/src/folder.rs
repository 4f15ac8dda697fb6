//! The data folder: what is where, and that only one server uses it.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use domain::World;

/// How long a server tries for its lock while another server has it, which may be about to end.
const LOCK_TIME_MAX: Duration = Duration::from_millis(500);
/// The same where nobody serves: a command line that looks whether somebody does holds it for an instant, or for as
/// long as its machine stalls.
const LOOK_TIME_MAX: Duration = Duration::from_secs(30);

/// Paths in a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Held by the server that runs on a folder, for as long as it does; the system lets go of it even after
/// kill -9.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Folder {
    /// Opens a folder, making it if it is not there. What others may look into is closed to them.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        make_private(path)
            .with_context(|| format!("the data folder {} cannot be made", path.display()))?;
        let folder = Self(path.to_owned());
        folder.close_to_others();
        Ok(folder)
    }

    /// A folder that is only looked into; it may not be there.
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

    /// The socket by which a command line reaches the server that runs here.
    pub(crate) fn control(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    /// Removes the socket of a server that was killed, and what older versions left.
    pub(crate) fn remove_leftovers(&self) -> io::Result<()> {
        ["control.sock", "control.json", "control.new", "node.json"]
            .iter()
            .try_for_each(|name| remove_if_there(&self.0.join(name)))
    }

    /// Room that is given up when the disk is full.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }

    /// Takes from others the right to read the folder and what is in it, wherever it came from: a restored copy, or a
    /// folder that was there before. A folder with other things in it is somebody else's as well, and only spoken of.
    fn close_to_others(&self) {
        let (ours, others): (Vec<PathBuf>, _) =
            entries(&self.0).into_iter().partition(|path| is_ours(path));
        for path in &ours {
            close(path);
            let is_folder = path.symlink_metadata().is_ok_and(|held| held.is_dir());
            entries(path).iter().filter(|_| is_folder).for_each(|file| close(file));
        }
        let here = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        if others.is_empty() {
            close(&here);
        } else if is_open(&here) == Some(true) {
            tracing::warn!(folder = %self.0.display(), "other users may look into the data folder; it is left so because it holds other things too");
        }
    }

    /// Takes the folder for this server.
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
                    "another linesman server runs on {folder}; stop it, or give this one a folder of its own with --data"
                );
            }
            ensure!(
                waited < LOOK_TIME_MAX,
                "a linesman command that does not end keeps the lock of {folder}; stop it, or give this server a folder of its own with --data"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether a server has the folder.
    pub(crate) fn is_served(&self) -> anyhow::Result<bool> {
        Ok(self.try_lock(File::try_lock_shared)?.is_none())
    }

    /// The locked file; `None` where the lock is held in a way that stands against `how`.
    fn try_lock(&self, how: fn(&File) -> Result<(), TryLockError>) -> anyhow::Result<Option<File>> {
        let path = self.0.join("lock");
        let failed = || format!("the lock file {} cannot be used", path.display());
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.with_context(failed)?;
        match how(&file) {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(failed),
        }
    }
}

/// Makes a new file that only its owner may read. What has the name already, a link too, is removed and not written to.
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

/// What is in a folder; nothing where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(folder).into_iter().flatten();
    items.filter_map(|item| Some(item.ok()?.path())).collect()
}

/// Whether this program makes a file or folder of that name in its data folder.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names = ["live", "sandbox", "lock", "reserve", "lost+found"];
    let begins = ["accounts.db", "control.", "node.", "freshness."];
    names.contains(&&*name) || begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether others than its owner may use a file; `None` for a link, and for what cannot be looked at.
fn is_open(path: &Path) -> Option<bool> {
    let held = path.symlink_metadata().ok().filter(|held| !held.is_symlink())?;
    Some(held.mode() & 0o077 != 0)
}

fn close(path: &Path) {
    if is_open(path) != Some(true) {
        return;
    }
    let closed = path
        .metadata()
        .and_then(|held| fs::set_permissions(path, Permissions::from_mode(held.mode() & 0o700)));
    match closed {
        Ok(()) => {
            tracing::warn!(path = %path.display(), "other users could read this; they cannot any more");
        }
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "other users can read this, and it cannot be changed");
        }
    }
}

/// Makes a folder that only its owner may look into; it holds digests of keys.
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

//! The data folder: what is where, and that only one server uses it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use domain::World;
use serde::{Deserialize, Serialize};

/// How long a server tries for its lock while another server has it, which may be about to end.
const LOCK_TIME_MAX: Duration = Duration::from_millis(500);
/// The same where nobody serves: a command line that looks whether somebody does holds it for an instant, or for as long as its
/// machine stalls.
const LOOK_TIME_MAX: Duration = Duration::from_secs(30);

/// Paths in a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Held by the server that runs on a folder, for as long as it does; the system lets go of it even after
/// kill -9.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Which file a lock is, on one machine between two of its starts. While somebody has it open, no other file has
/// this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LockName {
    device: u64,
    inode: u64,
}

impl Lock {
    pub(crate) fn name(&self) -> io::Result<LockName> {
        let held = self.file.metadata()?;
        Ok(LockName { device: held.dev(), inode: held.ino() })
    }
}

impl Folder {
    /// Opens a folder, making it if it is not there.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        make_private(path)
            .with_context(|| format!("the data folder {} cannot be made", path.display()))?;
        Ok(Self(path.to_owned()))
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

    pub(crate) fn control(&self) -> PathBuf {
        self.0.join("control.json")
    }

    /// Which node of many runs here.
    pub(crate) fn node(&self) -> PathBuf {
        self.0.join("node.json")
    }

    /// Takes the folder for this server.
    pub(crate) async fn lock(&self) -> anyhow::Result<Lock> {
        let begun = Instant::now();
        loop {
            if let Some(file) = self.try_lock(File::try_lock)? {
                return Ok(Lock { file });
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

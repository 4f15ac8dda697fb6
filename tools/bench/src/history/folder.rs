//! Copies of folders.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// Maximum time of a copy.
const COPY_TIME_MAX: Duration = Duration::from_secs(120);

/// Copies the data of a service.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let begun = Instant::now();
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    ensure!(begun.elapsed() < COPY_TIME_MAX, "the folder is too large to be copied");
    Ok(())
}

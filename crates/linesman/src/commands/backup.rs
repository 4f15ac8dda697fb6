//! `linesman backup`: a copy of the data folder that can take its place, made while a server runs on it.
//!
//! The log may be copied at any moment as long as checkpoints come before segments: an entry that was half written
//! is cut when the copy is first opened, but a checkpoint must not know more than the segments beside it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use domain::World;

use crate::cli::{BackupArgs, output};
use crate::config::Config;
use crate::folder::{Folder, create_private};
use crate::open::open_store;

pub(crate) fn run(config: &Config, data: &Path, args: &BackupArgs) -> anyhow::Result<()> {
    let from = Folder::at(data);
    ensure!(
        config.cluster.is_none() && from.accounts().is_file(),
        "{} is no data folder of linesman; a cluster is backed up with pg_dump and `nats stream backup`",
        data.display()
    );
    let place = args.to.as_path();
    ensure!(
        !place.exists(),
        "{} is there already; name a folder that is not, such as one with the date in it",
        place.display()
    );
    // Under its own name only once it is whole.
    let mut part: OsString = place.into();
    part.push(".part");
    let part = PathBuf::from(part);
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| failed(&part))?;
    }
    let to = Folder::open(&part)?;
    let files = copy(&from, &to)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = open_store(config, &from).await?;
        let copied = store.back_up(&to.accounts()).await;
        store.close().await;
        copied.with_context(|| failed(&to.accounts()))
    })?;
    sync(&to.accounts())?;
    fs::rename(&part, place).with_context(|| failed(place))?;
    sync(place)?;
    Ok(output::print_line(&format!(
        "{} files of the log and accounts.db are in {}",
        files,
        place.display()
    ))?)
}

/// Copies the logs, and says how many files they are.
fn copy(from: &Folder, to: &Folder) -> anyhow::Result<usize> {
    let mut files = 0;
    for world in World::ALL {
        let (source, target) = (from.log(world), to.log(world));
        if !source.is_dir() {
            continue;
        }
        fs::create_dir(&target).with_context(|| failed(&target))?;
        for kind in ["checkpoint-", "segment-"] {
            for name in names(&source, kind)? {
                files += usize::from(copy_file(&source.join(&name), &target.join(&name))?);
            }
        }
        sync(&target)?;
    }
    Ok(files)
}

/// Files of a kind, oldest first.
fn names(folder: &Path, kind: &str) -> anyhow::Result<Vec<String>> {
    let unreadable = || format!("{} cannot be read", folder.display());
    let mut names = Vec::new();
    for item in fs::read_dir(folder).with_context(unreadable)? {
        let name = item.with_context(unreadable)?.file_name().to_string_lossy().into_owned();
        // What is still being written, and what was set aside, is not the log's.
        if name.starts_with(kind) && (name.ends_with(".log") || name.ends_with(".ckp")) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// `false`: it went in the meantime, because a later one has taken its place.
fn copy_file(from: &Path, to: &Path) -> anyhow::Result<bool> {
    let mut source = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.with_context(|| format!("{} cannot be read", from.display()))?,
    };
    // Not with the source's mode.
    let copied = create_private(to).and_then(|mut target| {
        io::copy(&mut source, &mut target)?;
        target.sync_all()
    });
    copied.map(|()| true).with_context(|| failed(to))
}

fn sync(path: &Path) -> anyhow::Result<()> {
    File::open(path).and_then(|file| file.sync_all()).with_context(|| failed(path))
}

fn failed(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

//! `linesman backup`: copies the data folder, also while a server runs on it.
//!
//! The log may be copied at any moment as long as checkpoints are copied before segments: a partial last entry is cut
//! when the copy is opened, but a checkpoint must not be ahead of the segments.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use archive::Archive;
use domain::World;

use super::history;
use crate::cli::{BackupArgs, output};
use crate::config::Config;
use crate::folder::{Folder, create_private};
use crate::open::{self, open_store};

pub(crate) fn run(config: &Config, data: &Path, args: &BackupArgs) -> anyhow::Result<()> {
    let from = Folder::at(data);
    ensure!(
        config.cluster.is_none(),
        "`database.url` is set: back up a cluster with pg_dump and `nats stream backup`"
    );
    open::check_folder(data)?;
    let place = args.to.as_path();
    ensure!(
        !place.exists(),
        "{} exists already; name a new folder, for example with the date",
        place.display()
    );
    let archive = archive_in_folder(config, data)?;
    // Renamed when it is complete.
    let mut part: OsString = place.into();
    part.push(".part");
    let part = PathBuf::from(part);
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| failed(&part))?;
    }
    let to = Folder::open(&part)?;
    // Before the archive: files that the note mentions are copied, or reported as missing.
    let note = engine::ARCHIVE_NOTE_FILE;
    copy_file(&from.path().join(note), &to.path().join(note))?;
    // Before the log, which contains the entries after the archive.
    let (archived, faults) = match &archive {
        Some(archive) => copy_archive(archive, &to)?,
        None => (0, 0),
    };
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
    ensure!(
        faults == 0,
        "the backup in {} is complete except for the archive, which has {faults} faults; an earlier backup may have the \
         files",
        place.display()
    );
    output::print_line(&format!(
        "copied {files} log files, {archived} files of the archive and accounts.db to {}",
        place.display()
    ))
}

/// The archive, if it is in a folder: the data folder or another one. `None`: it is in a bucket, or was never begun.
fn archive_in_folder(config: &Config, data: &Path) -> anyhow::Result<Option<Archive>> {
    let place = history::place_of(config, data)?;
    history::check_noted(data, &place).context("nothing was copied")?;
    let archive = Archive::of(&place);
    Ok((place.folder().is_some() && archive.is_begun()).then_some(archive))
}

/// Copies an archive to its place in a data folder, and reports its faults, which do not keep the rest from being
/// copied. Returns the numbers of files and of faults.
fn copy_archive(archive: &Archive, to: &Folder) -> anyhow::Result<(usize, usize)> {
    let target = to.archive().join(World::Live.key());
    let copied = archive.copy_to(&target).with_context(|| failed(&target))?;
    let (files, faults) = (copied.files, copied.faults.len());
    for fault in copied.faults {
        output::print_error(&format!("{:#}", anyhow::Error::from(fault)));
    }
    Ok((files, faults))
}

/// Copies the logs; returns the number of files.
fn copy(from: &Folder, to: &Folder) -> anyhow::Result<usize> {
    let mut files = 0;
    for world in World::ALL {
        let (source, target) = (from.log(world), to.log(world));
        if !source.is_dir() {
            continue;
        }
        fs::create_dir(&target).with_context(|| failed(&target))?;
        // Before the log, which has the gap as well once it is written again.
        let note = engine::GAP_NOTE_FILE;
        copy_file(&source.join(note), &target.join(note))?;
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
    let unreadable = || format!("cannot read {}", folder.display());
    let mut names = Vec::new();
    for item in fs::read_dir(folder).with_context(unreadable)? {
        let name = item.with_context(unreadable)?.file_name().to_string_lossy().into_owned();
        // Temporary files, and files that were set aside, are not part of the log.
        if name.starts_with(kind) && (name.ends_with(".log") || name.ends_with(".ckp")) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// `false`: it is not there, or was deleted meanwhile because a newer one replaced it.
fn copy_file(from: &Path, to: &Path) -> anyhow::Result<bool> {
    let mut source = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.with_context(|| format!("cannot read {}", from.display()))?,
    };
    // Without the permissions of the source.
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
    format!("cannot write {}", path.display())
}

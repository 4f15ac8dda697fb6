//! The location of an archive that was begun, recorded in the data folder. If its folder is missing later, such as a
//! share that is not mounted, it is not mistaken for a new archive (H6).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use archive::{Archive, ArchiveError, Location};

use crate::options::WorldOptions;

/// Name of the file in the data folder.
pub const ARCHIVE_NOTE_FILE: &str = "archive-begun";

/// What a data folder records of its archive, compared with a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveNote {
    /// No archive was begun.
    Nothing,
    /// It was begun in this place.
    Here,
    /// It was begun in another place, which is named.
    Elsewhere(String),
}

impl ArchiveNote {
    /// Reads the record in a data folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(folder: &Path, place: &Location) -> Result<Self, ArchiveError> {
        let file = folder.join(ARCHIVE_NOTE_FILE);
        let held = match fs::read_to_string(&file) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(source) => return Err(ArchiveError::Io { path: file, source }),
        };
        let held = held.trim_end_matches('\n');
        // Relative if it is in the data folder.
        let path = folder.join(held);
        let is_here = held == place.to_string()
            || place.folder().is_some_and(|folder| is_same(&path, folder));
        Ok(match is_here {
            true => Self::Here,
            false if held.contains("://") => Self::Elsewhere(held.to_owned()),
            false => Self::Elsewhere(path.display().to_string()),
        })
    }
}

/// The record of a world's archive.
#[derive(Debug)]
pub(crate) struct Begun {
    place: Option<Location>,
    /// `None`: there is no data folder to record it in.
    file: Option<PathBuf>,
    /// True if this process has recorded it.
    noted: AtomicBool,
}

impl Begun {
    pub(crate) fn of(options: &WorldOptions) -> Self {
        let file = options.notes.as_ref().map(|folder| folder.join(ARCHIVE_NOTE_FILE));
        Self { place: options.history.archive(), file, noted: AtomicBool::new(false) }
    }

    /// Records that there is an archive.
    pub(crate) fn note(&self) {
        let (Some(place), Some(file)) = (&self.place, &self.file) else { return };
        if self.noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let text = format!("{}\n", within(file, place).unwrap_or_else(|| place.to_string()));
        if fs::read_to_string(file).is_ok_and(|held| held == text) {
            return;
        }
        if let Err(error) = write(file, &text) {
            self.noted.store(false, Ordering::Relaxed);
            tracing::warn!(event = "archive.note_failed", %error, "the existence of the archive could not be noted in the data folder");
        }
    }

    /// Opens the archive for writing. Creates what is missing, unless there was an archive before.
    ///
    /// # Errors
    /// The place cannot be used now, or never.
    pub(crate) fn open(&self, place: &Location) -> Result<Archive, ArchiveError> {
        if let (Some(path), Some(file)) = (place.folder(), &self.file)
            && !Archive::of(place).is_begun()
            && self.is_noted(place)?
        {
            let (path, noted) = (path.to_owned(), file.clone());
            return Err(ArchiveError::Missing { path, noted });
        }
        Archive::create_in(place)
    }

    /// True if there was an archive and its folder is missing now or cannot be checked.
    pub(crate) fn is_missing(&self) -> bool {
        let place = self.place.as_ref().filter(|place| place.folder().is_some());
        place.is_some_and(|place| {
            !Archive::of(place).is_begun() && self.is_noted(place).unwrap_or(true)
        })
    }

    fn is_noted(&self, place: &Location) -> Result<bool, ArchiveError> {
        let Some(folder) = self.file.as_deref().and_then(Path::parent) else { return Ok(false) };
        Ok(ArchiveNote::read(folder, place)? == ArchiveNote::Here)
    }
}

/// True if two paths lead to the same folder, whether it exists or not.
fn is_same(one: &Path, other: &Path) -> bool {
    let absolute = || Some(std::path::absolute(one).ok()? == std::path::absolute(other).ok()?);
    let resolved = || Some(fs::canonicalize(one).ok()? == fs::canonicalize(other).ok()?);
    absolute() == Some(true) || resolved() == Some(true)
}

/// The path of a place relative to the folder of the note. It stays the same if that folder is copied or moved.
fn within(file: &Path, place: &Location) -> Option<String> {
    let path = place.folder()?.strip_prefix(file.parent()?).ok()?;
    Some(path.display().to_string())
}

/// Writes a file so that after a crash of the machine it has either the old or the whole new content.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let temporary = file.with_extension("tmp");
    let mut new = File::create(&temporary)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&temporary, file)?;
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Opens the archive of a world for writing, if it has one.
///
/// # Errors
/// The place cannot be used now, or never because it cannot exclude a second writer.
pub fn open_archive(options: &WorldOptions) -> Result<Option<Archive>, ArchiveError> {
    let begun = Begun::of(options);
    options.history.archive().map(|place| begun.open(&place)).transpose()
}

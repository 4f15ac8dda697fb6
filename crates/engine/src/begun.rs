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
        let Some(file) = &self.file else { return Ok(false) };
        match fs::read_to_string(file) {
            Ok(held) => {
                let held = held.trim_end_matches('\n');
                Ok(held == place.to_string() || within(file, place).is_some_and(|own| held == own))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ArchiveError::Io { path: file.clone(), source }),
        }
    }
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

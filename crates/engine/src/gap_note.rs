//! The start of a gap in the log, noted next to a log in a folder. The log itself cannot say so while it cannot be
//! written, and a process may end before it can (H7).
//!
//! The file gets its size when the writer starts and is only overwritten later, which a full disk allows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use change_log::LogLocation;
use domain::Timestamp;

use crate::options::WorldOptions;

/// The name of the file.
pub const GAP_NOTE_FILE: &str = "unlogged";
/// First word of the file.
const VERSION: &str = "1";
/// Size of the file in bytes: more than the longest line, and no more than a disk writes atomically.
const SIZE: usize = 64;

/// Publications that the log does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogGap {
    /// Time of the first of them.
    pub(crate) from: Timestamp,
    /// The last entry of the log before it.
    pub(crate) seq: u64,
}

/// The note of a gap in a world's log.
#[derive(Debug, Default)]
pub(crate) struct GapNote {
    /// `None`: there is no folder to note it in.
    file: Option<(PathBuf, File)>,
    held: Option<LogGap>,
}

impl GapNote {
    /// Opens the note of a live world whose log is a folder, or creates it.
    pub(crate) fn open(options: &WorldOptions) -> Self {
        let LogLocation::Folder { dir, .. } = &options.log else { return Self::default() };
        if options.simulation.is_some() {
            return Self::default();
        }
        let path = dir.join(GAP_NOTE_FILE);
        match open(&path) {
            Ok((file, held)) => Self { file: Some((path, file)), held },
            Err(error) => {
                tracing::warn!(event = "log.gap_note_failed", path = %path.display(), %error, "gaps of the log cannot be noted; if the process ends during a gap, history does not list it");
                Self::default()
            }
        }
    }

    pub(crate) fn gap(&self) -> Option<LogGap> {
        self.held
    }

    /// Notes a gap, or that there is none (any more).
    pub(crate) fn set(&mut self, gap: Option<LogGap>) {
        let Some((path, file)) = self.file.as_ref().filter(|_| self.held != gap) else { return };
        match write(file, gap) {
            Ok(()) => self.held = gap,
            Err(error) => {
                tracing::warn!(event = "log.gap_note_failed", path = %path.display(), %error, "the start of a gap of the log could not be noted");
            }
        }
    }
}

fn open(path: &Path) -> io::Result<(File, Option<LogGap>)> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let held = match parse(&text) {
        Some(held) => held,
        // A process ended while it created the file.
        None if bytes.len() < SIZE => None,
        None => {
            tracing::warn!(event = "log.gap_note_unknown", path = %path.display(), "the note of a gap of the log has an unknown format and is ignored");
            None
        }
    };
    if bytes.len() != SIZE || parse(&text).is_none() {
        write(&file, held)?;
        file.sync_all()?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
    }
    Ok((file, held))
}

fn write(file: &File, gap: Option<LogGap>) -> io::Result<()> {
    let text = match gap {
        Some(LogGap { from, seq }) => format!("{VERSION} {} {seq}", from.as_millis()),
        None => format!("{VERSION} none"),
    };
    let line = format!("{text:<width$}\n", width = SIZE - 1);
    file.write_all_at(line.as_bytes(), 0)?;
    file.sync_data()
}

/// `None`: this program did not write it.
fn parse(text: &str) -> Option<Option<LogGap>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match *words.as_slice() {
        [VERSION, "none"] => Some(None),
        [VERSION, from, seq] => {
            let from = Timestamp::from_millis(from.parse().ok()?);
            Some(Some(LogGap { from, seq: seq.parse().ok()? }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::test_options;

    #[test]
    fn a_note_is_overwritten_in_place_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let options = test_options(LogLocation::Folder {
            dir: dir.path().to_owned(),
            options: change_log::Options::default(),
        });
        let path = dir.path().join(GAP_NOTE_FILE);
        let gap = Some(LogGap { from: Timestamp::from_millis(i64::MAX), seq: u64::MAX });
        for (held, next) in [(None, gap), (gap, gap), (gap, None), (None, None)] {
            let mut note = GapNote::open(&options);
            assert_eq!(note.gap(), held);
            note.set(next);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), u64::try_from(SIZE).unwrap());
        }
        // Version 1, which must stay readable.
        std::fs::write(&path, format!("{:<63}\n", "1 1794000001000 42")).unwrap();
        let held = LogGap { from: Timestamp::from_millis(1_794_000_001_000), seq: 42 };
        assert_eq!(GapNote::open(&options).gap(), Some(held));
        // Of a newer program, and of a process that ended while it created the file.
        for text in [format!("{:<63}\n", "2 soon"), String::new(), "1 no".to_owned()] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(GapNote::open(&options).gap(), None);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), u64::try_from(SIZE).unwrap());
        }
    }
}

//! The files of a group that are still to be exported. They can be merged and deleted meanwhile.

use std::collections::{HashSet, VecDeque};
use std::ops::RangeInclusive;

use crate::commit::{Commit, TableFile};
use crate::durable::count;
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::verify::hash;

/// Ranges of entries.
type Ranges = Vec<RangeInclusive<u64>>;

/// The files of a table, sport and day of a lineage that are still to be exported.
///
/// A missing file was merged with others, of which some were exported. Its rows are in its range of entries. If ranges
/// of files overlap, which is rare, the keys of exported rows decide.
#[derive(Debug)]
pub(super) struct Rest {
    /// In the order of their entries.
    files: VecDeque<TableFile>,
    /// Ranges of later files that overlap the current one.
    shared: Ranges,
    /// Keys of its rows in these ranges, and those of the files before.
    current: Vec<u64>,
    exported: HashSet<u64>,
    /// The ranges of the files that were still to be exported each time that one was missing.
    left: Vec<Ranges>,
    /// The number of their rows that are not found yet, and the reason why the first file could not be read.
    missing: Option<(u64, ArchiveError)>,
}

impl Rest {
    pub(super) fn new(files: &[&TableFile]) -> Self {
        Self {
            files: files.iter().copied().cloned().collect(),
            shared: Vec::new(),
            current: Vec::new(),
            exported: HashSet::new(),
            left: Vec::new(),
            missing: None,
        }
    }

    /// The next file, which is then the current one.
    pub(super) fn next_file(&mut self) -> Option<TableFile> {
        self.exported.extend(self.current.drain(..));
        let file = self.files.pop_front()?;
        let shared = self.files.iter().filter(|later| overlap(later, &file));
        self.shared = shared.map(range_of).collect();
        Some(file)
    }

    /// The rows of the current file that are still to be exported. `frame` has a part of it.
    pub(super) fn rows_of(&mut self, frame: &Frame) -> Vec<usize> {
        if self.shared.is_empty() && self.left.is_empty() {
            return (0..frame.rows()).collect();
        }
        let names = frame.table.key_columns();
        let columns: Vec<Option<usize>> = names.iter().map(|name| frame.column(name)).collect();
        let seq = frame.column("seq");
        let mut rows = Vec::new();
        for row in 0..frame.rows() {
            let seq = frame.number(seq, row).map_or(0, i64::cast_unsigned);
            let is_in = |ranges: &Ranges| ranges.iter().any(|range| range.contains(&seq));
            let key = hash(frame, &columns, row);
            if is_in(&self.shared) {
                self.current.push(key);
            }
            if self.left.iter().all(is_in) && !self.exported.contains(&key) {
                rows.push(row);
            }
        }
        if let Some((missing, _)) = &mut self.missing {
            *missing = missing.saturating_sub(count(rows.len()));
        }
        rows
    }

    /// Continues with the files of the newest commit that have the rows of a missing file and of those after it.
    ///
    /// # Errors
    /// The commit names the file nevertheless: it is damaged, for the given reason.
    pub(super) fn replace(
        &mut self,
        gone: &TableFile,
        newest: Commit,
        error: ArchiveError,
    ) -> Result<(), ArchiveError> {
        if newest.files.iter().any(|file| file.path == gone.path) {
            return Err(error);
        }
        self.files.push_front(gone.clone());
        let left = &self.files;
        let rows: u64 = left.iter().map(|file| file.rows).sum();
        let has_some = |file: &TableFile| {
            file.group() == gone.group() && left.iter().any(|left| overlap(left, file))
        };
        let mut files: Vec<TableFile> = newest.files.into_iter().filter(has_some).collect();
        files.sort_unstable_by_key(|file| file.first_seq);
        self.left.push(left.iter().map(range_of).collect());
        self.missing.get_or_insert((rows, error));
        self.files = files.into();
        Ok(())
    }

    /// Ends the export of the group.
    ///
    /// # Errors
    /// Some rows were not found, because they were deleted past retention.
    pub(super) fn finish(self) -> Result<(), ArchiveError> {
        match self.missing {
            Some((1.., error)) => Err(error),
            Some((0, _)) | None => Ok(()),
        }
    }
}

fn range_of(file: &TableFile) -> RangeInclusive<u64> {
    file.first_seq..=file.last_seq
}

fn overlap(one: &TableFile, other: &TableFile) -> bool {
    one.first_seq <= other.last_seq && other.first_seq <= one.last_seq
}

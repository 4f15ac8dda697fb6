//! Merging of the files of a day, and removal of what is past retention.
//!
//! New files are written next to the old ones; a commit then names them instead. Readers of an older commit find the
//! old files for another hour. If the process is killed, the archive is in the state before or after.

use std::collections::BTreeMap;

use domain::Timestamp;

use crate::archive::{Archive, Outcome};
use crate::commit::{Commit, TableFile};
use crate::date::date_of;
use crate::durable::count;
use crate::entries::unreadable;
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::parquet_file::TableWriter;

/// Maximum number of small files of a day that is not over; more are merged, so that short parts do not accumulate.
const SMALL_FILES_MAX: usize = 64;
/// Rows after which a commit is made and the rest is left to the next one.
const COMMIT_ROWS: u64 = 1_000_000;

/// A selection of files to merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compact {
    /// Those of days that are over, and of other days if they have many small files.
    #[default]
    Due,
    /// All of days before this one, such as `2026-11-14`.
    Before(String),
    All,
}

/// The result of merging or removing files.
#[derive(Debug)]
pub struct Compacted {
    pub commit: Commit,
    pub outcome: Outcome,
    /// Number of files that were merged.
    pub merged: usize,
}

impl Archive {
    /// Merges files and removes those that only publications before `oldest` need; a bounded number of rows at a time.
    /// `None`: there is nothing to do.
    ///
    /// # Errors
    /// The archive cannot be written; it is in the state before or after. Or a file is damaged or access to it is
    /// refused, and there is nothing else to do.
    pub fn compact(
        &self,
        commit: &Commit,
        which: &Compact,
        oldest: Timestamp,
    ) -> Result<Option<Compacted>, ArchiveError> {
        let kept = commit.without_before(oldest);
        let retired = kept.is_some();
        let mut next = kept.unwrap_or_else(|| commit.clone());
        let (mut merged, mut rows, mut fault) = (0, 0, None);
        for files in due(&next, which) {
            if rows >= COMMIT_ROWS {
                break;
            }
            match self.merge(&files) {
                Ok(None) => continue,
                Ok(Some(file)) => {
                    rows += file.rows;
                    merged += files.len();
                    next.files.retain(|held| !files.contains(held));
                    next.files.push(file);
                }
                // It stays as it is, and the other files do not wait for it.
                Err(error) if error.is_damage() || error.is_refused() => {
                    fault.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        if merged == 0 && !retired {
            return fault.map_or(Ok(None), Err);
        }
        next.commit = commit.commit + 1;
        let outcome = self.replace(commit, &next)?;
        Ok(Some(Compacted { commit: next, outcome, merged }))
    }

    /// Removes files that only publications before `oldest` need, without merging others: that needs next to no space.
    /// `None`: there are none.
    ///
    /// # Errors
    /// The archive cannot be written; it is in the state before or after.
    pub fn retire(
        &self,
        commit: &Commit,
        oldest: Timestamp,
    ) -> Result<Option<(Commit, Outcome)>, ArchiveError> {
        let Some(mut next) = commit.without_before(oldest) else { return Ok(None) };
        next.commit = commit.commit + 1;
        let outcome = self.replace(commit, &next)?;
        Ok(Some((next, outcome)))
    }

    /// One file with all rows of several files of one table. `None`: a newer program has written one of them.
    fn merge(&self, files: &[TableFile]) -> Result<Option<TableFile>, ArchiveError> {
        let Some(first) = files.first() else { return Ok(None) };
        let (table, lineage) = (first.table, first.lineage);
        let unwritable = |source| ArchiveError::Unwritable { table: table.key(), source };
        let name = format!("{}/{lineage:02}-{:012}", first.folder(), first.first_seq);
        let new = self.new_file(&name, ".parquet")?;
        let mut writer = TableWriter::new(table, new).map_err(unwritable)?;
        let group_rows = self.group_rows.unwrap_or(table.group_rows());
        let mut frame = Frame::new(table);
        let mut rows = 0;
        let mut write = |frame: &mut Frame| {
            let mut order: Vec<usize> = (0..frame.rows()).collect();
            frame.sort(&mut order);
            rows += count(order.len());
            let written = writer.write(frame, &order).map_err(unwritable);
            *frame = Frame::new(table);
            written
        };
        for file in files {
            let reader = self.read_table(file)?;
            if !reader.is_known() {
                return Ok(None);
            }
            for group in 0..reader.groups() {
                reader.read(group, &mut frame).map_err(unreadable(file))?;
                if frame.rows() >= group_rows {
                    write(&mut frame)?;
                }
            }
        }
        if frame.rows() > 0 {
            write(&mut frame)?;
        }
        if rows != files.iter().map(|file| file.rows).sum::<u64>() {
            let (path, reason) = (first.path.clone(), "its rows differ from its commit");
            return Err(ArchiveError::Damaged { path, reason });
        }
        let made = writer.finish().map_err(unwritable)?.finish()?;
        Ok(Some(TableFile {
            table,
            path: made.path,
            rows,
            bytes: made.bytes,
            sha256: made.sha256,
            first_seq: first.first_seq,
            last_seq: files.iter().map(|file| file.last_seq).max().unwrap_or_default(),
            lineage,
        }))
    }
}

/// Groups of files to merge, in the order of their entries.
fn due(commit: &Commit, which: &Compact) -> Vec<Vec<TableFile>> {
    let today = commit.lineages.last().map(|last| date_of(Timestamp::from_millis(last.last_ms)));
    let today = today.unwrap_or_default();
    let mut folders: BTreeMap<(&str, usize), Vec<&TableFile>> = BTreeMap::new();
    for file in &commit.files {
        folders.entry(file.group()).or_default().push(file);
    }
    let mut due = Vec::new();
    for mut files in folders.into_values() {
        let date = files.first().map_or("", |file| file.date());
        let whole = match which {
            Compact::Due => date < &*today,
            Compact::Before(day) => date < &**day,
            Compact::All => true,
        };
        if !whole {
            files.retain(|file| file.rows < count(file.table.group_rows()));
        }
        files.sort_unstable_by_key(|file| file.first_seq);
        if files.len() >= if whole { 2 } else { SMALL_FILES_MAX } {
            due.push(files.into_iter().cloned().collect());
        }
    }
    due
}

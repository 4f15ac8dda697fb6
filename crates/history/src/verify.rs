//! Verification of an archive.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use market::Change;

use crate::archive::Archive;
use crate::commit::{Commit, TableFile};
use crate::durable::count;
use crate::entries::unreadable;
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::table::Table;

/// The result of a verification.
#[derive(Debug, Default)]
pub struct Verified {
    pub files: u64,
    pub bytes: u64,
    pub entries: u64,
    /// The faults found.
    pub faults: Vec<Fault>,
}

/// A fault of an archive.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    File(#[from] ArchiveError),
    #[error("lineage {lineage}: entries {first} to {last} are missing")]
    Missing { lineage: usize, first: u64, last: u64 },
    #[error("lineage {lineage}: `scores` has no row of entry {seq}, which is a score")]
    MissingScore { lineage: usize, seq: u64 },
    #[error("`{path}` is named twice")]
    NamedTwice { path: String },
    #[error("`{path}` has {rows} rows of entries {first} to {last}, which differs from the commit")]
    Rows { path: String, rows: u64, first: u64, last: u64 },
    #[error("`{path}` repeats a row of entry {seq} from this or another file")]
    RowTwice { path: String, seq: u64 },
}

impl Archive {
    /// Reads everything that a commit names, and checks that every entry and every row is there once.
    pub fn verify(&self, commit: &Commit) -> Verified {
        let mut verified = Verified::default();
        let mut named = HashSet::new();
        for (path, sha256, length) in commit.checksums() {
            verified.files += 1;
            if !named.insert(path) {
                verified.faults.push(Fault::NamedTwice { path: path.to_owned() });
            }
            match self.check(path, sha256, length) {
                Ok(()) => verified.bytes += length,
                Err(error) => verified.faults.push(error.into()),
            }
        }
        for lineage in 0..commit.lineages.len() {
            let mut scores = self.verify_entries(commit, lineage, &mut verified);
            for table in Table::ALL {
                self.verify_rows(commit, (lineage, table), &mut scores, &mut verified.faults);
            }
            let missing = scores.into_iter().min().map(|seq| Fault::MissingScore { lineage, seq });
            verified.faults.extend(missing);
        }
        verified
    }

    /// Returns the entries that are scores.
    fn verify_entries(
        &self,
        commit: &Commit,
        lineage: usize,
        verified: &mut Verified,
    ) -> HashSet<u64> {
        let mut scores = HashSet::new();
        let Some(bounds) = commit.lineages.get(lineage) else { return scores };
        let mut due = bounds.first_seq;
        let pass = |due: u64, next: u64, faults: &mut Vec<Fault>| {
            let (first, last) = (due, next.saturating_sub(1));
            if first <= last && !bounds.missing.contains(&(first, last)) {
                faults.push(Fault::Missing { lineage, first, last });
            }
        };
        for entry in self.entries(commit, lineage, bounds.first_seq..=bounds.last_seq) {
            match entry {
                Ok(entry) => {
                    verified.entries += 1;
                    pass(due, entry.seq, &mut verified.faults);
                    due = entry.seq + 1;
                    if matches!(entry.change, Change::Scored { .. }) {
                        scores.insert(entry.seq);
                    }
                }
                Err(error) => {
                    verified.faults.push(error.into());
                    return scores;
                }
            }
        }
        pass(due, bounds.last_seq + 1, &mut verified.faults);
        scores
    }

    /// Checks that files of a table have the rows according to the commit, and each once. Removes the entries found
    /// from `scores`.
    fn verify_rows(
        &self,
        commit: &Commit,
        (lineage, table): (usize, Table),
        scores: &mut HashSet<u64>,
        faults: &mut Vec<Fault>,
    ) {
        let of_table = |file: &&TableFile| (file.table, file.lineage) == (table, lineage);
        let mut files: Vec<&TableFile> = commit.files.iter().filter(of_table).collect();
        // The files of a sport in the order of their entries.
        let sport = |file: &TableFile| {
            file.folder().split_once("/date=").map(|(sport, _)| sport.to_owned())
        };
        files.sort_by_cached_key(|file| (sport(file), file.first_seq));
        // The rows of files whose entries overlap: of a part or a day. Keys begin with the entry.
        let (mut keys, mut last) = (HashSet::new(), (None, 0));
        for file in files {
            if (sport(file), file.first_seq) > last {
                keys.clear();
            }
            last = last.max((sport(file), file.last_seq));
            match self.verify_file(file, &mut keys) {
                Ok((seqs, fault)) => {
                    faults.extend(fault);
                    if table == Table::Scores {
                        for seq in seqs {
                            scores.remove(&seq);
                        }
                    }
                }
                // Damaged files were reported already.
                Err(error) if faults.is_empty() => faults.push(error.into()),
                Err(_) => {}
            }
        }
    }

    /// The entries of a file's rows, and its first fault.
    fn verify_file(
        &self,
        file: &TableFile,
        keys: &mut HashSet<u64>,
    ) -> Result<(HashSet<u64>, Option<Fault>), ArchiveError> {
        let reader = self.read_table(file)?;
        let key = file.table.key_columns();
        let (mut seqs, mut twice) = (HashSet::new(), None);
        let (mut rows, mut first, mut last) = (0, u64::MAX, 0);
        for group in 0..reader.groups() {
            let mut frame = Frame::new(file.table);
            reader.read_columns(group, &mut frame, key).map_err(unreadable(file))?;
            let columns: Vec<Option<usize>> = key.iter().map(|name| frame.column(name)).collect();
            let seq = frame.column("seq");
            rows += count(frame.rows());
            for row in 0..frame.rows() {
                let seq = frame.number(seq, row).map_or(0, i64::cast_unsigned);
                (first, last) = (first.min(seq), last.max(seq));
                if file.table == Table::Scores {
                    seqs.insert(seq);
                }
                // Entries that are read back are checked as such.
                if !file.table.holds_entries() && !keys.insert(hash(&frame, &columns, row)) {
                    twice.get_or_insert(seq);
                }
            }
        }
        let path = || file.path.clone();
        let fault = if (rows, first, last) != (file.rows, file.first_seq, file.last_seq) {
            Some(Fault::Rows { path: path(), rows, first, last })
        } else {
            twice.map(|seq| Fault::RowTwice { path: path(), seq })
        };
        Ok((seqs, fault))
    }
}

/// A hash of the values of some columns in a row.
pub(crate) fn hash(frame: &Frame, columns: &[Option<usize>], row: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    for column in columns {
        (frame.number(*column, row), frame.bytes(*column, row)).hash(&mut hasher);
    }
    hasher.finish()
}

//! Whether an archive is whole.

use crate::archive::Archive;
use crate::commit::Commit;
use crate::error::ArchiveError;

/// What an archive was found to be.
#[derive(Debug, Default)]
pub struct Verified {
    pub files: u64,
    pub bytes: u64,
    pub entries: u64,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

/// Something that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    File(#[from] ArchiveError),
    #[error("lineage {lineage}: entries {first} to {last} are missing")]
    Missing { lineage: usize, first: u64, last: u64 },
}

impl Archive {
    /// Reads all that a commit names, and checks that every entry is there once.
    pub fn verify(&self, commit: &Commit) -> Verified {
        let mut verified = Verified::default();
        for (path, sha256, length) in commit.checksums() {
            verified.files += 1;
            match self.check(path, sha256, length) {
                Ok(()) => verified.bytes += length,
                Err(error) => verified.faults.push(error.into()),
            }
        }
        for lineage in 0..commit.lineages.len() {
            self.verify_entries(commit, lineage, &mut verified);
        }
        verified
    }

    fn verify_entries(&self, commit: &Commit, lineage: usize, verified: &mut Verified) {
        let Some(bounds) = commit.lineages.get(lineage) else { return };
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
                }
                Err(error) => return verified.faults.push(error.into()),
            }
        }
        pass(due, bounds.last_seq + 1, &mut verified.faults);
    }
}

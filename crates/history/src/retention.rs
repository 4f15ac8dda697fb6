//! Retention: the part of the archive that is no longer needed.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::Timestamp;

use crate::Table;
use crate::commit::{Commit, Lineage, TableFile};
use crate::date::{date_of, end_of_day};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Number of days with publications after which the time before them counts as a stop of the service.
const SETTLED_DAYS: usize = 7;

impl Commit {
    /// The time from which retention counts: the last publication.
    ///
    /// A clock that is far ahead leaves days without publications before that, as does a stop of the service. Then it
    /// is the last of the earlier days, until publications of a week have followed: a clock that was ahead for less
    /// deletes nothing.
    pub fn settled_end(&self) -> Option<Timestamp> {
        let last = Timestamp::from_millis(self.lineages.last()?.last_ms);
        let epochs = self.files.iter().filter(|file| file.table == Table::Epochs);
        let days: BTreeSet<&str> = epochs.map(TableFile::date).collect();
        let newest: Vec<&str> = days.into_iter().rev().take(SETTLED_DAYS + 1).collect();
        let settled = newest.windows(2).rev().find_map(|days| {
            let [later, earlier] = days else { return None };
            let end = end_of_day(earlier)?;
            (*date_of(end) < **later).then_some(end)
        });
        Some(settled.map_or(last, |settled| settled.min(last)))
    }

    /// The commit without the files that only publications before the day of `oldest` need; `None` if there are none.
    /// The rest begins with a whole book, so that all later publications can still be rebuilt.
    pub(crate) fn without_before(&self, oldest: Timestamp) -> Option<Self> {
        let day = date_of(oldest);
        let mut next = self.clone();
        for lineage in 0..self.lineages.len() {
            let Some(base) = self.base_of(lineage, &day) else { continue };
            next.take_out(lineage, base, oldest);
        }
        let less = next.files.len() < self.files.len() || next.images.len() < self.images.len();
        less.then_some(next)
    }

    /// The last entry of a lineage that no publication of that day or later needs.
    fn base_of(&self, lineage: usize, day: &str) -> Option<Base> {
        let epochs = self.files.iter().filter(|file| file.table == Table::Epochs);
        let epochs = epochs.filter(|file| file.lineage == lineage);
        // Publications made with a clock that was ahead are needed no longer than those around them.
        let last = self.settled_end().map(|end| date_of(end.plus(DAY))).unwrap_or_default();
        let (ahead, usual): (Vec<_>, Vec<_>) =
            epochs.filter(|file| file.date() >= day).partition(|file| file.date() > &*last);
        let needed = if usual.is_empty() { ahead } else { usual };
        let needed = needed.iter().map(|file| file.first_seq).min();
        match needed {
            Some(first) => self
                .image_before_next(lineage, first.checked_sub(1)?)
                .map(|image| Base { seq: image.seq, begins_with_book: true }),
            // The last lineage continues.
            None if lineage + 1 == self.lineages.len() => None,
            None => {
                let seq = self.lineages.get(lineage)?.last_seq;
                Some(Base { seq, begins_with_book: false })
            }
        }
    }

    fn take_out(&mut self, lineage: usize, base: Base, oldest: Timestamp) {
        let goes = |own: usize, last_seq: u64| own == lineage && last_seq <= base.seq;
        let gone = self.files.iter().filter(|file| goes(file.lineage, file.last_seq));
        let publications: u64 =
            gone.filter(|file| file.table == Table::Epochs).map(|file| file.rows).sum();
        self.files.retain(|file| !goes(file.lineage, file.last_seq));
        self.images.retain(|image| {
            !goes(image.lineage, image.seq) || (base.begins_with_book && image.seq == base.seq)
        });
        let Some(held) = self.lineages.get_mut(lineage) else { return };
        let Lineage { first_seq, missing, gaps, publications: all, .. } = held;
        *first_seq = (*first_seq).max(base.seq + 1);
        *all = all.saturating_sub(publications);
        missing.retain(|(_, last)| *last > base.seq);
        gaps.retain(|(_, to)| *to > oldest.as_millis());
    }
}

/// The new start of a lineage.
#[derive(Clone, Copy, Debug)]
struct Base {
    /// The last entry before the start.
    seq: u64,
    /// True if there is a book as of that entry.
    begins_with_book: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{Blob, Image};

    /// An archive with ten entries and a book of each day.
    fn commit(days: &[&str], last: &str) -> Commit {
        let days = || (1..).zip(days);
        let epochs = days().map(|(n, day)| TableFile {
            table: Table::Epochs,
            path: format!("epochs/date={day}/a.parquet"),
            rows: 1,
            bytes: 1,
            sha256: String::new(),
            first_seq: 10 * n - 9,
            last_seq: 10 * n,
            lineage: 0,
        });
        let images = days().map(|(n, day)| Image {
            file: Blob { path: format!("images/{day}"), bytes: 1, sha256: String::new() },
            seq: 10 * n,
            at_ms: 0,
            lineage: 0,
            version: 1,
            first: None,
        });
        let last_ms = Timestamp::parse(last).unwrap().as_millis();
        let lineages = vec![Lineage { last_ms, ..Lineage::default() }];
        Commit { files: epochs.collect(), images: images.collect(), lineages, ..Commit::none() }
    }

    fn end(days: &[&str], last: &str) -> String {
        commit(days, last).settled_end().unwrap().to_string()
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_count_for_retention() {
        let noon = "2026-11-19T12:00:00Z";
        assert_eq!(end(&["2026-11-18", "2026-11-19"], noon), noon);
        // The clock is ahead, and is corrected.
        let ahead = ["2026-11-18", "2026-11-19", "2027-12-01"];
        assert_eq!(end(&ahead, "2027-12-01T12:00:00Z"), "2026-11-20T00:00:00Z");
        assert_eq!(end(&ahead, noon), noon);
        // The service was stopped for a day.
        let begun = ["2026-11-01", "2026-11-03", "2026-11-04", "2026-11-05", "2026-11-06"];
        let mut days = begun.to_vec();
        assert_eq!(end(&days, "2026-11-06T12:00:00Z"), "2026-11-02T00:00:00Z");
        days.extend(["2026-11-07", "2026-11-08", "2026-11-09"]);
        assert_eq!(end(&days, "2026-11-09T12:00:00Z"), "2026-11-02T00:00:00Z");
        days.push("2026-11-10");
        assert_eq!(end(&days, "2026-11-10T12:00:00Z"), "2026-11-10T12:00:00Z");
    }

    #[test]
    fn publications_of_a_clock_that_was_ahead_go_with_those_around_them() {
        let days = ["2026-11-17", "2027-12-01", "2026-11-18", "2026-11-19"];
        let commit = commit(&days, "2026-11-19T12:00:00Z");
        let oldest = Timestamp::parse("2026-11-19T00:00:00Z").unwrap();
        let kept = commit.without_before(oldest).unwrap();
        let kept: Vec<&str> = kept.files.iter().map(TableFile::date).collect();
        assert_eq!(kept, ["2026-11-19"]);
    }
}

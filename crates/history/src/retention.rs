//! Retention: the part of the archive that is no longer needed.

use domain::Timestamp;

use crate::Table;
use crate::commit::{Commit, Lineage};
use crate::date::date_of;

impl Commit {
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
        let needed = epochs.filter(|file| file.date() >= day).map(|file| file.first_seq).min();
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

//! The publications in the log and the archive, by time.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use archive::{Commit, Publication, Table};
use domain::Timestamp;
use market::Change;

use super::{ArchiveHeld, Found, HistoryError, Reach};
use crate::options::WorldOptions;
use crate::replay::Logged;

/// The publications in the log and the archive. One that is in both occurs twice.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By time; among publications of the same time, the latest is last.
    pub(super) cuts: Vec<Cut>,
    /// Entries and times of the publications by lineage, in entry order: times are not in the order of entries.
    seqs: BTreeMap<usize, Vec<(u64, Timestamp)>>,
    /// Number of publications that equal the one before.
    doubles: usize,
    pub(super) archived: Archived,
    /// Versions of the catalogues of publications.
    pub(super) catalogues: Vec<Arc<str>>,
    /// Index in `catalogues` of the catalogue of the log's last entry.
    pub(super) catalogue: Option<u32>,
    pub(super) gaps: Vec<(Timestamp, Timestamp)>,
    /// The next entry to read.
    pub(super) next_seq: u64,
    /// The entry of the last book before all publications that can be rebuilt from the log.
    pub(super) base_seq: u64,
    /// The time before which publications were dropped.
    begun_at: Option<Timestamp>,
    /// Number of times that the clock had been set back when the log was last read.
    pub(super) set_backs: u64,
    /// The last entry of the archive, if the log has it, too: with both, publications after it can be rebuilt.
    pub(super) continued: Option<u64>,
    /// The value of `base_seq` at the last attempt to read the archive, and at the last successful one.
    pub(super) looked_base: Option<u64>,
    pub(super) read_base: Option<u64>,
    /// True if the log has dropped publications since the archive was read, which the archive may have now.
    pub(super) is_stale: bool,
}

/// Data read from the archive.
#[derive(Debug, Default)]
pub(super) struct Archived {
    pub(super) commit: u64,
    /// Files whose publications were read.
    pub(super) files: HashSet<String>,
    /// The first and the last entry of each lineage.
    pub(super) lineages: Vec<(u64, u64)>,
    /// Versions of the catalogues that it stores, the latest last.
    pub(super) catalogues: Vec<String>,
    /// The last day whose files are final.
    pub(super) final_day: Option<String>,
    /// The last archived publication, and the size and number of the archive's files.
    pub(super) held: Option<(Timestamp, u64, usize)>,
    /// True if it was read since this process started.
    pub(super) was_read: bool,
    /// True if the last attempt to read it failed.
    pub(super) failed: bool,
    /// True if, in addition, it may have publications before those of the log.
    pub(super) is_missed: bool,
}

/// The lineage of publications in the log, after all those of the archive.
pub(super) const IN_LOG: usize = usize::MAX;

/// Smallest correction of the clock after which dropped publications are read again.
const SET_BACK_MIN: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at: Timestamp,
    /// A lineage of the archive, or [`IN_LOG`].
    pub(super) lineage: usize,
    pub(super) seq: u64,
    /// Index in `catalogues` of its catalogue; `None` if the log does not name it.
    pub(super) catalogue: Option<u32>,
}

impl Cut {
    /// True if both are the same publication, in whichever place.
    fn is_same(&self, other: &Self) -> bool {
        (self.at, self.seq) == (other.at, other.seq)
    }
}

impl Index {
    pub(super) fn note(&mut self, Logged { seq, change, .. }: &Logged) {
        self.next_seq = seq + 1;
        match change {
            // The log cannot be used to rebuild publications before its first book.
            Change::Cut { .. } if *seq <= self.base_seq => {}
            Change::Cut { at } => {
                let catalogue = self.catalogue;
                self.insert(Cut { at: *at, lineage: IN_LOG, seq: *seq, catalogue });
            }
            Change::Configured(configured) => {
                self.catalogue = self.place_of(&configured.catalogue);
            }
            Change::Unlogged { from, to } => self.note_gap(*from, *to),
            Change::Founded { .. }
            | Change::Listed(_)
            | Change::Quoted(_)
            | Change::Confirmed { .. }
            | Change::Scored { .. }
            | Change::Withdrawn { .. }
            | Change::Beat { .. }
            | Change::Paced { .. }
            | Change::Expired { .. }
            | Change::SourceForgotten { .. }
            | Change::Joined(_)
            | Change::Merged { .. }
            | Change::Split { .. }
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. } => {}
        }
    }

    /// Index of a version in `catalogues`; a new version is added.
    pub(super) fn place_of(&mut self, version: &str) -> Option<u32> {
        let held = self.catalogues.iter().rposition(|held| **held == *version);
        let place = held.unwrap_or_else(|| {
            self.catalogues.push(version.into());
            self.catalogues.len() - 1
        });
        u32::try_from(place).ok()
    }

    pub(super) fn insert(&mut self, cut: Cut) {
        // A clock that was set back reaches the same times again.
        let key = |cut: &Cut| (cut.at, cut.lineage, cut.seq);
        let place = self.cuts.partition_point(|held| key(held) < key(&cut));
        let next = self.cuts.get(place);
        if next.is_some_and(|held| key(held) == key(&cut)) {
            return;
        }
        let before = place.checked_sub(1).and_then(|place| self.cuts.get(place));
        let same = |one: Option<&Cut>, other: Option<&Cut>| {
            usize::from(one.zip(other).is_some_and(|(one, other)| one.is_same(other)))
        };
        let doubles = same(before, Some(&cut)) + same(Some(&cut), next);
        self.doubles = self.doubles + doubles - same(before, next);
        self.cuts.insert(place, cut);
        let seqs = self.seqs.entry(cut.lineage).or_default();
        let place = seqs.partition_point(|(seq, _)| *seq < cut.seq);
        seqs.insert(place, (cut.seq, cut.at));
    }

    /// Drops publications that a log which begins after entry `base` cannot rebuild. Those that it can rebuild now are
    /// read again.
    pub(super) fn begin_after(&mut self, base: u64) {
        if base < self.base_seq && base < self.next_seq {
            let archived = self.archived.lineages.len().checked_sub(1);
            let cut = archived.and_then(|lineage| self.cut_in(lineage, base));
            (self.next_seq, self.catalogue) = match cut {
                Some(cut) => (base + 1, cut.catalogue),
                None => (0, None),
            };
            // If they cannot be read to the end, none may be missing between others.
            self.cuts.retain(|cut| cut.lineage != IN_LOG);
            self.seqs.remove(&IN_LOG);
        }
        if self.base_seq != base {
            self.base_seq = base;
            self.cuts.retain(|cut| cut.lineage != IN_LOG || cut.seq > base);
            self.seqs.entry(IN_LOG).or_default().retain(|(seq, _)| *seq > base);
            self.count_doubles();
        }
    }

    /// True if publications of a time were dropped: the clock was well ahead then.
    pub(super) fn has_dropped(&self, oldest: Timestamp) -> bool {
        self.begun_at.is_some_and(|begun_at| oldest.plus(SET_BACK_MIN) < begun_at)
    }

    /// Drops older publications.
    pub(super) fn begin_at(&mut self, oldest: Timestamp) {
        let from = self.cuts.partition_point(|cut| cut.at < oldest);
        if from > 0 {
            self.begun_at = Some(oldest);
            self.cuts.drain(..from);
            self.seqs.values_mut().for_each(|seqs| seqs.retain(|(_, at)| *at >= oldest));
            self.count_doubles();
        }
        self.gaps.retain(|(_, to)| *to >= oldest);
    }

    fn count_doubles(&mut self) {
        let same = |pair: &&[Cut]| matches!(pair, [one, other] if one.is_same(other));
        self.doubles = self.cuts.windows(2).filter(same).count();
    }

    pub(super) fn note_gap(&mut self, from: Timestamp, to: Timestamp) {
        if !self.gaps.contains(&(from, to)) {
            self.gaps.push((from, to));
        }
    }

    pub(super) fn note_archive(&mut self, commit: &Commit, publications: &[Publication]) {
        for Publication { lineage, seq, published_at, catalogue, .. } in publications {
            let (at, lineage, seq) = (*published_at, *lineage, *seq);
            let catalogue = catalogue.as_deref().and_then(|version| self.place_of(version));
            self.insert(Cut { at, lineage, seq, catalogue });
        }
        for (from, to) in commit.lineages.iter().flat_map(|lineage| &lineage.gaps) {
            self.note_gap(Timestamp::from_millis(*from), Timestamp::from_millis(*to));
        }
        let files = commit.files.iter().filter(|file| file.table == Table::Epochs);
        let files = files.map(|file| file.path.clone()).collect();
        let final_day = commit.final_day().map(str::to_owned);
        let lineages = commit.lineages.iter().map(|held| (held.first_seq, held.last_seq)).collect();
        let catalogues = commit.catalogues.iter().map(|held| held.version.clone()).collect();
        let last = commit.lineages.last().map(|last| Timestamp::from_millis(last.last_ms));
        let held = last.map(|last| (last, commit.bytes(), commit.paths().count()));
        let commit = commit.commit;
        self.archived = Archived {
            commit,
            files,
            lineages,
            catalogues,
            final_day,
            held,
            ..Archived::default()
        };
    }

    /// The lineage that has a publication; the log is preferred.
    pub(super) fn lineage_of(&self, found: Found) -> Option<usize> {
        let from = self.cuts.partition_point(|cut| cut.at < found.at);
        let same = self.cuts.iter().skip(from).take_while(|cut| cut.at == found.at);
        same.filter(|cut| cut.seq == found.seq).map(|cut| cut.lineage).max()
    }

    /// The lineage of the archive that has a publication.
    pub(super) fn archived_lineage_of(&self, seq: u64, at: Timestamp) -> Option<usize> {
        let from = self.cuts.partition_point(|cut| cut.at < at);
        let same = self.cuts.iter().skip(from).take_while(|cut| cut.at == at);
        let own = same.filter(|cut| cut.seq == seq && cut.lineage != IN_LOG);
        own.map(|cut| cut.lineage).max()
    }

    /// The log, or the lineage of the archive, that has an entry. If several have an entry with this number, the latest
    /// counts.
    fn lineage_with(&self, seq: u64) -> Option<usize> {
        if self.base_seq < seq && seq < self.next_seq {
            return Some(IN_LOG);
        }
        let mut lineages = self.archived.lineages.iter();
        lineages.rposition(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// The publication at an entry.
    pub(super) fn cut_of(&self, seq: u64) -> Option<Cut> {
        self.cut_in(self.lineage_with(seq)?, seq).copied()
    }

    fn cut_in(&self, lineage: usize, seq: u64) -> Option<&Cut> {
        self.at_or_after(lineage, seq).next().filter(|cut| cut.seq == seq)
    }

    /// The publications of a lineage from an entry on, in entry order.
    fn at_or_after(&self, lineage: usize, seq: u64) -> impl Iterator<Item = &Cut> {
        let seqs = self.seqs.get(&lineage).map_or(&[][..], |seqs| seqs);
        let from = seqs.partition_point(|(held, _)| *held < seq);
        seqs.get(from..).unwrap_or_default().iter().filter_map(move |(seq, at)| {
            let key = (*at, lineage, *seq);
            let place = self.cuts.binary_search_by_key(&key, |cut| (cut.at, cut.lineage, cut.seq));
            self.cuts.get(place.ok()?)
        })
    }

    /// The same for a lineage, continued by the log after the end of the archive.
    fn later(&self, lineage: Option<usize>, seq: u64) -> impl Iterator<Item = &Cut> {
        let archived = lineage.filter(|lineage| *lineage != IN_LOG);
        let archived = archived.into_iter().flat_map(move |lineage| self.at_or_after(lineage, seq));
        let mut archived = archived.peekable();
        let mut logged = self.at_or_after(IN_LOG, seq).peekable();
        std::iter::from_fn(move || {
            let is_archived = match (archived.peek(), logged.peek()) {
                (Some(archived), Some(logged)) => archived.seq <= logged.seq,
                (archived, _) => archived.is_some(),
            };
            if is_archived { archived.next() } else { logged.next() }
        })
    }

    /// The publication at an entry and the time of the next one, if both are known, so that the log need not be read.
    pub(super) fn known_cut_of(&self, seq: u64) -> Option<(Cut, Timestamp)> {
        let cut = self.cut_of(seq).filter(|_| self.is_known())?;
        Some((cut, self.cut_after(seq)?.at))
    }

    /// The result of [`Index::step`] if the log need not be read for it.
    pub(super) fn known_step(&self, seq: u64, entries: u64) -> Option<u64> {
        let is_read = self.is_known() && seq.saturating_add(entries) < self.next_seq;
        is_read.then(|| self.step(seq, entries)).flatten()
    }

    /// True if the archive was read. One that could not be read may be available again.
    const fn is_known(&self) -> bool {
        self.archived.was_read && !self.archived.failed && !self.is_stale
    }

    /// The first publication after an entry.
    pub(super) fn cut_after(&self, seq: u64) -> Option<Cut> {
        self.later(self.lineage_with(seq), seq + 1).next().copied()
    }

    /// The last publication at most `entries` entries after an entry; if there is none, the next one.
    pub(super) fn step(&self, seq: u64, entries: u64) -> Option<u64> {
        let lineage = self.lineage_with(seq);
        // Of a log that was replaced, later entries are not on the way to the present.
        let is_valid = |lineage: usize, seq: u64| {
            self.lineage_with(seq) == Some(lineage) && seq < self.next_seq
        };
        let last = |lineage: usize| {
            let seqs = self.seqs.get(&lineage)?;
            let end = seqs.partition_point(|(held, _)| *held <= seq.saturating_add(entries));
            let held = seqs.get(..end)?.iter().rev().map(|(held, _)| *held);
            held.take_while(|held| *held > seq).find(|held| is_valid(lineage, *held))
        };
        let within = lineage.into_iter().chain([IN_LOG]).filter_map(last).max();
        within.or_else(|| {
            let mut later = self.later(lineage, seq + 1);
            later.find(|cut| is_valid(cut.lineage, cut.seq)).map(|cut| cut.seq)
        })
    }

    /// The catalogue of the first publication after an entry, if the log names it, and the last of the consecutive
    /// publications with this catalogue.
    pub(super) fn catalogue_after(&self, seq: u64) -> Option<(Option<Arc<str>>, u64)> {
        let next = self.cut_after(seq)?;
        let later = self.later(Some(next.lineage), next.seq);
        let same = later.take_while(|cut| cut.catalogue == next.catalogue);
        let to = same.last().map_or(next.seq, |cut| cut.seq);
        let version = next.catalogue.and_then(|at| self.catalogues.get(usize::try_from(at).ok()?));
        Some((version.cloned(), to))
    }

    /// True if the catalogue changed between an entry and a publication (or the next one) to one other than that
    /// publication's: content unknown to it may be gone.
    pub(super) fn passes_other_catalogue(&self, from: u64, to: u64) -> bool {
        let target = self.at_or_after(IN_LOG, to).next();
        let Some(target) = target.map(|cut| cut.catalogue) else { return false };
        // Starts with the last publication up to `from`, to compare the next one with it.
        let seqs = self.seqs.get(&IN_LOG).map_or(&[][..], |seqs| seqs);
        let first = seqs.partition_point(|(seq, _)| *seq <= from).saturating_sub(1);
        let first = seqs.get(first).map_or(0, |(seq, _)| *seq);
        let cuts = || self.at_or_after(IN_LOG, first).take_while(|cut| cut.seq < to);
        cuts().zip(cuts().skip(1)).any(|(before, after)| {
            let is_other = before.catalogue != after.catalogue && after.catalogue != target;
            is_other && after.seq > from
        })
    }

    pub(super) fn find(
        &self,
        at: Timestamp,
        options: &WorldOptions,
    ) -> Result<Found, HistoryError> {
        let lost = self.is_lost(at);
        let Some(found) = self.found_at(at).filter(|_| !lost) else {
            return Err(match self.reach(options) {
                // It may be in the archive.
                _ if self.archived.failed && !lost => HistoryError::Unreadable(None),
                Some(reach) => HistoryError::NotKept(Box::new(reach)),
                None => HistoryError::Off,
            });
        };
        match found.previous {
            None if self.archived.is_missed => Err(HistoryError::Unreadable(None)),
            // It may have an unknown successor.
            _ if self.is_stale && self.lineage_of(found) != Some(IN_LOG) => {
                Err(HistoryError::Unreadable(None))
            }
            _ => Ok(found),
        }
    }

    /// Time of the publication that was made last.
    pub(super) fn last(&self) -> Option<Timestamp> {
        let (_, at) = self.seqs.values().rev().find_map(|seqs| seqs.last())?;
        Some(*at)
    }

    fn found_at(&self, at: Timestamp) -> Option<Found> {
        let end = self.cuts.partition_point(|cut| cut.at <= at);
        let found = end.checked_sub(1).and_then(|place| self.cuts.get(place))?;
        // Among publications of the same time, the last counts.
        let earlier = self.cuts.partition_point(|cut| cut.at < found.at).checked_sub(1);
        let previous = earlier.and_then(|place| self.cuts.get(place)).map(|cut| cut.at);
        let next = self.cuts.get(end).map(|cut| cut.at);
        Some(Found { seq: found.seq, at: found.at, previous, next })
    }

    /// True if the publications of a time were lost.
    fn is_lost(&self, at: Timestamp) -> bool {
        self.gaps.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// The same if a later publication is known, so that the log need not be read; `current` is the time of the present
    /// publication.
    pub(super) fn find_known(
        &self,
        at: Timestamp,
        current: Timestamp,
        options: &WorldOptions,
    ) -> Option<Found> {
        // Not the latest time: a clock that is set back reaches it again.
        let known = self.last().is_some_and(|last| at < last && last <= current);
        // An archive that could not be read may be available again.
        let known = known && self.archived.was_read && !self.archived.failed;
        let found = known.then(|| self.found_at(at)).flatten().filter(|_| !self.is_lost(at))?;
        (found.at >= current.minus(options.history.retention)).then_some(found)
    }

    /// The last publication before an instant; the log reaches back to entry `base`.
    pub(super) fn before(
        &self,
        at: Timestamp,
        base: u64,
        options: &WorldOptions,
    ) -> Option<Timestamp> {
        let end = self.cuts.partition_point(|cut| cut.at < at);
        let before = end.checked_sub(1).and_then(|place| self.cuts.get(place))?;
        let is_kept = before.lineage != IN_LOG || before.seq > base;
        (is_kept && before.at >= at.minus(options.history.retention)).then_some(before.at)
    }

    /// The publication before that of entry `seq`, if everything up to it was read.
    pub(super) fn before_known(
        &self,
        seq: u64,
        at: Timestamp,
        options: &WorldOptions,
    ) -> Option<Timestamp> {
        let from = self.cuts.partition_point(|cut| cut.at < at);
        let mut same = self.cuts.iter().skip(from).take_while(|cut| cut.at == at);
        let known = same.any(|cut| cut.seq == seq);
        known.then(|| self.before(at, self.base_seq, options)).flatten()
    }

    pub(super) fn reach(&self, options: &WorldOptions) -> Option<Reach> {
        let (first, last) = (self.cuts.first()?, self.last()?);
        let archive = self.archived.held.map(|(last, bytes, files)| {
            let waiting = self.cuts.get(self.cuts.partition_point(|cut| cut.at <= last));
            ArchiveHeld { waiting: waiting.map(|cut| cut.at), bytes, files }
        });
        Some(Reach {
            from: first.at,
            to: last,
            publications: u64::try_from(self.cuts.len() - self.doubles).unwrap_or(u64::MAX),
            retention: options.history.retention,
            exported_to: self.archived.final_day.clone(),
            gaps: self.gaps.iter().copied().filter(|(_, to)| *to > first.at).collect(),
            archive,
        })
    }

    /// The catalogue version of a publication, if known.
    pub(super) fn catalogue_at(&self, lineage: usize, seq: u64) -> Option<Arc<str>> {
        let cut = self.cut_in(lineage, seq)?;
        let at = usize::try_from(cut.catalogue?).ok()?;
        self.catalogues.get(at).cloned()
    }
}

#[cfg(test)]
mod tests;

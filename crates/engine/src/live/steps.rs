//! The last snapshots shown to clients that follow live: whole ones, and parts with the changes since the previous
//! one.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use domain::{EventId, Timestamp};
use market::{Layer, Snapshot};

use crate::history::Place;
use crate::history::row_bytes;
use crate::publication::Published;

/// Number of the newest ones that are kept however much memory they take, because current streams continue from them.
const KEPT_MIN: usize = 4;
/// Number of whole ones kept with the parts between them: readers of whole ones continue from the one before the last.
const WHOLE_MIN: usize = 2;
/// Minimum number of parts before a whole snapshot follows, once the parts are as large as that: assembling one from
/// them then costs no more than twice as much as reading it.
const PARTS_MIN: usize = 64;
/// Bytes that a part takes in addition to its rows.
const PART_BYTES: usize = 2048;

/// The snapshots shown, the oldest first. A part belongs to all that follow the last whole one before it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    held: VecDeque<Arc<Published>>,
    bytes: usize,
    /// Since the newest whole one.
    parts: usize,
    part_bytes: usize,
}

/// A step from one of them to a later one: the events that may differ, in their old and new state.
#[derive(Debug)]
pub struct LiveStep {
    pub from: Arc<Snapshot>,
    pub to: Arc<Snapshot>,
    /// The snapshots shown in between, the oldest first: the touched events.
    pub skipped: Vec<Arc<Snapshot>>,
}

impl Steps {
    pub(crate) fn push(&mut self, mut published: Published, max: usize) {
        // A whole one may follow a part of the same position and replace it.
        let same = self.held.back().is_some_and(|last| {
            last.is_between && published.is_between && is_same(&last.snapshot, &published.snapshot)
        });
        if same && let Some(last) = self.held.pop_back() {
            self.bytes -= bytes_of(&last);
            published = published.after(&last);
        }
        let bytes = bytes_of(&published);
        (self.parts, self.part_bytes) = match published.is_whole() {
            true => (0, 0),
            false => (self.parts + 1, self.part_bytes + bytes),
        };
        self.bytes += bytes;
        self.held.push_back(Arc::new(published));
        self.evict(max);
    }

    /// Removes the oldest ones above the limit, but never those that the newest is assembled from.
    fn evict(&mut self, max: usize) {
        while self.bytes > max
            && self.held.len() > KEPT_MIN
            && self.held.iter().skip(1).filter(|held| held.is_whole()).nth(WHOLE_MIN - 1).is_some()
        {
            self.drop_oldest();
            // A part without the whole one before it is useless.
            while self.held.front().is_some_and(|held| !held.is_whole()) {
                self.drop_oldest();
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.held.pop_front() {
            self.bytes -= bytes_of(&oldest);
        }
    }

    /// True if the next one has to be whole.
    pub(super) fn needs_whole(&self, max: usize) -> bool {
        let newest = self.held.iter().rev().find(|held| held.is_whole());
        newest.is_none_or(|whole| {
            let is_long = self.parts >= PARTS_MIN && self.part_bytes > bytes_of(whole);
            is_long || self.part_bytes > max / 2
        })
    }

    /// The last snapshot at a place that satisfies `is`, and the time of the next one that satisfies `follows`.
    pub(super) fn find(
        &self,
        place: Place,
        is: impl Fn(&Published) -> bool,
        follows: impl Fn(&Published) -> bool,
    ) -> Option<(Found, Option<Timestamp>)> {
        let mut next = None;
        for (at, held) in self.held.iter().enumerate().rev() {
            if place.is_of(&held.snapshot) && is(held) {
                return Some((self.found(at)?, next));
            }
            if follows(held) {
                next = Some(held.snapshot.cut_at);
            }
        }
        None
    }

    fn found(&self, at: usize) -> Option<Found> {
        let held = self.held.get(at)?;
        if held.is_whole() {
            return Some(Found::Whole(Arc::clone(held)));
        }
        let from = self.whole_before(at)?;
        Some(Found::Parts(self.held.range(from..=at).map(Arc::clone).collect()))
    }

    fn whole_before(&self, at: usize) -> Option<usize> {
        (0..=at).rev().find(|place| self.held.get(*place).is_some_and(|held| held.is_whole()))
    }

    /// The last one as a whole.
    pub(crate) fn newest(&self) -> Option<Arc<Published>> {
        match self.found(self.held.len().checked_sub(1)?)? {
            Found::Whole(whole) => Some(whole),
            Found::Parts(parts) => Found::gather(&parts),
        }
    }

    /// The last one that satisfies `is`.
    pub(super) fn last(&self, is: impl Fn(&Published) -> bool) -> Option<Arc<Published>> {
        self.held.iter().rev().find(|held| is(held)).map(Arc::clone)
    }

    /// The snapshot at a place, and the first match that follows it.
    pub(super) fn after(
        &self,
        place: Place,
        is: impl Fn(&Published) -> bool,
    ) -> Option<(Arc<Published>, Option<Arc<Published>>)> {
        let at = self.held.iter().rposition(|held| place.is_of(&held.snapshot))?;
        let next = self.held.range(at + 1..).find(|held| is(held)).map(Arc::clone);
        Some((Arc::clone(self.held.get(at)?), next))
    }

    /// The whole one that replaced a part.
    pub(super) fn completed(&self, part: &Snapshot) -> Option<Arc<Published>> {
        let mut newest = self.held.iter().rev();
        let held = newest.find(|held| held.is_between && is_same(&held.snapshot, part))?;
        held.is_whole().then(|| Arc::clone(held))
    }

    /// Replaces a part by a whole one.
    pub(super) fn complete(&mut self, whole: &Arc<Published>, max: usize) {
        let place = self
            .held
            .iter()
            .rposition(|held| !held.is_whole() && is_same(&held.snapshot, &whole.snapshot));
        let Some(held) = place.and_then(|place| self.held.get_mut(place)) else { return };
        let part = std::mem::replace(held, Arc::clone(whole));
        self.bytes = self.bytes - bytes_of(&part) + bytes_of(whole);
        let later = self.held.iter().rev().take_while(|held| !held.is_whole());
        (self.parts, self.part_bytes) =
            later.fold((0, 0), |(count, bytes), part| (count + 1, bytes + bytes_of(part)));
        self.evict(max);
    }

    /// The step from a place to a later snapshot, if the events touched in between are known.
    pub(super) fn between(&self, from: Place, to: &Snapshot) -> Option<LiveStep> {
        let to = self.held.iter().rposition(|held| is_same(&held.snapshot, to))?;
        let at = (0..to)
            .rev()
            .find(|at| self.held.get(*at).is_some_and(|held| from.is_of(&held.snapshot)))?;
        self.step(at, to)
    }

    /// The step to the last one from the one before it.
    pub(crate) fn last_step(&self) -> Option<LiveStep> {
        let to = self.held.len().checked_sub(1)?;
        self.step(to.checked_sub(1)?, to)
    }

    fn step(&self, at: usize, to: usize) -> Option<LiveStep> {
        let mut ids = BTreeSet::<EventId>::new();
        for held in self.held.range(at + 1..=to) {
            ids.extend(held.touched()?);
        }
        let of = |end: usize| {
            let layers: Vec<Layer<'_>> =
                self.held.range(self.whole_before(end)?..=end).map(|held| held.layer()).collect();
            Snapshot::gather(&layers, Some(&ids)).map(Arc::new)
        };
        let from = of(at)?;
        let shown = self.held.get(to)?;
        let skipped: Vec<Arc<Snapshot>> = self
            .held
            .range(at + 1..to)
            .map(|held| match held.is_whole() {
                true => Snapshot::gather(&[held.layer()], held.touched()).map(Arc::new),
                false => Some(Arc::clone(&held.snapshot)),
            })
            .collect::<Option<_>>()?;
        let is_step = skipped.is_empty() && !shown.is_whole();
        let to = if is_step { Arc::clone(&shown.snapshot) } else { of(to)? };
        Some(LiveStep { from, to, skipped })
    }
}

/// The result of a search at a place.
#[derive(Debug)]
pub(crate) enum Found {
    Whole(Arc<Published>),
    /// A whole one and the parts up to the place.
    Parts(Vec<Arc<Published>>),
}

impl Found {
    /// The snapshot assembled from its parts.
    pub(super) fn gather(parts: &[Arc<Published>]) -> Option<Arc<Published>> {
        let layers: Vec<Layer<'_>> = parts.iter().map(|part| part.layer()).collect();
        let whole = Snapshot::gather(&layers, None)?;
        Some(Arc::new(parts.last()?.completed(whole)))
    }
}

fn is_same(one: &Snapshot, other: &Snapshot) -> bool {
    (one.seq, one.cut_at, one.writer) == (other.seq, other.cut_at, other.writer)
}

fn bytes_of(published: &Published) -> usize {
    row_bytes(published) + PART_BYTES
}

//! The segments of one folder, and the repair of a damaged end.
//!
//! Every repair first saves what it will cut, then makes the new segment, which records the gap, durable, and only
//! then moves or shortens the old files. After a crash in between, the next opening finishes the repair, because an
//! intact header that follows entry `n` supersedes everything stored after `n`.

use std::{
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use tracing::{error, warn};

use crate::{
    checkpoint::parse_checkpoint_name,
    error::{Damage, LogError},
    files::{self, TEMPORARY_SUFFIX, io_at, name_of},
    frame::count_lost,
    segment::{
        Header, SEGMENT_HEAD_BYTES, Segment, encode_header, parse_segment_name, scan, segment_name,
    },
};

/// Bytes that were cut off the log because no intact entry could be read there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment file that was cut.
    pub file: String,
    /// Offset of the cut in the file.
    pub offset: u64,
    /// Number of bytes cut from that file.
    pub bytes_cut: u64,
    /// The last intact entry before the cut; 0 if there is none.
    pub last_seq: u64,
    /// The kind of damage.
    pub reason: Damage,
    /// The file that holds the bytes; `None` for a torn write, which was never acknowledged.
    pub saved_as: Option<String>,
}

/// The repairs made when the log was opened. Each was also logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The cuts, oldest first; empty if the log was intact.
    pub cuts: Vec<Cut>,
    /// Numbers skipped by this repair: no entry will ever have them.
    pub skipped: Option<RangeInclusive<u64>>,
}

/// The segment files, oldest first; after recovery the last one is open for writing.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) dir: PathBuf,
    pub(crate) segments: Vec<Segment>,
}

/// Where the kept part of the log ends.
struct Keep {
    /// Number of segments kept, the last of them up to `end`.
    segments: usize,
    end: u64,
    /// The last kept entry.
    last: u64,
    reason: Damage,
}

impl Folder {
    /// Lists the folder: segments and the numbers of the checkpoints, both oldest first.
    pub(crate) fn list(dir: &Path) -> Result<(Self, Vec<u64>), LogError> {
        let (mut segments, mut checkpoints) = (Vec::new(), Vec::new());
        for item in fs::read_dir(dir).map_err(io_at(dir))? {
            let path = item.map_err(io_at(dir))?.path();
            let name = name_of(&path);
            if is_leftover(&name) {
                files::remove(&path)?;
            } else if let Some(first) = parse_segment_name(&name) {
                segments.push(Segment::read(dir, first)?);
            } else if let Some(seq) = parse_checkpoint_name(&name) {
                checkpoints.push(seq);
            }
        }
        segments.sort_by_key(|segment| segment.first);
        checkpoints.sort_unstable();
        let dir = dir.to_owned();
        Ok((Self { dir, segments }, checkpoints))
    }

    /// Finds the last intact entry and cuts everything after it; returns the last number assigned.
    ///
    /// `spent_at_least` is known from checkpoints: their numbers were assigned, even if the log lost them.
    pub(crate) fn recover(&mut self, spent_at_least: u64) -> Result<(u64, Recovery), LogError> {
        self.finish_interrupted_cut()?;
        let kept = self.segments.iter().rposition(Segment::is_readable).map_or(0, |i| i + 1);
        let headless = self.segments.get(kept..).unwrap_or_default();
        let mut spent = spent_at_least;
        for segment in headless {
            spent = spent.max(segment.first - 1);
        }
        let headless_follows = headless.first().map(|segment| segment.follows);
        let Some(tail) = kept.checked_sub(1).and_then(|i| self.segments.get_mut(i)) else {
            return self.renew(headless_follows.unwrap_or(spent), spent);
        };
        let found = scan(tail)?;
        tail.newest_ms = found.newest_ms;
        let spent_here = found.last.max(tail.first - 1);
        spent = spent.max(spent_here);
        let nothing_lost = headless_follows.is_none() && found.is_torn;
        if !found.is_torn {
            let lost = files::read_remainder(&tail.path, found.end)?;
            spent = spent.max(spent_here + count_lost(&lost));
        }
        let keep = Keep {
            segments: kept,
            end: found.end,
            last: found.last,
            reason: found.damage.unwrap_or(Damage::Header),
        };
        if nothing_lost && spent == spent_here {
            return Ok((spent, self.cut_torn(&keep)?));
        }
        let recovery = self.replace_end(&keep, spent)?;
        Ok((spent, recovery))
    }

    /// Appends a new, empty segment, durably.
    pub(crate) fn start_segment(&mut self, first: u64, follows: u64) -> Result<(), LogError> {
        let name = segment_name(first);
        files::write_whole(&self.dir, &name, &[&encode_header(first, follows)])?;
        self.segments.push(Segment {
            path: self.dir.join(name),
            first,
            follows,
            header: Header::Whole,
            bytes: SEGMENT_HEAD_BYTES,
            newest_ms: None,
        });
        Ok(())
    }

    /// Keeps no segment: the log restarts after `spent`.
    fn renew(&mut self, last: u64, spent: u64) -> Result<(u64, Recovery), LogError> {
        let keep = Keep { segments: 0, end: 0, last, reason: Damage::Header };
        Ok((spent, self.replace_end(&keep, spent)?))
    }

    /// Drops the unfinished frame that a crash during a write leaves.
    fn cut_torn(&mut self, keep: &Keep) -> Result<Recovery, LogError> {
        let mut recovery = Recovery::default();
        if let Some(tail) = self.segments.last_mut()
            && tail.bytes > keep.end
        {
            files::truncate(&tail.path, keep.end)?;
            recovery.cuts.push(report(tail, keep, keep.end, None));
            tail.bytes = keep.end;
        }
        Ok(recovery)
    }

    /// Ends the log at `keep`, sets the rest aside, and continues in a new segment after `spent`.
    fn replace_end(&mut self, keep: &Keep, spent: u64) -> Result<Recovery, LogError> {
        let mut recovery = Recovery::default();
        let mut kept = keep.segments.min(self.segments.len());
        if keep.end == SEGMENT_HEAD_BYTES {
            // Nothing of that segment is kept, so the whole file is removed.
            kept = kept.saturating_sub(1);
        }
        let dropped = self.segments.split_off(kept);
        if let Some(tail) = self.segments.last()
            && keep.segments == kept
            && tail.bytes > keep.end
        {
            let remainder = files::read_remainder(&tail.path, keep.end)?;
            let name = format!("{}.from-{}", name_of(&tail.path), keep.end);
            let saved = files::save_aside(&self.dir, &name, &remainder)?;
            recovery.cuts.push(report(tail, keep, keep.end, Some(saved)));
        }
        self.start_segment(spent + 1, keep.last)?;
        let renewed = segment_name(spent + 1);
        for segment in &dropped {
            // Only a file without entries can have the name of the new segment, which replaced it.
            let saved =
                if name_of(&segment.path) == renewed { None } else { retire(&self.dir, segment)? };
            if saved.is_some() || segment.header == Header::Damaged {
                recovery.cuts.push(report(segment, keep, 0, saved));
            }
        }
        if let Some(tail) = kept.checked_sub(1).and_then(|i| self.segments.get_mut(i))
            && keep.segments == kept
            && tail.bytes > keep.end
        {
            files::truncate(&tail.path, keep.end)?;
            tail.bytes = keep.end;
        }
        if spent > keep.last {
            let (from, to) = (keep.last + 1, spent);
            error!(event = "log.numbers_skipped", dir = %self.dir.display(), from, to, "entry numbers skipped after damage");
            recovery.skipped = Some(from..=to);
        }
        Ok(recovery)
    }

    /// Moves segments away that a later, intact header has superseded.
    fn finish_interrupted_cut(&mut self) -> Result<(), LogError> {
        for segment in take_superseded(&mut self.segments) {
            let saved_as = retire(&self.dir, &segment)?;
            let file = name_of(&segment.path);
            warn!(
                event = "log.repair_finished",
                file,
                ?saved_as,
                "interrupted repair of the change log finished"
            );
        }
        Ok(())
    }
}

/// Removes the segments that a later, intact header has superseded from the list and returns them, newest first.
pub(crate) fn take_superseded(segments: &mut Vec<Segment>) -> Vec<Segment> {
    let mut superseded = Vec::new();
    let mut follows_min = u64::MAX;
    for index in (0..segments.len()).rev() {
        let Some(segment) = segments.get(index) else {
            continue;
        };
        if segment.first > follows_min {
            superseded.push(segments.remove(index));
        } else if segment.header == Header::Whole {
            follows_min = follows_min.min(segment.follows);
        }
    }
    superseded
}

/// Whether a crash left this file half written. Files of other programs are ignored.
fn is_leftover(name: &str) -> bool {
    name.ends_with(TEMPORARY_SUFFIX)
        && (name.starts_with("segment-") || name.starts_with("checkpoint-"))
}

/// Removes a segment from the log. An empty one is deleted; any other is set aside.
fn retire(dir: &Path, segment: &Segment) -> Result<Option<String>, LogError> {
    if segment.is_empty() {
        files::remove(&segment.path)?;
        files::sync_folder(dir)?;
        return Ok(None);
    }
    files::set_aside(dir, &name_of(&segment.path)).map(Some)
}

/// Logs a cut of one file, and returns it for the owner.
fn report(segment: &Segment, keep: &Keep, offset: u64, saved_as: Option<String>) -> Cut {
    let cut = Cut {
        file: name_of(&segment.path),
        offset,
        bytes_cut: segment.bytes.saturating_sub(offset),
        last_seq: keep.last,
        reason: keep.reason.clone(),
        saved_as,
    };
    // A torn write was never acknowledged; anything else may have been.
    macro_rules! log_cut {
        ($level:ident) => {
            $level!(
                event = "log.cut",
                path = %segment.path.display(),
                offset = cut.offset,
                bytes_cut = cut.bytes_cut,
                last_seq = cut.last_seq,
                reason = %cut.reason,
                saved_as = cut.saved_as,
                "change log cut at the last whole entry"
            )
        };
    }
    if cut.saved_as.is_none() {
        log_cut!(warn);
    } else {
        log_cut!(error);
    }
    cut
}

//! Damage at every byte: the log always opens, never returns wrong entries, loses only the affected ones, and never
//! leaves an unreported gap.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use change_log::{ChangeLog, Damage, FRAME_HEAD_BYTES, LogView, Losses, Options, decode_frame};

use crate::{append_one, files, filled, open, read_all};

/// The losses of the owner when it reads everything.
fn losses(log: &ChangeLog, from: u64) -> Losses {
    let mut reader = log.read_from(from).unwrap();
    reader.by_ref().for_each(|entry| drop(entry.unwrap()));
    reader.losses().clone()
}

/// The numbers that are neither read nor reported as lost.
fn unexplained(log: &ChangeLog, seqs: &[u64]) -> Vec<u64> {
    let gaps = losses(log, 1).gaps;
    (1..=log.last_seq())
        .filter(|seq| !seqs.contains(seq) && !gaps.iter().any(|gap| gap.seqs.contains(seq)))
        .collect()
}

/// The beginnings of a segment's frames, and the end of the last.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![32];
    while let Ok(Some((_, used))) = decode_frame(&bytes[borders[borders.len() - 1]..]) {
        borders.push(borders[borders.len() - 1] + used);
    }
    borders
}

#[test]
fn the_last_segment_cut_at_every_byte_opens_with_the_whole_entries() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 11);
    let last = files(dir.path(), ".log").pop().unwrap();
    let bytes = fs::read(&last).unwrap();
    let ends = borders(&bytes);
    assert!(ends.last() == Some(&bytes.len()) && ends.len() > 2);
    let before = 11 - (ends.len() as u64 - 1);
    for length in 0..=bytes.len() {
        fs::write(&last, &bytes[..length]).unwrap();
        let whole = ends.iter().filter(|end| **end <= length).count() as u64;
        let kept = before + whole.saturating_sub(1);
        let (mut log, recovery) = open(dir.path());
        assert_eq!(read_all(&log, 1).unwrap(), (1..=kept).collect::<Vec<_>>());
        let cuts = usize::from(!ends.contains(&length));
        assert_eq!(recovery.cuts.len(), cuts, "at {length}");
        assert_eq!(append_one(&mut log), kept + 1, "at {length}");
        assert_eq!(read_all(&open(dir.path()).0, 1).unwrap().len() as u64, kept + 1);
        assert_eq!(files(dir.path(), ".damaged").len(), 0);
        for path in files(dir.path(), ".log") {
            if path > last {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn every_byte_flipped_gives_no_panic_no_wrong_payload_and_no_silent_gap() {
    let pristine = tempfile::tempdir().unwrap();
    filled(pristine.path(), 11);
    let paths = files(pristine.path(), ".log");
    let originals: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    for (which, original) in originals.iter().enumerate() {
        for at in 0..original.len() {
            for mask in [0xff, 1 << (at % 8)] {
                let dir = tempfile::tempdir().unwrap();
                let mut contents = originals.clone();
                contents[which][at] ^= mask;
                write_all(dir.path(), &paths, &contents);
                check_flipped(dir.path(), which + 1 == paths.len());
            }
        }
    }
}

fn write_all(dir: &Path, names: &[PathBuf], contents: &[Vec<u8>]) {
    for (path, bytes) in names.iter().zip(contents) {
        fs::write(dir.join(path.file_name().unwrap()), bytes).unwrap();
    }
}

fn check_flipped(dir: &Path, in_last_segment: bool) {
    let (mut log, recovery) = open(dir);
    let mut seqs = read_all(&log, 1).unwrap();
    assert!(seqs.len() >= 10, "one flipped byte costs one entry at the most: {seqs:?}");
    let told = losses(&log, 1);
    assert!(!told.gaps.is_empty() || !recovery.cuts.is_empty(), "damage is always noticed");
    assert_eq!(unexplained(&log, &seqs), [0; 0]);
    let next = append_one(&mut log);
    // A longer length in the last frame of the log cannot be distinguished from a torn write.
    assert!(next > 11 || (in_last_segment && next == 11 && seqs.len() == 10));
    assert!(told.entries <= 1 || in_last_segment, "{told:?}");
    seqs.push(next);
    let (log, recovery) = open(dir);
    assert!(recovery.cuts.is_empty());
    assert_eq!(read_all(&log, 1).unwrap(), seqs);
    assert_eq!(unexplained(&log, &seqs), [0; 0]);
}

#[test]
fn damage_amid_a_segment_costs_that_entry_alone_and_names_its_place() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20);
    let segments = files(dir.path(), ".log");
    for path in [&segments[1], segments.last().unwrap()] {
        let whole = fs::read(path).unwrap();
        let (start, seq) = (borders(&whole)[1], decode_frame(&whole[32..]).unwrap().unwrap().0.seq);
        // In the payload, in the number and in the length, including a length beyond the end of the file.
        for (at, mask) in [(30, 1), (8, 4), (4, 1), (7, 0x7f)] {
            let mut bytes = whole.clone();
            bytes[start + at] ^= mask;
            fs::write(path, &bytes).unwrap();
            if start + at > whole.len() || borders(&whole).len() < 4 {
                continue;
            }
            let (log, recovery) = open(dir.path());
            assert!(recovery.cuts.is_empty());
            let kept: Vec<u64> = (1..=20).filter(|n| *n != seq + 1).collect();
            assert_eq!(read_all(&log, 1).unwrap(), kept);
            let told = losses(&log, 1);
            assert_eq!((told.entries, told.gaps.len()), (1, 1), "{told:?}");
            let gap = &told.gaps[0];
            assert_eq!((&gap.path, gap.offset), (path, start as u64));
            assert_eq!(gap.seqs, seq + 1..=seq + 1);
            gap.save_aside().unwrap();
            gap.save_aside().unwrap();
            let aside = files(dir.path(), ".damaged");
            assert_eq!(aside.len(), 1, "kept once");
            assert_eq!(fs::read(&aside[0]).unwrap(), bytes[start..borders(&whole)[2]]);
            fs::remove_file(&aside[0]).unwrap();
            assert_eq!(losses(&log, seq + 2).entries, 0, "not missed by who reads from behind it");
        }
        fs::write(path, &whole).unwrap();
    }
}

#[test]
fn pages_of_zeroes_and_lost_pages_cost_what_was_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = ChangeLog::open(dir.path(), Options::default()).unwrap().0;
    for _ in 0..1000 {
        append_one(&mut log);
    }
    let path = files(dir.path(), ".log").remove(0);
    let whole = fs::read(&path).unwrap();
    let borders = borders(&whole);
    assert_eq!(borders.len(), 1001);
    let (from, to) = (4096, 4096 * 3);
    let hit = |border: &[usize]| border[0] < to && border[1] > from;
    let lost = borders.windows(2).filter(|border| hit(border)).count();
    let mut zeroed = whole.clone();
    zeroed[from..to].fill(0);
    let mut shortened = whole[..from].to_vec();
    shortened.extend(&whole[to..]);
    for bytes in [zeroed, shortened] {
        fs::write(&path, &bytes).unwrap();
        let (log, recovery) = ChangeLog::open(dir.path(), Options::default()).unwrap();
        assert!(recovery.cuts.is_empty());
        assert_eq!(read_all(&log, 1).unwrap().len(), 1000 - lost);
        let told = losses(&log, 1);
        assert_eq!((told.entries, told.gaps.len()), (lost as u64, 1));
    }
}

#[test]
fn a_damaged_header_costs_no_entry() {
    let pristine = tempfile::tempdir().unwrap();
    filled(pristine.path(), 20);
    let paths = files(pristine.path(), ".log");
    for which in 0..paths.len() {
        let dir = tempfile::tempdir().unwrap();
        let mut contents: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        contents[which][..32].fill(0xff);
        write_all(dir.path(), &paths, &contents);
        let (mut log, recovery) = open(dir.path());
        assert!(recovery.cuts.is_empty());
        assert_eq!(read_all(&log, 1).unwrap(), (1..=20).collect::<Vec<_>>());
        let told = losses(&log, 1);
        assert_eq!((told.entries, &told.gaps[0].reason), (0, &Damage::Header));
        assert_eq!(append_one(&mut log), 21);
        assert_eq!(read_all(&open(dir.path()).0, 1).unwrap(), (1..=21).collect::<Vec<_>>());
    }
}

#[test]
fn a_missing_segment_costs_its_entries_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20);
    let segments = files(dir.path(), ".log");
    let gone = borders(&fs::read(&segments[2]).unwrap()).len() as u64 - 1;
    fs::remove_file(&segments[2]).unwrap();
    let mut log = open(dir.path()).0;
    let seqs = read_all(&log, 1).unwrap();
    assert_eq!(seqs.len() as u64, 20 - gone);
    let told = losses(&log, 1);
    assert!(matches!(told.gaps[0].reason, Damage::Missing { .. }));
    assert_eq!((told.entries, append_one(&mut log)), (gone, 21));
    assert_eq!(unexplained(&log, &read_all(&log, 1).unwrap()), [0; 0]);
    assert_eq!(LogView::open(dir.path()).unwrap().losses_until(20).unwrap().entries, gone);
}

#[test]
fn damage_at_the_very_end_is_kept_aside_and_its_numbers_are_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 11);
    let last = files(dir.path(), ".log").pop().unwrap();
    let mut bytes = fs::read(&last).unwrap();
    let at = bytes.len() - 1;
    bytes[at] ^= 1;
    fs::write(&last, &bytes).unwrap();
    let (mut log, recovery) = open(dir.path());
    assert_eq!((recovery.cuts.len(), recovery.skipped.clone()), (1, Some(11..=11)));
    assert!(recovery.cuts[0].saved_as.is_some());
    assert_eq!(files(dir.path(), ".damaged").len(), 1);
    assert_eq!((losses(&log, 1).entries, append_one(&mut log)), (1, 12));
    assert_eq!(losses(&open(dir.path()).0, 1).entries, 1, "told for as long as the log is kept");
}

#[test]
fn bytes_made_to_look_like_frames_cost_a_bounded_search() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 64 << 20, entry_bytes_max: 16 << 20 };
    let mut log = ChangeLog::open(dir.path(), options).unwrap().0;
    // Beginnings of frames with possible numbers, each claiming to reach the end: checksumming every one of them
    // would read a hundred gigabytes.
    let mut fake = Vec::new();
    while fake.len() < 2 << 20 {
        fake.extend([0; 4]);
        fake.extend(u32::try_from((2 << 20) - fake.len()).unwrap().to_le_bytes());
        fake.extend(2_u64.to_le_bytes());
    }
    log.append(1, [(1, fake.as_slice()), (1, b"behind")]).unwrap();
    drop(log);
    let path = files(dir.path(), ".log").remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[32] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let begun = Instant::now();
    let (mut log, recovery) = ChangeLog::open(dir.path(), options).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(recovery.cuts.len(), 1, "given up, kept aside and told");
    let next = log.append(1, [(1, &b"next"[..])]).unwrap();
    assert!(*next.start() > 2, "{next:?}");
}

#[test]
fn any_bytes_in_place_of_a_segment_are_opened_and_read() {
    let mut state = 7_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), 30);
        for path in files(dir.path(), ".log") {
            let mut bytes = fs::read(&path).unwrap();
            for _ in 0..random() % 4 {
                let at = usize::try_from(random()).unwrap() % bytes.len().max(1);
                let length = usize::try_from(random() % 60).unwrap().min(bytes.len() - at);
                match random() % 4 {
                    0 => bytes[at..at + length].fill(0),
                    1 => drop(bytes.drain(at..at + length)),
                    2 => bytes.truncate(at),
                    _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0x10),
                }
            }
            fs::write(&path, &bytes).unwrap();
        }
        let (mut log, _) = open(dir.path());
        let seqs = read_all(&log, log.first_seq()).unwrap();
        assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
        let next = append_one(&mut log);
        assert!(seqs.last() < Some(&next));
        assert_eq!(read_all(&open(dir.path()).0, next).unwrap(), [next]);
        LogView::open(dir.path()).unwrap().losses_until(u64::MAX).unwrap();
    }
    assert_eq!(FRAME_HEAD_BYTES, 25, "the format of the fixtures");
}

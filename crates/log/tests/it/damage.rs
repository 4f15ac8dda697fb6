//! Damage at every byte: the log always opens, never lies, and never leaves a silent gap.

use std::{
    fs,
    path::{Path, PathBuf},
};

use linesman_log::{ChangeLog, Damage, LogError};

use crate::{append_one, files, filled, open, read_all};

/// Replays as the owner does: at damage, the log is cut after the last entry read.
fn replay(log: &mut ChangeLog) -> Vec<u64> {
    match read_all(log, 1) {
        Ok(seqs) => seqs,
        Err((seqs, LogError::Corrupt { .. })) => {
            log.cut_after(seqs.last().copied().unwrap_or(0)).unwrap();
            assert_eq!(read_all(log, 1).unwrap(), seqs, "one cut is enough");
            seqs
        }
        Err((_, error)) => panic!("{error}"),
    }
}

/// The numbers that are neither read nor in a written-down gap.
fn unexplained(log: &ChangeLog, seqs: &[u64]) -> Vec<u64> {
    let gaps: Vec<_> = log.gaps().collect();
    (1..=log.last_seq())
        .filter(|seq| !seqs.contains(seq) && !gaps.iter().any(|gap| gap.contains(seq)))
        .collect()
}

#[test]
fn the_last_segment_cut_at_every_byte_opens_with_the_whole_entries() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 11);
    let last = files(dir.path(), ".log").pop().unwrap();
    let bytes = fs::read(&last).unwrap();
    let mut ends = vec![32];
    let mut at = 32;
    while let Ok(Some((_, used))) = linesman_log::decode_frame(&bytes[at..]) {
        at += used;
        ends.push(at);
    }
    assert!(at == bytes.len() && ends.len() > 2);
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
    let (mut log, _) = open(dir);
    let mut seqs = replay(&mut log);
    let kept = seqs.len() as u64;
    assert_eq!(seqs, (1..=kept).collect::<Vec<_>>(), "a prefix is kept");
    assert!(kept < 11, "damage is always noticed");
    assert_eq!(unexplained(&log, &seqs), [0; 0]);
    let next = append_one(&mut log);
    // A longer claim in the last frame of all cannot be told from a torn write.
    assert!(next > 11 || (in_last_segment && next == 11 && kept == 10));
    seqs.push(next);
    let (log, recovery) = open(dir);
    assert!(recovery.cuts.is_empty());
    assert_eq!(read_all(&log, 1).unwrap(), seqs);
    assert_eq!(unexplained(&log, &seqs), [0; 0]);
}

#[test]
fn damage_in_the_middle_names_its_place_and_is_set_aside_on_request() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20);
    let segments = files(dir.path(), ".log");
    let mut bytes = fs::read(&segments[1]).unwrap();
    let second = 32 + linesman_log::decode_frame(&bytes[32..]).unwrap().unwrap().1;
    bytes[second + 30] ^= 1;
    fs::write(&segments[1], &bytes).unwrap();

    let (mut log, recovery) = open(dir.path());
    assert!(recovery.cuts.is_empty(), "only the last segment is scanned");
    let (seqs, error) = read_all(&log, 1).unwrap_err();
    let last = seqs.len() as u64;
    let LogError::Corrupt { path, offset, reason } = error else {
        panic!("{error}");
    };
    let place = (segments[1].clone(), second as u64, Damage::Checksum);
    assert_eq!((path, offset, reason), place);

    // A checkpoint of the damaged entry does not change where the log must end.
    let recovery = log.cut_after(last + 1).unwrap();
    assert_eq!(recovery.skipped, Some(last + 1..=20));
    assert_eq!(recovery.cuts.len(), segments.len() - 1);
    assert_eq!(recovery.cuts[0].offset, second as u64);
    let saved = dir.path().join(recovery.cuts[0].saved_as.as_ref().unwrap());
    assert_eq!(fs::read(saved).unwrap(), bytes[second..]);
    assert_eq!(append_one(&mut log), 21);
    let expected: Vec<_> = (1..=last).chain([21]).collect();
    assert_eq!(read_all(&log, 1).unwrap(), expected);
    assert_eq!(read_all(&open(dir.path()).0, last + 5).unwrap(), [21]);
}

#[test]
fn a_missing_segment_is_an_error_and_not_a_jump() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20);
    fs::remove_file(&files(dir.path(), ".log")[2]).unwrap();
    let mut log = open(dir.path()).0;
    let (seqs, error) = read_all(&log, 1).unwrap_err();
    assert!(matches!(error, LogError::Corrupt { reason: Damage::Missing { .. }, .. }));
    assert_eq!(replay(&mut log), seqs);
    assert_eq!(append_one(&mut log), 21);
    assert_eq!(unexplained(&log, &read_all(&log, 1).unwrap()), [0; 0]);
}

#[test]
fn entries_behind_a_bad_frame_at_the_end_are_kept_aside_and_their_numbers_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 11);
    let last = files(dir.path(), ".log").pop().unwrap();
    let mut bytes = fs::read(&last).unwrap();
    bytes[32 + 26] ^= 1;
    fs::write(&last, &bytes).unwrap();
    let (mut log, recovery) = open(dir.path());
    assert_eq!(recovery.cuts.len(), 1);
    assert!(recovery.cuts[0].saved_as.is_some());
    assert_eq!(fs::read(&files(dir.path(), ".damaged")[0]).unwrap(), bytes);
    assert!(append_one(&mut log) > 11);
}

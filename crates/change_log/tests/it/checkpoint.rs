//! Checkpoints and retention.

use std::fs;

use change_log::{ChangeLog, Checkpoint, LogError, decode_checkpoint};

use crate::{append_one, files, filled, open, read_all};

#[test]
fn the_newest_two_are_kept_and_the_newest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 9);
    let mut log = open(dir.path()).0;
    assert_eq!(log.latest_checkpoint().unwrap(), None);
    for seq in [2_u8, 5, 5, 8] {
        log.write_checkpoint(u64::from(seq), 4, &[seq; 50]).unwrap();
    }
    let expected = Checkpoint { seq: 8, version: 4, payload: vec![8; 50] };
    assert_eq!(open(dir.path()).0.latest_checkpoint().unwrap(), Some(expected));
    assert_eq!(files(dir.path(), ".ckp").len(), 2);
    for seq in [7, 10] {
        let refused = log.write_checkpoint(seq, 4, b"");
        assert!(matches!(refused, Err(LogError::CheckpointOutOfRange { .. })));
    }
}

#[test]
fn a_checkpoint_damaged_at_any_byte_falls_back_to_the_one_before_and_then_to_none() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 9);
    let mut log = open(dir.path()).0;
    log.write_checkpoint(5, 1, b"five").unwrap();
    log.write_checkpoint(8, 1, b"eight").unwrap();
    let newest = files(dir.path(), ".ckp").pop().unwrap();
    let whole = fs::read(&newest).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        assert!(decode_checkpoint(&flipped).is_err());
        assert!(decode_checkpoint(&whole[..at]).is_err());
        fs::write(&newest, &flipped).unwrap();
        let mut log = open(dir.path()).0;
        assert_eq!(log.latest_checkpoint().unwrap().unwrap().payload, b"five");
        assert!(!newest.exists(), "set aside, so that it is not counted as kept");
    }
    fs::write(&files(dir.path(), ".ckp")[0], b"LNSM.CKP").unwrap();
    let mut log = open(dir.path()).0;
    assert_eq!(log.latest_checkpoint().unwrap(), None);
    assert_eq!(read_all(&log, 1).unwrap().len(), 9);
    log.write_checkpoint(9, 1, b"nine").unwrap();
    assert_eq!(log.latest_checkpoint().unwrap().unwrap().payload, b"nine");
}

#[test]
fn a_checkpoint_beyond_the_log_pushes_the_numbering_on() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 11);
    open(dir.path()).0.write_checkpoint(11, 1, b"state").unwrap();
    let segments = files(dir.path(), ".log");
    for path in &segments[2..] {
        fs::remove_file(path).unwrap();
    }
    let (mut log, recovery) = open(dir.path());
    let kept = read_all(&log, 1).unwrap();
    let last = kept.len() as u64;
    assert_eq!(recovery.skipped, Some(last + 1..=11));
    assert_eq!((log.last_seq(), append_one(&mut log)), (11, 12));
    assert_eq!(read_all(&log, 12).unwrap(), [12]);
    let mut reader = log.read_from(1).unwrap();
    assert_eq!(reader.by_ref().count() as u64, last + 1);
    assert_eq!(reader.losses().gaps[0].seqs, last + 1..=11);

    for path in files(dir.path(), ".log") {
        fs::remove_file(path).unwrap();
    }
    let (mut log, _) = open(dir.path());
    assert_eq!((log.first_seq(), append_one(&mut log)), (12, 12));
    assert!(matches!(log.read_from(11), Err(LogError::NotKept { follows: 11, .. })));
}

#[test]
fn retention_deletes_only_what_is_old_and_covered_and_unneeded() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 40);
    let mut log = open(dir.path()).0;
    let all = i64::MAX;
    assert_eq!(log.retain(all, u64::MAX).unwrap(), 0, "no checkpoint");
    log.write_checkpoint(20, 1, b"").unwrap();
    assert_eq!(log.retain(all, u64::MAX).unwrap(), 0, "one checkpoint");
    log.write_checkpoint(38, 1, b"").unwrap();
    assert_eq!(log.retain(10, u64::MAX).unwrap(), 0, "nothing so old");
    assert_eq!(log.retain(all, 1).unwrap(), 0, "somebody reads from 1");

    assert!(log.retain(100, u64::MAX).unwrap() > 0);
    assert!((2..=10).contains(&log.first_seq()), "entry 10 is of 100 ms");
    assert!(log.retain(all, 15).unwrap() > 0);
    assert!((11..=15).contains(&log.first_seq()));
    assert!(log.retain(all, u64::MAX).unwrap() > 0);
    assert!((16..=21).contains(&log.first_seq()), "21 on is not covered");

    let first = log.first_seq();
    let (log, recovery) = open(dir.path());
    assert!(recovery.cuts.is_empty() && recovery.skipped.is_none());
    assert_eq!(read_all(&log, first).unwrap(), (first..=40).collect::<Vec<_>>());
    assert!(matches!(log.read_from(first - 1), Err(LogError::NotKept { .. })));
}

#[test]
fn segments_of_a_clock_that_was_ahead_are_deleted_with_those_after_them() {
    let dir = tempfile::tempdir().unwrap();
    let day_ms = 86_400_000;
    let append = |log: &mut ChangeLog, ms| *log.append(ms, [(1, &b"any"[..])]).unwrap().end();
    let mut log = open(dir.path()).0;
    let ahead = (1..=20).map(|ms| append(&mut log, 400 * day_ms + ms)).last().unwrap();
    let last = (1..=29).map(|day| append(&mut log, day * day_ms)).last().unwrap();
    log.write_checkpoint(last - 1, 1, b"").unwrap();
    log.write_checkpoint(last, 1, b"").unwrap();

    let mut log = open(dir.path()).0;
    assert_eq!(log.retain(20 * day_ms, u64::MAX).unwrap(), 0, "the time is not known yet");
    append(&mut log, 30 * day_ms);
    assert_eq!(log.retain(day_ms, u64::MAX).unwrap(), 0, "what came after them is as young");
    assert!(log.retain(20 * day_ms, u64::MAX).unwrap() > 0);
    assert!((ahead + 2..ahead + 20).contains(&log.first_seq()), "{}", log.first_seq());
}

#[test]
fn the_last_segment_stays_and_damage_does_not_stop_retention() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20);
    let oldest = files(dir.path(), ".log").remove(0);
    let mut bytes = fs::read(&oldest).unwrap();
    bytes[40] ^= 1;
    fs::write(&oldest, bytes).unwrap();
    let mut log = open(dir.path()).0;
    log.write_checkpoint(19, 1, b"").unwrap();
    log.write_checkpoint(20, 1, b"").unwrap();
    log.retain(i64::MAX, u64::MAX).unwrap();
    assert_eq!(files(dir.path(), ".log").len(), 1);
    assert_eq!(append_one(&mut log), 21);
    let (log, _) = open(dir.path());
    assert_eq!(read_all(&log, log.first_seq()).unwrap().last(), Some(&21));
}

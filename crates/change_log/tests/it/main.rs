//! The log as its owner uses it: round trips, damage at every byte, checkpoints, retention.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "an integration binary is all tests, its helpers too"
)]

mod checkpoint;
mod conformance;
mod fence;
mod hostile;
mod model;
mod servers;
mod view;

use std::{
    fs,
    path::{Path, PathBuf},
};

use change_log::{ChangeLog, Entry, LogError, Options, Recovery};

/// Small enough that a few entries fill several segments.
pub(crate) const SMALL: Options = Options { segment_bytes: 150, entry_bytes_max: 64 };

pub(crate) fn open(dir: &Path) -> (ChangeLog, Recovery) {
    ChangeLog::open(dir, SMALL).unwrap()
}

pub(crate) fn payload(seq: u64) -> Vec<u8> {
    format!("entry {seq} {}", "x".repeat(usize::from(version(seq)) % 7)).into_bytes()
}

pub(crate) fn version(seq: u64) -> u8 {
    u8::try_from(seq % 200).unwrap()
}

pub(crate) fn at_ms(seq: u64) -> i64 {
    i64::try_from(seq * 10).unwrap()
}

/// Appends one entry whose payload contains its number.
pub(crate) fn append_one(log: &mut ChangeLog) -> u64 {
    let seq = log.last_seq() + 1;
    let range = log.append(at_ms(seq), [(version(seq), payload(seq).as_slice())]);
    assert_eq!(range.unwrap(), seq..=seq);
    seq
}

/// A log of `count` entries over several segments, closed.
pub(crate) fn filled(dir: &Path, count: u64) {
    let mut log = open(dir).0;
    for _ in 0..count {
        append_one(&mut log);
    }
}

/// Reads all entries, compares each with the one written under its number, and returns the numbers.
pub(crate) fn read_all(log: &ChangeLog, from: u64) -> Result<Vec<u64>, (Vec<u64>, LogError)> {
    let mut seqs = Vec::new();
    for entry in log.read_from(from).unwrap() {
        match entry {
            Ok(entry) => {
                let seq = entry.seq;
                let expected =
                    Entry { seq, at_ms: at_ms(seq), version: version(seq), payload: payload(seq) };
                assert_eq!(entry, expected);
                seqs.push(seq);
            }
            Err(error) => return Err((seqs, error)),
        }
    }
    Ok(seqs)
}

/// Files of the folder with this suffix, in order.
pub(crate) fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let items = fs::read_dir(dir).unwrap().map(|item| item.unwrap().path());
    let mut paths: Vec<_> = items.filter(|path| path.to_str().unwrap().ends_with(suffix)).collect();
    paths.sort();
    paths
}

#[test]
fn entries_come_back_in_order_over_several_segments() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("made/here");
    filled(&folder, 40);
    assert!(files(&folder, ".log").len() > 5);
    let (log, recovery) = open(&folder);
    assert_eq!(recovery, Recovery::default());
    assert_eq!((log.first_seq(), log.last_seq()), (1, 40));
    for from in 0..45 {
        let expected: Vec<_> = (from.max(1)..=40).collect();
        assert_eq!(read_all(&log, from).unwrap(), expected);
    }
    let on_disk: u64 =
        files(&folder, ".log").iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(log.bytes(), on_disk);
}

#[test]
fn a_batch_is_numbered_as_one_and_an_empty_one_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).0;
    assert!(log.append(0, []).unwrap().is_empty());
    let payloads: Vec<_> = (1..=30).map(payload).collect();
    let batch = (1..=30).zip(payloads.iter().map(Vec::as_slice));
    assert_eq!(log.append(10, batch).unwrap(), 1..=30);
    assert_eq!(log.read_from(1).unwrap().count(), 30);
    assert_eq!(append_one(&mut log), 31);
}

#[test]
fn an_entry_over_the_bound_is_refused_with_its_whole_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).0;
    let refused = log.append(0, [(1, &[0; 10][..]), (1, &[0; 65])]);
    assert!(matches!(refused, Err(LogError::TooLarge { bytes: 65, bytes_max: 64 })));
    assert_eq!((log.last_seq(), append_one(&mut log)), (0, 1));
}

#[test]
fn a_reader_sees_the_log_of_the_moment_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).0;
    append_one(&mut log);
    let reader = log.read_from(1).unwrap();
    append_one(&mut log);
    assert_eq!(reader.count(), 1);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    let path = files(dir.path(), ".log").remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let refused = ChangeLog::open(dir.path(), SMALL);
    assert!(matches!(refused, Err(LogError::UnknownFormat { format: 2, .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn files_that_are_not_the_logs_are_left_alone_and_leftovers_removed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    let foreign = [
        "notes.tmp",
        "segment-1.log",
        "segment-00000000000000000000.log",
        "segment-99999999999999999999.log",
        "checkpoint-18446744073709551615.ckp",
    ];
    for name in foreign {
        fs::write(dir.path().join(name), b"mine").unwrap();
    }
    let leftover = dir.path().join("checkpoint-00000000000000000002.ckp.tmp");
    fs::write(&leftover, b"half").unwrap();
    let (mut log, recovery) = open(dir.path());
    assert_eq!(recovery, Recovery::default());
    assert!(!leftover.exists());
    assert_eq!(append_one(&mut log), 4);
    for name in foreign {
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"mine");
    }
}

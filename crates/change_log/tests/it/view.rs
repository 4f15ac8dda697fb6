//! The log as another process sees it while its owner has it open.

use std::{collections::BTreeMap, fs, path::Path};

use change_log::{Damage, LogError, LogView};

use crate::{append_one, files, filled, open};

/// The numbers that a view reads, up to its end or its first error.
fn read(view: &LogView, from: u64) -> Result<Vec<u64>, (Vec<u64>, LogError)> {
    let mut seqs = Vec::new();
    for entry in view.read_from(from).map_err(|error| (Vec::new(), error))? {
        match entry {
            Ok(entry) => seqs.push(entry.seq),
            Err(error) => return Err((seqs, error)),
        }
    }
    Ok(seqs)
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let items = fs::read_dir(dir).unwrap().map(|item| item.unwrap().path());
    items.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

#[test]
fn a_view_reads_what_was_there_when_it_was_opened_while_the_owner_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).0;
    for count in 1..=40 {
        append_one(&mut log);
        let view = LogView::open(dir.path()).unwrap();
        let mut reader = view.read_from(1).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().seq, 1);
        append_one(&mut log);
        let seqs: Vec<u64> = reader.map(|entry| entry.unwrap().seq).collect();
        assert_eq!(seqs, (2..=2 * count - 1).collect::<Vec<_>>());
        assert_eq!(read(&view, count).unwrap().first(), Some(&count));
    }
}

#[test]
fn an_unfinished_write_ends_the_reading_and_nothing_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 11);
    let last = files(dir.path(), ".log").pop().unwrap();
    let bytes = fs::read(&last).unwrap();
    fs::write(dir.path().join("segment-00000000000000000012.log.tmp"), b"half").unwrap();
    for length in 32..=bytes.len() {
        fs::write(&last, &bytes[..length]).unwrap();
        let before = contents(dir.path());
        let view = LogView::open(dir.path()).unwrap();
        // Entries that the owner writes after the view was opened do not make it look damaged.
        fs::write(&last, &bytes).unwrap();
        let seqs = read(&view, 1).unwrap();
        fs::write(&last, &bytes[..length]).unwrap();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        assert_eq!(read(&LogView::open(dir.path()).unwrap(), 1).unwrap(), seqs);
        assert_eq!(contents(dir.path()), before);
    }
    let whole = LogView::open(dir.path()).unwrap();
    assert_eq!(read(&whole, 1).unwrap().len(), 11);
    let mut zeroes = bytes.clone();
    zeroes.extend([0; 100]);
    fs::write(&last, &zeroes).unwrap();
    assert_eq!(read(&LogView::open(dir.path()).unwrap(), 1).unwrap().len(), 11);
    fs::write(&last, &bytes[..40]).unwrap();
    assert!(read(&whole, 1).unwrap().len() < 11, "the owner took back what it could not sync");
}

#[test]
fn damage_is_passed_over_and_told_and_nothing_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20);
    let segments = files(dir.path(), ".log");
    for path in [&segments[1], segments.last().unwrap()] {
        let whole = fs::read(path).unwrap();
        let mut bytes = whole.clone();
        bytes[32 + 30] ^= 1;
        fs::write(path, &bytes).unwrap();
        let before = contents(dir.path());
        let view = LogView::open(dir.path()).unwrap();
        assert_eq!(read(&view, 1).unwrap().len(), 19);
        let losses = view.losses_until(u64::MAX).unwrap();
        let [gap] = losses.gaps.as_slice() else { panic!("{losses:?}") };
        assert_eq!((losses.entries, gap.offset, &gap.reason), (1, 32, &Damage::Checksum));
        assert_eq!((&gap.path, contents(dir.path())), (path, before));
        assert_eq!(view.losses_until(1).unwrap().entries, 0, "nothing is missing so far");
        fs::write(path, &whole).unwrap();
    }
}

#[test]
fn what_retention_takes_is_missed_by_name() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 40);
    let mut log = open(dir.path()).0;
    log.write_checkpoint(20, 1, b"twenty").unwrap();
    log.write_checkpoint(38, 2, b"thirty-eight").unwrap();
    let view = LogView::open(dir.path()).unwrap();
    assert_eq!((view.first_seq(), view.checkpoints()), (1, &[20, 38][..]));
    assert_eq!(view.checkpoint(38).unwrap().payload, b"thirty-eight");
    assert!(log.retain(i64::MAX, u64::MAX).unwrap() > 1);
    let (seqs, error) = read(&view, 1).unwrap_err();
    assert!(seqs.is_empty() && matches!(error, LogError::CannotCatchUp { .. }), "{error}");

    let view = LogView::open(dir.path()).unwrap();
    let first = view.first_seq();
    assert_eq!(first, log.first_seq());
    assert_eq!(read(&view, first).unwrap(), (first..=40).collect::<Vec<_>>());
    assert!(matches!(view.read_from(1), Err(LogError::NotKept { .. })));
    assert!(LogView::open(&dir.path().join("nowhere")).is_err());
}

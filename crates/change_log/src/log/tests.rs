//! Appends on a failing disk. Other tests use the public interface, in `tests/it`.

use super::*;

fn open(dir: &Path) -> ChangeLog {
    let options = Options { segment_bytes: 200, entry_bytes_max: 100 };
    ChangeLog::open(dir, options).unwrap().0
}

fn append(log: &mut ChangeLog, payload: &[u8]) -> Result<RangeInclusive<u64>, LogError> {
    log.append(1, [(1, payload), (1, payload)])
}

fn payloads(log: &ChangeLog) -> Vec<Vec<u8>> {
    let entries = log.read_from(1).unwrap();
    entries.map(|entry| entry.unwrap().payload).collect()
}

fn disk_full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

const HALF_WRITTEN: Disk = Disk {
    write: |file, bytes| {
        file.write_all(&bytes[..bytes.len() / 2 + 3])?;
        Err(disk_full())
    },
    ..REAL_DISK
};

#[test]
fn a_failed_append_leaves_the_log_as_it_was() {
    let failing = [HALF_WRITTEN, Disk { write: |_, _| Err(disk_full()), ..REAL_DISK }];
    for disk in failing {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        assert_eq!(append(&mut log, b"one").unwrap(), 1..=2);
        let bytes = log.bytes();
        log.disk = disk;
        assert!(matches!(append(&mut log, b"two"), Err(LogError::Io { .. })));
        assert_eq!((log.last_seq(), log.bytes()), (2, bytes));
        assert_eq!(payloads(&log), [b"one"; 2]);
        let (reopened, recovery) = ChangeLog::open(dir.path(), log.options).unwrap();
        assert_eq!((recovery, reopened.last_seq()), (Recovery::default(), 2));

        log.disk = REAL_DISK;
        assert_eq!(append(&mut log, b"three").unwrap(), 3..=4);
        assert_eq!(payloads(&open(dir.path()))[2..], [b"three"; 2]);
    }
}

#[test]
fn a_failure_that_cannot_be_undone_poisons_until_reopened() {
    let failing = [
        Disk { truncate: |_, _| Err(disk_full()), ..HALF_WRITTEN },
        Disk { sync: |_| Err(disk_full()), ..REAL_DISK },
    ];
    for disk in failing {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        append(&mut log, b"one").unwrap();
        log.disk = disk;
        assert!(matches!(append(&mut log, b"two"), Err(LogError::Io { .. })));
        log.disk = REAL_DISK;
        assert!(matches!(append(&mut log, b"no"), Err(LogError::Poisoned)));
        assert_eq!(payloads(&log), [b"one"; 2], "reading goes on");
        let mut log = open(dir.path());
        assert!(append(&mut log, b"yes").is_ok());
        assert_eq!(payloads(&log)[..2], [b"one"; 2]);
    }
}

#[test]
fn a_segment_that_cannot_be_created_fails_the_append_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    append(&mut log, &[7; 60]).unwrap();
    // A folder with the name of the temporary file is the simplest real failure.
    let in_the_way = dir.path().join(format!("{}.tmp", segment_name(3)));
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(matches!(append(&mut log, &[8; 60]), Err(LogError::Io { .. })));
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(append(&mut log, &[9; 60]).unwrap(), 3..=4);
    let expected = [[7; 60], [7; 60], [9; 60], [9; 60]];
    assert_eq!(payloads(&open(dir.path())), expected);
}

#[test]
fn a_cut_that_a_crash_interrupted_is_finished_at_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    for payload in [[1; 60], [2; 60], [3; 60]] {
        append(&mut log, &payload).unwrap();
    }
    // The new segment is durable; nothing was moved or shortened yet.
    log.folder.start_segment(7, 1).unwrap();
    let mut log = open(dir.path());
    assert_eq!(payloads(&log), [[1; 60]]);
    let mut reader = log.read_from(1).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!((reader.losses().entries, reader.losses().gaps[0].seqs.clone()), (5, 2..=6));
    assert_eq!(append(&mut log, &[4; 60]).unwrap(), 7..=8);
    assert_eq!(payloads(&open(dir.path())), [[1; 60], [4; 60], [4; 60]]);
    let aside = std::fs::read_dir(dir.path()).unwrap();
    let aside = aside.filter(|item| name_of(&item.as_ref().unwrap().path()).ends_with(".damaged"));
    assert_eq!(aside.count(), 2);
}

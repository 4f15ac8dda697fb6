//! Properties of a log in a folder and of one on servers.

use std::time::{Duration, Instant};

use change_log::{
    BatchLimit, Checkpoint, Entry, Log, LogError, LogLocation, Options, READER_DELAY_MAX, ReadLog,
    StreamLocation,
};
use test_servers::Nats;
use tokio::runtime::Runtime;

use crate::{SMALL, at_ms, payload, version};

/// Maximum payload in these tests: on servers, more than one message holds.
const ENTRY_BYTES_MAX: u32 = 3 * 1024 * 1024;

macro_rules! for_each_case {
    ($take:ident) => {
        $take! {
            entries_come_back_with_their_numbers_times_and_versions
            a_batch_is_numbered_in_one_go_and_an_empty_one_is_nothing
            what_is_too_large_leaves_no_trace
            a_batch_of_any_length_is_whole
            reading_begins_anywhere
            the_newest_checkpoint_is_read_and_nothing_out_of_range_is_written
            a_large_checkpoint_comes_back
            old_entries_go_once_two_checkpoints_cover_them
            retention_waits_for_readers_and_not_for_ever
            batches_have_all_entries_and_a_bounded_size
            numbers_go_on_after_a_reopening_however_little_is_kept
        }
    };
}

mod in_a_folder {
    use super::*;

    macro_rules! tests {
        ($($case:ident)*) => {$(
            #[test]
            fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let options = Options { entry_bytes_max: ENTRY_BYTES_MAX, ..SMALL };
                super::$case(&LogLocation::Folder { dir: dir.path().to_owned(), options });
            }
        )*};
    }
    for_each_case!(tests);
}

/// All cases on one server, each on its own log.
#[test]
fn everything_that_holds_in_a_folder_holds_on_servers() {
    let runtime = Runtime::new().unwrap();
    let nats = Nats::start(1).unwrap();
    macro_rules! run {
        ($($case:ident)*) => {$(
            eprintln!(stringify!($case));
            $case(&on(&runtime, &nats.url(), stringify!($case), 1));
        )*};
    }
    for_each_case!(run);
}

pub(crate) fn on(runtime: &Runtime, url: &str, name: &str, replicas: usize) -> LogLocation {
    let (url, name) = (url.to_owned(), name.to_owned());
    let place =
        StreamLocation { url, name, replicas: Some(replicas), entry_bytes_max: ENTRY_BYTES_MAX };
    LogLocation::Stream { runtime: runtime.handle().clone(), location: place }
}

pub(crate) fn stream_place(place: &LogLocation) -> (&tokio::runtime::Handle, &StreamLocation) {
    match place {
        LogLocation::Stream { runtime, location } => (runtime, location),
        LogLocation::Folder { .. } | LogLocation::Nowhere => panic!("not on servers"),
    }
}

/// Appends one entry whose payload contains its number.
pub(crate) fn append_one(log: &mut Log) -> u64 {
    let seq = log.last_seq() + 1;
    let range = log.append(at_ms(seq), [(version(seq), payload(seq).as_slice())]);
    assert_eq!(range.unwrap(), seq..=seq);
    seq
}

/// Reads all entries, compares each with the one written under its number, and returns the numbers.
pub(crate) fn read_all(log: &Log, from: u64) -> Vec<u64> {
    try_read_all(log, from).unwrap()
}

/// As [`read_all`], for servers that may not answer.
pub(crate) fn try_read_all(log: &Log, from: u64) -> Result<Vec<u64>, LogError> {
    let checked = |entry: Result<Entry, LogError>| {
        let entry = entry?;
        let seq = entry.seq;
        let (at_ms, version, payload) = (at_ms(seq), version(seq), payload(seq));
        assert_eq!(entry, Entry { seq, at_ms, version, payload });
        Ok(seq)
    };
    log.read_from(from)?.map(checked).collect()
}

fn entries_come_back_with_their_numbers_times_and_versions(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    assert_eq!((log.first_seq(), log.last_seq()), (1, 0));
    assert_eq!(read_all(&log, 0), Vec::<u64>::new());
    for seq in 1..=20 {
        assert_eq!(append_one(&mut log), seq);
    }
    assert_eq!(read_all(&log, 1), (1..=20).collect::<Vec<_>>());
    drop(log);
    let log = Log::open(place).unwrap();
    assert_eq!((log.first_seq(), log.last_seq()), (1, 20));
    assert!(log.bytes() > 20 * 10);
    assert_eq!(read_all(&log, 0), (1..=20).collect::<Vec<_>>());
}

fn a_batch_is_numbered_in_one_go_and_an_empty_one_is_nothing(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    append_one(&mut log);
    assert!(log.append(1, []).unwrap().is_empty());
    let batch: [(u8, &[u8]); 3] = [(1, b"a"), (2, b""), (3, &[0; 60])];
    assert_eq!(log.append(-5, batch).unwrap(), 2..=4);
    assert_eq!(log.last_seq(), 4);
    let read: Vec<Entry> = log.read_from(2).unwrap().map(Result::unwrap).collect();
    let told = |entry: &Entry| (entry.seq, entry.at_ms, entry.version, entry.payload.len());
    assert_eq!(
        read.iter().map(told).collect::<Vec<_>>(),
        [(2, -5, 1, 1), (3, -5, 2, 0), (4, -5, 3, 60)]
    );
}

fn what_is_too_large_leaves_no_trace(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    append_one(&mut log);
    let large = vec![0; usize::try_from(ENTRY_BYTES_MAX).unwrap() + 1];
    let refused = log.append(1, [(1, b"small".as_slice()), (1, &large)]);
    assert!(matches!(refused, Err(LogError::TooLarge { .. })), "{refused:?}");
    assert_eq!(append_one(&mut log), 2);
    assert_eq!(read_all(&log, 1), [1, 2]);
}

fn a_batch_of_any_length_is_whole(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    let largest = vec![7; usize::try_from(ENTRY_BYTES_MAX).unwrap()];
    let many: Vec<Vec<u8>> = (0..3000).map(|n: u32| n.to_le_bytes().repeat(100)).collect();
    let batch = [largest.as_slice()].into_iter().chain(many.iter().map(Vec::as_slice));
    assert_eq!(log.append(1, batch.map(|payload| (9, payload))).unwrap(), 1..=3001);
    append_after(&mut log, 3001);
    let log = Log::open(place).unwrap();
    assert_eq!(log.last_seq(), 3002);
    let read: Vec<Entry> = log.read_from(1).unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), 3002);
    assert_eq!(read[0].payload, largest);
    assert!(read[1..].iter().zip(&many).all(|(entry, payload)| entry.payload == *payload));
    // Also from the middle.
    let first = log.read_from(2500).unwrap().next().unwrap().unwrap();
    assert_eq!((first.seq, &first.payload), (2500, &many[2498]));
}

fn append_after(log: &mut Log, seq: u64) {
    assert_eq!(log.append(2, [(1, b"after".as_slice())]).unwrap(), seq + 1..=seq + 1);
}

fn reading_begins_anywhere(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    for length in [1_u64, 4, 1, 7, 2, 1, 10] {
        let first = log.last_seq() + 1;
        // One time for the whole batch, so that the first entry's time is known for all.
        let payloads: Vec<Vec<u8>> = (first..first + length).map(payload).collect();
        log.append(5, payloads.iter().map(|payload| (3, payload.as_slice()))).unwrap();
    }
    for from in 0..=28 {
        let read: Vec<u64> = log.read_from(from).unwrap().map(|entry| entry.unwrap().seq).collect();
        assert_eq!(read, (from.max(1)..=26).collect::<Vec<_>>(), "from {from}");
    }
}

fn the_newest_checkpoint_is_read_and_nothing_out_of_range_is_written(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    assert_eq!(log.latest_checkpoint().unwrap(), None);
    for _ in 0..9 {
        append_one(&mut log);
    }
    for seq in [2_u8, 5, 5, 8] {
        log.write_checkpoint(u64::from(seq), 4, &[seq; 50]).unwrap();
        let expected = Checkpoint { seq: u64::from(seq), version: 4, payload: vec![seq; 50] };
        assert_eq!(log.latest_checkpoint().unwrap(), Some(expected.clone()));
        assert_eq!(Log::open(place).unwrap().latest_checkpoint().unwrap(), Some(expected));
    }
    for seq in [7, 10] {
        let refused = log.write_checkpoint(seq, 4, b"");
        assert!(matches!(refused, Err(LogError::CheckpointOutOfRange { .. })));
    }
}

fn a_large_checkpoint_comes_back(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    append_one(&mut log);
    let large: Vec<u8> =
        (0..20_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    log.write_checkpoint(1, 250, &large).unwrap();
    let read = Log::open(place).unwrap().latest_checkpoint().unwrap().unwrap();
    assert!(read.version == 250 && read.payload == large);
}

fn old_entries_go_once_two_checkpoints_cover_them(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    for _ in 0..30 {
        append_one(&mut log);
    }
    let all: Vec<u64> = (1..=30).collect();
    assert_eq!(log.retain(i64::MAX, 30).unwrap(), 0, "no checkpoint covers anything");
    log.write_checkpoint(20, 1, b"twenty").unwrap();
    assert_eq!(log.retain(i64::MAX, 30).unwrap(), 0, "one may be damaged");
    log.write_checkpoint(25, 1, b"twenty-five").unwrap();
    assert_eq!(log.retain(at_ms(1), 30).unwrap(), 0, "all are young");
    assert_eq!(log.retain(i64::MAX, 1).unwrap(), 0, "all are wanted");
    assert_eq!(read_all(&log, 1), all);

    assert!(log.retain(i64::MAX, 12).unwrap() > 0);
    let first = log.first_seq();
    assert!((2..=12).contains(&first), "{first}");
    assert!(log.retain(i64::MAX, u64::MAX).unwrap() > 0);
    let first = log.first_seq();
    assert!((13..=21).contains(&first), "the older checkpoint is at 20, and {first} is the first");
    assert_eq!(read_all(&log, first), (first..=30).collect::<Vec<_>>());
    let gone = log.read_from(first - 1).err();
    assert!(matches!(gone, Some(LogError::NotKept { .. })), "{gone:?}");
    let log = Log::open(place).unwrap();
    assert_eq!((log.first_seq(), log.last_seq()), (first, 30));
}

fn retention_waits_for_readers_and_not_for_ever(place: &LogLocation) {
    // More messages than servers deliver ahead of a reader.
    const COUNT: u64 = 1500;
    // All entries are old, but none is older than retention waits for a reader.
    let before_ms = i64::try_from(READER_DELAY_MAX.as_millis()).unwrap();
    assert!(at_ms(COUNT) < before_ms);
    let mut log = Log::open(place).unwrap();
    for _ in 0..COUNT {
        append_one(&mut log);
    }
    log.write_checkpoint(COUNT - 20, 1, b"").unwrap();
    log.write_checkpoint(COUNT - 10, 1, b"").unwrap();
    let position = ReadLog::register(&log).unwrap();
    assert_eq!(log.retain(before_ms, u64::MAX).unwrap(), 0, "a reader is registered");
    assert_eq!(log.first_seq(), 1);
    let mut reader = log.read_from(1).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().seq, 1);
    drop(position);
    let begun = Instant::now();
    while log.retain(before_ms, 600).unwrap() == 0 && begun.elapsed() < Duration::from_secs(2) {}
    let seqs: Vec<u64> = reader.map(|entry| entry.unwrap().seq).collect();
    assert_eq!(seqs, (2..=COUNT).collect::<Vec<_>>(), "also those that retention wanted to delete");

    let first = log.first_seq();
    let mut stuck = log.read_from(first).unwrap();
    assert_eq!(stuck.next().unwrap().unwrap().seq, first);
    assert!(
        log.retain(2 * before_ms, u64::MAX).unwrap() > 0,
        "the reader was waited for long enough"
    );
    let error = stuck.find_map(Result::err);
    assert!(matches!(error, Some(LogError::CannotCatchUp { .. })), "{error:?}");
    let first = log.first_seq();
    assert!(first > 1 && read_all(&log, first).last() == Some(&COUNT));
}

fn batches_have_all_entries_and_a_bounded_size(place: &LogLocation) {
    let mut log = Log::open(place).unwrap();
    log.append(at_ms(1), (0..50).map(|_| (1, [7; 10].as_slice()))).unwrap();
    for (limit, longest) in [((7, 1_000), 7), ((100, 35), 4), ((100, 1), 1)] {
        let limit = BatchLimit { items: limit.0, bytes: limit.1 };
        let batches: Vec<_> = log.read_batches(3, limit).unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(Vec::len).max(), Some(longest));
        let seqs: Vec<u64> = batches.iter().flatten().map(|entry| entry.seq).collect();
        assert_eq!(seqs, (3..=50).collect::<Vec<_>>());
    }
}

fn numbers_go_on_after_a_reopening_however_little_is_kept(place: &LogLocation) {
    for round in 1..=5 {
        let mut log = Log::open(place).unwrap();
        for _ in 0..10 {
            append_one(&mut log);
        }
        assert_eq!(log.last_seq(), round * 10);
        log.write_checkpoint(round * 10 - 1, 1, b"").unwrap();
        log.write_checkpoint(round * 10, 1, b"").unwrap();
        log.retain(i64::MAX, u64::MAX).unwrap();
        assert!(log.first_seq() + 12 > log.last_seq());
    }
}

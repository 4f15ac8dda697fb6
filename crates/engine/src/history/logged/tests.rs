use std::fs;
use std::path::Path;
use std::time::Duration;

use archive::Table;
use change_log::LogLocation;
use domain::{EventId, ManualClock};
use market::{Alias, Meaning, Operation};

use super::*;
use crate::archiver::book_at;
use crate::begun::open_archive;
use crate::writer::test_options;
use crate::{Archiver, WorldHandle};

/// A live world that has just started, with an empty archive.
fn past(dir: &Path) -> LoggedPast {
    let options = options(dir);
    open_archive(&options).unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
    WorldHandle::open(options.clone(), clock).unwrap();
    LoggedPast::new(options)
}

fn options(dir: &Path) -> WorldOptions {
    let log = LogLocation::Folder { dir: dir.join("log"), options: change_log::Options::default() };
    let mut options = test_options(log);
    options.history.store = Some(dir.join("archive").into());
    options.notes = Some(dir.into());
    options
}

/// Runs a world for a moment: some names are learned and published. `archive`: whether that is archived too.
fn run(options: &WorldOptions, from: i64, names: &[&str], archive: bool) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(from)));
    let (handle, mut writer) =
        WorldHandle::open(options.clone(), Arc::<ManualClock>::clone(&clock)).unwrap();
    for name in names {
        let meaning = Meaning::Is("Anderson Silva".into());
        let alias = Alias { sport: "mma".into(), feed: None, name: (*name).into(), meaning };
        writer.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
        clock.advance(Duration::from_secs(1));
    }
    clock.advance(Duration::from_secs(60));
    writer.work();
    if archive {
        Archiver::new(options.clone(), &handle).unwrap().copy().unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        fs::copy(item.path(), to.join(item.file_name())).unwrap();
    }
}

#[test]
fn an_entry_of_a_restored_log_is_not_taken_for_the_one_that_was_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (options, from) = (options(dir.path()), 1_700_000_000);
    let [log, backup] = ["log", "backup"].map(|name| dir.path().join(name));
    run(&options, from, &["A"], true);
    copy_folder(&log, &backup);
    run(&options, from + 1000, &["B", "C"], true);
    fs::remove_dir_all(&log).unwrap();
    fs::rename(&backup, &log).unwrap();
    run(&options, from + 2000, &["D", "E", "F"], false);

    let archive = Archive::of(&options.history.archive().unwrap());
    let entry = |lineage, seq: u64| {
        let commit = archive.newest().unwrap();
        archive.entries(&commit, lineage, seq..=seq).next().unwrap().unwrap()
    };
    let lost = archive.newest().unwrap().lineages[0].last_seq - 1;
    let past = LoggedPast::new(options.clone());
    let logged = past.open().unwrap();
    assert_eq!(past.archived_as_in(&*logged, lost).unwrap(), None, "the archive is behind");
    run(&options, from + 3000, &["G"], true);
    let entries = [entry(0, lost), entry(1, lost)];
    assert!(!entries.iter().any(|entry| matches!(entry.change, Change::Cut { .. })));
    assert_ne!(entries[0], entries[1]);

    assert_eq!(past.archived_as_in(&*past.open().unwrap(), lost).unwrap(), Some(1));
    assert_eq!(past.archived(lost, None).unwrap(), Some((1, entries[1].clone())));
    assert_eq!(past.archived(lost, Some(Timestamp::from_secs(from))).unwrap(), None);
    // The log does not reach back to it any more.
    past.read_on().unwrap().begin_after(u64::MAX);
    let commit = archive.newest().unwrap();
    for (lineage, entry) in entries.into_iter().enumerate() {
        let at = entry.at;
        assert_eq!(past.archived(lost, Some(at)).unwrap(), Some((lineage, entry)));
        let own = (&options, Arc::clone(&options.catalogue));
        let expected = book_at(&archive, &commit, (lineage, lost), own).unwrap();
        let book = past.book(Found { seq: lost, at, previous: None, next: None }).unwrap();
        assert_eq!(book.to_image(), expected.to_image(), "lineage {lineage}");
    }
}

/// The end of an event's history is built from where the archive ends.
#[test]
fn where_the_end_of_the_archive_is_damaged_the_log_has_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    // The first part ends with a whole book.
    run(&options, 1_700_000_000, &["A"], true);
    run(&options, 1_700_001_000, &["B"], true);
    run(&options, 1_700_002_000, &["C"], false);
    let archive = Archive::of(&options.history.archive().unwrap());
    let commit = archive.newest().unwrap();
    let end = commit.lineages[0].last_seq;
    let is_internal = |file: &&archive::TableFile| file.table == Table::Internal;
    let place = options.history.archive().unwrap();
    for file in commit.files.iter().filter(is_internal) {
        fs::write(place.folder().unwrap().join(&file.path), "damaged").unwrap();
    }
    let own = (&options, Arc::clone(&options.catalogue));
    assert!(book_at(&archive, &commit, (0, u64::MAX), own).is_err());
    let past = LoggedPast::new(options);
    let looked = past.on_tail(Some((&archive, &commit)), end + 1, &[], |part| Ok(part.next_seq()));
    assert_eq!(looked.unwrap(), end + 2);
    // Neither has it.
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let looked = past.on_tail(Some((&archive, &commit)), end + 1, &[], |part| Ok(part.next_seq()));
    assert!(looked.is_err());
}

/// While the archive cannot be written, they grow with every publication.
#[test]
fn ends_of_histories_are_kept_within_half_of_the_memory_however_they_grow() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    run(&options, 1_700_000_000, &["A", "B", "C"], false);
    let read = |past: &LoggedPast, event: u64, seq: u64| {
        past.on_tail(None, seq, &[EventId::from_number(event)], |_| Ok(())).unwrap();
        past.tail.bytes()
    };
    let past = LoggedPast::new(options.clone());
    let last = logged_from(&*past.open().unwrap(), 1).unwrap().count();
    let last = u64::try_from(last).unwrap();
    let all: Vec<usize> = (1..=last).map(|seq| read(&past, 1, seq)).collect();
    let whole = all[all.len() - 1];
    // Each step alone is small.
    options.history.memory_max = 2 * (whole - 1);
    let past = LoggedPast::new(options.clone());
    let kept: Vec<usize> = (1..=last).map(|seq| read(&past, 1, seq)).collect();
    let fits = |bytes: &usize| if *bytes < whole { *bytes } else { 0 };
    assert_eq!(kept, all.iter().map(fits).collect::<Vec<_>>());
    assert!(kept.iter().any(|bytes| *bytes > 0), "{kept:?}");
    // The limit is for all of them together.
    options.history.memory_max = 4 * whole;
    let past = LoggedPast::new(options);
    let kept = [1, 2, 3].map(|event| read(&past, event, last));
    assert_eq!(kept, [whole, 2 * whole, 2 * whole]);
}

#[test]
fn however_many_ask_it_is_looked_once_in_a_while_what_the_archive_has() {
    let dir = tempfile::tempdir().unwrap();
    let past = past(dir.path());
    past.look_again().unwrap();
    let (_, base) = past.looked.lock().unwrap().unwrap();
    let later = Instant::now() + Duration::from_secs(3600);
    *past.looked.lock().unwrap() = Some((later, base));
    fs::remove_dir_all(dir.path().join("archive")).unwrap();
    past.look_again().unwrap();
    assert!(!past.index().archived.failed, "it was not looked again");
    past.note_news();
    past.look_again().unwrap();
    past.reach().expect("what was read is still known");
    assert!(past.index().archived.failed);
}

#[test]
fn where_the_archive_was_never_read_nothing_is_said_of_where_history_begins() {
    let dir = tempfile::tempdir().unwrap();
    let past = past(dir.path());
    past.begun.note();
    fs::remove_dir_all(dir.path().join("archive")).unwrap();
    let is_unreadable = |error: HistoryError| matches!(error, HistoryError::Unreadable(_));
    past.look_again().unwrap();
    assert!(past.reach().is_err_and(is_unreadable));
    let last = past.index().cuts.last().copied().unwrap();
    assert!(past.before(last.seq, last.at).is_err_and(is_unreadable));
    assert!(past.find(last.at, last.at).is_err_and(is_unreadable));
    // A new service has not started its archive yet.
    fs::remove_file(dir.path().join("archive-begun")).unwrap();
    *past.looked.lock().unwrap() = None;
    past.look_again().unwrap();
    assert_eq!(past.reach().unwrap().from, last.at);
    assert_eq!(past.before(last.seq, last.at).unwrap(), None);
}

/// Without an archive, entries that the log dropped are gone, however often a client asks.
#[test]
fn what_only_a_shortened_log_had_is_gone_and_not_unreadable() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    run(&options, 1_700_000_000, &["A"], false);
    options.history.store = None;
    let past = LoggedPast::new(options);
    let base = past.read_on().unwrap().read_base;
    // When the archive would have been read, the log began elsewhere.
    past.index().read_base = base.map(|base| base + 1);
    let found = past.find_entry(0).unwrap();
    assert!(matches!(found, EntryFound::Archived { next: None | Some(_) }), "{found:?}");
    assert_eq!(past.find_archived(0, None).unwrap().map(|found| found.seq), None);
}

/// The archive is not read before the log, and is behind the log's only books.
#[test]
fn what_a_short_log_has_after_the_archive_is_found_however_late_that_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = change_log::Options { segment_bytes: 1, ..Default::default() };
    let log = LogLocation::Folder { dir: dir.path().join("log"), options: log };
    let retention = Duration::from_secs(1);
    let options = WorldOptions { log, log_retention: retention, ..options(dir.path()) };
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
    let (handle, mut writer) =
        WorldHandle::open(options.clone(), Arc::<ManualClock>::clone(&clock)).unwrap();
    let mut publish = |after_s: u64| {
        clock.advance(Duration::from_secs(after_s));
        writer.work();
        let snapshot = &handle.published().snapshot;
        (snapshot.seq, snapshot.cut_at)
    };
    let archived = [publish(60), publish(60)];
    Archiver::new(options.clone(), &handle).unwrap().copy().unwrap();
    let logged = [publish(60), publish(60)];
    // Checkpoints.
    let later = [publish(3600), publish(3600), publish(3600)];

    let past = LoggedPast::new(options);
    let log = past.open().unwrap();
    assert!(log.first_seq() > 1 && log.oldest_checkpoint() > Some(logged[1].0));
    drop(past.read_log_on().unwrap());
    let current = later[2].1;
    let seq_of = |found: Found| found.seq;
    assert_eq!(past.find(logged[0].1, current).map(seq_of).ok(), None, "it may be archived");
    past.look_again().unwrap();
    let known = past.find_at_once(logged[0].1, current).map(seq_of);
    assert_eq!(known.filter(|seq| *seq != logged[0].0), None, "another publication");
    let all = [&archived[..], &logged, &later[..2]].concat();
    for (at, next) in all.iter().enumerate().skip(1) {
        let found = past.find(next.1, current).unwrap();
        assert_eq!((found.seq, found.previous), (next.0, Some(all[at - 1].1)));
        past.book(found).unwrap();
    }
    // The same if the clock was set back since.
    past.note_cut(current);
    past.note_cut(current.minus(Duration::from_secs(1)));
    assert_eq!(past.find_at_once(logged[0].1, current), None);
    assert_eq!(past.find(logged[0].1, current).map(seq_of).ok(), Some(logged[0].0));
    assert_eq!(past.find_at_once(logged[0].1, current).map(seq_of), Some(logged[0].0));
}

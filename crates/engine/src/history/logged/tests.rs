use std::fs;

use change_log::LogLocation;
use domain::ManualClock;

use super::*;
use crate::WorldHandle;
use crate::begun::open_archive;
use crate::writer::test_options;

/// A live world that has just begun, with an archive that has nothing yet.
fn past(dir: &std::path::Path) -> LoggedPast {
    let log = LogLocation::Folder { dir: dir.join("log"), options: change_log::Options::default() };
    let mut options = test_options(log);
    options.history.store = Some(dir.join("archive").into());
    options.notes = Some(dir.into());
    open_archive(&options).unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
    WorldHandle::open(options.clone(), clock).unwrap();
    LoggedPast::new(options)
}

#[test]
fn however_many_ask_it_is_looked_once_in_a_while_what_the_archive_has() {
    let dir = tempfile::tempdir().unwrap();
    let past = past(dir.path());
    past.reach().unwrap();
    let (_, base) = past.looked.lock().unwrap().unwrap();
    let later = Instant::now() + Duration::from_secs(3600);
    *past.looked.lock().unwrap() = Some((later, base));
    fs::remove_dir_all(dir.path().join("archive")).unwrap();
    past.reach().unwrap();
    assert!(!past.index().archived.failed, "it was not looked again");
    past.note_news();
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
    assert!(past.reach().is_err_and(is_unreadable));
    let last = past.index().cuts.last().copied().unwrap();
    assert!(past.before(last.seq, last.at).is_err_and(is_unreadable));
    assert!(past.find(last.at, last.at).is_err_and(is_unreadable));
    // A new service has not begun it yet.
    fs::remove_file(dir.path().join("archive-begun")).unwrap();
    *past.looked.lock().unwrap() = None;
    assert_eq!(past.reach().unwrap().from, last.at);
    assert_eq!(past.before(last.seq, last.at).unwrap(), None);
}

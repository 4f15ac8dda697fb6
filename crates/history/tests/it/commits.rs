//! Commits: atomic, and by one of several writers.

use std::fs;
use std::path::{Path, PathBuf};

use archive::{Archive, ArchiveError, Fault, Outcome, Table};
use market::Change;

use crate::log::{LOG, archive_log, assert_holds, checksum, new_book, next_part};

/// The log up to its `n`th publication.
fn until_cut(n: usize) -> &'static [archive::Entry] {
    let cuts =
        LOG.iter().enumerate().filter(|(_, entry)| matches!(entry.change, Change::Cut { .. }));
    let end = cuts.map(|(at, _)| at + 1).nth(n - 1).unwrap();
    &LOG[..end]
}

#[test]
fn what_was_archived_comes_back_equal_whatever_the_parts() {
    for entries in [1, 1000, usize::MAX] {
        let dir = tempfile::tempdir().unwrap();
        let archive = archive_log(&dir.path().join("a/live"), &LOG, entries);
        assert_holds(&archive, &LOG);
        let commit = archive.newest().unwrap();
        let publications = archive.publications(&commit).unwrap();
        assert_eq!(publications.len(), 6);
        assert_eq!(commit.lineages[0].publications, 6);
        let list: archive::Commit =
            serde_json::from_slice(&fs::read(dir.path().join("a/live/files.json")).unwrap())
                .unwrap();
        assert_eq!(list, commit);
    }
}

#[test]
fn of_two_writers_one_loses_and_goes_on_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), until_cut(2), 1);
    let base = archive.newest().unwrap();
    let one = next_part(&archive, &base, until_cut(3), 1).unwrap();
    let other = next_part(&archive, &base, until_cut(4), usize::MAX).unwrap();
    assert_eq!(one.commit(&archive, &base).unwrap().1, Outcome::Committed);
    assert_eq!(other.commit(&archive, &base).unwrap().1, Outcome::Lost);
    assert_holds(&archive, until_cut(3));
    assert_holds(&archive_log(dir.path(), &LOG, 1), &LOG);
}

#[test]
fn a_writer_that_slept_while_its_number_was_used_and_deleted_has_lost() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), until_cut(1), 1);
    let base = archive.newest().unwrap();
    let asleep = next_part(&archive, &base, until_cut(2), 1).unwrap();
    archive_log(dir.path(), until_cut(3), 1);
    fs::remove_file(dir.path().join("commit/00000002.json")).unwrap();
    assert_eq!(asleep.commit(&archive, &base).unwrap().1, Outcome::Lost);
    assert_holds(&archive, until_cut(3));
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        match item.file_type().unwrap().is_dir() {
            true => copy(&item.path(), &target),
            false => drop(fs::copy(item.path(), target).unwrap()),
        }
    }
}

/// A commit writes files one after the other. If it is killed after any of them, or in the middle of one, the archive
/// is in the state before or after, and can be continued.
#[test]
fn a_writer_that_is_killed_at_any_step_leaves_an_archive_that_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    archive_log(&before, until_cut(2), usize::MAX);
    copy(&before, &after);
    let archive = Archive::at(&after);
    let base = archive.newest().unwrap();
    let part = next_part(&archive, &base, until_cut(3), 1).unwrap();
    let (next, ..) = part.commit(&archive, &base).unwrap();
    let mut steps: Vec<PathBuf> = next
        .paths()
        .filter(|path| !base.paths().any(|held| held == *path))
        .map(Into::into)
        .collect();
    assert!(steps.len() > 5, "{steps:?}");
    steps.push(format!("commit/{:08}.json", next.commit).into());
    steps.push("files.json".into());
    let committed = steps.len() - 2;
    for killed in 0..=steps.len() {
        for torn in [false, true] {
            let root = dir.path().join(format!("killed-{killed}-{torn}"));
            copy(&before, &root);
            for (at, step) in steps.iter().enumerate().take(killed + usize::from(torn)) {
                let bytes = fs::read(after.join(step)).unwrap();
                let target = root.join(step);
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                // Links and renames are atomic.
                let (torn, whole) = (at == killed, at >= committed);
                match (torn, whole) {
                    (true, true) => fs::write(target.with_extension("tmp"), &bytes[..9]).unwrap(),
                    (true, false) => fs::write(target, &bytes[..bytes.len() / 2]).unwrap(),
                    (false, _) => fs::write(target, bytes).unwrap(),
                }
            }
            let archive = Archive::at(&root);
            let holds = if killed > committed { 3 } else { 2 };
            assert_holds(&archive, until_cut(holds));
            assert_holds(&archive_log(&root, until_cut(4), 1), until_cut(4));
        }
    }
}

#[test]
fn damage_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), until_cut(3), 1);
    let commit = archive.newest().unwrap();
    let odds = commit.files.iter().find(|file| file.table == Table::Odds).unwrap();
    let path = dir.path().join(&odds.path);
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let faults = archive.verify(&commit).faults;
    assert!(faults[0].to_string().contains(&odds.path), "{faults:?}");
    fs::write(&path, whole).unwrap();
    assert!(archive.verify(&commit).faults.is_empty());

    // A file that is no longer named: its entries are missing.
    let mut less = commit.clone();
    less.files.retain(|file| file.table != Table::Reads);
    let faults = archive.verify(&less).faults;
    assert!(matches!(faults[0], Fault::Missing { .. }), "{faults:?}");
    // A file of scores, which entries are not read back from.
    let mut less = commit.clone();
    less.files.retain(|file| file.table != Table::Scores);
    let faults = archive.verify(&less).faults;
    assert!(matches!(faults[..], [Fault::MissingScore { .. }]), "{faults:?}");
    // A file that is named twice, or is in the archive again under another name.
    for table in Table::ALL {
        let Some(file) = commit.files.iter().find(|file| file.table == table) else {
            assert_eq!(table, Table::Closing, "the log has all the others");
            continue;
        };
        let mut more = commit.clone();
        more.files.push(file.clone());
        let faults = archive.verify(&more).faults;
        assert!(matches!(faults[0], Fault::NamedTwice { .. }), "{table:?}: {faults:?}");
        let copy = archive::TableFile { path: format!("{}.copy", file.path), ..file.clone() };
        fs::copy(dir.path().join(&file.path), dir.path().join(&copy.path)).unwrap();
        more.files.pop();
        more.files.push(copy.clone());
        let faults = archive.verify(&more).faults;
        let twice = if let Fault::RowTwice { path, .. } = &faults[0] {
            [&file.path, &copy.path].contains(&path)
        } else {
            let entry = matches!(&faults[0], Fault::File(ArchiveError::Entry { .. }));
            entry && table.key() != "events"
        };
        assert!(twice, "{table:?}: {faults:?}");
        // Rows that differ from those of the commit.
        let mut other = commit.clone();
        let at = other.files.iter().position(|other| other.path == file.path).unwrap();
        other.files[at].rows += 1;
        let faults = archive.verify(&other).faults;
        assert!(matches!(faults[..], [Fault::Rows { .. }]), "{table:?}: {faults:?}");
    }
}

#[test]
fn an_archive_of_a_newer_program_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), until_cut(1), 1);
    let mut commit = archive.newest().unwrap();
    commit.commit += 1;
    commit.schema += 1;
    archive.commit(&commit).unwrap();
    assert!(matches!(archive.newest(), Err(ArchiveError::Newer(2))));
}

#[test]
fn entries_that_the_log_has_lost_are_known_to_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::create(dir.path()).unwrap();
    let commit = archive.newest().unwrap();
    let mut part = archive::Part::founding(&commit, new_book(), 0);
    let log = until_cut(2);
    for entry in log.iter().filter(|entry| !(5..=8).contains(&entry.seq)) {
        part.push(entry, checksum(entry));
    }
    let (commit, ..) = part.commit(&archive, &commit).unwrap();
    assert_eq!(commit.lineages[0].missing, [(5, 8)]);
    assert!(archive.verify(&commit).faults.is_empty());
}

/// Files that no commit names are deleted after a time; named ones stay.
#[test]
fn what_is_left_over_is_deleted_later() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), until_cut(2), 1);
    let commit = archive.newest().unwrap();
    let left = archive.put("odds/sport=mma/date=2026-01-01/left", ".parquet", b"left").unwrap();
    assert_eq!(archive.clean(&commit).unwrap(), 0, "it may be of a commit to come");
    let path = dir.path().join(left.path);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let newest = fs::metadata(dir.path().join("commit/00000002.json")).unwrap().modified().unwrap();
    file.set_modified(newest - std::time::Duration::from_secs(3601)).unwrap();
    assert_eq!(archive.clean(&commit).unwrap(), 1);
    assert!(!path.exists());
    assert_holds(&archive, until_cut(2));
}

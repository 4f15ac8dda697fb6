//! Merged files, and files removed past retention: nothing changes for readers.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive::{Archive, Commit, Compact, Entry, Outcome, Part, Table, TableFile};
use domain::{Status, Timestamp};
use market::{Book, Change};

use crate::commits::copy;
use crate::log::{CATALOGUE, DAYS, FROM, archive_log, assert_holds, checksum, new_book, next_part};
use crate::rows::rows;
use crate::shown::{Log, shown_of};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Merges what is due, until there is nothing left to do.
pub(crate) fn compact(archive: &Archive, which: &Compact, oldest: Timestamp) {
    loop {
        let commit = archive.newest().unwrap();
        let Some(compacted) = archive.compact(&commit, which, oldest).unwrap() else { return };
        assert_eq!(compacted.outcome, Outcome::Committed);
        assert_eq!(compacted.commit, archive.newest().unwrap());
    }
}

/// Numbers of files in each folder of a date.
fn files_of(commit: &Commit) -> BTreeMap<String, Vec<usize>> {
    let mut folders: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for file in &commit.files {
        let folder = file.path.rsplit_once('/').unwrap().0;
        *folders.entry((file.date().to_owned(), folder)).or_default() += 1;
    }
    let mut dates: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for ((date, _), files) in folders {
        dates.entry(date).or_default().push(files);
    }
    dates
}

fn sorted_rows(archive: &Archive, root: &Path) -> Vec<Vec<String>> {
    let of_table = |table: Table| {
        let mut rows: Vec<String> =
            rows(archive, root, table).iter().map(|row| format!("{row:?}")).collect();
        rows.sort();
        rows
    };
    Table::ALL.map(of_table).into()
}

fn age(path: &Path, by: Duration) {
    let file = fs::File::options().append(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_modified(modified - by).unwrap();
}

fn age_all(root: &Path, commit: &Commit, by: Duration) {
    commit.paths().for_each(|path| age(&root.join(path), by));
}

#[test]
fn days_that_are_over_become_one_file_of_each_table_and_sport() {
    for group_rows in [7, 100_000] {
        let dir = tempfile::tempdir().unwrap();
        let archive = archive_log(dir.path(), &DAYS, 1).with_group_rows(group_rows);
        let before = sorted_rows(&archive, dir.path());
        let [first, second, third]: [Vec<usize>; 3] = files_of(&archive.newest().unwrap())
            .into_values()
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        assert!(first.iter().all(|files| *files == 1), "{first:?}");
        assert!(second.contains(&3) && third.contains(&2), "{second:?} {third:?}");

        let before_due = archive.newest().unwrap();
        compact(&archive, &Compact::Due, FROM);
        assert_holds(&archive, &DAYS);
        let (first_day, second_day) = {
            let mut days = files_of(&archive.newest().unwrap()).into_keys();
            (days.next().unwrap(), days.next().unwrap())
        };
        assert_eq!(before_due.final_day(), Some(&*first_day));
        assert_eq!(archive.newest().unwrap().final_day(), Some(&*second_day), "but not today");
        let due: Vec<_> = files_of(&archive.newest().unwrap()).into_values().collect();
        assert!(due[1].iter().all(|files| *files == 1), "{due:?}");
        assert_eq!(due[2], third, "today goes on");

        let date = files_of(&archive.newest().unwrap()).into_keys().nth(2).unwrap();
        compact(&archive, &Compact::Before(date), FROM);
        assert_eq!(files_of(&archive.newest().unwrap()).into_values().nth(2).unwrap(), third);
        compact(&archive, &Compact::All, FROM);
        assert_holds(&archive, &DAYS);
        let all = files_of(&archive.newest().unwrap());
        assert!(all.values().flatten().all(|files| *files == 1), "{all:?}");
        assert_eq!(sorted_rows(&archive, dir.path()), before);

        // Some entries of the middle are read without the rest.
        let commit = archive.newest().unwrap();
        let read: Vec<Entry> =
            archive.entries(&commit, 0, 100..=200).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, DAYS[99..200]);
    }
}

/// Replaced files stay for an hour, however old they are, and are then deleted.
#[test]
fn whoever_reads_by_an_older_commit_finds_its_files_for_another_hour() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let before = archive.newest().unwrap();
    age_all(dir.path(), &before, DAY);
    compact(&archive, &Compact::All, FROM);
    let after = archive.newest().unwrap();
    assert_eq!(archive.clean(&after).unwrap(), 0);
    // By another process, which has checked none of them yet.
    let reader = Archive::at(dir.path());
    assert!(reader.verify(&before).faults.is_empty());
    let read: Vec<Entry> =
        reader.entries(&before, 0, 1..=u64::MAX).collect::<Result<_, _>>().unwrap();
    assert_eq!(read, *DAYS);

    let replaced: Vec<&str> =
        before.paths().filter(|path| !after.paths().any(|kept| kept == *path)).collect();
    assert!(replaced.len() > 20, "{replaced:?}");
    replaced.iter().for_each(|path| age(&dir.path().join(path), Duration::from_secs(3700)));
    assert_eq!(archive.clean(&after).unwrap(), replaced.len());
    assert!(replaced.iter().all(|path| !dir.path().join(path).exists()));
    assert_holds(&archive, &DAYS);
    // A copy of an archive has only the files of its commit.
    let copied = dir.path().join("copy");
    assert_eq!(archive.copy_to(&copied).unwrap().files, after.paths().count());
    assert_holds(&Archive::at(&copied), &DAYS);
}

/// Two fights over three days, with six publications: one, three and two on a day.
pub(crate) fn small_log() -> Vec<Entry> {
    log_of(6)
}

/// The same with another number of publications, three on each further day.
fn log_of(publications: u32) -> Vec<Entry> {
    let mut log = Log(vec![]);
    log.list(1, "fanduel", "Ann");
    log.list(2, "fanduel", "Eve");
    for n in 0..publications {
        log.quote(1, "fanduel", 110 + u64::from(n));
        log.quote(2, "draftkings", 120 + u64::from(n));
        log.score(1, Status::Live);
        log.publish_at(FROM.plus(Duration::from_secs(8 * 3600) * n));
    }
    log.0
}

/// Killed between any two steps, or in the middle of one, the archive is whole, can be continued, and can be merged
/// again.
#[test]
fn a_process_that_is_killed_at_any_step_of_a_compaction_changes_nothing() {
    let log = small_log();
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    let held = log.len() - 4;
    let base = archive_log(&before, &log[..held], 1).newest().unwrap();
    copy(&before, &after);
    let archive = Archive::at(&after);
    let compacted = archive.compact(&base, &Compact::All, FROM).unwrap().unwrap();
    assert!(archive.compact(&compacted.commit, &Compact::All, FROM).unwrap().is_none());
    let next = compacted.commit;
    let is_new = |path: &&str| !base.paths().any(|held| held == *path);
    let is_old = |path: &&str| !next.paths().any(|kept| kept == *path);
    let mut steps: Vec<(String, bool)> =
        next.paths().filter(is_new).map(|path| (path.to_owned(), false)).collect();
    assert!(steps.len() > 3, "{steps:?}");
    // These are linked or renamed, which is atomic.
    steps.push((format!("commit/{:08}.json", next.commit), true));
    steps.push(("files.json".to_owned(), true));
    let replaced: Vec<&str> = base.paths().filter(is_old).collect();
    assert!(replaced.len() > 8, "{replaced:?}");
    for killed in 0..=steps.len() + replaced.len() {
        // A deletion is atomic.
        for torn in [false, true].into_iter().take(if killed < steps.len() { 2 } else { 1 }) {
            let root = dir.path().join(format!("killed-{killed}-{torn}"));
            copy(&before, &root);
            for (at, (path, linked)) in steps.iter().enumerate() {
                let bytes = fs::read(after.join(path)).unwrap();
                let target = root.join(path);
                match (at.cmp(&killed), torn, linked) {
                    (Ordering::Less, ..) => fs::write(target, bytes).unwrap(),
                    (Ordering::Equal, true, true) => {
                        fs::write(target.with_extension("tmp"), &bytes[..9]).unwrap();
                    }
                    (Ordering::Equal, true, false) => {
                        fs::write(target, &bytes[..bytes.len() / 2]).unwrap();
                    }
                    (Ordering::Equal | Ordering::Greater, ..) => {}
                }
            }
            for path in replaced.iter().take(killed.saturating_sub(steps.len())) {
                fs::remove_file(root.join(path)).unwrap();
            }
            let archive = Archive::create(&root).unwrap();
            assert_holds(&archive, &log[..held]);
            let newest = archive.newest().unwrap().commit;
            assert_eq!(newest, base.commit + u64::from(killed + 1 >= steps.len()));
            compact(&archive, &Compact::All, FROM);
            assert_holds(&archive, &log[..held]);
            assert_holds(&archive_log(&root, &log, 1), &log);
            fs::remove_dir_all(&root).unwrap();
        }
    }
}

#[test]
fn of_a_part_and_a_compaction_at_the_same_time_one_loses() {
    let dir = tempfile::tempdir().unwrap();
    let held = DAYS.len() - 1;
    let archive = archive_log(dir.path(), &DAYS[..held], 1);
    let base = archive.newest().unwrap();
    let part = next_part(&archive, &base, &DAYS, 1).unwrap();
    let compacted = archive.compact(&base, &Compact::All, FROM).unwrap().unwrap();
    assert_eq!(compacted.outcome, Outcome::Committed);
    assert_eq!(part.commit(&archive, &base).unwrap().1, Outcome::Lost);
    let late = archive.compact(&base, &Compact::All, FROM).unwrap().unwrap();
    assert_eq!(late.outcome, Outcome::Lost);
    archive_log(dir.path(), &DAYS, 1);
    assert_holds(&archive, &DAYS);
}

#[test]
fn a_damaged_file_stays_and_the_others_do_not_wait_for_it() {
    for is_gone in [false, true] {
        check_damaged(is_gone);
    }
}

fn check_damaged(is_gone: bool) {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let commit = archive.newest().unwrap();
    let epochs = commit.files.iter().filter(|file| file.table == Table::Epochs);
    let damaged = epochs.max_by_key(|file| file.first_seq).unwrap();
    let path = dir.path().join(&damaged.path);
    let whole = fs::read(&path).unwrap();
    match is_gone {
        true => fs::remove_file(&path).unwrap(),
        false => fs::write(&path, "damaged").unwrap(),
    }
    let archive = Archive::at(dir.path());
    let compacted = archive.compact(&commit, &Compact::All, FROM).unwrap().unwrap();
    assert!(compacted.merged > 10);
    assert!(compacted.commit.files.contains(damaged));
    let error = archive.compact(&compacted.commit, &Compact::All, FROM).unwrap_err();
    assert!(error.is_damage(), "{error}");
    fs::write(&path, whole).unwrap();
    compact(&archive, &Compact::All, FROM);
    assert_holds(&archive, &DAYS);
}

#[test]
fn a_day_that_cannot_be_merged_does_not_keep_later_days_from_being_final() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &log_of(12), 1);
    let commit = archive.newest().unwrap();
    let days: Vec<String> = files_of(&commit).into_keys().collect();
    assert_eq!(days.len(), 5);
    assert_eq!(commit.final_day(), Some(&*days[0]));
    let of_second_day = |file: &&TableFile| file.date() == days[1] && file.table == Table::Epochs;
    let damaged = commit.files.iter().find(of_second_day).unwrap();
    fs::write(dir.path().join(&damaged.path), "damaged").unwrap();
    let archive = Archive::at(dir.path());
    let compacted = archive.compact(&commit, &Compact::Due, FROM).unwrap().unwrap();
    assert_eq!(compacted.commit.final_day(), Some(&*days[3]), "the last one that is over");
}

/// Replaces a file by one that nobody may access in this way, not even the superuser, whom file modes do not stop.
#[cfg(target_os = "linux")]
fn refuse(path: &Path, by: &str) {
    fs::remove_file(path).unwrap();
    std::os::unix::fs::symlink(by, path).unwrap();
}

/// For example one of another user, with mode 0600.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_may_not_be_read_stays_and_the_others_do_not_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let commit = archive.newest().unwrap();
    let epochs = commit.files.iter().filter(|file| file.table == Table::Epochs);
    let refused = epochs.max_by_key(|file| file.first_seq).unwrap();
    let path = dir.path().join(&refused.path);
    let whole = fs::read(&path).unwrap();
    refuse(&path, "/proc/sys/vm/compact_memory");
    let archive = Archive::at(dir.path());
    let compacted = archive.compact(&commit, &Compact::All, FROM).unwrap().unwrap();
    assert!(compacted.merged > 10);
    assert!(compacted.commit.files.contains(refused));
    archive.compact(&compacted.commit, &Compact::All, FROM).unwrap_err();
    fs::remove_file(&path).unwrap();
    fs::write(&path, whole).unwrap();
    compact(&archive, &Compact::All, FROM);
    assert_holds(&archive, &DAYS);
}

/// For example those of another user, with mode 0644.
#[test]
#[cfg(target_os = "linux")]
fn replaced_files_whose_times_may_not_be_set_stay_for_an_hour_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let before = archive.newest().unwrap();
    let oldest = archive.publications(&before).unwrap()[2].published_at;
    age_all(dir.path(), &before, DAY);
    let odds = before.files.iter().filter(|file| file.table == Table::Odds);
    let refused = odds.min_by_key(|file| file.first_seq).unwrap();
    refuse(&dir.path().join(&refused.path), "/proc/sys/kernel/ostype");
    compact(&archive, &Compact::Due, oldest);
    let after = archive.newest().unwrap();
    assert!(!after.files.contains(refused));
    let is_replaced = |path: &&str| !after.paths().any(|kept| kept == *path);
    let replaced = before.paths().filter(is_replaced).filter(|path| *path != refused.path);
    let replaced: Vec<_> = replaced.map(|path| dir.path().join(path)).collect();
    assert!(replaced.len() > 10, "{replaced:?}");
    // Some times may have been set before the refusal.
    replaced.iter().for_each(|path| age(path, DAY));
    assert_eq!(archive.clean(&after).unwrap(), 0);
    assert!(replaced.iter().all(|path| path.exists()));

    let lists = fs::read_dir(dir.path().join("commit")).unwrap().map(|item| item.unwrap().path());
    let lists: Vec<_> = lists.filter(|path| path.extension().unwrap() == "replaced").collect();
    assert_eq!(lists.len(), 1);
    age(&lists[0], Duration::from_secs(3700));
    archive.clean(&after).unwrap();
    assert!(!replaced.iter().chain(&lists).any(|path| path.exists()));
    assert!(archive.verify(&after).faults.is_empty());
}

/// For example one in a folder of another user. The superuser may delete it.
#[test]
#[cfg(unix)]
fn a_file_that_may_not_be_deleted_does_not_keep_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &small_log(), 1);
    let put = |name: &str| {
        let blob = archive.put(name, ".parquet", b"left").unwrap();
        let path = dir.path().join(blob.path);
        age(&path, DAY);
        path
    };
    let left = put("odds/sport=mma/date=2026-01-01/left");
    let other = put("odds/sport=mma/date=2026-01-02/left");
    let folder = left.parent().unwrap();
    let set_mode = |mode| {
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(0o555);
    let may_write = fs::write(folder.join("probe"), "").is_ok();
    let deleted = archive.clean(&archive.newest().unwrap()).unwrap();
    assert_eq!(deleted, 1 + usize::from(may_write));
    assert!(!other.exists());
    set_mode(0o755);
}

#[test]
fn a_file_that_is_missing_does_not_keep_what_is_past_retention() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    compact(&archive, &Compact::All, FROM);
    let commit = archive.newest().unwrap();
    let first = commit.files.iter().min_by_key(|file| (file.first_seq, file.table != Table::Odds));
    fs::remove_file(dir.path().join(&first.unwrap().path)).unwrap();
    let oldest = archive.publications(&commit).unwrap()[2].published_at;
    compact(&archive, &Compact::Due, oldest);
    assert!(archive.newest().unwrap().files.len() < commit.files.len());
}

/// Short parts do not accumulate during a day.
#[test]
fn many_small_files_of_today_are_put_together() {
    let dir = tempfile::tempdir().unwrap();
    let second = |seq: u64| FROM.plus(Duration::from_secs(seq));
    let log: Vec<Entry> = (1..=70)
        .map(|seq| Entry { seq, at: second(seq), change: Change::Cut { at: second(seq) } })
        .collect();
    let files = |commit: &Commit| commit.files.len();
    let archive = archive_log(dir.path(), &log[..63], 1);
    compact(&archive, &Compact::Due, FROM);
    assert_eq!(files(&archive.newest().unwrap()), 63);
    archive_log(dir.path(), &log, 1);
    compact(&archive, &Compact::Due, FROM);
    assert_eq!(files(&archive.newest().unwrap()), 1);
    assert_holds(&archive, &log);
}

/// The book of an entry, from the archive.
fn book_at(archive: &Archive, commit: &Commit, seq: u64) -> Book {
    let image = commit.image_up_to(0, seq).unwrap();
    let bytes = archive.image(image).unwrap();
    let mut book = Book::from_image(image.version, &bytes, Arc::clone(&CATALOGUE)).unwrap();
    for entry in archive.entries(commit, 0, image.seq + 1..=seq) {
        let entry = entry.unwrap();
        book.absorb(&entry.change, entry.at);
    }
    book
}

#[test]
fn what_is_past_retention_goes_and_every_later_publication_can_be_made() {
    for compacted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let archive = archive_log(dir.path(), &DAYS, 1);
        if compacted {
            compact(&archive, &Compact::All, FROM);
        }
        let all = archive.publications(&archive.newest().unwrap()).unwrap();
        let before = archive.newest().unwrap();
        // In the middle of the second day: that day stays as a whole.
        let oldest = all[2].published_at;
        compact(&archive, &Compact::Due, oldest);
        let commit = archive.newest().unwrap();
        assert!(commit.files.len() < before.files.len());
        assert!(archive.verify(&commit).faults.is_empty());
        assert_eq!(files_of(&commit).len(), 2, "the first day is gone");
        assert_eq!(archive.publications(&commit).unwrap(), all[1..]);
        assert_eq!(commit.lineages[0].publications, 5);
        let mut book = new_book();
        let mut wanted = all[1..].iter();
        for entry in DAYS.iter() {
            book.absorb(&entry.change, entry.at);
            if wanted.as_slice().first().is_some_and(|next| next.seq == entry.seq) {
                wanted.next();
                assert_eq!(shown_of(&book_at(&archive, &commit, entry.seq)), shown_of(&book));
            }
        }
        assert_eq!(wanted.len(), 0);
        // There is nothing more to do, and the archive can be continued.
        assert!(archive.compact(&commit, &Compact::Due, oldest).unwrap().is_none());
        assert!(next_part(&archive, &commit, &DAYS, 1).is_none());
        // Of the older books only the last is needed.
        compact(&archive, &Compact::Due, all[5].published_at);
        let later = archive.newest().unwrap();
        assert_eq!((commit.images.len(), later.images.len()), (6, 3));
        assert!(archive.verify(&later).faults.is_empty());
        assert_eq!(archive.publications(&later).unwrap(), all[4..]);
    }
}

#[test]
fn a_log_of_long_ago_goes_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let commit = archive.newest().unwrap();
    let mut part = Part::founding(&commit, new_book(), 0);
    let later = |at: Timestamp| at.plus(400 * DAY);
    let mut again = DAYS.clone();
    for entry in &mut again {
        if let Change::Cut { at } = &mut entry.change {
            *at = later(*at);
        }
    }
    again.iter().for_each(|entry| part.push(entry, checksum(entry)));
    part.commit(&archive, &commit).unwrap();
    compact(&archive, &Compact::Due, later(FROM).minus(DAY));
    let commit = archive.newest().unwrap();
    assert!(archive.verify(&commit).faults.is_empty());
    assert!(commit.files.iter().all(|file| file.lineage == 1));
    assert!(commit.images.iter().all(|image| image.lineage == 1));
    assert_eq!(commit.lineages[0].publications, 0);
    let read: Vec<Entry> =
        archive.entries(&commit, 1, 1..=u64::MAX).collect::<Result<_, _>>().unwrap();
    assert_eq!(read, again);
    assert_eq!(archive.entries(&commit, 0, 1..=u64::MAX).count(), 0);
}

/// H17: one that was suspended before it deleted anything, while another continued for hours.
#[test]
fn an_outdated_writer_deletes_nothing_that_its_successor_has_added() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let outdated = archive.newest().unwrap();
    compact(&archive, &Compact::Due, FROM);
    let newest = archive.newest().unwrap();
    age_all(dir.path(), &newest, 3 * DAY);
    assert_eq!(archive.clean(&outdated).unwrap(), 0);
    assert!(newest.paths().all(|path| dir.path().join(path).exists()));
}

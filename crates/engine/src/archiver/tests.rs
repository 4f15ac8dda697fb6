use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use change_log::LogLocation;
use domain::{Clock as _, ManualClock, Timestamp};
use market::{Alias, Ids, Meaning, Operation};

use super::room::{has_room, leaves_room};
use super::*;
use tokio::time::timeout;

use crate::Writer;
use crate::history::HistoryError;
use crate::writer::test_options;

const EPOCH: Duration = Duration::from_secs(5);

/// A world in a folder, with a log and an archive.
struct World {
    options: WorldOptions,
    clock: Arc<ManualClock>,
    handle: Arc<WorldHandle>,
    writer: Writer,
    names: u32,
}

impl World {
    fn open(dir: &Path, now: i64) -> Self {
        let log =
            LogLocation::Folder { dir: dir.join("log"), options: change_log::Options::default() };
        let mut options = test_options(log);
        options.history.store = Some(dir.join("archive").into());
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(now)));
        let told = Arc::<ManualClock>::clone(&clock);
        let (handle, writer) = WorldHandle::open(options.clone(), told).unwrap();
        Self { options, clock, handle, writer, names: 0 }
    }

    /// Changes something and publishes it.
    fn publish(&mut self) {
        self.names += 1;
        let name = format!("Fighter {}", self.names);
        let meaning = Meaning::Is("Anderson Silva".into());
        let alias = Alias { sport: "mma".into(), feed: None, name: name.into(), meaning };
        self.writer.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
        self.clock.advance(EPOCH);
        self.writer.work();
    }

    fn archiver(&self) -> Archiver {
        Archiver::new(self.options.clone(), &self.handle).unwrap()
    }

    fn archive(&self) -> Archive {
        Archive::of(&self.options.history.archive().unwrap())
    }

    /// The entries of the log up to the last publication.
    fn logged(&self) -> Vec<Entry> {
        let log = self.options.log.view().unwrap().unwrap();
        let published = self.handle.published().snapshot.seq;
        Replay::from(&*log, 1)
            .unwrap()
            .map(|logged| logged.unwrap())
            .filter(|logged| logged.seq <= published)
            .map(|logged| Entry { seq: logged.seq, at: logged.at, change: logged.change })
            .collect()
    }

    /// The archived entries of a lineage.
    fn archived(&self, lineage: usize) -> Vec<Entry> {
        let archive = self.archive();
        let commit = archive.newest().unwrap();
        let faults = archive.verify(&commit).faults;
        assert!(faults.is_empty(), "{faults:?}");
        archive.entries(&commit, lineage, 0..=u64::MAX).map(Result::unwrap).collect()
    }
}

/// The options and catalogue to build a book with.
fn with_own(world: &World) -> (&WorldOptions, Arc<Catalogue>) {
    (&world.options, Arc::clone(&world.options.catalogue))
}

/// Runs all steps one after the other.
fn work(archiver: &mut Archiver, which: &Compact) -> Ended {
    let mut step = Step::Copy;
    loop {
        step = archiver.work_or_tell(step, which);
        if let Step::Ended(ended) = step {
            return ended;
        }
    }
}

const NOON: i64 = 1_794_000_001;

#[test]
fn what_was_published_is_archived_and_kept_in_the_log_until_then() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    let mut archiver = world.archiver();
    assert_eq!(world.handle.history.keep_from(), 0, "everything");
    for _ in 0..3 {
        world.publish();
        assert!(!archiver.copy().unwrap());
        assert_eq!(world.archived(0), world.logged());
        assert_eq!(world.handle.history.keep_from(), world.handle.published().snapshot.seq);
        assert_eq!(world.handle.archive_lag(world.clock.now()), Duration::ZERO);
    }
    let commits = world.handle.history.stats.commits.load(Ordering::Relaxed);
    assert!(!archiver.copy().unwrap(), "nothing is new");
    assert_eq!(world.handle.history.stats.commits.load(Ordering::Relaxed), commits);
    world.publish();
    let oldest = world.handle.published().snapshot.cut_at;
    world.publish();
    let now = world.clock.now();
    assert_eq!(world.handle.archive_lag(now), now.since(oldest), "the older of two");

    // A new process continues after the previous one.
    drop(archiver);
    let now = world.clock.now().as_millis() / 1000;
    drop(world);
    let mut world = World::open(dir.path(), now);
    world.publish();
    world.archiver().copy().unwrap();
    assert_eq!(world.archived(0), world.logged());
    assert_eq!(world.archive().newest().unwrap().lineages.len(), 1);
}

#[tokio::test]
async fn work_that_panics_is_counted() {
    let stats = HistoryStats::default();
    assert_eq!(apart(&stats, || 1).await, Some(1));
    assert_eq!(stats.archive_panics.load(Ordering::Relaxed), 0);
    assert_eq!(apart(&stats, || panic!("as a test has it")).await, None::<()>);
    assert_eq!(stats.archive_panics.load(Ordering::Relaxed), 1);
}

#[test]
fn a_log_that_was_lost_starts_a_new_lineage() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    world.publish();
    world.publish();
    world.archiver().copy().unwrap();
    let before = world.archived(0);
    drop(world);
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let mut world = World::open(dir.path(), NOON + 3600);
    world.publish();
    world.archiver().copy().unwrap();
    assert_eq!(world.archived(0), before, "nothing is rewritten");
    assert_eq!(world.archived(1), world.logged());
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        fs::copy(item.path(), to.join(item.file_name())).unwrap();
    }
}

#[test]
fn a_log_that_was_rolled_back_goes_on_after_what_both_have() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    world.publish();
    let common = world.logged();
    copy_folder(&dir.path().join("log"), &dir.path().join("backup"));
    world.publish();
    world.publish();
    world.archiver().copy().unwrap();
    let before = world.archived(0);
    drop(world);
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    fs::rename(dir.path().join("backup"), dir.path().join("log")).unwrap();
    let mut world = World::open(dir.path(), NOON + 3600);
    world.publish();
    let mut archiver = world.archiver();
    archiver.copy().unwrap();
    world.publish();
    archiver.copy().unwrap();
    assert_eq!(world.archived(0), before, "nothing is rewritten");
    assert_eq!(world.archived(1), world.logged()[common.len()..], "and nothing is there twice");
    let commit = world.archive().newest().unwrap();
    let book = book_at(&world.archive(), &commit, (1, u64::MAX), with_own(&world)).unwrap();
    let mut replayed = Book::new(Arc::clone(&world.options.catalogue), Ids::Minted { salt: 0 });
    world.logged().iter().for_each(|entry| replayed.absorb(&entry.change, entry.at));
    assert_eq!(book.to_image(), replayed.to_image());
}

#[test]
fn where_the_archive_cannot_be_written_the_world_goes_on_and_the_log_keeps_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    fs::write(dir.path().join("archive"), "in the way").unwrap();
    let mut archiver = world.archiver();
    world.publish();
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::Failed);
    assert_eq!(world.handle.history.stats.commit_failures.load(Ordering::Relaxed), 1);
    assert_eq!(world.handle.history.keep_from(), 0);
    let lag = |world: &World| world.handle.archive_lag(world.clock.now());
    let behind = lag(&world);
    world.publish();
    assert_eq!(lag(&world), behind + EPOCH, "also where nothing was archived yet");
    fs::remove_file(dir.path().join("archive")).unwrap();
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
    assert_eq!(world.archived(0), world.logged());
    assert_eq!(lag(&world), Duration::ZERO);
}

/// What is past retention is all that an operator may want to remove.
#[test]
fn on_a_full_disk_what_is_past_retention_is_removed_and_what_is_unused_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    let mut archiver = world.archiver();
    for _ in 0..4 {
        world.publish();
        assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
        world.clock.advance(Duration::from_secs(24 * 3600));
    }
    let place = world.options.history.archive().unwrap();
    let root = place.folder().unwrap();
    let before = world.archive().newest().unwrap();
    world.publish();
    world.handle.set_disk_full(true);
    world.options.history.retention = Duration::from_secs(36 * 3600);
    let mut archiver = world.archiver();
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::Failed);
    let commit = world.archive().newest().unwrap();
    assert_eq!(commit.last_seq(), before.last_seq(), "nothing was added");
    let gone: Vec<&str> =
        before.paths().filter(|path| commit.paths().all(|kept| kept != *path)).collect();
    assert!(!gone.is_empty());
    for path in &gone {
        let file = fs::File::options().append(true).open(root.join(path)).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - Duration::from_secs(2 * 3600)).unwrap();
    }
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::Failed);
    assert!(gone.iter().all(|path| !root.join(path).exists()), "no new commit is needed for that");
    world.handle.set_disk_full(false);
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
    assert_eq!(world.archive().newest().unwrap().last_seq(), Some(world.handle.published().seq()));
}

/// Otherwise the lag of a new process or leader would begin at zero while the archive can be read but not written.
#[test]
fn publications_of_an_earlier_process_that_are_not_archived_count_for_the_lag() {
    for is_begun in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut world = World::open(dir.path(), NOON);
        let mut oldest = world.handle.published().snapshot.cut_at;
        if is_begun {
            world.archiver().copy().unwrap();
            world.publish();
            oldest = world.handle.published().snapshot.cut_at;
        }
        world.publish();
        let now = world.clock.now().plus(Duration::from_secs(7200));
        drop(world);

        let world = World::open(dir.path(), now.as_millis() / 1000);
        let archive = world.options.history.archive().unwrap();
        let root = archive.folder().unwrap();
        // No file of the next part can be created.
        if is_begun {
            fs::remove_dir_all(root.join("epochs")).unwrap();
        }
        fs::create_dir_all(root).unwrap();
        fs::write(root.join("epochs"), "in the way").unwrap();
        let mut archiver = world.archiver();
        archiver.copy().unwrap_err();
        let now = world.clock.now();
        assert_eq!(world.handle.archive_lag(now), now.since(oldest));
    }
}

#[test]
fn where_the_end_of_the_archive_is_damaged_it_goes_on_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    // The first part ends with a whole book.
    for _ in 0..2 {
        world.publish();
        world.archiver().copy().unwrap();
    }
    let (archive, commit) = (world.archive(), world.archive().newest().unwrap());
    let file = commit.files.iter().rfind(|file| file.table == Table::Internal).unwrap();
    let place = world.options.history.archive().unwrap();
    fs::write(place.folder().unwrap().join(&file.path), "damaged").unwrap();
    assert!(book_at(&archive, &commit, (0, u64::MAX), with_own(&world)).is_err());
    world.publish();
    world.archiver().copy().unwrap();
    let commit = archive.newest().unwrap();
    let published = world.handle.published().snapshot.seq;
    assert_eq!((commit.lineages.len(), commit.lineages[0].last_seq), (1, published));
    let added = archive.entries(&commit, 0, file.last_seq + 1..=published);
    let added: Vec<Entry> = added.map(Result::unwrap).collect();
    assert_eq!(added, world.logged()[usize::try_from(file.last_seq).unwrap()..]);
}

#[test]
fn where_the_end_of_the_archive_is_damaged_a_log_that_was_lost_is_archived_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    for _ in 0..2 {
        world.publish();
        world.archiver().copy().unwrap();
    }
    let commit = world.archive().newest().unwrap();
    let file = commit.files.iter().rfind(|file| file.table == Table::Internal).unwrap();
    let place = world.options.history.archive().unwrap();
    fs::write(place.folder().unwrap().join(&file.path), "damaged").unwrap();
    drop(world);
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let mut world = World::open(dir.path(), NOON + 3600);
    world.publish();
    world.archiver().copy().unwrap();
    let commit = world.archive().newest().unwrap();
    assert_eq!(commit.lineages.len(), 2);
    let added = world.archive();
    let added = added.entries(&commit, 1, 0..=u64::MAX).map(Result::unwrap);
    assert_eq!(added.collect::<Vec<Entry>>(), world.logged());
}

#[tokio::test]
async fn a_flush_returns_when_it_is_archived() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    world.publish();
    let running = tokio::spawn(world.archiver().run());
    assert!(world.handle.history.flush(Compact::Due).await.unwrap());
    assert_eq!(world.archived(0), world.logged());
    running.abort();
}

/// H18: publications made with a clock that is a year ahead neither delete history nor hide it.
#[tokio::test]
async fn a_clock_that_was_ahead_deletes_and_hides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    let mut archiver = world.archiver();
    for _ in 0..3 {
        world.publish();
        assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
        world.clock.advance(Duration::from_secs(24 * 3600));
    }
    let right = world.clock.now();
    let reach = async |world: &World| {
        let current = world.handle.published().snapshot.cut_at;
        world.handle.history.reach(current).await.unwrap()
    };
    let from = reach(&world).await.from;
    world.clock.set(right.plus(Duration::from_secs(500 * 24 * 3600)));
    world.publish();
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
    assert!(reach(&world).await.from > right, "the rest is past retention, as the clock says");
    world.clock.set(right);
    world.publish();
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
    let again = reach(&world).await;
    assert_eq!(again.from, from);
    assert_eq!(again.to, world.handle.published().snapshot.cut_at);
    assert_eq!(world.archived(0), world.logged());
}

#[tokio::test]
async fn more_orders_than_the_archiver_has_room_for_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path(), NOON);
    // Nothing takes the orders yet.
    for _ in 0..crate::history::ORDERS_MAX {
        let ordered = timeout(Duration::ZERO, world.handle.history.flush(Compact::Due)).await;
        assert!(ordered.is_err(), "it waits");
    }
    let refused = world.handle.history.flush(Compact::Due).await;
    assert!(matches!(refused, Err(HistoryError::Busy)), "{refused:?}");
}

#[test]
fn days_that_are_over_are_put_together_and_those_past_retention_go() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), NOON);
    world.options.history.retention = Duration::from_secs(36 * 3600);
    let mut archiver = world.archiver();
    let mut seqs = Vec::new();
    for _ in 0..4 {
        for _ in 0..3 {
            world.publish();
            assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
            seqs.push(world.handle.published().snapshot.seq);
        }
        world.clock.advance(Duration::from_secs(24 * 3600));
    }
    assert_eq!(work(&mut archiver, &Compact::Due), Ended::All);
    let (archive, commit) = (world.archive(), world.archive().newest().unwrap());
    let faults = archive.verify(&commit).faults;
    assert!(faults.is_empty(), "{faults:?}");
    let mut days: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for file in commit.files.iter().filter(|file| file.table == Table::Epochs) {
        days.entry(file.date()).or_default().push(file.rows);
    }
    let rows: Vec<&[u64]> = days.values().map(|rows| &**rows).collect();
    // The first day is past retention; of the second, the book that later publications start from remains.
    assert_eq!(rows, [&[3][..], &[3], &[1, 1, 1]], "{days:?}");
    assert!(world.handle.history.stats.compactions.load(Ordering::Relaxed) >= 3);
    assert_eq!(
        world.handle.history.stats.archive_files.load(Ordering::Relaxed),
        u64::try_from(commit.paths().count()).unwrap()
    );
    // Every remaining publication can be rebuilt from it.
    let mut book = Book::new(Arc::clone(&world.options.catalogue), Ids::Minted { salt: 0 });
    for entry in world.logged() {
        book.absorb(&entry.change, entry.at);
        if seqs.contains(&entry.seq) && seqs.iter().rev().take(9).any(|seq| *seq == entry.seq) {
            let made = book_at(&archive, &commit, (0, entry.seq), with_own(&world)).unwrap();
            assert_eq!(made.to_image(), book.to_image());
        }
    }
    assert!(book_at(&archive, &commit, (0, seqs[0]), with_own(&world)).is_err(), "too old");
    assert_eq!(work(&mut archiver, &Compact::All), Ended::All);
    assert_eq!(archiver.work_or_tell(Step::Compact, &Compact::All), Step::Ended(Ended::All));
    // Publications made while files are merged are not waited for.
    world.publish();
    world.publish();
    assert_eq!(archiver.work_or_tell(Step::Copy, &Compact::All), Step::Compact);
    world.publish();
    assert_eq!(archiver.work_or_tell(Step::Compact, &Compact::All), Step::Compact);
    world.publish();
    assert_eq!(archiver.work_or_tell(Step::Compact, &Compact::All), Step::Ended(Ended::All));
}

#[test]
fn the_rest_of_a_disk_is_left_to_the_log() {
    let gigabytes = |n: u64| n << 30;
    assert!(leaves_room(gigabytes(2), gigabytes(1000)));
    assert!(!leaves_room(gigabytes(1), gigabytes(1000)));
    assert!(leaves_room(gigabytes(1), gigabytes(10)));
    assert!(!leaves_room(gigabytes(1) / 2, gigabytes(10)));
    assert!(has_room(tempfile::tempdir().unwrap().path()));
    assert!(has_room(Path::new("/no/such/folder")), "writing to it says more");
}

use std::path::Path;

use change_log::LogLocation;
use domain::{Catalogue, ManualClock, World};
use market::{Alias, Lifetimes, Limits, Meaning, Snapshot};

use super::*;
use crate::history::Place;
use crate::options::HistoryOptions;
use crate::replay::{Logged, Replay};

const EPOCH: Duration = Duration::from_secs(5);

pub(crate) fn test_options(log: LogLocation) -> WorldOptions {
    WorldOptions {
        world: World::Live,
        log,
        catalogue: Arc::new(Catalogue::load(None).unwrap()),
        refresh_interval: EPOCH,
        stale_after: Duration::from_secs(90),
        wires: &[],
        lifetimes: Lifetimes { final_retention: EPOCH, forget_after: EPOCH },
        limits: Limits::DEFAULT,
        log_retention: Duration::from_secs(3600),
        simulation: None,
        notes: None,
        history: HistoryOptions::default(),
        live_tick: Duration::ZERO,
    }
}

fn open(dir: &Path, clock: &Arc<ManualClock>) -> (Arc<WorldHandle>, Writer) {
    let log = LogLocation::Folder { dir: dir.to_owned(), options: change_log::Options::default() };
    let options = test_options(log);
    WorldHandle::open(options, Arc::<ManualClock>::clone(clock)).unwrap()
}

fn alias(name: &str) -> Operation {
    let meaning = Meaning::Is("Anderson Silva".into());
    let alias = Alias { sport: "mma".into(), feed: None, name: name.into(), meaning };
    Operation::Teach { aliases: vec![alias] }
}

#[test]
fn a_published_snapshot_has_the_sequence_number_of_its_cut_on_writer_and_follower() {
    let (dir, other_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_794_000_001)));
    let (handle, mut writer) = open(dir.path(), &clock);
    let mut seqs = vec![handle.published().seq()];
    assert_eq!(seqs, [writer.log.last_seq()]);
    for name in ["Ann", "Ben"] {
        writer.operate(&alias(name)).unwrap();
        assert_eq!(Some(&handle.published().seq()), seqs.last(), "before the next cut");
        clock.advance(EPOCH);
        assert_eq!(writer.work(), Next::GoOn);
        assert_eq!(handle.published().seq(), writer.log.last_seq());
        seqs.push(writer.log.last_seq());
    }
    drop(writer);

    let (restarted, writer) = open(dir.path(), &clock);
    assert_eq!(
        Some(&restarted.published().seq()),
        seqs.last(),
        "the same snapshot after a restart"
    );
    drop(writer);

    let log =
        LogLocation::Folder { dir: dir.path().to_owned(), options: change_log::Options::default() };
    let log = log.view().unwrap().unwrap();
    let (handle, writer) = open(other_dir.path(), &clock);
    let (mut worker, mut held) = (writer.worker, None);
    let mut followed = Vec::new();
    for logged in Replay::from(&*log, 1).unwrap() {
        let logged: Logged = logged.unwrap();
        worker.take_entry(&logged, &mut held).unwrap();
        if matches!(logged.change, Change::Cut { .. }) {
            assert_eq!(handle.published().seq(), logged.seq);
            followed.push(logged.seq);
        }
    }
    assert_eq!(followed, seqs);
}

/// The gaps in a log.
fn gaps(dir: &Path) -> Vec<(Timestamp, Timestamp)> {
    let options = change_log::Options::default();
    let log = LogLocation::Folder { dir: dir.to_owned(), options };
    let log = log.view().unwrap().unwrap();
    let changes = Replay::from(&*log, 1).unwrap().map(|logged| logged.unwrap().change);
    let gap = |change| {
        if let Change::Unlogged { from, to } = change { Some((from, to)) } else { None }
    };
    changes.filter_map(gap).collect()
}

#[test]
fn a_gap_that_a_process_left_is_logged_by_the_next_one_unless_the_log_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_794_000_001)));
    let (_, mut writer) = open(dir.path(), &clock);
    let seq = writer.log.last_seq();
    let from = clock.now();
    writer.gap_note.set(Some(LogGap { from, seq }));
    drop(writer);
    // The restart is in the same epoch, whose publication is in the log: another one was shown after it.
    clock.advance(Duration::from_millis(20));
    let (handle, mut writer) = open(dir.path(), &clock);
    assert_eq!(gaps(dir.path()), [(from, clock.now())]);
    assert_eq!(handle.published().snapshot.cut_at, clock.now());
    assert_eq!(writer.gap_note.gap(), None);
    // A process ended after it had logged the gap, and before it could withdraw the note.
    writer.gap_note.set(Some(LogGap { from, seq }));
    drop(writer);
    clock.advance(EPOCH);
    let (_, writer) = open(dir.path(), &clock);
    assert_eq!(gaps(dir.path()).len(), 1);
    assert_eq!(writer.gap_note.gap(), None);
}

/// Those are cut at their own pace, and changes are shown to the others meanwhile.
#[test]
fn who_wants_whole_snapshots_keeps_nobody_from_what_changes() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_794_000_001)));
    let (handle, writer) = open(dir.path(), &clock);
    let Writer { mut worker, mut book, log, .. } = writer;
    let simulation = Simulation::new(7, Arc::clone(&worker.options.catalogue));
    let (_follows, _wants_whole) = (handle.live_changes(), handle.want_whole());
    let (mut at, first) = (clock.now(), log.last_seq() + 1);
    let take = |book: &mut Book, messages: &[domain::message::FeedMessage], at| {
        messages.iter().for_each(|message| play(book, message, at, &mut Entries::default()));
        assert!(!book.is_untouched());
    };
    take(&mut book, &simulation.world_at(at), at);
    assert_eq!(worker.show_live(&mut book, first, at), None);
    assert_eq!(handle.shown_live().map(|shown| shown.is_exact()), Some(true));
    let whole = || handle.shown_whole().map(|shown| shown.seq());
    assert_eq!(whole(), Some(first));
    let (now, hour) = (Instant::now(), Duration::from_secs(3600));
    (worker.live_due, worker.whole_due) = (now, now + hour);
    for seq in first + 1..first + 4 {
        let from = at;
        at = at.plus(Duration::from_secs(10));
        take(&mut book, &simulation.between(from, at), at);
        assert!(worker.show_live(&mut book, seq, at) > Some(hour / 2));
        let shown = handle.shown_live().unwrap();
        assert_eq!((shown.seq(), shown.is_whole(), whole()), (seq, false, Some(first)));
        worker.live_due = now;
    }
    worker.whole_due = now;
    // Of the same position, even if nothing has changed since.
    assert_eq!(worker.show_live(&mut book, first + 3, at), None);
    assert_eq!(whole(), Some(first + 3));
    let (_, next) = handle.shown_after(Place::Entry(first), true).unwrap();
    assert_eq!(next.map(|next| next.seq()), whole(), "what is in between is for others");
    assert_eq!(worker.show_live(&mut book, first + 3, at), None);
}

/// S8: those that are not logged have the position of the last one that was.
#[tokio::test]
async fn of_several_publications_at_a_position_the_sought_one_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_794_000_001)));
    let (handle, writer) = open(dir.path(), &clock);
    let Writer { mut worker, mut book, log, .. } = writer;
    let _follows = handle.live_changes();
    let (seq, mut ats) = (log.last_seq(), vec![handle.published().snapshot.cut_at]);
    for n in 1..4 {
        let at = ats[0].plus(n * EPOCH);
        worker.publish(&mut book, seq, at, Some(at));
        ats.push(at);
    }
    for (n, at) in ats.iter().enumerate() {
        let is = |held: &Snapshot| held.cut_at == *at;
        let place = Place::Entry(seq);
        let published = handle.publication_of(place, &is, 0).await.unwrap().unwrap();
        let shown = handle.shown_at(place, &is, 0).await.unwrap().unwrap();
        for (found, next) in [published, shown] {
            assert_eq!((found.snapshot.cut_at, next), (*at, ats.get(n + 1).copied()));
        }
    }
}

//! Limits and threads for rebuilding past publications and looking them up (H22).
//!
//! Work continues if its request ends: it keeps its turns until it is done, and its result is kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::logged::LoggedPast;
use super::{History, HistoryError, REBUILD_TIME_MAX, Source};

/// Maximum number of concurrent rebuilds and reads for one key.
const PER_KEY_MAX: usize = 2;
/// The same for all keys together. One key cannot take everything.
const REBUILDS_MAX: usize = PER_KEY_MAX + 1;
const READS_MAX: usize = PER_KEY_MAX + 1;
/// Lookups are short: none waits for the store of the archive.
const LOOKUPS_MAX: usize = 4;
/// Work that waits for the store: one read of the newest commit, and others.
const REFRESHES_MAX: usize = 1;
const STORE_READS_MAX: usize = 2;
/// Lookups for followers do not wait for rebuilds.
const LOOKS_MAX: usize = PER_KEY_MAX + 1;
const THREADS_MAX: usize =
    REBUILDS_MAX + READS_MAX + LOOKUPS_MAX + REFRESHES_MAX + STORE_READS_MAX + LOOKS_MAX;
/// Maximum time that a request waits for the archive's newest commit before it uses the log alone.
const REFRESH_WAIT_MAX: Duration = Duration::from_secs(1);
/// Maximum time that a request waits for all of its turns together.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Rebuilds a book.
    Rebuild,
    /// Reads changes.
    Read,
    /// Looks up which publications exist. Waits neither for rebuilds nor for a store.
    Lookup,
    /// Reads additions to the archive.
    Refresh,
    /// Reads a small part of the archive.
    StoreRead,
    /// Reads what appeared and disappeared, for followers.
    Look,
}

/// Remaining time that a request waits for turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnWait(Duration);

impl Default for TurnWait {
    fn default() -> Self {
        Self(TURN_WAIT_MAX)
    }
}

#[derive(Debug)]
pub(super) struct Turns {
    rebuilds: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
    refreshes: Arc<Semaphore>,
    store_reads: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    /// The turns of each key that uses some.
    keys: Mutex<HashMap<u64, Arc<Semaphore>>>,
    threads: Threads,
}

impl Default for Turns {
    fn default() -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self {
            rebuilds: of(REBUILDS_MAX),
            reads: of(READS_MAX),
            lookups: of(LOOKUPS_MAX),
            refreshes: of(REFRESHES_MAX),
            store_reads: of(STORE_READS_MAX),
            looks: of(LOOKS_MAX),
            keys: Mutex::default(),
            threads: Threads::new(),
        }
    }
}

impl Turns {
    const fn of(&self, work: Work) -> &Arc<Semaphore> {
        match work {
            Work::Rebuild => &self.rebuilds,
            Work::Read => &self.reads,
            Work::Lookup => &self.lookups,
            Work::Refresh => &self.refreshes,
            Work::StoreRead => &self.store_reads,
            Work::Look => &self.looks,
        }
    }
}

/// Separate threads, one for each turn, so that the past takes none from requests for the present. They are started on
/// demand, and a stopping service does not wait for their work.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Threads {
    fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .thread_name("history")
            .max_blocking_threads(THREADS_MAX)
            .build();
        if let Err(error) = &runtime {
            tracing::error!(event = "history.no_threads", %error, "history cannot be read: the system gives no threads");
        }
        Self(runtime.ok())
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<JoinHandle<T>> {
        self.0.as_ref().map(|runtime| runtime.spawn_blocking(work))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Dropped on a thread that must not block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Counts a waiting request until it stops waiting or ends.
#[derive(Debug)]
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl History {
    /// Takes a turn of a key.
    pub(super) async fn turn_of(
        &self,
        key: u64,
        wait: &mut TurnWait,
    ) -> Result<OwnedSemaphorePermit, HistoryError> {
        self.turn(&self.turns_of(key), wait).await
    }

    fn turns_of(&self, key: u64) -> Arc<Semaphore> {
        let mut keys = self.turns.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, turns| Arc::strong_count(turns) > 1);
        let new = || Arc::new(Semaphore::new(PER_KEY_MAX));
        Arc::clone(keys.entry(key).or_insert_with(new))
    }

    pub(super) async fn turn(
        &self,
        turns: &Arc<Semaphore>,
        wait: &mut TurnWait,
    ) -> Result<OwnedSemaphorePermit, HistoryError> {
        let (_waiting, begun) = (Waiting::new(&self.stats.waiting), Instant::now());
        let turn = timeout(wait.0, Arc::clone(turns).acquire_owned()).await;
        wait.0 = wait.0.saturating_sub(begun.elapsed());
        turn.ok().and_then(Result::ok).ok_or(HistoryError::Busy)
    }

    /// Looks something up in the known content of the log and the archive.
    ///
    /// A lookup that needs only the log does not depend on the store of the archive (H20); any other waits for a read
    /// of the newest commit, at most as long as for a turn.
    pub(super) async fn look_up<T: Send + 'static>(
        self: &Arc<Self>,
        wait: &mut TurnWait,
        look: impl Fn(&LoggedPast) -> Result<T, HistoryError> + Copy + Send + 'static,
    ) -> Result<T, HistoryError> {
        self.refresh(wait, REFRESH_WAIT_MAX).await;
        let looked = self.on_logged(Work::Lookup, wait, look).await;
        let is_unknown = matches!(looked, Err(HistoryError::Unreadable(None)));
        match is_unknown && self.refresh(wait, TURN_WAIT_MAX).await {
            true => self.on_logged(Work::Lookup, wait, look).await,
            false => looked,
        }
    }

    /// The same for lookups that may have to read the store.
    pub(super) async fn on_logged<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        wait: &mut TurnWait,
        look: impl FnOnce(&LoggedPast) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let look = move |source: &Source| match source {
            Source::Logged(past) => look(past),
            Source::Simulated(_) | Source::Nothing => Err(HistoryError::Off),
        };
        self.on_source(kind, None, wait, look).await
    }

    /// Reads additions to the archive if that is due, and returns whether it did. The read continues if the request
    /// ends.
    async fn refresh(self: &Arc<Self>, wait: &mut TurnWait, max: Duration) -> bool {
        let Source::Logged(past) = &self.source else { return false };
        if !past.is_look_due() {
            return false;
        }
        let (begun, max) = (Instant::now(), wait.0.min(max));
        let turn = &mut TurnWait(max);
        let refreshing = self.on_logged(Work::Refresh, turn, LoggedPast::look_again);
        let refreshed = matches!(timeout(max, refreshing).await, Ok(Ok(())));
        wait.0 = wait.0.saturating_sub(begun.elapsed());
        refreshed
    }

    /// Runs work on the source of the past, on another thread and with a turn; also with one of the key, if given.
    pub(super) async fn on_source<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        key: Option<u64>,
        wait: &mut TurnWait,
        work: impl FnOnce(&Source) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let own = match key {
            Some(key) => Some(self.turn_of(key, wait).await?),
            None => None,
        };
        let all = self.turn(self.turns.of(kind), wait).await?;
        let history = Arc::clone(self);
        let working = self.turns.threads.run(move || {
            // Turns end with the work, even if the request has ended.
            let _turns = (own, all);
            work(&history.source)
        });
        let unfinished = || Err(HistoryError::Unreadable(None));
        match working {
            Some(working) => working.await.unwrap_or_else(|_| unfinished()),
            None => unfinished(),
        }
    }

    /// The same, limited to the time that a request waits.
    pub(super) async fn on_source_in_time<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        key: Option<u64>,
        work: impl FnOnce(&Source) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let mut wait = TurnWait::default();
        let worked = timeout(REBUILD_TIME_MAX, self.on_source(kind, key, &mut wait, work)).await;
        worked.map_err(|_| HistoryError::Busy)?
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;
    use std::time::Instant;

    use archive::Table;
    use change_log::LogLocation;
    use domain::{ManualClock, Timestamp};
    use market::{Alias, Meaning, Operation};

    use super::*;
    use crate::history::{ExportError, ExportRequest, Found, Place, Stride};
    use crate::options::WorldOptions;
    use crate::writer::test_options;
    use crate::{Archiver, WorldHandle};

    /// A live world with some publications, and a history of it without any rebuilt ones.
    fn world(dir: &Path) -> (Arc<WorldHandle>, Arc<History>, Vec<Found>) {
        world_of(&options(dir))
    }

    fn options(dir: &Path) -> WorldOptions {
        let options = change_log::Options::default();
        test_options(LogLocation::Folder { dir: dir.join("log"), options })
    }

    fn world_of(options: &WorldOptions) -> (Arc<WorldHandle>, Arc<History>, Vec<Found>) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
        let (handle, mut writer) =
            WorldHandle::open(options.clone(), Arc::<ManualClock>::clone(&clock)).unwrap();
        let history = History::new(options);
        let mut founds = Vec::new();
        for n in 0..6 {
            let meaning = Meaning::Is("Anderson Silva".into());
            let name = format!("Fighter {n}").into();
            let alias = Alias { sport: "mma".into(), feed: None, name, meaning };
            writer.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
            clock.advance(Duration::from_secs(5));
            writer.work();
            let at = handle.published().snapshot.cut_at;
            founds.push(logged(&history).find(at, at).unwrap());
        }
        (handle, history, founds)
    }

    fn logged(history: &History) -> &LoggedPast {
        match &history.source {
            Source::Logged(past) => past,
            Source::Simulated(_) | Source::Nothing => panic!("it has no log"),
        }
    }

    async fn until(what: &str, is: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < Duration::from_secs(60), "not in a minute: {what}");
            tokio::task::yield_now().await;
        }
    }

    fn all(turns: &Arc<Semaphore>, max: usize) -> OwnedSemaphorePermit {
        Arc::clone(turns).try_acquire_many_owned(u32::try_from(max).unwrap()).unwrap()
    }

    /// Starts a request and drops it.
    async fn leave<T>(asked: impl Future<Output = T>) -> bool {
        timeout(Duration::ZERO, asked).await.is_err()
    }

    #[tokio::test]
    async fn a_rebuild_whose_request_ended_counts_until_it_is_over_and_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (_handle, history, founds) = world(dir.path());
        // Rebuilds need the index.
        let ((held, is_held), (release, released)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
        let holder = std::thread::spawn({
            let history = Arc::clone(&history);
            move || {
                let _index = logged(&history).index();
                held.send(()).unwrap();
                released.recv().unwrap_err();
            }
        });
        is_held.recv().unwrap();
        for found in &founds {
            assert!(leave(history.remake(*found, 1, TurnWait::default())).await);
        }
        let rebuilds = &history.turns.rebuilds;
        until("two are made again", || rebuilds.available_permits() == REBUILDS_MAX - PER_KEY_MAX)
            .await;
        assert!(leave(history.turn_of(1, &mut TurnWait::default())).await, "the key has its two");
        assert_eq!(history.stats.waiting.load(Ordering::Relaxed), 0, "nobody waits any more");
        let other = history.turn_of(2, &mut TurnWait::default()).await;
        drop(other.expect("another key has its own"));
        drop(release);
        holder.join().unwrap();
        let done = &history.stats.rebuilds;
        until("they are made", || {
            let is_free = rebuilds.available_permits() == REBUILDS_MAX;
            is_free && done.load(Ordering::Relaxed) == 2
        })
        .await;
        for found in &founds[..2] {
            history.remake(*found, 1, TurnWait::default()).await.unwrap();
        }
        assert_eq!(done.load(Ordering::Relaxed), 2, "both were kept");
        history.remake(founds[2], 1, TurnWait::default()).await.unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 3, "whose request had no turn was not begun");
    }

    /// H22: five seconds, however many queues there are.
    #[tokio::test]
    async fn what_a_request_waited_for_one_turn_it_does_not_wait_for_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let (_handle, history, founds) = world(dir.path());
        let mut wait = TurnWait(Duration::from_millis(1));
        let own = all(&history.turns_of(1), PER_KEY_MAX);
        assert!(history.turn_of(1, &mut wait).await.is_err());
        assert_eq!(wait.0, Duration::ZERO);
        drop(own);
        // No time is left for the next queue, and none is needed if the queue is empty.
        let busy = all(&history.turns.rebuilds, REBUILDS_MAX);
        let made = history.remake(founds[1], 1, wait).await;
        assert!(matches!(made, Err(HistoryError::Busy)), "{made:?}");
        drop(busy);
        history.remake(founds[1], 1, wait).await.unwrap();
    }

    /// S10: a client that is far behind does not delay others.
    #[tokio::test]
    async fn one_key_does_not_have_all_turns_to_look_up_what_passed() {
        let dir = tempfile::tempdir().unwrap();
        let (handle, history, _) = world(dir.path());
        let present = Arc::clone(&handle.published().snapshot);
        let own = history.turns_of(1);
        own.close();
        let refused = history.passed(&present, &present, false, 1).await;
        assert!(matches!(refused, Err(HistoryError::Busy)), "it has its own");
        assert_eq!(history.turns.looks.available_permits(), LOOKS_MAX);
        history.passed(&present, &present, false, 2).await.unwrap();
    }

    /// H22: the first request of a file reads all of it, and a key may request several.
    #[tokio::test]
    async fn one_key_does_not_have_all_turns_to_read_files_for_export() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(dir.path());
        options.history.store = Some(dir.path().join("archive").into());
        let (handle, history, _) = world_of(&options);
        Archiver::new(options, &handle).unwrap().copy().unwrap();
        let request = ExportRequest {
            table: Table::Odds,
            sport: "mma".to_owned(),
            date: "2023-11-14".to_owned(),
            lineage: None,
        };
        let own = history.turns_of(1);
        own.close();
        let refused = history.export(request.clone(), 1).await;
        assert!(matches!(refused, Err(ExportError::History(HistoryError::Busy))), "{refused:?}");
        let other = history.export(request, 2).await;
        assert!(matches!(other, Err(ExportError::NotFinal(_))), "another key has its own");
    }

    /// H20: after a restart, while the store of the archive does not answer.
    #[tokio::test]
    async fn what_the_log_has_is_answered_while_the_store_of_the_archive_stalls() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(dir.path());
        options.history.store = Some(dir.path().join("archive").into());
        let (handle, _, founds) = world_of(&options);
        Archiver::new(options.clone(), &handle).unwrap().copy().unwrap();
        let current = handle.published().snapshot.cut_at;
        // Opening it blocks until something is written to it.
        let commits = dir.path().join("archive/live/commit");
        let newest = std::fs::read_dir(commits).unwrap().map(|file| file.unwrap().path()).max();
        let newest = newest.unwrap();
        std::fs::remove_file(&newest).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&newest).status().unwrap();
        assert!(made.success());
        let history = History::new(&options);
        for _ in 0..2 * LOOKUPS_MAX {
            let wait = &mut TurnWait(Duration::from_millis(1));
            let found = history.find(founds[3].at, current, wait).await.unwrap();
            assert_eq!(found.seq, founds[3].seq);
        }
        history.remake(founds[3], 1, TurnWait::default()).await.unwrap();
        let wait = &mut TurnWait(Duration::from_millis(1));
        let first = history.find(founds[0].previous.unwrap(), current, wait).await;
        assert!(matches!(first, Err(HistoryError::Unreadable(_))), "there may be others before it");
        assert_eq!(history.turns.refreshes.available_permits(), 0, "one waits for the store");
        drop(std::fs::File::options().write(true).open(&newest).unwrap());
    }

    #[tokio::test]
    async fn a_question_whose_request_ended_has_its_turns_until_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let (_handle, history, _) = world(dir.path());
        let (release, released) = mpsc::channel::<()>();
        let work = move |_: &Source| {
            released.recv().unwrap_err();
            Ok(())
        };
        assert!(leave(history.on_source_in_time(Work::Read, Some(1), work)).await);
        assert_eq!(history.turns.reads.available_permits(), READS_MAX - 1);
        let _own = history.turn_of(1, &mut TurnWait::default()).await.unwrap();
        assert!(leave(history.turn_of(1, &mut TurnWait::default())).await);
        drop(release);
        until("it is over", || history.turns.reads.available_permits() == READS_MAX).await;
        drop(history.turn_of(1, &mut TurnWait::default()).await.unwrap());
    }

    #[tokio::test]
    async fn lookups_wait_for_no_rebuild_and_what_is_known_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (handle, history, founds) = world(dir.path());
        let _busy =
            [all(&history.turns.rebuilds, REBUILDS_MAX), all(&history.turns.reads, READS_MAX)];
        let current = Arc::clone(&handle.published().snapshot);
        let reach = history.reach(current.cut_at).await.unwrap();
        assert_eq!(reach.to, current.cut_at);
        // No lookup is possible from here on.
        history.turns.lookups.close();
        assert_eq!(
            history.before(&current, &mut TurnWait::default()).await.unwrap(),
            Some(founds[4].at)
        );
        assert_eq!(
            history.find(founds[2].at, current.cut_at, &mut TurnWait::default()).await.unwrap().seq,
            founds[2].seq
        );
        // Many clients reconnect at the same moment after a restart, all with the same position.
        let place = Place::Entry(founds[2].seq);
        let mut wait = TurnWait::default();
        let known = history.find_place(place, current.cut_at, &mut wait).await.unwrap().unwrap();
        assert_eq!(
            (known.seq, known.at, known.next),
            (founds[2].seq, founds[2].at, Some(founds[3].at))
        );
        assert!(!history.is_archived(&handle.published(), place).await);
        let step = history.step_from(place, &current, Stride::One).await.unwrap();
        assert_eq!(step, Some(Place::Entry(founds[3].seq)));
        let other = History::new(&logged(&history).options);
        other.turns.lookups.close();
        let unknown = other.before(&current, &mut TurnWait::default()).await;
        assert!(matches!(unknown, Err(HistoryError::Busy)), "{unknown:?}");
    }
}

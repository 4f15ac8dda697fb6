//! Cache of the answers of an epoch, bounded in memory.
//!
//! A client may request a million different selections. That may neither grow memory nor evict popular answers, so
//!
//! - the memory of kept answers is bounded;
//! - while half of it is free, an answer is kept when it is first computed. From then on it has to be requested twice:
//!   the first request only leaves a mark of eight bytes in a table of fixed size;
//! - if there is no room, answers not requested since the hand last passed are evicted first (the CLOCK algorithm). A
//!   popular answer is requested again before the hand returns; one of a million is not.
//!
//! The hash key is chosen by each process, so that nobody can choose selections that collide.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Answer, Selector};
use engine::Published;
use http::BodyFile;

use crate::v1::wire::event_fragment::Fragments;
use crate::v4;

/// Maximum memory of one epoch's answers, in bytes: a few hundred of the largest usual ones, and far more than clients
/// request in an epoch.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Reduces contention for locks.
const SHARDS: usize = 16;
/// Marks of selections requested once, in each shard; a newer one replaces an older one. All together they take half a
/// mebibyte.
const MARKS: usize = 4 << 10;

/// The answers kept for one snapshot.
#[derive(Debug)]
pub(crate) struct Answers {
    bytes_max: usize,
    shards: [Mutex<Shard>; SHARDS],
    kept_bytes: AtomicUsize,
    figures: Arc<Figures>,
    body_file: OnceLock<Option<Arc<BodyFile>>>,
    /// Fragments that odds answers are assembled from.
    pub(crate) fragments: Fragments,
    /// Parts that answers of `/v4` are assembled from.
    pub(crate) v4: v4::Publication,
}

/// A ready answer.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) answer: Arc<Answer>,
    /// True if it is requested so often that another copy of it may be worth it.
    pub(crate) popular: bool,
}

/// An answer that is not ready, and whether to keep it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing {
    hash: u64,
    keep: bool,
    /// True if it was already requested in this epoch, as far as the marks remember.
    pub(crate) asked_before: bool,
}

/// Counters of computed and evicted answers of a world, over all its epochs, for operators.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) made: AtomicU64,
    pub(crate) evicted: AtomicU64,
}

impl Figures {
    /// Answers computed and answers evicted.
    pub(crate) fn read(&self) -> [u64; 2] {
        [&self.made, &self.evicted].map(|figure| figure.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
struct Shard {
    kept: HashMap<u64, Kept, BuildHasherDefault<AsIs>>,
    /// The hashes of all kept answers, unordered.
    ring: Vec<u64>,
    /// Index at which the search for the next eviction starts.
    hand: usize,
    /// Selections requested once, by hash; allocated on first use.
    marks: Vec<u64>,
}

#[derive(Debug)]
struct Kept {
    selector: Selector,
    answer: Arc<Answer>,
    /// True if it was requested since the hand last passed.
    used: bool,
}

impl Default for Answers {
    fn default() -> Self {
        Self::bounded(KEPT_BYTES_MAX, Arc::default())
    }
}

impl Answers {
    /// The answers of a publication; the counters are those of the previous epoch, continued.
    pub(crate) fn of<'a>(published: &'a Published, figures: &Arc<Figures>) -> &'a Self {
        published.per_publication(|| match published.answer_bytes_max {
            Some(bytes_max) => Self::of_the_past(bytes_max, Arc::clone(figures)),
            None => Self::bounded(KEPT_BYTES_MAX, Arc::clone(figures)),
        })
    }

    /// Those of a past publication have no file: it keeps evicted answers, and would last for as long as they are
    /// requested.
    fn of_the_past(bytes_max: usize, figures: Arc<Figures>) -> Self {
        Self { body_file: OnceLock::from(None), ..Self::bounded(bytes_max, figures) }
    }

    fn bounded(bytes_max: usize, figures: Arc<Figures>) -> Self {
        Self {
            bytes_max,
            shards: Default::default(),
            kept_bytes: AtomicUsize::new(0),
            figures,
            body_file: OnceLock::new(),
            fragments: Fragments::default(),
            v4: v4::Publication::default(),
        }
    }

    /// The answer if it is ready.
    pub(crate) fn find(&self, asked: &HashedSelector) -> Result<Ready, Missing> {
        let HashedSelector { selector, hash } = asked;
        let hash = *hash;
        let mut shard = self.shard(hash);
        if let Some(kept) = shard.find(hash, selector) {
            return Ok(kept);
        }
        let asked_before = shard.was_asked(hash);
        let keep = asked_before || self.kept_bytes() < self.bytes_max / 2;
        Err(Missing { hash, keep, asked_before })
    }

    /// Computes an answer that was not ready, and keeps it if that is worth it.
    pub(crate) fn make(
        &self,
        selector: &Selector,
        Missing { hash, keep, .. }: Missing,
        make: impl FnOnce() -> Answer,
    ) -> Arc<Answer> {
        self.figures.made.fetch_add(1, Ordering::Relaxed);
        let answer = Arc::new(make());
        if keep {
            self.keep(hash, selector, &answer);
        }
        answer
    }

    /// The file for bodies of kept answers, created on first use; `None` if they get none.
    pub(crate) fn body_file(&self) -> Option<&Arc<BodyFile>> {
        self.body_file.get_or_init(BodyFile::open).as_ref()
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    fn keep(&self, hash: u64, selector: &Selector, answer: &Arc<Answer>) {
        let cost = cost(selector, answer);
        // Reserved before it is used, so that concurrent threads stay within the bound.
        let mut over = (self.kept_bytes.fetch_add(cost, Ordering::Relaxed) + cost)
            .saturating_sub(self.bytes_max);
        for step in 0..SHARDS {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(self.make_room(hash.wrapping_add(nth(step)), over));
        }
        let mut shard = self.shard(hash);
        if over > 0 || shard.kept.contains_key(&hash) {
            // There is still no room, or another thread has inserted it.
            self.kept_bytes.fetch_sub(cost, Ordering::Relaxed);
            return;
        }
        let (selector, answer) = (selector.clone(), Arc::clone(answer));
        shard.kept.insert(hash, Kept { selector, answer, used: false });
        shard.ring.push(hash);
    }

    /// Evicts answers of one shard until `wanted` bytes are free or every answer was checked. Returns the number of
    /// bytes freed.
    fn make_room(&self, hash: u64, wanted: usize) -> usize {
        let mut shard = self.shard(hash);
        let mut freed = 0;
        for _ in 0..shard.ring.len() {
            if freed >= wanted {
                break;
            }
            let Some(gone) = shard.pass() else { continue };
            freed += cost(&gone.selector, &gone.answer);
            self.figures.evicted.fetch_add(1, Ordering::Relaxed);
        }
        self.kept_bytes.fetch_sub(freed, Ordering::Relaxed);
        freed
    }

    #[expect(clippy::indexing_slicing, reason = "a remainder of the length is within it")]
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(hash % nth(SHARDS)).unwrap_or(0);
        // No code under the lock panics half-way through a change.
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn find(&mut self, hash: u64, selector: &Selector) -> Option<Ready> {
        let kept = self.kept.get_mut(&hash).filter(|kept| kept.selector == *selector)?;
        let popular = std::mem::replace(&mut kept.used, true);
        Some(Ready { answer: Arc::clone(&kept.answer), popular })
    }

    /// True if this was requested before, as far as the marks remember; marks it.
    fn was_asked(&mut self, hash: u64) -> bool {
        if self.marks.is_empty() {
            self.marks = vec![0; MARKS];
        }
        // The lowest bits have selected the shard.
        let at = usize::try_from((hash >> 32) % nth(MARKS)).unwrap_or(0);
        self.marks.get_mut(at).is_some_and(|mark| std::mem::replace(mark, hash) == hash)
    }

    /// Advances the hand by one: a used answer is spared once, an unused one is evicted.
    fn pass(&mut self) -> Option<Kept> {
        if self.hand >= self.ring.len() {
            self.hand = 0;
        }
        let hash = *self.ring.get(self.hand)?;
        if let Some(kept) = self.kept.get_mut(&hash)
            && std::mem::take(&mut kept.used)
        {
            self.hand += 1;
            return None;
        }
        self.ring.swap_remove(self.hand);
        self.kept.remove(&hash)
    }
}

/// Memory for keeping an answer. Each body is counted three times: for its encodings, which together are smaller, and
/// for the file it may be sent from.
fn cost(selector: &Selector, answer: &Answer) -> usize {
    /// The entry itself, its slots in the map and the ring, and the heads of four encodings.
    const ENTRY_BYTES: usize = 1 << 10;
    ENTRY_BYTES + selector.list_bytes() + 3 * answer.body_bytes()
}

fn nth(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A selector with its hash, which is computed once for repeated requests.
#[derive(Clone, Debug)]
pub(crate) struct HashedSelector {
    pub(crate) selector: Selector,
    hash: u64,
}

impl HashedSelector {
    pub(crate) fn new(selector: Selector) -> Self {
        static KEYED: LazyLock<Keyed> = LazyLock::new(Keyed::default);
        Self { hash: KEYED.hash_one(&selector), selector }
    }
}

impl Deref for HashedSelector {
    type Target = Selector;

    fn deref(&self) -> &Selector {
        &self.selector
    }
}

/// A keyed hash of the fields of a selector. Its dozen small fields are gathered and hashed at once, which takes a
/// third of the time of the standard library's hash and is as unpredictable for a client.
#[derive(Debug)]
struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        Self(RandomState::new().hash_one("kept answers"))
    }
}

impl BuildHasher for Keyed {
    type Hasher = Gathered;

    fn build_hasher(&self) -> Gathered {
        Gathered { bytes: [0; GATHERED_BYTES], length: 0, seed: self.0 }
    }
}

/// More than a selector without a list of events or a cursor needs.
const GATHERED_BYTES: usize = 160;

struct Gathered {
    bytes: [u8; GATHERED_BYTES],
    length: usize,
    seed: u64,
}

impl Hasher for Gathered {
    fn write(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
            self.length = end;
        } else {
            // The gathered bytes become the seed for the rest.
            self.seed = self.finish();
            self.length = 0;
            self.seed = xxh3_64_with_seed(bytes, self.seed);
        }
    }

    fn finish(&self) -> u64 {
        xxh3_64_with_seed(self.bytes.get(..self.length).unwrap_or_default(), self.seed)
    }
}

/// The keys are already hashes.
#[derive(Clone, Copy, Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use domain::{Catalogue, EventId};

    use super::*;

    impl Answers {
        fn get_or_make(&self, selector: &Selector, make: impl FnOnce() -> Answer) -> Arc<Answer> {
            match self.find(&HashedSelector::new(selector.clone())) {
                Ok(ready) => ready.answer,
                Err(missing) => self.make(selector, missing, make),
            }
        }
    }

    fn selectors() -> impl Fn(u64) -> Selector {
        let mma = Catalogue::load(None).unwrap().sport_id("mma").unwrap();
        move |number| Selector::Event(mma, EventId::from_number(number))
    }

    /// A mebibyte, so that the bound is soon reached.
    const BYTES_MAX: usize = 1 << 20;

    fn answers() -> Answers {
        Answers::bounded(BYTES_MAX, Arc::default())
    }

    /// Sixteen kibibytes of counted cost: sixty-four such answers fill the cache.
    fn body() -> Answer {
        Answer::new(vec![b'x'; 5 << 10], None)
    }

    fn is_kept(answers: &Answers, selector: &Selector) -> bool {
        let mut made = false;
        answers.get_or_make(selector, || {
            made = true;
            body()
        });
        !made
    }

    #[test]
    fn what_is_kept_is_the_same_answer() {
        let (answers, selector) = (answers(), selectors());
        let first = answers.get_or_make(&selector(0), body);
        let again = answers.get_or_make(&selector(0), || panic!("it was kept"));
        assert!(Arc::ptr_eq(&first, &again));
    }

    #[test]
    fn a_million_selections_asked_once_are_not_kept_and_leave_the_popular_ones_alone() {
        let (answers, selector) = (answers(), selectors());
        let popular = 20;
        for number in 0..1_000_000 {
            answers.get_or_make(&selector(1_000 + number), || Answer::new(vec![b'x'; 64], None));
            if number % 500 == 0 {
                answers.get_or_make(&selector(number / 500 % popular), body);
            }
        }
        assert!(answers.kept_bytes() <= BYTES_MAX, "{}", answers.kept_bytes());
        for number in 0..popular {
            assert!(is_kept(&answers, &selector(number)), "popular answer {number} is gone");
        }
        let held: usize = answers.shards.iter().map(|shard| shard.lock().unwrap().ring.len()).sum();
        assert!(held < 1_024, "{held} answers take more than they were counted for");
    }

    #[test]
    fn selections_asked_twice_push_out_each_other_but_not_what_everybody_asks() {
        let (answers, selector) = (answers(), selectors());
        for number in 0..2_000 {
            for _ in 0..2 {
                answers.get_or_make(&selector(1_000 + number), body);
            }
            for popular in 0..10 {
                answers.get_or_make(&selector(popular), body);
            }
            assert!(answers.kept_bytes() <= BYTES_MAX);
        }
        for popular in 0..10 {
            assert!(is_kept(&answers, &selector(popular)), "popular answer {popular} is gone");
        }
        assert!(answers.figures.evicted.load(Ordering::Relaxed) > 1_500);
        let made = answers.figures.made.load(Ordering::Relaxed);
        // Each of the two thousand is computed at most twice, and the ten hardly more often.
        assert!(made < 4_300, "{made} were made");
    }

    #[test]
    fn an_answer_larger_than_all_there_is_room_for_is_sent_and_not_kept() {
        let (answers, selector) = (answers(), selectors());
        for _ in 0..3 {
            answers.get_or_make(&selector(0), || Answer::new(vec![b'x'; BYTES_MAX], None));
        }
        assert_eq!(answers.kept_bytes(), 0);
    }

    #[test]
    fn answers_of_the_past_are_not_copied_into_a_file() {
        let large = || Answer::new(vec![b'x'; http::FILE_BODY_BYTES_MIN], None);
        assert!(large().encoded(None).file(&answers()).is_some());
        let past = Answers::of_the_past(BYTES_MAX, Arc::default());
        assert!(large().encoded(None).file(&past).is_none());
    }

    #[test]
    fn the_hash_tells_apart_what_differs_anywhere_and_is_another_in_every_process() {
        let (one, other) = (Keyed::default(), Keyed::default());
        let mut seen = std::collections::HashSet::new();
        // Longer and longer lists exceed the bytes gathered at once.
        for length in 0..60_u64 {
            let list: Vec<u64> = (0..length).collect();
            for changed in 0..list.len() {
                let mut list = list.clone();
                list[changed] = 1_000;
                assert!(seen.insert(one.hash_one(&list)), "{list:?}");
                assert_ne!(one.hash_one(&list), other.hash_one(&list));
            }
        }
    }

    #[test]
    fn threads_that_make_the_same_answers_count_them_once() {
        let (answers, selector) = (answers(), selectors());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..50 {
                        answers.get_or_make(&selector(number), || Answer::new(vec![0; 100], None));
                    }
                });
            }
        });
        assert_eq!(answers.kept_bytes(), 50 * cost(&selector(0), &Answer::new(vec![0; 100], None)));
    }
}

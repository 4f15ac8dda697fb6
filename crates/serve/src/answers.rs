//! Ready answers of one epoch: made once for each selection and kept until the next snapshot (D14).
//!
//! They live and die with the snapshot they were made from, so nothing is ever invalidated. What is kept is
//! bounded: when the epoch's share is used up, further selections are answered without being kept, and those
//! that came before stay.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use domain::{EventId, SportId};
use market::select::Cursor;
use market::{BoutSelection, EventSelection, OddsSelection, ScoreSelection};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::encoding::Encoding;
use crate::reply::Head;

/// The most that one epoch's answers may hold, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// What a selector takes itself; the largest names 200 events. The body is counted twice, for its encodings.
const SELECTOR_BYTES_MAX: usize = 2 << 10;
/// Fewer threads meet at each lock.
const SHARDS: usize = 16;

/// What is asked of a snapshot, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Selector {
    Sports,
    Books,
    Odds(OddsSelection),
    Bouts(BoutSelection),
    Scores(ScoreSelection),
    Events(EventSelection),
    Event(SportId, EventId),
}

/// A body with its encodings, and where the next page starts.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) next: Option<Cursor>,
    identity: Encoded,
    zstd: OnceLock<Encoded>,
    brotli: OnceLock<Encoded>,
    gzip: OnceLock<Encoded>,
}

/// A body in one encoding, with the headers that go with it.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) etag: String,
    /// `content-type`, `content-encoding`.
    pub(crate) head: Head,
}

impl Answer {
    pub(crate) fn new(body: Vec<u8>, next: Option<Cursor>) -> Self {
        // The tag names the bytes, so it is the same on every node and across epochs that changed nothing.
        // A further page is told in a header: an answer with one is not the answer without.
        let digest = xxh3_128_with_seed(&body, u64::from(next.is_some()));
        let tag = BASE64URL_NOPAD.encode(&digest.to_be_bytes());
        Self {
            next,
            identity: Encoded::new(Bytes::from(body), &tag, Encoding::Identity),
            zstd: OnceLock::new(),
            brotli: OnceLock::new(),
            gzip: OnceLock::new(),
        }
    }

    /// The body in the best encoding the client accepts; packed when first asked for.
    pub(crate) fn encoded(&self, accept_encoding: Option<&[u8]>) -> &Encoded {
        let encoding = Encoding::negotiate(accept_encoding, self.identity.body.len());
        let cell = match encoding {
            Encoding::Identity => return &self.identity,
            Encoding::Zstd => &self.zstd,
            Encoding::Brotli => &self.brotli,
            Encoding::Gzip => &self.gzip,
        };
        cell.get_or_init(|| {
            let tag = self.identity.etag.trim_matches('"');
            match encoding.encode(&self.identity.body) {
                Some(packed) => Encoded::new(Bytes::from(packed), tag, encoding),
                None => Encoded::new(self.identity.body.clone(), tag, Encoding::Identity),
            }
        })
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.identity.body.len()
    }
}

impl Encoded {
    fn new(body: Bytes, tag: &str, encoding: Encoding) -> Self {
        let mut head = Head::default();
        head.put("content-type", "application/json");
        let etag = match encoding {
            Encoding::Identity => format!("\"{tag}\""),
            Encoding::Zstd | Encoding::Brotli | Encoding::Gzip => {
                head.put("content-encoding", encoding.token());
                format!("\"{tag}-{}\"", encoding.token())
            }
        };
        Self { body, etag, head }
    }
}

/// The answers kept for one snapshot.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    shards: [Mutex<HashMap<Selector, Arc<Answer>>>; SHARDS],
    spread: RandomState,
    kept_bytes: AtomicUsize,
}

impl Answers {
    pub(crate) fn get_or_make(
        &self,
        selector: &Selector,
        make: impl FnOnce() -> Answer,
    ) -> Arc<Answer> {
        if let Some(kept) = self.shard(selector).get(selector) {
            return Arc::clone(kept);
        }
        let answer = Arc::new(make());
        let cost = 2 * answer.body_bytes() + SELECTOR_BYTES_MAX;
        if self.kept_bytes.fetch_add(cost, Ordering::Relaxed) + cost <= KEPT_BYTES_MAX {
            self.shard(selector).insert(selector.clone(), Arc::clone(&answer));
        } else {
            self.kept_bytes.fetch_sub(cost, Ordering::Relaxed);
        }
        answer
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    #[expect(clippy::indexing_slicing, reason = "a remainder of the length is within it")]
    fn shard(&self, selector: &Selector) -> MutexGuard<'_, HashMap<Selector, Arc<Answer>>> {
        let hash = usize::try_from(self.spread.hash_one(selector) >> 32).unwrap_or(0);
        self.shards[hash % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(number: u64) -> Selector {
        let catalogue = domain::Catalogue::load(None).unwrap();
        Selector::Event(catalogue.sport_id("mma").unwrap(), EventId::from_number(number))
    }

    #[test]
    fn what_is_kept_is_bounded_and_early_answers_stay() {
        let answers = Answers::default();
        let body = || Answer::new(vec![b'x'; 1 << 20], None);
        let first = answers.get_or_make(&selector(0), body);
        for number in 1..100 {
            answers.get_or_make(&selector(number), body);
        }
        assert!(answers.kept_bytes() <= KEPT_BYTES_MAX);
        let again = answers.get_or_make(&selector(0), || panic!("it was kept"));
        assert!(Arc::ptr_eq(&first, &again));
    }

    #[test]
    fn tags_tell_encodings_and_further_pages_apart() {
        let body = vec![b'x'; 1000];
        let whole = Answer::new(body.clone(), None);
        let tags: Vec<&str> = [None, Some("gzip"), Some("br"), Some("zstd")]
            .map(|accept| whole.encoded(accept.map(str::as_bytes)).etag.as_str())
            .into();
        let mut distinct = tags.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), tags.len(), "{tags:?}");
        assert_eq!(Answer::new(body, None).encoded(None).etag, whole.encoded(None).etag);
    }
}

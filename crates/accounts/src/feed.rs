//! Push feeds: every live feed token in memory, found by its digest.

use std::sync::Arc;

use arc_swap::ArcSwap;
use domain::Timestamp;
use store::{Store, StoreError};
use tokio::sync::Mutex;

use crate::{FeedToken, KeyRefusal, key::ring::DigestMap, revocation::key_lease::KeyLease};

/// The rights of a feed token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedGrant {
    pub name: String,
    /// The only bookmaker that the feed may report; `None`: any.
    pub bookmaker: Option<String>,
    /// Whether it may report scores.
    pub scores: bool,
    /// Time at which an operator paused it.
    pub paused_at: Option<Timestamp>,
}

/// Every live feed token.
#[derive(Debug)]
pub struct Feeds {
    feeds: ArcSwap<DigestMap<Arc<FeedGrant>>>,
    store: Store,
    lease: Arc<KeyLease>,
    /// Held while the store is read, so that an older read never overwrites a newer one.
    following: Mutex<()>,
}

impl Feeds {
    pub(crate) fn new(store: Store, lease: Arc<KeyLease>) -> Self {
        Self { feeds: ArcSwap::default(), store, lease, following: Mutex::new(()) }
    }

    /// Finds a token by its text.
    ///
    /// # Errors
    /// It is not a live token, or this node has no key lease.
    pub fn authenticate(&self, text: &[u8]) -> Result<Arc<FeedGrant>, KeyRefusal> {
        let digest = FeedToken::parse(text).ok_or(KeyRefusal::Unknown)?.digest();
        if !self.lease.holds() {
            return Err(KeyRefusal::Unconfirmed);
        }
        self.feeds.load().get(&digest).map(Arc::clone).ok_or(KeyRefusal::Unknown)
    }

    /// Every live feed, by name.
    pub fn list(&self) -> Vec<Arc<FeedGrant>> {
        let mut feeds: Vec<Arc<FeedGrant>> = self.feeds.load().values().map(Arc::clone).collect();
        feeds.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        feeds
    }

    /// Reads the store. On failure nothing changes.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let _following = self.following.lock().await;
        let rows = self.store.feeds().await?;
        let live = rows.into_iter().filter(|row| row.revoked_ms.is_none());
        let feeds = live
            .map(|row| {
                let grant = FeedGrant {
                    name: row.name,
                    scores: row.scores || row.bookmaker.is_none(),
                    bookmaker: row.bookmaker,
                    paused_at: row.paused_ms.map(Timestamp::from_millis),
                };
                (row.digest, Arc::new(grant))
            })
            .collect();
        self.feeds.store(Arc::new(feeds));
        Ok(())
    }
}
